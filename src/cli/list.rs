//! `herd list`: what users can name, as text and as JSON, made from the tables that the code runs on.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::backoff::{Counted, Preset, Window, describe, presets, retries};
use crate::check::Check;
use crate::history::TriggerKind;
use crate::profile::{ProfileName, Spec};
use crate::report::Format;
use crate::scenario::{Checks, Draft};
use crate::server::defect::Defect;

/// A list that users can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum List {
    /// Reconnect policies, for --backoff
    Presets,
    /// Protocols, for --profile
    Profiles,
    /// What causes an outage
    Triggers,
    /// What is judged
    Checks,
    /// Files of a run, for --format
    Formats,
    /// Planted bugs of the reference server, for --defect
    Defects,
}

impl List {
    /// A JSON array of objects, each with `name` and `summary`.
    pub(super) fn json(self) -> String {
        format!("{:#}\n", Value::Array(self.rows()))
    }

    /// Names and summaries in two columns.
    pub(super) fn text(self) -> String {
        let rows = self.rows();
        let cell = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let width = rows
            .iter()
            .map(|row| cell(row, "name").len())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for row in &rows {
            text += &format!("{:<width$}  {}\n", cell(row, "name"), cell(row, "summary"));
            for more in details(row) {
                text += &format!("{:<width$}    {more}\n", "");
            }
        }
        text
    }

    fn rows(self) -> Vec<Value> {
        match self {
            Self::Presets => presets::all().map(preset).collect(),
            Self::Profiles => ProfileName::ALL.map(profile).to_vec(),
            Self::Triggers => TriggerKind::ALL
                .map(|trigger| json!({"name": trigger.name(), "summary": cause(trigger)}))
                .to_vec(),
            Self::Checks => checks(),
            Self::Formats => Format::ALL
                .map(|format| {
                    json!({
                        "name": format.name(),
                        "summary": format.summary(),
                        "files": format.files().collect::<Vec<_>>(),
                    })
                })
                .to_vec(),
            Self::Defects => Defect::ALL.map(defect).to_vec(),
        }
    }
}

/// Further lines of the text form.
fn details(row: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(limit) = row["default"].as_str() {
        lines.push(format!("default: {limit}"));
    }
    if let Some(library) = row["library"].as_str() {
        let version = row["version"].as_str().unwrap_or_default();
        lines.push(format!("of: {library} {version}"));
    }
    for (key, title) in [
        ("source", "source"),
        ("resets", "count reset by"),
        ("limits", "limits"),
        ("fatal", "never back after"),
        ("hints", "obeys"),
        ("follow_up", "once back"),
        ("id", "id"),
        ("resume", "resume"),
        ("caught_up", "caught-up marker"),
        ("reset", "reset marker"),
        ("tested", "tested against"),
    ] {
        if let Some(text) = row[key].as_str().filter(|text| !text.is_empty()) {
            lines.push(format!("{title}: {text}"));
        }
    }
    if let Some(names) = row["aliases"].as_array().filter(|names| !names.is_empty()) {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
        lines.push(format!("also: {}", names.join(", ")));
    }
    match row["requests"].as_u64() {
        Some(several) if several > 1 => lines.push(format!("requests of one attempt: {several}")),
        _ => {}
    }
    if let Some(meaning) = row["arg"]["meaning"].as_str() {
        lines.push(format!(
            "=ARG: {meaning}; default {}",
            row["arg"]["default"]
        ));
    }
    if let Some(trips) = row["trips"].as_array() {
        let names: Vec<_> = trips.iter().filter_map(Value::as_str).collect();
        lines.push(match names.as_slice() {
            [] => "must fail nothing".to_owned(),
            names => format!("must fail: {}", names.join(", ")),
        });
    }
    lines
}

/// How many retries a preset's bounds are told for.
const RETRIES: u32 = 12;

fn preset(preset: &Preset) -> Value {
    let policy = (preset.policy)();
    let ms = |delay: Duration| delay.as_micros() as f64 / 1e3;
    let bounds = |window: Window| [ms(window.least), ms(window.most)];
    let windows = retries::refused(&policy, RETRIES);
    json!({
        "name": preset.name,
        "summary": describe::delays(&policy),
        "aliases": preset.aliases,
        "library": preset.library,
        "version": preset.version,
        "source": preset.source,
        "resets": describe::resets(&policy),
        "limits": describe::limits(&policy),
        "fatal": describe::fatal(&policy),
        "hints": describe::hints(&policy),
        "resume": preset.resume,
        "requests": policy.requests,
        "follow_up": preset.follow_up,
        "counted_from": match policy.counted {
            Counted::FromEnd => "end",
            Counted::FromStart => "start",
        },
        "bounds_ms": windows.into_iter().map(bounds).collect::<Vec<_>>(),
    })
}

fn profile(name: ProfileName) -> Value {
    let spec = Spec::builtin(name);
    let about = spec.about();
    json!({
        "name": name.name(),
        "summary": spec.summary,
        "id": about.id,
        "resume": about.resume,
        "caught_up": about.caught_up,
        "reset": about.reset,
        "tested": about.tested,
    })
}

fn cause(trigger: TriggerKind) -> &'static str {
    match trigger {
        TriggerKind::Child => "herd restarts the server that it started; the default",
        TriggerKind::Command => "a command restarts somebody else's server; --restart-cmd",
        TriggerKind::Wait => "somebody restarts it and herd waits; --wait, or --target alone",
        TriggerKind::Cut => {
            "herd takes the network away: fin, rst, blackhole, refuse, latency, bandwidth; --cut"
        }
        TriggerKind::Rolling => "several targets are restarted one after another; --rolling",
    }
}

fn defect(defect: Defect) -> Value {
    let arg = defect
        .argument()
        .map(|arg| json!({"default": arg.default, "meaning": arg.meaning}));
    json!({
        "name": defect.name(),
        "summary": defect.summary(),
        "arg": arg,
        "trips": defect.trips().iter().map(|check| check.name()).collect::<Vec<_>>(),
        "counts": defect.ledger(),
    })
}

fn checks() -> Vec<Value> {
    let usual = Draft::default()
        .resolve(0)
        .ok()
        .map(|scenario| scenario.checks);
    Check::ALL
        .map(|check| {
            json!({
                "name": check.name(),
                "summary": check.question(),
                "question": check.question(),
                "default": usual.as_ref().map(|usual| limit(check, usual)),
            })
        })
        .to_vec()
}

fn limit(check: Check, usual: &Checks) -> String {
    let time = |time: Duration| humantime::format_duration(time).to_string();
    match check {
        Check::ReconnectSpread => format!("at least {}", time(usual.min_spread)),
        Check::Peak => format!(
            "at most {}% in {}, from 20 clients up",
            usual.max_peak * 100.0,
            time(usual.peak_window)
        ),
        Check::AllReconnected => usual
            .reconnect_limit
            .map_or("derived from the backoff".into(), |limit| {
                format!("within {}", time(limit))
            }),
        Check::ExactlyOnce => format!(
            "{}, each within {}",
            usual.delivery.name(),
            time(usual.settle)
        ),
        Check::Order => "no event out of order".into(),
        Check::Resets => format!("at most {}", usual.max_resets),
        Check::Relapse => "none".into(),
        Check::Recovery => usual.max_recovery.map_or("reported only".into(), |limit| {
            format!("at most {}", time(limit))
        }),
        Check::Bystanders => "where a cut is for a share of the clients".into(),
        Check::Staleness => usual
            .max_staleness
            .map_or("reported only".into(), |(percentile, limit)| {
                format!("at most {} at p{percentile}", time(limit))
            }),
        Check::Generator => "past its limits, timing checks are unknown".into(),
    }
}
