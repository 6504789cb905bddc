//! Conducts a run in virtual time: ramp, priming, steady, restarts, tail, end, as a real run does.
//!
//! It moves messages between clients, publisher and model server and notes when things happened; what a frame does to its
//! client is in `simulate/arrival.rs`. A link's latency is constant and the last thing on it is its end, so a batch of
//! receipts may be written at once with their own instants.

use std::ops::ControlFlow;
use std::time::Duration;

use super::conduct::{self, Phase};
use super::model::{Frame, Model, Welcome};
use super::peer::{Link, Peer};
use super::publisher::{Publisher, RETRY};
use super::queue::Queue;
use super::table::Table;
use super::{Ledger, Setup};
use crate::client::machine::Dial;
use crate::history::{
    AttemptOutcome, Cause, ClientId, Elapsed, End, History, Mark, PublicationKind,
};

/// From the signal until the old process is reaped.
const REAP: Duration = Duration::from_millis(1);

/// From the first moment at which the server listens until the probe notices.
const PROBE: Duration = Duration::from_millis(5);

/// The publisher's way to the server.
const PUBLISH_LATENCY: Duration = Duration::from_micros(300);

#[derive(Debug)]
pub(super) enum Step {
    /// A client's SYN reaches the server.
    Syn { client: usize, dial: u32 },
    /// Its request for a WebSocket is answered.
    Upgrade { client: usize, dial: u32 },
    /// A publication is due.
    Due,
    /// A publication is sent again.
    Again { number: usize },
    /// A publication reaches the server, if it still lives the life it was sent in.
    Store { number: usize, life: u32 },
    /// Its answer reaches the publisher, likewise.
    Answer { number: usize, life: u32, id: u64 },
    /// Every client holds one and the same priming event.
    Primed,
    /// The server is killed.
    Trigger { outage: u32 },
    /// The old process is reaped.
    Gone { outage: u32 },
    /// The server listens again.
    Boot,
    /// The probe succeeds.
    Ready { outage: u32 },
    /// The conductor looks.
    Look,
}

/// The run in progress.
pub(super) struct World<'a> {
    pub(super) setup: &'a Setup,
    pub(super) history: History,
    pub(super) queue: Queue<Step>,
    pub(super) model: Model,
    pub(super) peers: Vec<Peer<'a>>,
    pub(super) publisher: Publisher,
    pub(super) phase: Phase,
    /// The probe succeeded since the last trigger.
    pub(super) ready: bool,
    pub(super) table: Table,
    /// For each stored event, how many clients had it while priming.
    pub(super) priming: Vec<usize>,
    /// When the last client got the event that all have.
    pub(super) primed: Option<Elapsed>,
    /// When a client that came back first received something.
    pub(super) others_receive: Option<Elapsed>,
    pub(super) slowest: Duration,
    /// Reused for every delivery.
    pub(super) frames: Vec<Frame>,
    pub(super) reconnect_limit: Duration,
}

impl<'a> World<'a> {
    pub(super) fn new(setup: &'a Setup) -> Self {
        let header = setup.header();
        let publisher = Publisher::new(
            header.seq_base,
            setup.rate,
            Elapsed::from(setup.ramp),
            setup.terms.idempotent,
        );
        Self {
            setup,
            history: History::new(header),
            queue: Queue::new(),
            model: Model::new(setup),
            peers: (1..=setup.clients)
                .map(|k| Peer::new(setup, ClientId(k)))
                .collect(),
            publisher,
            phase: Phase::Priming,
            ready: true,
            table: Table::default(),
            priming: Vec::new(),
            primed: None,
            others_receive: None,
            slowest: setup.latency.most.max(PUBLISH_LATENCY),
            frames: Vec::new(),
            reconnect_limit: conduct::reconnect_limit(setup),
        }
    }

    pub(super) fn run(mut self) -> (History, Ledger) {
        for client in 0..self.peers.len() {
            let due = Elapsed::from(self.setup.ramp * client as u32 / self.setup.clients);
            let dial = self.peers[client].start(due);
            self.schedule(client, dial);
        }
        self.queue.push(self.publisher.due(), Step::Due);
        self.queue.push(Elapsed::ZERO, Step::Look);
        while let Some((now, step)) = self.queue.pop() {
            if self.step(now, step).is_break() {
                let last = now + self.slowest;
                return self.end(last);
            }
        }
        unreachable!("the conductor looks until the run is over")
    }

    fn step(&mut self, now: Elapsed, step: Step) -> ControlFlow<()> {
        match step {
            Step::Syn { client, dial } if self.peers[client].dials == dial => self.syn(now, client),
            Step::Upgrade { client, dial } if self.peers[client].dials == dial => {
                self.upgrade(now, client);
            }
            // Of a dial that ended otherwise meanwhile.
            Step::Syn { .. } | Step::Upgrade { .. } => {}
            Step::Due => self.due(now),
            Step::Again { number } => self.send(now, number),
            Step::Store { number, life } => self.store(now, number, life),
            Step::Answer { number, life, id } => {
                if self.alive(life) {
                    self.publisher.accepted(number, now, id);
                } else {
                    self.unanswered(now, number);
                }
            }
            Step::Primed => {
                self.mark(now, Mark::Primed);
                self.steady(now, 1);
            }
            Step::Trigger { outage } => {
                self.mark(now, Mark::Trigger { outage });
                self.phase = Phase::Outage {
                    outage,
                    trigger: now,
                };
                self.ready = false;
                self.kill(now);
                let back = now + REAP + self.setup.down;
                self.queue.push(now + REAP, Step::Gone { outage });
                self.queue.push(back, Step::Boot);
                self.queue.push(back + PROBE, Step::Ready { outage });
            }
            Step::Gone { outage } => self.mark(now, Mark::Gone { outage }),
            Step::Boot => self.model.boot(now),
            Step::Ready { outage } => {
                self.ready = true;
                self.mark(now, Mark::Ready { outage });
            }
            Step::Look => return self.look(now),
        }
        ControlFlow::Continue(())
    }

    pub(super) fn mark(&mut self, at: Elapsed, mark: Mark) {
        self.history.marks.push((at, mark));
    }

    pub(super) fn schedule(&mut self, client: usize, dial: Option<Dial>) {
        if let Some(dial) = dial {
            let peer = &self.peers[client];
            let step = Step::Syn {
                client,
                dial: peer.dials,
            };
            self.queue.push(dial.due + peer.latency, step);
        }
    }

    fn syn(&mut self, now: Elapsed, client: usize) {
        let up = self.model.is_up();
        let peer = &mut self.peers[client];
        let back = now + peer.latency;
        if up {
            peer.link = Link::Connected { at: back };
            let dial = peer.dials;
            let turn = self.model.accept(back + peer.latency);
            self.queue.push(turn, Step::Upgrade { client, dial });
        } else {
            let dial = peer.failed(back, AttemptOutcome::Refused);
            self.schedule(client, dial);
        }
    }

    /// The server subscribes before it answers, so what it sends at once arrives with the answer.
    fn upgrade(&mut self, now: Elapsed, client: usize) {
        let welcome = self.model.welcome(now, client);
        let peer = &mut self.peers[client];
        let at = now + peer.latency;
        let dial = match welcome {
            Welcome::Unavailable => {
                let outcome = AttemptOutcome::Handshake {
                    status: Some(503),
                    why: "service unavailable".into(),
                };
                peer.failed(at, outcome)
            }
            Welcome::OpenAndClose => {
                let cause = Cause::Close {
                    code: Some(1013),
                    reason: "try again later".into(),
                };
                let dropped = peer.dropped;
                peer.opened(at, None);
                let dial = peer.closed(at + REAP, cause);
                // It was not back, so it is away since its drop (rule 1 of judgement).
                peer.dropped = dropped;
                dial
            }
            Welcome::Open => {
                let need = self.publisher.answered_before(peer.dial.due);
                peer.opened(at, need);
                let cursor = peer.cursor();
                let mut frames = std::mem::take(&mut self.frames);
                self.model.subscribe(client, cursor, &mut frames);
                self.deliver(at, client, &mut frames);
                self.frames = frames;
                None
            }
        };
        self.schedule(client, dial);
    }

    fn due(&mut self, now: Elapsed) {
        let kind = match self.phase {
            Phase::Priming => PublicationKind::Priming,
            Phase::Drain => return,
            _ => PublicationKind::Expected,
        };
        let number = self.publisher.create(kind);
        self.send(now, number);
        self.queue.push(self.publisher.due(), Step::Due);
    }

    /// A refused connect is no byte written; after that only an answer tells.
    fn send(&mut self, now: Elapsed, number: usize) {
        self.publisher.sent(number, now);
        if self.model.is_up() {
            let life = self.model.life();
            self.queue
                .push(now + PUBLISH_LATENCY, Step::Store { number, life });
        } else {
            self.queue
                .push(now + PUBLISH_LATENCY * 2 + RETRY, Step::Again { number });
        }
    }

    fn unanswered(&mut self, now: Elapsed, number: usize) {
        if self.publisher.unanswered(number) {
            self.queue.push(now + RETRY, Step::Again { number });
        }
    }

    fn alive(&self, life: u32) -> bool {
        self.model.is_up() && self.model.life() == life
    }

    fn store(&mut self, now: Elapsed, number: usize, life: u32) {
        if !self.alive(life) {
            self.unanswered(now + PUBLISH_LATENCY, number);
            return;
        }
        let seq = self.publisher.seq(number);
        if self.publisher.is_expected(number) {
            self.model.arm(seq);
        }
        let (id, stored) = self.model.publish(seq);
        self.queue
            .push(now + PUBLISH_LATENCY, Step::Answer { number, life, id });
        let Some(place) = stored else {
            return;
        };
        let mut frames = std::mem::take(&mut self.frames);
        for client in 0..self.peers.len() {
            self.model.live(client, place, &mut frames);
            let at = now + self.peers[client].latency;
            self.deliver(at, client, &mut frames);
        }
        self.frames = frames;
    }

    /// Every connection ends, but for those that `half-open` leaves; what is under way meets a closed port.
    pub(super) fn kill(&mut self, now: Elapsed) {
        self.model.kill();
        self.others_receive = None;
        for client in 0..self.peers.len() {
            let peer = &mut self.peers[client];
            let news = now + peer.latency;
            let dial = match peer.link {
                Link::Open { .. } if self.model.leaves_open(client) => None,
                Link::Open { since } => peer.closed(news.max(since), Cause::Reset),
                Link::Connected { at } => {
                    let outcome = AttemptOutcome::Handshake {
                        status: None,
                        why: "connection reset".into(),
                    };
                    peer.failed(news.max(at), outcome)
                }
                Link::Away | Link::Gone => None,
            };
            self.schedule(client, dial);
        }
    }

    pub(super) fn flush(&mut self, now: Elapsed) {
        let mut frames = std::mem::take(&mut self.frames);
        for client in 0..self.peers.len() {
            self.model.flush(client, &mut frames);
            let at = now + self.peers[client].latency;
            self.deliver(at, client, &mut frames);
        }
        self.frames = frames;
    }

    fn end(mut self, at: Elapsed) -> (History, Ledger) {
        self.mark(at, Mark::End(End::Complete));
        let shard = self.setup.shard;
        let held = |(k, _): &(u32, Peer<'_>)| shard.holds(ClientId(*k));
        for (_, peer) in (1..).zip(self.peers).filter(held) {
            peer.end(at, &mut self.history.clients);
        }
        for publication in self.publisher.into_publications() {
            self.history
                .publications
                .insert(publication.seq, publication);
        }
        self.history.events = self.table.into_events();
        self.history.horizon = at;
        (self.history, self.model.into_ledger())
    }
}
