//! A client that notices a lost connection only when it polls: Action Cable's connection monitor.
//!
//! The poll runs freely from the first connect, so that a drop meets it anywhere within an interval. Source:
//! `actioncable/app/javascript/action_cable/connection_monitor.js` of Rails.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Ask, Growth, LONGEST, Window};

/// A free-running poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// Between two polls while all is well.
    pub every: Window,
    /// How old the last message must be for the connection to be stale, and how long after its end it is opened again at the
    /// earliest.
    pub stale: Duration,
    /// The interval of the server's own beats, which all connections get at once: as old as this the last message may be
    /// at a drop.
    pub beat: Duration,
}

impl Poll {
    /// The delay before retry `ask.attempt`: the first is due at the first poll that finds the connection stale and over for
    /// long enough, later ones at the polls that follow it.
    pub(super) fn delay(&self, then: &Growth, ask: &Ask) -> Duration {
        let first = super::Address {
            attempt: 0,
            ..ask.address
        };
        let mut draws = first.generator();
        let age = self.beat.mul_f64(first.shared());
        // The interval that a drop falls into is met in proportion to its length, and anywhere within it.
        let (least, most) = (
            self.every.least.as_secs_f64(),
            self.every.most.as_secs_f64(),
        );
        let met = (least * least + (most * most - least * least) * draws.unit()).sqrt();
        let mut at = Duration::from_secs_f64(met * draws.unit());
        let mut stale = 0;
        while at < self.stale {
            // Stale, but over for too short a time: counted, and not opened yet.
            if at + age > self.stale {
                stale += 1;
            }
            at += match stale {
                0 => self.every.at(draws.unit()),
                n => then.delay(
                    n,
                    &Ask {
                        address: super::Address {
                            attempt: EARLY,
                            ..ask.address
                        },
                        ..*ask
                    },
                ),
            };
        }
        match ask.attempt {
            0 => Duration::from_micros(at.as_micros() as u64),
            n => then.delay(n + stale, ask),
        }
    }

    pub(super) fn bounds(&self, then: &Growth, attempt: u32) -> Window {
        match attempt {
            0 => Window {
                least: self.stale,
                most: self.stale + self.every.most.max(then.bounds(1).most),
            },
            n => Window {
                least: then.bounds(n).least,
                most: then.bounds(n + 1).most,
            },
        }
    }

    /// Whether time passes between its polls, and the server's beats come before a connection is stale.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.every.is_sound()
            && self.every.least >= Duration::from_millis(100)
            && self.stale <= LONGEST
            && self.beat <= self.stale
    }
}

/// The place of the draw for a poll that comes too early; no retry has this number.
const EARLY: u32 = u32::MAX - 1;
