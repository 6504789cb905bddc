//! Several servers that are not herd's, which a command of the user's restarts one after another.

use herd::history::file::read_all;

use super::peers::{Left, Serve};
use super::{Ended, QUICK, Stage, outcome, together, unless_busy};

/// [`QUICK`] of a rolling restart, with 48 clients: each third of them is a herd.
fn scenario() -> String {
    QUICK
        .replace("clients = 24", "clients = 48")
        .replace(
            "[outage]\n",
            "[target]\nready-limit = \"2s\"\n[outage]\ntrigger = \"rolling\"\npause = \"1s\"\n",
        )
        .replace("command-limit = \"1s\"\n", "")
}

/// What the command does to a target.
const RESTART: &str = "kill -9 $(cat pid-{target}); sleep 0.3; . ./again-$TARGET";

/// Three servers that share one log, the second with these options; this command, in their directory, restarts one.
fn rolled(command: &str, second: &[&str], args: &[&str]) -> (Stage, Ended) {
    let stage = Stage::new();
    let servers = [1, 2, 3].map(|n| {
        let more = if n == 2 { second } else { &[] };
        let server = Serve::start(&stage, &[&["--shared"], more].concat());
        stage.file(&format!("pid-{n}"), &server.pid().to_string());
        let again = format!("{} >/dev/null 2>&1 & echo $! >pid-{n}", server.line());
        stage.file(&format!("again-{n}"), &again);
        server
    });
    let command = format!("cd {} && {command}", stage.dir.path().display());
    let publish = servers[0].publish();
    let mut all = vec!["--publish-url", &publish, "--restart-cmd", &command];
    let targets = servers.each_ref().map(Serve::target);
    all.extend(targets.iter().flat_map(|target| ["--target", target]));
    let left = ["pid-1", "pid-2", "pid-3"].map(|file| Left(&stage, file));
    let ended = stage.run(&scenario(), &[&all[..], args].concat()).end();
    drop((left, servers));
    (stage, ended)
}

#[test]
fn a_rolling_restart_by_command_is_judged() {
    let all: [fn(); 5] = [
        right_servers_pass_though_clients_are_cut_more_than_once,
        a_defect_of_one_server_fails,
        clients_that_come_back_at_once_fail,
        a_target_that_stays_down_fails,
        a_target_that_nothing_happens_to_proves_nothing,
    ];
    together(all);
}

fn right_servers_pass_though_clients_are_cut_more_than_once() {
    let (stage, ended) = unless_busy(|| rolled(RESTART, &[], &[]));
    ended.with(0).says(&["PASS", "rolling at", "3 waves"]);
    let history = read_all(&[stage.path("out/history.herd")]).unwrap();
    let sessions = history.clients.iter().map(|c| c.sessions.len());
    assert!(sessions.clone().all(|n| n > 1), "everybody is cut");
    assert!(sessions.clone().any(|n| n > 2), "and some more than once");
    stage.assert_empty();
}

fn a_defect_of_one_server_fails() {
    let (stage, ended) = unless_busy(|| rolled(RESTART, &["--defect", "duplicate-on-resume"], &[]));
    ended.with(1).says(&["FAIL", "exactly-once", "duplicated"]);
    assert_ne!(outcome(&stage.summary(), "reconnect-spread"), "fail");
    stage.assert_empty();
}

fn clients_that_come_back_at_once_fail() {
    let (stage, ended) = unless_busy(|| rolled(RESTART, &[], &["--backoff", "immediate"]));
    ended.with(1).says(&["FAIL", "reconnect-spread"]);
    assert_ne!(outcome(&stage.summary(), "exactly-once"), "fail");
    stage.assert_empty();
}

/// Its clients find another server, and the rollout has failed all the same.
fn a_target_that_stays_down_fails() {
    let command = format!("if [ $TARGET = 2 ]; then kill -9 $(cat pid-2); exit; fi; {RESTART}");
    let (stage, ended) = unless_busy(|| rolled(&command, &[], &[]));
    ended.with(1).says(&[
        "FAIL",
        "all-reconnected",
        "the target was never ready again",
    ]);
    stage.assert_empty();
}

fn a_target_that_nothing_happens_to_proves_nothing() {
    let command = format!("[ $TARGET = 2 ] || {{ {RESTART}; }}");
    let (stage, ended) = rolled(&command, &[], &[]);
    ended
        .with(3)
        .says(&["UNKNOWN", "did nothing that was seen", "target 2"]);
    stage.assert_empty();
}
