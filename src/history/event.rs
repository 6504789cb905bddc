//! What a client says of itself besides its receipts, in the order in which it happened.
//!
//! Plain data. How a client's record grows of it stands in `history/client.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Attempt, Cause, Elapsed, Memory, Reload, Seq};

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
    /// A dial ended; with [`super::AttemptOutcome::Opened`] a session began.
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
    /// A frame that the profile could not read (the first few only, and the first few in which herd's numbers stood).
    Unread {
        /// When.
        at: Elapsed,
        /// The frame, cut and made safe.
        text: Box<str>,
    },
    /// The server named a delay after which to come back: SSE's `retry:`, or `Retry-After` of an answer. Told once for
    /// each value.
    RetryAfter {
        /// When it said so.
        at: Elapsed,
        /// The delay.
        delay: Duration,
    },
    /// The server said that it can't resume from the client's cursor: in the open session, or, where the last one is over,
    /// in its answer to the handshake.
    ResumeRefused {
        /// When.
        at: Elapsed,
        /// In its own words, made safe.
        text: Box<str>,
    },
    /// herd's numbers stood whole in frames that were not read as their events; each number is told once. See [`super::Trace`].
    Traced {
        /// When the first of them came.
        at: Elapsed,
        /// The first number.
        first: Seq,
        /// The last one.
        last: Seq,
    },
    /// The first frame that was read as an event and lacked herd's number, or anything to resume from.
    Lacking {
        /// When.
        at: Elapsed,
        /// The frame, cut and made safe.
        text: Box<str>,
    },
    /// The session that is about to end never finished the profile's opening.
    Unanswered {
        /// The step that it waited for, and what came instead, made safe.
        text: Box<str>,
    },
    /// The session that is about to end is silent.
    Silent {
        /// When the last sign of life came.
        since: Elapsed,
    },
    /// The client started anew, as a tab does that is closed and opened again. A session that was open has ended before.
    Refreshed {
        /// When.
        at: Elapsed,
        /// Whether it kept its cursor.
        memory: Memory,
    },
    /// The client asked for the full state.
    Reloaded(Reload),
}
