//! One wave in instants: when its clients dialled and were open, how far apart, how many at once, how long the server
//! was down for them. It knows no limit.

use std::borrow::Cow;
use std::time::Duration;

use super::facts::count_clients;
use crate::check::timeline::{self, OutageSpan, WaveSpan};
use crate::check::{Return, Timeline};
use crate::history::{Attempt, AttemptOutcome, CutKind, Elapsed, History, Memory};

/// What was measured of one wave.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Which part of its outage.
    pub(super) part: Part,
    /// Clients dropped in it, but for those that started anew meanwhile: herd chose their instants, not their policy.
    pub(super) clients: u32,
    /// Those that did.
    pub(super) anew: Anew,
    /// Absences that ended.
    pub(super) back: u32,
    /// Whether somebody may yet come back: away at the end of the record, and not stopped for good.
    pub(super) pending: bool,
    /// Last minus first reconnect.
    pub(super) span: Instants<Duration>,
    /// Most attempts past TCP connect in any window.
    pub(super) peak: Instants<u64>,
    /// How long the server was down for its clients.
    pub(super) down: Duration,
    /// How many dials of one client may fall into a peak's window because it was dropped so often, at least 1.
    pub(super) at_once: u32,
    /// Whose doing it is when connections open.
    opens: Opens,
}

/// Clients that started anew while they were away, or went away so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Anew {
    /// With their cursor.
    pub(super) kept: u32,
    /// Without it.
    pub(super) lost: u32,
}

impl Anew {
    fn of(history: &History, rows: &[Return]) -> Self {
        let count = |memory| {
            let same = |row: &&Return| refreshed(history, row) == Some(memory);
            count_clients(rows.iter().filter(same))
        };
        Self {
            kept: count(Memory::Kept),
            lost: count(Memory::Lost),
        }
    }

    /// Why there is nothing to measure in a wave where nobody dialled by the policy; none where nobody started anew.
    pub(super) fn instead(self) -> Option<String> {
        let who = match (self.kept, self.lost) {
            (0, 0) => return None,
            (kept, 0) => format!("{kept} clients started anew, with their cursor"),
            (0, lost) => format!("{lost} clients started anew, without their memory"),
            (kept, lost) => format!(
                "{} clients started anew ({kept} with their cursor, {lost} without their memory)",
                kept + lost
            ),
        };
        Some(format!(
            "{who}, and no other came back: herd chose when these dial, and not their policy; refresh fewer"
        ))
    }
}

/// Whose doing the instants are at which connections open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opens {
    /// The server's.
    Server,
    /// herd's own slow network's: what was dialled in it opens when it clears up, all together.
    Network,
}

/// A part of an outage that is judged by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A wave by its number, from 1, and the fall that it belongs to where there are several.
    Wave(u32, Option<u32>),
    /// All waves together.
    Whole,
    /// What follows the last of several falls.
    Last,
}

impl Part {
    /// The wave's number; 0 where it is none.
    pub(super) fn wave(self) -> u32 {
        match self {
            Self::Wave(wave, _) => wave,
            Self::Whole | Self::Last => 0,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wave(_, Some(fall)) => write!(f, "fall {fall}"),
            Self::Wave(wave, None) => write!(f, "wave {wave}"),
            Self::Whole => f.write_str("all falls together"),
            Self::Last => f.write_str("final recovery"),
        }
    }
}

/// The same measure on three instants of a dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instants<T> {
    /// When it should have started.
    pub(super) due: T,
    /// When it did.
    pub(super) dialled: T,
    /// When it was open (spans) or past the TCP connect (peaks).
    pub(super) reached: T,
}

impl Measured {
    /// Measures a wave, its peak in a window.
    pub(super) fn new(
        history: &History,
        timeline: &Timeline,
        outage: &OutageSpan,
        wave: &WaveSpan,
        window: Duration,
    ) -> Self {
        let rows = by_policy(history, timeline.of_wave(outage.outage, wave.wave));
        let drops = rows.iter().map(|r| r.dropped).collect();
        Self {
            down: down(history, &rows, drops, wave.ready),
            opens: match history.header.terms.outage(outage.outage).cut {
                Some(CutKind::Latency | CutKind::Bandwidth) => Opens::Network,
                _ => Opens::Server,
            },
            anew: Anew::of(history, timeline.of_wave(outage.outage, wave.wave)),
            ..Self::of(history, &rows, Part::Wave(wave.wave, wave.fall), window)
        }
    }

    /// Measures these absences; how long the server was down for them is the caller's to say.
    pub(super) fn of(history: &History, rows: &[Return], part: Part, window: Duration) -> Self {
        let anew = Anew::of(history, rows);
        let rows = &*by_policy(history, rows);
        let reconnects: Vec<&Attempt> = rows.iter().filter_map(|r| reconnect(history, r)).collect();
        let span_of =
            |instant: fn(&Attempt) -> Elapsed| span(reconnects.iter().map(|a| instant(a)));
        Self {
            part,
            clients: count_clients(rows.iter()),
            anew,
            at_once: 1,
            opens: Opens::Server,
            back: reconnects.len() as u32,
            pending: rows.iter().any(|r| {
                let quit =
                    timeline::client(history, r.client).is_some_and(|(_, c)| c.quit.is_some());
                r.session.is_none() && !quit
            }),
            span: Instants {
                due: span_of(|a| a.due),
                dialled: span_of(|a| a.dialled),
                reached: span_of(|a| a.ended),
            },
            peak: peak(history, rows, window),
            down: Duration::ZERO,
        }
    }

    /// The smaller of the two spans that must reach the limit; only that of the dials where the other is not the server's
    /// doing.
    pub(super) fn narrowest(&self) -> Duration {
        match self.opens {
            Opens::Server => self.span.dialled.min(self.span.reached),
            Opens::Network => self.span.dialled,
        }
    }

    /// The larger of the two peaks as a share of the wave's clients.
    pub(super) fn share(&self) -> f64 {
        self.peak.dialled.max(self.peak.reached) as f64 / f64::from(self.clients.max(1))
    }
}

/// The absences whose dials the clients' policy chose.
fn by_policy<'a>(history: &History, rows: &'a [Return]) -> Cow<'a, [Return]> {
    if rows.iter().all(|row| refreshed(history, row).is_none()) {
        return Cow::Borrowed(rows);
    }
    let others = rows.iter().filter(|row| refreshed(history, row).is_none());
    Cow::Owned(others.cloned().collect())
}

/// What the client kept when it started anew within an absence, or began it so; none where it didn't.
fn refreshed(history: &History, row: &Return) -> Option<Memory> {
    let (_, client) = timeline::client(history, row.client)?;
    let back = row.session.and_then(|session| client.sessions.get(session));
    let until = back.map_or(history.horizon, |session| session.dialled);
    let within = |(at, _): &&(Elapsed, Memory)| row.dropped <= *at && *at <= until;
    client.refreshed.iter().rfind(within).map(|(_, m)| *m)
}

/// The dial that ended an absence.
pub(super) fn reconnect<'a>(history: &'a History, row: &Return) -> Option<&'a Attempt> {
    let (_, client) = timeline::client(history, row.client)?;
    client
        .attempts
        .get(client.sessions.get(row.session?)?.attempt)
}

/// All dials of these absences.
pub(super) fn dials<'a>(
    history: &'a History,
    rows: &'a [Return],
) -> impl Iterator<Item = &'a Attempt> {
    rows.iter().flat_map(move |row| {
        timeline::client(history, row.client)
            .map_or(&[][..], |(_, client)| timeline::dials(client, row))
    })
}

/// Last minus first; zero for none or one.
pub(super) fn span(instants: impl Iterator<Item = Elapsed> + Clone) -> Duration {
    match (instants.clone().max(), instants.min()) {
        (Some(last), Some(first)) => last.since(first),
        _ => Duration::ZERO,
    }
}

/// Most attempts that got past the TCP connect, whatever came of them, in any window of this length.
pub(super) fn peak(history: &History, rows: &[Return], window: Duration) -> Instants<u64> {
    let past: Vec<&Attempt> = dials(history, rows).filter(|a| past_connect(a)).collect();
    let most = |instant: fn(&Attempt) -> Elapsed| {
        busiest(past.iter().map(|a| instant(a)).collect(), window)
    };
    Instants {
        due: most(|a| a.due),
        dialled: most(|a| a.dialled),
        reached: most(|a| a.connected.unwrap_or(a.dialled)),
    }
}

fn past_connect(attempt: &Attempt) -> bool {
    attempt.connected.is_some()
        || matches!(
            attempt.outcome,
            AttemptOutcome::Opened | AttemptOutcome::Handshake { .. }
        )
}

/// The most instants in any window of this length, its end excluded.
pub(crate) fn busiest(mut instants: Vec<Elapsed>, window: Duration) -> u64 {
    instants.sort_unstable();
    let mut from = 0;
    let mut most = 0;
    for (to, at) in instants.iter().enumerate() {
        while from < to && at.since(instants[from]) >= window {
            from += 1;
        }
        most = most.max(to + 1 - from);
    }
    most as u64
}

/// From the median of these drops until the server was back, or said to be. The probe's word counts only within what the clients themselves saw:
/// after the last dial that failed before anybody was back, and before the first that was.
pub(super) fn down(
    history: &History,
    rows: &[Return],
    mut drops: Vec<Elapsed>,
    ready: Option<Elapsed>,
) -> Duration {
    drops.sort_unstable();
    let Some(median) = drops.get(drops.len() / 2) else {
        return Duration::ZERO;
    };
    let first_back = first_back(history, rows);
    let last_failed = last_failed(history, rows).unwrap_or(Elapsed::ZERO);
    let back = ready.unwrap_or(last_failed);
    back.max(last_failed).min(first_back).since(*median)
}

/// When the first that came back dialled; the record's end where nobody did.
fn first_back(history: &History, rows: &[Return]) -> Elapsed {
    let back = rows.iter().filter_map(|r| reconnect(history, r));
    back.map(|a| a.dialled).min().unwrap_or(history.horizon)
}

/// The last dial that failed before anybody was back: until then the server served nobody, whatever its port said.
pub(super) fn last_failed(history: &History, rows: &[Return]) -> Option<Elapsed> {
    let first_back = first_back(history, rows);
    let failed = dials(history, rows).filter(|a| failed(a) && a.dialled < first_back);
    failed.map(|a| a.dialled).max()
}

fn failed(attempt: &Attempt) -> bool {
    matches!(
        attempt.outcome,
        AttemptOutcome::Refused | AttemptOutcome::Timeout | AttemptOutcome::Handshake { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_beginning_and_not_its_end() {
        let at = |ms: &[u64]| ms.iter().map(|ms| Elapsed::from_millis(*ms)).collect();
        let second = Duration::from_secs(1);
        assert_eq!(busiest(at(&[]), second), 0);
        assert_eq!(busiest(at(&[0, 1000]), second), 1);
        assert_eq!(busiest(at(&[2000, 0, 999, 1001]), second), 2);
        assert_eq!(busiest(at(&[5, 5, 5, 1004]), second), 4);
    }
}
