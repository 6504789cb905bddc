//! The short forms of outages and of what must hold in them: a heartbeat, a staleness, what a handler remembers.

use std::str::FromStr;
use std::time::Duration;

use super::{Count, Time, word};
use crate::history::Remembers;
use crate::scenario::Heartbeat;

fn time(text: &str) -> Option<Duration> {
    let Time(time) = word(text.trim()).ok()?;
    (!time.is_zero()).then_some(time)
}

impl FromStr for Heartbeat {
    type Err = String;

    /// `"25s/20s"`: from ping to ping, and how long an answer may take; without the second it is the first.
    fn from_str(text: &str) -> Result<Self, String> {
        let (interval, timeout) = text.split_once('/').unwrap_or((text, text));
        let (interval, timeout) = (time(interval), time(timeout));
        match (interval, timeout) {
            (Some(interval), Some(timeout)) => Ok(Self { interval, timeout }),
            _ => Err(format!(
                "\"{}\" is not a heartbeat; write the time from ping to ping and how long an answer may take, such as \"25s/20s\"",
                text.escape_debug()
            )),
        }
    }
}

/// A limit of `staleness` and the percentile of the clients that it is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Staleness {
    /// Above 0 and at most 100.
    pub(crate) percentile: f64,
    pub(crate) limit: Duration,
}

impl FromStr for Staleness {
    type Err = String;

    /// `"30s"`, which is of the 99th percentile, or `"p95 30s"`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.strip_prefix('p') {
            Some(rest) => rest
                .split_once(' ')
                .and_then(|(p, limit)| Some((p.parse().ok()?, time(limit)?))),
            None => time(text).map(|limit| (99.0, limit)),
        };
        let sound = parsed.filter(|(p, _)| *p > 0.0 && *p <= 100.0);
        let (percentile, limit) = sound.ok_or_else(|| {
            format!(
                "\"{}\" is not a staleness; write a limit such as \"30s\", or with its percentile \"p95 30s\"",
                text.escape_debug()
            )
        })?;
        Ok(Self { percentile, limit })
    }
}

impl FromStr for Remembers {
    type Err = String;

    /// `"everything"`, `"last 1000"` (ids) or `"for 10m"`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once(' ') {
            None if text == "everything" => Some(Self::Everything),
            Some(("last", n)) => word(n)
                .ok()
                .and_then(|Count(n)| u32::try_from(n).ok())
                .filter(|n| *n > 0)
                .map(Self::Last),
            Some(("for", limit)) => time(limit).map(Self::For),
            _ => None,
        };
        parsed.ok_or_else(|| {
            format!(
                "\"{}\" is not what a handler remembers; write \"everything\", \"last 1000\" or \"for 10m\"",
                text.escape_debug()
            )
        })
    }
}
