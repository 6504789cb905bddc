//! One client's losses of its connection and what came of each. It knows nothing of waves and outages.

use std::ops::Range;

use super::FLAP;
use crate::check::Return;
use crate::history::{Cause, Client, Elapsed, Entry, History};

/// One client's loss of its connection, before it is known which outage it belongs to.
#[derive(Debug)]
pub(super) struct Absence {
    pub(super) client: usize,
    pub(super) at: Elapsed,
    /// When the lost session was opened, where it ended half-open and was really lost earlier.
    pub(super) half_open: Option<Elapsed>,
    /// When the last sign of life came, where the lost session ended because there were no more.
    pub(super) silent: Option<Elapsed>,
    /// herd itself ended the lost session: by its profile, or because the client started anew.
    pub(super) own: bool,
    /// The sessions that came of it: flapped ones, then the reconnect.
    pub(super) sessions: Range<usize>,
    /// Whether the last of these is a reconnect.
    pub(super) back: bool,
    pub(super) dials: Range<usize>,
}

impl Absence {
    /// Which session was lost.
    pub(super) fn lost(&self) -> usize {
        self.sessions.start - 1
    }

    pub(super) fn row(&self, history: &History, outage: u32, wave: u32) -> Return {
        Return {
            outage,
            wave,
            client: history.clients[self.client].id,
            dropped: self.at,
            session: self.back.then(|| self.sessions.end - 1),
            attempts: self.dials.len() as u32,
        }
    }
}

/// Rule 1, for each session. Only where one was short are the receipts read. One that the server refused to resume, or that
/// ended because the opening was declined or not answered, has not been of use however long that took.
pub(super) fn flapped(client: &Client, history: &History) -> Vec<bool> {
    let short = client.sessions.iter().map(|s| {
        let end = s.closed.as_ref().map_or(history.horizon, |(at, _)| *at);
        let declined = matches!(s.closed, Some((_, Cause::Declined(_) | Cause::Unanswered)));
        declined || s.refused.is_some() || end.since(s.opened) < FLAP
    });
    let mut flapped: Vec<bool> = short.collect();
    if flapped.contains(&true) {
        for entry in client.entries(history) {
            if let Entry::Receipt(receipt) = entry
                && let Some(flapped) = flapped.get_mut(receipt.session)
            {
                *flapped = false;
            }
        }
    }
    flapped
}

pub(super) fn absences_of(index: usize, client: &Client, flapped: &[bool]) -> Vec<Absence> {
    let mut absences = Vec::new();
    for (place, session) in client.sessions.iter().enumerate() {
        let Some(at) = session.dropped().filter(|_| !flapped[place]) else {
            continue;
        };
        let back = (place + 1..flapped.len()).find(|s| !flapped[*s]);
        let first_dial = session.attempt + 1;
        absences.push(Absence {
            client: index,
            at,
            half_open: matches!(session.closed, Some((_, Cause::HalfOpen)))
                .then_some(session.opened),
            silent: session.silent_since,
            own: matches!(
                session.closed,
                Some((_, Cause::Unanswered | Cause::Refreshed))
            ),
            sessions: place + 1..back.map_or(flapped.len(), |b| b + 1),
            back: back.is_some(),
            dials: first_dial
                ..back.map_or(client.attempts.len(), |b| client.sessions[b].attempt + 1),
        });
    }
    absences
}
