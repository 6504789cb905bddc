//! What a frame's parts do to a client: its cursor, its record and its machine.
//!
//! It knows no connection and no frame's form: parts are told apart in `client/table.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::client::Client;
use crate::client::crew::Resumes;
use crate::client::machine::Input;
use crate::client::table::{Cursor, Known, Token};
use crate::history::{Elapsed, Seq};
use crate::transport::{Payload, safe};

/// Frames that are kept of those that a client could not read, of all and of those that herd's numbers stood in.
const UNREAD: u32 = 3;
/// How much of each (bytes).
const KEPT: usize = 200;
/// Why a frame is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sample {
    /// It was read as an event that lacks what herd needs of one. The first is enough.
    Lacking,
    /// It could not be read.
    Unread,
    /// herd's numbers stand in it and were not read.
    Traced,
}

/// Whether an event brought what herd needs of one: its number where it publishes, and something to resume from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    There,
    Missing,
}

impl Client<'_> {
    pub(super) fn event(&mut self, at: Elapsed, known: Known, token: Option<&Arc<Token>>) -> Needs {
        let own = known.seq.filter(|seq| self.crew.own.holds(*seq));
        let new = token.map_or(Cursor::Id(known), |token| Cursor::Token(token.clone()));
        let resumable = own.is_some() || token.is_some() || self.crew.resumes == Resumes::FromAny;
        let supersedes = resumable && self.crew.table.supersedes(&new, &self.cursor);
        let input = Input::Event {
            event: known.event,
            supersedes,
        };
        self.machine.on(at, input, self.policy);
        if supersedes {
            self.cursor = new;
        }
        self.crew.counters.receipts.fetch_add(1, Relaxed);
        let mut state = self.handle.lock();
        state.recorder.receipt(at, known.event);
        state.progress.last_receipt = Some(at);
        if !state.progress.has_cursor && state.progress.last_reset.is_some() {
            // It began anew, and open is not subscribed: what it missed until now is not owed to it.
            state.progress.last_reset = Some(at);
        }
        state.progress.has_cursor |= supersedes;
        if let Some(seq) = own {
            state.numbers.insert(seq.0);
        }
        match own.is_some() || !self.crew.table.is_numbered() {
            true if state.progress.has_cursor => Needs::There,
            _ => Needs::Missing,
        }
    }

    /// The cursor moves without an event, or is cleared.
    pub(super) fn moved(&mut self, token: Option<&Arc<Token>>) {
        let new = token.map_or(Cursor::None, |token| Cursor::Token(token.clone()));
        if token.is_none() || self.crew.table.supersedes(&new, &self.cursor) {
            self.cursor = new;
            self.handle.lock().progress.has_cursor = token.is_some();
        }
    }

    pub(super) fn reset(&mut self, at: Elapsed, known: Known) {
        let input = Input::Reset { event: known.event };
        self.machine.on(at, input, self.policy);
        self.cursor = Cursor::Id(known);
        let mut state = self.handle.lock();
        state.recorder.reset(at, known.event);
        state.progress.last_reset = Some(at);
        state.progress.has_cursor = known.is_cursor();
        drop(state);
        self.reload(at);
    }

    /// The server can't resume from the cursor: the next dial begins anew, or the client would be refused for ever.
    pub(in crate::client) fn refused(&mut self, at: Elapsed, text: &str) {
        let text = self.hidden(text);
        self.cursor = Cursor::None;
        let mut state = self.handle.lock();
        state.recorder.resume_refused(at, text);
        state.progress.last_reset = Some(at);
        state.progress.has_cursor = false;
        drop(state);
        self.reload(at);
    }

    /// Lets the machine know what the next dial carries; a cursor that is no event's id gets its place now.
    pub(in crate::client) fn tell_cursor(&mut self, at: Elapsed) {
        let event = self.crew.table.place(&self.cursor);
        self.machine.on(at, Input::Cursor { event }, self.policy);
    }

    /// herd's numbers stood in a frame that was not read as their events.
    pub(super) fn traced(&mut self, at: Elapsed, numbers: &[Seq]) {
        let mut state = self.handle.lock();
        for seq in numbers {
            if !state.traced.contains(seq.0) {
                state.traced.insert(seq.0);
                state.recorder.traced(at, *seq);
            }
        }
    }

    /// Keeps a frame that could not be read, while there are few.
    pub(super) fn keep(&mut self, at: Elapsed, payload: &Payload, sample: Sample) {
        let kept = &mut self.kept[sample as usize];
        let most = match sample {
            Sample::Lacking => 1,
            Sample::Unread | Sample::Traced => UNREAD,
        };
        if *kept < most {
            *kept += 1;
            let text = safe(payload.frame().bytes, KEPT);
            let text = self.hidden(&text);
            let mut state = self.handle.lock();
            if sample == Sample::Lacking {
                return state.recorder.lacking(at, text);
            }
            state.unread.get_or_insert_with(|| text.clone());
            state.recorder.unread(at, text);
        }
    }
}
