//! `herd simulate` from outside.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

use std::process::{Command, Output};

use serde_json::Value;

fn herd(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_herd"))
        .args(args)
        .output()
        .unwrap()
}

fn json(args: &[&str], code: i32) -> Value {
    let output = herd(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(args: &[&str], code: i32) -> String {
    let output = herd(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The report without its line breaks.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_verdict_has_the_codes_and_the_numbers_of_a_run() {
    let herd = [
        "simulate",
        "-c=2000",
        "--seed=5",
        "--down=2s",
        "--json",
        "-q",
    ];
    let pass = json(&herd, 0);
    assert_eq!(
        (&pass["outcome"], &pass["exit"]),
        (&"pass".into(), &0.into())
    );
    assert_eq!(pass["outages"][0]["dropped"], 2_000);
    let names: Vec<_> = pass["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "reconnect-spread",
            "peak",
            "all-reconnected",
            "relapse",
            "recovery",
            "staleness"
        ]
    );
    let fail = json(&[&herd[..], &["--backoff=phoenix"]].concat(), 1);
    assert_eq!(fail["outages"][0]["reconnect"]["span_ms"], 0.0);
    let few = ["simulate", "-c=10", "--seed=1", "--down=0s", "--json", "-q"];
    assert_eq!(json(&few, 3)["outcome"], "unknown");
}

/// Who notices late lost nothing later than the others: one cut is one wave, and no relapse.
#[test]
fn a_late_notice_belongs_to_its_cut() {
    for detect in ["--detect=0s..25s", "--detect=10h"] {
        let args = [
            "simulate",
            "-c=100",
            detect,
            "--down=10s",
            "--seed=1",
            "--json",
            "-q",
        ];
        let output = herd(&args);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let outage = &summary["outages"][0];
        assert_eq!(outage["waves"].as_array().unwrap().len(), 1, "{detect}");
        assert_eq!(
            (&outage["dropped"], &outage["reconnected"]),
            (&100.into(), &100.into())
        );
        assert_eq!(outage["trigger_ms"], outage["first_drop_ms"]);
        let checks = summary["checks"].as_array().unwrap();
        let outcome = |name: &str| &checks.iter().find(|c| c["name"] == name).unwrap()["outcome"];
        assert_eq!(outcome("relapse"), "pass", "{detect}");
        if detect.contains("25s") {
            assert_eq!(outcome("reconnect-spread"), "pass");
        }
    }
}

#[test]
fn the_report_says_that_nothing_was_published_and_how_to_repeat_it() {
    let report = text(
        &[
            "simulate",
            "-c",
            "200",
            "--seed",
            "5",
            "--detect",
            "0s..50ms",
            "--no-color",
        ],
        0,
    );
    for said in [
        "not judged: nobody publishes in a simulation",
        "opened",
        "herd simulate --clients 200",
        "--detect 0s..50ms --no-color --seed 5",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
    assert!(!report.contains("herd's lag"), "{report}");
}

#[test]
fn nothing_is_written_unless_asked_for_and_what_is_written_is_judged_alike() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    let run = json(
        &[
            "simulate",
            "-c=300",
            "--seed=5",
            "--json",
            "-q",
            "-o",
            out,
            "--format=json,csv",
        ],
        0,
    );
    let mut files: Vec<_> = std::fs::read_dir(out)
        .unwrap()
        .map(|f| f.unwrap().file_name())
        .collect();
    files.sort();
    assert!(
        files.contains(&"history.herd".into()) && files.contains(&"attempts.csv".into()),
        "{files:?}"
    );
    let again = json(
        &["check", &format!("{out}/history.herd"), "--json", "-q"],
        0,
    );
    assert_eq!(run, again);
}

#[test]
fn a_scenario_gives_clients_policy_outage_and_checks() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deploy.toml");
    let scenario = "clients = 500\nseed = 7\n[target]\nurl = \"ws://h.example/\"\n\
        [client.backoff]\nmix = { phoenix = 0.6, socketio = 0.4 }\n[outage]\ntrigger = \"wait\"\ndown = \"3s\"\n\
        [checks]\nmin-spread = \"1ms\"\nmax-peak = \"100%/1s\"\n";
    std::fs::write(&file, scenario).unwrap();
    let file = file.to_str().unwrap();
    let run = json(&["simulate", file, "--json", "-q"], 0);
    assert_eq!((&run["clients"], &run["seed"]), (&500.into(), &7.into()));
    assert_eq!(run["backoff"], "phoenix 60% + socketio 40%");
    let ready = run["outages"][0]["ready_ms"].as_f64().unwrap();
    assert_eq!(
        ready - run["outages"][0]["trigger_ms"].as_f64().unwrap(),
        3_000.0
    );
    let table = json(&["simulate", file, "--compare=phoenix", "--format=json"], 0);
    let names: Vec<_> = table["presets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["preset"])
        .collect();
    assert_eq!(names, ["phoenix 60% + socketio 40%", "phoenix"]);
}

#[test]
fn a_comparison_is_a_table_in_four_forms() {
    let asked = [
        "simulate",
        "-c=100",
        "--seed=1",
        "--down=2s",
        "--compare=phoenix,signalr",
    ];
    let of = |format: &str| text(&[&asked[..], &["--format", format]].concat(), 0);
    insta::assert_snapshot!(of("text"), @r#"
    100 clients, server back 2s after the cut, seed 1

             first   p50   p95  last  span  p5-p95     peak  peak  attempts  attempts  never
                 s     s     s     s     s       s  /100 ms  /1 s             /100 ms   back
    phoenix   2.26  2.26  2.26  2.26  0.00    0.00      100   100       800       200      0
    signalr   2.00  2.00  2.00  2.00  0.00    0.00      100   100       200       100      0
    "#);
    insta::assert_snapshot!(of("csv"), @r#"
    preset,first_ms,p50_ms,p95_ms,last_ms,span_ms,p5_p95_ms,peak_100ms,peak_1s,attempts,peak_attempts_100ms,never_back
    phoenix,2260,2260,2260,2260,0,0,100,100,800,200,0
    signalr,2000,2000,2000,2000,0,0,100,100,200,100,0
    "#);
    insta::assert_snapshot!(of("md"), @r#"
    | preset | first s | p50 s | p95 s | last s | span s | p5-p95 s | peak /100 ms | peak /1 s | attempts | attempts /100 ms | never back |
    |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
    | phoenix | 2.26 | 2.26 | 2.26 | 2.26 | 0.00 | 0.00 | 100 | 100 | 800 | 200 | 0 |
    | signalr | 2.00 | 2.00 | 2.00 | 2.00 | 0.00 | 0.00 | 100 | 100 | 200 | 100 | 0 |
    "#);
    insta::assert_snapshot!(of("json"), @r#"
    {"presets":[{"preset":"phoenix","first_ms":2260.0,"p50_ms":2260.0,"p95_ms":2260.0,"last_ms":2260.0,"span_ms":0.0,"p5_p95_ms":0.0,"peak_100ms":100,"peak_1s":100,"attempts":800,"peak_attempts_100ms":200,"never_back":0},{"preset":"signalr","first_ms":2000.0,"p50_ms":2000.0,"p95_ms":2000.0,"last_ms":2000.0,"span_ms":0.0,"p5_p95_ms":0.0,"peak_100ms":100,"peak_1s":100,"attempts":200,"peak_attempts_100ms":100,"never_back":0}]}
    "#);
    assert_eq!(text(&[&asked[..], &["--json"]].concat(), 0), of("json"));
}

#[test]
fn all_presets_are_compared_where_none_is_named() {
    let table = json(
        &[
            "simulate",
            "-c=50",
            "--seed=1",
            "--compare",
            "--format=json",
        ],
        0,
    );
    let listed = json(&["list", "presets", "--json"], 0);
    let count = |value: &Value| value.as_array().unwrap().len();
    assert_eq!(count(&table["presets"]), count(&listed));
}

#[test]
fn metastable_failure_is_told() {
    let asked = [
        "simulate",
        "-c=200",
        "--seed=1",
        "--down=2s",
        "--handshake=5ms",
        "--collapse=50",
        "--until=30s",
    ];
    let compared = text(
        &[&asked[..], &["--compare=immediate,full-jitter"]].concat(),
        0,
    );
    assert!(
        compared.contains("immediate: the server fell over"),
        "{compared}"
    );
    assert!(compared.contains("had not recovered after"), "{compared}");
    let judged = unfolded(&text(&[&asked[..], &["--backoff=immediate"]].concat(), 1));
    assert!(judged.contains("the server fell over"), "{judged}");
    assert!(judged.contains("relapse"), "{judged}");
}

#[test]
fn advice_ends_with_what_to_paste() {
    let asked = [
        "simulate",
        "-c=1k",
        "--seed=1",
        "--down=2s",
        "--advise",
        "--accept-rate=100/s",
    ];
    let told = text(&asked, 0);
    assert!(
        told.contains("[client.backoff]\npreset = \"full-jitter\"\nbase = "),
        "{told}"
    );
    assert!(
        told.contains("lower bound: no policy brings 1000 clients back in less than 10.0 s"),
        "{told}"
    );
    let advice = json(&[&asked[..], &["--json"]].concat(), 0);
    assert_eq!(advice["bound_ms"], 10_000);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let cases: &[&[&str]] = &[
        &["--accept-rate=0"],
        &["--accept-rate=0/s"],
        &["--advise"],
        &["--advise", "--compare", "--accept-rate=5/s"],
        &["--advise", "--accept-rate=5/s", "--backoff=phoenix"],
        &["--advise", "--accept-rate=5/s", "--collapse=5"],
        &["--advise", "--accept-rate=1/s", "-c=1m"],
        &["--compare=phoenx"],
        &["--compare=phoenix", "--format=hdr"],
        &["--compare=phoenix", "--format=csv,md"],
        &["--compare=phoenix", "--format=csv", "--json"],
        &["--compare=phoenix", "-o=/tmp/x"],
        &["--compare=phoenix", "--min-spread=1s"],
        &["--format=csv"],
        &["--backlog=5"],
        &["--backlog=0", "--accept-rate=5/s"],
        &["--collapse=5"],
        &["--collapse=9", "--backlog=5", "--accept-rate=5/s"],
        &["--detect=5"],
        &["--advise", "--accept-rate=0.5/s"],
        &["--backoff=phoenx"],
        &["--backoff=immediate", "-c=100k", "--down=60s"],
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|case| {
            let output = herd(&[&["simulate"], *case].concat());
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{case:?}: {stderr}");
            assert_eq!(output.stdout, b"", "{case:?}");
            let line = stderr.lines().next().unwrap_or_default();
            format!("{}: {line}", case.join(" "))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    --accept-rate=0: herd: invalid value '0' for '--accept-rate <RATE>': "0" is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    --accept-rate=0/s: herd: invalid value '0/s' for '--accept-rate <RATE>': "0/s" is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    --advise: herd: --advise: say with --accept-rate what the server accepts, such as 500/s
    --advise --compare --accept-rate=5/s: herd: the argument '--advise' cannot be used with '--compare [<PRESET,...>]'
    --advise --accept-rate=5/s --backoff=phoenix: herd: --backoff: the policy is what --advise looks for; leave it out
    --advise --accept-rate=5/s --collapse=5: herd: --advise keeps the herd below --accept-rate, so that nothing waits; leave --backlog, --handshake and --collapse out
    --advise --accept-rate=1/s -c=1m: herd: no first window up to a day brings 1000000 clients back within 1/s; raise --accept-rate
    --compare=phoenx: herd: --compare: unknown preset "phoenx"; did you mean phoenix? herd list presets shows all
    --compare=phoenix --format=hdr: herd: --format: a table has no hdr; use text, json, csv or md
    --compare=phoenix --format=csv,md: herd: --format: one table has one form; name one
    --compare=phoenix --format=csv --json: herd: --json is a --format of its own; leave one out
    --compare=phoenix -o=/tmp/x: herd: --output: --compare and --advise write to stdout; leave it out
    --compare=phoenix --min-spread=1s: herd: --outages and limits are for a verdict; leave them out with --compare and --advise
    --format=csv: herd: --format: nothing is written without a directory; add -o DIR
    --backlog=5: herd: --backlog: nobody waits at a server that accepts any number; give it an --accept-rate
    --backlog=0 --accept-rate=5/s: herd: --backlog: 0 is out of range; use 1 to 4294967295
    --collapse=5: herd: --collapse: no handshake ever waits; say with --handshake what one costs, or give an --accept-rate
    --collapse=9 --backlog=5 --accept-rate=5/s: herd: --collapse: a backlog of 5 never lets more wait; use less, or say with --handshake what one costs
    --detect=5: herd: invalid value '5' for '--detect <DURATION>': "5" is not a duration; write it with its unit, such as "500ms" or "5s"
    --advise --accept-rate=0.5/s: herd: --accept-rate: 0.5/s can't be told by counting seconds; advice needs 1/s or more
    --backoff=phoenx: herd: --backoff: unknown preset "phoenx"; did you mean phoenix? herd list presets shows all
    --backoff=immediate -c=100k --down=60s: herd: the herd dials more than 12000000 times; use fewer clients, a shorter --down or a policy that waits; --compare counts without keeping a history
    "#);
}
