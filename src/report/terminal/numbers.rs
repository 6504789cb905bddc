//! The numbers below the checks: deliveries, publications, recovery, what came of resumes, why connections ended and
//! dials failed, and herd's own lag.

use std::collections::BTreeMap;

use super::offenders;
use super::text::{COLUMNS, Page, TIE, Tone, bytes, duration, ms, tied};
use super::{INDENT, SAMPLE, line};
use crate::check::Percentiles;
use crate::history::{AttemptOutcome, Elapsed, History, Mark};
use crate::report::Input;
use crate::report::escape::safe;

/// Tells them, each line with its label.
pub(super) fn tell(page: &mut Page, input: &Input<'_>) {
    page.blank();
    let mut entry = |label: &str, text: &str| {
        page.entry((Tone::Title, label), INDENT, (Tone::Plain, text));
    };
    let summary = input.summary;
    let (d, p) = (&summary.delivery, &summary.publications);
    let pairs = listed(&[
        (d.delivered, "delivered", Zero::Shown),
        (d.late, "late", Zero::Shown),
        (d.lost, "lost", Zero::Shown),
        (d.reset, "reset", Zero::Hidden),
        (d.absent, "absent", Zero::Hidden),
    ]);
    entry(
        "Delivery",
        &format!("{}: {pairs}", tied(d.expected, "expected")),
    );
    let receipts = listed(&[
        (d.duplicated, "duplicated", Zero::Shown),
        (d.reordered, "reordered", Zero::Shown),
        (d.unexpected, "unexpected", Zero::Shown),
        (d.conflict, "conflict", Zero::Shown),
        (d.redelivered, "redelivered", Zero::Hidden),
        (d.recovered, "recovered", Zero::Hidden),
        (d.foreign, "foreign", Zero::Hidden),
    ]);
    entry("", &receipts);
    let fates = listed(&[
        (p.acked, "acked", Zero::Shown),
        (p.failed, "failed", Zero::Shown),
        (p.unknown, "unknown", Zero::Shown),
        (p.double_stored, "double-stored", Zero::Hidden),
    ]);
    entry("Published", &format!("{}: {fates}", tied(p.sent, "sent")));
    for outage in &summary.outages {
        if let Some(recovery) = &outage.recovery_ms {
            let label = match summary.outages.len() {
                1 => "Recovery".to_owned(),
                _ => format!("Recovery {}", outage.outage),
            };
            entry(&label, &percentiles(recovery));
        }
    }
    for (label, counts) in [
        ("Resumes", resumes(input)),
        ("Drops", drops(input.history)),
        ("Refusals", refusals(input.history)),
    ] {
        if let Some(text) = tally(counts) {
            entry(label, &text);
        }
    }
    let g = &summary.generator;
    entry(
        "herd's lag",
        &format!(
            "p50{TIE}{}, p99{TIE}{}, max{TIE}{}; {:.1}{TIE}s CPU, {} at most",
            ms(g.lag_ms.p50),
            ms(g.lag_ms.p99),
            ms(g.lag_ms.max),
            g.cpu_s,
            bytes(g.rss_peak_bytes),
        ),
    );
    for note in notes(input.history).iter().take(SAMPLE) {
        entry("Note", note);
    }
}

fn percentiles(p: &Percentiles) -> String {
    format!(
        "p50{TIE}{}, p90{TIE}{}, p99{TIE}{}, max{TIE}{}, drop to caught up",
        ms(p.p50),
        ms(p.p90),
        ms(p.p99),
        ms(p.max)
    )
}

type Counts = BTreeMap<String, u64>;

/// What came of each resume.
fn resumes(input: &Input<'_>) -> Counts {
    let mut counts = Counts::new();
    for facts in input.verdict.sessions.iter().flatten() {
        if let Some(resume) = facts.resume {
            *counts.entry(resume.name().into()).or_default() += 1;
        }
    }
    counts
}

/// Why sessions ended, but for herd's own end of the run.
fn drops(history: &History) -> Counts {
    let mut counts = Counts::new();
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    for session in sessions.filter(|s| s.dropped().is_some()) {
        if let Some((_, cause)) = &session.closed {
            *counts.entry(offenders::cause(cause)).or_default() += 1;
        }
    }
    counts
}

/// What servers answered to handshakes that failed, and what herd's own side refused.
fn refusals(history: &History) -> Counts {
    let mut counts = Counts::new();
    for attempt in history.clients.iter().flat_map(|c| &c.attempts) {
        let what = match &attempt.outcome {
            AttemptOutcome::Handshake {
                status: Some(status),
                ..
            } => format!("status {status}"),
            AttemptOutcome::Handshake { status: None, why } => safe(why, COLUMNS / 2),
            AttemptOutcome::Local(why) => format!("here: {}", safe(why, COLUMNS / 2)),
            _ => continue,
        };
        *counts.entry(what).or_default() += 1;
    }
    counts
}

/// The commonest first.
fn tally(counts: Counts) -> Option<String> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let others: u64 = counts.iter().skip(SAMPLE).map(|(_, n)| n).sum();
    let mut parts: Vec<_> = counts
        .iter()
        .take(SAMPLE)
        .map(|(what, n)| tied(*n, what))
        .collect();
    if others > 0 {
        parts.push(tied(others, "others"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn notes(history: &History) -> Vec<String> {
    let noted = |(at, mark): &(Elapsed, Mark)| match mark {
        Mark::Note { text } => Some(line(text)),
        Mark::Died { status } => Some(format!(
            "the server ended by itself {} into the run: {}",
            duration(at.duration()),
            line(status)
        )),
        _ => None,
    };
    history.marks.iter().filter_map(noted).collect()
}

/// Whether a count of nothing is worth a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    Shown,
    Hidden,
}

/// The counts with their words, in this order.
pub(super) fn listed(counts: &[(u64, &str, Zero)]) -> String {
    let parts: Vec<_> = counts
        .iter()
        .filter(|(n, _, zero)| *n > 0 || *zero == Zero::Shown)
        .map(|(n, word, _)| tied(*n, word))
        .collect();
    parts.join(", ")
}
