//! The numbers below the checks: deliveries, publications, recovery, what came of resumes, why connections ended and
//! dials failed, and herd's own lag.

use std::collections::BTreeMap;

use super::text::{COLUMNS, Page, TIE, Tone, bytes, count, counted, duration, ms, tied};
use super::{INDENT, SAMPLE, line, meanwhile, renewal};
use crate::check::{GeneratorFacts, Percentiles, ResumeFacts};
use crate::history::{AttemptOutcome, Elapsed, History, Mark, Source};
use crate::report::escape::safe;
use crate::report::{Input, RetryAfter, Summary};

/// Tells them, each line with its label.
pub(super) fn tell(page: &mut Page, input: &Input<'_>) {
    page.blank();
    let mut entry = |label: &str, text: &str| {
        page.entry((Tone::Title, label), INDENT, (Tone::Plain, text));
    };
    let summary = input.summary;
    let simulated = input.history.header.terms.source == Source::Nobody;
    if simulated {
        entry("Delivery", "not judged: nobody publishes in a simulation");
    } else {
        delivery(&mut entry, summary);
    }
    for outage in &summary.outages {
        if let Some(recovery) = &outage.recovery_ms {
            let label = match summary.outages.len() {
                1 => "Recovery".to_owned(),
                _ => format!("Recovery {}", outage.outage),
            };
            let until = if simulated { "open" } else { "caught up" };
            entry(&label, &percentiles(recovery, &format!("drop to {until}")));
        }
    }
    meanwhile::tell(&mut entry, summary);
    for outage in &summary.outages {
        if let Some(text) = resumes(&outage.resumes) {
            let label = match summary.outages.len() {
                1 => "Resumes".to_owned(),
                _ => format!("Resumes {}", outage.outage),
            };
            entry(&label, &text);
        }
    }
    for (label, counts) in [
        ("Drops", drops(input.history)),
        ("Refusals", refusals(input.history)),
        ("Declined", declined(input)),
    ] {
        if let Some(text) = tally(counts) {
            entry(label, &text);
        }
    }
    if let Some(told) = &summary.retry_after {
        entry("Asked to", &retry_after(told));
    }
    for server in &summary.health {
        entry(
            "Server",
            &renewal::health(server, summary.health.len(), input.history.horizon),
        );
    }
    for death in summary.deaths.iter().take(SAMPLE) {
        for (n, text) in renewal::death(death).iter().enumerate() {
            entry(if n == 0 { "Died" } else { "" }, text);
        }
    }
    if !simulated {
        entry("herd's lag", &lag(&summary.generator));
    }
    for note in notes(input.history).iter().take(SAMPLE) {
        entry("Note", note);
    }
}

fn lag(g: &GeneratorFacts) -> String {
    format!(
        "p50{TIE}{}, p99{TIE}{}, max{TIE}{}; {:.1}{TIE}s CPU, {} at most",
        ms(g.lag_ms.p50),
        ms(g.lag_ms.p99),
        ms(g.lag_ms.max),
        g.cpu_s,
        bytes(g.rss_peak_bytes),
    )
}

fn delivery(entry: &mut impl FnMut(&str, &str), summary: &Summary) {
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
}

pub(super) fn percentiles(p: &Percentiles, what: &str) -> String {
    format!(
        "p50{TIE}{}, p90{TIE}{}, p99{TIE}{}, max{TIE}{}, {what}",
        ms(p.p50),
        ms(p.p90),
        ms(p.p99),
        ms(p.max)
    )
}

type Counts = BTreeMap<String, u64>;

/// What came of each resume; none where there was none.
fn resumes(r: &ResumeFacts) -> Option<String> {
    let text = listed(&[
        (r.resumed, "resumed", Zero::Hidden),
        (r.reset, "reset", Zero::Hidden),
        (r.missed_reset, "missed\u{a0}reset", Zero::Hidden),
        (r.refused, "refused", Zero::Hidden),
        (r.never_resumed, "never\u{a0}resumed", Zero::Hidden),
    ]);
    (!text.is_empty()).then_some(text)
}

/// The server's words.
fn declined(input: &Input<'_>) -> Counts {
    let declined = input.summary.declined.iter();
    declined
        .map(|d| (format!("\"{}\"", safe(&d.why, COLUMNS / 2)), d.times))
        .collect()
}

/// Whether anybody obeyed is the backoff preset's business.
fn retry_after(told: &RetryAfter) -> String {
    let range = if told.min_ms == told.max_ms {
        ms(told.p50_ms)
    } else {
        format!(
            "{} at the median ({} to {})",
            ms(told.p50_ms),
            ms(told.min_ms),
            ms(told.max_ms)
        )
    };
    let times = counted(told.told, "time");
    format!("come back after {range}, {times}: told, obeyed only where the backoff preset does")
}

/// Why sessions ended, but for herd's own end of the run.
fn drops(history: &History) -> Counts {
    let mut counts = Counts::new();
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    for session in sessions.filter(|s| s.dropped().is_some()) {
        if let Some((_, cause)) = &session.closed {
            *counts.entry(cause.label()).or_default() += 1;
        }
    }
    counts
}

/// What failed dials met, and what herd's own side refused.
fn refusals(history: &History) -> Counts {
    let mut counts = Counts::new();
    for attempt in history.clients.iter().flat_map(|c| &c.attempts) {
        let what = match &attempt.outcome {
            AttemptOutcome::Handshake { status: None, why } => safe(why, COLUMNS / 2),
            AttemptOutcome::Local(why) => format!("here: {}", safe(why, COLUMNS / 2)),
            other => match other.label() {
                Some(label) => label,
                None => continue,
            },
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
        .map(|(what, n)| times(what, *n))
        .collect();
    if others > 0 {
        parts.push(times("others", others));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `1012 x 950`
fn times(what: &str, n: u64) -> String {
    format!("{what}{TIE}x{TIE}{}", count(n))
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
