//! The distinct events that this process's clients received, and what each distinct frame decoded to.
//!
//! A thousand clients receive the same frame: it is read once, and every further receipt of it costs one hash and one
//! compare. A client guesses first that the frame is the one after its last. It knows no client and no clock.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_128;

use crate::history::{Event, EventIx, IdKind, Seq};
use crate::profile::{Carried, Decoded, Profile};
use crate::transport::Frame;

/// Frames that are remembered; the oldest is forgotten first. Where every client gets other frames, this is the bound.
const REMEMBERED: usize = 8 * 1024;
/// A frame of more parts than this is read again each time rather than remembered.
const MOST_PARTS: usize = 64;

/// The table; shared by all clients.
#[derive(Debug)]
pub struct EventTable {
    profile: Profile,
    ids: IdKind,
    remembered: usize,
    frames: RwLock<Frames>,
    events: Mutex<Events>,
}

/// A client's guess at the next frame: what it read last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guess(usize);

/// What a frame, or a part of it, means to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// An event.
    Event(Known),
    /// The client must reload; this is the new cursor.
    Reset(Known),
    /// The server says that the replay is over.
    CaughtUp,
    /// Not understood.
    Unread,
}

/// An event's place in the table with what a client needs of it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its place.
    pub event: EventIx,
    /// herd's number, where it holds one.
    pub seq: Option<Seq>,
    /// Whether there is an id, and with it a cursor.
    rank: Rank,
}

/// How an id compares, as far as that can be said without the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// There is no id.
    None,
    /// A declared integer that fits.
    Number(u64),
    /// Ask the ids.
    Text,
}

/// A frame's parts; one is nearly always all.
#[derive(Debug, Clone)]
pub enum Parts {
    /// One part.
    One(Part),
    /// None, or several.
    Many(Arc<[Part]>),
}

impl Parts {
    /// All of them, in the frame's order.
    #[must_use]
    pub fn as_slice(&self) -> &[Part] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

/// The ring of remembered frames.
#[derive(Debug, Default)]
struct Frames {
    ring: Vec<(u128, Parts)>,
    index: HashMap<u128, usize>,
    next: usize,
}

#[derive(Debug, Default)]
struct Events {
    index: HashMap<Arc<Event>, EventIx>,
    list: Vec<Arc<Event>>,
    taken: usize,
}

impl EventTable {
    /// An empty table for a profile whose ids are of this kind.
    #[must_use]
    pub fn new(profile: Profile, ids: IdKind) -> Self {
        Self {
            profile,
            ids,
            remembered: REMEMBERED,
            frames: RwLock::default(),
            events: Mutex::default(),
        }
    }

    /// Reads a frame. The guess is the reading client's own; it makes the usual case cheap and never changes the result:
    /// a frame is known by 128 bits of hash over all its bytes.
    pub fn read(&self, frame: Frame<'_>, guess: &mut Guess) -> Parts {
        let hash = xxh3_128(frame.bytes);
        let frames = self.frames.read().unwrap_or_else(PoisonError::into_inner);
        let at = frames.find(hash, *guess, self.remembered);
        if let Some(at) = at {
            *guess = Guess(at);
            return frames.ring[at].1.clone();
        }
        drop(frames);
        let (parts, keep) = self.decode(frame);
        if keep {
            let mut frames = self.frames.write().unwrap_or_else(PoisonError::into_inner);
            *guess = Guess(frames.remember(hash, &parts, self.remembered));
        }
        parts
    }

    /// The place of an event, which is added if it is new.
    pub fn intern(&self, event: Event) -> EventIx {
        self.lock().intern(event)
    }

    /// The event at a place that this table gave out.
    #[must_use]
    pub fn get(&self, event: EventIx) -> Arc<Event> {
        self.lock().list[event.0 as usize].clone()
    }

    /// The events added since the last call, in the order of their places. Take the clients' records first and these
    /// after them: then every place that a record names is known.
    #[must_use]
    pub fn take_new(&self) -> Vec<Event> {
        let mut events = self.lock();
        let new = &events.list[events.taken..];
        let new = new.iter().map(|event| Event::clone(event)).collect();
        events.taken = events.list.len();
        new
    }

    /// Whether an event becomes the cursor of a client that holds `cursor` (rule 19 of judgement): the last one received
    /// does, but where ids are declared ordered only a greater one. One without an id never does; ids that are not of
    /// the declared kind are taken as they come.
    #[must_use]
    pub fn supersedes(&self, new: Known, cursor: Option<Known>) -> bool {
        let Some(cursor) = cursor else {
            return new.has_id();
        };
        match (new.rank, cursor.rank) {
            (Rank::None, _) => false,
            (_, Rank::None) => true,
            (Rank::Number(new), Rank::Number(old)) => new > old,
            _ => {
                let (new, old) = (self.get(new.event), self.get(cursor.event));
                let ids = new.id.as_deref().zip(old.id.as_deref());
                let order = ids.and_then(|(new, old)| self.ids.compare(new, old));
                order.is_none_or(|order| order == Ordering::Greater)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decode(&self, frame: Frame<'_>) -> (Parts, bool) {
        let decoded = self.profile.decode(frame, Carried::Nothing);
        let mut events = self.lock();
        let mut parts: Vec<Part> = decoded
            .into_iter()
            .filter_map(|part| self.part(&mut events, part))
            .collect();
        // An unread frame's text matters to whoever sees it, and there are only a few of them.
        let keep = parts.len() <= MOST_PARTS && !parts.contains(&Part::Unread);
        let parts = match parts.len() {
            1 => Parts::One(parts.remove(0)),
            _ => Parts::Many(parts.into()),
        };
        (parts, keep)
    }

    fn part(&self, events: &mut Events, decoded: Decoded) -> Option<Part> {
        let mut known = |id: Option<Box<str>>, seq: Option<u64>, digest| {
            let (rank, seq) = (self.rank(id.as_deref()), seq.map(Seq));
            let event = events.intern(Event {
                id,
                seq,
                digest,
                ..Event::default()
            });
            Known { event, seq, rank }
        };
        match decoded {
            Decoded::Event(read) => Some(Part::Event(known(read.id, read.seq, read.digest))),
            Decoded::Reset { id } => Some(Part::Reset(known(id, None, 0))),
            Decoded::CaughtUp => Some(Part::CaughtUp),
            Decoded::Cursor(_) | Decoded::Ignored => None,
            Decoded::ResumeRefused(_) | Decoded::Fatal(_) => None,
            Decoded::Unread(_) => Some(Part::Unread),
        }
    }

    fn rank(&self, id: Option<&str>) -> Rank {
        let digits = |id: &str| id.bytes().all(|b| b.is_ascii_digit());
        match (id, self.ids) {
            (None, _) => Rank::None,
            (Some(id), IdKind::Integer) if digits(id) => {
                id.parse().map_or(Rank::Text, Rank::Number)
            }
            _ => Rank::Text,
        }
    }
}

impl Known {
    /// Whether it holds an id, and with it a cursor.
    #[must_use]
    pub fn has_id(self) -> bool {
        self.rank != Rank::None
    }
}

impl Frames {
    fn find(&self, hash: u128, guess: Guess, capacity: usize) -> Option<usize> {
        let next = (guess.0 + 1) % capacity;
        match self.ring.get(next) {
            Some((known, _)) if *known == hash => Some(next),
            _ => self.index.get(&hash).copied(),
        }
    }

    /// Where it stands now: another client may have been faster.
    fn remember(&mut self, hash: u128, parts: &Parts, capacity: usize) -> usize {
        if let Some(at) = self.index.get(&hash) {
            return *at;
        }
        let at = self.next;
        let slot = (hash, parts.clone());
        if let Some(old) = self.ring.get_mut(at) {
            self.index.remove(&old.0);
            *old = slot;
        } else {
            self.ring.push(slot);
        }
        self.index.insert(hash, at);
        self.next = (at + 1) % capacity;
        at
    }
}

impl Events {
    fn intern(&mut self, event: Event) -> EventIx {
        if let Some(place) = self.index.get(&event) {
            return *place;
        }
        let place = EventIx(
            u32::try_from(self.list.len())
                .expect("four billion distinct events don't fit into memory"),
        );
        let event = Arc::new(event);
        self.list.push(event.clone());
        self.index.insert(event, place);
        place
    }
}

#[cfg(test)]
mod tests;
