//! The scenario files of the repository, each run with fewer clients, and what they are there to show.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use herd::target::port::Held;

use super::peers::{Others, Serve};
use super::{Ended, Running, Stage, outcome, together, unless_busy, until};

/// Starts a scenario file of the repository.
fn scenario(stage: &Stage, name: &str, args: &[&str]) -> Running {
    let mut command = with_herd(stage, "herd");
    command
        .arg("run")
        .arg(file(name))
        .args(["--seed", "7", "-o", &stage.text("out")])
        .args(args);
    Running::start(&mut command)
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{name}.toml"))
}

/// A command that finds herd on its PATH, as the scenarios' comments expect.
fn with_herd(stage: &Stage, program: &str) -> Command {
    let herd = Path::new(env!("CARGO_BIN_EXE_herd"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", herd.parent().unwrap().display());
    let mut command = stage.command(if program == "herd" {
        herd
    } else {
        Path::new(program)
    });
    command.env("PATH", path);
    command
}

fn fails_the_spread(stage: &Stage, ended: Ended) {
    ended.with(1).says(&["FAIL", "reconnect-spread"]);
    assert_eq!(outcome(&stage.summary(), "reconnect-spread"), "fail");
    stage.assert_empty();
}

#[test]
fn every_scenario_of_the_repository_ends_as_it_says() {
    let all: [fn(); 7] = [
        a_stampede_fails_and_so_does_one_behind_a_slow_accept_loop,
        exponential_with_a_quarter_of_jitter_fails_its_spread_and_its_peak,
        the_default_and_a_supervised_server_pass,
        somebody_elses_restart_passes_published_to_and_observed,
        a_command_sends_sigterm_to_what_a_loop_starts_again,
        several_falls_and_a_slow_start_pass,
        every_cut_and_clients_that_start_anew_pass,
    ];
    together(all);
}

/// Acceptance 5: a stampede is one, also when the server's accept loop is slow and hides it.
fn a_stampede_fails_and_so_does_one_behind_a_slow_accept_loop() {
    let (plain, slow) = (Stage::new(), Stage::new());
    let args = ["-c", "60"];
    let one = scenario(&plain, "stampede", &args);
    let two = scenario(
        &slow,
        "stampede",
        &[&args[..], &["--defect", "slow-accept"]].concat(),
    );
    fails_the_spread(&plain, one.end());
    fails_the_spread(&slow, two.end());
}

fn exponential_with_a_quarter_of_jitter_fails_its_spread_and_its_peak() {
    let stage = Stage::new();
    fails_the_spread(
        &stage,
        scenario(&stage, "exponential-25", &["-c", "100"]).end(),
    );
    assert_eq!(outcome(&stage.summary(), "peak"), "fail");
}

fn the_default_and_a_supervised_server_pass() {
    let default = || {
        let stage = Stage::new();
        let ended = scenario(&stage, "default", &["-c", "50"]).end();
        (stage, ended)
    };
    let external = || {
        let stage = Stage::new();
        let ended = scenario(&stage, "external-server", &["-c", "50"]).end();
        // The scenario keeps its data beside, where a person finds them.
        let log = std::fs::read_to_string(stage.path("out/server.log")).unwrap();
        let port = log.split("127.0.0.1:").nth(1).unwrap();
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        std::fs::remove_dir_all(format!("/tmp/herd-external-{port}")).unwrap();
        (stage, ended)
    };
    let both: [&(dyn Fn() -> (Stage, Ended) + Sync); 2] = [&default, &external];
    for (stage, ended) in together(both.map(|run| move || unless_busy(run))) {
        ended.with(0).says(&["PASS"]);
        stage.assert_empty();
    }
}

fn several_falls_and_a_slow_start_pass() {
    for name in ["rolling", "crash-loop", "slow-start"] {
        let (stage, ended) = unless_busy(|| {
            let stage = Stage::new();
            let ended = scenario(&stage, name, &["-c", "240"]).end();
            (stage, ended)
        });
        ended.with(0).says(&["PASS"]);
        stage.assert_empty();
    }
}

fn every_cut_and_clients_that_start_anew_pass() {
    let all = [
        "cut-fin",
        "cut-rst",
        "cut-refuse",
        "blackhole",
        "region",
        "slow-network",
        "trickle",
        "refresh",
    ];
    for name in all {
        let (stage, ended) = unless_busy(|| {
            let stage = Stage::new();
            let ended = scenario(&stage, name, &["-c", "200"]).end();
            (stage, ended)
        });
        ended.with(0).says(&["PASS"]);
        stage.assert_empty();
    }
}

/// `wait.toml` and `observe.toml`: somebody else restarts the server, once the scenario waits for it.
fn somebody_elses_restart_passes_published_to_and_observed() {
    let remote = |name: &str| {
        let stage = Stage::new();
        let ended = {
            let mut server = Serve::start(&stage, &[]);
            let _others = (name == "observe").then(|| Others::publish(server.port()));
            let (target, ready, publish) = (server.target(), server.ready(), server.publish());
            let mut args = vec!["-c", "40", "--target", &target, "--settle", "3s"];
            args.extend([
                "--quiet-period",
                "500ms",
                "--steady",
                "500ms",
                "--ready",
                &ready,
            ]);
            if name == "wait" {
                args.extend(["--publish-url", &publish]);
            }
            let mut run = scenario(&stage, name, &args);
            run.until_it_says("waiting for a restart");
            server.restart(Duration::from_secs(1));
            run.end()
        };
        (stage, ended)
    };
    let both = [("wait", "exactly-once"), ("observe", "agreement")];
    together(both.map(|(name, word)| {
        move || {
            let (stage, ended) = unless_busy(|| remote(name));
            ended.with(0).says(&["PASS", word]);
            stage.assert_empty();
        }
    }));
}

/// A process that ends with this, and all of its group.
struct Group(Running);

impl Drop for Group {
    fn drop(&mut self) {
        self.0.signal_group(rustix::process::Signal::KILL);
        let _ = self.0.child.wait();
    }
}

/// `restart-command.toml`, with the loop that stands in its comment; only its port and its place under /tmp are other ones.
fn a_command_sends_sigterm_to_what_a_loop_starts_again() {
    let (stage, ended) = unless_busy(|| {
        let (stage, held) = (Stage::new(), Held::pick().unwrap());
        let text = std::fs::read_to_string(file("restart-command")).unwrap();
        let text = text
            .replace("8080", &held.port().to_string())
            .replace("/tmp/herd-command", &stage.text("live"));
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("#   while "));
        let line = format!("while {}", line.unwrap());
        let supervisor = Group(Running::start(with_herd(&stage, "sh").args(["-c", &line])));
        until("the loop's first server", || {
            std::net::TcpStream::connect(("127.0.0.1", held.port())).ok()
        });
        let args = ["-c", "50", "--seed", "7"];
        let ended = stage.run(&text, &args).end();
        drop(supervisor);
        (stage, ended)
    });
    ended.with(0).says(&["PASS", "command at"]);
    let sessions = super::rows(&stage.path("out"), "sessions.csv");
    let goodbyes = sessions.iter().filter(|row| row["close_code"] == "1012");
    assert_eq!(goodbyes.count(), 50, "SIGTERM ends every session with 1012");
    stage.assert_empty();
}
