//! Storms in virtual time: against the published simulation, from the command line, and judged like any run.

mod command;
mod rows;

use std::time::Duration;

use herd::backoff::{Mix, presets};
use herd::check::{self, Check, Outcome};
use herd::history::build;
use herd::history::{History, OutageTerms, Source, Terms, TriggerKind};
use herd::simulate::advise;
use herd::simulate::storm::{CUT, Limits, Storm, record};

fn mix(preset: &str) -> Mix {
    presets::find(preset).expect("it is in the list").mix()
}

fn storm(preset: &str, clients: u32, down: u64) -> Storm {
    Storm::new(clients, 5, mix(preset), Duration::from_secs(down))
}

fn recorded(storm: &Storm) -> History {
    let mut header = build::header(storm.clients);
    header.terms = Terms {
        policy: serde_json::to_string(&storm.mix).expect("plain data"),
        policy_name: storm.mix.name(),
        source: Source::Nobody,
        outages: vec![OutageTerms::plain(TriggerKind::Child); storm.outages as usize],
        ..header.terms
    };
    let (history, _) = record::history(storm, header).expect("few dials");
    history
}

fn outcomes(history: &History) -> Vec<(Check, Outcome)> {
    let verdict = check::judge(history);
    verdict
        .findings
        .iter()
        .map(|f| (f.check, f.outcome))
        .collect()
}

#[test]
fn what_nobody_published_is_not_judged_and_not_unknown() {
    let verdict = outcomes(&recorded(&storm("full-jitter", 1_000, 2)));
    let passed = [
        Check::ReconnectSpread,
        Check::Peak,
        Check::AllReconnected,
        Check::Relapse,
        Check::Recovery,
        Check::Staleness,
    ];
    assert_eq!(verdict, passed.map(|check| (check, Outcome::Pass)));
}

#[test]
fn a_stampede_fails_as_in_a_run() {
    use Outcome::{Fail, Pass};
    let cases = [
        ("partysocket", [Fail, Fail, Pass]),
        ("exponential-25", [Fail, Fail, Pass]),
        // A quarter of them never comes back.
        ("graphql-ws", [Fail, Pass, Fail]),
    ];
    for (preset, expected) in cases {
        let verdict = outcomes(&recorded(&storm(preset, 1_000, 2)));
        let first = [verdict[0].1, verdict[1].1, verdict[2].1];
        assert_eq!(first, expected, "{preset}");
    }
}

#[test]
fn every_outage_is_judged() {
    let mut storm = storm("full-jitter", 200, 1);
    storm.outages = 3;
    let history = recorded(&storm);
    let verdict = check::judge(&history);
    let dropped: Vec<_> = verdict
        .outages
        .iter()
        .map(|o| (o.outage, o.dropped, o.reconnected))
        .collect();
    assert_eq!(dropped, [(1, 200, 200), (2, 200, 200), (3, 200, 200)]);
    assert_eq!(verdict.outcome, Outcome::Pass);
}

#[test]
fn a_server_that_falls_over_is_a_relapse() {
    let mut storm = storm("immediate", 100, 2);
    storm.limits = Limits {
        handshake: Duration::from_millis(5),
        collapse: Some(50),
        ..Limits::NONE
    };
    storm.until = Some(Duration::from_secs(20));
    let history = recorded(&storm);
    assert!(outcomes(&history).contains(&(Check::Relapse, Outcome::Fail)));
    assert_eq!(history.horizon, CUT + Duration::from_secs(22));
}

/// Whoever pastes the advice gets what it promised.
#[test]
fn the_advice_keeps_its_promise() {
    let asked = storm("full-jitter", 2_000, 3);
    let advice = advise::advise(&asked, 100.0).expect("there is such a window");
    assert_eq!(advice.bound_ms, 20_000);
    assert!((20_000..40_000).contains(&advice.base_ms), "{advice:?}");
    assert!(advice.peak_1s <= 100 && advice.peak_1s > 85, "{advice:?}");
    assert!(advice.checked_within * 2 > advice.checked, "{advice:?}");

    let file = std::path::Path::new("advice.toml");
    let draft = herd::scenario::Draft::parse(file, &advice.backoff).expect("a scenario");
    let pasted = draft.resolve(1).expect("a sound one").policy.mix;
    let busiest = |mix: &Mix| {
        let storm = Storm {
            mix: mix.clone(),
            ..asked.clone()
        };
        let (tally, _) = herd::simulate::storm::tally::Tally::of(&storm, 1_000_000).expect("few");
        tally.back().peak(Duration::from_secs(1))
    };
    assert!(busiest(&pasted) <= 100);
    // And half of that would not do.
    let half = format!(
        "[client.backoff]\npreset = \"full-jitter\"\nbase = \"{}ms\"\n",
        advice.base_ms / 2
    );
    let half = herd::scenario::Draft::parse(file, &half).expect("a scenario");
    assert!(busiest(&half.resolve(1).expect("a sound one").policy.mix) > 100);
}
