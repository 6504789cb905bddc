//! The guide's table of presets is what `herd list presets --json` says.

use serde_json::{Value, json};

use super::stdout;

const BEGIN: &str =
    "<!-- presets: made from `herd list presets --json`; a test keeps both equal -->\n";
const END: &str = "<!-- end of presets -->";

/// Set, the guide is written anew instead of compared.
const WRITE: &str = "HERD_WRITE_GUIDE";

fn table(rows: &[Value]) -> String {
    let mut table = String::from(
        "\n| preset | library | delays | count reset by | limits | never back after | obeys | resumes by |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let cell = |key: &str| row[key].as_str().unwrap().replace('|', "\\|");
        let library = format!("{} {}", cell("library"), cell("version"));
        let cells = [
            format!("`{}`", cell("name")),
            library,
            cell("summary"),
            cell("resets"),
            cell("limits"),
            cell("fatal"),
            cell("hints"),
            cell("resume"),
        ];
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table + "\n"
}

#[test]
fn the_guide_shows_every_preset_as_it_is() {
    let rows: Vec<Value> = serde_json::from_str(&stdout(&["list", "presets", "--json"])).unwrap();
    assert!(rows.len() > 40);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/GUIDE.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (before, rest) = guide.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os(WRITE).is_some() {
        let text = format!("{before}{BEGIN}{}{END}{after}", table(&rows));
        std::fs::write(path, text).unwrap();
        return;
    }
    assert!(
        written == table(&rows),
        "the guide's table of presets is old; {WRITE}=1 cargo test --test it presets writes it"
    );
}

#[test]
fn every_preset_and_alias_is_a_policy_that_a_run_takes() {
    let rows: Vec<Value> = serde_json::from_str(&stdout(&["list", "presets", "--json"])).unwrap();
    for row in &rows {
        for key in [
            "name", "summary", "library", "version", "source", "resets", "limits", "resume",
        ] {
            assert!(!row[key].as_str().unwrap().is_empty(), "{row}");
        }
        assert!(row["aliases"].is_array() && row["requests"].as_u64().unwrap() > 0);
    }
}

#[test]
fn presets_tell_within_what_bounds_a_refused_client_waits() {
    let rows: Value = serde_json::from_str(&stdout(&["list", "presets", "--json"])).unwrap();
    let preset = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap()
    };
    let signalr = preset("signalr");
    let steps = [0.0, 2_000.0, 10_000.0, 30_000.0].map(|ms| [ms, ms]);
    assert_eq!(signalr["bounds_ms"], json!(steps));
    assert_eq!(signalr["counted_from"], "end");
    let jittered = preset("full-jitter")["bounds_ms"].as_array().unwrap();
    assert_eq!(jittered.len(), 12);
    assert_eq!(jittered[1], json!([0.0, 10_000.0]));
}
