//! One run in two processes: each has its share of the clients, the first publishes, `herd check` merges.

use std::time::Duration;

use serde_json::Value;

use super::peers::Serve;
use super::{QUICK, Stage, busy, outcome};

/// Runs both shards against one server that somebody restarts; returns where they wrote.
fn sharded() -> [Stage; 2] {
    let (shards, theirs) = ([Stage::new(), Stage::new()], Stage::new());
    let mut server = Serve::start(&theirs, &[]);
    let (target, publish) = (server.target(), server.publish());
    let mut args = vec!["--target", &target, "--publish-url", &publish];
    args.extend(["--wait", "--shard"]);
    let run = |n: usize, share| shards[n].run(QUICK, &[&args[..], &[share]].concat());
    let first = run(0, "1/2");
    // Their clocks begin apart, as they do on two machines.
    std::thread::sleep(Duration::from_millis(400));
    let mut runs = [first, run(1, "2/2")];
    for run in &mut runs {
        run.until_it_says("waiting for a restart");
    }
    server.restart(Duration::from_millis(300));
    for run in runs {
        // By itself a shard knows half of it.
        run.end().with(3);
    }
    shards
}

#[test]
fn two_shards_are_judged_as_one_run() {
    let mut shards = sharded();
    let judged = |pair: [&str; 2], dir: &Stage| {
        let ended = dir.herd(&["check", pair[0], pair[1], "--json"]).end();
        let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
        (ended, summary)
    };
    let files = |shards: &[Stage; 2]| shards.each_ref().map(|s| s.text("out/history.herd"));
    for _ in 0..2 {
        let [a, b] = files(&shards);
        if !busy(&judged([&a, &b], &shards[0]).1) {
            break;
        }
        shards = sharded();
    }
    let [a, b] = files(&shards);
    let (ended, summary) = judged([&a, &b], &shards[0]);
    ended.with(0);
    assert_eq!(summary["outages"][0]["reconnected"], 24);
    assert_eq!(outcome(&summary, "exactly-once"), "pass");
    assert_eq!(summary["delivery"]["foreign"], 0);
    let (_, turned) = judged([&b, &a], &shards[0]);
    assert_eq!(turned, summary);
    let check = |args: &[&str]| shards[0].herd(&[&["check"], args].concat()).end();
    check(&[&a]).with(3).says(&["1 of 2 shards are here"]);
    check(&[&a, &a]).with(2).says(&["is there twice"]);
}
