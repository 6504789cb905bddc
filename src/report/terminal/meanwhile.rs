//! What users saw meanwhile: where the clients stood, how long their data was stale, and what an idempotent handler
//! behind each would have made of repeated events.

use super::numbers::percentiles;
use super::text::{TIE, count, counted, ms};
use crate::check::dedupe::DedupeFacts;
use crate::check::staleness::StalenessFacts;
use crate::check::status::StatusFacts;
use crate::report::Summary;

/// Tells them, each line with its label.
pub(super) fn tell(entry: &mut impl FnMut(&str, &str), summary: &Summary) {
    let lines = [
        ("Status", status(&summary.status, summary.clients)),
        ("Stale", stale(&summary.staleness)),
        ("Handlers", summary.dedupe.as_ref().map(handlers)),
    ];
    for (label, text) in lines {
        if let Some(text) = text {
            entry(label, &text);
        }
    }
}

/// The shares of all clients' time, and when the fewest were connected; none of no time.
fn status(facts: &StatusFacts, clients: u32) -> Option<String> {
    let (times, all) = (&facts.client_seconds, facts.client_seconds.total());
    let shares = [
        (times.connected, "connected"),
        (times.disconnected, "disconnected"),
        (times.reconnecting, "reconnecting"),
        (times.gave_up, "gave up"),
        (times.connecting, "connecting at first"),
    ];
    let shares = shares.iter().filter(|(time, _)| *time > 0.0);
    let shares: Vec<_> = shares
        .map(|(time, word)| format!("{word} {}", share(time / all)))
        .collect();
    if shares.is_empty() {
        return None;
    }
    let mut text = format!("{} of the time", shares.join(", "));
    // The way up to the first time that most were connected is no loss.
    let most = facts.series.iter().map(|row| row.connected).max()?;
    let full = facts.series.iter().position(|row| row.connected == most)?;
    let fewest = facts.series[full..].iter().min_by_key(|r| r.connected)?;
    if fewest.connected < most {
        let (n, of) = (count(fewest.connected), count(clients));
        text += &format!(
            "; fewest connected: {n}{TIE}of{TIE}{of}, at {}",
            ms(fewest.at_ms)
        );
    }
    Some(text)
}

/// A share of 1; whatever is not zero doesn't read as zero.
fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => format!("under{TIE}0.1{TIE}%"),
        percent => format!("{percent:.1}{TIE}%"),
    }
}

fn stale(facts: &StalenessFacts) -> Option<String> {
    let longest = facts.longest_ms.as_ref()?;
    let mut text = percentiles(longest, "each client's longest");
    if let Some(total) = &facts.total_ms {
        text += &format!("; in all p99{TIE}{}", ms(total.p99));
    }
    if facts.at_end > 0 {
        let stale = counted(facts.at_end, "client");
        text += &format!("; {stale} to the end");
    }
    Some(text)
}

fn handlers(facts: &DedupeFacts) -> String {
    let repeats = facts.duplicated + facts.redelivered;
    if repeats == 0 {
        return "no event was repeated".into();
    }
    let mut text = counted(repeats, "repeat");
    if facts.redelivered > 0 {
        text += &format!(" ({} allowed)", count(facts.redelivered));
    }
    let applied = facts.handlers.iter().map(|handler| {
        let mut text = format!("{} by {}", count(handler.applied_twice), handler.remembers);
        if handler.clients > 0 {
            text += &format!(" ({})", counted(handler.clients, "client"));
        }
        text
    });
    let applied: Vec<_> = applied.collect();
    text += &format!(", applied twice: {}", applied.join(", "));
    let last = count(facts.enough_last);
    text + &format!(
        "; last{TIE}{last}, or for{TIE}{}, would be enough",
        at_least(facts.enough_for_ms)
    )
}

/// A time that is not shorter for being rounded.
fn at_least(ms: f64) -> String {
    match ms {
        ..1_000.0 => format!("{}{TIE}ms", ms.ceil()),
        _ => format!("{:.2}{TIE}s", (ms / 10.0).ceil() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::dedupe::HandlerFacts;

    #[test]
    fn what_is_enough_is_never_told_too_short() {
        let told = [0.0, 4.001, 999.0, 1_000.0, 4_200.1].map(at_least);
        let told = told.map(|text| text.replace(TIE, " "));
        assert_eq!(told, ["0 ms", "5 ms", "999 ms", "1.00 s", "4.21 s"]);
    }

    #[test]
    fn handlers_are_told_with_what_would_be_enough() {
        let handler = |remembers: &str, applied_twice, clients| HandlerFacts {
            remembers: remembers.into(),
            applied_twice,
            redelivered: 0,
            clients,
        };
        let facts = DedupeFacts {
            duplicated: 40,
            redelivered: 3,
            handlers: vec![
                handler("everything", 0, 0),
                handler("last 100", 1_200, 3),
                handler("for 10m", 0, 0),
            ],
            enough_last: 2_000,
            enough_for_ms: 4_200.0,
        };
        let told = handlers(&facts).replace(TIE, " ");
        insta::assert_snapshot!(told, @"43 repeats (3 allowed), applied twice: 0 by everything, 1,200 by last 100 (3 clients), 0 by for 10m; last 2,000, or for 4.20 s, would be enough");
        assert_eq!(handlers(&DedupeFacts::default()), "no event was repeated");
    }

    #[test]
    fn a_little_time_is_not_told_as_none() {
        assert_eq!(share(0.000_1).replace(TIE, " "), "under 0.1 %");
        assert_eq!(share(0.789).replace(TIE, " "), "78.9 %");
    }
}
