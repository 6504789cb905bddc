//! Whether what the profile's opening waits for ever came: where it never did, the profile is wrong, or nobody can tell it
//! from a wrong one, and what its clients did says nothing of the server.
//!
//! It knows sessions and what they waited for, and judges no server.

use std::collections::HashSet;

use super::{Check, Finding, Outcome};
use crate::history::{Cause, Client, Entry, History, Session};

/// Why nothing can be judged, if so: no session at all finished the opening; or none that resumed did, though events came
/// in one, so that the server did serve it. A server that only falls silent after a restart is no such case.
pub(super) fn unfit(history: &History) -> Option<String> {
    let who = if never(history) {
        "no session ever finished the opening that the profile describes"
    } else if none_finished(history, |s| s.resumed_from.is_some()) && served(history) {
        "no session that resumed ever finished the opening that the profile describes, though events came"
    } else {
        return None;
    };
    Some(format!("{who}; {}", hint(history)?))
}

/// Whether no session of the history finished the profile's opening.
#[must_use]
pub fn never(history: &History) -> bool {
    none_finished(history, |_| true)
}

/// Whether there were such sessions, and none of them finished it. What is still open in a cut record may be finished.
fn none_finished(history: &History, such: fn(&Session) -> bool) -> bool {
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    let mut sessions = sessions.filter(|s| such(s)).peekable();
    sessions.peek().is_some() && sessions.all(|s| s.unanswered.is_some())
}

/// What was waited for and what came instead, as it was told in most words, and what to do.
#[must_use]
pub fn hint(history: &History) -> Option<String> {
    let told = |client: &Client| {
        let texts = client
            .sessions
            .iter()
            .filter_map(|s| s.unanswered.as_deref());
        Some((client.id, texts.max_by_key(|text| text.len())?.to_owned()))
    };
    let clients = history.clients.iter().filter_map(told);
    let (id, text) = clients.reduce(|a, b| if b.1.len() > a.1.len() { b } else { a })?;
    Some(format!(
        "client {} waited at {}; let expect fit what the server answers, and try it with herd profile check",
        id.0,
        text.escape_debug()
    ))
}

/// How many sessions herd's own profile ended.
pub(super) fn ended(history: &History) -> usize {
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    sessions
        .filter(|s| matches!(s.closed, Some((_, Cause::Unanswered))))
        .count()
}

/// Makes Unknown what can't be judged. herd's own lag is what it was.
pub(super) fn doubt(findings: &mut [Finding], why: &str) {
    for finding in findings.iter_mut().filter(|f| f.check != Check::Generator) {
        let already = finding.outcome == Outcome::Unknown;
        finding.outcome = Outcome::Unknown;
        finding.why = match finding.check {
            Check::ExactlyOnce if already => format!("{why}; {}", finding.why),
            Check::ExactlyOnce => why.to_owned(),
            _ if already => continue,
            _ => "the profile's opening was never finished (see exactly-once)".to_owned(),
        };
    }
}

/// Whether an event came in a resumed session whose opening was not finished.
fn served(history: &History) -> bool {
    history.clients.iter().any(|client| {
        let waiting: HashSet<usize> = (0..)
            .zip(&client.sessions)
            .filter(|(_, s)| s.resumed_from.is_some() && s.unanswered.is_some())
            .map(|(index, _)| index)
            .collect();
        !waiting.is_empty()
            && client.entries(history).any(|entry| match entry {
                Entry::Receipt(receipt) => waiting.contains(&receipt.session),
                _ => false,
            })
    })
}
