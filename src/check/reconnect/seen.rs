//! What was seen of the server in one outage, counted: what came of resumes, why sessions ended, what dials met. It judges
//! nothing.

use std::collections::BTreeMap;

use super::{Case, measure};
use crate::check::timeline::{self, OutageSpan};
use crate::check::{ResumeFacts, ResumeOutcome, Return};
use crate::history::{Cause, Client, Elapsed, Session};

/// What came of each resume of the outage, those included that were refused before there was a session.
pub(super) fn resumes(case: &Case<'_>, outage: &OutageSpan) -> ResumeFacts {
    let mut facts = ResumeFacts::default();
    for (places, outcomes) in case.timeline.sessions.iter().zip(&case.delivery.resumes) {
        for (place, outcome) in places.iter().zip(outcomes) {
            match outcome.filter(|_| place.outage == outage.outage) {
                Some(ResumeOutcome::Resumed) => facts.resumed += 1,
                Some(ResumeOutcome::Reset) => facts.reset += 1,
                Some(ResumeOutcome::MissedReset) => facts.missed_reset += 1,
                Some(ResumeOutcome::Refused) => facts.refused += 1,
                Some(ResumeOutcome::NeverResumed) => facts.never_resumed += 1,
                None => {}
            }
        }
    }
    let begins = outage.waves.first().map(|wave| wave.first_drop);
    let within = |at: &Elapsed| begins.is_some_and(|b| b <= *at) && *at < outage.until;
    let clients = case.history.clients.iter();
    let dials = clients.flat_map(|c| c.refused_dials.iter().map(|(at, _)| *at));
    facts.refused += dials.filter(within).count() as u64;
    facts
}

/// Why the sessions ended that were lost in the outage, and those that came of it and were too short.
pub(super) fn causes(case: &Case<'_>, outage: u32, rows: &[Return]) -> BTreeMap<String, u64> {
    let lost = rows.iter().filter_map(|row| lost(case, row));
    let clients = case.history.clients.iter().zip(&case.timeline.sessions);
    let flapped = clients.flat_map(|(client, places)| {
        let sessions = client.sessions.iter().zip(places);
        sessions.filter_map(|(s, p)| (p.flapped && p.outage == outage).then_some(s))
    });
    let ended = lost.chain(flapped).filter(|s| s.dropped().is_some());
    count(ended.filter_map(|s| s.closed.as_ref().map(|(_, cause)| Cause::label(cause))))
}

/// What the failed dials of the outage met.
pub(super) fn statuses(case: &Case<'_>, rows: &[Return]) -> BTreeMap<String, u64> {
    count(measure::dials(case.history, rows).filter_map(|a| a.outcome.label()))
}

/// The session that a return begins with the loss of.
fn lost<'a>(case: &Case<'a>, row: &Return) -> Option<&'a Session> {
    let (index, client): (usize, &'a Client) = timeline::client(case.history, row.client)?;
    let places = case.timeline.sessions.get(index)?;
    let sessions = client.sessions.iter().zip(places).rev();
    let mut used = sessions.filter(|(_, place)| !place.flapped);
    used.find_map(|(session, _)| (session.opened <= row.dropped).then_some(session))
}

fn count(words: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    counts
}
