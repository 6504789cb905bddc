//! What happened: the evidence that the judge reads, and nothing else does it read.
//!
//! This module knows nothing of herd's other parts: no policy, no profile, no socket. A history that was recorded,
//! merged from shards or written by hand in a test is the same thing here. `history/client.rs` is one client's
//! part of it, `history/file.rs` its form on disk, `history/record.rs` how a running client adds to it, `history/status.rs` the
//! words for where it stands, and `history/build.rs` how a test writes one in a few lines.

pub mod build;
mod client;
mod event;
pub mod file;
pub mod header;
pub mod record;
mod status;

use std::collections::BTreeMap;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use client::{Attempt, AttemptOutcome, Cause, Client, Reload, Session, Trace};
pub use event::{ClientEvent, Quit};
pub use header::{
    CutKind, DeliveryMode, Duplicates, Header, IdKind, Memory, OutageTerms, PolicySource,
    Remembers, Shard, Source, Terms, TriggerKind, chosen,
};
pub use record::{Entries, Entry, Receipt, Stream};
pub use status::Status;

/// An instant: microseconds since the run began, on the monotonic clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// The run's beginning.
    pub const ZERO: Self = Self(0);

    /// From whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// Microseconds since the run began.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Milliseconds since the run began, with the fraction.
    #[must_use]
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The time since `earlier`, zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// This instant as a duration since the run's beginning.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl From<Duration> for Elapsed {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Elapsed {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(Self::from(d).0))
    }
}

impl Sub<Duration> for Elapsed {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(Self::from(d).0))
    }
}

/// A client's number, from 1, over all shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub u32);

/// herd's own number of a publication, as sent. Reports show it from 1 (see [`Header::shown`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

/// An event's place in the history's table of distinct events ([`History::events`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventIx(pub u32);

/// One distinct thing that arrived: the same id with another content is another event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// The id byte for byte as the server sent it; none where the frame held none. It is the cursor too, unless the
    /// profile takes that from elsewhere: what a dial then carried stands in the table as an entry of its own.
    pub id: Option<Box<str>>,
    /// herd's number, where the frame held one.
    pub seq: Option<Seq>,
    /// A digest of the content that must be equal wherever the id is; 0 where there is nothing to compare.
    pub digest: u64,
    /// What must rise, where that isn't the id.
    pub order: Option<Box<str>>,
    /// Within which ids and order keys are comparable; none where the protocol knows no epochs.
    pub epoch: Option<Box<str>>,
    /// The frame was marked as one that may have been sent before.
    pub redelivered: bool,
}

impl Event {
    /// What makes two events the same to whom their ids are all there is: equal ids of different epochs are different
    /// events.
    #[must_use]
    pub fn identity(&self) -> (Option<&str>, Option<&str>) {
        (self.epoch.as_deref(), self.id.as_deref())
    }

    /// What must rise (rule 19 of judgement).
    #[must_use]
    pub fn order_key(&self) -> Option<&str> {
        self.order.as_deref().or(self.id.as_deref())
    }
}

/// What a publication was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublicationKind {
    /// Sent until every client has received one and the same; counts for nothing.
    Priming,
    /// Every client must get it.
    Expected,
}

/// What became of a publication (rule 11 of judgement).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The server said that it has it.
    Acked,
    /// It definitely was not accepted.
    Failed,
    /// The answer was lost, or is not in yet.
    Unknown,
}

/// One event sent by herd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// herd's number.
    pub seq: Seq,
    /// What for.
    pub kind: PublicationKind,
    /// When it should have been sent.
    pub due: Elapsed,
    /// When it was first sent.
    pub first_sent: Elapsed,
    /// When the try was sent whose answer decided (the last one).
    pub sent: Elapsed,
    /// When that answer came; none for [`Fate::Unknown`].
    pub answered: Option<Elapsed>,
    /// What became of it.
    pub fate: Fate,
    /// The id in the answer.
    pub id: Option<Box<str>>,
    /// The position in the server's own order, where the answer tells one.
    pub position: Option<u64>,
    /// How often it was sent.
    pub tries: u32,
    /// Tries whose answer was lost: only these may have been stored besides the deciding one.
    pub lost_answers: u32,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// As planned: all pairs in, or all limits passed.
    Complete,
    /// Some clients could not connect at first; nothing was restarted.
    NotConnected {
        /// How many did.
        connected: u32,
    },
    /// Some clients never received a priming event; nothing was restarted.
    NotPrimed {
        /// How many did.
        primed: u32,
    },
    /// Nobody restarted the server within the limit.
    NoRestart,
    /// SIGINT or SIGTERM.
    Interrupted {
        /// Whether it was SIGTERM.
        terminated: bool,
    },
    /// herd's own tools failed after the first trigger (rule 23); the run is exit 4 whatever the checks say.
    Broken {
        /// What failed.
        why: Box<str>,
    },
}

/// Something that happened to the run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Mark {
    /// Every client of this shard holds a receipt of one and the same priming event.
    Primed,
    /// The trigger of an outage (from 1) was pulled, or, waiting, began to be waited for.
    Trigger {
        /// Which outage.
        outage: u32,
    },
    /// The old process was reaped, or the probe first failed.
    Gone {
        /// Which outage.
        outage: u32,
    },
    /// The readiness probe first succeeded after that (rule 21).
    Ready {
        /// Which outage.
        outage: u32,
    },
    /// The supervised server ended although nobody asked it to.
    Died {
        /// Its exit status.
        status: Box<str>,
    },
    /// Every dropped client of an outage is caught up, has given up or is past its limit.
    Settled {
        /// Which outage.
        outage: u32,
    },
    /// Something that the reader of a report should know, such as a stop signal that had to be escalated.
    Note {
        /// One sentence.
        text: Box<str>,
    },
    /// What herd itself used.
    Usage {
        /// User and system CPU time.
        cpu: Duration,
        /// Peak resident memory in bytes.
        rss_peak: u64,
    },
    /// The run is over. A history without it is truncated.
    End(End),
    /// The target was not ready again within the limit; its fault (rule 23). It and those below are last, because a file
    /// names a mark by its place in this list.
    NeverReady {
        /// Which outage.
        outage: u32,
    },
    /// One fall of an outage began: a server was told to stop, or the network was taken away. Each is followed by its own
    /// `Gone` and `Ready`.
    Fall {
        /// Which outage.
        outage: u32,
        /// From 1 within the outage.
        fall: u32,
        /// Which target, from 0; none = all of them.
        target: Option<u16>,
    },
    /// What a server used.
    Health(Health),
    /// The last lines that a server wrote before it ended by itself, made safe.
    LastWords {
        /// Which target, from 0.
        target: u16,
        /// The lines.
        text: Box<str>,
    },
}

/// What a server, and all that it started, used up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// Which target, from 0.
    pub target: u16,
    /// The process that was started.
    pub pid: u32,
    /// User and system CPU time since the processes began.
    pub cpu: Duration,
    /// Resident memory, bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u32,
    /// Open descriptors.
    pub descriptors: u32,
}

/// All of it, for one shard or for several merged.
#[derive(Debug, Clone)]
pub struct History {
    /// Who, what, when.
    pub header: Header,
    /// Which shards are in it.
    pub shards: Vec<Shard>,
    /// Distinct events, in the order in which they were first seen (per shard).
    pub events: Vec<Event>,
    /// For each merged part: its event numbers in terms of [`History::events`]; empty = the same numbers.
    pub maps: Vec<Vec<EventIx>>,
    /// Every publication, by number.
    pub publications: BTreeMap<Seq, Publication>,
    /// What happened to the run, in order.
    pub marks: Vec<(Elapsed, Mark)>,
    /// Every client, by number.
    pub clients: Vec<Client>,
    /// Up to when the record is known to be whole.
    pub horizon: Elapsed,
}

impl History {
    /// A history in which nothing has happened.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            shards: vec![header.shard],
            header,
            events: Vec::new(),
            maps: vec![Vec::new()],
            publications: BTreeMap::new(),
            marks: Vec::new(),
            clients: Vec::new(),
            horizon: Elapsed::ZERO,
        }
    }

    /// The event at a place of the table. A place beyond the table can't come out of [`mod@file`], which refuses it.
    #[must_use]
    pub fn event(&self, ix: EventIx) -> &Event {
        &self.events[ix.0 as usize]
    }

    /// Where a client stands among [`History::clients`]. Nearly always that is its number, so it is looked for there first:
    /// among a million clients a search costs more than all the rest of judging one.
    #[must_use]
    pub fn place(&self, client: ClientId) -> Option<usize> {
        let first = self.clients.first()?.id.0;
        let guess = client.0.checked_sub(first)? as usize;
        match self.clients.get(guess) {
            Some(found) if found.id == client => Some(guess),
            _ => self.clients.binary_search_by_key(&client, |c| c.id).ok(),
        }
    }

    /// How the run ended; none = truncated (herd was killed, or the file was cut).
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.marks.iter().rev().find_map(|(_, m)| match m {
            Mark::End(end) => Some(end),
            _ => None,
        })
    }

    /// Whether something of the run is missing: no end, an interruption, or a shard.
    #[must_use]
    pub fn truncated(&self) -> bool {
        matches!(self.end(), None | Some(End::Interrupted { .. }))
            || self.shards.len() < self.header.shard.of as usize
    }
}
