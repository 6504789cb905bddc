//! Policies side by side: the same storm under each of them, in a table.
//!
//! It knows how a table is written, not how a storm goes.

use std::time::Duration;

use serde::Serialize;

use super::storm::tally::{Cells, Tally, since_cut};
use super::storm::{Course, Storm};
use crate::backoff::{Mix, presets};
use crate::error::Error;

/// How many dials one row may count.
const MOST: u64 = 300_000_000;

/// A form of the table that users can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// For people, in seconds.
    Text,
    /// For programs, in milliseconds.
    Json,
    /// For spreadsheets, in milliseconds.
    Csv,
    /// For documents, in seconds.
    Md,
}

/// One policy's storm in numbers. Times count from the cut; none where nobody came back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The policy's name.
    pub preset: String,
    /// When the first client was back.
    pub first_ms: Option<f64>,
    /// When half of those who came back were.
    pub p50_ms: Option<f64>,
    /// When 95 % of those were.
    pub p95_ms: Option<f64>,
    /// When the last one was.
    pub last_ms: Option<f64>,
    /// Last minus first.
    pub span_ms: Option<f64>,
    /// Between the 5th and the 95th percentile.
    pub p5_p95_ms: Option<f64>,
    /// Most clients back in any 100 ms.
    pub peak_100ms: u64,
    /// Most clients back in any second.
    pub peak_1s: u64,
    /// Dials, whatever they met.
    pub attempts: u64,
    /// Most dials in any 100 ms.
    pub peak_attempts_100ms: u64,
    /// Clients that gave up, met an end that their policy never retries, or were away at the limit.
    pub never_back: u64,
}

/// Several of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// One a policy.
    pub presets: Vec<Row>,
    /// What was simulated.
    #[serde(skip)]
    title: String,
    /// What the numbers don't say.
    #[serde(skip)]
    remarks: Vec<String>,
}

/// Every preset as a herd of its own.
#[must_use]
pub fn all() -> Vec<Mix> {
    presets::all().map(presets::Preset::mix).collect()
}

/// Follows the storm with each of these herds.
///
/// # Errors
/// [`Error::Usage`] where one of them dials too often to be followed.
pub fn table(storm: &Storm, mixes: &[Mix]) -> Result<Table, Error> {
    let mut table = Table {
        presets: Vec::new(),
        title: format!(
            "{} clients, server back {} after the cut, seed {}",
            storm.clients,
            humantime::format_duration(storm.down),
            storm.seed
        ),
        remarks: Vec::new(),
    };
    for mix in mixes {
        let storm = Storm {
            mix: mix.clone(),
            outages: 1,
            ..storm.clone()
        };
        let name = mix.name();
        let (tally, course) = Tally::of(&storm, MOST).map_err(|error| {
            Error::Usage(format!("{name}: {error}, or leave it out of --compare"))
        })?;
        table.remarks.extend(remark(&name, &course));
        table.presets.push(Row::new(name, storm.clients, &tally));
    }
    Ok(table)
}

fn remark(name: &str, course: &Course) -> Option<String> {
    let falls = match course.falls.len() {
        0 => return None,
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let after = |at| format!("{:.2} s", since_cut(at).as_secs_f64());
    Some(match course.recovered {
        Some(at) => format!(
            "{name}: the server fell over {falls} and recovered after {}",
            after(at)
        ),
        None => format!(
            "{name}: the server fell over {falls} and had not recovered after {}",
            after(course.end)
        ),
    })
}

impl Row {
    fn new(preset: String, clients: u32, tally: &Tally) -> Self {
        let back: &Cells = tally.back();
        let span = back
            .first()
            .zip(back.last())
            .map(|(first, last)| last - first);
        let middle = back.quantile(0.05).zip(back.quantile(0.95));
        Self {
            preset,
            first_ms: back.first().map(ms),
            p50_ms: back.quantile(0.5).map(ms),
            p95_ms: back.quantile(0.95).map(ms),
            last_ms: back.last().map(ms),
            span_ms: span.map(ms),
            p5_p95_ms: middle.map(|(p5, p95)| ms(p95 - p5)),
            peak_100ms: back.peak(Duration::from_millis(100)),
            peak_1s: back.peak(Duration::from_secs(1)),
            attempts: tally.dials().count(),
            peak_attempts_100ms: tally.dials().peak(Duration::from_millis(100)),
            never_back: u64::from(clients) - back.count(),
        }
    }

    fn times(&self) -> [Option<f64>; 6] {
        [
            self.first_ms,
            self.p50_ms,
            self.p95_ms,
            self.last_ms,
            self.span_ms,
            self.p5_p95_ms,
        ]
    }

    fn counts(&self) -> [u64; 5] {
        [
            self.peak_100ms,
            self.peak_1s,
            self.attempts,
            self.peak_attempts_100ms,
            self.never_back,
        ]
    }

    /// As people read it: seconds, then counts.
    fn cells(&self) -> Vec<String> {
        let seconds = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{:.2}", ms / 1e3));
        let times = self.times().map(seconds);
        let counts = self.counts().map(|n| n.to_string());
        std::iter::once(self.preset.clone())
            .chain(times)
            .chain(counts)
            .collect()
    }
}

fn ms(at: Duration) -> f64 {
    at.as_micros() as f64 / 1e3
}

/// What the columns are called, and what stands below that.
const HEADS: [(&str, &str); 12] = [
    ("", ""),
    ("first", "s"),
    ("p50", "s"),
    ("p95", "s"),
    ("last", "s"),
    ("span", "s"),
    ("p5-p95", "s"),
    ("peak", "/100 ms"),
    ("peak", "/1 s"),
    ("attempts", ""),
    ("attempts", "/100 ms"),
    ("never", "back"),
];

/// The keys of the JSON, in its order.
const KEYS: [&str; 12] = [
    "preset",
    "first_ms",
    "p50_ms",
    "p95_ms",
    "last_ms",
    "span_ms",
    "p5_p95_ms",
    "peak_100ms",
    "peak_1s",
    "attempts",
    "peak_attempts_100ms",
    "never_back",
];

impl Table {
    /// The table in this form.
    #[must_use]
    pub fn render(&self, shape: Shape) -> String {
        match shape {
            Shape::Text => self.text(),
            // Numbers and names are always JSON.
            Shape::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
            Shape::Csv => self.csv(),
            Shape::Md => self.md(),
        }
    }

    fn text(&self) -> String {
        let rows: Vec<_> = self.presets.iter().map(Row::cells).collect();
        let heads = [HEADS.map(|(head, _)| head), HEADS.map(|(_, unit)| unit)];
        let heads = heads.map(|line| line.map(str::to_owned).to_vec());
        let all = || heads.iter().chain(&rows);
        let width = |column: usize| {
            all()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..HEADS.len()).map(width).collect();
        let mut text = format!("{}\n\n", self.title);
        for row in all() {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        for (n, remark) in self.remarks.iter().enumerate() {
            text += &format!("{}{remark}\n", if n == 0 { "\n" } else { "" });
        }
        text
    }

    fn csv(&self) -> String {
        let mut out = csv::Writer::from_writer(Vec::new());
        let number = |ms: Option<f64>| ms.map_or(String::new(), |ms| ms.to_string());
        // Writing to memory can't fail.
        let _ = out.write_record(KEYS);
        for row in &self.presets {
            let times = row.times().map(number);
            let counts = row.counts().map(|n| n.to_string());
            let name = std::iter::once(row.preset.clone());
            let _ = out.write_record(name.chain(times).chain(counts));
        }
        String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    fn md(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let heads = HEADS.map(|(head, unit)| match (head, unit) {
            ("", _) => "preset".to_owned(),
            (head, "s") => format!("{head} s"),
            (head, unit) if unit.starts_with('/') => format!("{head} {unit}"),
            (head, unit) => format!("{head} {unit}").trim_end().to_owned(),
        });
        let mut text = line(&heads);
        text += &format!("|---{}|\n", "|---:".repeat(HEADS.len() - 1));
        for row in &self.presets {
            let mut cells = row.cells();
            cells[0] = cells[0].replace('|', "\\|");
            text += &line(&cells);
        }
        for remark in &self.remarks {
            text += &format!("\n{remark}\n");
        }
        text
    }
}
