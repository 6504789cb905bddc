//! Where every client stood at every moment, as its user would see it: spans that cover the run from its beginning to
//! the record's end, without a gap and without an overlap.
//!
//! It reads dials, sessions and ends, and takes from the timeline only since when a half-open session was lost. Unlike
//! the timeline it doesn't ask whether a connection was of use: a flapped one is connected for as long as it was, since
//! that is what a user sees. How old the data of a client is `check/staleness.rs` says.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Ms, Return};
use crate::history::{AttemptOutcome, Cause, Client, ClientId, Elapsed, History, Session, Status};

/// How many clients there are in each status, in the order of [`Status::ALL`].
pub type Counts = [u32; Status::ALL.len()];

/// How closely the run is looked at, unless it is too long for that.
const FINE: Duration = Duration::from_millis(10);
/// The most looks at one run.
const LOOKS: u64 = 100_000;
/// The step of the rows that are written one by one.
const STEP: Duration = Duration::from_millis(100);
/// The most steps of the series in a summary.
const STEPS: u64 = 200;

/// A stretch of time in which one client had one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Which.
    pub status: Status,
    /// The client's session (index from 0), where it was connected.
    pub session: Option<usize>,
    /// From then on.
    pub from: Elapsed,
    /// Until then, that instant excluded; always later than `from`.
    pub until: Elapsed,
}

impl Span {
    /// How long it is.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// The status of every client, to be read client by client.
#[derive(Debug)]
pub struct Statuses<'a> {
    history: &'a History,
    /// When clients lost their connections, of those whose sessions ended half-open (rule 5 of judgement).
    lost: HashMap<ClientId, Vec<Elapsed>>,
}

impl<'a> Statuses<'a> {
    /// Reads a history; `returns` are the timeline's.
    #[must_use]
    pub fn new(history: &'a History, returns: &[Return]) -> Self {
        let half_open = |c: &&Client| c.sessions.iter().any(is_half_open);
        let clients = history.clients.iter().filter(half_open).map(|c| c.id);
        let clients: HashSet<ClientId> = clients.collect();
        let mut lost: HashMap<ClientId, Vec<Elapsed>> = HashMap::new();
        for row in returns.iter().filter(|r| clients.contains(&r.client)) {
            lost.entry(row.client).or_default().push(row.dropped);
        }
        Self { history, lost }
    }

    /// What one client was, in order, from the run's beginning to the record's end.
    #[must_use]
    pub fn spans(&self, client: &Client) -> Vec<Span> {
        let mut course = Course::new(self.history.horizon);
        let mut sessions = client.sessions.iter().enumerate().peekable();
        let mut was_open = false;
        for (place, attempt) in client.attempts.iter().enumerate() {
            if was_open {
                course.turn(attempt.dialled, Status::Reconnecting, None);
            }
            match attempt.outcome {
                AttemptOutcome::Opened => {}
                // herd ended the run in the middle of it.
                AttemptOutcome::Aborted => continue,
                _ if was_open => {
                    course.turn(attempt.ended, Status::Disconnected, None);
                    continue;
                }
                _ => continue,
            }
            was_open = true;
            let Some((index, session)) = sessions.next_if(|(_, s)| s.attempt == place) else {
                continue;
            };
            course.turn(session.opened, Status::Connected, Some(index));
            if let Some(at) = self.lost(client.id, session) {
                course.turn(at, Status::Disconnected, None);
            }
        }
        if let Some((at, _)) = &client.quit {
            course.turn(*at, Status::GaveUp, None);
        }
        course.finish()
    }

    /// When a session was lost: with its last sign of life, however late somebody noticed.
    fn lost(&self, client: ClientId, session: &Session) -> Option<Elapsed> {
        let closed = session.dropped()?;
        let cut = || {
            let mut drops = self.lost.get(&client)?.iter().copied();
            drops.find(|at| session.opened <= *at && *at < closed)
        };
        let last = match session.silent_since {
            None if is_half_open(session) => cut(),
            since => since,
        };
        Some(last.unwrap_or(closed).max(session.opened).min(closed))
    }

    /// Looks at the whole run.
    #[must_use]
    pub fn survey(&self) -> Survey {
        let horizon = self.history.horizon;
        let step = handy(horizon.micros() / LOOKS).max(FINE.as_micros() as u64);
        let looks = horizon.micros() / step + 1;
        // One more, at the record's end.
        let mut changes = vec![[0i32; Status::ALL.len()]; looks as usize + 1];
        let mut times = [Duration::ZERO; Status::ALL.len()];
        for client in &self.history.clients {
            for span in self.spans(client) {
                let place = span.status as usize;
                times[place] += span.length();
                let look = |at: Elapsed| at.micros().div_ceil(step).min(looks) as usize;
                changes[look(span.from)][place] += 1;
                if span.until < horizon {
                    changes[look(span.until)][place] -= 1;
                }
            }
        }
        let mut now = Counts::default();
        let mut counts: Vec<Counts> = Vec::with_capacity(changes.len());
        for change in changes {
            for (count, change) in now.iter_mut().zip(change) {
                *count = count.saturating_add_signed(change);
            }
            counts.push(now);
        }
        let end = counts.pop().unwrap_or_default();
        Survey {
            horizon,
            step,
            counts,
            end,
            times,
        }
    }
}

fn is_half_open(session: &Session) -> bool {
    matches!(session.closed, Some((_, Cause::HalfOpen)))
}

/// One client's spans while they are read. What a record tells out of order is put at the instant before it.
struct Course {
    horizon: Elapsed,
    spans: Vec<Span>,
    now: Span,
}

impl Course {
    fn new(horizon: Elapsed) -> Self {
        Self {
            horizon,
            spans: Vec::new(),
            now: Span {
                status: Status::Connecting,
                session: None,
                from: Elapsed::ZERO,
                until: Elapsed::ZERO,
            },
        }
    }

    fn turn(&mut self, at: Elapsed, status: Status, session: Option<usize>) {
        if (status, session) == (self.now.status, self.now.session) {
            return;
        }
        let at = at.min(self.horizon).max(self.now.from);
        self.close(at);
        self.now = Span {
            status,
            session,
            from: at,
            until: at,
        };
    }

    fn close(&mut self, at: Elapsed) {
        if self.now.from == at {
            return;
        }
        self.now.until = at;
        match self.spans.last_mut() {
            // What lay between had no length.
            Some(last) if (last.status, last.session) == (self.now.status, self.now.session) => {
                last.until = at;
            }
            _ => self.spans.push(self.now),
        }
    }

    fn finish(mut self) -> Vec<Span> {
        self.close(self.horizon);
        self.spans
    }
}

/// How many clients were in which status, over the whole run.
#[derive(Debug, Clone)]
pub struct Survey {
    horizon: Elapsed,
    /// Microseconds from look to look.
    step: u64,
    counts: Vec<Counts>,
    end: Counts,
    times: [Duration; Status::ALL.len()],
}

impl Survey {
    /// A row for each step of about 100 ms that differs from the one before it, and one for the record's end.
    #[must_use]
    pub fn rows(&self) -> Vec<(Elapsed, Counts)> {
        self.merged(self.step.max(STEP.as_micros() as u64))
    }

    /// A step shows the moment in it at which the fewest clients were connected: the longer the run, the longer the steps,
    /// and no outage may get lost in one.
    fn merged(&self, step: u64) -> Vec<(Elapsed, Counts)> {
        let mut rows: Vec<(Elapsed, Counts)> = Vec::new();
        let looks = (step / self.step).max(1) as usize;
        for (at, looks) in (0..).step_by(step as usize).zip(self.counts.chunks(looks)) {
            let connected = |counts: &&Counts| counts[Status::Connected as usize];
            // Of equal ones the last, which is the nearest to the step that follows.
            let Some(fewest) = looks.iter().rev().min_by_key(connected) else {
                continue;
            };
            if rows.last().is_none_or(|(_, last)| last != fewest) {
                rows.push((Elapsed(at), *fewest));
            }
        }
        if self.horizon > Elapsed::ZERO {
            rows.pop_if(|(at, _)| *at >= self.horizon);
            rows.push((self.horizon, self.end));
        }
        rows
    }

    /// The same in numbers for a summary.
    #[must_use]
    pub fn facts(&self) -> StatusFacts {
        let step = handy(self.horizon.micros() / STEPS).max(STEP.as_micros() as u64);
        let series = self.merged(step).into_iter();
        StatusFacts {
            client_seconds: StatusTimes::of(self.times),
            step_ms: step as f64 / 1e3,
            series: series.map(|(at, counts)| row(at, counts)).collect(),
        }
    }
}

/// The smallest of 1, 2, 5, 10, 20, ... milliseconds that is above this many microseconds, in microseconds.
fn handy(micros: u64) -> u64 {
    let steps = (3..19).flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power)));
    let mut steps = steps.filter(|step| *step > micros);
    steps.next().unwrap_or(u64::MAX)
}

/// Where the clients stood, over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusFacts {
    /// For how long, of all clients together.
    pub client_seconds: StatusTimes,
    /// The length of a step of the series.
    pub step_ms: Ms,
    /// A row for each step that differs from the one before it, and one for the record's end. A row stands for the moment
    /// of its step at which the fewest clients were connected.
    pub series: Vec<StatusRow>,
}

/// Seconds of all clients together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusTimes {
    /// Never connected yet.
    pub connecting: f64,
    /// Open, with signs of life.
    pub connected: f64,
    /// Lost, and not dialling.
    pub disconnected: f64,
    /// Lost, and dialling.
    pub reconnecting: f64,
    /// Stopped for good.
    pub gave_up: f64,
}

impl StatusTimes {
    fn of(times: [Duration; Status::ALL.len()]) -> Self {
        let [connecting, connected, disconnected, reconnecting, gave_up] =
            times.map(|time| time.as_secs_f64());
        Self {
            connecting,
            connected,
            disconnected,
            reconnecting,
            gave_up,
        }
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.connecting + self.connected + self.disconnected + self.reconnecting + self.gave_up
    }
}

/// How many clients stood where; they add up to all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusRow {
    /// From then on, until the next row.
    pub at_ms: Ms,
    /// Never connected yet.
    pub connecting: u32,
    /// Open, with signs of life.
    pub connected: u32,
    /// Lost, and not dialling.
    pub disconnected: u32,
    /// Lost, and dialling.
    pub reconnecting: u32,
    /// Stopped for good.
    pub gave_up: u32,
}

fn row(at: Elapsed, counts: Counts) -> StatusRow {
    let [connecting, connected, disconnected, reconnecting, gave_up] = counts;
    StatusRow {
        at_ms: at.millis(),
        connecting,
        connected,
        disconnected,
        reconnecting,
        gave_up,
    }
}

#[cfg(test)]
mod tests;
