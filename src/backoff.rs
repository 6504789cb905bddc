//! When to dial again: a pure function of the retry, the policy and addressed random numbers.
//!
//! No clock, no sockets, nothing of herd's other parts. Randomness is addressed, not streamed: the number for a given
//! (seed, client, drop, attempt) is the same in every process, shard and simulation. This file holds what a policy is and
//! which delay it draws. `backoff/growth.rs` and `backoff/poll.rs` are the forms of a delay, `backoff/rules.rs` what a
//! client makes of how a connection ended, `backoff/retries.rs` one client's count, `backoff/presets.rs` the policies of
//! real libraries as data, `backoff/mix.rs` several of them in one herd, `backoff/forecast.rs` what a whole herd will do,
//! `backoff/patience.rs` how long to wait for one.

pub mod describe;
pub mod forecast;
pub mod growth;
pub mod mix;
pub mod patience;
pub mod poll;
pub mod presets;
pub mod retries;
pub mod rules;
mod text;

use std::time::Duration;

use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

pub use growth::{Grows, Growth, Jitter};
pub use mix::{Mix, Part};
pub use poll::Poll;
pub use presets::Preset;
pub use retries::{Next, Passed, Retries};
pub use rules::{Ending, Hints, Rule, Says, Then, When};

/// A reconnect policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// How the first retries wait.
    pub first: First,
    /// How those behind them wait.
    pub then: Growth,
    /// From when a delay counts.
    pub counted: Counted,
    /// When a client gives up.
    pub limits: Limits,
    /// What sets the count of retries back to 0.
    pub reset: Reset,
    /// The client's own limit of one connect and of one handshake; none = it has none, and the run's holds.
    pub connect: Option<ConnectTimeout>,
    /// What follows from how a dial or a connection ended, the first that fits. Without a rule a client dials again.
    pub rules: Vec<Rule>,
    /// What it obeys of what a server says about when to come back.
    pub hints: Hints,
    /// What a client falls back to for good when its first retry fails.
    pub fallback: Option<Fallback>,
    /// HTTP requests that one attempt makes, at least 1.
    pub requests: u32,
}

/// How the first retries wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// So long, one after the other, each uniform in its window; what follows counts from behind them.
    Steps(Vec<Window>),
    /// Until a poll that runs freely notices that the connection is stale.
    Poll(Poll),
}

/// From when a delay counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// From the end of what failed.
    FromEnd,
    /// From the start of the attempt that failed.
    FromStart,
}

/// When a client gives up or slows down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many attempts in a row may fail; none = any number.
    pub attempts: Option<u32>,
    /// How long after it lost its connection it dials at the latest; none = there is no such time.
    pub elapsed: Option<Duration>,
    /// How long after it lost its connection it waits so long between any two attempts.
    pub slow: Option<Slow>,
}

/// A client that has been away for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// How long.
    pub after: Duration,
    /// What it waits from then on.
    pub delay: Duration,
}

/// What sets the count of retries back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// An open connection.
    OnOpen,
    /// The application's own acknowledgement on it: the opening that the profile describes is over.
    OnAck,
    /// A connection that stayed open this long.
    AfterUptime(Duration),
    /// A connection on which the last event was this old when it ended. On a busy stream that never happens.
    AfterQuiet(Duration),
}

/// A limit of a connect, which may grow from attempt to attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConnectTimeout {
    /// At retry 0.
    pub base: Duration,
    /// What each failure multiplies it by, at least 1.
    pub factor: f64,
    /// The largest.
    pub cap: Duration,
}

impl ConnectTimeout {
    /// One that doesn't grow.
    #[must_use]
    pub const fn fixed(limit: Duration) -> Self {
        Self {
            base: limit,
            factor: 1.0,
            cap: limit,
        }
    }

    /// The limit at retry `attempt` (from 0).
    #[must_use]
    pub fn at(&self, attempt: u32) -> Duration {
        growth::exponential(self.base, self.factor, Some(self.cap), attempt)
    }
}

/// A second transport, tried at once and kept for good when the first retry fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// How long the first retry may take before it counts as failed.
    pub within: Duration,
    /// HTTP requests that one attempt makes from then on, at least 1.
    pub requests: u32,
}

/// What an immediate client waits between two failed attempts. Without a floor a refused connect on loopback comes back
/// in microseconds and herd would measure its own CPU; a client over a real network is slower than this anyway.
pub const IMMEDIATE_FLOOR: Duration = Duration::from_millis(10);

/// The longest delay of a sound policy: a year.
pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The most first delays of a sound policy.
pub const MOST_STEPS: usize = 1_000;

/// The bounds of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The shortest delay.
    pub least: Duration,
    /// The longest delay.
    pub most: Duration,
}

/// Which delay is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    /// Which retry since the count was set back, from 0.
    pub attempt: u32,
    /// The delay before the attempt that has just failed, where there was one.
    pub previous: Option<Duration>,
    /// What a server's `retry:` made of the base; none = the policy's own.
    pub base: Option<Duration>,
    /// Where its random numbers stand.
    pub address: Address,
}

impl Backoff {
    /// A policy without further ado: it never gives up, counts from the end, resets on open, has no rules and obeys nobody.
    #[must_use]
    pub fn new(first: Vec<Window>, then: Growth) -> Self {
        Self {
            first: First::Steps(first),
            then,
            counted: Counted::FromEnd,
            limits: Limits::default(),
            reset: Reset::OnOpen,
            connect: None,
            rules: Vec::new(),
            hints: Hints::default(),
            fallback: None,
            requests: 1,
        }
    }

    /// The delay before a retry.
    #[must_use]
    pub fn delay(&self, ask: &Ask) -> Duration {
        let then = self.growth(ask.base);
        match &self.first {
            First::Steps(steps) => match steps.get(ask.attempt as usize) {
                Some(step) => step.at(ask.address.random()),
                None => then.delay(ask.attempt - steps.len() as u32, ask),
            },
            First::Poll(poll) => poll.delay(&then, ask),
        }
    }

    fn growth(&self, base: Option<Duration>) -> std::borrow::Cow<'_, Growth> {
        match base {
            None => std::borrow::Cow::Borrowed(&self.then),
            Some(base) => std::borrow::Cow::Owned(self.then.rebased(base)),
        }
    }

    /// Within what bounds the delay before retry `attempt` (from 0) lies, whatever was drawn before.
    #[must_use]
    pub fn bounds(&self, attempt: u32) -> Window {
        match &self.first {
            First::Steps(steps) => match steps.get(attempt as usize) {
                Some(step) => *step,
                None => self.then.bounds(attempt - steps.len() as u32),
            },
            First::Poll(poll) => poll.bounds(&self.then, attempt),
        }
    }

    /// Whether each delay is uniform within its bounds and independent of all that was before, and whether nothing but the
    /// number of attempts ends the retries.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        matches!(self.first, First::Steps(_))
            && self.then.is_uniform()
            && self.limits.elapsed.is_none()
            && self.limits.slow.is_none()
            && self.fallback.is_none()
            && rules::ruling(&self.rules, Ending::Unconnected).is_none()
    }

    /// The limit that the client sets a connect at retry `attempt`, where it sets one.
    #[must_use]
    pub fn connect_timeout(&self, attempt: u32) -> Option<Duration> {
        self.connect.map(|timeout| timeout.at(attempt))
    }

    /// Whether it is a policy at all: no factor under 1, no jitter of more than everything, delays up to [`LONGEST`], and
    /// time that passes between the retries. A policy read from a file may be anything, and the other functions here hold
    /// only for one that is sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let first = match &self.first {
            First::Steps(steps) => {
                steps.len() <= MOST_STEPS && steps.iter().all(|step| step.is_sound())
            }
            First::Poll(poll) => poll.is_sound(),
        };
        let connect = self.connect.is_none_or(|timeout| {
            timeout.factor.is_finite() && timeout.factor >= 1.0 && !timeout.base.is_zero()
        });
        let slow = self
            .limits
            .slow
            .is_none_or(|slow| (Duration::from_millis(1)..=LONGEST).contains(&slow.delay));
        first && self.then.is_sound() && connect && slow && self.requests > 0
    }
}

impl Window {
    /// A window of one delay.
    #[must_use]
    pub const fn exactly(delay: Duration) -> Self {
        Self {
            least: delay,
            most: delay,
        }
    }

    /// The delay at a fraction of the window, to the microsecond.
    #[must_use]
    pub fn at(self, fraction: f64) -> Duration {
        let (least, most) = (
            self.least.as_micros() as u64 as f64,
            self.most.as_micros() as u64 as f64,
        );
        Duration::from_micros((least + (most - least) * fraction) as u64)
    }

    pub(super) fn is_sound(&self) -> bool {
        self.least <= self.most && self.most <= LONGEST
    }
}

/// Where random numbers stand: the same address gives the same numbers everywhere and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The run's seed.
    pub seed: u64,
    /// The client, from 1.
    pub client: u32,
    /// Which loss of connection, from 1; 0 = the first connect.
    pub drop: u32,
    /// Which retry since the count was reset, from 0.
    pub attempt: u32,
}

impl Address {
    /// The number at this address, in `[0, 1)` with 53 bits.
    #[must_use]
    pub fn random(self) -> f64 {
        self.generator().unit()
    }

    /// All numbers at this address, one after the other; the first is [`Address::random`].
    #[must_use]
    pub fn generator(self) -> Draws {
        let key = [
            u64::from(self.client),
            u64::from(self.drop) << 32 | u64::from(self.attempt),
        ]
        .into_iter()
        .fold(self.seed, |state, word| mix_in(state ^ mix_in(word)));
        Draws(rand_pcg::Pcg64Mcg::seed_from_u64(key))
    }

    /// The client's number that is drawn once for all of its drops.
    #[must_use]
    pub fn once(self) -> f64 {
        Self {
            drop: 0,
            attempt: u32::MAX,
            ..self
        }
        .random()
    }

    /// The number that all clients share at a drop.
    #[must_use]
    pub fn shared(self) -> f64 {
        Self {
            client: 0,
            attempt: 0,
            ..self
        }
        .random()
    }
}

/// The random numbers at one address.
#[derive(Debug, Clone)]
pub struct Draws(rand_pcg::Pcg64Mcg);

impl Draws {
    /// The next, in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) with its
/// increment, so that neighbouring addresses give unrelated seeds.
fn mix_in(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
