//! The model server: a log, a window of it that is kept, replay and live, and on demand one planted bug.
//!
//! It sees client numbers, ids and publications and says what it sends (`model/sending.rs`); time is told to it and it
//! schedules nothing. It shares no code with the reference server, whose misbehaviour it models by the names in `server/defect.rs`.

mod sending;

use std::collections::HashMap;
use std::time::Duration;

use super::{Fault, Ledger, Setup};
use crate::backoff::Address;
use crate::history::{ClientId, Elapsed, Seq};
use crate::server::defect::Defect;

/// `unknown-is-now`: with each restart ids begin at the next multiple of this.
const EPOCH: u64 = 1 << 30;

/// Keeps the server's draws apart from the clients'.
const SALT: u64 = 0x6d6f_6465_6c73_7276;

/// An event in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) seq: Seq,
}

/// One frame; events by their place in the log of all times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Event(usize),
    /// The event's id with another content.
    Conflict(usize),
    /// The event, cut short.
    Cut(usize),
    /// The event, marked as sent again.
    Again(usize),
    /// Reload what is not newer than this id.
    Reset(u64),
    /// The replay is over, says the server.
    CaughtUp,
}

/// What the server answers to the request for a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Welcome {
    Open,
    OpenAndClose,
    Unavailable,
}

/// What one connection gets of the live events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    /// There is no connection.
    None,
    All,
    /// Only ids above this one.
    Above(u64),
    /// Nothing of the next so many.
    Gap(u32),
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct Subscriber {
    feed: Feed,
    /// Held back to be sent after its successor.
    held: Option<usize>,
    /// Told that it has caught up only after a live event.
    waits: bool,
}

const NOBODY: Subscriber = Subscriber {
    feed: Feed::None,
    held: None,
    waits: false,
};

#[derive(Debug)]
pub(super) struct Model {
    seed: u64,
    keep: usize,
    fault: Option<Fault>,
    up: bool,
    /// Counts deaths: what was in flight in an earlier life is lost.
    life: u32,
    /// When this life began.
    since: Elapsed,
    log: Vec<Stored>,
    /// Where in the log the kept window begins.
    start: usize,
    /// The last id that is no longer kept.
    evicted: u64,
    /// The last id of the history that `forget-log` forgot, or whose ids `unknown-is-now` lost.
    forgotten: u64,
    next_id: u64,
    /// What each publication was answered: a repeated one is not stored again, across restarts too.
    answers: HashMap<Seq, u64>,
    subscribers: Vec<Subscriber>,
    /// When the accept loop is free again.
    accepting: Elapsed,
    /// The first publication that counts; faults begin there.
    armed: Option<Seq>,
    ledger: Ledger,
}

impl Model {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            seed: setup.seed ^ SALT,
            keep: setup.keep,
            fault: setup.fault,
            up: true,
            life: 0,
            since: Elapsed::ZERO,
            log: Vec::new(),
            start: 0,
            evicted: 0,
            forgotten: 0,
            next_id: 1,
            answers: HashMap::new(),
            subscribers: vec![NOBODY; setup.clients as usize],
            accepting: Elapsed::ZERO,
            armed: None,
            ledger: Ledger::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    pub(super) fn life(&self) -> u32 {
        self.life
    }

    pub(super) fn stored(&self, at: usize) -> Stored {
        self.log[at]
    }

    /// How many events were ever stored.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    pub(super) fn into_ledger(self) -> Ledger {
        self.ledger
    }

    /// From this publication on faults may happen.
    pub(super) fn arm(&mut self, first: Seq) {
        self.armed.get_or_insert(first);
    }

    /// SIGKILL: every connection is gone, everything stored is on disk.
    pub(super) fn kill(&mut self) {
        self.up = false;
        self.life += 1;
        self.subscribers.fill(NOBODY);
    }

    /// The new process listens.
    pub(super) fn boot(&mut self, now: Elapsed) {
        self.up = true;
        self.since = now;
        self.accepting = now;
        match self.acting() {
            Some(Defect::ForgetLog) => {
                self.start = self.log.len();
                self.forgotten = self.next_id - 1;
            }
            Some(Defect::IdsRestart) => {
                self.start = self.log.len();
                self.next_id = 1;
            }
            Some(Defect::UnknownIsNow) => {
                self.start = self.log.len();
                self.forgotten = self.next_id - 1;
                self.next_id = (self.next_id / EPOCH + 1) * EPOCH;
            }
            _ => {}
        }
    }

    /// `die-again`: for how long the server dies now that so many are back. Once a run.
    pub(super) fn dies(&mut self, back: usize) -> Option<Duration> {
        let fault = self.fault.filter(|f| f.defect == Defect::DieAgain)?;
        let enough = back as f64 >= fault.share * self.subscribers.len() as f64;
        if !(self.up && self.life == 1 && enough) {
            return None;
        }
        self.ledger.died += 1;
        Some(fault.lasting)
    }

    /// `half-open`: whether this client's socket outlives the server.
    pub(super) fn leaves_open(&mut self, client: usize) -> bool {
        let stays = self.acting() == Some(Defect::HalfOpen) && self.bites(client, 0);
        self.ledger.half_open += u64::from(stays);
        stays
    }

    /// When a connection that came now is taken from the accept queue.
    pub(super) fn accept(&mut self, now: Elapsed) -> Elapsed {
        if self.acting() != Some(Defect::SlowAccept) || self.life == 0 {
            return now;
        }
        let lasting = self.fault.map_or(Duration::ZERO, |f| f.lasting);
        self.ledger.queued += u64::from(self.accepting > now);
        self.accepting = self.accepting.max(now) + lasting;
        self.accepting
    }

    pub(super) fn welcome(&mut self, now: Elapsed, client: usize) -> Welcome {
        let Some(fault) = self.fault.filter(|_| self.life > 0) else {
            return Welcome::Open;
        };
        match fault.defect {
            Defect::RefuseSome if self.bites(client, 0) => {
                self.ledger.refused.insert(name(client));
                Welcome::Unavailable
            }
            Defect::AcceptThenClose if now.since(self.since) < fault.lasting => {
                self.ledger.flapped += 1;
                Welcome::OpenAndClose
            }
            _ => Welcome::Open,
        }
    }

    /// Stores a publication and answers its id; the place in the log where it is to be sent to subscribers.
    pub(super) fn publish(&mut self, seq: Seq) -> (u64, Option<usize>) {
        if let Some(&id) = self.answers.get(&seq) {
            return (id, None);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.answers.insert(seq, id);
        let number = (seq.0 & 0xf_ffff) as usize;
        if self.acting() == Some(Defect::AckThenLose) && self.bites(0, number) {
            self.ledger.acked_not_stored += 1;
            for client in 0..self.subscribers.len() {
                self.ledger.withheld.insert((name(client), seq));
            }
            return (id, None);
        }
        self.log.push(Stored { id, seq });
        if self.log.len() - self.start > self.keep {
            self.evicted = self.log[self.start].id;
            self.start += 1;
        }
        (id, Some(self.log.len() - 1))
    }

    /// The defect, once it may act.
    fn acting(&self) -> Option<Defect> {
        self.armed.and(self.fault).map(|fault| fault.defect)
    }

    fn counts(&self, at: usize) -> bool {
        self.armed.is_some_and(|first| self.log[at].seq >= first)
    }

    fn draw(&self, client: usize, what: usize) -> f64 {
        Address {
            seed: self.seed,
            client: client as u32 + 1,
            drop: what as u32,
            attempt: 0,
        }
        .random()
    }

    fn bites(&self, client: usize, what: usize) -> bool {
        self.fault
            .is_some_and(|fault| self.draw(client, what) < fault.share)
    }
}

/// Clients are numbered from 1.
fn name(client: usize) -> ClientId {
    ClientId(client as u32 + 1)
}

#[cfg(test)]
mod tests;
