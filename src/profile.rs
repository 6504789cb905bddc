//! What is said over a transport: how to ask for resume and how to read a frame.
//!
//! A profile sees frames and gives back what they mean; it knows no socket, no client and no history. One leaf per
//! protocol under `profile/`.

pub mod after;
pub mod guess;

use serde::{Deserialize, Serialize};

pub use after::After;

/// A protocol that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// JSON events with an id; the cursor goes into the URL.
    After,
}

impl ProfileName {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::After];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::After => "after",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::After => "JSON events with an id over a WebSocket; resumes with ?after=<last id>",
        }
    }
}

/// What a part of a frame means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// An event.
    Event {
        /// The id (and cursor); none where the frame holds none.
        id: Option<Box<str>>,
        /// herd's number.
        seq: Option<u64>,
        /// A digest of the content that must be equal wherever the id is; 0 = nothing to compare.
        digest: u64,
    },
    /// The client must reload; this id is the new cursor.
    Reset {
        /// The id that the frame names.
        id: Option<Box<str>>,
    },
    /// The server says that the replay is over.
    CaughtUp,
    /// Known, and nothing to count.
    Ignored,
    /// Not understood: why.
    Unread(String),
}

/// The longest id that herd keeps, in bytes.
pub const MAX_ID: usize = 4096;
