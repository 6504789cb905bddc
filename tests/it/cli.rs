//! The command line from outside: the binary, its streams and its exit codes.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

mod presets;
mod profile;
mod usage;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn herd(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_herd"))
        .args(args)
        .stdin(Stdio::null())
        .env_remove("COLUMNS")
        .output()
        .unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = herd(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    assert_eq!(stderr, "", "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is said of a usage error, on stderr alone.
fn refused(args: &[&str]) -> String {
    let output = herd(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{args:?}");
    stderr.strip_prefix("herd: ").unwrap().trim_end().to_owned()
}

#[test]
fn help_shows_the_commands_and_the_exit_codes() {
    insta::assert_snapshot!(stdout(&["--help"]), @r#"
    Restarts a realtime server under simulated clients, and judges: did they come back spread out, and
    did every client get every event exactly once?

    Usage: herd <COMMAND>

    Commands:
      run          Run and judge
      probe        Look at a server with one client and say which profile fits, what is missing, and
                   what to run
      simulate     The same clients in virtual time, against a model server: a verdict in seconds, for a
                   million clients
      check        Judge recorded histories again; several are merged as shards of one run
      report       Render recorded histories again
      serve        The reference server alone
      list         Show what can be named
      profile      Try a profile on recorded frames
      init         Write a commented scenario file with every key and its default
      completions  Write completions for a shell to stdout
      man          Write the manual page to stdout
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes:
        0  pass         every check passed
        1  fail         at least one check failed
        2  usage        the command line or the scenario is wrong, or files of
                        different runs were given to check
        3  unknown      nothing failed, but something could not be judged
        4  broken       the run could not be carried out or its results not written
      130  interrupted  interrupted; what was recorded is kept and marked truncated
      143  terminated   terminated; what was recorded is kept and marked truncated
    "#);
}

#[test]
fn help_of_run_shows_every_option() {
    insta::assert_snapshot!(stdout(&["run", "-h"]), @r#"
    Run and judge

    Usage: herd run [OPTIONS] [SCENARIO]

    Arguments:
      [SCENARIO]  Scenario file; every option overrides its key (herd init writes one)

    Options:
      -c, --clients <COUNT>  How many clients [default: 1000]
          --seed <N>         Replays every delay of the run that printed it [default: drawn]
          --shard <i/N>      This process's share of the clients, such as 1/4; all shards of a run need
                             the same --seed, each run another
      -h, --help             Print help (see more with '--help')

    Server under test:
          --target <URL>             Where clients connect: ws:// or wss://HOST:PORT/PATH, http:// or
                                     https:// for an event stream; {after} is the last id, {client} the
                                     client's number, {env:NAME} and {file:PATH} keep secrets out; again
                                     for each further one [default: herd's own server]
          --servers <COUNT>          How many servers herd runs, each with a {port} of its own [default:
                                     1]
          --pick <HOW>               How clients choose among several targets [default: round-robin]
                                     [possible values: round-robin, random, sticky]
          --server-cmd <CMD>         Command that starts the server, by sh -c; {port} is a free port,
                                     PORT in its environment too
          --ready <URL>              Ready once this http:// or https:// URL answers 2xx [default: a TCP
                                     connect to the target]
          --watch-pid <PID>          A process of this machine whose CPU, memory, threads and
                                     descriptors are recorded, with all that it started, where herd
                                     doesn't run the server
          --stop-signal <SIGNAL>     How the server is stopped [default: KILL for herd's own server,
                                     else TERM] [possible values: TERM, KILL]
          --grace <DURATION>         How long it may take after TERM [default: 10s]
          --defect <NAME[=ARG][@N]>  Plant a bug in herd's own server (may be repeated), @2 in the
                                     second of several only; see herd list defects
          --keep <COUNT>             How many events herd's own server keeps for replay
          --slow-start <HOW TIME>    What handshakes of herd's own server meet at first after a restart:
                                     "hang 2s", or "503 2s" with a Retry-After

    Restarts:
          --outages <COUNT>          How many restarts [default: 1]
          --down <DURATION>          How long the server stays down [default: 1s]
          --steady <DURATION>        From all clients primed until the restart [default: 3s]
          --restart-cmd <CMD>        Command that restarts a server that herd didn't start, by sh -c
          --wait                     Wait until somebody restarts it; --target alone implies this
          --wait-limit <DURATION>    How long to wait for that [default: 10m]
          --quiet-period <DURATION>  A pause longer than this ends somebody's rollout [default: 10s]
          --falls <COUNT>            How often the server falls in one restart: above 1 it is a crash
                                     loop [default: 1]
          --up <DURATION>            How long it is up between two falls [default: 3s]
          --rolling                  Restart several targets one after another
          --pause <DURATION>         From one's readiness to the next one's stop [default: 5s]
          --cut <KIND>               Take the network away instead of restarting a server [possible
                                     values: fin, rst, blackhole, refuse, latency, bandwidth]
          --share <SHARE>            The share of the clients that a cut hits [default: 100%]
          --refresh <SHARE>          The share of the clients that restart during the outage, as closed
                                     tabs do, and keep their last id

    Events:
          --publish-url <URL>        Publish by one POST an event to this http:// or https:// URL
          --publish-body <TEMPLATE>  What to publish: {payload} is a JSON object with herd's number as
                                     seq, {seq} the number alone [default: {payload}]
          --publish-cmd <CMD>        Publish by one long-lived command, by sh -c, that gets a line an
                                     event on stdin
          --observe                  Others publish; compare what the clients get
          --rate <RATE>              Events a second [default: 20/s]

    Clients:
          --backoff <PRESET>     When clients come back; see herd list presets [default: full-jitter]
          --profile <NAME>       What is said over the connection; see herd list profiles [default: by
                                 the target's scheme] [possible values: after, resume, sse, socketio,
                                 nestjs-ws]
          --id <POINTER>         JSON Pointer of an event's id [default: as the profile says, such as
                                 /id]
          --seq <POINTER>        JSON Pointer of herd's number [default: as the profile says, such as
                                 /data/seq]
      -H, --header <LINE>        Header of the handshake, "Name: value" (may be repeated)
          --clients-file <FILE>  CSV file whose row k holds client k's own values, such as tokens:
                                 {col:NAME} in URL, headers and frames
          --source-ip <IP>       Local address to dial from (may be repeated)
          --ramp <DURATION>      The first connects are spread evenly over this [default: 2s]
          --heartbeat <TIME>     From ping to ping / how long an answer may take, such as 25s/20s
                                 [default: as the profile says]

    Access:
      -k, --insecure              Believe every server's certificate
          --cacert <FILE>         Believe the authorities in this PEM file and no others [default: the
                                  system's]
          --cert <FILE>           Client certificate, with its chain, in a PEM file
          --key <FILE>            Its private key in a PEM file [default: in the file of the
                                  certificate]
      -u, --user <USER:PASSWORD>  Basic authentication; {env:NAME} and {file:PATH} keep secrets out
          --bearer <TOKEN>        Bearer token, such as {env:TOKEN}
          --subprotocol <NAME>    Subprotocol to offer (may be repeated); the server must choose one
          --proxy <URL>           HTTP proxy: http://HOST:PORT, none, or env for https_proxy,
                                  http_proxy, all_proxy and no_proxy [default: env]

    What must hold:
          --min-spread <DURATION>       Last minus first reconnect of each wave, at least [default: 5s]
          --max-peak <SHARE/WINDOW>     Attempts in any such window, as a share of the wave's clients,
                                        at most [default: 75%/1s]
          --delivery <MODE>             Delivery that must hold [default: exactly-once] [possible
                                        values: exactly-once, at-least-once, at-most-once, agreement]
          --max-resets <COUNT>          How many clients may be told to reload [default: 0]
          --settle <DURATION>           How long an event may take [default: 30s]
          --reconnect-limit <DURATION>  How long a client may stay away [default: derived from the
                                        backoff]
          --max-staleness <LIMIT>       How long a client's data may be stale, at p99 or "pN LIMIT"
                                        [default: reported only]

    Output:
      -o, --output <DIR>   Directory of the results; one that isn't empty is refused [default:
                           reports/TIME-SCENARIO]
          --format <LIST>  Files to write besides the history [default: json,csv,hdr] [possible values:
                           json, csv, hdr]
          --json           The summary as JSON on stdout and nothing else there; the report goes to
                           stderr
      -q, --quiet          No progress and no remarks
          --no-color       No colours (so does NO_COLOR in the environment)

    Exit codes:
        0  pass         every check passed
        1  fail         at least one check failed
        2  usage        the command line or the scenario is wrong, or files of
                        different runs were given to check
        3  unknown      nothing failed, but something could not be judged
        4  broken       the run could not be carried out or its results not written
      130  interrupted  interrupted; what was recorded is kept and marked truncated
      143  terminated   terminated; what was recorded is kept and marked truncated
    "#);
}

#[test]
fn the_version_is_the_crates() {
    let version = format!("herd {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&["--version"]), version);
}

#[test]
fn a_wrong_scenario_file_is_refused_with_file_line_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deploy.toml");
    std::fs::write(&file, "clients = 10\n[outage]\ndown = 5\n").unwrap();
    let file = file.to_str().unwrap();
    let said = refused(&["run", file]);
    let wanted = format!("{file}:3: outage.down: 5 has no unit; write a duration with its unit");
    assert!(said.starts_with(&wanted), "{said}");
}

#[test]
fn no_arguments_at_all_is_a_usage_error_that_shows_the_help() {
    let said = refused(&[]);
    assert!(
        said.contains("herd run") || said.contains("Usage: herd"),
        "{said}"
    );
}

#[test]
fn lists_are_json_arrays_of_named_things() {
    let wanted = [
        ("presets", "full-jitter", "source"),
        ("profiles", "after", "tested"),
        ("triggers", "child", "summary"),
        ("checks", "reconnect-spread", "default"),
        ("formats", "json", "files"),
        ("defects", "lose-live", "trips"),
    ];
    for (list, first, key) in wanted {
        let rows: Value = serde_json::from_str(&stdout(&["list", list, "--json"])).unwrap();
        let rows = rows.as_array().unwrap();
        assert_eq!(rows[0]["name"], first, "{list}");
        for row in rows {
            assert!(
                row["name"].is_string() && row["summary"].is_string(),
                "{list}: {row}"
            );
            assert!(!row[key].is_null(), "{list}: {row} lacks {key}");
        }
        let text = stdout(&["list", list]);
        for row in rows {
            assert!(
                text.contains(row["name"].as_str().unwrap()),
                "{list}: {text}"
            );
        }
    }
}

#[test]
fn defects_say_which_checks_they_trip_and_what_their_ledger_counts() {
    let rows: Value = serde_json::from_str(&stdout(&["list", "defects", "--json"])).unwrap();
    let checks: Value = serde_json::from_str(&stdout(&["list", "checks", "--json"])).unwrap();
    let known: Vec<&Value> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    for row in rows.as_array().unwrap() {
        assert!(row["counts"].is_string(), "{row}");
        assert!(row.get("arg").is_some(), "{row}");
        for check in row["trips"].as_array().unwrap() {
            assert!(known.contains(&check), "{row}");
        }
    }
}

#[test]
fn completions_and_the_manual_page_are_written() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&["completions", shell]);
        assert!(
            script.contains("herd") && script.contains("min-spread"),
            "{shell}"
        );
    }
    let page = stdout(&["man"]);
    assert!(
        page.starts_with(".ie") || page.contains(".TH herd"),
        "{page}"
    );
    assert!(
        page.contains("min\\-spread") && page.contains("EXIT CODES") || page.contains("Exit codes")
    );
    for hidden in ["guard", "hold\\-sockets"] {
        assert!(
            !page.contains(&format!("herd {hidden}")),
            "{hidden} is herd's own"
        );
    }
}

#[test]
fn init_writes_a_scenario_that_loads_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("new.toml");
    let name = file.to_str().unwrap();
    assert!(stdout(&["init", name]).contains(name));
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, stdout(&["init"]));
    let draft = herd::scenario::Draft::read(&file).unwrap();
    let defaults = herd::scenario::Draft::default().resolve(5).unwrap();
    let loaded = draft.resolve(5).unwrap();
    assert_eq!(
        herd::scenario::Scenario {
            name: "default".into(),
            ..loaded
        },
        defaults
    );
    std::fs::write(&file, "mine").unwrap();
    assert!(refused(&["init", name]).contains("exists"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let nowhere = dir.path().join("no/such/dir.toml");
    assert_eq!(
        herd(&["init", nowhere.to_str().unwrap()]).status.code(),
        Some(4)
    );
}

#[test]
fn every_scenario_of_the_repository_loads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let scenario = herd::scenario::Draft::read(&path).and_then(|draft| draft.resolve(1));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert!(
            scenario.implied.is_empty(),
            "{}: {:?}",
            path.display(),
            scenario.implied
        );
        names.push(scenario.name);
    }
    names.sort();
    assert_eq!(
        names,
        [
            "blackhole",
            "crash-loop",
            "cut-fin",
            "cut-refuse",
            "cut-rst",
            "default",
            "exponential-25",
            "external-server",
            "observe",
            "refresh",
            "region",
            "restart-command",
            "rolling",
            "slow-network",
            "slow-start",
            "stampede",
            "trickle",
            "wait",
        ]
    );
}

/// `herd list checks | head -0`: the reader has read enough, and nothing is wrong.
#[test]
fn a_closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_herd"))
        .args(["list", "checks"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn output_that_cannot_be_written_is_broken() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_herd"))
        .args(["list", "checks"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("herd: can't write to stdout"), "{said}");
}
