//! How a running client adds to its record, in about three bytes a receipt, and how the judge reads it back.
//!
//! A receipt costs one varint of `(microseconds since the previous entry) << 2 | tag` where the event is the one after
//! the previous in the table, which is nearly always; 3 bytes at 20 events a second, 1 in a burst. Sessions' beginnings
//! and resets stand in the same stream, so that order within one microsecond is never guessed. This file knows nothing
//! of frames, ids or files.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Attempt, AttemptOutcome, Cause, ClientEvent, Elapsed, EventIx, Memory, Quit, Reload, Seq,
};

const NEXT: u64 = 0;
const OTHER: u64 = 1;
const SESSION: u64 = 2;
const RESET: u64 = 3;

/// A client's receipts, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    bytes: Vec<u8>,
    last_at: u64,
    last_event: i64,
}

impl Default for Stream {
    /// An empty stream.
    fn default() -> Self {
        Self::from_bytes(Vec::new())
    }
}

impl Stream {
    /// A stream to read, from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            last_at: 0,
            last_event: -1,
        }
    }

    /// Adds the bytes of a later part.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The encoded bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A session began. Instants must not go back; one that does is recorded at the previous entry's.
    pub fn session(&mut self, at: Elapsed) {
        self.tag(at, SESSION);
    }

    /// An event arrived.
    pub fn receipt(&mut self, at: Elapsed, event: EventIx) {
        let event = i64::from(event.0);
        if event == self.last_event + 1 {
            self.tag(at, NEXT);
        } else {
            self.tag(at, OTHER);
            let delta = event - self.last_event;
            self.varint(((delta << 1) ^ (delta >> 63)) as u64);
        }
        self.last_event = event;
    }

    /// The server said that the client must reload; its frame named this id.
    pub fn reset(&mut self, at: Elapsed, event: EventIx) {
        self.tag(at, RESET);
        self.varint(u64::from(event.0));
    }

    /// Hands over what was encoded since the last time; later entries go on from there.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn tag(&mut self, at: Elapsed, tag: u64) {
        let dt = at.0.saturating_sub(self.last_at);
        self.last_at += dt;
        self.varint(dt << 2 | tag);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// One event arriving at one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Index into the client's sessions, from 0.
    pub session: usize,
    /// When.
    pub at: Elapsed,
    /// What.
    pub event: EventIx,
}

/// One thing of a client's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The session with this index (from 0) began.
    Session {
        /// Index into the client's sessions.
        session: usize,
        /// When.
        at: Elapsed,
    },
    /// An event arrived.
    Receipt(Receipt),
    /// The server told the client to reload.
    Reset {
        /// Index into the client's sessions.
        session: usize,
        /// When.
        at: Elapsed,
        /// The event-table entry that holds the id that the frame named.
        event: EventIx,
    },
}

/// Reads a stream. It ends early at bytes that no writer made; `history/file.rs` refuses those beforehand.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    map: &'a [EventIx],
    at: u64,
    event: i64,
    sessions: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(stream: &'a Stream, map: &'a [EventIx], began: Elapsed) -> Self {
        Self {
            bytes: &stream.bytes,
            map,
            at: began.0,
            event: -1,
            sessions: 0,
        }
    }

    /// Whether every byte was read.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.bytes.is_empty()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (i, byte) in self.bytes.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[i + 1..];
                return Some(value);
            }
        }
        None
    }

    fn mapped(&self, event: u32) -> Option<EventIx> {
        if self.map.is_empty() {
            Some(EventIx(event))
        } else {
            self.map.get(event as usize).copied()
        }
    }

    fn step(&mut self) -> Option<Entry> {
        let head = self.varint()?;
        self.at = self.at.checked_add(head >> 2)?;
        let at = Elapsed(self.at);
        let session = self.sessions.saturating_sub(1);
        match head & 3 {
            SESSION => {
                self.sessions += 1;
                Some(Entry::Session {
                    session: self.sessions - 1,
                    at,
                })
            }
            RESET => {
                let event = u32::try_from(self.varint()?).ok()?;
                Some(Entry::Reset {
                    session,
                    at,
                    event: self.mapped(event)?,
                })
            }
            tag => {
                let delta = if tag == NEXT {
                    1
                } else {
                    let zigzag = self.varint()?;
                    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
                };
                self.event = self.event.checked_add(delta)?;
                let event = u32::try_from(self.event).ok()?;
                Some(Entry::Receipt(Receipt {
                    session,
                    at,
                    event: self.mapped(event)?,
                }))
            }
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.bytes.is_empty() {
            return None;
        }
        let before = self.bytes;
        let entry = self.step();
        if entry.is_none() {
            self.bytes = before;
        }
        entry
    }
}

/// What a client's record grew by since the last chunk was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Growth {
    /// Its log.
    pub events: Vec<ClientEvent>,
    /// Its stream's new bytes.
    pub stream: Vec<u8>,
}

impl Growth {
    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.stream.is_empty()
    }
}

/// A running client's record, owned by the client; the history's writer takes its growth from time to time.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Vec<ClientEvent>,
    stream: Stream,
}

impl Recorder {
    /// A dial ended; an opened one begins a session.
    pub fn attempt(&mut self, attempt: Attempt) {
        if attempt.outcome == AttemptOutcome::Opened {
            self.stream.session(attempt.ended);
        }
        self.events.push(ClientEvent::Attempt(attempt));
    }

    /// An event arrived.
    pub fn receipt(&mut self, at: Elapsed, event: EventIx) {
        self.stream.receipt(at, event);
    }

    /// The server told the client to reload.
    pub fn reset(&mut self, at: Elapsed, event: EventIx) {
        self.stream.reset(at, event);
    }

    /// The session ended.
    pub fn closed(&mut self, at: Elapsed, cause: Cause) {
        self.events.push(ClientEvent::Closed { at, cause });
    }

    /// The server said "caught up".
    pub fn marker(&mut self, at: Elapsed) {
        self.events.push(ClientEvent::Marker { at });
    }

    /// The client stopped for good.
    pub fn quit(&mut self, at: Elapsed, why: Quit) {
        self.events.push(ClientEvent::Quit { at, why });
    }

    /// A frame could not be read.
    pub fn unread(&mut self, at: Elapsed, text: Box<str>) {
        self.events.push(ClientEvent::Unread { at, text });
    }

    /// One of herd's numbers stood in a frame that was not read as its event. A replay tells them in order, and costs one
    /// entry.
    pub fn traced(&mut self, at: Elapsed, seq: Seq) {
        match self.events.last_mut() {
            Some(ClientEvent::Traced { last, .. }) if last.0.checked_add(1) == Some(seq.0) => {
                *last = seq;
            }
            _ => self.events.push(ClientEvent::Traced {
                at,
                first: seq,
                last: seq,
            }),
        }
    }

    /// A frame was read as an event, and lacked what a client needs of it.
    pub fn lacking(&mut self, at: Elapsed, text: Box<str>) {
        self.events.push(ClientEvent::Lacking { at, text });
    }

    /// The session that is about to end never finished the profile's opening.
    pub fn unanswered(&mut self, text: Box<str>) {
        self.events.push(ClientEvent::Unanswered { text });
    }

    /// The server named a delay after which to come back.
    pub fn retry_after(&mut self, at: Elapsed, delay: Duration) {
        self.events.push(ClientEvent::RetryAfter { at, delay });
    }

    /// The server said that it can't resume this session.
    pub fn resume_refused(&mut self, at: Elapsed, text: Box<str>) {
        self.events.push(ClientEvent::ResumeRefused { at, text });
    }

    /// The session that is about to end is silent.
    pub fn silent(&mut self, since: Elapsed) {
        self.events.push(ClientEvent::Silent { since });
    }

    /// The client started anew.
    pub fn refreshed(&mut self, at: Elapsed, memory: Memory) {
        self.events.push(ClientEvent::Refreshed { at, memory });
    }

    /// The client asked for the full state.
    pub fn reloaded(&mut self, reload: Reload) {
        self.events.push(ClientEvent::Reloaded(reload));
    }

    /// Hands over what was recorded since the last time.
    pub fn take(&mut self) -> Growth {
        Growth {
            events: std::mem::take(&mut self.events),
            stream: self.stream.take(),
        }
    }
}
