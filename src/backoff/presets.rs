//! The named policies, as data: what a user can write after `--backoff`.
//!
//! This file knows what a preset is and holds herd's own; `presets/websocket.rs`, `presets/stream.rs` and
//! `presets/other.rs` hold those of real libraries, read from the shipped source of the version that each names. How a
//! delay is drawn from the numbers is `backoff.rs`.

mod other;
mod stream;
mod websocket;

use std::time::Duration;

use super::rules::RetryAfter;
use super::{Backoff, Growth, Hints, IMMEDIATE_FLOOR, Jitter, Mix, Window};

/// A policy that a user can name.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// What users type.
    pub name: &'static str,
    /// What they may type as well: names of packages.
    pub aliases: &'static [&'static str],
    /// Whose behaviour it is.
    pub library: &'static str,
    /// The version that was read.
    pub version: &'static str,
    /// Where in its source, or in which text, it stands.
    pub source: &'static str,
    /// How the library asks for what it missed.
    pub resume: &'static str,
    /// What it does besides once it is back, where that loads the server; empty = nothing.
    pub follow_up: &'static str,
    /// The policy.
    pub policy: fn() -> Backoff,
}

impl Preset {
    /// A herd that has this policy.
    #[must_use]
    pub fn mix(&self) -> Mix {
        Mix::one(self.name, (self.policy)())
    }
}

/// The preset that holds where nobody named one.
pub const DEFAULT: &str = "full-jitter";

/// All of them, herd's own first.
pub fn all() -> impl Iterator<Item = &'static Preset> + Clone {
    OWN.iter()
        .chain(websocket::PRESETS)
        .chain(stream::PRESETS)
        .chain(other::PRESETS)
}

/// The preset of this name or alias, in any case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    all().find(|preset| {
        let mut names = std::iter::once(&preset.name).chain(preset.aliases);
        names.any(|known| known.eq_ignore_ascii_case(name))
    })
}

const OWN: &[Preset] = &[
    Preset {
        name: DEFAULT,
        policy: full_jitter,
        ..own("the advice of RFC 6455, 7.2.3, and of the AWS Architecture Blog, 2015")
    },
    Preset {
        name: "exponential-25",
        policy: || {
            let then = Growth::new(secs(1), 2.0, secs(30), Jitter::Ratio(0.25));
            let mut policy = Backoff::new(Vec::new(), then);
            policy.limits.attempts = Some(12);
            policy
        },
        ..own("a policy often seen, and too narrow")
    },
    Preset {
        name: "exponential",
        policy: || growing(secs(1), 2.0, secs(30), Jitter::None),
        ..own("plain doubling, to be changed by the keys of a scenario")
    },
    Preset {
        name: "fixed",
        policy: || fixed(secs(1)),
        ..own("always the same, to be changed by the keys of a scenario")
    },
    Preset {
        name: "immediate",
        policy: || steps(&[0], IMMEDIATE_FLOOR),
        ..own("what not to do")
    },
    Preset {
        name: "retry-after",
        policy: || Backoff {
            hints: Hints {
                retry: Some(Duration::ZERO),
                retry_after: RetryAfter::Added,
            },
            ..full_jitter()
        },
        ..own("full-jitter that obeys Retry-After (RFC 9110, 10.2.3) and retry:")
    },
];

const fn own(source: &'static str) -> Preset {
    Preset {
        name: "",
        aliases: &[],
        library: "herd",
        version: env!("CARGO_PKG_VERSION"),
        source,
        resume: "as the profile says",
        follow_up: "",
        policy: full_jitter,
    }
}

/// herd's default.
fn full_jitter() -> Backoff {
    growing(secs(5), 2.0, secs(60), Jitter::Full)
}

/// `min(cap, base x factor^n)` with a jitter.
fn growing(base: Duration, factor: f64, cap: Duration, jitter: Jitter) -> Backoff {
    Backoff::new(Vec::new(), Growth::new(base, factor, cap, jitter))
}

/// Always the same.
fn fixed(delay: Duration) -> Backoff {
    Backoff::new(Vec::new(), Growth::fixed(delay))
}

/// A list of delays in ms, then always the same.
fn steps(first: &[u64], then: Duration) -> Backoff {
    let steps = first.iter().map(|ms| Window::exactly(millis(*ms)));
    Backoff::new(steps.collect(), Growth::fixed(then))
}

/// Uniform between two numbers of ms.
const fn between(least: u64, most: u64) -> Window {
    Window {
        least: millis(least),
        most: millis(most),
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[cfg(test)]
mod tests;
