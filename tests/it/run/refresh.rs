//! Clients that lose their memory, reloads, and what a server uses meanwhile, in whole runs.

use serde_json::Value;

use super::texts::quick;
use super::{Stage, outcome, rows, together, unless_busy};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Each of them twice for a pass: the clients that start anew are 2 of 24, as 10 % are.
#[test]
fn clients_that_start_anew_resume_or_are_new_and_a_right_server_passes() {
    let run = |persist: &str| {
        let persist = persist.to_owned();
        move || {
            let (stage, ended) = unless_busy(|| {
                let stage = Stage::new();
                let lines = format!("refresh = \"10%\"\npersist = {persist}");
                let ended = stage.run(&quick().outage(&lines).text(), &[]).end();
                (stage, ended)
            });
            ended.with(0).says(&["2 refreshes", "Server"]);
            stage.assert_empty();
            let summary = stage.summary();
            let facts = &summary["outages"][0]["refresh"];
            let (kept, lost) = if persist == "true" { (2, 0) } else { (0, 2) };
            assert_eq!(number(&facts["refreshed"]), 2);
            assert_eq!(
                (number(&facts["kept"]), number(&facts["lost"])),
                (kept, lost)
            );
            assert_eq!(number(&facts["given_nothing"]), lost, "it asks for nothing");
            let d = &summary["delivery"];
            let parts = ["delivered", "late", "lost", "reset", "absent"];
            let sum: u64 = parts.iter().map(|part| number(&d[part])).sum();
            assert_eq!(number(&d["expected"]), sum);
            // Its supervised server was looked at, over the restart too.
            let health = &summary["health"][0];
            assert_eq!(number(&health["processes"]), 2);
            assert!(number(&health["rss_peak_bytes"]) > 1 << 20, "{health}");
            assert!(number(&health["descriptors_peak"]) > 24, "{health}");
            assert!(rows(&stage.path("out"), "health.csv").len() > 2);
        }
    };
    together([run("true"), run("false")]);
}

/// What the others are judged by, clients that kept their memory are judged by too.
#[test]
fn a_server_that_loses_on_resume_fails_clients_that_kept_their_memory() {
    let stage = Stage::new();
    let lines = "refresh = \"100%\"\npersist = true";
    let args = ["--defect", "lose-on-resume"];
    let text = quick().outage(lines).text();
    let ended = stage.run(&text, &args).end().with(1);
    stage.assert_empty();
    let summary = stage.summary();
    assert_eq!(outcome(&summary, "exactly-once"), "fail");
    // All of them dialled when herd said so.
    ended.says(&["24 clients started anew, with their cursor"]);
    assert_eq!(number(&summary["outages"][0]["refresh"]["kept"]), 24);
    assert_eq!(number(&summary["delivery"]["lost"]), 24);
}

/// Every resume is answered by a reset: each client asks for the full state, in a storm of its own.
#[test]
fn the_reload_storm_is_timed_and_failures_are_stated() {
    let run = |path: &str, words: &'static [&'static str], done: u64| {
        let reload = format!("reload = \"http://127.0.0.1:{{port}}{path}\"");
        let text = quick().client(&reload).text();
        move || {
            let stage = Stage::new();
            let args = ["--defect", "reset-always", "--max-resets", "24"];
            let ended = stage.run(&text, &args).end();
            ended.says(words);
            stage.assert_empty();
            let summary = stage.summary();
            let facts = &summary["outages"][0]["reload"];
            assert_eq!(number(&facts["done"]), done);
            assert_eq!(number(&facts["done"]) + number(&facts["failed"]), 24);
            let rows = rows(&stage.path("out"), "reloads.csv");
            assert_eq!(rows.len(), 24);
            let word = if done > 0 { "done" } else { "failed" };
            assert!(rows.iter().all(|row| row["outcome"] == word), "{rows:?}");
            // Who never got the full state shows what nobody knows.
            let expected = if done > 0 { "pass" } else { "unknown" };
            assert_eq!(outcome(&summary, "resets"), expected);
        }
    };
    together([
        run("/healthz", &["24 reloads", "24 done"], 24),
        run("/nothing", &["24 failed", "full state failed"], 0),
    ]);
}
