//! The history's table of distinct events, filled as they are first seen.

use std::collections::HashMap;

use super::model::Stored;
use super::peer::Seen;
use crate::history::{Event, EventIx, Seq};

#[derive(Debug, Default)]
pub(super) struct Table {
    events: Vec<Event>,
    /// For each stored event, as it is seen once anybody saw it.
    seen: Vec<Option<Seen>>,
    /// Events that no log holds: other contents, marked ones and resets, by (id, digest).
    odd: HashMap<(u64, u64), EventIx>,
}

impl Table {
    /// A stored event, by its place in the log and its number.
    pub(super) fn seen(&mut self, place: usize, stored: Stored, number: usize) -> Seen {
        if place >= self.seen.len() {
            self.seen.resize(place + 1, None);
        }
        if let Some(seen) = self.seen[place] {
            return seen;
        }
        let seen = Seen {
            event: self.add(stored.id, Some(stored.seq), content(stored.seq)),
            id: stored.id,
            number,
        };
        self.seen[place] = Some(seen);
        seen
    }

    /// A stored event that is marked as sent again.
    pub(super) fn again(&mut self, stored: Stored, number: usize) -> Seen {
        let digest = content(stored.seq);
        let event = self.odd(stored.id, Some(stored.seq), digest);
        self.events[event.0 as usize].redelivered = true;
        Seen {
            event,
            id: stored.id,
            number,
        }
    }

    /// A stored event's id with another content.
    pub(super) fn conflict(&mut self, stored: Stored, number: usize) -> Seen {
        Seen {
            event: self.odd(stored.id, Some(stored.seq), content(stored.seq) ^ 2),
            id: stored.id,
            number,
        }
    }

    /// A reset that names this id.
    pub(super) fn reset(&mut self, id: u64) -> EventIx {
        self.odd(id, None, 0)
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    fn odd(&mut self, id: u64, seq: Option<Seq>, digest: u64) -> EventIx {
        if let Some(&event) = self.odd.get(&(id, digest)) {
            return event;
        }
        let event = self.add(id, seq, digest);
        self.odd.insert((id, digest), event);
        event
    }

    fn add(&mut self, id: u64, seq: Option<Seq>, digest: u64) -> EventIx {
        self.events.push(Event {
            id: Some(id.to_string().into()),
            seq,
            digest,
            ..Event::default()
        });
        EventIx(self.events.len() as u32 - 1)
    }
}

/// A digest of what a publication says; never 0, which means nothing to compare.
fn content(seq: Seq) -> u64 {
    seq.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}
