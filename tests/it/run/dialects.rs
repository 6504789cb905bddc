//! The reference server's other dialects as somebody else's server: probed by one client, then waited for by a herd.

use std::time::Duration;

use super::peers::Serve;
use super::{QUICK, Stage, together, unless_busy};
use crate::files;

/// Where each dialect is spoken, and the profile that a probe must find by itself.
const DIALECTS: [(&str, &str); 3] = [
    ("ws://127.0.0.1:{port}/v1/live", "after"),
    ("ws://127.0.0.1:{port}/v1/resume", "resume"),
    ("http://127.0.0.1:{port}/v1/events", "sse"),
];

/// Probes a server with this bug (empty = none) and returns how that ended.
fn probe(target: &str, bug: &str) -> super::Ended {
    let stage = Stage::new();
    let defect = ["--defect", bug];
    let server = Serve::start(&stage, if bug.is_empty() { &[] } else { &defect });
    let target = target.replace("{port}", &server.port().to_string());
    let args = [
        "probe",
        "--target",
        &target,
        "--publish-url",
        &server.publish(),
    ];
    stage.herd(&args).end()
}

#[test]
fn a_probe_finds_the_profile_of_each_dialect() {
    together(DIALECTS.map(|(target, profile)| {
        move || {
            let line = format!("--profile {profile}");
            probe(target, "").with(0).says(&["resume works", &line]);
        }
    }));
}

#[test]
fn a_probe_says_what_is_wrong_with_a_resume() {
    let (live, events) = (DIALECTS[0].0, DIALECTS[2].0);
    let cases = [
        (live, "never-catch-up", "the cursor is not heeded"),
        (live, "reset-always", "answered by an order to reload"),
        (live, "duplicate-on-resume", "1 came again"),
        (
            events,
            "live-not-resubscribed",
            "but no live event after it",
        ),
    ];
    together(cases.map(|(target, bug, words)| {
        move || {
            probe(target, bug).with(3).says(&[words, "Missing"]);
        }
    }));
}

#[test]
fn a_probe_of_nobody_is_broken() {
    let held = herd::target::port::Held::pick().unwrap();
    let target = format!("ws://127.0.0.1:{}/", held.port());
    let stage = Stage::new();
    let ended = stage.herd(&["probe", "--target", &target]).end();
    ended
        .with(4)
        .says(&["none fits", "the connection is refused"]);
}

#[test]
fn a_restart_is_waited_for_in_every_dialect() {
    together(DIALECTS.map(|(target, profile)| {
        move || {
            let (stage, ended) = unless_busy(|| {
                let (stage, theirs) = (Stage::new(), Stage::new());
                let mut server = Serve::start(&theirs, &[]);
                let target = target.replace("{port}", &server.port().to_string());
                let publish = server.publish();
                let args = ["--target", &target, "--profile", profile, "--wait"];
                let mut run = stage.run(QUICK, &[&args[..], &["--publish-url", &publish]].concat());
                run.until_it_says("waiting for a restart");
                server.restart(Duration::from_millis(300));
                (stage, run.end())
            });
            ended.with(0).says(&["PASS", "24 resumed", profile]);
            files::check(&stage.path("out"));
        }
    }));
}
