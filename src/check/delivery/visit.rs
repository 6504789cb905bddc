//! One session of one client: when it was caught up (rule 16) and what came of its resume. It gates nothing: the pairs
//! do that. What the server says of itself ("recovered", "caught up") isn't read here at all.

use super::bits::Bits;
use super::catalogue::Catalogue;
use super::presence::Presence;
use crate::check::ResumeOutcome;
use crate::history::{Cause, Elapsed, Session};

/// A session while it is being read.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) index: usize,
    pub(super) opened: Elapsed,
    /// It was too short to count (rule 1).
    flapped: bool,
    /// The items known before its dial: those below it had to be replayed, the others come live.
    pub(super) replay: u32,
    /// The item whose receipt ends the catching up; none = caught up already.
    last: Option<u32>,
    pub(super) caught_up: Option<Elapsed>,
    received: u64,
    live: u64,
    reset: bool,
}

/// What a client has: received since the last reset, or covered by one.
pub(super) struct Holdings<'a> {
    pub(super) held: &'a Bits,
    pub(super) covered: &'a Bits,
    /// Came in frames that were not read as their events.
    pub(super) unread: Option<&'a Bits>,
    /// Items before this one were never the client's to get.
    pub(super) first: u32,
}

impl Holdings<'_> {
    fn lacks(&self, x: u32) -> bool {
        !self.held.has(x) && !self.covered.has(x)
    }
}

impl Visit {
    /// A session begins. It is caught up with the receipt of the last item known before its dial, and at once where the
    /// client has that one: the literal rule, so that an event lost earlier doesn't keep every later session from
    /// catching up.
    pub(super) fn new(
        index: usize,
        session: &Session,
        flapped: bool,
        catalogue: &Catalogue<'_>,
        holdings: &Holdings<'_>,
    ) -> Self {
        let replay = catalogue.before(session.dialled);
        let last = replay.checked_sub(1).filter(|x| holdings.lacks(*x));
        Self {
            index,
            opened: session.opened,
            flapped,
            replay,
            last,
            caught_up: (last.is_none() && !flapped).then_some(session.opened),
            received: 0,
            live: 0,
            reset: false,
        }
    }

    /// An item arrived.
    pub(super) fn receipt(&mut self, x: u32, at: Elapsed) {
        self.received += 1;
        self.live += u64::from(x >= self.replay);
        if self.last == Some(x) {
            self.caught_up.get_or_insert(at);
        }
    }

    /// The server told the client to reload.
    pub(super) fn reset(&mut self, at: Elapsed, covered: &Bits) {
        self.reset = true;
        if self.last.is_some_and(|x| covered.has(x)) && !self.flapped {
            self.caught_up.get_or_insert(at);
        }
    }

    /// What came of the resume, told at the session's end; none where it carried no cursor or was too short to tell.
    ///
    /// What was missing before the session because it was overdue then isn't this resume's doing. A live event behind a
    /// hole proves that the replay is over; without one, only a passed settle limit proves it.
    pub(super) fn outcome(
        &self,
        session: &Session,
        end: Elapsed,
        catalogue: &Catalogue<'_>,
        holdings: &Holdings<'_>,
        presence: &Presence,
        settle: std::time::Duration,
    ) -> Option<ResumeOutcome> {
        if session.refused.is_some() {
            return Some(ResumeOutcome::Refused);
        }
        session.resumed_from?;
        if self.reset {
            return Some(ResumeOutcome::Reset);
        }
        if self.flapped {
            return refused(session).then_some(ResumeOutcome::Refused);
        }
        let overdue = |x: &u32| catalogue.item(*x).known.max(self.opened) + settle <= end;
        let lacking = |from: u32, to: u32| {
            let missing = holdings.held.missing(from..to);
            missing.filter(|x| !holdings.covered.has(*x))
        };
        let holes: Vec<u32> = lacking(holdings.first.min(self.replay), self.replay)
            .filter(|x| !presence.overdue_before(catalogue.item(*x).known, self.opened))
            .collect();
        // What came of a resume whose replay herd couldn't read nobody can tell.
        if holes
            .iter()
            .any(|x| holdings.unread.is_some_and(|unread| unread.has(*x)))
        {
            return None;
        }
        let replay_over = self.live > 0 || holes.iter().any(overdue);
        let silent_live = self.live == 0
            && lacking(self.replay, catalogue.items.len() as u32).any(|x| overdue(&x));
        match (holes.is_empty(), replay_over) {
            (_, true) if self.received == 0 => Some(ResumeOutcome::NeverResumed),
            (false, true) => Some(ResumeOutcome::MissedReset),
            (true, _) if silent_live => Some(ResumeOutcome::NeverResumed),
            (true, _) => Some(ResumeOutcome::Resumed),
            (false, false) => None,
        }
    }
}

/// The codes that a server closes with because of what the client asked for.
fn refused(session: &Session) -> bool {
    let Some((_, Cause::Close { code, .. })) = &session.closed else {
        return false;
    };
    matches!(code, Some(1003 | 1008 | 4000..=4999))
}
