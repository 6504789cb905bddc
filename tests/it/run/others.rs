//! Servers that are not herd's: somebody or a command restarts them, they come back wrong or not at all, and herd may watch
//! their process.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use herd::report::Format;

use super::peers::{Others, Serve};
use super::{Ended, QUICK, Running, Stage, outcome, rows, together, unless_busy, until};
use crate::files;

/// A run against this server that waits for its restart.
fn waiting(stage: &Stage, server: &Serve<'_>, scenario: &str, more: &[&str]) -> Running {
    let (target, publish) = (server.target(), server.publish());
    let args = ["--target", &target, "--publish-url", &publish, "--wait"];
    let mut run = stage.run(scenario, &[&args[..], more].concat());
    run.until_it_says("waiting for a restart");
    run
}

#[test]
fn what_others_restart_is_judged() {
    let all: [fn(); 4] = [
        a_server_that_somebody_restarts_fails_for_its_defect_and_is_watched_meanwhile,
        a_supervisor_restarts_the_server_when_it_is_asked_to,
        a_server_that_a_command_restarts_fails_for_its_defect,
        clients_that_come_back_at_once_from_a_command_fail,
    ];
    together(all);
}

fn a_server_that_somebody_restarts_fails_for_its_defect_and_is_watched_meanwhile() {
    let (stage, ended, pid) = {
        let stage = Stage::new();
        let mut server = Serve::start(&stage, &["--defect", "forget-log"]);
        let pid = server.pid().to_string();
        let run = waiting(&stage, &server, QUICK, &["--watch-pid", &pid]);
        server.restart(Duration::from_millis(300));
        let ended = run.end();
        drop(server);
        (stage, ended, pid)
    };
    ended.with(1).says(&["FAIL", "exactly-once", "lost"]);
    stage.assert_empty();
    let looks = rows(&stage.path("out"), "health.csv");
    assert!(!looks.is_empty());
    for look in looks {
        let number = |column: &str| look[column].parse::<u64>().unwrap();
        assert_eq!(look["pid"], pid, "the new one is another process");
        assert!(number("rss_bytes") > 1_000_000, "{look:?}");
        assert!(
            number("threads") > 0 && number("descriptors") > 0,
            "{look:?}"
        );
    }
    assert_eq!(stage.summary()["health"][0]["processes"], 1);
}

/// A run whose restart command asks a supervisor for it by a POST, as `curl -X POST` would.
fn asked_by_post(scenario: &str, serve: &[&str]) -> (Stage, Ended) {
    let stage = Stage::new();
    let mut server = Serve::start(&stage, serve);
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    door.set_nonblocking(true).unwrap();
    let port = door.local_addr().unwrap().port();
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf \"POST /restart HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\" >&3; read -r _ status _ <&3; [ \"$status\" = 202 ]"
    );
    let (target, publish, ready) = (server.target(), server.publish(), server.ready());
    let command = format!("bash -c '{ask}'");
    let args = [
        "--target",
        &target,
        "--publish-url",
        &publish,
        "--ready",
        &ready,
        "--restart-cmd",
        &command,
    ];
    let run = stage.run(scenario, &args);
    let (mut asking, _) = until("a POST", || door.accept().ok());
    asking.set_nonblocking(false).unwrap();
    asking
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut request = [0; 512];
    let n = asking.read(&mut request).unwrap();
    assert!(request[..n].starts_with(b"POST /restart "));
    asking
        .write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        .unwrap();
    server.restart(Duration::from_millis(300));
    let ended = run.end();
    drop(server);
    (stage, ended)
}

fn a_supervisor_restarts_the_server_when_it_is_asked_to() {
    let (stage, ended) = unless_busy(|| asked_by_post(QUICK, &[]));
    ended.with(0).says(&["PASS", "command at"]);
    stage.assert_empty();
}

fn a_server_that_a_command_restarts_fails_for_its_defect() {
    let (stage, ended) = asked_by_post(QUICK, &["--defect", "lose-on-resume"]);
    ended.with(1).says(&["FAIL", "exactly-once", "lost"]);
    stage.assert_empty();
}

fn clients_that_come_back_at_once_from_a_command_fail() {
    let scenario = QUICK.replace("base = \"2s\"", "base = \"20ms\"");
    let scenario = scenario.replace("cap = \"8s\"", "cap = \"20ms\"");
    let (stage, ended) = unless_busy(|| asked_by_post(&scenario, &[]));
    ended.with(1).says(&["FAIL", "reconnect-spread"]);
    stage.assert_empty();
}

/// Nobody answers at all, or something accepts connections and never says a word.
#[test]
fn a_target_that_never_returns_fails_and_every_client_is_accounted_for() {
    let scenario = QUICK
        .replace("ramp = ", "timeout = \"1s\"\nramp = ")
        .replace("settle = ", "reconnect-limit = \"4s\"\nsettle = ")
        + "[target]\nready-limit = \"2s\"\n";
    let never = |silent: bool| {
        let stage = Stage::new();
        let mut server = Serve::start(&stage, &[]);
        let run = waiting(&stage, &server, &scenario, &[]);
        server.kill();
        let silence = silent.then(|| Others::hold_silently(server.port()));
        let ended = run.end().with(1);
        drop((silence, server));
        ended.says(&["FAIL", "all-reconnected", "24 never came back"]);
        let summary = stage.summary();
        let outage = &summary["outages"][0];
        assert_eq!(
            (&outage["dropped"], &outage["reconnected"]),
            (&24.into(), &0.into())
        );
        assert_eq!(outcome(&summary, "all-reconnected"), "fail");
        // What they did not get because they are away is no loss.
        let delivery = &summary["delivery"];
        assert_eq!(delivery["lost"], 0, "{delivery}");
        assert_ne!(outcome(&summary, "exactly-once"), "fail");
        for name in Format::ALL.into_iter().flat_map(Format::files) {
            assert!(stage.path("out").join(name).is_file(), "{name}");
        }
        files::check(&stage.path("out"));
        stage.check(&[]).with(1);
        stage.assert_empty();
    };
    together([false, true].map(|silent| move || never(silent)));
}

/// Before anything is started or written.
#[test]
fn a_process_to_watch_that_is_not_there_is_refused() {
    let stage = Stage::new();
    let mut gone = stage.command("true").spawn().unwrap();
    let pid = gone.id().to_string();
    gone.wait().unwrap();
    let args = ["--target", "ws://127.0.0.1:1/", "--watch-pid", &pid];
    let refused = stage.run(QUICK, &args).end().with(2);
    refused
        .at_once()
        .says(&[&format!("there is no process {pid} to watch")]);
    assert!(!stage.path("out").exists());
}

/// After its restart the server falls by itself: how, and what it said last, is in the report and in the summary.
#[test]
fn a_server_that_dies_by_itself_is_told_with_its_last_words() {
    let stage = Stage::new();
    let command = format!(
        "{} serve --listen 127.0.0.1:{{port}} --data {} --defect die-again=12; echo out of memory >&2; echo gave up >&2; exit 7",
        env!("CARGO_BIN_EXE_herd"),
        stage.text("data")
    );
    let args = [
        "--server-cmd",
        &command,
        "--stop-signal",
        "KILL",
        "--target",
        "ws://127.0.0.1:{port}/v1/live?after={after}",
        "--publish-url",
        "http://127.0.0.1:{port}/v1/publish",
    ];
    let ended = stage.run(QUICK, &args).end().with(1);
    ended.says(&["FAIL", "relapse", "exit code 7", "out of memory", "gave up"]);
    assert!(ended.stdout.contains("gave up"), "{}", ended.stdout);
    let summary = stage.summary();
    let death = &summary["deaths"][0];
    assert_eq!(death["status"], "exit code 7");
    let words = death["last_words"].as_str().unwrap();
    assert!(words.contains("out of memory\ngave up"), "{words}");
    stage.assert_empty();
}
