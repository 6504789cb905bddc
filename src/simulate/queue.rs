//! What happens next: a priority queue by instant, first in first out within one. It knows nothing of what it holds.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::history::Elapsed;

/// Steps by instant.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Entry<T>>,
    pushed: u64,
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
            heap: BinaryHeap::new(),
            pushed: 0,
        }
    }

    pub(super) fn push(&mut self, at: Elapsed, step: T) {
        self.heap.push(Entry {
            at,
            number: self.pushed,
            step,
        });
        self.pushed += 1;
    }

    pub(super) fn pop(&mut self) -> Option<(Elapsed, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_the_earliest_and_of_equals_the_first_pushed() {
        let mut queue = Queue::new();
        for (at, step) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(Elapsed(at), step);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, s)| s).collect();
        assert_eq!(order, "bdeac");
    }
}
