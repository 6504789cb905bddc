//! What one subscriber is sent, in which order: the hand-over from replay to live, and the defects that spoil it.
//!
//! Synchronous, no socket, no clock. It pulls from the log by id and remembers only the last one, so a replay and live
//! events are the same thing here; where one ends and the other begins matters only to the defects.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use serde_json::json;

use super::defect::Defect;
use super::faults::Faults;
use super::log::{Event, Log, Read, State};

/// The most events pulled at once; a longer replay is pulled in parts, so that no client makes others wait.
const PART: usize = 128;

/// One subscriber's way through the log.
pub(crate) struct Feed {
    log: Arc<Log>,
    /// Everything up to this id has been dealt with.
    last: u64,
    /// A frame that comes before all events.
    opening: Option<Utf8Bytes>,
    bite: Option<Bite>,
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
}

impl Feed {
    /// Begins: from now where there is no cursor, after it where it is known, and otherwise with a reset. A cursor that
    /// this log never gave is answered by a reset too: taking it for "from now" would lose events silently.
    pub(crate) fn open(
        log: &Arc<Log>,
        after: Option<&str>,
        client: u64,
        faults: &Arc<Faults>,
    ) -> Self {
        let state = log.state();
        let mut feed = Self {
            log: Arc::clone(log),
            last: state.newest,
            opening: None,
            bite: None,
        };
        let Some(after) = after.filter(|after| !after.is_empty()) else {
            return feed;
        };
        faults.on_resume();
        let cursor = Cursor::read(after, state);
        let mut bite = Bite::new(Arc::clone(faults), client, state.newest);
        match bite.start(after, cursor, state) {
            Some(start) => feed.last = start,
            None => feed.reset(),
        }
        feed.bite = Some(bite);
        feed
    }

    fn reset(&mut self) {
        let frame = json!({ "type": "reset", "id": self.last.to_string() });
        self.opening = Some(frame.to_string().into());
    }

    /// What comes next, in order; empty = nothing yet.
    ///
    /// # Errors
    /// Where the subscriber can't be served any more.
    pub(crate) fn pull(&mut self) -> Result<Vec<Utf8Bytes>, Broken> {
        let mut frames: Vec<_> = self.opening.take().into_iter().collect();
        // A part of which a defect lets nothing through is no end.
        loop {
            let events = match self.log.read(self.last, PART)? {
                Read::Events(events) => events,
                Read::Evicted => return Err(Broken::FellBehind),
            };
            let Some(last) = events.last() else {
                return Ok(frames);
            };
            self.last = last.id;
            for event in events {
                match &mut self.bite {
                    None => frames.push(event.frame),
                    Some(bite) => bite.pass(event, &mut frames),
                }
            }
            if !frames.is_empty() {
                return Ok(frames);
            }
        }
    }

    /// Whether a defect holds an event back to send it after the next one.
    pub(crate) fn is_holding(&self) -> bool {
        self.bite.as_ref().is_some_and(|bite| bite.held.is_some())
    }

    /// No next one came: gives the held event up, in its place after all.
    pub(crate) fn release(&mut self) -> Option<Utf8Bytes> {
        self.bite.as_mut()?.held.take().map(|event| event.frame)
    }
}

/// What the defects do to one resumed subscriber.
struct Bite {
    faults: Arc<Faults>,
    client: u64,
    /// What is newer came live.
    handover: u64,
    /// Events that aren't sent.
    mute: Vec<(Defect, RangeInclusive<u64>)>,
    held: Option<Event>,
}

impl Bite {
    fn new(faults: Arc<Faults>, client: u64, handover: u64) -> Self {
        Self {
            faults,
            client,
            handover,
            mute: Vec::new(),
            held: None,
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.faults.planted(defect).is_some()
    }

    fn note(&self, defect: Defect, id: Option<u64>) -> bool {
        self.faults.note(defect, Some(self.client), id)
    }

    /// The id after which to begin; none = a reset.
    fn start(&mut self, after: &str, cursor: Cursor, state: State) -> Option<u64> {
        if self.has(Defect::ResetAlways) && self.note(Defect::ResetAlways, None) {
            return None;
        }
        if self.has(Defect::LiveNotResubscribed) {
            let live = self.handover + 1..=u64::MAX;
            self.mute.push((Defect::LiveNotResubscribed, live));
        }
        if self.has(Defect::IdsRestart)
            && let Some(before) = self.faults.before()
            && let Ok(after) = after.parse::<u64>()
        {
            // What it missed of the old numbers went with them; of the new ones all up to its cursor stay hidden.
            let gone = (after.saturating_add(1)..=before)
                .all(|id| self.note(Defect::IdsRestart, Some(id)));
            self.mute.push((Defect::IdsRestart, 0..=after));
            return gone.then_some(state.evicted);
        }
        match cursor {
            Cursor::Unknown => None,
            Cursor::Evicted(after) if self.has(Defect::SkipEvicted) => (after + 1..=state.evicted)
                .all(|id| self.note(Defect::SkipEvicted, Some(id)))
                .then_some(state.evicted),
            Cursor::Evicted(_) => None,
            Cursor::Known(after) => Some(self.resume(after, state)),
        }
    }

    fn resume(&mut self, after: u64, state: State) -> u64 {
        let forgets = self.has(Defect::ForgetLog)
            && self.faults.before().is_some_and(|before| after <= before);
        for (defect, acts) in [
            (Defect::ForgetLog, forgets),
            (Defect::NeverCatchUp, self.has(Defect::NeverCatchUp)),
        ] {
            if acts {
                self.mute.push((defect, after + 1..=state.newest));
            }
        }
        let missed = state.newest - after;
        if let Some(planted) = self.faults.planted(Defect::LoseOnResume)
            && missed >= 2
        {
            // Never the last one: while nothing newer has arrived, another resume would bring it after all.
            let id =
                after + 1 + planted.draw(self.faults.seed(), self.client, after) % (missed - 1);
            self.mute.push((planted.defect, id..=id));
        }
        if self.has(Defect::DuplicateOnResume)
            && after > state.evicted
            && self.note(Defect::DuplicateOnResume, Some(after))
        {
            return after - 1;
        }
        after
    }

    /// Sends an event, or does to it what is planted; one defect at most, so that each has its own count.
    fn pass(&mut self, event: Event, frames: &mut Vec<Utf8Bytes>) {
        if let Some((defect, _)) = self.mute.iter().find(|(_, ids)| ids.contains(&event.id))
            && self.note(*defect, Some(event.id))
        {
            return;
        }
        if let Some(held) = self.held.take() {
            let swapped = self.note(Defect::Reorder, Some(held.id));
            let (first, second) = if swapped {
                (event, held)
            } else {
                (held, event)
            };
            frames.extend([first.frame, second.frame]);
            return;
        }
        match self.spoils(event.id) {
            Some(Defect::Reorder) => self.held = Some(event),
            Some(defect) if self.note(defect, Some(event.id)) => spoil(defect, event, frames),
            _ => frames.push(event.frame),
        }
    }

    /// The defect that acts on this live event.
    fn spoils(&self, id: u64) -> Option<Defect> {
        if id <= self.handover {
            return None;
        }
        [
            Defect::LoseLive,
            Defect::DuplicateLive,
            Defect::CorruptFrame,
            Defect::Conflict,
            Defect::Reorder,
        ]
        .into_iter()
        .find(|defect| {
            self.faults
                .planted(*defect)
                .is_some_and(|planted| planted.hits(self.faults.seed(), self.client, id))
        })
    }
}

fn spoil(defect: Defect, event: Event, frames: &mut Vec<Utf8Bytes>) {
    match defect {
        Defect::DuplicateLive => frames.extend([event.frame.clone(), event.frame]),
        Defect::CorruptFrame => {
            let text = event.frame.as_str();
            let cut = (0..=text.len() / 2).rfind(|&i| text.is_char_boundary(i));
            frames.push(text[..cut.unwrap_or(0)].into());
        }
        Defect::Conflict => {
            let other = Event::new(event.id, r#"{"conflict":true}"#);
            frames.extend([event.frame, other.frame]);
        }
        // Lost.
        _ => {}
    }
}

#[cfg(test)]
mod tests;
