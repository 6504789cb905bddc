//! A set of small numbers, one bit each: what a client holds. It knows nothing of what the numbers stand for.

use std::ops::Range;

/// A set of numbers below a fixed length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// The empty set of numbers below `len`.
    pub(super) fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    pub(super) fn has(&self, x: u32) -> bool {
        self.words[x as usize / 64] >> (x % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, x: u32) {
        self.words[x as usize / 64] |= 1 << (x % 64);
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// How many numbers of a range are in the set.
    pub(super) fn count(&self, range: Range<u32>) -> u64 {
        self.masked(range)
            .map(|(_, mask, word)| u64::from((word & mask).count_ones()))
            .sum()
    }

    /// The numbers of a range that are not in the set, ascending.
    pub(super) fn missing(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.masked(range)
            .flat_map(|(i, mask, word)| Ones(!word & mask).map(move |bit| i as u32 * 64 + bit))
    }

    /// Each word that the range touches: its index, which of its bits are in the range, and the word.
    fn masked(&self, range: Range<u32>) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        let (start, end) = (range.start as usize, (range.end as usize).min(self.len));
        let words = if start < end {
            start / 64..end.div_ceil(64)
        } else {
            0..0
        };
        words.map(move |i| {
            let low = start.saturating_sub(i * 64);
            let high = (end - i * 64).min(64);
            let mask = (u64::MAX >> (64 - high)) & (u64::MAX << low);
            (i, mask, self.words[i])
        })
    }
}

/// The places of a word's ones, ascending.
struct Ones(u64);

impl Iterator for Ones {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(
            len in 1u32..200,
            numbers in proptest::collection::vec(0u32..200, 0..80),
            a in 0u32..220,
            b in 0u32..220,
        ) {
            let mut bits = Bits::new(len as usize);
            let mut set = BTreeSet::new();
            for x in numbers.into_iter().filter(|x| *x < len) {
                bits.add(x);
                set.insert(x);
            }
            let range = a.min(b)..a.max(b);
            let inside: Vec<u32> = range.clone().filter(|x| *x < len).collect();
            prop_assert_eq!(
                bits.count(range.clone()),
                inside.iter().filter(|x| set.contains(x)).count() as u64
            );
            prop_assert_eq!(
                bits.missing(range).collect::<Vec<_>>(),
                inside.into_iter().filter(|x| !set.contains(x)).collect::<Vec<_>>()
            );
        }
    }
}
