//! How long to wait for a herd that comes back: the limits that the run, its simulation and the judge must share. The
//! rules are those of judgement in the design, section 5.

use std::time::Duration;

use super::{Backoff, forecast};

/// How long a connection may stay silent while others, back from the outage, receive (rule 5).
pub const SILENCE: Duration = Duration::from_secs(5);

/// How sure a derived limit is that the last of an honest herd is back (rule 6).
pub const QUANTILE: f64 = 0.9999;

/// What such a limit adds for everything that isn't the policy (rule 6).
pub const MARGIN: Duration = Duration::from_secs(10);

/// For how long, and for how many publications, publishing goes on after the last client has caught up (rule 15).
pub const TAIL: (Duration, usize) = (Duration::from_secs(2), 10);

/// When the last of so many honest clients is back after such a down time, and then some (rule 6); none where nobody
/// comes back.
#[must_use]
pub fn return_limit(policy: &Backoff, clients: u32, down: Duration) -> Option<Duration> {
    let last = forecast::last_return(policy, clients, down, QUANTILE)?;
    Some(last + MARGIN)
}
