//! The files of a run, read as a stranger would: the CSV files alone must give the numbers of `summary.json`, and that
//! must be what its JSON Schema says. [`check`] does both for any directory, that of a real run too.

mod handmade;
mod judged;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use handmade::{history, verdict};
use herd::check::{DeliveryFacts, Verdict};
use herd::error::Exit;
use herd::report::json::SUMMARY_SCHEMA;
use herd::report::{Format, Summary, write_all};
use serde_json::{Value, json};

/// What the CSV files say by themselves.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Recomputed {
    /// For each outage: last minus first reconnect, in microseconds, on opened and on dialled.
    pub(crate) spans: BTreeMap<u32, (u64, u64)>,
    /// For each outage: clients that were dropped, those of them that came back, and attempts by outcome.
    pub(crate) dropped: BTreeMap<u32, HashSet<u32>>,
    pub(crate) reconnected: BTreeMap<u32, HashSet<u32>>,
    pub(crate) attempts: BTreeMap<(u32, String), u64>,
    /// For each outage: what came of resumes; over all of them, why sessions ended.
    pub(crate) resumes: BTreeMap<(u32, String), u64>,
    pub(crate) causes: BTreeMap<String, u64>,
    /// (client, expected publication) pairs, and those of them without a receipt.
    pub(crate) expected: u64,
    pub(crate) missing: u64,
    /// Receipts of an expected publication that the client had.
    pub(crate) duplicated: u64,
    /// First receipts of a lower id after a higher one.
    pub(crate) reordered: u64,
}

type Row = HashMap<String, String>;

fn rows(dir: &Path, name: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(dir.join(name)).expect("a CSV file");
    reader
        .deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}

fn number<T: std::str::FromStr>(row: &Row, column: &str) -> T {
    let field = &row[column];
    field
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {field:?} is no number"))
}

/// Reads the CSV files of a run whose target numbers its events by integers.
pub(crate) fn recompute(dir: &Path) -> Recomputed {
    let mut out = Recomputed::default();
    let mut dialled: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for row in rows(dir, "attempts.csv") {
        let outage = number(&row, "outage");
        if row["outcome"] == "opened" {
            dialled
                .entry(outage)
                .or_default()
                .push(number(&row, "dialled_us"));
        }
        *out.attempts
            .entry((outage, row["outcome"].clone()))
            .or_default() += 1;
    }
    let mut opened: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for row in rows(dir, "reconnects.csv") {
        let outage = number(&row, "outage");
        let client = number(&row, "client");
        out.dropped.entry(outage).or_default().insert(client);
        if !row["reconnected_us"].is_empty() {
            out.reconnected.entry(outage).or_default().insert(client);
            opened
                .entry(outage)
                .or_default()
                .push(number(&row, "reconnected_us"));
        }
    }
    let span = |v: &[u64]| v.iter().max().expect("one") - v.iter().min().expect("one");
    for (outage, opened) in &opened {
        out.spans
            .insert(*outage, (span(opened), span(&dialled[outage])));
    }
    deliveries(dir, &mut out);
    out
}

fn deliveries(dir: &Path, out: &mut Recomputed) {
    let sessions = rows(dir, "sessions.csv");
    for row in &sessions {
        let resume = (
            number(row, "outage"),
            row["resume_outcome"].replace('-', "_"),
        );
        *out.resumes.entry(resume).or_default() += 1;
        let cause = match (row["cause"].as_str(), row["close_code"].as_str()) {
            ("" | "herd", _) => continue,
            ("close", "") => "1005",
            ("close", code) => code,
            (word, _) => word,
        };
        *out.causes.entry(cause.into()).or_default() += 1;
    }
    let clients: HashSet<_> = sessions.iter().map(|row| row["client"].clone()).collect();
    let anew = |(row, before): (&&Row, Option<&Row>)| {
        let refused = |before: &Row| {
            before["client"] == row["client"] && before["resume_outcome"] == "refused"
        };
        row["resume_outcome"] == "reset"
            || row["resumed_from"].is_empty() && before.is_some_and(refused)
    };
    let reloaded: HashSet<_> = sessions
        .iter()
        .enumerate()
        .filter(|(n, row)| anew((row, n.checked_sub(1).map(|n| &sessions[n]))))
        .map(|(_, row)| (row["client"].clone(), row["session"].clone()))
        .collect();
    let receipts = rows(dir, "receipts.csv");
    let arrived: HashSet<_> = receipts.iter().map(|row| row["seq"].as_str()).collect();
    let publications = rows(dir, "publications.csv");
    let expected: HashSet<_> = publications
        .iter()
        .filter(|row| row["kind"] == "expected")
        .filter(|row| match row["outcome"].as_str() {
            "acked" => true,
            "unknown" => arrived.contains(row["seq"].as_str()),
            _ => false,
        })
        .map(|row| row["seq"].as_str())
        .collect();
    let mut ever: HashSet<(&str, &str)> = HashSet::new();
    let mut held: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut highest: HashMap<&str, u128> = HashMap::new();
    let mut session: HashMap<&str, &str> = HashMap::new();
    for row in &receipts {
        let (client, seq) = (row["client"].as_str(), row["seq"].as_str());
        let new = session.insert(client, &row["session"]) != Some(&row["session"]);
        if new && reloaded.contains(&(row["client"].clone(), row["session"].clone())) {
            held.remove(client);
            highest.remove(client);
        }
        if !expected.contains(seq) {
            continue;
        }
        ever.insert((client, seq));
        if !held.entry(client).or_default().insert(seq) {
            out.duplicated += 1;
            continue;
        }
        let id: u128 = number(row, "id");
        let highest = highest.entry(client).or_default();
        out.reordered += u64::from(id < *highest);
        *highest = id.max(*highest);
    }
    out.expected = (clients.len() * expected.len()) as u64;
    out.missing = out.expected - ever.len() as u64;
}

/// Fails where the CSV files of a run and its `summary.json` disagree, or where that is not what its schema says.
pub(crate) fn check(dir: &Path) {
    let summary = read(dir);
    let errors = schema_errors(&summary);
    assert!(errors.is_empty(), "{errors:#?}");
    let found = recompute(dir);
    let mut causes = BTreeMap::new();
    for outage in summary["outages"].as_array().expect("a list") {
        let n = outage["outage"].as_u64().expect("a number") as u32;
        let of = |map: &BTreeMap<u32, HashSet<u32>>| map.get(&n).map_or(0, HashSet::len);
        assert_eq!(outage["dropped"], of(&found.dropped), "dropped in {n}");
        assert_eq!(outage["reconnected"], of(&found.reconnected));
        let attempts = &outage["attempts"];
        let mut total = 0;
        for outcome in ["opened", "refused", "timeout", "handshake", "flapped"] {
            let rows = found.attempts.get(&(n, outcome.into())).copied();
            assert_eq!(attempts[outcome], rows.unwrap_or(0), "{outcome} in {n}");
            total += rows.unwrap_or(0);
        }
        assert_eq!(attempts["total"], total, "attempts in {n}");
        let failed = ["refused", "timeout", "handshake"].map(|o| attempts[o].as_u64());
        let statuses = counts(&outage["statuses"]);
        assert_eq!(
            statuses.values().sum::<u64>(),
            failed.iter().flatten().sum::<u64>()
        );
        for (outcome, n_resumes) in counts(&outage["resumes"]) {
            let rows = found.resumes.get(&(n, outcome.clone())).copied();
            assert_eq!(n_resumes, rows.unwrap_or(0), "{outcome} in {n}");
        }
        for (cause, n_ends) in counts(&outage["causes"]) {
            *causes.entry(cause).or_default() += n_ends;
        }
        let reconnect = &outage["reconnect"];
        let span = |key: &str| reconnect[key].as_f64().map(|ms| (ms * 1e3).round() as u64);
        let spans = span("span_ms").zip(span("dialled_span_ms"));
        assert_eq!(spans, found.spans.get(&n).copied(), "spans of {n}");
    }
    assert_eq!(causes, found.causes, "why sessions ended");
    let d: DeliveryFacts =
        serde_json::from_value(summary["delivery"].clone()).expect("as the schema says");
    assert_eq!(
        d.expected,
        d.delivered + d.late + d.lost + d.reset + d.absent
    );
    assert_eq!(found.expected, d.expected, "expected pairs");
    assert_eq!(found.missing, d.lost + d.reset + d.absent, "missing pairs");
    // Content isn't in the files, so a conflict may look like a duplicate there.
    let twice = d.duplicated + d.redelivered;
    let range = twice..=twice + d.conflict;
    assert!(
        range.contains(&found.duplicated),
        "duplicated {range:?}: {}",
        found.duplicated
    );
    assert_eq!(found.reordered, d.reordered, "reordered");
}

/// An object of counts.
fn counts(object: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(object.clone()).expect("as the schema says")
}

fn read(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("summary.json")).expect("as the schema says"))
        .expect("as the schema says")
}

fn schema_errors(summary: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(SUMMARY_SCHEMA).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let errors = validator.iter_errors(summary);
    errors
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

/// Writes the files of a run, with `change` made to its verdict.
fn written(change: impl FnOnce(&mut Verdict)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let (history, mut verdict) = (history(), verdict());
    change(&mut verdict);
    let summary = Summary::new(&history, &verdict, Exit::Fail);
    let files = write_all(dir.path(), &Format::ALL, &history, &verdict, &summary)
        .expect("as the schema says");
    let names: HashSet<_> = files.iter().filter_map(|path| path.file_name()).collect();
    let promised: Vec<_> = Format::ALL.into_iter().flat_map(Format::files).collect();
    assert_eq!(names.len(), promised.len());
    assert!(
        promised
            .iter()
            .all(|name| names.contains(name.as_ref() as &std::ffi::OsStr))
    );
    dir
}

#[test]
fn the_csv_files_alone_give_the_numbers_of_the_summary() {
    let dir = written(|_| {});
    check(dir.path());
    let found = recompute(dir.path());
    assert_eq!(found.spans[&1], (259_000, 201_000));
    assert_eq!((found.expected, found.missing), (27, 1));
    assert_eq!((found.duplicated, found.reordered), (1, 1));
}

/// Every number that is compared is seen to differ.
#[test]
fn a_summary_that_says_otherwise_is_found_out() {
    let lies: [fn(&mut Verdict); 10] = [
        |v| v.outages[0].resumes.reset = 1,
        |v| _ = v.outages[0].causes.insert("1012".into(), 1),
        |v| v.outages[0].statuses.clear(),
        |v| v.outages[0].reconnect.span_ms = Some(5_000.0),
        |v| v.outages[0].reconnect.dialled_span_ms = Some(5_000.0),
        |v| (v.delivery.lost, v.delivery.delivered) = (0, 27),
        |v| v.delivery.duplicated = 0,
        |v| v.delivery.reordered = 0,
        |v| v.outages[0].attempts.refused = 0,
        |v| v.outages[0].reconnected = 2,
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        let dir = written(lie);
        let found = std::panic::catch_unwind(|| check(dir.path()));
        assert!(found.is_err(), "lie {n} was believed");
    }
}

#[test]
fn the_schema_refuses_what_is_not_a_summary() {
    let summary = read(written(|_| {}).path());
    assert!(schema_errors(&summary).is_empty());
    let edits: [fn(&mut Value); 5] = [
        |s| s["schema"] = json!("herd-summary/2"),
        |s| s["outcome"] = json!("ok"),
        |s| s["extra"] = json!(1),
        |s| s["delivery"]["lost"] = json!(-1),
        |s| _ = s.as_object_mut().unwrap().remove("checks"),
    ];
    for edit in edits {
        let mut summary = summary.clone();
        edit(&mut summary);
        assert!(!schema_errors(&summary).is_empty(), "{summary}");
    }
}

/// Readers may rely on the order of the keys as well as on their names.
#[test]
fn the_summary_has_the_shape_of_the_contract() {
    let text = std::fs::read_to_string(written(|_| {}).path().join("summary.json")).unwrap();
    let top: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split('"').next())
        .collect();
    assert_eq!(
        top,
        [
            "schema",
            "outcome",
            "exit",
            "truncated",
            "seed",
            "clients",
            "backoff",
            "profile",
            "target",
            "publications",
            "outages",
            "delivery",
            "generator",
            "status",
            "staleness",
            "dedupe",
            "retry_after",
            "declined",
            "health",
            "deaths",
            "bystanders",
            "checks"
        ]
    );
}
