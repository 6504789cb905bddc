//! What happened: the evidence that the judge reads, and nothing else does it read.
//!
//! This module knows nothing of herd's other parts: no policy, no profile, no socket. A history that was recorded,
//! merged from shards or written by hand in a test is the same thing here. `history/file.rs` is its form on disk,
//! `history/record.rs` how a running client adds to it, `history/build.rs` how a test writes one in a few lines.

pub mod build;
pub mod file;
pub mod record;

use std::collections::BTreeMap;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use record::{Entries, Entry, Receipt, Stream};

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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// The id (and cursor) byte for byte as the server sent it; none where the frame held none.
    pub id: Option<Box<str>>,
    /// herd's number, where the frame held one.
    pub seq: Option<Seq>,
    /// A digest of the content that must be equal wherever the id is; 0 where there is nothing to compare.
    pub digest: u64,
}

/// A share of the clients: `index` of `of`, from 1. Client k belongs to shard `(k - 1) % of + 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// The whole.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether a client belongs to this share.
    #[must_use]
    pub fn holds(self, client: ClientId) -> bool {
        (client.0 - 1) % self.of + 1 == self.index
    }
}

/// Who causes the outages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// herd restarts the server that it started.
    Child,
    /// A command of the user's restarts a server that herd doesn't own.
    Command,
    /// Somebody restarts it; herd waits.
    Wait,
}

impl TriggerKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Child, Self::Command, Self::Wait];

    /// The word in scenarios and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Child => "child",
            Self::Command => "command",
            Self::Wait => "wait",
        }
    }
}

/// What the user promises (or accepts) of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryMode {
    /// Nothing lost, nothing twice.
    ExactlyOnce,
    /// Nothing lost.
    AtLeastOnce,
    /// Nothing twice.
    AtMostOnce,
    /// Observing: all clients agree on what there was; enough for a Pass.
    Agreement,
}

impl DeliveryMode {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::ExactlyOnce,
        Self::AtLeastOnce,
        Self::AtMostOnce,
        Self::Agreement,
    ];

    /// The word in scenarios and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "exactly-once",
            Self::AtLeastOnce => "at-least-once",
            Self::AtMostOnce => "at-most-once",
            Self::Agreement => "agreement",
        }
    }
}

/// Who sends the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// herd publishes numbered events.
    Herd,
    /// Others publish; herd observes.
    Others,
}

/// How ids are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// Only for equality.
    Opaque,
    /// Decimal integers of any size.
    Integer,
    /// By bytes.
    Lexicographic,
}

impl IdKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Opaque, Self::Integer, Self::Lexicographic];

    /// The word in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::Integer => "integer",
            Self::Lexicographic => "lexicographic",
        }
    }

    /// Compares two ids in this order; none where the kind (or an id that isn't of the kind) has no order.
    #[must_use]
    pub fn compare(self, a: &str, b: &str) -> Option<std::cmp::Ordering> {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        match self {
            Self::Opaque => None,
            Self::Lexicographic => Some(a.cmp(b)),
            Self::Integer if digits(a) && digits(b) => {
                let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
                Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
            }
            Self::Integer => None,
        }
    }
}

/// Whether the reconnect policy was the user's choice (rule 8 of judgement).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySource {
    /// Named by the user, or the target is herd's own server.
    Named,
    /// herd's default against the user's server: the policy of the real clients isn't known.
    Assumed,
}

/// What the run was asked to prove: everything that the judge needs besides what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The reconnect policy's name, for people.
    pub policy_name: String,
    /// The reconnect policy as JSON, for the rule of chance.
    pub policy: String,
    /// Who chose it.
    pub policy_source: PolicySource,
    /// The profile's name.
    pub profile: String,
    /// The target as the user wrote it, secrets masked.
    pub target: String,
    /// Who causes the outages.
    pub trigger: TriggerKind,
    /// How many outages were asked for.
    pub outages: u32,
    /// Who publishes.
    pub source: Source,
    /// How the target's ids are compared.
    pub ids: IdKind,
    /// Whether ids are declared to have no holes.
    pub contiguous: bool,
    /// Whether the server was declared idempotent, so that an unknown publication was sent again.
    pub idempotent: bool,
    /// Limit of `reconnect-spread`.
    pub min_spread: Duration,
    /// Limit of `peak`: share of the wave's clients, 0 to 1.
    pub max_peak: f64,
    /// Window of `peak`.
    pub peak_window: Duration,
    /// Delivery that must hold.
    pub delivery: DeliveryMode,
    /// How many clients the server may tell to reload.
    pub max_resets: u32,
    /// How long a pair may take from the later of the publication's answer and the client's opening.
    pub settle: Duration,
    /// Limit of `all-reconnected`; none = derived from the policy.
    pub reconnect_limit: Option<Duration>,
    /// Limit of `recovery` (at its percentile); none = only reported.
    pub max_recovery: Option<Duration>,
    /// The share of clients that an outage was asked to hit, 0 to 1; below 1 only where the user said so.
    pub share: f64,
}

/// The first thing in a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// herd's version that wrote it.
    pub herd: String,
    /// What shards of one run have in common: the same scenario and the same seed.
    pub run: String,
    /// Wall clock at the run's beginning, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// The scenario's name.
    pub name: String,
    /// The scenario as TOML, flags merged in, templates unexpanded.
    pub scenario: String,
    /// The command that repeats the run.
    pub repeat: String,
    /// The run's seed.
    pub seed: u64,
    /// Clients over all shards.
    pub clients: u32,
    /// This history's share of them.
    pub shard: Shard,
    /// herd's numbers in this run are `seq_base + 1 ..= seq_base + seq_span`; anything else is foreign.
    pub seq_base: u64,
    /// How many numbers belong to this run.
    pub seq_span: u64,
    /// What was asked for.
    pub terms: Terms,
}

impl Header {
    /// Whether a number belongs to this run (rule 10 of judgement).
    #[must_use]
    pub fn owns(&self, seq: Seq) -> bool {
        seq.0 > self.seq_base && seq.0 - self.seq_base <= self.seq_span
    }

    /// The number as people see it, from 1; a foreign one as it was sent.
    #[must_use]
    pub fn shown(&self, seq: Seq) -> u64 {
        if self.owns(seq) {
            seq.0 - self.seq_base
        } else {
            seq.0
        }
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

/// How a dial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// The connection is open.
    Opened,
    /// The TCP connect was refused, reset, unreachable, or met itself (rule 22).
    Refused,
    /// The TCP connect timed out.
    Timeout,
    /// Past the TCP connect, but the handshake failed: a status, garbage, an end or a timeout.
    Handshake {
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// What happened, as text made safe.
        why: Box<str>,
    },
    /// herd's own side had no descriptor, port or address.
    Local(Box<str>),
    /// herd stopped while dialling.
    Aborted,
}

/// One dial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The policy's number of this try since the count was last reset, from 0.
    pub attempt: u32,
    /// When it should have started.
    pub due: Elapsed,
    /// When it did.
    pub dialled: Elapsed,
    /// When the TCP connect succeeded.
    pub connected: Option<Elapsed>,
    /// When it was over (for [`AttemptOutcome::Opened`]: when the connection was open).
    pub ended: Elapsed,
    /// How.
    pub outcome: AttemptOutcome,
    /// The cursor that it carried: the id of this event.
    pub resumed_from: Option<EventIx>,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// A close frame; no code is RFC 6455's 1005.
    Close {
        /// The close code.
        code: Option<u16>,
        /// The reason, made safe.
        reason: Box<str>,
    },
    /// The stream ended without a close frame (1006 in browsers).
    Eof,
    /// The connection was reset.
    Reset,
    /// The peer broke the protocol.
    Protocol(Box<str>),
    /// A text frame was not UTF-8.
    Utf8,
    /// A frame or message was over herd's limit.
    Oversize,
    /// The peer stopped answering pings.
    Heartbeat,
    /// Open but silent while others received; closed by herd (rule 5).
    HalfOpen,
    /// Another error of the system.
    Io(Box<str>),
    /// herd ended the run. Not a drop.
    Herd,
}

impl Cause {
    /// The word in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Close { .. } => "close",
            Self::Eof => "eof",
            Self::Reset => "reset",
            Self::Protocol(_) => "protocol",
            Self::Utf8 => "utf8",
            Self::Oversize => "oversize",
            Self::Heartbeat => "heartbeat",
            Self::HalfOpen => "half-open",
            Self::Io(_) => "io",
            Self::Herd => "herd",
        }
    }
}

/// One open connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Index into [`Client::attempts`] of the dial that opened it.
    pub attempt: usize,
    /// When its dial started.
    pub dialled: Elapsed,
    /// When it was open.
    pub opened: Elapsed,
    /// When and why it ended; none = still open at the end of the history.
    pub closed: Option<(Elapsed, Cause)>,
    /// The cursor that it resumed from.
    pub resumed_from: Option<EventIx>,
    /// When the server said "caught up", which is recorded and never believed.
    pub marker: Option<Elapsed>,
}

impl Session {
    /// When the client lost it: herd's own end of the run is no loss.
    #[must_use]
    pub fn dropped(&self) -> Option<Elapsed> {
        match &self.closed {
            Some((_, Cause::Herd)) | None => None,
            Some((at, _)) => Some(*at),
        }
    }
}

/// Why a client stopped for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quit {
    /// Its policy allows no further attempt.
    GaveUp,
    /// Its policy says never to come back after this.
    Fatal(Box<str>),
}

/// What a client said of itself besides its receipts, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientEvent {
    /// A dial ended; with [`AttemptOutcome::Opened`] a session began.
    Attempt(Attempt),
    /// The session ended.
    Closed {
        /// When.
        at: Elapsed,
        /// Why.
        cause: Cause,
    },
    /// The server said "caught up".
    Marker {
        /// When.
        at: Elapsed,
    },
    /// The client stopped for good.
    Quit {
        /// When.
        at: Elapsed,
        /// Why.
        why: Quit,
    },
    /// A frame that the profile could not read (the first few only).
    Unread {
        /// When.
        at: Elapsed,
        /// The frame, cut and made safe.
        text: Box<str>,
    },
}

/// One client's whole record.
#[derive(Debug, Clone)]
pub struct Client {
    /// Who.
    pub id: ClientId,
    /// Every dial, in order.
    pub attempts: Vec<Attempt>,
    /// Every open connection, in order.
    pub sessions: Vec<Session>,
    /// When and why it stopped for good.
    pub quit: Option<(Elapsed, Quit)>,
    /// Frames that the profile could not read, the first few.
    pub unread: Vec<(Elapsed, Box<str>)>,
    /// Every receipt, encoded; read it with [`Client::entries`].
    pub stream: Stream,
    /// Which of [`History::maps`] translates its event numbers.
    pub map: usize,
    /// How much later than the merged history's beginning the clock of its stream began.
    pub shift: Duration,
}

impl Client {
    /// An empty record.
    #[must_use]
    pub fn new(id: ClientId) -> Self {
        Self {
            id,
            attempts: Vec::new(),
            sessions: Vec::new(),
            quit: None,
            unread: Vec::new(),
            stream: Stream::default(),
            map: 0,
            shift: Duration::ZERO,
        }
    }

    /// Its sessions' beginnings, receipts and resets in the order in which they happened.
    #[must_use]
    pub fn entries<'a>(&'a self, history: &'a History) -> Entries<'a> {
        let map = history.maps.get(self.map).map_or(&[][..], Vec::as_slice);
        Entries::new(&self.stream, map, Elapsed::ZERO + self.shift)
    }

    /// Adds one event of the client's log, keeping sessions in step.
    pub fn push(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Attempt(attempt) => {
                if attempt.outcome == AttemptOutcome::Opened {
                    self.sessions.push(Session {
                        attempt: self.attempts.len(),
                        dialled: attempt.dialled,
                        opened: attempt.ended,
                        closed: None,
                        resumed_from: attempt.resumed_from,
                        marker: None,
                    });
                }
                self.attempts.push(attempt);
            }
            ClientEvent::Closed { at, cause } => {
                if let Some(session) = self.sessions.last_mut() {
                    session.closed = Some((at, cause));
                }
            }
            ClientEvent::Marker { at } => {
                if let Some(session) = self.sessions.last_mut() {
                    session.marker.get_or_insert(at);
                }
            }
            ClientEvent::Quit { at, why } => self.quit = Some((at, why)),
            ClientEvent::Unread { at, text } => self.unread.push((at, text)),
        }
    }
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

    /// The event at a place of the table. A place beyond the table can't come out of [`file`], which refuses it.
    #[must_use]
    pub fn event(&self, ix: EventIx) -> &Event {
        &self.events[ix.0 as usize]
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
