//! A run that passes: its files, its judgement again, and the same delays wherever they are drawn.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use herd::backoff::{Address, Ask, Backoff};
use herd::history::AttemptOutcome;
use herd::report::Format;
use herd::scenario::{Draft, Scenario};
use herd::simulate;
use serde_json::Value;

use super::{QUICK, Stage, rows, together};
use crate::files;

/// Two passed runs, of one seed, for all tests of this file.
fn both() -> &'static [Stage] {
    static BOTH: OnceLock<Vec<Stage>> = OnceLock::new();
    BOTH.get_or_init(|| {
        together([(); 2].map(|()| {
            || {
                let (stage, ended) = Stage::run_unless_busy(QUICK, &[]);
                ended.with(0).says(&["PASS", "Again herd run"]);
                stage.assert_empty();
                stage
            }
        }))
    })
}

fn passed() -> &'static Stage {
    &both()[0]
}

#[test]
fn a_passing_run_leaves_the_files_of_the_contract_and_they_agree() {
    let stage = passed();
    let out = stage.path("out");
    for name in Format::ALL.into_iter().flat_map(Format::files) {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert!(out.join("history.herd").is_file());
    files::check(&out);
    let found = files::recompute(&out);
    assert_eq!(
        (found.missing, found.duplicated, found.reordered),
        (0, 0, 0)
    );
    assert_eq!(found.dropped[&1].len(), 24);
    let (span, dialled) = found.spans[&1];
    assert!(span >= 1_000_000 && dialled >= 1_000_000, "{found:?}");
    let summary = stage.summary();
    assert_eq!(summary["outcome"], "pass");
    assert_eq!(
        (&summary["exit"], &summary["truncated"]),
        (&0.into(), &false.into())
    );
}

#[test]
fn a_stored_history_is_judged_and_rendered_again_to_the_byte() {
    let stage = passed();
    let again = stage.check(&["--json"]).with(0);
    let judged: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(judged, stage.summary());
    let history = stage.text("out/history.herd");
    let dir = stage.text("again");
    let args = ["report", &history, "--format", "json,csv,hdr", "-o", &dir];
    stage.herd(&args).end().with(0);
    for name in Format::ALL.into_iter().flat_map(Format::files) {
        let read = |dir: &str| std::fs::read(stage.path(dir).join(name)).unwrap();
        assert!(read("out") == read("again"), "{name} differs");
    }
}

/// Delays by (client, drop, attempt), from the files alone: `due` minus the end of what was before.
pub(super) fn delays(dir: &Path) -> BTreeMap<(u32, u32, u32), u64> {
    let number = |text: &String| text.parse::<u64>().unwrap();
    let mut ended: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in rows(dir, "sessions.csv") {
        let key = (
            number(&row["client"]) as u32,
            number(&row["session"]) as u32,
        );
        ended.insert(key, number(&row["ended_us"]));
    }
    let mut drop: BTreeMap<u32, u32> = BTreeMap::new();
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let mut delays = BTreeMap::new();
    for row in rows(dir, "attempts.csv") {
        let client = number(&row["client"]) as u32;
        // The file counts from 1, the policy from 0.
        let attempt = number(&row["attempt"]) as u32 - 1;
        let drops = drop.entry(client).or_default();
        if *drops > 0 {
            let delay = number(&row["due_us"]) - before[&client];
            delays.insert((client, *drops, attempt), delay);
        }
        before.insert(client, number(&row["ended_us"]));
        if row["outcome"] == "opened" {
            *drops += 1;
            before.insert(client, ended[&(client, *drops)]);
        }
    }
    delays
}

pub(super) fn scenario(stage: &Stage) -> Scenario {
    Draft::read(&stage.path("scenario.toml"))
        .unwrap()
        .resolve(0)
        .unwrap()
}

fn drawn(policy: &Backoff, seed: u64, (client, drop, attempt): (u32, u32, u32)) -> u64 {
    let address = Address {
        seed,
        client,
        drop,
        attempt,
    };
    let ask = Ask {
        attempt,
        previous: None,
        base: None,
        address,
    };
    policy.delay(&ask).as_micros() as u64
}

/// Acceptance 2: two processes, and virtual time, draw the same delay at the same address.
#[test]
fn a_seed_draws_the_same_delays_in_every_process_and_in_virtual_time() {
    let [first, second] = both() else {
        panic!("two runs");
    };
    let scenario = scenario(first);
    let (one, two) = (delays(&first.path("out")), delays(&second.path("out")));
    let first_tries = one
        .keys()
        .filter(|(_, drop, attempt)| (*drop, *attempt) == (1, 0));
    assert_eq!(first_tries.count(), 24);
    assert!(one.len() > 24, "nobody was refused: {one:?}");
    for (address, delay) in one.iter().chain(&two) {
        let wanted = drawn(scenario.policy.mix.of(address.0), scenario.seed, *address);
        assert_eq!(*delay, wanted, "{address:?}");
    }
    let virtual_time = simulated(&scenario);
    let common = one
        .keys()
        .filter(|address| virtual_time.contains_key(address));
    assert!(common.count() >= 24, "{virtual_time:?}");
    for (address, delay) in one.iter().chain(&two) {
        let same = virtual_time.get(address).unwrap_or(delay);
        assert_eq!(delay, same, "{address:?}");
    }
}

/// The same in virtual time.
pub(super) fn simulated(scenario: &Scenario) -> BTreeMap<(u32, u32, u32), u64> {
    let history = simulate::run(&simulate::Setup {
        mix: scenario.policy.mix.clone(),
        ramp: scenario.connect.ramp,
        steady: scenario.outage(1).steady,
        down: scenario.outage(1).down,
        ..simulate::Setup::new(scenario.clients, scenario.seed)
    });
    let mut delays = BTreeMap::new();
    for client in &history.clients {
        let (mut drop, mut before) = (0, None);
        for attempt in &client.attempts {
            if let Some(before) = before {
                let delay = attempt.due.since(before).as_micros() as u64;
                delays.insert((client.id.0, drop, attempt.attempt), delay);
            }
            before = (drop > 0).then_some(attempt.ended);
            if attempt.outcome == AttemptOutcome::Opened {
                before = client.sessions[drop as usize].dropped();
                drop += 1;
            }
        }
    }
    delays
}
