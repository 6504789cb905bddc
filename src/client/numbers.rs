//! A set of herd's numbers as ranges: a client that missed nothing costs one range, however long the run.

use std::ops::RangeInclusive;

/// The set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Disjoint, ascending, never touching.
    ranges: Vec<(u64, u64)>,
}

impl Numbers {
    /// Adds a number; the one after the greatest costs a compare.
    pub fn insert(&mut self, n: u64) {
        match self.ranges.last_mut() {
            Some((_, last)) if n > 0 && n - 1 == *last => *last = n,
            Some((first, last)) if (*first..=*last).contains(&n) => {}
            _ => self.insert_anywhere(n),
        }
    }

    fn insert_anywhere(&mut self, n: u64) {
        let at = self.ranges.partition_point(|(_, last)| *last < n);
        if self.ranges.get(at).is_some_and(|(first, _)| *first <= n) {
            return;
        }
        let joins_before = at > 0 && self.ranges[at - 1].1 + 1 == n;
        let joins_after = self
            .ranges
            .get(at)
            .is_some_and(|(first, _)| n + 1 == *first);
        match (joins_before, joins_after) {
            (true, true) => self.ranges[at - 1].1 = self.ranges.remove(at).1,
            (true, false) => self.ranges[at - 1].1 = n,
            (false, true) => self.ranges[at].0 = n,
            (false, false) => self.ranges.insert(at, (n, n)),
        }
    }

    /// Whether a number is in it.
    #[must_use]
    pub fn contains(&self, n: u64) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < n);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= n)
    }

    /// The numbers of a range that are not in it, as ranges in ascending order.
    #[must_use]
    pub fn missing(&self, within: RangeInclusive<u64>) -> Vec<RangeInclusive<u64>> {
        let (mut from, last) = within.into_inner();
        let mut gaps = Vec::new();
        let start = self.ranges.partition_point(|(_, end)| *end < from);
        for &(first, end) in &self.ranges[start..] {
            if first > last {
                break;
            }
            if from < first {
                gaps.push(from..=first - 1);
            }
            from = end + 1;
        }
        if from <= last {
            gaps.push(from..=last);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set(numbers in proptest::collection::vec(1u64..40, 0..60), from in 1u64..40, length in 0u64..20) {
            let mut set = Numbers::default();
            let mut model = BTreeSet::new();
            for n in numbers {
                set.insert(n);
                model.insert(n);
                let apart = set.ranges.windows(2).all(|w| w[0].1 + 1 < w[1].0);
                prop_assert!(apart && set.ranges.iter().all(|(a, b)| a <= b));
            }
            prop_assert!((0..50).all(|n| set.contains(n) == model.contains(&n)));
            let missing: Vec<_> = set.missing(from..=from + length).into_iter().flatten().collect();
            let expected: Vec<_> = (from..=from + length).filter(|n| !model.contains(n)).collect();
            prop_assert_eq!(missing, expected);
        }
    }

    #[test]
    fn an_empty_range_misses_nothing() {
        assert!(
            Numbers::default()
                .missing(RangeInclusive::new(5, 4))
                .is_empty()
        );
    }
}
