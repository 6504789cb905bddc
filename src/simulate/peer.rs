//! One client in virtual time: the machine of a real run, its record, and what the conductor must know of it.
//!
//! Where a real client has a socket, this one has a state; whose turn it is and what the server says comes from outside.

use std::time::Duration;

use crate::backoff::{Address, Backoff};
use crate::client::ending;
use crate::client::machine::{Action, Dial, Input, Machine};
use crate::history::record::Recorder;
use crate::history::{
    Attempt, AttemptOutcome, Cause, Client, ClientId, Elapsed, EventIx, IdKind, Quit,
};

use super::Setup;
use crate::profile::Transport;

/// Keeps the network's draws apart from the clients'.
const SALT: u64 = 0x6e65_7477_6f72_6b21;

/// How many unread frames a client keeps.
const UNREAD: u32 = 3;

/// Where its connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// Waiting for its time to dial, or dialling.
    Away,
    /// Past the TCP connect.
    Connected { at: Elapsed },
    /// Open.
    Open { since: Elapsed },
    /// Stopped for good.
    Gone,
}

/// An event as a client sees it: its place in the history's table, its id, and herd's number (from 1) where it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) event: EventIx,
    pub(super) id: u64,
    pub(super) number: usize,
}

#[derive(Debug)]
pub(super) struct Peer<'a> {
    id: ClientId,
    machine: Machine,
    policy: &'a Backoff,
    recorder: Recorder,
    ids: IdKind,
    /// What a message takes one way. It is constant, so a link never reorders.
    pub(super) latency: Duration,
    pub(super) link: Link,
    pub(super) dial: Dial,
    /// Tells the steps of this dial from those of an earlier one.
    pub(super) dials: u32,
    /// The cursor's id.
    cursor: u64,
    /// Numbers that it received or that a reset covers.
    have: Numbers,
    /// Caught up with this number; none = is caught up.
    need: Option<usize>,
    pub(super) dropped: Option<Elapsed>,
    /// The last thing that it received.
    pub(super) heard: Elapsed,
    unread: u32,
}

impl<'a> Peer<'a> {
    pub(super) fn new(setup: &'a Setup, id: ClientId) -> Self {
        let random = Address {
            seed: setup.seed ^ SALT,
            client: id.0,
            drop: 0,
            attempt: 0,
        }
        .random();
        Self {
            id,
            machine: Machine::new(id, setup.seed),
            policy: setup.mix.of(id.0),
            recorder: Recorder::default(),
            ids: setup.terms.ids,
            latency: setup.latency.at(random),
            link: Link::Away,
            dial: Dial {
                due: Elapsed::ZERO,
                attempt: 0,
                cursor: None,
            },
            dials: 0,
            cursor: 0,
            have: Numbers::default(),
            need: None,
            dropped: None,
            heard: Elapsed::ZERO,
            unread: 0,
        }
    }

    /// The id that it would resume from.
    pub(super) fn cursor(&self) -> Option<u64> {
        self.dial.cursor.map(|_| self.cursor)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.link, Link::Open { .. })
    }

    /// Whether it is connected and has all that it missed.
    pub(super) fn is_caught_up(&self) -> bool {
        self.is_open() && self.need.is_none()
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.have.holds(number)
    }

    /// Begins; the dial to make.
    pub(super) fn start(&mut self, due: Elapsed) -> Option<Dial> {
        let action = self
            .machine
            .on(Elapsed::ZERO, Input::Start { due }, self.policy);
        self.follow(Elapsed::ZERO, action)
    }

    /// The dial ended otherwise than open; the next one.
    pub(super) fn failed(&mut self, at: Elapsed, outcome: AttemptOutcome) -> Option<Dial> {
        let ending = ending::of_dial(&outcome);
        self.attempt(at, outcome);
        let action = self.machine.on(at, Input::Failed { ending }, self.policy);
        self.follow(at, action)
    }

    /// The dial ended open. It is caught up once it has number `need`.
    pub(super) fn opened(&mut self, at: Elapsed, need: Option<usize>) {
        self.attempt(at, AttemptOutcome::Opened);
        self.machine.on(at, Input::Opened, self.policy);
        self.machine.on(at, Input::Acknowledged, self.policy);
        self.link = Link::Open { since: at };
        self.need = need.filter(|&n| !self.have.holds(n));
        self.dropped = None;
    }

    /// The connection ended; the next dial.
    pub(super) fn closed(&mut self, at: Elapsed, cause: Cause) -> Option<Dial> {
        let ending = ending::of_session(&cause, Transport::Ws);
        self.recorder.closed(at, cause);
        self.dropped = Some(at);
        let action = self.machine.on(at, Input::Closed { ending }, self.policy);
        self.follow(at, action)
    }

    /// An event arrived; whether it is the first with its number.
    pub(super) fn receipt(&mut self, at: Elapsed, seen: Seen) -> bool {
        self.recorder.receipt(at, seen.event);
        let supersedes = self.ids == IdKind::Opaque || seen.id > self.cursor;
        if supersedes {
            self.cursor = seen.id;
        }
        let input = Input::Event {
            event: seen.event,
            supersedes,
        };
        self.machine.on(at, input, self.policy);
        self.heard = at;
        if self.need == Some(seen.number) {
            self.need = None;
        }
        self.have.add(seen.number)
    }

    /// The server said that it must reload; these numbers are covered.
    pub(super) fn reset(
        &mut self,
        at: Elapsed,
        event: EventIx,
        id: u64,
        covered: impl Iterator<Item = usize>,
    ) {
        self.recorder.reset(at, event);
        self.machine.on(at, Input::Reset { event }, self.policy);
        self.cursor = id;
        self.heard = at;
        self.need = None;
        for number in covered {
            self.have.add(number);
        }
    }

    /// The server said that it has caught up; that is noted and never believed.
    pub(super) fn marker(&mut self, at: Elapsed) {
        self.recorder.marker(at);
        self.heard = at;
    }

    /// A frame could not be read.
    pub(super) fn unread(&mut self, at: Elapsed, text: String) {
        self.heard = at;
        self.unread += 1;
        if self.unread <= UNREAD {
            self.recorder.unread(at, text.into());
        }
    }

    /// herd ends the run.
    pub(super) fn end(mut self, at: Elapsed, clients: &mut Vec<Client>) {
        match self.link {
            Link::Open { .. } => self.recorder.closed(at, Cause::Herd),
            Link::Away | Link::Connected { .. } if self.dial.due < at => {
                self.attempt(at, AttemptOutcome::Aborted);
            }
            _ => {}
        }
        let mut client = Client::new(self.id);
        let growth = self.recorder.take();
        for event in growth.events {
            client.push(event);
        }
        client.stream.extend(&growth.stream);
        clients.push(client);
    }

    fn attempt(&mut self, ended: Elapsed, outcome: AttemptOutcome) {
        let connected = match self.link {
            Link::Connected { at } => Some(at),
            _ => None,
        };
        self.recorder.attempt(Attempt {
            attempt: self.dial.attempt,
            due: self.dial.due,
            dialled: self.dial.due,
            connected,
            ended,
            outcome,
            resumed_from: self.dial.cursor,
            target: 0,
        });
    }

    fn follow(&mut self, at: Elapsed, action: Action) -> Option<Dial> {
        match action {
            Action::Dial(dial) => {
                self.link = Link::Away;
                self.dial = dial;
                self.dials += 1;
                Some(dial)
            }
            Action::Quit(why) => {
                self.quit(at, why);
                None
            }
            Action::Nothing => None,
        }
    }

    fn quit(&mut self, at: Elapsed, why: Quit) {
        self.link = Link::Gone;
        self.recorder.quit(at, why);
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn holds(&self, number: usize) -> bool {
        self.0
            .get(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Whether it is new.
    fn add(&mut self, number: usize) -> bool {
        if number / 64 >= self.0.len() {
            self.0.resize(number / 64 + 1, 0);
        }
        let (word, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
