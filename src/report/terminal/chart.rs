//! Reconnects over time as bars: connections made, failed dials, requests for the full state, and where everybody stood, on
//! one axis of time.

use crate::check::{OutageFacts, Verdict};
use crate::history::{AttemptOutcome, Elapsed, History};
use crate::report::csv::place;

use super::stack::{self, Columns};
use super::text::{Page, Tone, count, ms};

/// Columns of bars.
const BARS: usize = 60;
/// Columns before the first bar.
const MARGIN: usize = 18;
/// Columns between two ticks of the axis.
const TICK: usize = 10;
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A charted stretch of time with what happened in it worth a mark.
struct Stretch {
    from: Elapsed,
    until: Elapsed,
    marks: Vec<(Elapsed, String)>,
}

/// As many outages are drawn one by one; more share one chart of the whole run.
const DRAWN_ALONE: usize = 3;

/// Draws every outage.
pub(super) fn draw(page: &mut Page, history: &History, verdict: &Verdict) {
    let outages: Vec<_> = verdict
        .outages
        .iter()
        .filter_map(|o| Some((o, instant(o.first_drop_ms?))))
        .collect();
    let Some((_, first)) = outages.first() else {
        return;
    };
    if outages.len() > DRAWN_ALONE {
        let marks = outages
            .iter()
            .map(|(o, from)| (*from, o.outage.to_string()))
            .collect();
        stretch(
            page,
            history,
            verdict,
            Stretch {
                from: *first,
                until: history.horizon,
                marks,
            },
        );
        return;
    }
    for (n, (outage, from)) in outages.iter().enumerate() {
        let until = outages
            .get(n + 1)
            .map_or(history.horizon, |(_, next)| *next);
        stretch(
            page,
            history,
            verdict,
            Stretch {
                from: *from,
                until,
                marks: marks(outage),
            },
        );
    }
}

fn marks(outage: &OutageFacts) -> Vec<(Elapsed, String)> {
    let mut marks = Vec::new();
    if let Some(ready) = outage.ready_ms {
        marks.push((instant(ready), "ready".to_owned()));
    }
    marks
}

fn instant(ms: f64) -> Elapsed {
    Elapsed((ms * 1e3).round() as u64)
}

fn stretch(page: &mut Page, history: &History, verdict: &Verdict, stretch: Stretch) {
    let within = |at: &Elapsed| stretch.from <= *at && *at < stretch.until;
    // Gone through twice rather than gathered: a herd that dials without pause makes millions.
    let made = || made(history, verdict).filter(within);
    let failed = || failed(history, verdict).filter(within);
    let asked = || asked(history).filter(within);
    let Some(last) = made().chain(failed()).chain(asked()).max() else {
        return;
    };
    let step = step(last.since(stretch.from).as_micros() as u64);
    let bin = |bins: [u64; BARS], at: Elapsed| {
        let n = (at.micros() - stretch.from.micros()) / step;
        let mut bins = bins;
        bins[(n as usize).min(BARS - 1)] += 1;
        bins
    };
    let opened = made().fold([0; BARS], bin);
    let refused = failed().fold([0; BARS], bin);
    let reloads = asked().fold([0; BARS], bin);
    let columns = Columns {
        from: stretch.from.micros(),
        until: stretch.until.min(history.horizon).micros(),
        step,
        count: BARS,
    };
    page.blank();
    markers(page, &stretch, step);
    bars(page, "opened", Tone::Good, 4, &opened);
    if refused.iter().any(|n| *n > 0) {
        bars(page, "failed", Tone::Bad, 2, &refused);
    }
    if reloads.iter().any(|n| *n > 0) {
        bars(page, "reload", Tone::Doubtful, 2, &reloads);
    }
    let series = &verdict.status.series;
    stack::draw(page, MARGIN - 1, &columns, series);
    axis(page, step);
    stack::legend(page, MARGIN - 1, &columns, series);
}

/// When each reconnect was open.
fn made<'a>(history: &'a History, verdict: &'a Verdict) -> impl Iterator<Item = Elapsed> + 'a {
    verdict.returns.iter().filter_map(|r| {
        let client = &history.clients[place(history, r.client)?];
        Some(client.sessions.get(r.session?)?.opened)
    })
}

/// When each dial of the server's refusing was over: refused, timed out, a failed handshake, or open too shortly.
fn failed<'a>(history: &'a History, verdict: &'a Verdict) -> impl Iterator<Item = Elapsed> + 'a {
    history
        .clients
        .iter()
        .zip(&verdict.sessions)
        .flat_map(|(client, facts)| {
            let mut sessions = facts.iter();
            client.attempts.iter().filter_map(move |attempt| {
                let failed = match &attempt.outcome {
                    AttemptOutcome::Opened => sessions.next().is_some_and(|s| s.flapped),
                    AttemptOutcome::Refused
                    | AttemptOutcome::Timeout
                    | AttemptOutcome::Handshake { .. } => true,
                    AttemptOutcome::Local(_) | AttemptOutcome::Aborted => false,
                };
                failed.then_some(attempt.ended)
            })
        })
}

/// When each client asked for the full state.
fn asked(history: &History) -> impl Iterator<Item = Elapsed> + '_ {
    let reloads = history.clients.iter().flat_map(|client| &client.reloads);
    reloads.map(|reload| reload.asked)
}

/// The smallest handy column, in microseconds, that lets the whole stretch fit.
fn step(micros: u64) -> u64 {
    let least = micros / BARS as u64 + 1;
    (3..)
        .flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power)))
        .find(|step| *step >= least)
        .unwrap_or(u64::MAX)
}

fn markers(page: &mut Page, stretch: &Stretch, step: u64) {
    let mut line = String::new();
    for (at, label) in &stretch.marks {
        let bin = (at.micros().saturating_sub(stretch.from.micros()) / step) as usize;
        let used = line.chars().count();
        if bin < BARS && bin >= used {
            line.extend(std::iter::repeat_n(' ', bin - used));
            line.push_str(&format!("▼ {label} "));
        }
    }
    // A label near the right edge would hang over it.
    let line: String = line.chars().take(BARS).collect();
    if !line.trim().is_empty() {
        page.line(&[(Tone::Quiet, &format!("{:MARGIN$}{line}", ""))]);
    }
}

fn bars(page: &mut Page, name: &str, tone: Tone, height: u64, bins: &[u64; BARS]) {
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    for row in (0..height).rev() {
        let label = if row + 1 == height {
            format!("  {name} {:>7} ", count(most))
        } else {
            String::new()
        };
        let bars: String = bins
            .iter()
            .map(|n| {
                // Whatever is not zero is seen.
                let eighths = (n * height * 8).div_ceil(most);
                EIGHTHS[eighths.saturating_sub(row * 8).min(8) as usize]
            })
            .collect();
        let margin = MARGIN - 1;
        page.line(&[
            (Tone::Plain, &format!("{label:<margin$}")),
            (Tone::Quiet, "│"),
            (tone, &bars),
        ]);
    }
}

fn axis(page: &mut Page, step: u64) {
    let line: String = (0..BARS)
        .map(|n| if n % TICK == 0 { '┴' } else { '─' })
        .collect();
    let margin = MARGIN - 1;
    page.line(&[(Tone::Quiet, &format!("{:margin$}└{line}", ""))]);
    let label = |n: usize| match n {
        0 => "0".to_owned(),
        n => seconds(step * (n * TICK) as u64),
    };
    let labels: String = (0..BARS / TICK)
        .map(|n| format!("{:<TICK$}", label(n)))
        .collect();
    let caption = format!("{:>margin$}", format!("each bar {} ", seconds(step)));
    page.line(&[(Tone::Quiet, &format!("{caption} {labels}"))]);
}

/// A time without needless digits: `0.1 s`, `20 s`.
fn seconds(micros: u64) -> String {
    match micros {
        0..1_000 => ms(micros as f64 / 1e3),
        1_000..100_000 => format!("{} ms", micros / 1_000),
        _ => format!("{} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_handy_and_suffice() {
        assert_eq!(step(0), 1_000);
        assert_eq!(step(5_900_000), 100_000);
        assert_eq!(step(6_100_000), 200_000);
        for micros in [1, 59_999, 60_000, 60_001, 123_456_789] {
            assert!(micros / step(micros) < BARS as u64);
        }
    }

    #[test]
    fn one_among_many_is_still_seen() {
        let mut bins = [0; BARS];
        (bins[0], bins[1]) = (1_000, 1);
        let mut page = Page::new(super::super::Colour::Never);
        bars(&mut page, "opened", Tone::Good, 2, &bins);
        assert_eq!(page.finish(), "  opened   1,000 │█\n                 │█▁\n");
    }
}
