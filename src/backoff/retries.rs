//! One client's count of retries: what it must remember between two of them.
//!
//! The machine of a real run and the forecast share it, so that both draw the same delays. It knows no instants, only how
//! long something took.

use std::time::Duration;

use super::{Address, Ask, Backoff, Counted, Ending, IMMEDIATE_FLOOR, Then, Window, rules};

/// A client's retries.
#[derive(Debug, Clone)]
pub struct Retries {
    seed: u64,
    client: u32,
    /// How many connections were lost.
    drops: u32,
    /// Retries made since the count was set back.
    made: u32,
    /// How many of those the delays don't count, since a fallback begins them anew.
    skipped: u32,
    fell_back: bool,
    /// The delay drawn last, in us. One such is kept for each of very many clients: hence no `Option<Duration>` here.
    previous: u64,
    /// The base that a server's `retry:` asked for, in ms; 0 = none.
    base: u32,
    /// The server's last `Retry-After`, in ms; 0 = none.
    not_before: u32,
}

/// How much time has passed when the next retry is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Since the client lost its connection; zero before its first.
    pub away: Duration,
    /// Since the attempt that failed, or the connection that ended, was begun.
    pub since_dial: Duration,
}

/// What a client does after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Dials after so long.
    Wait {
        /// How long, from now.
        delay: Duration,
        /// The number of this retry since the count was set back, from 0.
        attempt: u32,
    },
    /// Has made all of its attempts.
    GiveUp,
    /// Never comes back after such an end.
    Fatal,
}

impl Retries {
    /// Of a client that has done nothing yet.
    #[must_use]
    pub fn new(seed: u64, client: u32) -> Self {
        Self {
            seed,
            client,
            drops: 0,
            made: 0,
            skipped: 0,
            fell_back: false,
            previous: 0,
            base: 0,
            not_before: 0,
        }
    }

    /// An open connection was lost.
    pub fn dropped(&mut self) {
        self.drops += 1;
    }

    /// The client was closed and opened again: it has forgotten its count and what the server asked for. Its delays are
    /// drawn afresh, not the ones that it drew when it first began.
    pub fn begin_anew(&mut self) {
        *self = Self {
            drops: self.drops + 1,
            ..Self::new(self.seed, self.client)
        };
    }

    /// The count begins anew.
    pub fn reset(&mut self) {
        (self.made, self.skipped, self.previous) = (0, 0, 0);
    }

    /// The server named a time until reconnects (`retry:`), for good.
    pub fn retry(&mut self, policy: &Backoff, delay: Duration) {
        if let Some(floor) = policy.hints.retry {
            self.base = millis(delay.max(floor)).max(1);
        }
    }

    /// The refusal named a time for the next dial (`Retry-After`).
    pub fn retry_after(&mut self, policy: &Backoff, delay: Duration) {
        if policy.hints.retry_after == rules::RetryAfter::Added {
            self.not_before = millis(delay);
        }
    }

    /// The client's limit for the dial that is made now; none = it has none of its own.
    #[must_use]
    pub fn connect_timeout(&self, policy: &Backoff) -> Option<Duration> {
        match policy.fallback {
            Some(fallback) if !self.fell_back => Some(fallback.within),
            _ => policy.connect_timeout(self.made.saturating_sub(self.skipped + 1)),
        }
    }

    /// How many HTTP requests the dial that is made now costs the server.
    #[must_use]
    pub fn requests(&self, policy: &Backoff) -> u32 {
        match policy.fallback {
            Some(fallback) if self.fell_back => fallback.requests,
            _ => policy.requests,
        }
    }

    /// Whether a connection was ever lost.
    #[must_use]
    pub fn has_dropped(&self) -> bool {
        self.drops > 0
    }

    /// What comes after a dial or a connection that ended so.
    pub fn next(&mut self, policy: &Backoff, ending: Ending, passed: Passed) -> Next {
        let attempt = self.made;
        let hint = Duration::from_millis(std::mem::take(&mut self.not_before).into());
        if policy.limits.attempts.is_some_and(|most| attempt >= most) {
            return Next::GiveUp;
        }
        self.made += 1;
        let delay = match rules::ruling(&policy.rules, ending) {
            Some(Then::Stop) => return Next::Fatal,
            // A server that opens and closes at once must not be dialled as fast as herd's CPU allows.
            Some(Then::After(delay)) => {
                delay.max(IMMEDIATE_FLOOR.saturating_sub(passed.since_dial))
            }
            Some(Then::Retry) | None => {
                let took = match ending {
                    Ending::Unconnected | Ending::Status(_) => passed.since_dial,
                    _ => Duration::ZERO,
                };
                self.drawn(policy, attempt, passed.away, took)
            }
        };
        let delay = delay + hint;
        // A dial that would come too late is not waited for.
        let elapsed = policy.limits.elapsed;
        if elapsed.is_some_and(|most| passed.away + delay > most) {
            return Next::GiveUp;
        }
        Next::Wait { delay, attempt }
    }

    fn drawn(
        &mut self,
        policy: &Backoff,
        attempt: u32,
        away: Duration,
        took: Duration,
    ) -> Duration {
        if let Some(slow) = policy.limits.slow.filter(|slow| away >= slow.after) {
            return slow.delay;
        }
        // The second transport is tried at once, and the delays begin anew behind that.
        if policy.fallback.is_some() && !self.fell_back && attempt > 0 {
            (self.fell_back, self.skipped) = (true, attempt + 1);
            return Duration::ZERO;
        }
        let drawn = policy.delay(&Ask {
            attempt: attempt - self.skipped,
            previous: Some(Duration::from_micros(self.previous)),
            base: (self.base > 0).then(|| Duration::from_millis(self.base.into())),
            address: Address {
                seed: self.seed,
                client: self.client,
                drop: self.drops,
                attempt,
            },
        });
        self.previous = drawn.as_micros() as u64;
        match policy.counted {
            Counted::FromEnd => drawn,
            Counted::FromStart => drawn.saturating_sub(took),
        }
    }
}

/// Within what bounds each retry waits while every dial is refused at once, for at most `most` retries; fewer where their
/// number or a rule ends them. The bounds count from where the policy's delays do, and don't know how long a client is
/// away already.
#[must_use]
pub fn refused(policy: &Backoff, most: u32) -> Vec<Window> {
    let made = match rules::ruling(&policy.rules, Ending::Unconnected) {
        Some(Then::Stop) => 1,
        _ => most,
    };
    (0..made.min(most).min(policy.limits.attempts.unwrap_or(most)))
        .map(|n| match (policy.fallback, n) {
            (None, _) | (Some(_), 0) => policy.bounds(n),
            (Some(_), 1) => Window::exactly(Duration::ZERO),
            (Some(_), _) => policy.bounds(n - 2),
        })
        .collect()
}

fn millis(delay: Duration) -> u32 {
    u32::try_from(delay.as_millis()).unwrap_or(u32::MAX)
}
