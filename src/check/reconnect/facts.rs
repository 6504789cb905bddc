//! One outage in numbers: the shape of `summary.json`. It judges nothing.

use std::time::Duration;

use super::Case;
use super::measure::{self, Measured};
use super::seen;
use crate::check::timeline::{self, OutageSpan};
use crate::check::{AttemptFacts, Ms, OutageFacts, Percentiles, ReconnectFacts, Return, WaveFacts};
use crate::history::{AttemptOutcome, Elapsed, Quit};

/// The facts of the outage at this place of the timeline.
pub(super) fn facts(
    case: &Case<'_>,
    place: usize,
    outage: &OutageSpan,
    waves: &[Measured],
) -> OutageFacts {
    let rows = case.timeline.of_outage(outage.outage);
    let dropped: u32 = count_clients(rows.iter());
    let reconnected = count_back(rows);
    let away = rows.iter().filter(|r| r.session.is_none());
    let gave_up = away.filter(|r| matches!(case.quit(r), Some(Quit::GaveUp)));
    let recoveries = rows.iter().filter_map(|r| case.recovery(r));
    OutageFacts {
        outage: outage.outage,
        trigger: match outage.outage {
            0 => "none".into(),
            _ => case
                .history
                .header
                .terms
                .outage(outage.outage)
                .trigger
                .name()
                .into(),
        },
        trigger_ms: outage.trigger.map(Elapsed::millis),
        first_drop_ms: outage.waves.first().map(|w| w.first_drop.millis()),
        last_drop_ms: outage.waves.last().map(|w| w.last_drop.millis()),
        ready_ms: outage.ready.map(Elapsed::millis),
        dropped,
        reconnected,
        gave_up: gave_up.count() as u32,
        flapped: flapped(case, outage.outage),
        reconnect: reconnects(case, rows),
        attempts: attempts(case, rows),
        resumes: seen::resumes(case, outage),
        causes: seen::causes(case, outage.outage, rows),
        statuses: seen::statuses(case, rows),
        recovery_ms: percentiles(recoveries.collect()),
        exposed_clients: case.delivery.exposed.get(place).copied().unwrap_or(0),
        waves: waves.iter().map(|w| wave_facts(case, outage, w)).collect(),
        // Told elsewhere.
        refresh: None,
        reload: None,
    }
}

/// Distinct clients; rows of one outage may name one more than once.
pub(super) fn count_clients<'a>(rows: impl Iterator<Item = &'a Return>) -> u32 {
    let mut clients: Vec<_> = rows.map(|r| r.client).collect();
    clients.sort_unstable();
    clients.dedup();
    clients.len() as u32
}

/// Of the clients of these rows, those that came back from all of them.
fn count_back(rows: &[Return]) -> u32 {
    let away = rows.iter().filter(|row| row.session.is_none());
    count_clients(rows.iter()) - count_clients(away)
}

fn flapped(case: &Case<'_>, outage: u32) -> u32 {
    let places = case.timeline.sessions.iter().flatten();
    places.filter(|p| p.flapped && p.outage == outage).count() as u32
}

fn reconnects(case: &Case<'_>, rows: &[Return]) -> ReconnectFacts {
    let back: Vec<_> = rows
        .iter()
        .filter_map(|r| measure::reconnect(case.history, r))
        .collect();
    let mut opened: Vec<Elapsed> = back.iter().map(|a| a.ended).collect();
    opened.sort_unstable();
    let (Some(first), Some(last)) = (opened.first(), opened.last()) else {
        return ReconnectFacts::default();
    };
    let rank = |q: f64| opened[((opened.len() as f64 * q).ceil() as usize).max(1) - 1];
    ReconnectFacts {
        first_ms: Some(first.millis()),
        last_ms: Some(last.millis()),
        span_ms: Some(ms(last.since(*first))),
        dialled_span_ms: Some(ms(measure::span(back.iter().map(|a| a.dialled)))),
        p5_p95_ms: Some(ms(rank(0.95).since(rank(0.05)))),
        peak_100ms: measure::busiest(opened.clone(), Duration::from_millis(100)) as u32,
        peak_1s: measure::busiest(opened, Duration::from_secs(1)) as u32,
    }
}

fn attempts(case: &Case<'_>, rows: &[Return]) -> AttemptFacts {
    let mut facts = AttemptFacts::default();
    for row in rows {
        let Some((_, client)) = timeline::client(case.history, row.client) else {
            continue;
        };
        let dials = timeline::dials(client, row);
        for (place, attempt) in dials.iter().enumerate() {
            match attempt.outcome {
                AttemptOutcome::Opened if row.session.is_some() && place + 1 == dials.len() => {
                    facts.opened += 1;
                }
                AttemptOutcome::Opened => facts.flapped += 1,
                AttemptOutcome::Refused => facts.refused += 1,
                AttemptOutcome::Timeout => facts.timeout += 1,
                AttemptOutcome::Handshake { .. } => facts.handshake += 1,
                AttemptOutcome::Local(_) | AttemptOutcome::Aborted => {}
            }
        }
    }
    facts.total = facts.opened + facts.refused + facts.timeout + facts.handshake + facts.flapped;
    let peak = measure::peak(case.history, rows, Duration::from_secs(1));
    facts.peak_1s = peak.dialled.max(peak.reached);
    facts
}

fn wave_facts(case: &Case<'_>, outage: &OutageSpan, wave: &Measured) -> WaveFacts {
    let rows = case.timeline.of_wave(outage.outage, wave.part.wave());
    let peak = measure::peak(case.history, rows, Duration::from_secs(1));
    let span = |span| (wave.back > 0).then(|| ms(span));
    WaveFacts {
        wave: wave.part.wave(),
        dropped: count_clients(rows.iter()),
        reconnected: count_back(rows),
        span_ms: span(wave.span.reached),
        dialled_span_ms: span(wave.span.dialled),
        peak_1s: peak.dialled.max(peak.reached),
    }
}

pub(crate) fn percentiles(mut values: Vec<Duration>) -> Option<Percentiles> {
    let mut rank = |q| quantile(&mut values, q).map(ms);
    Some(Percentiles {
        p50: rank(0.5)?,
        p90: rank(0.9)?,
        p99: rank(0.99)?,
        max: rank(1.0)?,
    })
}

/// A quantile by nearest rank; none of nothing.
pub(super) fn quantile(values: &mut [Duration], q: f64) -> Option<Duration> {
    let rank = (values.len() as f64 * q).ceil() as usize;
    (!values.is_empty()).then(|| *values.select_nth_unstable(rank.max(1) - 1).1)
}

fn ms(duration: Duration) -> Ms {
    duration.as_micros() as f64 / 1e3
}
