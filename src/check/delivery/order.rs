//! Rule 19: which of two items comes later in the server's own order.
//!
//! Where ids are declared ordered, the order keys (often the ids) are that order; else the positions that the server
//! answered to the publisher. Both are comparable only within one epoch, and a client's order begins anew with each
//! epoch. What is marked as sent again comes late by nature: where the protocol allows that, it has no place in the order.
//! Where there is neither key nor position, two things are certain: what was stored before the other was sent comes first, and all
//! clients must agree on the rest. A publication whose earlier try got no answer may be stored late or twice, so by
//! position and by agreement nothing is said of it; ids need no such exception, because each copy has its own.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::catalogue::{Catalogue, Meaning};
use super::newcomer;
use crate::check::{Offender, Wrong};
use crate::history::{Client, Duplicates, Elapsed, Entry, EventIx, History, IdKind};

/// How the server's order is known.
#[derive(Debug)]
pub(super) struct Order<'a> {
    history: &'a History,
    /// By event number: its epoch's number, 0 = none; empty where there are no epochs.
    epochs: Vec<u32>,
    /// By event number: its rank, from 1; 0 = not judged. None = known only by what was stored before what was sent.
    ranks: Option<Vec<u32>>,
}

impl<'a> Order<'a> {
    pub(super) fn new(history: &'a History, catalogue: &Catalogue<'_>) -> Self {
        let ids = history.header.terms.ids;
        let mut order = Self {
            history,
            epochs: epochs(history),
            ranks: None,
        };
        let by_key: Vec<(EventIx, &str)> = items(catalogue)
            .filter_map(|(ix, _)| Some((ix, history.event(ix).order_key()?)))
            .filter(|(_, key)| ids.compare(key, key).is_some())
            .collect();
        let by_position: Vec<(EventIx, u64)> = items(catalogue)
            .filter_map(|(ix, x)| Some((ix, catalogue.item(x).position?)))
            .collect();
        if ids != IdKind::Opaque && !by_key.is_empty() {
            let compare = |a: &&str, b: &&str| ids.compare(a, b);
            order.rank(by_key, |a, b| compare(a, b).unwrap_or(Ordering::Equal));
        } else if !by_position.is_empty() {
            order.rank(by_position, Ord::cmp);
        }
        order
    }

    /// Whether each copy of an item has a place of its own.
    pub(super) fn is_ranked(&self) -> bool {
        self.ranks.is_some()
    }

    fn epoch(&self, event: EventIx) -> u32 {
        self.epochs.get(event.0 as usize).copied().unwrap_or(0)
    }

    /// Whether a receipt has a place in the order at all.
    fn places(&self, event: EventIx) -> bool {
        let marked = self.history.header.terms.duplicates == Duplicates::Marked;
        !(marked && self.history.event(event).redelivered)
    }

    fn rank<K>(&mut self, mut keys: Vec<(EventIx, K)>, compare: impl Fn(&K, &K) -> Ordering) {
        let epoch = |ix| self.epoch(ix);
        keys.sort_by(|a, b| {
            epoch(a.0)
                .cmp(&epoch(b.0))
                .then_with(|| compare(&a.1, &b.1))
        });
        let mut ranks = vec![0; self.history.events.len()];
        let mut rank = 0;
        for (i, (ix, key)) in keys.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &keys[i]);
            let same =
                |(other, k): &(EventIx, K)| epoch(*other) == epoch(*ix) && !compare(k, key).is_lt();
            rank += u32::from(!before.is_some_and(same));
            ranks[ix.0 as usize] = rank;
        }
        self.ranks = Some(ranks);
    }
}

fn epochs(history: &History) -> Vec<u32> {
    if history.events.iter().all(|event| event.epoch.is_none()) {
        return Vec::new();
    }
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |epoch| {
        let next = numbers.len() as u32 + 1;
        *numbers.entry(epoch).or_insert(next)
    };
    let events = history.events.iter();
    events
        .map(|event| event.epoch.as_deref().map_or(0, &mut number))
        .collect()
}

fn items<'a>(catalogue: &'a Catalogue<'_>) -> impl Iterator<Item = (EventIx, u32)> + 'a {
    let readings = catalogue.readings.iter().enumerate();
    readings.filter_map(|(place, reading)| match reading.meaning {
        Meaning::Item(x) => Some((EventIx(place as u32), x)),
        _ => None,
    })
}

/// What one client has received since its order last began.
#[derive(Debug, Default)]
pub(super) struct Progress {
    epoch: u32,
    rank: u32,
    start: Elapsed,
    /// How far it was in the epochs before this one, should the server go back to them.
    past: HashMap<u32, u32>,
}

impl Progress {
    /// Takes a receipt and says whether one that comes later in the server's order was there before it.
    pub(super) fn is_late(
        &mut self,
        order: &Order<'_>,
        catalogue: &Catalogue<'_>,
        event: EventIx,
        x: u32,
    ) -> bool {
        if !order.places(event) {
            return false;
        }
        self.enter(order.epoch(event));
        match &order.ranks {
            Some(ranks) => {
                let rank = ranks[event.0 as usize];
                let late = rank != 0 && rank < self.rank;
                self.rank = self.rank.max(rank);
                late
            }
            None => {
                let item = catalogue.item(x);
                let late = item.stored.is_some_and(|stored| stored < self.start);
                self.start = self.start.max(item.start);
                late
            }
        }
    }

    fn enter(&mut self, epoch: u32) {
        if epoch != self.epoch {
            self.past.insert(self.epoch, self.rank);
            self.rank = self.past.get(&epoch).copied().unwrap_or(0);
            self.start = Elapsed::ZERO;
            self.epoch = epoch;
        }
    }
}

/// Of each item this many later ones are compared with it between clients. Neighbours in a server's order lie within a
/// few round trips of each other; comparing all with all would not be linear.
const REACH: usize = 8;

/// Items whose order only the clients can tell, and how many of them got the pair this way and that way round.
#[derive(Debug)]
struct Pair {
    a: u32,
    b: u32,
    forth: u32,
    back: u32,
}

/// Receipts that arrived in another order than at most clients; with a tie, than the items became known.
#[derive(Debug, Default)]
pub(super) struct Disagreement {
    pub(super) reordered: u64,
    pub(super) offenders: Vec<Offender>,
}

impl Disagreement {
    /// Compares the clients; at most `limit` offenders are named.
    pub(super) fn new(
        history: &History,
        catalogue: &Catalogue<'_>,
        order: &Order<'_>,
        limit: usize,
    ) -> Self {
        let mut found = Self::default();
        if order.is_ranked() {
            return found;
        }
        let mut pairs = overlapping(catalogue);
        if pairs.is_empty() {
            return found;
        }
        for client in &history.clients {
            let arrivals = Arrivals::new(order, catalogue, client);
            for pair in &mut pairs {
                match arrivals.compare(pair) {
                    Some(Ordering::Less) => pair.forth += 1,
                    Some(_) => pair.back += 1,
                    None => {}
                }
            }
        }
        pairs.retain(|pair| pair.forth > 0 && pair.back > 0);
        if !pairs.is_empty() {
            for client in &history.clients {
                found.add(order, catalogue, client, &pairs, limit);
            }
        }
        found
    }

    fn add(
        &mut self,
        order: &Order<'_>,
        catalogue: &Catalogue<'_>,
        client: &Client,
        pairs: &[Pair],
        limit: usize,
    ) {
        let arrivals = Arrivals::new(order, catalogue, client);
        let mut counted = HashSet::new();
        for pair in pairs {
            let forth = pair.forth >= pair.back;
            let late = match arrivals.compare(pair) {
                Some(Ordering::Less) if !forth => pair.b,
                Some(Ordering::Greater) if forth => pair.a,
                _ => continue,
            };
            let arrival = &arrivals.0[late as usize];
            if !arrival.counted && counted.insert(late) {
                self.reordered += 1;
                if self.offenders.len() < limit {
                    let item = catalogue.item(late);
                    self.offenders.push(Offender {
                        wrong: Wrong::Reordered,
                        client: client.id,
                        seq: item.seq,
                        id: item.id.map(Into::into),
                        at: Some(arrival.at),
                    });
                }
            }
        }
    }
}

/// Pairs of which neither certainly comes first.
fn overlapping(catalogue: &Catalogue<'_>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (a, item) in catalogue.items.iter().enumerate() {
        let later = catalogue.items.iter().enumerate().skip(a + 1).take(REACH);
        for (b, other) in later {
            let certain = item.stored.is_some_and(|t| t < other.start)
                || other.stored.is_some_and(|t| t < item.start);
            if !certain && item.copies == 1 && other.copies == 1 {
                pairs.push(Pair {
                    a: a as u32,
                    b: b as u32,
                    forth: 0,
                    back: 0,
                });
            }
        }
    }
    pairs
}

/// When, and as which, each item came to one client.
struct Arrivals(Vec<Arrival>);

#[derive(Clone, Default)]
struct Arrival {
    /// After how many resets and beginnings of an epoch; from 1, 0 = not at all.
    part: u32,
    number: u32,
    at: Elapsed,
    /// It already counts as reordered by what was stored before what was sent.
    counted: bool,
}

impl Arrivals {
    fn new(order: &Order<'_>, catalogue: &Catalogue<'_>, client: &Client) -> Self {
        let mut arrivals = vec![Arrival::default(); catalogue.items.len()];
        let (mut part, mut number) = (1, 0);
        let (mut epoch, mut progress) = (0, Progress::default());
        for entry in client.entries(order.history) {
            let receipt = match entry {
                Entry::Session { session, .. } if newcomer::is_new(client, session) => {
                    part += 1;
                    progress = Progress::default();
                    continue;
                }
                Entry::Session { .. } => continue,
                Entry::Reset { .. } => {
                    part += 1;
                    progress = Progress::default();
                    continue;
                }
                Entry::Receipt(receipt) => receipt,
            };
            let Meaning::Item(x) = catalogue.readings[receipt.event.0 as usize].meaning else {
                continue;
            };
            if !order.places(receipt.event) {
                continue;
            }
            if order.epoch(receipt.event) != epoch {
                epoch = order.epoch(receipt.event);
                part += 1;
            }
            let arrival = &mut arrivals[x as usize];
            if arrival.part != part {
                number += 1;
                *arrival = Arrival {
                    part,
                    number,
                    at: receipt.at,
                    counted: progress.is_late(order, catalogue, receipt.event, x),
                };
            }
        }
        Self(arrivals)
    }

    fn compare(&self, pair: &Pair) -> Option<Ordering> {
        let (a, b) = (&self.0[pair.a as usize], &self.0[pair.b as usize]);
        (a.part != 0 && a.part == b.part).then(|| a.number.cmp(&b.number))
    }
}
