//! How late herd itself was, and whether it had the means: past its limits nothing that it measured can be trusted.
//!
//! It never fails: a slow herd says nothing about the server. Rule 7 of judgement makes the timing checks listen.

use std::time::Duration;

use super::words::text;
use super::{Check, Finding, GeneratorFacts, LagFacts, Outcome};
use crate::history::{AttemptOutcome, ClientId, Elapsed, History, Mark};

/// The limit of the 99th percentile of herd's lag, and the least that its largest is held to.
const P99: Duration = Duration::from_millis(50);
/// The limit of the largest lag where no spread is asked for, of which it would be a tenth.
const LARGEST: Duration = Duration::from_millis(500);

/// What became of herd itself.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// The numbers.
    pub facts: GeneratorFacts,
    /// The answer.
    pub finding: Finding,
}

/// Judges herd itself.
#[must_use]
pub fn assess(history: &History) -> Assessment {
    let terms = &history.header.terms;
    let most = match terms.min_spread {
        Duration::ZERO => LARGEST,
        spread => (spread / 10).max(P99),
    };
    let mut lags = lags(history);
    let measured = !lags.is_empty();
    let lag = LagFacts {
        p50: ms(at(&mut lags, 0.5)),
        p99: ms(at(&mut lags, 0.99)),
        max: ms(at(&mut lags, 1.0)),
    };
    let mut why = Vec::new();
    if !measured {
        why.push("herd dialled nobody, so there is nothing to measure".to_owned());
    }
    if lag.p99 > ms(P99) || lag.max > ms(most) {
        why.push(
            "herd was late itself: use a machine with less other work, fewer clients or several --shard".to_owned(),
        );
    }
    why.extend(local_errors(history));
    let (cpu, rss_peak_bytes) = usage(history);
    let outcome = if why.is_empty() {
        Outcome::Pass
    } else {
        Outcome::Unknown
    };
    Assessment {
        finding: Finding {
            check: Check::Generator,
            outage: None,
            outcome,
            measured: format!("lag p99 {:.1} ms, max {:.1} ms", lag.p99, lag.max),
            limit: format!("p99 {}, max {}", text(P99), text(most)),
            why: why.join("; "),
        },
        facts: GeneratorFacts {
            lag_ms: lag,
            cpu_s: cpu.as_secs_f64(),
            rss_peak_bytes,
        },
    }
}

/// Dialled minus due of every dial, first sent minus due of every publication.
fn lags(history: &History) -> Vec<Duration> {
    let dials = history.clients.iter().flat_map(|c| &c.attempts);
    let dials = dials.map(|a| a.dialled.since(a.due));
    let sent = history.publications.values();
    dials
        .chain(sent.map(|p| p.first_sent.since(p.due)))
        .collect()
}

/// The quantile by nearest rank; zero where there is nothing.
fn at(values: &mut [Duration], quantile: f64) -> Duration {
    if values.is_empty() {
        return Duration::ZERO;
    }
    let rank = (values.len() as f64 * quantile).ceil() as usize;
    *values.select_nth_unstable(rank.max(1) - 1).1
}

/// Dials that herd's own side could not make.
fn local_errors(history: &History) -> Option<String> {
    let mut count = 0;
    let mut first: Option<(Elapsed, ClientId, &str)> = None;
    for client in &history.clients {
        for attempt in &client.attempts {
            if let AttemptOutcome::Local(why) = &attempt.outcome {
                count += 1;
                let this = (attempt.dialled, client.id, &**why);
                first = Some(first.map_or(this, |first| first.min(this)));
            }
        }
    }
    first.map(|(_, client, why)| {
        format!(
            "herd could not make {count} dials for want of descriptors, ports or addresses (client {} first: {why}); \
             raise the limit or use --source-ip",
            client.0
        )
    })
}

/// CPU time over all shards, and the largest peak of memory. One shard's marks are running totals.
fn usage(history: &History) -> (Duration, u64) {
    let marks = history.marks.iter().filter_map(|(_, mark)| match mark {
        Mark::Usage { cpu, rss_peak } => Some((*cpu, *rss_peak)),
        _ => None,
    });
    let marks: Vec<_> = marks.collect();
    let cpu = if history.shards.len() > 1 {
        marks.iter().map(|(cpu, _)| *cpu).sum()
    } else {
        marks.iter().map(|(cpu, _)| *cpu).max().unwrap_or_default()
    };
    (
        cpu,
        marks.iter().map(|(_, rss)| *rss).max().unwrap_or_default(),
    )
}

fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
