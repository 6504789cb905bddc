//! The model server: down, or accepting from its backlog at its own pace, serving one handshake after the other.
//!
//! As Linux does it: while the server is down the kernel refuses; while the backlog has room the kernel completes the TCP
//! connect, whatever the server is doing; a SYN that finds it full is dropped without a word. A client that gave up waiting
//! is not taken out of the line: the server accepts it and reads its request before it learns that nobody is there.

use std::collections::VecDeque;
use std::time::Duration;

use super::Limits;
use crate::history::Elapsed;

/// The model server.
#[derive(Debug)]
pub(super) struct Server {
    limits: Limits,
    /// Since when, or from when on, it is up.
    up: Elapsed,
    /// When each connection in the backlog is accepted, in nanoseconds.
    accepted: VecDeque<u64>,
    /// When each connection that waits is served, in nanoseconds.
    served: VecDeque<u64>,
    /// When it may accept the next one, and when it has served all that it accepted.
    next: u64,
    free: u64,
}

/// What a SYN meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A closed port.
    Refused,
    /// A full backlog.
    Dropped,
    /// It is connected, and served at an instant.
    Connected {
        /// When.
        served: Elapsed,
    },
    /// It is connected, and one too many.
    Collapse,
}

/// When a Linux client sends a dropped SYN again: this long after the first one.
pub(super) const SYN_AGAIN: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(7),
    Duration::from_secs(15),
    Duration::from_secs(31),
    Duration::from_secs(63),
];

impl Server {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            up: Elapsed::ZERO,
            accepted: VecDeque::new(),
            served: VecDeque::new(),
            next: 0,
            free: 0,
        }
    }

    /// It is gone with all its connections, and back at an instant.
    pub(super) fn down(&mut self, back: Elapsed) {
        self.up = back;
        self.accepted.clear();
        self.served.clear();
        (self.next, self.free) = (0, 0);
    }

    /// A SYN arrives, of a dial that makes so many requests.
    pub(super) fn arrive(&mut self, now: Elapsed, requests: u32) -> Arrival {
        if now < self.up {
            return Arrival::Refused;
        }
        let at = now.micros().saturating_mul(1_000);
        let past = |line: &mut VecDeque<u64>| {
            while line.front().is_some_and(|due| *due <= at) {
                line.pop_front();
            }
        };
        past(&mut self.accepted);
        past(&mut self.served);
        if self.accepted.len() >= self.limits.backlog as usize {
            return Arrival::Dropped;
        }
        let pace = self
            .limits
            .accept_rate
            .map_or(0, |rate| (1e9 / rate) as u64);
        let accepted = self.next.max(at);
        self.next = accepted.saturating_add(pace);
        let cost = self.limits.handshake.as_nanos() as u64 * u64::from(requests);
        let served = self.free.max(accepted).saturating_add(cost);
        self.free = served;
        if accepted > at {
            self.accepted.push_back(accepted);
        }
        if served > at {
            self.served.push_back(served);
        }
        if (self.limits.collapse).is_some_and(|most| self.served.len() > most as usize) {
            return Arrival::Collapse;
        }
        Arrival::Connected {
            served: Elapsed(served.div_ceil(1_000)),
        }
    }
}
