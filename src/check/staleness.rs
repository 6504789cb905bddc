//! For how long the data that each client showed was stale: it was not connected (or connected and silent, see
//! `check/status.rs`), or connected and not caught up yet.
//!
//! It knows when a client was open and when it was caught up, and nothing of events. Time counts from when every client
//! was primed: before that there is nothing that could be stale. Who never came back is stale until the record's end.

use std::cmp::Reverse;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::status::{Span, Statuses};
use super::words::{names, no_restart, text, unprimed};
use super::{Check, Finding, Outcome, Percentiles, delivery};
use crate::history::{Client, ClientId, Elapsed, End, History, Mark, Status};

/// The percentile that is told where no limit names one.
const USUAL: f64 = 99.0;

/// How long data was stale, over all clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StalenessFacts {
    /// Clients whose data could have been stale.
    pub clients: u32,
    /// Of each client the longest stretch; none where there is no such client.
    pub longest_ms: Option<Percentiles>,
    /// Of each client all stretches together.
    pub total_ms: Option<Percentiles>,
    /// Clients whose data was still stale when the record ended.
    pub at_end: u32,
}

/// What became of everybody's data.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// The numbers.
    pub facts: StalenessFacts,
    /// The answer.
    pub finding: Finding,
}

/// What else is known of the run.
#[derive(Debug, Clone, Copy)]
pub struct Doubts<'a> {
    /// The answer on herd itself (rule 7 of judgement).
    pub generator: Outcome,
    /// Why an outage hit too few clients to prove anything (rule 5 of judgement).
    pub partial: Option<&'a str>,
    /// Whether any client lost its connection.
    pub dropped: bool,
}

/// Judges how stale everybody's data was.
#[must_use]
pub fn assess(
    history: &History,
    statuses: &Statuses<'_>,
    delivery: &delivery::Assessment,
    doubts: Doubts<'_>,
) -> Assessment {
    let primed = primed(history);
    let mut all = Vec::with_capacity(history.clients.len());
    for (place, client) in history.clients.iter().enumerate() {
        let caught_up = delivery.caught_up.get(place).map_or(&[][..], Vec::as_slice);
        let Some(from) = primed.or_else(|| first_seen(client)) else {
            continue;
        };
        let stretches = stretches(client, &statuses.spans(client), caught_up, from);
        all.push(Stale::of(client.id, &stretches, history.horizon));
    }
    let facts = StalenessFacts {
        clients: all.len() as u32,
        longest_ms: percentiles(all.iter().map(|s| s.longest.length())),
        total_ms: percentiles(all.iter().map(|s| s.total)),
        at_end: all.iter().filter(|s| s.at_end).count() as u32,
    };
    let case = Case {
        history,
        all: &all,
        unread: delivery.unread > 0,
        doubts,
    };
    Assessment {
        finding: case.finding(),
        facts,
    }
}

/// When the last client was primed. Merged shards each say so.
fn primed(history: &History) -> Option<Elapsed> {
    let primed = history.marks.iter().filter(|(_, m)| *m == Mark::Primed);
    primed.map(|(at, _)| *at).max()
}

/// Where nobody is primed, as in a simulation: when it was first open, or else began to try.
fn first_seen(client: &Client) -> Option<Elapsed> {
    let opened = client.sessions.first().map(|s| s.opened);
    opened.or_else(|| client.attempts.first().map(|a| a.dialled))
}

/// A stretch of time without fresh data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stretch {
    from: Elapsed,
    until: Elapsed,
    /// How much of it the client was connected.
    behind: Duration,
    /// How much of that was in sessions that were never caught up.
    never: Duration,
    /// How late herd itself made the dials in it.
    lag: Duration,
}

impl Stretch {
    fn length(&self) -> Duration {
        self.until.since(self.from)
    }

    /// As much of it as is certain: herd's own lateness is nobody else's, and what could not be read may have come.
    fn certain(&self, late: bool, unread: bool) -> Duration {
        let lag = if late { self.lag } else { Duration::ZERO };
        let never = if unread { self.never } else { Duration::ZERO };
        self.length().saturating_sub(lag + never)
    }
}

/// The stretches of one client from an instant on, in order.
fn stretches(
    client: &Client,
    spans: &[Span],
    caught_up: &[Option<Elapsed>],
    from: Elapsed,
) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for span in spans {
        let begin = span.from.max(from);
        let open = span.status == Status::Connected;
        let fresh = match span.session.filter(|_| open) {
            Some(session) => caught_up.get(session).copied().flatten(),
            None => None,
        };
        let end = fresh.map_or(span.until, |at| at.min(span.until));
        if begin >= end {
            continue;
        }
        let piece = end.since(begin);
        let behind = if open { piece } else { Duration::ZERO };
        let never = if open && fresh.is_none() {
            piece
        } else {
            Duration::ZERO
        };
        match stretches.last_mut().filter(|last| last.until == begin) {
            Some(last) => {
                last.until = end;
                last.behind += behind;
                last.never += never;
            }
            None => stretches.push(Stretch {
                from: begin,
                until: end,
                behind,
                never,
                lag: Duration::ZERO,
            }),
        }
    }
    for attempt in &client.attempts {
        let place = stretches.partition_point(|s| s.until < attempt.dialled);
        if let Some(stretch) = stretches
            .get_mut(place)
            .filter(|s| s.from <= attempt.dialled)
        {
            stretch.lag += attempt.dialled.since(attempt.due);
        }
    }
    stretches
}

/// What one client's stretches come to.
struct Stale {
    client: ClientId,
    longest: Stretch,
    total: Duration,
    at_end: bool,
    stretches: Vec<Stretch>,
}

impl Stale {
    fn of(client: ClientId, stretches: &[Stretch], horizon: Elapsed) -> Self {
        // The first of equal ones.
        let longest = stretches.iter().rev().max_by_key(|s| s.length());
        Self {
            client,
            longest: longest.copied().unwrap_or_default(),
            total: stretches.iter().map(Stretch::length).sum(),
            at_end: stretches.last().is_some_and(|s| s.until >= horizon),
            stretches: stretches.to_vec(),
        }
    }
}

struct Case<'a> {
    history: &'a History,
    all: &'a [Stale],
    /// Whether events came that could not be read.
    unread: bool,
    doubts: Doubts<'a>,
}

impl Case<'_> {
    fn finding(&self) -> Finding {
        let limit = self.history.header.terms.max_staleness;
        let percentile = limit.map_or(USUAL, |(percentile, _)| percentile);
        let late = self.doubts.generator != Outcome::Pass;
        let over = |limit: Duration| self.over(percentile, limit, |s| s.longest.length());
        let surely = |limit: Duration| {
            self.over(percentile, limit, |stale| {
                let certain = stale.stretches.iter().map(|s| s.certain(late, self.unread));
                certain.max().unwrap_or_default()
            })
        };
        let (outcome, why) = match limit {
            Some((_, limit)) if over(limit) && surely(limit) => (Outcome::Fail, self.worst(limit)),
            Some((_, limit)) if over(limit) => (Outcome::Unknown, Self::unsure(late)),
            _ => match self.unseen() {
                Some(why) => (Outcome::Unknown, why),
                None => (Outcome::Pass, self.unended()),
            },
        };
        let mut lengths: Vec<_> = self.all.iter().map(|s| s.longest.length()).collect();
        lengths.sort_unstable();
        let measured = match (rank(&lengths, percentile), lengths.last()) {
            (Some(at), Some(most)) => {
                format!("p{percentile} {}, longest {}", text(at), text(*most))
            }
            _ => "nothing".into(),
        };
        Finding {
            check: Check::Staleness,
            outage: None,
            outcome,
            measured,
            limit: limit.map_or("reported".into(), |(percentile, limit)| {
                format!("p{percentile} within {}", text(limit))
            }),
            why,
        }
    }

    /// Whether the percentile of all clients is over the limit, whatever those did that are not in the record.
    fn over(&self, percentile: f64, limit: Duration, of: impl Fn(&Stale) -> Duration) -> bool {
        let mut lengths: Vec<_> = self.all.iter().map(of).collect();
        let clients = self.history.header.clients as usize;
        lengths.resize(lengths.len().max(clients), Duration::ZERO);
        lengths.sort_unstable();
        rank(&lengths, percentile).is_some_and(|length| length > limit)
    }

    /// Who is over the limit, and what the longest stretch was made of.
    fn worst(&self, limit: Duration) -> String {
        let over = self.all.iter().filter(|s| s.longest.length() > limit);
        let mut over: Vec<&Stale> = over.collect();
        over.sort_by_key(|s| (Reverse(s.longest.length()), s.client));
        let named: Vec<ClientId> = over.iter().map(|s| s.client).collect();
        let mut why = format!("{} over the limit: {}", over.len(), names(&named));
        if let Some(worst) = over.first() {
            let stretch = worst.longest;
            let ended = match worst.at_end && stretch.until >= self.history.horizon {
                true => "to the end of the record".into(),
                false => format!("to {}", text(stretch.until.duration())),
            };
            why += &format!(
                "; client {} from {} {ended}: {} not connected, {} connected and not caught up",
                worst.client.0,
                text(stretch.from.duration()),
                text(stretch.length().saturating_sub(stretch.behind)),
                text(stretch.behind),
            );
        }
        why
    }

    /// Why what is over the limit is not certainly so.
    fn unsure(late: bool) -> String {
        match late {
            true => "over the limit only by herd's own lag (see generator)",
            false => {
                "over the limit only where what clients waited for may have come in frames that were not read (see exactly-once)"
            }
        }
        .into()
    }

    /// Rule 4 of the house: nothing observed is unknown.
    fn unseen(&self) -> Option<String> {
        let (history, clients) = (self.history, self.history.header.clients);
        let nothing = "so nothing was restarted";
        match history.end() {
            Some(End::NotConnected { connected }) => Some(format!(
                "only {connected} of {clients} clients could connect, {nothing}"
            )),
            Some(End::NotPrimed { primed }) => {
                Some(format!("{}, {nothing}", unprimed(history, *primed)))
            }
            Some(End::NoRestart) => Some(no_restart(history)),
            _ if self.all.is_empty() => Some("no client was ever seen connected".into()),
            _ if !self.doubts.dropped => {
                Some("no outage was seen: no client lost its connection".into())
            }
            _ => self.doubts.partial.map(Into::into),
        }
    }

    fn unended(&self) -> String {
        let stale = self.all.iter().filter(|s| s.at_end);
        let stale: Vec<ClientId> = stale.map(|s| s.client).collect();
        match stale.len() {
            0 => String::new(),
            n => format!("{n} still stale when the record ends: {}", names(&stale)),
        }
    }
}

/// A percentile (0 to 100) of sorted lengths by nearest rank; none of nothing.
fn rank(sorted: &[Duration], percentile: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * percentile / 100.0).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

fn percentiles(lengths: impl Iterator<Item = Duration>) -> Option<Percentiles> {
    let mut lengths: Vec<Duration> = lengths.collect();
    lengths.sort_unstable();
    let at = |p| rank(&lengths, p).map(|length| length.as_micros() as f64 / 1e3);
    Some(Percentiles {
        p50: at(50.0)?,
        p90: at(90.0)?,
        p99: at(99.0)?,
        max: at(100.0)?,
    })
}

#[cfg(test)]
mod tests;
