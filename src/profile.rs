//! What is said over a transport: how to ask for resume and how to read a frame.
//!
//! A profile is declared in TOML ([`Spec`]), compiled once before the run ([`Profile`]), and then asked two things: what a
//! frame means, which is the same for every client ([`Profile::decode`]), and what a client says ([`Talk`]). It knows no
//! socket, no clock and no history.

pub mod about;
mod compile;
mod decode;
mod digest;
mod extract;
mod form;
pub mod guess;
mod json;
mod matcher;
pub mod sample;
mod source;
pub mod spec;
pub mod talk;
pub mod trace;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::history::{Duplicates, IdKind};
use crate::template::{Place, Template, Values};

pub use spec::Spec;
pub use talk::{Ending, Talk, Turn};

/// How bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A WebSocket.
    #[default]
    Ws,
    /// An event stream over HTTP.
    Sse,
}

/// A protocol that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// JSON events with an id; the cursor goes into the URL.
    After,
    /// JSON events with an id; a frame asks for what was missed.
    Resume,
    /// An event stream; the cursor goes into a header.
    Sse,
    /// Socket.IO 4 with connection state recovery, or without.
    Socketio,
    /// A gateway of NestJS over plain WebSocket.
    NestjsWs,
}

impl ProfileName {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::After,
        Self::Resume,
        Self::Sse,
        Self::Socketio,
        Self::NestjsWs,
    ];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Resume => "resume",
            Self::Sse => "sse",
            Self::Socketio => "socketio",
            Self::NestjsWs => "nestjs-ws",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub fn summary(self) -> String {
        Spec::builtin(self).summary
    }

    /// Its TOML.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::After => include_str!("profile/builtin/after.toml"),
            Self::Resume => include_str!("profile/builtin/resume.toml"),
            Self::Sse => include_str!("profile/builtin/sse.toml"),
            Self::Socketio => include_str!("profile/builtin/socketio.toml"),
            Self::NestjsWs => include_str!("profile/builtin/nestjs-ws.toml"),
        }
    }
}

/// A mistake in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The key, such as `frame[2].when.raw` (lists count from 1); empty where the TOML itself is wrong.
    pub key: String,
    /// What is wrong with it and what to do.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.why),
            key => write!(f, "{key}: {}", self.why),
        }
    }
}

/// Pointers that the user named beside the profile; they replace the profile's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointers {
    /// Where the id stands.
    pub id: Option<String>,
    /// Where herd's number stands.
    pub seq: Option<String>,
}

/// Whether a connection's dial carried a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Carried {
    /// It did not.
    #[default]
    Nothing,
    /// It did.
    Cursor,
}

/// What a part of a frame means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// An event.
    Event(Reading),
    /// Moves the cursor, or clears it; no event.
    Cursor(Option<Box<str>>),
    /// The client must reload; this id is the new cursor.
    Reset {
        /// The id that the frame names.
        id: Option<Box<str>>,
    },
    /// The server says that the replay is over.
    CaughtUp,
    /// The server refuses to resume, in these words (made safe).
    ResumeRefused(Box<str>),
    /// The session is to be ended, for this reason (made safe).
    Fatal(Box<str>),
    /// Known, and nothing to count.
    Ignored,
    /// Not understood: why.
    Unread(String),
}

/// An event as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The id byte for byte; none where the frame holds none.
    pub id: Option<Box<str>>,
    /// herd's number.
    pub seq: Option<u64>,
    /// A digest of the content that must be equal wherever the id is; 0 = nothing to compare.
    pub digest: u64,
    /// Where it moves the cursor.
    pub cursor: Moves,
    /// What must rise, where that isn't the id.
    pub order: Option<Box<str>>,
    /// Within which ids and order keys are comparable.
    pub epoch: Option<Box<str>>,
    /// It was marked as one that may have been sent before.
    pub redelivered: bool,
}

/// Where an event moves the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Moves {
    /// To its id; nowhere where it has none.
    #[default]
    ToId,
    /// To this.
    To(Box<str>),
    /// Nowhere: it carries none, and the id can't be sent back.
    Nowhere,
}

/// What a status or a close code asks of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fate {
    /// To come back, as its policy says.
    #[default]
    Reconnect,
    /// Never to come back.
    Stop,
    /// To reload: what it missed is gone, and the cursor with it.
    Reset,
}

/// The longest id (or cursor) that herd keeps, in bytes.
pub const MAX_ID: usize = 4096;

/// A compiled profile; shared by all clients.
#[derive(Debug, Clone)]
pub struct Profile {
    spec: Spec,
    names: Vec<String>,
    query: Vec<(String, Template)>,
    headers: Vec<(String, Template)>,
    steps: Vec<talk::Step>,
    timeout: Duration,
    decoding: decode::Decoding,
    rules: Vec<decode::Rule>,
    event: decode::Extract,
    beat: talk::Beat,
    /// Captures that must not change, by their places.
    changed: Vec<usize>,
    status: compile::Codes,
    close: compile::Codes,
}

impl Profile {
    /// Whether its clients take a silent server for dead.
    #[must_use]
    pub fn listens_for_silence(&self) -> bool {
        self.beat.dead.is_some()
    }

    /// How its bytes move.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.spec.transport
    }

    /// The path where the target's URL names none.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.spec.path.as_deref()
    }

    /// The subprotocols offered, in order of preference.
    #[must_use]
    pub fn subprotocols(&self) -> &[String] {
        &self.spec.subprotocols
    }

    /// How ids are compared, where the profile knows.
    #[must_use]
    pub fn ids(&self) -> Option<IdKind> {
        self.spec.ids
    }

    /// Whether ids are declared to have no holes.
    #[must_use]
    pub fn contiguous(&self) -> bool {
        self.spec.contiguous
    }

    /// Which raw duplicates the protocol allows.
    #[must_use]
    pub fn duplicates(&self) -> Duplicates {
        self.spec.duplicates
    }

    /// What it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The names that clients capture: the holes, besides the usual ones, of the templates of its dials. A client's values
    /// are [`Talk::named`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The query pairs of a dial, name and encoded value; those with an unset hole are left out.
    #[must_use]
    pub fn query(&self, values: &Values<'_>) -> Vec<(&str, String)> {
        filled(&self.query, values, Place::Url)
    }

    /// The headers of a dial; those with an unset hole are left out.
    #[must_use]
    pub fn headers(&self, values: &Values<'_>) -> Vec<(&str, String)> {
        filled(&self.headers, values, Place::Header)
    }

    /// What the status of an answer that opened no session asks for.
    #[must_use]
    pub fn after_status(&self, status: u16) -> Fate {
        self.status.fate(status)
    }

    /// What the end of a session asks for; none = without a close frame.
    #[must_use]
    pub fn after_close(&self, code: Option<u16>) -> Fate {
        code.map_or(Fate::Reconnect, |code| self.close.fate(code))
    }
}

fn filled<'a>(
    pairs: &'a [(String, Template)],
    values: &Values<'_>,
    place: Place,
) -> Vec<(&'a str, String)> {
    let whole = |(name, template): &'a (String, Template)| {
        Some((name.as_str(), template.expand_whole(values, place)?))
    };
    pairs.iter().filter_map(whole).collect()
}

#[cfg(test)]
mod tests;
