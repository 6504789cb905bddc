//! Clients that meet at a server with limits, or that are cut more than once: all of them, through one queue.

use std::ops::ControlFlow;

use super::super::queue::Queue;
use super::server::{Arrival, SYN_AGAIN, Server};
use super::{
    CUT, Course, Dialled, LASTING, Met, Storm, Told, TooMany, begun, failed, lost, opened,
};
use crate::client::machine::{Action, Dial, Machine};
use crate::history::Elapsed;

/// Follows a storm.
pub(super) fn run(
    storm: &Storm,
    most: u64,
    told: &mut impl FnMut(Told),
) -> Result<Course, TooMany> {
    let mut crowd = Crowd::new(storm, most, told);
    crowd.queue.push(CUT, Step::Cut { outage: 1 });
    while let Some((now, step)) = crowd.queue.pop() {
        if now > crowd.end {
            break;
        }
        if crowd.step(now, step).is_break() {
            if crowd.course.falls.is_empty() {
                return Err(TooMany(most));
            }
            crowd.end = now;
            break;
        }
    }
    Ok(crowd.over())
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The server is stopped.
    Cut { outage: u32 },
    /// What a client waits for; out of date unless it is the one that the client waits for now.
    Due { client: u32, number: u32 },
}

/// One client.
struct Peer {
    machine: Machine,
    stage: Stage,
    /// The number of the step that it waits for.
    number: u32,
}

/// What a client is doing.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Open {
        since: Elapsed,
    },
    /// Its connection is gone, and it will notice.
    Cut {
        since: Elapsed,
    },
    /// A SYN of its dial will be sent, after so many that were dropped.
    Dialling {
        dial: Dial,
        dropped: usize,
    },
    /// An answer will come, or its patience will be over.
    Waiting {
        dial: Dial,
        connected: Option<Elapsed>,
        met: Met,
    },
    Gone,
}

struct Crowd<'a, F> {
    storm: &'a Storm,
    most: u64,
    told: &'a mut F,
    queue: Queue<Step>,
    server: Server,
    peers: Vec<Peer>,
    /// Clients that are neither open nor gone.
    away: u32,
    outage: u32,
    /// Cuts and falls so far.
    cuts: u32,
    end: Elapsed,
    course: Course,
}

impl<'a, F: FnMut(Told)> Crowd<'a, F> {
    fn new(storm: &'a Storm, most: u64, told: &'a mut F) -> Self {
        let peer = |client| Peer {
            machine: begun(client, storm.seed, storm.mix.of(client)),
            stage: Stage::Open {
                since: Elapsed::ZERO,
            },
            number: 0,
        };
        Self {
            storm,
            most,
            told,
            queue: Queue::new(),
            server: Server::new(storm.limits),
            peers: (1..=storm.clients).map(peer).collect(),
            away: 0,
            outage: 0,
            cuts: 0,
            end: Elapsed(u64::MAX),
            course: Course::default(),
        }
    }

    fn step(&mut self, now: Elapsed, step: Step) -> ControlFlow<()> {
        match step {
            Step::Cut { outage } => {
                self.outage = outage;
                self.end = now + self.storm.patience();
                let back = now + self.storm.down;
                self.course.recovered = None;
                (self.told)(Told::Cut {
                    outage,
                    at: now,
                    back,
                });
                self.down(now, back);
            }
            Step::Due { client, number } if self.peer(client).number == number => {
                match self.peer(client).stage {
                    Stage::Cut { since } => {
                        (self.told)(Told::Lost { client, at: since });
                        let policy = self.storm.mix.of(client);
                        let action = lost(&mut self.peer(client).machine, now, policy);
                        self.act(now, client, action);
                    }
                    Stage::Dialling { dial, dropped } => {
                        if dropped == 0 {
                            self.course.dials += 1;
                            if self.course.dials > self.most {
                                return ControlFlow::Break(());
                            }
                        }
                        self.syn(now, client, dial, dropped);
                    }
                    Stage::Waiting {
                        dial,
                        connected,
                        met,
                    } => self.ended(now, client, dial, connected, met),
                    Stage::Open { .. } | Stage::Gone => {}
                }
                self.settle(now);
            }
            Step::Due { .. } => {}
        }
        ControlFlow::Continue(())
    }

    fn peer(&mut self, client: u32) -> &mut Peer {
        &mut self.peers[client as usize - 1]
    }

    /// The client waits for one step and no other.
    fn wait(&mut self, client: u32, stage: Stage, until: Elapsed) {
        let peer = self.peer(client);
        peer.stage = stage;
        peer.number = peer.number.wrapping_add(1);
        let number = peer.number;
        self.queue.push(until, Step::Due { client, number });
    }

    fn act(&mut self, now: Elapsed, client: u32, action: Action) {
        match action {
            Action::Dial(dial) => self.wait(client, Stage::Dialling { dial, dropped: 0 }, dial.due),
            Action::Quit(why) => {
                self.away -= 1;
                self.peer(client).stage = Stage::Gone;
                (self.told)(Told::Quit {
                    client,
                    at: now,
                    why,
                });
            }
            Action::Nothing => {}
        }
    }

    fn syn(&mut self, now: Elapsed, client: u32, dial: Dial, dropped: usize) {
        let policy = self.storm.mix.of(client);
        let machine = &self.peers[client as usize - 1].machine;
        let requests = machine.requests(policy);
        let patience = self.storm.patience_of(machine, policy);
        let waiting = |connected, met| Stage::Waiting {
            dial,
            connected,
            met,
        };
        match self.server.arrive(now, requests) {
            Arrival::Refused => self.ended(now, client, dial, None, Met::Refused),
            Arrival::Dropped => {
                let limit = dial.due + patience;
                let again = SYN_AGAIN.get(dropped).map(|after| dial.due + *after);
                match again.filter(|again| *again < limit) {
                    Some(again) => {
                        let dropped = dropped + 1;
                        self.wait(client, Stage::Dialling { dial, dropped }, again);
                    }
                    None => self.wait(client, waiting(None, Met::Unanswered), limit),
                }
            }
            Arrival::Connected { served } if served <= now + patience => {
                self.wait(client, waiting(Some(now), Met::Opened), served);
            }
            Arrival::Connected { .. } => {
                self.wait(client, waiting(Some(now), Met::Unserved), now + patience);
            }
            Arrival::Collapse => {
                self.peer(client).stage = waiting(Some(now), Met::Reset);
                self.course.falls.push(now);
                let back = now + self.storm.down;
                (self.told)(Told::Fell {
                    outage: self.outage,
                    at: now,
                    back,
                });
                self.down(now, back);
            }
        }
    }

    fn ended(
        &mut self,
        now: Elapsed,
        client: u32,
        dial: Dial,
        connected: Option<Elapsed>,
        met: Met,
    ) {
        (self.told)(Told::Dialled(Dialled {
            client,
            due: dial.due,
            attempt: dial.attempt,
            connected,
            ended: now,
            met,
        }));
        let policy = self.storm.mix.of(client);
        let machine = &mut self.peer(client).machine;
        if met == Met::Opened {
            opened(machine, now, policy);
            self.peer(client).stage = Stage::Open { since: now };
            self.away -= 1;
        } else {
            let action = failed(machine, now, policy);
            self.act(now, client, action);
        }
    }

    /// The server is gone: whoever is connected notices, whoever waits at once.
    fn down(&mut self, now: Elapsed, back: Elapsed) {
        self.server.down(back);
        self.cuts += 1;
        for client in 1..=self.storm.clients {
            match self.peer(client).stage {
                Stage::Open { .. } => {
                    self.away += 1;
                    let at = self.storm.notices(client, self.cuts, now);
                    self.wait(client, Stage::Cut { since: now }, at);
                }
                Stage::Waiting {
                    dial,
                    connected: Some(connected),
                    ..
                } => self.ended(now, client, dial, Some(connected), Met::Reset),
                _ => {}
            }
        }
    }

    /// Where nobody is away any more, the next cut may come.
    fn settle(&mut self, now: Elapsed) {
        if self.away > 0 || self.course.recovered.is_some() {
            return;
        }
        self.course.recovered = Some(now);
        let outage = self.outage;
        (self.told)(Told::Settled { outage, at: now });
        if outage < self.storm.outages {
            let next = now + self.storm.steady.max(LASTING);
            self.end = next;
            self.queue.push(next, Step::Cut { outage: outage + 1 });
        }
    }

    fn over(mut self) -> Course {
        for (client, peer) in (1..).zip(&self.peers) {
            if let Stage::Open { since } = peer.stage {
                (self.told)(Told::Stayed { client, since });
            }
        }
        self.course.end = self.course.recovered.unwrap_or(self.end);
        self.course
    }
}
