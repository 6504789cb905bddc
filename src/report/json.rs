//! `summary.json`: the summary as it is, and nothing else. Its JSON Schema stands beside this file.

use std::io::{self, Write};

use super::{Render, Summary};

pub(super) const FILES: &[(&str, Render)] =
    &[("summary.json", |out, input| write(out, input.summary))];

/// The JSON Schema (draft 2020-12) of `summary.json`.
pub const SUMMARY_SCHEMA: &str = include_str!("summary.schema.json");

/// Writes a summary as indented JSON with a newline at its end.
///
/// # Errors
///
/// What `out` says.
pub fn write(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, summary)?;
    out.write_all(b"\n")
}
