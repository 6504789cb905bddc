//! Whose server it is, who restarts it and who publishes: each way, and more than one outage.

use super::peers::{Serve, relay_that_cuts};
use super::{QUICK, Stage, together, unless_busy};
use crate::files;

#[test]
fn herds_own_tools_restart_a_server_that_is_not_herds() {
    let all: [fn(); 3] = [
        a_server_that_outlives_sigterm_is_killed_and_that_is_said,
        a_server_command_is_supervised_over_two_outages,
        a_command_restarts_a_target_that_is_not_herds,
    ];
    together(all);
}

/// The shell stays when its server has gone, as a server does that waits for something that never ends.
fn a_server_that_outlives_sigterm_is_killed_and_that_is_said() {
    let stage = Stage::new();
    let command = format!(
        "trap '' TERM; {} serve --listen 127.0.0.1:{{port}} --data {} & while :; do sleep 0.05; done",
        env!("CARGO_BIN_EXE_herd"),
        stage.text("data")
    );
    let args = [
        "--server-cmd",
        &command,
        "--target",
        "ws://127.0.0.1:{port}/v1/live?after={after}",
        "--publish-url",
        "http://127.0.0.1:{port}/v1/publish",
        "--grace",
        "400ms",
    ];
    let said =
        "the server did not exit within 0.4 s of SIGTERM with 0 connections open; it was killed";
    let ended = stage.run(QUICK, &args).end();
    ended.says(&[said]);
    assert!(ended.stdout.contains("Note"), "{}", ended.stdout);
    stage.assert_empty();
    stage.check(&[]).says(&["did not exit within 0.4 s"]);
}

fn a_server_command_is_supervised_over_two_outages() {
    let (stage, ended) = unless_busy(|| {
        let stage = Stage::new();
        let command = format!(
            "exec {} serve --listen 127.0.0.1:{{port}} --data {}",
            env!("CARGO_BIN_EXE_herd"),
            stage.text("data")
        );
        let ended = stage
            .run(
                QUICK,
                &[
                    "--server-cmd",
                    &command,
                    "--target",
                    "ws://127.0.0.1:{port}/v1/live?after={after}",
                    "--publish-url",
                    "http://127.0.0.1:{port}/v1/publish",
                    "--outages",
                    "2",
                ],
            )
            .end();
        (stage, ended)
    });
    ended.with(0).says(&["PASS", "2 outages"]);
    stage.assert_empty();
    let summary = stage.summary();
    let outages = summary["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 2);
    for outage in outages {
        assert_eq!(
            (&outage["dropped"], &outage["reconnected"]),
            (&24.into(), &24.into())
        );
        // The measured times, in their order.
        let at = |key: &str| outage[key].as_f64().unwrap();
        assert!(at("trigger_ms") <= at("first_drop_ms") && at("last_drop_ms") < at("ready_ms"));
    }
    // The reference server says goodbye on SIGTERM.
    let closed = super::rows(&stage.path("out"), "sessions.csv");
    assert!(
        closed
            .iter()
            .filter(|row| row["close_code"] == "1012")
            .count()
            >= 48
    );
    files::check(&stage.path("out"));
}

/// A command that kills the server and starts it again.
fn restart_by_command(stage: &Stage, server: &Serve<'_>) -> String {
    let pid = stage.file("pid", &server.pid().to_string());
    format!(
        "kill -9 $(cat {pid}); sleep 0.3; {} >/dev/null 2>&1 & echo $! > {pid}",
        server.line()
    )
}

/// What the command started is the user's, so it outlives the run.
fn end_what_it_started(stage: &Stage) {
    let pid = std::fs::read_to_string(stage.path("pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn a_command_restarts_a_target_that_is_not_herds() {
    let (stage, ended) = unless_busy(|| {
        let stage = Stage::new();
        let ended = {
            let server = Serve::start(&stage, &[]);
            let script = restart_by_command(&stage, &server);
            let (target, publish) = (server.target(), server.publish());
            let args = [
                "--target",
                &target,
                "--publish-url",
                &publish,
                "--restart-cmd",
                &script,
            ];
            let ended = stage.run(QUICK, &args).end();
            end_what_it_started(&stage);
            ended
        };
        (stage, ended)
    });
    ended.with(0).says(&["PASS", "command at"]);
    stage.assert_empty();
}

/// The second target is another way to the same server, and the command does nothing for it: no hour is waited for that.
#[test]
fn a_rollout_ends_at_a_target_that_its_command_does_nothing_to() {
    let stage = Stage::new();
    let ended = {
        let server = Serve::start(&stage, &[]);
        let script = restart_by_command(&stage, &server);
        let other = server.target().replace("127.0.0.1", "localhost");
        let scenario = QUICK.replace(
            "[outage]",
            "[target]\nready-limit = \"1s\"\n[outage]\npause = \"300ms\"",
        );
        let args = [
            "--target",
            &server.target(),
            "--target",
            &other,
            "--publish-url",
            &server.publish(),
            "--rolling",
            "--restart-cmd",
            &format!("if [ $TARGET = 1 ]; then {script}; fi"),
        ];
        let ended = stage.run(&scenario, &args).end();
        end_what_it_started(&stage);
        ended
    };
    ended.with(3).says(&["UNKNOWN", "the rollout ended early"]);
    stage.assert_empty();
}

/// The run is nearly over when the last client to come back loses its connection once more: it is waited for, and the
/// single drop is neither a wave nor a loss.
#[test]
fn a_client_that_is_dropped_in_the_tail_is_waited_for() {
    let (stage, ended) = unless_busy(|| {
        let stage = Stage::new();
        let ended = {
            let server = Serve::start(&stage, &[]);
            let script = restart_by_command(&stage, &server);
            // One client looks first; then 24 come, and come back.
            let port = relay_that_cuts(1 + 24 + 24, server.port());
            let target = format!("ws://127.0.0.1:{port}/v1/live?after={{after}}");
            let args = [
                "--target",
                &target,
                "--ready",
                &server.ready(),
                "--publish-url",
                &server.publish(),
                "--restart-cmd",
                &script,
            ];
            let ended = stage.run(QUICK, &args).end();
            end_what_it_started(&stage);
            ended
        };
        (stage, ended)
    });
    ended.with(0).says(&["PASS"]);
    let sessions = super::rows(&stage.path("out"), "sessions.csv");
    assert_eq!(sessions.len(), 24 + 24 + 1);
    assert_eq!(stage.summary()["outages"][0]["dropped"], 24);
    files::check(&stage.path("out"));
}
