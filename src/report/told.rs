//! What a server told its clients besides events: how long to wait, and with what words it declined them. It counts, and
//! knows nothing of whether anybody obeyed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::check::Ms;
use crate::history::{Cause, Client, History};

/// How many different words are kept.
const WORDS: usize = 10;

/// Delays that the server asked for: SSE's `retry:` or `Retry-After`. Told, not necessarily obeyed: that is the backoff
/// preset's business.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryAfter {
    /// How often it named one, to all clients together; the same value again counts once a client.
    pub told: u64,
    /// The least.
    pub min_ms: Ms,
    /// The median.
    pub p50_ms: Ms,
    /// The longest.
    pub max_ms: Ms,
}

/// Words with which the server declined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    /// The server's own words.
    pub why: String,
    /// How often.
    pub times: u64,
}

pub(super) fn retry_after(history: &History) -> Option<RetryAfter> {
    let clients = history.clients.iter();
    let mut delays: Vec<Duration> = clients
        .flat_map(|c| c.retry_after.iter().map(|(_, delay)| *delay))
        .collect();
    delays.sort_unstable();
    let ms = |delay: &Duration| delay.as_micros() as f64 / 1e3;
    Some(RetryAfter {
        told: delays.len() as u64,
        min_ms: ms(delays.first()?),
        p50_ms: ms(&delays[(delays.len() - 1) / 2]),
        max_ms: ms(delays.last()?),
    })
}

pub(super) fn declined(history: &History) -> Vec<Declined> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for why in history.clients.iter().flat_map(words) {
        *counts.entry(why).or_default() += 1;
    }
    let mut all: Vec<_> = counts
        .into_iter()
        .map(|(why, times)| Declined {
            why: why.into(),
            times,
        })
        .collect();
    all.sort_by_key(|d| std::cmp::Reverse(d.times));
    all.truncate(WORDS);
    all
}

/// Each session counts once, by the words of its refusal where there were any.
fn words(client: &Client) -> impl Iterator<Item = &str> {
    let sessions = client.sessions.iter().filter_map(|session| {
        let declined = match &session.closed {
            Some((_, Cause::Declined(why))) => Some(&**why),
            _ => None,
        };
        let refused = session.refused.as_ref().map(|(_, why)| &**why);
        refused.or(declined)
    });
    sessions.chain(client.refused_dials.iter().map(|(_, why)| &**why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::build::Builder;

    #[test]
    fn delays_are_told_by_their_range_and_median() {
        let silent = Builder::new(1).end(10);
        assert_eq!(retry_after(&silent), None);
        let history = Builder::new(3)
            .each(|k, s| {
                s.open(10).retry_after(20, 1_000 * u64::from(k));
                if k == 3 {
                    s.retry_after(30, 60_000);
                }
            })
            .end(100);
        let told = retry_after(&history).unwrap();
        assert_eq!((told.told, told.min_ms), (4, 1_000.0));
        assert_eq!((told.p50_ms, told.max_ms), (2_000.0, 60_000.0));
    }

    #[test]
    fn each_refusal_counts_once_by_the_servers_words() {
        let gone = || Cause::Declined("gone away".into());
        let history = Builder::new(2)
            .client(1, |s| {
                s.open(10).refused(20, "gone").closed(30, gone());
                s.refused(40, "410").open(50).closed(60, gone());
            })
            .client(2, |s| {
                s.open(10).refused(20, "gone").closed(30, gone());
            })
            .end(100);
        let told: Vec<_> = declined(&history)
            .into_iter()
            .map(|d| (d.why, d.times))
            .collect();
        let wanted = [("gone", 2), ("410", 1), ("gone away", 1)];
        assert_eq!(told, wanted.map(|(why, n)| (why.to_owned(), n)));
    }
}
