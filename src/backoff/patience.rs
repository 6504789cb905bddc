//! How long to wait for a herd that comes back: the limits that the run, its simulation and the judge must share. The
//! rules are those of judgement in the design, section 5.

use std::time::Duration;

use super::{Backoff, Mix, forecast};

/// How long a connection may stay silent while others, back from the outage, receive (rule 5).
pub const SILENCE: Duration = Duration::from_secs(5);

/// How sure a derived limit is that the last of an honest herd is back (rule 6).
pub const QUANTILE: f64 = 0.9999;

/// What such a limit adds for everything that isn't the policy (rule 6).
pub const MARGIN: Duration = Duration::from_secs(10);

/// For how long, and for how many publications, publishing goes on after the last client has caught up (rule 15).
pub const TAIL: (Duration, usize) = (Duration::from_secs(2), 10);

/// How many retries are looked at: behind these, every policy that doesn't grow for ever is at its cap.
const RETRIES: u32 = 10_000;

/// When the last of so many honest clients is back after such a down time, and then some (rule 6); none where nobody
/// comes back.
#[must_use]
pub fn return_limit(mix: &Mix, clients: u32, down: Duration) -> Option<Duration> {
    let last = forecast::last_return(mix, clients, down, QUANTILE)?;
    Some(last + MARGIN)
}

/// After this long since its drop, a client that comes back at all is back for certain from a server that was down so
/// long: its last dial may just have been refused, so the longest wait that can follow counts.
#[must_use]
pub fn latest(policy: &Backoff, down: Duration) -> Duration {
    let most = policy.limits.attempts.unwrap_or(RETRIES).min(RETRIES);
    let (mut soonest, mut longest) = (Duration::ZERO, Duration::ZERO);
    let slow = policy.limits.slow.map_or(Duration::ZERO, |slow| slow.delay);
    for attempt in 0..most {
        let bounds = policy.bounds(attempt);
        longest = longest.max(bounds.most);
        soonest = soonest.saturating_add(bounds.least);
        if soonest > down {
            break;
        }
        // Full jitter has no least delay: at its cap nothing changes any more.
        if attempt > 64 && bounds == policy.bounds(attempt + 1) {
            break;
        }
    }
    down.saturating_add(longest.max(slow))
}
