//! Policies of real libraries over real sockets: the same delays as in virtual time, and the same return but for what herd
//! itself and the connect took.

use std::collections::BTreeMap;
use std::time::Duration;

use herd::backoff::presets;
use herd::history::{AttemptOutcome, History};
use herd::simulate;

use super::passing::{delays, simulated};
use super::{QUICK, Stage, rows, together};

/// How long the server is away: off every step of the lists.
const DOWN: Duration = Duration::from_millis(1_300);

/// What one client did after the restart: how many dials it made and when the last of them was open, after its drop.
type Returns = BTreeMap<u32, (usize, Duration)>;

fn scenario(preset: &str) -> String {
    let ours = "preset = \"full-jitter\"\nbase = \"2s\"\ncap = \"8s\"";
    assert!(QUICK.contains(ours));
    QUICK
        .replace(ours, &format!("preset = \"{preset}\""))
        .replace("down = \"300ms\"", "down = \"1300ms\"")
}

/// From the files: `reconnects.csv` has a row for each client that was dropped.
fn real(stage: &Stage) -> Returns {
    let number = |text: &String| text.parse::<u64>().unwrap();
    let mut returns = Returns::new();
    for row in rows(&stage.path("out"), "reconnects.csv") {
        if row["reconnected_us"].is_empty() {
            continue;
        }
        let after = number(&row["reconnected_us"]) - number(&row["dropped_us"]);
        let found = (
            number(&row["attempts"]) as usize,
            Duration::from_micros(after),
        );
        returns.insert(number(&row["client"]) as u32, found);
    }
    returns
}

fn imagined(history: &History) -> Returns {
    let mut returns = Returns::new();
    for client in &history.clients {
        let Some((dropped, _)) = &client.sessions[0].closed else {
            continue;
        };
        let dials: Vec<_> = client.attempts[1..].iter().collect();
        let open = dials
            .iter()
            .position(|dial| dial.outcome == AttemptOutcome::Opened);
        if let Some(open) = open {
            let after = dials[open].ended.since(*dropped);
            returns.insert(client.id.0, (open + 1, after));
        }
    }
    returns
}

#[test]
fn real_clients_wait_as_simulated_ones_and_are_back_when_they_are() {
    let presets = [
        "phoenix",
        "socketio",
        "signalr",
        "centrifuge",
        "eventsource-chromium",
        "graphql-ws",
        "full-jitter",
    ];
    together(presets.map(|preset| move || compare(preset)));
}

fn compare(preset: &str) {
    let stage = Stage::new();
    let args: &[&str] = match preset {
        "eventsource-chromium" => &["--profile", "sse"],
        _ => &[],
    };
    // Most of them stampede, so that the run fails; what is compared here are instants.
    let ended = stage.run(&scenario(preset), args).end();
    assert!(
        [Some(0), Some(1), Some(3)].contains(&ended.code),
        "{preset}: {}",
        ended.stderr
    );
    let resolved = super::passing::scenario(&stage);
    assert_eq!(resolved.policy.mix, presets::find(preset).unwrap().mix());

    let (drawn, virtual_time) = (delays(&stage.path("out")), simulated(&resolved));
    let first = drawn
        .keys()
        .filter(|(_, drop, attempt)| (*drop, *attempt) == (1, 0));
    assert_eq!(first.count(), 24, "{preset}");
    for (address, delay) in &drawn {
        let same = virtual_time.get(address).unwrap_or(delay);
        assert_eq!(delay, same, "{preset} {address:?}");
    }
    let common = drawn
        .keys()
        .filter(|address| virtual_time.contains_key(address));
    assert!(common.count() >= 24, "{preset}");

    // The same outage in virtual time, as long as it really was.
    let summary = stage.summary();
    let outage = &summary["outages"][0];
    let ms = |value: &serde_json::Value| value.as_f64().unwrap();
    let down =
        Duration::from_secs_f64((ms(&outage["ready_ms"]) - ms(&outage["first_drop_ms"])) / 1e3);
    let late = Duration::from_secs_f64(ms(&summary["generator"]["lag_ms"]["max"]) / 1e3);
    let imagined = imagined(&simulate::run(&simulate::Setup {
        mix: resolved.policy.mix.clone(),
        down: down.max(DOWN),
        ..simulate::Setup::new(resolved.clients, resolved.seed)
    }));
    let connects = connects(&stage);
    let mut compared = 0;
    for (client, (dials, after)) in real(&stage) {
        // Who dialled while the server was already there and the probe had not yet seen it came back one dial earlier.
        let Some((known, imagined)) = imagined.get(&client).filter(|(known, _)| *known == dials)
        else {
            continue;
        };
        let slack = late * (*known as u32) + connects[&client] + Duration::from_millis(10);
        let apart = after.abs_diff(*imagined);
        assert!(
            apart <= slack,
            "{preset} {client}: {after:?} {imagined:?}, {slack:?} granted"
        );
        compared += 1;
    }
    let least = if preset == "graphql-ws" { 16 } else { 18 };
    assert!(
        compared >= least,
        "{preset}: only {compared} could be compared"
    );
}

/// What each client's dials took after the restart, from dialled to ended.
fn connects(stage: &Stage) -> BTreeMap<u32, Duration> {
    let number = |text: &String| text.parse::<u64>().unwrap();
    let mut all = BTreeMap::<u32, Duration>::new();
    for row in rows(&stage.path("out"), "attempts.csv") {
        if row["outage"] == "0" || row["dialled_us"].is_empty() {
            continue;
        }
        let took = number(&row["ended_us"]).saturating_sub(number(&row["dialled_us"]));
        *all.entry(number(&row["client"]) as u32).or_default() += Duration::from_micros(took);
    }
    all
}

/// A client that its policy never lets back is no `gave-up`, and fails `all-reconnected`.
#[test]
fn a_library_that_dies_of_a_refused_connect_is_told_apart() {
    let (stage, scenario) = (Stage::new(), scenario("graphql-ws"));
    let scenario = scenario.replace("1300ms", "3s");
    let ended = stage.run(&scenario, &[]).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let summary = stage.summary();
    let checks = summary["checks"].as_array().unwrap();
    let all = checks
        .iter()
        .find(|check| check["name"] == "all-reconnected")
        .unwrap();
    assert_eq!(all["outcome"], "fail");
    let why = all["why"].as_str().unwrap();
    assert!(
        why.contains("never retries") && why.contains("no connection"),
        "{why}"
    );
    assert_eq!(summary["outages"][0]["gave_up"], 0);
}
