//! One run in two processes: each has its share of the clients, the first publishes, `herd check` merges.

use super::peers::Serve;
use super::{QUICK, Stage, busy, outcome};

#[test]
fn two_shards_are_judged_as_one_run() {
    for last_try in [false, false, true] {
        let stages = [Stage::new(), Stage::new(), Stage::new()];
        let [first, second, theirs] = &stages;
        let mut server = Serve::start(theirs, &[]);
        let (target, publish) = (server.target(), server.publish());
        let shard = |stage: &Stage, share: &str| {
            let args = [
                "--target",
                &target,
                "--publish-url",
                &publish,
                "--wait",
                "--shard",
                share,
            ];
            stage.run(QUICK, &args)
        };
        let mut runs = [shard(first, "1/2"), shard(second, "2/2")];
        for run in &mut runs {
            run.until_it_says("waiting for a restart");
        }
        server.restart();
        for run in runs {
            // By itself a shard knows half of it.
            run.end().with(3);
        }
        let (a, b) = (
            first.text("out/history.herd"),
            second.text("out/history.herd"),
        );
        for pair in [[&a, &b], [&b, &a]] {
            let merged = first.herd(&["check", pair[0], pair[1], "--json"]).end();
            let summary: serde_json::Value = serde_json::from_str(&merged.stdout).unwrap();
            if busy(&summary) && !last_try {
                break;
            }
            let merged = merged.with(0);
            assert_eq!(summary["outages"][0]["reconnected"], 24, "{merged:?}");
            assert_eq!(outcome(&summary, "exactly-once"), "pass");
            assert_eq!(summary["delivery"]["foreign"], 0);
        }
        first
            .herd(&["check", &a])
            .end()
            .with(3)
            .says(&["1 of 2 shards are here"]);
        first
            .herd(&["check", &a, &a])
            .end()
            .with(2)
            .says(&["is there twice"]);
        return;
    }
}
