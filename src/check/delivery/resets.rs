//! Rule 17: what a full reload covers. It knows the publisher's answers and the items, no client's state.
//!
//! A reset covers everything up to its id where the publisher was answered with that id, in the server's own order:
//! declared order keys (often the ids), else positions, else answers. An id that was answered for several publications means the last one
//! answered before the frame. Ids and positions are comparable only within one epoch: across epochs the answers decide.
//! Without such an id it covers what had been sent when the frame arrived: what was answered
//! before the dial is in the state that the client reloads, and what was in flight may come or not. Later ones are
//! expected.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use super::bits::Bits;
use super::catalogue::{Catalogue, Item};
use crate::history::{Elapsed, EventIx, History, Publication, Seq};

/// Answers what a reset frame covers; thousands of clients get the same frame.
#[derive(Debug)]
pub(super) struct Covers<'a> {
    history: &'a History,
    answered: HashMap<&'a str, Vec<&'a Publication>>,
    /// The epoch that clients got each number under, where there was one.
    epochs: HashMap<Seq, &'a str>,
    /// What must rise is something else than the id, so ids are not comparable.
    keyed: bool,
    known: HashMap<EventIx, Bits>,
}

impl<'a> Covers<'a> {
    pub(super) fn new(history: &'a History, catalogue: &Catalogue<'a>) -> Self {
        let mut answered: HashMap<&str, Vec<&Publication>> = HashMap::new();
        for publication in history.publications.values() {
            if let Some(id) = publication.id.as_deref() {
                answered.entry(id).or_default().push(publication);
            }
        }
        let items = catalogue.items.iter();
        Self {
            history,
            answered,
            keyed: history.events.iter().any(|event| event.order.is_some()),
            epochs: items.filter_map(|i| Some((i.seq?, i.epoch?))).collect(),
            known: HashMap::new(),
        }
    }

    /// The items that a frame with this event's id covers, arriving at an instant.
    pub(super) fn of(&mut self, catalogue: &Catalogue<'_>, at: Elapsed, event: EventIx) -> Bits {
        if let Some(known) = self.known.get(&event) {
            return known.clone();
        }
        let (epoch, id) = self.history.event(event).identity();
        // The publisher isn't told epochs; what clients got under another one is another id.
        let same = |p: &&&Publication| {
            let own = self.epochs.get(&p.seq).copied();
            epoch.is_none() || own.is_none() || own == epoch
        };
        let answered = id
            .and_then(|id| self.answered.get(id))
            .into_iter()
            .flatten();
        let candidates: Vec<&Publication> = answered.filter(same).copied().collect();
        let Some(id) = id.filter(|_| !candidates.is_empty()) else {
            return sent_until(catalogue, at);
        };
        let named = candidates
            .iter()
            .max_by_key(|p| (p.answered.is_some_and(|t| t <= at), p.answered));
        let (ids, keyed) = (self.history.header.terms.ids, self.keyed);
        let key = match keyed {
            true => self.history.event(event).order.as_deref(),
            false => Some(id),
        };
        let bits = select(catalogue, |item| {
            let same_epoch = item.epoch == epoch;
            named.is_some_and(|named| match same_epoch {
                true => {
                    let own = if keyed { item.order } else { item.id };
                    let by_key = own.zip(key).and_then(|(own, key)| ids.compare(own, key));
                    up_to(by_key, item, named, at)
                }
                false => answered_by(item, named, at),
            })
        });
        if candidates.len() == 1 {
            self.known.insert(event, bits.clone());
        }
        bits
    }
}

/// The items that had been sent by an instant: what a client that begins anew then can't be owed.
pub(super) fn sent_until(catalogue: &Catalogue<'_>, at: Elapsed) -> Bits {
    select(catalogue, |item| sent_by(item, at))
}

fn select(catalogue: &Catalogue<'_>, covered: impl Fn(&Item<'_>) -> bool) -> Bits {
    let mut bits = Bits::new(catalogue.items.len());
    for (x, item) in catalogue.items.iter().enumerate() {
        if covered(item) {
            bits.add(x as u32);
        }
    }
    bits
}

/// How long an event of others may have been on its way to the first client that showed it.
const UNSEEN: Duration = Duration::from_secs(1);

/// Where others publish an item has no instant of sending: it was there a moment before it was first seen, and a server
/// that names the newest one in its reset may be faster with that frame than with the event to anybody else.
fn sent_by(item: &Item<'_>, at: Elapsed) -> bool {
    if item.seq.is_none() {
        item.known <= at + UNSEEN
    } else {
        item.start <= at
    }
}

fn up_to(by_key: Option<Ordering>, item: &Item<'_>, named: &Publication, at: Elapsed) -> bool {
    let by_position = item.position.zip(named.position);
    match (by_key, by_position) {
        (Some(by_key), _) => by_key.is_le(),
        (None, Some((own, its))) => own <= its,
        (None, None) => answered_by(item, named, at),
    }
}

/// Of two that overlap nobody can say whether the state holds both.
fn answered_by(item: &Item<'_>, named: &Publication, at: Elapsed) -> bool {
    item.start <= named.answered.unwrap_or(at)
}
