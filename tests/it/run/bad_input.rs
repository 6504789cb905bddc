//! What people get wrong, and what servers do: at once, the right code, and words that help.

use std::process::Command;
use std::time::Duration;

use super::peers::{Fake, Serve};
use super::{Ended, QUICK, Running, Stage, together};

/// Runs against a target of this address.
fn against(target: &str, args: &[&str]) -> Ended {
    let stage = Stage::new();
    let ended = stage
        .run(QUICK, &[&["--target", target], args].concat())
        .end();
    stage.assert_empty();
    ended
}

#[test]
fn a_target_that_is_no_websocket_server_is_broken_and_described() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("ws://{}/live", listener.local_addr().unwrap())
    };
    let answering = |answer| Fake::answering(answer).url("ws");
    let cases: [(String, &[&str]); 9] = [
        (closed, &["refuses connections", "is the server running"]),
        ("ws://nowhere.invalid/".into(), &["nowhere.invalid"]),
        (
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
            &["answers 200 to the WebSocket handshake"],
        ),
        (
            answering(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
            &["answers 401", "credentials"],
        ),
        (
            answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            &["answers 404", "check path"],
        ),
        (
            answering(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
            &["answers 503"],
        ),
        (answering(b""), &["doesn't speak WebSocket"]),
        (
            answering(b"\x00\x1b[31m\xff\xfe garbage\r\n\r\n"),
            &["doesn't speak WebSocket"],
        ),
        ("ftp://127.0.0.1:1/".into(), &["not an address"]),
    ];
    let runs: Vec<_> = cases
        .iter()
        .map(|(target, _)| {
            let stage = Stage::new();
            let run = stage.run(QUICK, &["--target", target]);
            (stage, run)
        })
        .collect();
    for ((stage, run), (target, words)) in runs.into_iter().zip(&cases) {
        let code = if target.starts_with("ftp:") { 2 } else { 4 };
        let ended = run.end().with(code);
        ended.at_once().says(words);
        assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
        stage.assert_empty();
    }
}

#[test]
fn a_target_that_closes_at_once_is_broken() {
    let ended = against(&Fake::hanging_up().url("ws"), &[]).with(4);
    ended
        .at_once()
        .says(&["accepts connections and ends them at once"]);
}

#[test]
fn a_server_command_that_cannot_serve_is_broken_with_its_last_words() {
    let target = "ws://127.0.0.1:{port}/";
    for (command, words) in [
        ("/no/such/server", &["not found", "server.log"][..]),
        ("echo no database >&2; exit 7", &["7", "no database"]),
    ] {
        let ended = against(target, &["--server-cmd", command]).with(4);
        ended.at_once().says(words);
    }
}

/// The server's fault after the restart: a verdict, and a fail.
#[test]
fn a_server_that_never_comes_back_fails() {
    together(["exit 9", "exec sleep 100"].map(|again| {
        move || {
        let stage = Stage::new();
        let flag = stage.text("started");
        let command = format!(
            "if test -e {flag}; then {again}; fi; touch {flag}; exec {} serve --listen 127.0.0.1:{{port}} --data {}",
            env!("CARGO_BIN_EXE_herd"),
            stage.text("data")
        );
        let scenario = format!("{QUICK}\n[target]\nready-limit = \"2s\"\n");
        let target = "ws://127.0.0.1:{port}/v1/live?after={after}";
        let publish = "http://127.0.0.1:{port}/v1/publish";
        let args = [
            "--server-cmd",
            &command,
            "--target",
            target,
            "--publish-url",
            publish,
        ];
        let ended = stage.run(&scenario, &args).end().with(1);
        ended.at_once().says(&["FAIL", "all-reconnected"]);
        assert_eq!(stage.summary()["outages"][0]["reconnected"], 0, "{again}");
        stage.assert_empty();
        }
    }));
}

#[test]
fn a_wrong_scenario_or_output_directory_is_refused_before_anything_starts() {
    let stage = Stage::new();
    let file = stage.file("no.toml", "clients = 3\nthis is no TOML\n");
    let refused = stage.herd(&["run", &file]).end().with(2);
    refused.at_once().says(&[&format!("{file}:2:")]);
    let used = stage.text("used");
    std::fs::create_dir(&used).unwrap();
    std::fs::write(stage.path("used/mine"), "mine").unwrap();
    let refused = stage.herd(&["run", "-o", &used]).end().with(2);
    refused.at_once().says(&[&used, "isn't empty"]);
    assert_eq!(std::fs::read(stage.path("used/mine")).unwrap(), b"mine");
    // Root may write everywhere, but not below a file.
    let below = stage.text("used/mine/out");
    let broken = stage.herd(&["run", "-o", &below]).end().with(4);
    broken.at_once().says(&["can't create", &below]);
}

/// A limit on file sizes stands for the full disk; ignored, its signal leaves an error like any other.
#[test]
fn a_full_disk_breaks_the_run_and_keeps_what_was_written() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let file = stage.file("scenario.toml", QUICK);
    let line = format!(
        "trap '' XFSZ; ulimit -f 32; exec {} run {file} -o {} --target '{}' --publish-url {} --rate 200/s --steady 1m",
        env!("CARGO_BIN_EXE_herd"),
        stage.text("out"),
        server.target(),
        server.publish()
    );
    let ended = Running::start(stage.command("sh").args(["-c", &line]))
        .end()
        .with(4);
    ended.says(&["can't write", "history.herd", "File too large"]);
    drop(server);
    stage.assert_empty();
    stage.check(&[]).with(3).says(&["no end"]);
}

#[test]
fn too_few_descriptors_are_counted_before_the_run() {
    let stage = Stage::new();
    let herd = |cut: &str, limit: u32| {
        let line = format!(
            "ulimit -n {limit}; exec {} run -c 100 {cut} -o {}",
            env!("CARGO_BIN_EXE_herd"),
            stage.text("out")
        );
        Running::start(stage.command("sh").args(["-c", &line]))
            .end()
            .with(4)
    };
    herd("", 300).at_once().says(&[
        "100 clients need 356 open files",
        "at most 44 clients fit",
        "ulimit -Hn",
    ]);
    herd("", 100).at_once().says(&["at most 0 clients fit"]);
    // Through herd itself a client takes three, and one more for what a blackhole swallowed.
    for (cut, needed, fit) in [("fin", 556, 48), ("blackhole", 656, 36)] {
        herd(&format!("--cut {cut}"), 400).at_once().says(&[
            &format!("100 clients need {needed} open files"),
            &format!("at most {fit} clients fit"),
        ]);
    }
    assert!(!stage.path("out").exists());
}

#[test]
fn publications_that_are_refused_are_the_reason_that_is_told() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let failing =
        Fake::answering(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let nowhere = format!("http://127.0.0.1:{}/nope", server.port());
    let (target, other) = (server.target(), failing.url("http"));
    let cases = [(nowhere, "status 404"), (other, "status 500")];
    together(cases.map(|(url, words)| {
        let target = &target;
        move || {
            let ended = against(target, &["--publish-url", &url]).with(3);
            ended
                .at_once()
                .says(&["UNKNOWN", "none of", "publications was accepted", words]);
        }
    }));
}

#[test]
fn a_restart_command_that_fails_or_hangs_is_broken() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    for (command, words) in [
        ("echo no cluster >&2; exit 3", "no cluster"),
        ("sleep 100", "was killed"),
    ] {
        let publish = server.publish();
        let args = ["--publish-url", &publish, "--restart-cmd", command];
        let ended = against(&server.target(), &args).with(4);
        ended.at_once().says(&["the restart command", words]);
    }
}

#[test]
fn a_pointer_at_the_wrong_place_shows_what_was_read() {
    let stage = Stage::new();
    let server = Serve::start(&stage, &[]);
    let publish = server.publish();
    for (pointer, read) in [
        ("--id", "the first with no id and the number"),
        ("--seq", "arrived without herd's number; point --seq at it"),
    ] {
        let args = [
            "--publish-url",
            &publish,
            "--settle",
            "1s",
            pointer,
            "/nope",
        ];
        let ended = against(&server.target(), &args).with(3);
        ended
            .at_once()
            .says(&["UNKNOWN", "0 of 24 clients", "nothing was restarted", read]);
    }
}

/// A guard of the tests themselves: what is left behind is seen.
#[test]
fn a_process_that_stays_is_found() {
    let stage = Stage::new();
    let mut child: Command = stage.command("sleep");
    let mut child = child.arg("100").spawn().unwrap();
    // `spawn` returns at the exec, a moment before the kernel shows the new program's environment.
    let found = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        stage.processes().len() == 1
    });
    assert!(found, "{:#?}", stage.processes());
    child.kill().unwrap();
    child.wait().unwrap();
    stage.assert_empty();
}
