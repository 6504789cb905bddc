//! Who was away when: drops, waves, outages and returns, read off the history.
//!
//! Of limits it knows only what makes a wave big enough to be judged, because where herd waits for somebody else's
//! restart the first such wave is the outage's beginning. What a wave is worth is `check/reconnect.rs`'s business.

mod absence;
mod before;
mod falls;
mod starts;

use std::collections::HashSet;
use std::time::Duration;

use crate::check::Return;
use crate::history::{Attempt, Client, ClientId, CutKind, Elapsed, History, Mark, TriggerKind};

use absence::{Absence, absences_of, flapped};
use before::Before;
pub use falls::FallSpan;
use falls::{Falls, falls};
use starts::{Start, settle_half_open, starts};

/// A session shorter than this that delivered nothing is no reconnect (rule 1 of judgement).
pub const FLAP: Duration = Duration::from_secs(1);

/// A pause between drops longer than this starts a new wave; what drops later than this after the server was ready
/// again is no longer the trigger's doing.
pub const PAUSE: Duration = Duration::from_secs(1);

/// What the other parts of the judge need to know of time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Every outage that was seen, in order. Outage 0 is there only where clients were dropped before the first
    /// trigger.
    pub outages: Vec<OutageSpan>,
    /// Every loss of connection and what followed, by outage, wave, client. A flapped session ends no absence: its
    /// client is still away, and it gets no row of its own.
    pub returns: Vec<Return>,
    /// For each client of the history (same index), for each of its sessions (same index).
    pub sessions: Vec<Vec<Place>>,
}

/// One outage: from its trigger (or first drop) on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageSpan {
    /// From 1; 0 = before the first trigger.
    pub outage: u32,
    /// When it was triggered (or, waiting, began to be waited for); none where it began by itself.
    pub trigger: Option<Elapsed>,
    /// The old process was reaped, or the probe first failed.
    pub gone: Option<Elapsed>,
    /// When the target was ready again.
    pub ready: Option<Elapsed>,
    /// Whether herd found that it was not ready again within the limit.
    pub never_ready: bool,
    /// When the next outage begins, or the history ends.
    pub until: Elapsed,
    /// Its falls, in order: at least one where it was triggered.
    pub falls: Vec<FallSpan>,
    /// Its waves, in order.
    pub waves: Vec<WaveSpan>,
}

/// Drops close together: a pause of more than 1 s starts a new wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveSpan {
    /// From 1 within its outage.
    pub wave: u32,
    /// The fall that it belongs to, where its outage has several.
    pub fall: Option<u32>,
    /// The first drop.
    pub first_drop: Elapsed,
    /// The last drop.
    pub last_drop: Elapsed,
    /// Clients dropped in it.
    pub dropped: u32,
    /// Of these, clients that lost nothing but sessions that herd itself ended, by its profile or because they started anew.
    pub own: u32,
    /// Whether the trigger caused it; if not, it is a relapse (rule 3 of judgement).
    pub triggered: bool,
    /// When the target was first ready at or after the first drop; none where nothing says so.
    pub ready: Option<Elapsed>,
}

impl WaveSpan {
    /// Whether it is judged by itself: at least 5 % of the clients, and at least two (rule 3 of judgement), not counting
    /// those that herd itself cut off.
    #[must_use]
    pub fn judged(&self, clients: usize) -> bool {
        (self.dropped - self.own) as usize >= least_judged(clients)
    }
}

/// How many clients make a wave that is judged.
fn least_judged(clients: usize) -> usize {
    clients.div_ceil(20).max(2).min(clients.max(1))
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The outage (from 1) that it came back from; 0 = the ramp.
    pub outage: u32,
    /// The wave (from 1) within it; 0 = the ramp.
    pub wave: u32,
    /// It delivered nothing and lasted under 1 s, or was refused or declined: the client is still away (rule 1 of judgement).
    pub flapped: bool,
    /// Since when a cut had left it in silence, where its client noticed that later.
    pub silenced: Option<Elapsed>,
}

impl Timeline {
    /// Reads it off a history.
    #[must_use]
    pub fn new(history: &History) -> Self {
        let mut timeline = Self::default();
        let mut absences = Vec::new();
        for (index, client) in history.clients.iter().enumerate() {
            let flapped = flapped(client, history);
            absences.extend(absences_of(index, client, &flapped));
            let place = |flapped| Place {
                flapped,
                ..Place::default()
            };
            timeline
                .sessions
                .push(flapped.into_iter().map(place).collect());
        }
        absences.sort_by_key(|a| (a.at, a.client));
        let starts = starts(history, &absences);
        settle_half_open(&mut absences, &starts);
        absences.sort_by_key(|a| (a.at, a.client));

        let mut rest = absences.as_slice();
        for (place, start) in starts.iter().enumerate() {
            let next = starts.get(place + 1);
            let until = next.map_or(Elapsed(u64::MAX), |n| n.at);
            let (mine, later) = rest.split_at(rest.partition_point(|a| a.at < until));
            rest = later;
            if start.outage > 0 || !mine.is_empty() {
                timeline.outage(history, *start, until.min(history.horizon), mine);
            }
        }
        timeline
            .returns
            .sort_by_key(|r| (r.outage, r.wave, r.client, r.dropped));
        timeline
    }

    /// The returns of one wave.
    #[must_use]
    pub fn of_wave(&self, outage: u32, wave: u32) -> &[Return] {
        let wanted = (outage, wave);
        let from = self
            .returns
            .partition_point(|r| (r.outage, r.wave) < wanted);
        let to = self
            .returns
            .partition_point(|r| (r.outage, r.wave) <= wanted);
        &self.returns[from..to]
    }

    /// The returns of one outage.
    #[must_use]
    pub fn of_outage(&self, outage: u32) -> &[Return] {
        let from = self.returns.partition_point(|r| r.outage < outage);
        let to = self.returns.partition_point(|r| r.outage <= outage);
        &self.returns[from..to]
    }

    fn outage(&mut self, history: &History, start: Start, until: Elapsed, mine: &[Absence]) {
        let mark = |wanted: fn(&Mark) -> Option<u32>, from: Elapsed| {
            let found = |(at, m): &(Elapsed, Mark)| {
                (wanted(m) == Some(start.outage) && *at >= from).then_some(*at)
            };
            history.marks.iter().filter_map(found).min()
        };
        let ready = |from| match start.outage {
            0 => None,
            _ => mark(ready_of, from),
        };
        let mut outage = OutageSpan {
            outage: start.outage,
            trigger: start.trigger,
            gone: mark(gone_of, Elapsed::ZERO),
            ready: ready(Elapsed::ZERO),
            never_ready: mark(never_ready_of, Elapsed::ZERO).is_some(),
            until,
            falls: falls(history, start),
            waves: Vec::new(),
        };
        let terms = &history.header.terms;
        let asked = terms.outage(start.outage);
        let slack = match asked.cut {
            // What is under way arrives as late as ever; a tenth more for timers that are late.
            Some(CutKind::Latency | CutKind::Bandwidth) => {
                terms.silence.unwrap_or_default().mul_f64(1.1)
            }
            _ => Duration::ZERO,
        };
        let died = history
            .marks
            .iter()
            .any(|(at, mark)| matches!(mark, Mark::Died { .. }) && start.at <= *at && *at < until);
        let outage_falls = Falls::of_spans(&outage.falls);
        let mut before = Before::default();
        // A fall begins a wave of its own, however soon it follows.
        let together =
            |a: &Absence, b: &Absence| b.at.since(a.at) <= PAUSE && outage_falls.same(a.at, b.at);
        for drops in mine.chunk_by(together) {
            let wave = outage.waves.len() as u32 + 1;
            let clients: HashSet<usize> = drops.iter().map(|a| a.client).collect();
            let lost = drops.iter().filter(|a| !a.own).map(|a| a.client);
            let lost = lost.collect::<HashSet<_>>().len();
            let first_drop = drops[0].at;
            let triggered = match asked.trigger {
                _ if start.outage == 0 => false,
                TriggerKind::Child | TriggerKind::Rolling => {
                    outage.stopping(first_drop, Duration::ZERO)
                }
                TriggerKind::Cut => {
                    let others = outage.unexplained(drops, slack);
                    others == 0 || others < least_judged(history.clients.len()) && others < lost
                }
                TriggerKind::Command | TriggerKind::Wait => {
                    !before.fell_again(&clients, history.clients.len(), died)
                }
            };
            outage.waves.push(WaveSpan {
                wave,
                fall: outage_falls.of(first_drop),
                first_drop,
                last_drop: drops[drops.len() - 1].at,
                dropped: clients.len() as u32,
                own: (clients.len() - lost) as u32,
                triggered,
                ready: ready(first_drop),
            });
            before.add(clients, history.clients.len());
            for absence in drops {
                self.returns.push(absence.row(history, start.outage, wave));
                if asked.trigger == TriggerKind::Cut {
                    let lost = &mut self.sessions[absence.client][absence.lost()];
                    lost.silenced = outage.silenced(absence.silent, absence.at);
                }
                for session in absence.sessions.clone() {
                    let place = &mut self.sessions[absence.client][session];
                    (place.outage, place.wave) = (start.outage, wave);
                }
            }
        }
        self.outages.push(outage);
    }
}

/// The dials of one return, from the drop to the reconnect.
#[must_use]
pub fn dials<'a>(client: &'a Client, row: &Return) -> &'a [Attempt] {
    let end = match row.session {
        Some(session) => client.sessions[session].attempt + 1,
        None => client.attempts.len(),
    };
    &client.attempts[end - row.attempts as usize..end]
}

/// The client with this number.
#[must_use]
pub fn client(history: &History, id: ClientId) -> Option<(usize, &Client)> {
    let index = history.place(id)?;
    Some((index, &history.clients[index]))
}

fn ready_of(mark: &Mark) -> Option<u32> {
    match mark {
        Mark::Ready { outage } => Some(*outage),
        _ => None,
    }
}

fn never_ready_of(mark: &Mark) -> Option<u32> {
    match mark {
        Mark::NeverReady { outage } => Some(*outage),
        _ => None,
    }
}

fn gone_of(mark: &Mark) -> Option<u32> {
    match mark {
        Mark::Gone { outage } => Some(*outage),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
