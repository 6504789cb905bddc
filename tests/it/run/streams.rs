//! What a run writes where: the report or JSON on stdout, talk on stderr, and no colours where there is no terminal.

use std::process::Stdio;

use serde_json::Value;

use super::{Running, STAMPEDE, Stage};

#[test]
fn stdout_is_the_report_or_json_and_stderr_the_talk() {
    let [plain, json, quiet, both] = [(); 4].map(|()| Stage::new());
    let runs = [
        plain.run(STAMPEDE, &[]),
        json.run(STAMPEDE, &["--json"]),
        quiet.run(STAMPEDE, &["-q"]),
        both.run(STAMPEDE, &["-q", "--json"]),
    ];
    let [plain, json, quiet, both] = runs.map(|run| run.end().with(1));
    for ended in [&plain, &json, &quiet, &both] {
        assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'));
    }
    assert!(plain.stdout.contains("FAIL") && plain.stderr.contains("connecting"));
    assert!(!plain.stderr.contains("FAIL"), "{}", plain.stderr);
    let summary: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(summary["outcome"], "fail");
    assert!(json.stderr.contains("FAIL"), "{}", json.stderr);
    assert!(
        quiet.stdout.contains("FAIL") && quiet.stderr.is_empty(),
        "{quiet:?}"
    );
    let summary: Value = serde_json::from_str(&both.stdout).unwrap();
    assert!(summary["exit"] == 1 && both.stderr.is_empty(), "{both:?}");
}

/// Who closed stdout has read enough: the verdict is in the exit code all the same.
#[test]
fn a_closed_stdout_changes_no_verdict() {
    let stage = Stage::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = stage.run_command(STAMPEDE, &[]);
    let run = Running::start_with(&mut command, Stdio::from(writer));
    drop(command);
    let ended = run.end().with(1);
    assert!(!ended.stderr.contains("herd:"), "{}", ended.stderr);
    assert!(stage.path("out/summary.json").is_file());
}
