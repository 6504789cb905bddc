//! A client that came back with its memory lost, as a browser's tab does that is closed and opened again: it is a new client.
//! What was published before it was served is not expected of it, what it had and got again is no duplicate, and what it
//! held, and its order, begin anew. It knows one client's sessions and nothing of what they brought.
//!
//! As after a refused resume, open is not subscribed: what was sent until its first event (or the server's marker) can't be
//! owed to it. But nobody told it to reload, so nothing is `reset`: such pairs are no pairs of the count.

use super::bits::Bits;
use crate::history::{Client, Elapsed, Memory, Session};

/// What one client's lost memory makes of its record, while that is read.
#[derive(Debug, Default)]
pub(super) struct Newcomer {
    /// The session in which it is new, until it is served.
    fresh: Option<usize>,
    /// It has been new since, and was never served: the next session without a cursor is a beginning too.
    unserved: bool,
    /// Since when it was new, and what was past then.
    pub(super) past: Vec<(Elapsed, Bits)>,
}

/// Since when a client is a new one that begins in this session; none = it is none.
pub(super) fn since(client: &Client, index: usize) -> Option<Elapsed> {
    let before = client.sessions.get(index.checked_sub(1)?)?;
    let dialled = client.sessions.get(index)?.dialled;
    let mut lost = client
        .refreshed
        .iter()
        .filter(|(_, m)| *m == Memory::Lost)
        .map(|(at, _)| *at);
    lost.rfind(|at| before.opened <= *at && *at <= dialled)
}

/// Whether a client begins as a new one in this session, whatever it was before.
pub(super) fn is_new(client: &Client, index: usize) -> bool {
    since(client, index).is_some()
}

impl Newcomer {
    /// A session begins; true where the client is new in it.
    pub(super) fn session(&mut self, client: &Client, index: usize) -> bool {
        let again = self.unserved && client.sessions[index].resumed_from.is_none();
        let new = is_new(client, index) || again;
        self.fresh = new.then_some(index);
        self.unserved = new;
        new
    }

    /// Whether the client is new, and nothing came to it yet.
    pub(super) fn is_unserved(&self) -> bool {
        self.fresh.is_some()
    }

    /// An event arrived: until when what was sent is past to the client, where that is decided now.
    pub(super) fn served(&mut self, session: &Session, at: Elapsed) -> Option<Elapsed> {
        self.fresh.take()?;
        self.unserved = false;
        Some(until(session, at))
    }

    /// The session is over, and brought nothing.
    pub(super) fn left(&mut self, session: &Session) -> Option<Elapsed> {
        self.fresh.take()?;
        Some(until(session, session.opened))
    }

    /// Whether an item was past when the client was new, and since when.
    pub(super) fn past(&self, x: u32) -> Option<Elapsed> {
        let past = self.past.iter().find(|(_, past)| past.has(x));
        past.map(|(at, _)| *at)
    }
}

fn until(session: &Session, at: Elapsed) -> Elapsed {
    let marker = session
        .marker
        .map_or(at, |marker| marker.min(at.max(session.opened)));
    marker.max(session.opened)
}
