//! What a command line comes to.

use super::*;
use crate::backoff::presets;
use crate::history::PolicySource;
use crate::scenario::{Server, Trigger, Via};

fn parsed(words: &[&str]) -> Result<Command, Error> {
    let args = std::iter::once("herd").chain(words.iter().copied());
    parse(args.map(OsString::from), 99)
}

fn run(words: &[&str]) -> Run {
    let words: Vec<&str> = std::iter::once("run")
        .chain(words.iter().copied())
        .collect();
    match parsed(&words) {
        Ok(Command::Run(run)) => *run,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_shape_of_the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn a_bare_run_is_the_default_scenario_with_the_fresh_seed() {
    let run = run(&[]);
    let defaults = crate::scenario::Draft::default().resolve(99).unwrap();
    assert_eq!(run.scenario, defaults);
    assert_eq!(run.repeat, "herd run --seed 99");
    assert_eq!(run.talk.stdout, Stdout::Report);
}

#[test]
fn flags_override_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deploy.toml");
    let text = "clients = 5\nseed = 1\n[client.backoff]\npreset = \"fixed\"\ndelay = \"3s\"\n[checks]\nmin-spread = \"9s\"";
    std::fs::write(&file, text).unwrap();
    let run = run(&[
        file.to_str().unwrap(),
        "-c",
        "2k",
        "--backoff",
        "exponential",
    ]);
    assert_eq!((run.scenario.clients, run.scenario.seed), (2_000, 1));
    assert_eq!(run.scenario.name, "deploy");
    assert_eq!(run.scenario.checks.min_spread.as_secs(), 9);
    // The preset is a whole policy: the file's delay went with the file's preset.
    let whole = presets::find("exponential").unwrap().mix();
    assert_eq!(run.scenario.policy.mix, whole);
}

#[test]
fn every_flag_reaches_its_place() {
    let run = run(&[
        "--target=ws://h/",
        "--restart-cmd=r",
        "--publish-url=http://h/p",
        "--publish-body={seq}",
        "--rate=5/s",
        "--id=/i",
        "--seq=/s",
        "-H",
        "A: b",
        "-H",
        "C: d",
        "--source-ip=127.0.0.2",
        "--ramp=1s",
        "--steady=2s",
        "--outages=3",
        "--min-spread=4s",
        "--max-peak=50%/2s",
        "--delivery=at-least-once",
        "--max-resets=6",
        "--settle=7s",
        "--reconnect-limit=8s",
        "-o",
        "out",
        "--format=csv,json",
        "--shard=2/3",
        "--seed=11",
        "--ready=http://h/z",
    ]);
    let scenario = run.scenario;
    assert_eq!(scenario.target.url, "ws://h/");
    assert_eq!(scenario.target.ready.as_deref(), Some("http://h/z"));
    assert!(
        matches!(&scenario.outage(1).trigger, Trigger::Command { command, .. } if command == "r")
    );
    assert!(matches!(&scenario.publish.via, Via::Http { url, .. } if url == "http://h/p"));
    assert_eq!(
        (scenario.publish.body.as_str(), scenario.publish.rate),
        ("{seq}", 5.0)
    );
    assert_eq!(
        (
            scenario.connect.id.as_deref(),
            scenario.connect.seq.as_deref()
        ),
        (Some("/i"), Some("/s"))
    );
    assert_eq!(scenario.connect.headers, ["A: b", "C: d"]);
    assert_eq!(scenario.connect.source_ips.len(), 1);
    let times = [
        scenario.connect.ramp,
        scenario.outage(1).steady,
        scenario.checks.min_spread,
        scenario.checks.settle,
        scenario.checks.peak_window,
        scenario.checks.reconnect_limit.unwrap(),
    ];
    assert_eq!(times.map(|time| time.as_secs()), [1, 2, 4, 7, 2, 8]);
    assert_eq!(
        (
            scenario.outage(1).count,
            scenario.checks.max_resets,
            scenario.seed
        ),
        (3, 6, 11)
    );
    assert_eq!(scenario.checks.delivery.name(), "at-least-once");
    assert_eq!(scenario.output.formats, [Format::Csv, Format::Json]);
    assert_eq!(scenario.output.dir, Some("out".into()));
    assert_eq!((scenario.shard.index, scenario.shard.of), (2, 3));
    assert_eq!(scenario.policy.source, PolicySource::Assumed);
}

#[test]
fn defects_and_keep_go_to_the_embedded_server() {
    let run = run(&[
        "--defect",
        "lose-live=3",
        "--defect",
        "lose-on-resume",
        "--keep",
        "1k",
        "--down=2s",
        "--stop-signal=TERM",
        "--grace=1s",
    ]);
    let Server::Embedded { planted, keep, .. } = &run.scenario.target.server else {
        panic!("{:?}", run.scenario.target.server);
    };
    let planted: Vec<String> = planted.iter().map(ToString::to_string).collect();
    assert_eq!(planted, ["lose-live=3", "lose-on-resume"]);
    assert_eq!(*keep, Some(1_000));
    let serve = parsed(&["serve", "--defect", "lose-live=3", "--keep", "1000"]);
    assert!(
        matches!(serve, Ok(Command::Serve(config)) if config.keep == 1_000 && config.defects.len() == 1)
    );
}

#[test]
fn the_repeat_line_is_what_was_typed_with_the_seed_and_without_secrets() {
    let run = run(&[
        "--target",
        "ws://u:hush@h/?t=hush&a={after}&e={env:T}",
        "-H",
        "Cookie: hush",
        "--header=X: {env:X}",
        "--seed",
        "7",
        "-oout",
        "--server-cmd",
        "it's \"it\" {port}",
        "-qc5",
        "--format=csv,json",
    ]);
    assert_eq!(
        run.repeat,
        "herd run --clients 5 --target 'ws://***@h/?t=***&a={after}&e={env:T}' --server-cmd 'it'\\''s \"it\" {port}' \
         --header 'Cookie: ***' --header 'X: {env:X}' --format csv --format json --quiet --seed 7"
    );
    assert_eq!(run.talk.stderr, Stderr::Quiet);
}

#[test]
fn herds_own_commands_are_passed_on_untouched() {
    let Ok(Command::Guard(args)) = parsed(&["guard", "serve", "--", "sh", "-c", "--help"]) else {
        panic!("not a guard");
    };
    assert_eq!(args, ["serve", "--", "sh", "-c", "--help"]);
    assert!(matches!(parsed(&[HOLD]), Ok(Command::Hold)));
}
