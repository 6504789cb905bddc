//! Clients that began anew and servers' health, as people read them.

use std::time::Duration;

use super::line;
use super::text::{TIE, bytes, count, counted, ms, tied};
use crate::check::health::{Death, HealthFacts};
use crate::check::{OutageFacts, RefreshFacts, ReloadFacts};
use crate::history::Elapsed;

/// What an outage's lines say of clients that began anew.
pub(super) fn of_outage(outage: &OutageFacts) -> Vec<String> {
    let refresh = outage.refresh.as_ref().map(refresh);
    let reload = outage.reload.as_ref().map(reload);
    refresh.into_iter().chain(reload).collect()
}

fn refresh(facts: &RefreshFacts) -> String {
    let mut text = counted(facts.refreshed, "refresh").replace("refreshs", "refreshes");
    if facts.kept > 0 {
        text += &format!(", {}", tied(facts.kept, "with their cursor"));
    }
    if facts.lost > 0 {
        let mut given = Vec::new();
        if facts.given_nothing > 0 {
            given.push(format!("nothing to {}", count(facts.given_nothing)));
        }
        if facts.given_some > 0 {
            let events = match facts.some_least == facts.some_most {
                true => counted(facts.some_most, "event"),
                false => format!(
                    "{} to {}",
                    count(facts.some_least),
                    counted(facts.some_most, "event")
                ),
            };
            let from = facts
                .some_from
                .map(|n| format!(" from number {}", count(n)));
            let from = from.unwrap_or_default();
            given.push(format!("{events}{from} to {}", count(facts.given_some)));
        }
        if facts.given_everything > 0 {
            given.push(format!("everything to {}", count(facts.given_everything)));
        }
        if facts.away > 0 {
            given.push(format!("{} not back", count(facts.away)));
        }
        text += &format!(
            ", {} as new clients, who were given of the past: {}",
            count(facts.lost),
            given.join(", ")
        );
    }
    text
}

fn reload(facts: &ReloadFacts) -> String {
    let mut text = format!(
        "{}: {}, {}",
        counted(facts.done + facts.failed, "reload"),
        tied(facts.done, "done"),
        tied(facts.failed, "failed")
    );
    if let Some(p) = &facts.latency_ms {
        text += &format!(", p50{TIE}{}, p99{TIE}{}", ms(p.p50), ms(p.p99));
    }
    text += &format!(
        ", at most {} in 1{TIE}s, {}",
        count(facts.peak_1s),
        bytes(facts.bytes)
    );
    if let Some((why, n)) = facts.failures.iter().max_by_key(|(_, n)| **n) {
        text += &format!("; {} x {}", line(why), count(*n));
    }
    text
}

/// How long a server that is looked at every second may go unseen before it is gone.
const UNSEEN: Duration = Duration::from_secs(3);

/// One server's use; told with its number where there are several.
pub(super) fn health(facts: &HealthFacts, of: usize, horizon: Elapsed) -> String {
    let which = match of {
        1 => String::new(),
        _ => format!("{}: ", facts.target),
    };
    let gone = match horizon.millis() - facts.last_ms > UNSEEN.as_millis() as f64 {
        true => format!("; gone after {}", ms(facts.last_ms)),
        false => String::new(),
    };
    format!(
        "{which}{:.1}{TIE}s CPU, at most {:.0}{TIE}% of one, {}, {}, {}",
        facts.cpu_s,
        facts.cpu_peak * 100.0,
        bytes(facts.rss_peak_bytes),
        counted(facts.threads_peak, "thread"),
        counted(facts.descriptors_peak, "descriptor")
    ) + &gone
}

/// How a server died, and its last lines.
pub(super) fn death(death: &Death) -> Vec<String> {
    let first = format!("by itself at {} ({})", ms(death.at_ms), line(&death.status));
    let words = death.last_words.lines().map(line);
    std::iter::once(first).chain(words).collect()
}
