//! Where a client stands, as its user would see it. Five words, and nothing of how anybody gets from one to the other:
//! the machine says it of now, and the judge of the whole record.

use serde::{Deserialize, Serialize};

/// What a client is. It is always exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was never connected yet.
    Connecting,
    /// Its connection is open, and shows signs of life.
    Connected,
    /// It lost its connection, whether it knows that or not, and is not dialling.
    Disconnected,
    /// It lost its connection and is dialling.
    Reconnecting,
    /// It stopped for good.
    GaveUp,
}

impl Status {
    /// All of them, in the order of the reports.
    pub const ALL: [Self; 5] = [
        Self::Connecting,
        Self::Connected,
        Self::Disconnected,
        Self::Reconnecting,
        Self::GaveUp,
    ];
}
