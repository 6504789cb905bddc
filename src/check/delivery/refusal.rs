//! A server that says that it can't resume has announced that something will be missing: the beginning without a cursor
//! that follows is covered as a reset is (rule 17). It knows one client's sessions and nothing of what they brought.
//!
//! A client that begins anew gets live events only, from some instant between its opening and its first event on: open
//! is not subscribed (rule 9). What was sent by then can't be owed to it, what is sent later is. Where the server goes on
//! in the very session that it refused to resume, that session is the beginning. The same holds for a client that was told to
//! reload and had nothing to resume from before it lost its connection, or where a status or a close code told it.

use crate::history::{Client, Elapsed, Session};

/// What one client is to make of refusals, while its record is read.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Since when the client knows that it must begin anew.
    asked: Option<Elapsed>,
    /// The session in which it does so, until it is known what that covers.
    fresh: Option<usize>,
    /// The refused session that went on all the same.
    went_on: Option<usize>,
}

/// A beginning without a cursor after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beginning {
    pub(super) session: usize,
    /// When the server refused: what was overdue then is not undone.
    pub(super) asked: Elapsed,
    /// What was sent until then is covered.
    pub(super) until: Elapsed,
}

impl Refusal {
    /// The server told the client to reload: until its next event it has nothing to resume from.
    pub(super) fn ask(&mut self, at: Elapsed) {
        self.asked.get_or_insert(at);
    }

    /// The client lost its memory then: whether it was told before to begin anew, and never did.
    pub(super) fn forget(&mut self, at: Elapsed) -> bool {
        let asked = self.asked.is_some_and(|asked| asked < at);
        *self = Self::default();
        asked
    }

    /// A session begins; true where the client begins anew in it, so that it holds nothing.
    pub(super) fn session(&mut self, client: &Client, index: usize) -> bool {
        let session = &client.sessions[index];
        let since = index.checked_sub(1).map(|i| client.sessions[i].opened);
        let mut dials = client.refused_dials.iter().map(|(at, _)| *at);
        let dial = dials.find(|at| *at <= session.opened && since.is_none_or(|since| *at > since));
        self.asked = self.asked.or(dial);
        let anew = self.asked.is_some() && session.resumed_from.is_none();
        if anew {
            self.fresh = Some(index);
        }
        anew
    }

    /// An event arrived after the server refused this very session, and nothing was made of that yet: it goes on without
    /// the cursor, and the client begins anew in it.
    pub(super) fn goes_on(&mut self, index: usize, session: &Session, at: Elapsed) -> bool {
        let refused = session
            .refused
            .as_ref()
            .filter(|(refused, _)| *refused <= at);
        let Some((refused, _)) = refused.filter(|_| self.went_on != Some(index)) else {
            return false;
        };
        self.asked = Some(*refused);
        (self.fresh, self.went_on) = (Some(index), Some(index));
        true
    }

    /// An event arrived: where the client began anew, this is what that covers. A resume that is served after all makes
    /// an earlier refusal void.
    pub(super) fn served(&mut self, session: &Session, at: Elapsed) -> Option<Beginning> {
        match self.fresh.take() {
            Some(index) => self.begin(index, session, at),
            None => {
                if session.refused.is_none() {
                    self.asked = None;
                }
                None
            }
        }
    }

    /// The session is over. A beginning that brought nothing covers what was sent until it was open.
    pub(super) fn left(&mut self, session: &Session) -> Option<Beginning> {
        let beginning = self
            .fresh
            .take()
            .and_then(|index| self.begin(index, session, session.marker.unwrap_or(session.opened)));
        let refused = session.refused.as_ref().map(|(at, _)| *at);
        self.asked = self.asked.or(refused);
        beginning
    }

    fn begin(&mut self, index: usize, session: &Session, at: Elapsed) -> Option<Beginning> {
        let marker = session.marker.map_or(at, |marker| marker.min(at));
        Some(Beginning {
            session: index,
            asked: self.asked.take()?,
            until: marker.max(session.opened),
        })
    }
}
