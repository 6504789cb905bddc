//! One client's record: its dials, its sessions, and what it said of itself besides its receipts.
//!
//! Plain data, and how a log of events becomes it. What a receipt is stands in `history/record.rs`; what any of it is
//! worth is the judge's business.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ClientEvent, ClientId, Elapsed, Entries, EventIx, History, Memory, Quit, Seq, Stream};

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

impl AttemptOutcome {
    /// The word under which failed dials are counted: the status where there was one; none where it didn't fail, or only on
    /// herd's side.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        match self {
            Self::Refused => Some("refused".into()),
            Self::Timeout => Some("timeout".into()),
            Self::Handshake {
                status: Some(status),
                ..
            } => Some(status.to_string()),
            Self::Handshake { status: None, .. } => Some("handshake".into()),
            Self::Opened | Self::Local(_) | Self::Aborted => None,
        }
    }
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
    /// Which of the targets it went to, from 0.
    pub target: u16,
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
    /// The server declared the session over: it refused the resume, or sent a fatal frame. In its words, made safe.
    Declined(Box<str>),
    /// The stream's body ended before it was whole.
    Cut,
    /// herd's own profile ended the session: nothing that came in time fits what its opening waits for. What it waited for
    /// is [`Session::unanswered`].
    Unanswered,
    /// The client itself left, as a closed tab does, to start anew.
    Refreshed,
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
            Self::Declined(_) => "declined",
            Self::Cut => "cut",
            Self::Unanswered => "unanswered",
            Self::Refreshed => "refreshed",
        }
    }

    /// The word under which ends are counted: a close code where there was one (1005 where the frame held none).
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Close { code, .. } => code.unwrap_or(1005).to_string(),
            other => other.name().to_owned(),
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
    /// When and with what words the server refused to resume it, once it was open.
    pub refused: Option<(Elapsed, Box<str>)>,
    /// Where it ended before the profile's opening was done: the step that was waited for, and what came instead.
    pub unanswered: Option<Box<str>>,
    /// Where it ended because nothing came any more: when the last sign of life did.
    pub silent_since: Option<Elapsed>,
}

/// A client's request for the full state, after the server told it to reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// When it asked.
    pub asked: Elapsed,
    /// When the answer was there, or what came instead.
    pub ended: Elapsed,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How large the answer was, bytes.
    pub bytes: u64,
    /// What went wrong, made safe; empty where nothing did.
    pub why: Box<str>,
}

impl Reload {
    /// Whether the client has the state.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.why.is_empty() && self.status.is_some_and(|s| (200..300).contains(&s))
    }
}

/// A frame that the profile did not read as an event of herd's holds one of herd's numbers, whole, as a number or text of its
/// own. Such numbers are too large to stand anywhere by chance: the event came, and herd could not read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// When the first of them came.
    pub at: Elapsed,
    /// The first number.
    pub first: Seq,
    /// The last one; all between them came too.
    pub last: Seq,
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
    /// Which of herd's numbers stood in such frames.
    pub traced: Vec<Trace>,
    /// The first frame that was read as an event and lacked herd's number, or anything to resume from.
    pub lacking: Option<(Elapsed, Box<str>)>,
    /// Delays that the server asked for.
    pub retry_after: Vec<(Elapsed, Duration)>,
    /// When and with what words servers refused to resume it in their answer to a handshake: no session came of these.
    pub refused_dials: Vec<(Elapsed, Box<str>)>,
    /// When it started anew, and whether it kept its cursor.
    pub refreshed: Vec<(Elapsed, Memory)>,
    /// Its requests for the full state.
    pub reloads: Vec<Reload>,
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
            traced: Vec::new(),
            lacking: None,
            retry_after: Vec::new(),
            refused_dials: Vec::new(),
            refreshed: Vec::new(),
            reloads: Vec::new(),
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
                        refused: None,
                        unanswered: None,
                        silent_since: None,
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
            ClientEvent::Traced { at, first, last } => {
                self.traced.push(Trace { at, first, last });
            }
            ClientEvent::Lacking { at, text } => self.lacking = Some((at, text)),
            ClientEvent::Unanswered { text } => {
                if let Some(session) = self.sessions.last_mut() {
                    session.unanswered = Some(text);
                }
            }
            ClientEvent::Silent { since } => {
                if let Some(session) = self.sessions.last_mut() {
                    session.silent_since = Some(since);
                }
            }
            ClientEvent::Refreshed { at, memory } => self.refreshed.push((at, memory)),
            ClientEvent::Reloaded(reload) => self.reloads.push(reload),
            ClientEvent::RetryAfter { at, delay } => self.retry_after.push((at, delay)),
            ClientEvent::ResumeRefused { at, text } => {
                match self.sessions.last_mut().filter(|s| s.closed.is_none()) {
                    Some(session) => _ = session.refused.get_or_insert((at, text)),
                    None => self.refused_dials.push((at, text)),
                }
            }
        }
    }
}
