//! The named policies, as data: what a user can write after `--backoff`.
//!
//! This file knows numbers and where they come from; how a delay is drawn from them is `backoff.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Backoff, Delay, Reset};

/// A policy that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// herd's default.
    FullJitter,
    /// Doubling with 25 % jitter and an attempt limit.
    #[serde(rename = "exponential-25")]
    Exponential25,
    /// Doubling, no jitter unless told.
    Exponential,
    /// The same delay always.
    Fixed,
    /// No delay at all.
    Immediate,
}

impl Preset {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 5] = [
        Self::FullJitter,
        Self::Exponential25,
        Self::Exponential,
        Self::Fixed,
        Self::Immediate,
    ];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FullJitter => "full-jitter",
            Self::Exponential25 => "exponential-25",
            Self::Exponential => "exponential",
            Self::Fixed => "fixed",
            Self::Immediate => "immediate",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::FullJitter => {
                "before retry n wait uniform(0, min(60 s, 5 s x 2^n)); n returns to 0 on open"
            }
            Self::Exponential25 => {
                "min(30 s, 1 s x 2^n) x (1 +- 25 % uniform), at most 12 tries, then give up"
            }
            Self::Exponential => {
                "min(30 s, 1 s x 2^n), no jitter; base, factor, cap, jitter and max-attempts can be set"
            }
            Self::Fixed => "1 s, no jitter; delay, jitter and max-attempts can be set",
            Self::Immediate => "at once, then every 10 ms",
        }
    }

    /// The policy with its own numbers.
    #[must_use]
    pub fn backoff(self) -> Backoff {
        let secs = Duration::from_secs;
        let (delay, max_attempts) = match self {
            Self::FullJitter => (
                Delay::FullJitter {
                    base: secs(5),
                    factor: 2.0,
                    cap: secs(60),
                },
                None,
            ),
            Self::Exponential25 => (
                Delay::Exponential {
                    base: secs(1),
                    factor: 2.0,
                    cap: secs(30),
                    jitter: 0.25,
                },
                Some(12),
            ),
            Self::Exponential => (
                Delay::Exponential {
                    base: secs(1),
                    factor: 2.0,
                    cap: secs(30),
                    jitter: 0.0,
                },
                None,
            ),
            Self::Fixed => (
                Delay::Fixed {
                    delay: secs(1),
                    jitter: 0.0,
                },
                None,
            ),
            Self::Immediate => (Delay::Immediate, None),
        };
        Backoff {
            delay,
            max_attempts,
            reset: Reset::OnOpen,
        }
    }
}
