//! What one subscriber is told, in which order: the hand-over from replay to live, and the defects that spoil it.
//!
//! Synchronous, no socket, no clock. It pulls from the log by id and remembers only the last one, so a replay and live
//! events are the same thing here; where one ends and the other begins matters only to the mark between them and to
//! the defects (`feed/bite.rs`). What its items look like is the dialect's business.

mod bite;

use std::io;
use std::sync::Arc;

use super::dialect::{Dialect, Gone, Item};
use super::faults::Faults;
use super::log::{Log, Read, State};
use bite::Bite;

/// The most events pulled at once; a longer replay is pulled in parts, so that no client makes others wait.
const PART: usize = 128;

/// What a subscriber asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What it speaks.
    pub(crate) dialect: Dialect,
    /// Its cursor; none or empty = it has none.
    pub(crate) after: Option<&'a str>,
    /// Who it is.
    pub(crate) client: u64,
    /// The newest id when it was let in: without a cursor it gets all that is newer, whenever it says so.
    pub(crate) since: u64,
}

/// One subscriber's way through the log.
pub(crate) struct Feed {
    log: Arc<Log>,
    /// Everything up to this id has been dealt with.
    last: u64,
    /// What comes before all events.
    opening: Option<Item>,
    /// What is newer comes live.
    handover: u64,
    mark: Mark,
    bite: Option<Bite>,
}

/// When the end of the replay is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It isn't, or was already.
    Never,
    /// When the last event of the replay was sent.
    AfterReplay,
    /// When a live event was sent, too.
    AfterLive,
}

/// How a subscriber's way begins.
struct Start {
    /// The id after which to begin.
    after: u64,
    opening: Option<Item>,
    mark: Mark,
}

/// Why a feed ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// What the subscriber needs next is no longer kept.
    #[error("too slow: what comes next is no longer kept; resume to be told to reload")]
    FellBehind,
    /// The log can't be read.
    #[error("the log can't be read: {0}")]
    Log(#[from] io::Error),
}

/// What a cursor turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// Everything after it is kept.
    Known(u64),
    /// Something after it is gone.
    Evicted(u64),
    /// Never given by this log.
    Unknown,
}

impl Cursor {
    /// Ids are opaque to clients, so only the exact text that was sent is one: "017" is not.
    fn read(text: &str, state: State) -> Self {
        match text.parse::<u64>() {
            Ok(id) if id > state.newest || id.to_string() != text => Self::Unknown,
            Ok(id) if id < state.evicted => Self::Evicted(id),
            Ok(id) => Self::Known(id),
            Err(_) => Self::Unknown,
        }
    }

    /// What an honest server does: it goes on after a cursor that it knows. One that this log never gave is answered by a
    /// reset like one that is too old: taking it for "from now" would lose events silently.
    fn start(self, state: State, mark: Mark) -> Start {
        let (after, why) = match self {
            Self::Known(after) => (after, None),
            Self::Evicted(_) => (state.newest, Some(Gone::Evicted)),
            Self::Unknown => (state.newest, Some(Gone::Unknown)),
        };
        let opening = why.map(|why| Item::Reset { id: after, why });
        Start {
            after,
            opening,
            mark,
        }
    }
}

impl Feed {
    /// Begins: after the cursor where it is known, with a reset where it is not, and without one with as many recent
    /// events as the dialect gives.
    pub(crate) fn open(log: &Arc<Log>, asked: Asked<'_>, faults: &Arc<Faults>) -> Self {
        let state = log.state();
        let mark = if asked.dialect.marks() {
            Mark::AfterReplay
        } else {
            Mark::Never
        };
        let (start, bite) = match asked.after.filter(|after| !after.is_empty()) {
            None => {
                let recent = asked.since.saturating_sub(asked.dialect.recent());
                let start = Start {
                    after: recent.max(state.evicted),
                    opening: None,
                    mark,
                };
                (start, None)
            }
            Some(after) => {
                faults.on_resume();
                let cursor = Cursor::read(after, state);
                let mut bite = Bite::new(Arc::clone(faults), asked.client, state);
                (bite.start(after, cursor, mark), Some(bite))
            }
        };
        Self {
            log: Arc::clone(log),
            last: start.after,
            opening: start.opening,
            handover: state.newest,
            mark: start.mark,
            bite,
        }
    }

    /// What comes next, in order; empty = nothing yet.
    ///
    /// # Errors
    /// Where the subscriber can't be served any more.
    pub(crate) fn pull(&mut self) -> Result<Vec<Item>, Broken> {
        if let Some(opening) = self.opening.take() {
            return Ok(vec![opening]);
        }
        let mut items = Vec::new();
        // A part of which a defect lets nothing through is no end.
        loop {
            let events = match self.log.read(self.last, PART)? {
                Read::Events(events) => events,
                Read::Evicted => return Err(Broken::FellBehind),
            };
            let Some(last) = events.last() else {
                self.mark(Mark::AfterReplay, self.handover, &mut items);
                return Ok(items);
            };
            self.last = last.id;
            for event in events {
                let id = event.id;
                if id > self.handover {
                    self.mark(Mark::AfterReplay, self.handover, &mut items);
                }
                match &mut self.bite {
                    None => items.push(Item::Event(event)),
                    Some(bite) => bite.pass(event, &mut items),
                }
                if id > self.handover {
                    self.mark(Mark::AfterReplay, id, &mut items);
                    self.mark(Mark::AfterLive, id, &mut items);
                }
            }
            if !items.is_empty() {
                return Ok(items);
            }
        }
    }

    /// Tells the end of the replay where it is due now; what is held back of it comes first.
    fn mark(&mut self, now: Mark, id: u64, items: &mut Vec<Item>) {
        if self.mark == now && !self.is_holding() {
            self.mark = Mark::Never;
            items.push(Item::CaughtUp(id));
        }
    }

    /// Whether a defect holds an event back to send it after the next one.
    pub(crate) fn is_holding(&self) -> bool {
        self.bite.as_ref().is_some_and(Bite::is_holding)
    }

    /// No next one came: gives the held event up, in its place after all.
    pub(crate) fn release(&mut self) -> Option<Item> {
        self.bite.as_mut()?.release()
    }
}

#[cfg(test)]
mod tests;
