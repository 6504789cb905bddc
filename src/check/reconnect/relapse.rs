//! Whether the server fell over again: waves that no trigger caused, and deaths that nobody asked for.

use std::time::Duration;

use super::Case;
use crate::check::timeline::{OutageSpan, WaveSpan};
use crate::check::words::names;
use crate::check::{Check, Finding, Outcome, opening};
use crate::history::{Elapsed, Mark};

/// How far a death may lie from the wave that shows it.
const SHOWN: Duration = Duration::from_secs(2);

/// Judges relapses over the whole run (rule 3 of judgement).
pub(super) fn relapse(case: &Case<'_>) -> Finding {
    let outages = &case.timeline.outages;
    let waves: Vec<_> = outages
        .iter()
        .flat_map(|o| o.waves.iter().map(move |w| (o, w)))
        .filter(|(_, w)| !w.triggered && w.judged(case.history.clients.len()))
        .collect();
    let deaths: Vec<_> = deaths(case)
        .into_iter()
        .filter(|(at, _)| !waves.iter().any(|(_, w)| near(w.first_drop, *at)))
        .collect();
    let told = waves.iter().map(|(o, w)| tell(case, o, w));
    let died = deaths
        .iter()
        .map(|(at, status)| format!("the server died by itself at {:.2} s ({status})", secs(*at)));
    let why: Vec<String> = told.chain(died).collect();
    let seen = outages
        .iter()
        .any(|o| o.outage > 0 && o.waves.iter().any(|w| w.dropped > w.own));
    let own = opening::ended(case.history);
    let (outcome, why) = match (why.is_empty(), seen) {
        (false, _) => (Outcome::Fail, why.join("; ")),
        (true, _) if own > 0 => (Outcome::Unknown, own_ends(case, own)),
        (true, true) => (Outcome::Pass, String::new()),
        (true, false) => (Outcome::Unknown, case.unseen(1)),
    };
    Finding {
        check: Check::Relapse,
        outage: None,
        outcome,
        measured: (waves.len() + deaths.len()).to_string(),
        limit: "0".into(),
        why,
    }
}

/// What herd itself cut off is no relapse, and hides what would else have happened to it.
fn own_ends(case: &Case<'_>, sessions: usize) -> String {
    let hint = opening::hint(case.history).unwrap_or_default();
    format!(
        "herd itself ended {sessions} sessions, because nothing that came in time fits the profile's opening: {hint}"
    )
}

/// Whether the outage had a judged wave that no trigger caused, or a death.
pub(super) fn relapsed(case: &Case<'_>, outage: &OutageSpan) -> bool {
    let clients = case.history.clients.len();
    outage
        .waves
        .iter()
        .any(|w| !w.triggered && w.judged(clients))
        || deaths(case)
            .iter()
            .any(|(at, _)| outage.trigger.is_some_and(|t| t <= *at) && *at <= outage.until)
}

fn tell(case: &Case<'_>, outage: &OutageSpan, wave: &WaveSpan) -> String {
    let mut clients: Vec<_> = case
        .timeline
        .of_wave(outage.outage, wave.wave)
        .iter()
        .map(|r| r.client)
        .collect();
    clients.dedup();
    let after = match outage.outage {
        0 => "before any trigger".to_owned(),
        k => format!("in outage {k} (wave {})", wave.wave),
    };
    format!(
        "{} of {} clients ({}) lost their connection at {:.2} s {after}, and no trigger caused it",
        wave.dropped,
        case.history.clients.len(),
        names(&clients),
        secs(wave.first_drop)
    )
}

/// Deaths of the supervised server after the first trigger; before it they are the run's to report (rule 23).
fn deaths<'a>(case: &Case<'a>) -> Vec<(Elapsed, &'a str)> {
    let marks = &case.history.marks;
    let triggers = marks
        .iter()
        .filter(|(_, m)| matches!(m, Mark::Trigger { .. }));
    let Some(first) = triggers.map(|(at, _)| *at).min() else {
        return Vec::new();
    };
    let died = |(at, mark): &'a (Elapsed, Mark)| match mark {
        Mark::Died { status } if *at >= first => Some((*at, &**status)),
        _ => None,
    };
    marks.iter().filter_map(died).collect()
}

fn near(a: Elapsed, b: Elapsed) -> bool {
    a.since(b).max(b.since(a)) <= SHOWN
}

fn secs(at: Elapsed) -> f64 {
    at.millis() / 1e3
}
