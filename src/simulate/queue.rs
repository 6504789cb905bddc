//! What happens next: by instant, first in first out within one. It knows nothing of what it holds.
//!
//! A calendar queue (R. Brown, "Calendar queues", 1988) with buckets of a millisecond: millions of steps cost a push and a
//! sort of a few hundred neighbours each, where a heap would miss the cache at every level. Only the page of a few seconds
//! that is being worked on is spread over buckets; what lies behind it waits in order of its arrival.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::vec::IntoIter;

use crate::history::Elapsed;

/// Microseconds in a bucket.
const BUCKET: u64 = 1_000;
/// Buckets in a page.
const BUCKETS: u64 = 1 << 12;

/// Steps by instant.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// The bucket that is being emptied, in order.
    now: IntoIter<(Elapsed, T)>,
    /// What was pushed for that bucket, or for one before it, since it was begun.
    late: BinaryHeap<Entry<T>>,
    pushed: u64,
    /// The number of that bucket, over all pages.
    bucket: u64,
    /// The rest of its page, in order of arrival.
    page: Vec<Vec<(Elapsed, T)>>,
    /// How many steps those buckets hold.
    paged: usize,
    /// The pages behind it, by their numbers.
    later: BTreeMap<u64, Vec<(Elapsed, T)>>,
}

#[derive(Debug)]
struct Entry<T> {
    at: Elapsed,
    /// Makes the order total, so that the same pushes give the same run.
    number: u64,
    step: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed: the heap gives the greatest first, and the earliest is wanted.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            now: Vec::new().into_iter(),
            late: BinaryHeap::new(),
            pushed: 0,
            bucket: 0,
            page: (0..BUCKETS).map(|_| Vec::new()).collect(),
            paged: 0,
            later: BTreeMap::new(),
        }
    }

    pub(super) fn push(&mut self, at: Elapsed, step: T) {
        let bucket = at.micros() / BUCKET;
        if bucket <= self.bucket {
            let number = self.pushed;
            self.pushed += 1;
            self.late.push(Entry { at, number, step });
        } else if bucket / BUCKETS == self.bucket / BUCKETS {
            self.page[(bucket % BUCKETS) as usize].push((at, step));
            self.paged += 1;
        } else {
            let page = self.later.entry(bucket / BUCKETS).or_default();
            page.push((at, step));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(Elapsed, T)> {
        loop {
            let now = self.now.as_slice().first().map(|(at, _)| *at);
            let late = self.late.peek().map(|entry| entry.at);
            match (now, late) {
                // What was pushed since the bucket was begun comes behind its equals.
                (Some(now), late) if late.is_none_or(|late| now <= late) => return self.now.next(),
                (_, Some(_)) => return self.late.pop().map(|entry| (entry.at, entry.step)),
                _ if self.turn() => {}
                _ => return None,
            }
        }
    }

    /// Begins the next bucket that holds anything; false where there is none.
    fn turn(&mut self) -> bool {
        if self.paged == 0 {
            let Some((page, steps)) = self.later.pop_first() else {
                return false;
            };
            self.bucket = page * BUCKETS;
            self.paged = steps.len();
            for (at, step) in steps {
                let bucket = at.micros() / BUCKET;
                self.page[(bucket % BUCKETS) as usize].push((at, step));
            }
        }
        let rest = (self.bucket % BUCKETS) as usize..;
        let Some(further) = self.page[rest].iter().position(|b| !b.is_empty()) else {
            return false;
        };
        self.bucket += further as u64;
        let mut steps = std::mem::take(&mut self.page[(self.bucket % BUCKETS) as usize]);
        self.paged -= steps.len();
        // Stable: within an instant they stay in the order in which they were pushed.
        steps.sort_by_key(|(at, _)| *at);
        self.now = steps.into_iter();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_gives_the_earliest_and_of_equals_the_first_pushed() {
        let mut queue = Queue::new();
        for (at, step) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(Elapsed(at), step);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, s)| s).collect();
        assert_eq!(order, "bdeac");
    }

    /// What to do: push so far from now (that may be in the past), or pop.
    fn deed() -> impl Strategy<Value = Option<i64>> {
        prop_oneof![
            2 => Just(None),
            1 => (-2_000i64..3_000).prop_map(Some),
            1 => (0i64..4).prop_map(|n| Some(n * 1_000)),
            1 => (0i64..60_000_000).prop_map(Some),
        ]
    }

    proptest! {
        /// Pushed and popped in any order, it gives what a plain list gives that is searched for the earliest each time.
        #[test]
        fn it_agrees_with_a_list(deeds in proptest::collection::vec(deed(), 0..300)) {
            let mut queue = Queue::new();
            let mut list: Vec<(Elapsed, usize)> = Vec::new();
            let mut now = 0;
            let pops = deeds.len();
            for (number, deed) in deeds.into_iter().chain(std::iter::repeat_n(None, pops)).enumerate() {
                if let Some(after) = deed {
                    let at = Elapsed(u64::try_from(now + after).unwrap_or(0));
                    queue.push(at, number);
                    list.push((at, number));
                    continue;
                }
                let earliest = list.iter().copied().min();
                list.retain(|held| Some(*held) != earliest);
                prop_assert_eq!(queue.pop(), earliest);
                now = earliest.map_or(now, |(at, _)| at.micros() as i64);
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
