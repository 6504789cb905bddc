//! Acceptance 8: nothing observed is unknown, never a pass.

use super::peers::{Fake, Serve};
use super::{QUICK, Stage, outcome};

#[test]
fn nobody_publishes() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let args = ["--target", &server.target(), "--observe", "--settle", "1s"];
    let ended = stage.run(QUICK, &args).end().with(3);
    ended.at_once().says(&[
        "UNKNOWN",
        "0 of 24 clients received a priming event",
        "nothing was restarted",
    ]);
}

/// A right server spoken to with the wrong profile has lost nothing: herd can't read it, shows what came and says what
/// would fit.
#[test]
fn a_wrong_profile_is_unknown_with_what_came_and_a_hint() {
    for (frame, hint) in [
        (r#"0{"sid":"oUFD","upgrades":[]}"#, "--profile socketio"),
        (r#"{"event":"tick","data":{"n":1}}"#, "--profile nestjs-ws"),
    ] {
        let stage = Stage::new();
        let target = Fake::saying(frame).url("ws");
        let args = ["--target", &target, "--observe", "--settle", "1s"];
        let ended = stage.run(QUICK, &args).end().with(3);
        ended.at_once().says(&[
            "UNKNOWN",
            "0 of 24 clients received a priming event",
            frame,
            hint,
        ]);
        let delivery = &stage.summary()["delivery"];
        assert_eq!(
            (&delivery["lost"], &delivery["expected"]),
            (&0.into(), &0.into())
        );
        // The history alone says it too.
        stage.check(&[]).with(3).says(&[frame, hint]);
    }
}

#[test]
fn nobody_restarts_the_server() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let (target, publish) = (server.target(), server.publish());
    let args = [
        "--target",
        &target,
        "--publish-url",
        &publish,
        "--wait",
        "--wait-limit",
        "1s",
    ];
    let ended = stage.run(QUICK, &args).end().with(3);
    ended
        .at_once()
        .says(&["UNKNOWN", "nobody restarted the server within the limit"]);
}

/// The clients are back before the next event, so nobody had anything to catch up with.
#[test]
fn nothing_was_published_while_the_clients_were_away() {
    let scenario = QUICK
        .replace("base = \"2s\"", "base = \"50ms\"")
        .replace("min-spread = \"1s\"", "min-spread = \"1ms\"")
        // In a longer window who dials into the dying server dials twice.
        .replace("80%/500ms", "100%/10ms");
    let stage = Stage::new();
    let args = ["--rate", "1/s", "--steady", "50ms", "--down", "0s"];
    stage
        .run(&scenario, &args)
        .end()
        .with(3)
        .says(&["not exercised"]);
    assert_eq!(outcome(&stage.summary(), "exactly-once"), "unknown");
    assert_ne!(outcome(&stage.summary(), "all-reconnected"), "fail");
}

/// A restart command that restarts nothing.
#[test]
fn the_restart_command_restarts_nothing() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let (target, publish) = (server.target(), server.publish());
    let args = [
        "--target",
        &target,
        "--publish-url",
        &publish,
        "--restart-cmd",
        "true",
    ];
    let run = stage.run(QUICK, &args);
    // It would wait a minute for something to be seen.
    let mut run = run;
    run.until_it_says("down ");
    run.signal(rustix::process::Signal::INT);
    run.end().with(130);
    stage.check(&[]).with(3);
}
