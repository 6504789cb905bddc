//! Rule 19: which of two items comes later in the server's own order.
//!
//! Where ids are declared ordered, they are that order; else the positions that the server answered to the publisher.
//! Where there is neither, two things are certain: what was stored before the other was sent comes first, and all
//! clients must agree on the rest. A publication whose earlier try got no answer may be stored late or twice, so by
//! position and by agreement nothing is said of it; ids need no such exception, because each copy has its own.

use std::collections::HashSet;

use super::catalogue::{Catalogue, Meaning};
use crate::check::{Offender, Wrong};
use crate::history::{Client, Elapsed, Entry, EventIx, History, IdKind};

/// How the server's order is known.
#[derive(Debug)]
pub(super) enum Order {
    /// By event number: its rank, from 1; 0 = not judged.
    Ranks(Vec<u32>),
    /// By what was stored before what was sent.
    Intervals,
}

impl Order {
    pub(super) fn new(history: &History, catalogue: &Catalogue<'_>) -> Self {
        let ids = history.header.terms.ids;
        let by_id: Vec<(EventIx, &str)> = items(catalogue)
            .filter_map(|(ix, _)| Some((ix, history.event(ix).id.as_deref()?)))
            .filter(|(_, id)| ids.compare(id, id).is_some())
            .collect();
        if ids != IdKind::Opaque && !by_id.is_empty() {
            return Self::Ranks(ranks(history, by_id, |a, b| {
                ids.compare(a, b).unwrap_or(std::cmp::Ordering::Equal)
            }));
        }
        let by_position: Vec<(EventIx, u64)> = items(catalogue)
            .filter_map(|(ix, x)| Some((ix, catalogue.item(x).position?)))
            .collect();
        if by_position.is_empty() {
            Self::Intervals
        } else {
            Self::Ranks(ranks(history, by_position, Ord::cmp))
        }
    }
}

fn items<'a>(catalogue: &'a Catalogue<'_>) -> impl Iterator<Item = (EventIx, u32)> + 'a {
    let readings = catalogue.readings.iter().enumerate();
    readings.filter_map(|(place, reading)| match reading.meaning {
        Meaning::Item(x) => Some((EventIx(place as u32), x)),
        _ => None,
    })
}

fn ranks<K>(
    history: &History,
    mut keys: Vec<(EventIx, K)>,
    compare: impl Fn(&K, &K) -> std::cmp::Ordering,
) -> Vec<u32> {
    keys.sort_by(|a, b| compare(&a.1, &b.1));
    let mut ranks = vec![0; history.events.len()];
    let mut rank = 0;
    for (i, (ix, key)) in keys.iter().enumerate() {
        if i == 0 || compare(&keys[i - 1].1, key).is_lt() {
            rank += 1;
        }
        ranks[ix.0 as usize] = rank;
    }
    ranks
}

/// What one client has received since its order last began.
#[derive(Debug, Default)]
pub(super) struct Progress {
    rank: u32,
    start: Elapsed,
}

impl Progress {
    /// Takes a receipt and says whether one that comes later in the server's order was there before it.
    pub(super) fn is_late(
        &mut self,
        order: &Order,
        catalogue: &Catalogue<'_>,
        event: EventIx,
        x: u32,
    ) -> bool {
        match order {
            Order::Ranks(ranks) => {
                let rank = ranks[event.0 as usize];
                let late = rank != 0 && rank < self.rank;
                self.rank = self.rank.max(rank);
                late
            }
            Order::Intervals => {
                let item = catalogue.item(x);
                let late = item.stored.is_some_and(|stored| stored < self.start);
                self.start = self.start.max(item.start);
                late
            }
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
        order: &Order,
        limit: usize,
    ) -> Self {
        let mut found = Self::default();
        if matches!(order, Order::Ranks(_)) {
            return found;
        }
        let mut pairs = overlapping(catalogue);
        if pairs.is_empty() {
            return found;
        }
        for client in &history.clients {
            let arrivals = Arrivals::new(history, catalogue, client);
            for pair in &mut pairs {
                match arrivals.compare(pair) {
                    Some(std::cmp::Ordering::Less) => pair.forth += 1,
                    Some(_) => pair.back += 1,
                    None => {}
                }
            }
        }
        pairs.retain(|pair| pair.forth > 0 && pair.back > 0);
        if !pairs.is_empty() {
            for client in &history.clients {
                found.add(history, catalogue, client, &pairs, limit);
            }
        }
        found
    }

    fn add(
        &mut self,
        history: &History,
        catalogue: &Catalogue<'_>,
        client: &Client,
        pairs: &[Pair],
        limit: usize,
    ) {
        let arrivals = Arrivals::new(history, catalogue, client);
        let mut counted = HashSet::new();
        for pair in pairs {
            let forth = pair.forth >= pair.back;
            let late = match arrivals.compare(pair) {
                Some(std::cmp::Ordering::Less) if !forth => pair.b,
                Some(std::cmp::Ordering::Greater) if forth => pair.a,
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
    /// After how many resets; from 1, 0 = not at all.
    part: u32,
    number: u32,
    at: Elapsed,
    /// It already counts as reordered by what was stored before what was sent.
    counted: bool,
}

impl Arrivals {
    fn new(history: &History, catalogue: &Catalogue<'_>, client: &Client) -> Self {
        let mut arrivals = vec![Arrival::default(); catalogue.items.len()];
        let (mut part, mut number) = (1, 0);
        let mut progress = Progress::default();
        for entry in client.entries(history) {
            let receipt = match entry {
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
            let arrival = &mut arrivals[x as usize];
            if arrival.part != part {
                number += 1;
                *arrival = Arrival {
                    part,
                    number,
                    at: receipt.at,
                    counted: progress.is_late(&Order::Intervals, catalogue, receipt.event, x),
                };
            }
        }
        Self(arrivals)
    }

    fn compare(&self, pair: &Pair) -> Option<std::cmp::Ordering> {
        let (a, b) = (&self.0[pair.a as usize], &self.0[pair.b as usize]);
        (a.part != 0 && a.part == b.part).then(|| a.number.cmp(&b.number))
    }
}
