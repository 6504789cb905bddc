//! Networks that are taken away under clients and server: what each cut does, whom it hits, when it is noticed.

use std::collections::BTreeSet;
use std::time::Duration;

use herd::history::file::read_all;
use herd::history::{Cause, ClientId, History, chosen};

use super::texts::quick;
use super::{Stage, outcome, together};

mod paths;

/// So many clients, these lines of theirs, and this outage.
fn scenario(clients: u32, client: &str, outage: &str) -> String {
    let all = quick().clients(clients).client(client).outages(&[outage]);
    all.text()
}

fn history(stage: &Stage) -> History {
    read_all(&[stage.path("out/history.herd")]).unwrap()
}

/// Clients, with the causes of their first sessions' ends.
fn first_ends(history: &History) -> Vec<(ClientId, Cause)> {
    let ends = history.clients.iter().map(|client| {
        let (_, cause) = client.sessions[0].closed.clone().unwrap();
        (client.id, cause)
    });
    ends.collect()
}

/// Each cut, and how clients learn of it.
const CUTS: [(&str, &str, &[Cause]); 6] = [
    ("", "cut = \"fin\"\ndown = \"300ms\"", &[Cause::Eof]),
    ("", "cut = \"rst\"\ndown = \"300ms\"", &[Cause::Reset]),
    ("", "cut = \"refuse\"\ndown = \"500ms\"", &[Cause::Reset]),
    (
        "heartbeat = \"500ms/500ms\"",
        "cut = \"blackhole\"\ndown = \"500ms\"",
        &[Cause::Heartbeat],
    ),
    // Answers take longer than clients wait for them.
    (
        "heartbeat = \"300ms/300ms\"",
        "cut = \"latency\"\nlatency = \"800ms\"\ndown = \"1s\"",
        &[Cause::Heartbeat],
    ),
    // So slow that the end comes in the middle of a frame.
    (
        "",
        "cut = \"bandwidth\"\nbandwidth = 20\ndown = \"700ms\"\nthen = \"rst\"",
        &[Cause::Reset],
    ),
];

#[test]
fn every_cut_is_noticed_as_it_must_be_and_a_right_server_passes() {
    for (client, outage, causes) in CUTS {
        let (stage, ended) = Stage::run_unless_busy(&scenario(24, client, outage), &[]);
        ended.with(0).says(&["PASS"]);
        let summary = stage.summary();
        assert_eq!(outcome(&summary, "exactly-once"), "pass", "{outage}");
        assert_eq!(summary["outages"][0]["trigger"], "cut");
        assert_eq!(summary["outages"][0]["dropped"], 24, "{outage}");
        for (client, cause) in first_ends(&history(&stage)) {
            assert!(causes.contains(&cause), "{outage}: {client:?} {cause:?}");
        }
        stage.assert_empty();
    }
}

#[test]
fn what_a_server_does_wrong_after_a_cut_is_found() {
    let run = |(client, outage, _): (&'static str, &'static str, &'static [Cause]), n: usize| {
        move || {
            let (defect, word) = match n % 3 {
                0 => ("lose-on-resume", "lost"),
                1 => ("duplicate-on-resume", "duplicated"),
                _ => ("gap-at-handoff", "lost"),
            };
            let stage = Stage::new();
            let ended = stage
                .run(&scenario(24, client, outage), &["--defect", defect])
                .end();
            ended.with(1).says(&["FAIL", "exactly-once"]);
            let summary = stage.summary();
            assert!(
                summary["delivery"][word].as_u64().unwrap() > 0,
                "{outage} {defect}"
            );
            stage.assert_empty();
        }
    };
    let all: Vec<_> = CUTS
        .into_iter()
        .zip(0..)
        .map(|(cut, n)| run(cut, n))
        .collect();
    for some in all.chunks(2) {
        together(some.to_vec());
    }
}

/// Real time: that every client notices in time is the question.
#[test]
fn two_hundred_clients_notice_a_blackhole_within_interval_and_timeout_and_a_tenth() {
    let (interval, timeout) = (Duration::from_secs(1), Duration::from_secs(1));
    let text = scenario(
        200,
        "heartbeat = \"1s/1s\"",
        "cut = \"blackhole\"\ndown = \"1s\"",
    );
    let (stage, ended) = Stage::run_unless_busy(&text, &[]);
    ended.with(0).says(&["PASS"]);
    let history = history(&stage);
    assert_eq!(history.clients.len(), 200);
    for client in &history.clients {
        let session = &client.sessions[0];
        let (closed, cause) = session.closed.as_ref().unwrap();
        assert_eq!(cause, &Cause::Heartbeat, "{:?}", client.id);
        let silent = closed.since(session.silent_since.unwrap());
        let limit = (interval + timeout).mul_f64(1.1);
        assert!(silent <= limit, "{:?}: {silent:?}", client.id);
        assert!(silent >= timeout, "{:?}: {silent:?}", client.id);
    }
    stage.assert_empty();
}

#[test]
fn a_cut_of_a_region_hits_exactly_its_share_and_nobody_else() {
    let text = scenario(50, "", "cut = \"rst\"\nshare = \"30%\"\ndown = \"300ms\"");
    let (stage, ended) = Stage::run_unless_busy(&text, &[]);
    ended.with(0).says(&["PASS", "bystanders"]);
    let history = history(&stage);
    let hit: BTreeSet<_> = history
        .clients
        .iter()
        .filter(|client| client.sessions.len() > 1)
        .map(|client| client.id)
        .collect();
    let wanted: BTreeSet<_> = (1..=50)
        .map(ClientId)
        .filter(|client| chosen(*client, 50, 0.3))
        .collect();
    assert_eq!((hit.len(), &hit), (15, &wanted));
    let summary = stage.summary();
    assert_eq!(outcome(&summary, "bystanders"), "pass");
    let facts = &summary["bystanders"][0];
    assert_eq!(
        (&facts["others_dropped"], &facts["others_missed"]),
        (&0.into(), &0.into())
    );
    assert_eq!(summary["delivery"]["lost"], 0);
    stage.assert_empty();
}

/// A slow time that nobody minds is no outage.
#[test]
fn a_cut_that_nobody_notices_proves_nothing() {
    let outage = "cut = \"latency\"\nlatency = \"50ms\"\ndown = \"500ms\"";
    let (stage, ended) = Stage::run_unless_busy(&scenario(24, "", outage), &[]);
    ended.with(3).says(&[
        "UNKNOWN",
        "herd cut the network and no client lost its connection",
    ]);
    assert_eq!(outcome(&stage.summary(), "relapse"), "unknown");
    stage.assert_empty();
}

/// Cuts and restarts in one scenario, each judged on its own.
#[test]
fn outages_of_several_kinds_follow_one_another() {
    let text = quick()
        .outages(&["down = \"300ms\"", "cut = \"rst\"\ndown = \"300ms\""])
        .text();
    let (stage, ended) = Stage::run_unless_busy(&text, &[]);
    ended.with(0).says(&["PASS"]);
    let summary = stage.summary();
    let triggers = summary["outages"].as_array().unwrap().iter();
    let triggers: Vec<_> = triggers.map(|o| o["trigger"].as_str().unwrap()).collect();
    assert_eq!(triggers, ["child", "cut"]);
    for outage in summary["outages"].as_array().unwrap() {
        assert_eq!(outage["dropped"], 24, "{outage}");
        assert_eq!(outage["reconnected"], 24, "{outage}");
    }
    stage.assert_empty();
}

/// Sockets that listen, by inode, as the system knows them.
fn listening() -> BTreeSet<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        (fields[3].to_owned(), fields[9].parse().unwrap())
    });
    let listening = rows.filter(|(state, _)| state == "0A");
    listening.map(|(_, inode)| inode).collect()
}

/// Those of them that this stage's processes hold.
fn held(stage: &Stage) -> BTreeSet<u64> {
    let all = listening();
    let mut own = BTreeSet::new();
    for (pid, _) in stage.processes() {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for file in files.into_iter().flatten().flatten() {
            let link = std::fs::read_link(file.path()).unwrap_or_default();
            let link = link.display().to_string();
            let inode = link
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'));
            own.extend(
                inode
                    .and_then(|inode| inode.parse().ok())
                    .filter(|n| all.contains(n)),
            );
        }
    }
    own
}

#[test]
fn a_herd_that_is_killed_in_the_middle_of_a_cut_leaves_no_process_and_no_port() {
    let stage = Stage::new();
    let text = scenario(24, "", "cut = \"refuse\"\ndown = \"1m\"");
    let mut run = stage.run(&text, &[]);
    run.until_it_says("down");
    let before = held(&stage);
    // The server's, its held place, and the tunnels'.
    assert!(before.len() >= 2, "{before:?}");
    run.signal(rustix::process::Signal::KILL);
    assert_eq!(run.end().code, None);
    stage.assert_empty();
    let left: Vec<_> = before.intersection(&listening()).copied().collect();
    assert!(left.is_empty(), "{left:?}");
}
