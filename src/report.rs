//! To be written.

use serde::{Deserialize, Serialize};

/// A format that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// summary.json
    Json,
    /// the CSV files
    Csv,
    /// the HdrHistogram files
    Hdr,
}
