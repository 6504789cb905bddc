//! The distinct events that this process's clients received, and what each distinct frame decoded to.
//!
//! A thousand clients receive the same frame: it is read once, and every further receipt of it costs one hash and one
//! compare. A client guesses first that the frame is the one after its last. It knows no client and no clock.

mod memo;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::crew::OwnNumbers;
use crate::history::{Event, EventIx, IdKind, Seq};
use crate::profile::{Carried, Decoded, Moves, Profile, Reading, trace};
use crate::transport::Frame;
use memo::{Frames, key};

pub use memo::Guess;

/// Frames that are remembered; the oldest is forgotten first. Where every client gets other frames, this is the bound.
const REMEMBERED: usize = 8 * 1024;
/// A frame of more parts than this is read again each time rather than remembered.
const MOST_PARTS: usize = 64;

/// The table; shared by all clients.
#[derive(Debug)]
pub struct EventTable {
    profile: Arc<Profile>,
    ids: IdKind,
    /// herd's numbers, where herd publishes.
    own: Option<OwnNumbers>,
    remembered: usize,
    frames: RwLock<Frames>,
    events: Mutex<Events>,
}

/// What a frame, or a part of it, means to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// An event, and the cursor that it carries besides its id.
    Event(Known, Option<Arc<Token>>),
    /// The cursor moves, or is cleared, without an event.
    Cursor(Option<Arc<Token>>),
    /// The client must reload; this is the new cursor.
    Reset(Known),
    /// The server says that the replay is over.
    CaughtUp,
    /// The server refuses to resume, in these words.
    Refused(Arc<str>),
    /// The session is to be ended, for this reason.
    Fatal(Arc<str>),
    /// Not understood.
    Unread,
    /// herd's numbers stand in the frame and were not read as those of its events.
    Traced(Arc<[Seq]>),
}

/// An event's place in the table with what a client needs of it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its place.
    pub event: EventIx,
    /// herd's number, where it holds one.
    pub seq: Option<Seq>,
    /// Whether its id is a cursor.
    rank: Rank,
}

/// A cursor that is no event's id. It gets a place in the table only when a dial carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    text: Box<str>,
    epoch: Option<Box<str>>,
    rank: Rank,
}

/// What a client resumes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cursor {
    /// From nothing.
    #[default]
    None,
    /// From an event's id.
    Id(Known),
    /// From something else.
    Token(Arc<Token>),
}

/// How an id compares, as far as that can be said without the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// There is no id, or it is no cursor.
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

#[derive(Debug, Default)]
struct Events {
    index: HashMap<Arc<Event>, EventIx>,
    list: Vec<Arc<Event>>,
    taken: usize,
}

impl EventTable {
    /// An empty table for a profile whose ids are of this kind; `own` are herd's numbers, where herd publishes.
    #[must_use]
    pub fn new(profile: Arc<Profile>, ids: IdKind, own: Option<OwnNumbers>) -> Self {
        Self {
            profile,
            ids,
            own,
            remembered: REMEMBERED,
            frames: RwLock::default(),
            events: Mutex::default(),
        }
    }

    /// Reads a frame that came on such a session. The guess is the reading client's own; it makes the usual case cheap and
    /// never changes the result: a frame is known by 128 bits of hash over all that it is.
    pub fn read(&self, frame: Frame<'_>, carried: Carried, guess: &mut Guess) -> Parts {
        let hash = key(frame, carried);
        let frames = self.frames.read().unwrap_or_else(PoisonError::into_inner);
        let at = frames.find(hash, *guess, self.remembered);
        if let Some(at) = at {
            *guess = Guess(at);
            return frames.ring[at].1.clone();
        }
        drop(frames);
        let (parts, keep) = self.decode(frame, carried);
        if keep {
            let mut frames = self.frames.write().unwrap_or_else(PoisonError::into_inner);
            *guess = Guess(frames.remember(hash, &parts, self.remembered));
        }
        parts
    }

    /// Whether an event ought to hold a number of herd's.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.own.is_some()
    }

    /// A reset that names no id.
    pub fn nothing(&self) -> Known {
        Known {
            event: self.intern(Event::default()),
            seq: None,
            rank: Rank::None,
        }
    }

    /// The place of a cursor; none where there is none. One that is no event's id becomes an entry of its own.
    pub fn place(&self, cursor: &Cursor) -> Option<EventIx> {
        match cursor {
            Cursor::None => None,
            Cursor::Id(known) => known.is_cursor().then_some(known.event),
            Cursor::Token(token) => Some(self.intern(Event {
                id: Some(token.text.clone()),
                epoch: token.epoch.clone(),
                ..Event::default()
            })),
        }
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

    /// Whether a client that holds the cursor `old` resumes from `new` from now on (rule 19 of judgement): the last one
    /// received counts, but where they are declared ordered only a greater one, within one epoch. An event without an id
    /// moves nothing; what isn't of the declared kind is taken as it comes.
    #[must_use]
    pub fn supersedes(&self, new: &Cursor, old: &Cursor) -> bool {
        match (new.rank(), old.rank()) {
            (Rank::None, _) => false,
            (_, Rank::None) => true,
            (Rank::Number(new), Rank::Number(old)) => new > old,
            _ if self.ids == IdKind::Opaque => true,
            _ => {
                let (new, old) = (self.text(new), self.text(old));
                let texts = new.id.as_deref().zip(old.id.as_deref());
                let order = texts
                    .filter(|_| new.epoch == old.epoch)
                    .and_then(|(new, old)| self.ids.compare(new, old));
                order.is_none_or(|order| order == Ordering::Greater)
            }
        }
    }

    /// A cursor's text and epoch.
    fn text(&self, cursor: &Cursor) -> Arc<Event> {
        match cursor {
            Cursor::None => Arc::default(),
            Cursor::Id(known) => self.get(known.event),
            Cursor::Token(token) => Arc::new(Event {
                id: Some(token.text.clone()),
                epoch: token.epoch.clone(),
                ..Event::default()
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decode(&self, frame: Frame<'_>, carried: Carried) -> (Parts, bool) {
        let decoded = self.profile.decode(frame, carried);
        let traced = self.traced(frame, &decoded);
        let mut events = self.lock();
        let mut parts: Vec<Part> = decoded
            .into_iter()
            .filter_map(|part| self.part(&mut events, part))
            .chain(traced)
            .collect();
        let keep = parts.len() <= MOST_PARTS;
        let parts = match parts.len() {
            1 => Parts::One(parts.remove(0)),
            _ => Parts::Many(parts.into()),
        };
        (parts, keep)
    }

    /// The numbers of herd's that stand in a frame and were not read there. Where every part of it was read and has its
    /// number, nothing is looked for.
    fn traced(&self, frame: Frame<'_>, decoded: &[Decoded]) -> Option<Part> {
        let own = self.own?;
        let holds = |n| own.holds(Seq(n));
        let read = |part: &Decoded| match part {
            Decoded::Event(event) => event.seq.is_some_and(holds),
            Decoded::Unread(_) => false,
            _ => true,
        };
        if !decoded.is_empty() && decoded.iter().all(read) {
            return None;
        }
        let mut numbers = trace::numbers(frame.bytes, &holds);
        for part in decoded {
            if let Decoded::Event(event) = part {
                numbers.retain(|n| event.seq != Some(*n));
            }
        }
        let numbers: Arc<[Seq]> = numbers.into_iter().map(Seq).collect();
        (!numbers.is_empty()).then_some(Part::Traced(numbers))
    }

    fn part(&self, events: &mut Events, decoded: Decoded) -> Option<Part> {
        match decoded {
            Decoded::Event(reading) => Some(self.event(events, reading)),
            Decoded::Cursor(text) => Some(Part::Cursor(text.map(|text| self.token(text, None)))),
            Decoded::Reset { id } => {
                let rank = self.rank(id.as_deref(), None);
                let event = events.intern(Event {
                    id,
                    ..Event::default()
                });
                Some(Part::Reset(Known {
                    event,
                    seq: None,
                    rank,
                }))
            }
            Decoded::CaughtUp => Some(Part::CaughtUp),
            Decoded::ResumeRefused(text) => Some(Part::Refused(text.into())),
            Decoded::Fatal(text) => Some(Part::Fatal(text.into())),
            Decoded::Ignored => None,
            Decoded::Unread(_) => Some(Part::Unread),
        }
    }

    fn event(&self, events: &mut Events, reading: Reading) -> Part {
        let (rank, token) = match reading.cursor {
            Moves::ToId => (
                self.rank(reading.id.as_deref(), reading.epoch.as_deref()),
                None,
            ),
            Moves::To(text) => (Rank::None, Some(self.token(text, reading.epoch.clone()))),
            Moves::Nowhere => (Rank::None, None),
        };
        let seq = reading.seq.map(Seq);
        let event = events.intern(Event {
            id: reading.id,
            seq,
            digest: reading.digest,
            order: reading.order,
            epoch: reading.epoch,
            redelivered: reading.redelivered,
        });
        Part::Event(Known { event, seq, rank }, token)
    }

    fn token(&self, text: Box<str>, epoch: Option<Box<str>>) -> Arc<Token> {
        let rank = self.rank(Some(&text), epoch.as_deref());
        Arc::new(Token { text, epoch, rank })
    }

    /// A number alone compares within one epoch only.
    fn rank(&self, text: Option<&str>, epoch: Option<&str>) -> Rank {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        match (text, self.ids) {
            (None, _) => Rank::None,
            (Some(text), IdKind::Integer) if epoch.is_none() && digits(text) => {
                text.parse().map_or(Rank::Text, Rank::Number)
            }
            _ => Rank::Text,
        }
    }
}

impl Cursor {
    fn rank(&self) -> Rank {
        match self {
            Self::None => Rank::None,
            Self::Id(known) => known.rank,
            Self::Token(token) => token.rank,
        }
    }
}

impl Known {
    /// Whether its id is a cursor.
    #[must_use]
    pub fn is_cursor(self) -> bool {
        self.rank != Rank::None
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
