//! Conducts a run in virtual time: ramp, priming, steady, restarts, tail, end, as a real run does.
//!
//! It moves messages between clients, publisher and model server and notes when things happened. A link's latency is
//! constant and the last thing on it is its end, so a batch of receipts may be written at once with their own instants.

use std::collections::HashMap;
use std::time::Duration;

use super::model::{Frame, Model, Welcome};
use super::peer::{Link, Peer, Seen};
use super::publisher::{Publisher, RETRY};
use super::queue::Queue;
use super::{Ledger, Setup};
use crate::client::machine::Dial;
use crate::history::{
    AttemptOutcome, Cause, ClientId, Elapsed, End, Event, EventIx, History, Mark, PublicationKind,
    Seq,
};

/// From the signal until the old process is reaped.
const REAP: Duration = Duration::from_millis(1);

/// From the first moment at which the server listens until the probe notices.
const PROBE: Duration = Duration::from_millis(5);

/// How often the conductor looks.
const LOOK: Duration = Duration::from_millis(50);

/// How long a socket may stay silent after others came back and receive (rule 5 of judgement).
const SILENCE: Duration = Duration::from_secs(5);

/// What is published after the last client has caught up (rule 15 of judgement).
const TAIL: (Duration, usize) = (Duration::from_secs(2), 10);

/// For a client that is still away, where the terms name no limit. No policy here takes longer.
const RECONNECT_LIMIT: Duration = Duration::from_secs(180);

/// The publisher's way to the server.
const PUBLISH_LATENCY: Duration = Duration::from_micros(300);

#[derive(Debug)]
enum Step {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Priming,
    /// Waiting for a trigger.
    Steady,
    /// Clients are coming back.
    Outage {
        outage: u32,
        trigger: Elapsed,
    },
    /// Publishing goes on.
    Tail {
        from: Elapsed,
        numbers: usize,
    },
    /// Nothing more is published.
    Drain,
}

/// The run in progress.
pub(super) struct World<'a> {
    setup: &'a Setup,
    history: History,
    queue: Queue<Step>,
    model: Model,
    peers: Vec<Peer>,
    publisher: Publisher,
    phase: Phase,
    /// The probe succeeded since the last trigger.
    ready: bool,
    /// For each stored event, its place in the history's table once anybody saw it.
    seen: Vec<Option<Seen>>,
    /// Events that no log holds: other contents and resets, by (id, digest).
    odd: HashMap<(u64, u64), EventIx>,
    /// For each stored event, how many clients had it while priming.
    priming: Vec<usize>,
    /// When the last client got the event that all have.
    primed: Option<Elapsed>,
    /// When a client that came back first received something.
    others_receive: Option<Elapsed>,
    slowest: Duration,
    frames: Vec<Frame>,
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
            seen: Vec::new(),
            odd: HashMap::new(),
            priming: Vec::new(),
            primed: None,
            others_receive: None,
            slowest: setup.latency.most.max(PUBLISH_LATENCY),
            frames: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> (History, Ledger) {
        for client in 0..self.peers.len() {
            let due = Elapsed::from(self.setup.ramp * client as u32 / self.setup.clients);
            let dial = self.peers[client].start(due, &self.setup.backoff);
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

    fn step(&mut self, now: Elapsed, step: Step) -> std::ops::ControlFlow<()> {
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
        std::ops::ControlFlow::Continue(())
    }

    fn mark(&mut self, at: Elapsed, mark: Mark) {
        self.history.marks.push((at, mark));
    }

    fn schedule(&mut self, client: usize, dial: Option<Dial>) {
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
            let dial = peer.failed(back, AttemptOutcome::Refused, &self.setup.backoff);
            self.schedule(client, dial);
        }
    }

    /// The server subscribes before it answers, so what it sends at once arrives with the answer.
    fn upgrade(&mut self, now: Elapsed, client: usize) {
        let welcome = self.model.welcome(now, client);
        let (setup, peer) = (self.setup, &mut self.peers[client]);
        let at = now + peer.latency;
        let dial = match welcome {
            Welcome::Unavailable => {
                let outcome = AttemptOutcome::Handshake {
                    status: Some(503),
                    why: "service unavailable".into(),
                };
                peer.failed(at, outcome, &setup.backoff)
            }
            Welcome::OpenAndClose => {
                let cause = Cause::Close {
                    code: Some(1013),
                    reason: "try again later".into(),
                };
                let dropped = peer.dropped;
                peer.opened(at, None, &setup.backoff);
                let dial = peer.closed(at + REAP, cause, &setup.backoff);
                // It was not back, so it is away since its drop (rule 1 of judgement).
                peer.dropped = dropped;
                dial
            }
            Welcome::Open => {
                let need = self.publisher.answered_before(peer.dial.due);
                peer.opened(at, need, &setup.backoff);
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

    fn deliver(&mut self, at: Elapsed, client: usize, frames: &mut Vec<Frame>) {
        for frame in frames.drain(..) {
            match frame {
                Frame::Event(place) => self.event(at, client, place),
                Frame::Conflict(place) => {
                    let stored = self.model.stored(place);
                    let seen = Seen {
                        event: self.odd(stored.id, Some(stored.seq), other_content(stored.seq.0)),
                        id: stored.id,
                        number: self.publisher.number(stored.seq),
                    };
                    self.peers[client].receipt(at, seen, &self.setup.backoff);
                }
                Frame::Cut(place) => {
                    let text = format!(r#"{{"id":"{}","type":"#, self.model.stored(place).id);
                    self.peers[client].unread(at, text);
                }
                Frame::Reset(id) => {
                    let event = self.odd(id, None, 0);
                    let (model, publisher) = (&self.model, &self.publisher);
                    let covered =
                        (0..model.len()).map(|place| publisher.number(model.stored(place).seq));
                    self.peers[client].reset(at, event, id, covered, &self.setup.backoff);
                }
            }
        }
    }

    fn event(&mut self, at: Elapsed, client: usize, place: usize) {
        let seen = self.seen(place);
        let peer = &mut self.peers[client];
        let first = peer.receipt(at, seen, &self.setup.backoff);
        match self.phase {
            Phase::Priming if first => {
                self.priming.resize(self.model.len(), 0);
                self.priming[place] += 1;
                if self.priming[place] == self.peers.len() && self.primed.is_none() {
                    self.primed = Some(at + self.slowest);
                    self.queue.push(at + self.slowest, Step::Primed);
                }
            }
            Phase::Outage { .. } => {
                self.others_receive.get_or_insert(at);
            }
            _ => {}
        }
    }

    fn seen(&mut self, place: usize) -> Seen {
        if place >= self.seen.len() {
            self.seen.resize(self.model.len(), None);
        }
        if let Some(seen) = self.seen[place] {
            return seen;
        }
        let stored = self.model.stored(place);
        let event = self.intern(stored.id, Some(stored.seq), content(stored.seq.0));
        let seen = Seen {
            event,
            id: stored.id,
            number: self.publisher.number(stored.seq),
        };
        self.seen[place] = Some(seen);
        seen
    }

    fn odd(&mut self, id: u64, seq: Option<Seq>, digest: u64) -> EventIx {
        if let Some(&event) = self.odd.get(&(id, digest)) {
            return event;
        }
        let event = self.intern(id, seq, digest);
        self.odd.insert((id, digest), event);
        event
    }

    fn intern(&mut self, id: u64, seq: Option<Seq>, digest: u64) -> EventIx {
        self.history.events.push(Event {
            id: Some(id.to_string().into()),
            seq,
            digest,
        });
        EventIx(self.history.events.len() as u32 - 1)
    }

    /// Every connection ends, but for those that `half-open` leaves; what is under way meets a closed port.
    fn kill(&mut self, now: Elapsed) {
        self.model.kill();
        self.others_receive = None;
        for client in 0..self.peers.len() {
            let peer = &mut self.peers[client];
            let news = now + peer.latency;
            let dial = match peer.link {
                Link::Open { .. } if self.model.leaves_open(client) => None,
                Link::Open { since } => {
                    peer.closed(news.max(since), Cause::Reset, &self.setup.backoff)
                }
                Link::Connected { at } => {
                    let outcome = AttemptOutcome::Handshake {
                        status: None,
                        why: "connection reset".into(),
                    };
                    peer.failed(news.max(at), outcome, &self.setup.backoff)
                }
                Link::Away | Link::Gone => None,
            };
            self.schedule(client, dial);
        }
    }

    fn steady(&mut self, now: Elapsed, outage: u32) {
        if outage <= self.setup.outages {
            self.phase = Phase::Steady;
            self.queue
                .push(now + self.setup.steady, Step::Trigger { outage });
        } else {
            self.phase = Phase::Tail {
                from: now,
                numbers: self.publisher.len(),
            };
        }
    }

    fn look(&mut self, now: Elapsed) -> std::ops::ControlFlow<()> {
        match self.phase {
            Phase::Priming | Phase::Steady => {}
            Phase::Outage { outage, trigger } => {
                self.close_half_open(now, trigger);
                let back = self.peers.iter().filter(|p| p.is_open()).count();
                if let Some(away) = self.model.dies(back) {
                    self.die(now, away);
                } else if self.ready && self.peers.iter().all(|p| self.is_settled(now, trigger, p))
                {
                    self.mark(now, Mark::Settled { outage });
                    self.steady(now, outage + 1);
                }
            }
            Phase::Tail { from, numbers } => {
                let published = self.publisher.len() - numbers;
                if now.since(from) >= TAIL.0 && published >= TAIL.1 {
                    self.phase = Phase::Drain;
                    self.flush(now);
                }
            }
            Phase::Drain if self.is_over(now) => {
                return std::ops::ControlFlow::Break(());
            }
            Phase::Drain => {}
        }
        self.queue.push(now + LOOK, Step::Look);
        std::ops::ControlFlow::Continue(())
    }

    /// What stayed open across the trigger and has been silent for long enough (rule 5 of judgement).
    fn close_half_open(&mut self, now: Elapsed, trigger: Elapsed) {
        if !self
            .others_receive
            .is_some_and(|since| now.since(since) > SILENCE)
        {
            return;
        }
        for client in 0..self.peers.len() {
            let peer = &mut self.peers[client];
            if matches!(peer.link, Link::Open { since } if since < trigger) {
                let dial = peer.closed(now, Cause::HalfOpen, &self.setup.backoff);
                self.schedule(client, dial);
            }
        }
    }

    fn die(&mut self, now: Elapsed, away: Duration) {
        let status = "signal: 9 (SIGKILL)".into();
        self.mark(now, Mark::Died { status });
        self.kill(now);
        self.queue.push(now + away, Step::Boot);
    }

    /// Caught up, gone for good, or past its limit; a socket from before the trigger is none of these.
    fn is_settled(&self, now: Elapsed, trigger: Elapsed, peer: &Peer) -> bool {
        match peer.link {
            Link::Open { since } if since < trigger => now.since(trigger) > self.reconnect_limit(),
            _ => peer.is_caught_up() || self.is_past_limit(now, peer),
        }
    }

    fn is_past_limit(&self, now: Elapsed, peer: &Peer) -> bool {
        match (peer.link, peer.dropped) {
            (Link::Gone, _) => true,
            (Link::Open { since }, _) => {
                let from = match self.phase {
                    Phase::Drain => since.max(self.publisher.last_answer()),
                    _ => since,
                };
                now.since(from) > self.setup.terms.settle + LOOK
            }
            (_, Some(dropped)) => now.since(dropped) > self.reconnect_limit(),
            (_, None) => false,
        }
    }

    fn reconnect_limit(&self) -> Duration {
        self.setup.terms.reconnect_limit.unwrap_or(RECONNECT_LIMIT) + LOOK
    }

    /// All pairs are in, or past their limits; an answer that is still out counts as long as there is somebody to tell.
    fn is_over(&self, now: Elapsed) -> bool {
        let over = |peer: &Peer| {
            let has_all = || peer.is_open() && self.publisher.promised().all(|n| peer.has(n));
            self.is_past_limit(now, peer) || (self.publisher.is_idle() && has_all())
        };
        self.peers.iter().all(over) && (self.publisher.is_idle() || !self.model.is_up())
    }

    fn flush(&mut self, now: Elapsed) {
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
        let held = |(k, _): &(u32, Peer)| shard.holds(ClientId(*k));
        for (_, peer) in (1..).zip(self.peers).filter(held) {
            peer.end(at, &mut self.history.clients);
        }
        for publication in self.publisher.into_publications() {
            self.history
                .publications
                .insert(publication.seq, publication);
        }
        self.history.horizon = at;
        (self.history, self.model.into_ledger())
    }
}

/// A digest of what a publication says; never 0, which means nothing to compare.
fn content(seq: u64) -> u64 {
    seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn other_content(seq: u64) -> u64 {
    content(seq) ^ 2
}
