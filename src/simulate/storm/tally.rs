//! A storm in numbers, as it goes by: nothing of one client is kept.
//!
//! Instants are counted in cells of a millisecond, so that ten million clients take no more memory than a thousand;
//! quantiles and peaks are true to that millisecond, first and last to the microsecond.

use std::time::Duration;

use super::{CUT, Course, Storm, Told, TooMany};
use crate::history::Elapsed;

/// What is asked of a storm as a whole; instants count from the first cut.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    back: Cells,
    dials: Cells,
}

impl Tally {
    /// Follows a storm and counts.
    ///
    /// # Errors
    /// [`TooMany`] as [`super::run`].
    pub fn of(storm: &Storm, most: u64) -> Result<(Self, Course), TooMany> {
        let mut tally = Self::default();
        let course = super::run(storm, most, &mut |told| tally.add(&told))?;
        Ok((tally, course))
    }

    /// Counts what happened.
    pub fn add(&mut self, told: &Told) {
        match told {
            Told::Dialled(dialled) => {
                self.dials.add(dialled.due.since(CUT));
            }
            Told::Stayed { since, .. } => self.back.add(since.since(CUT)),
            Told::Lost { .. }
            | Told::Quit { .. }
            | Told::Cut { .. }
            | Told::Fell { .. }
            | Told::Settled { .. } => {}
        }
    }

    /// When clients were back for good.
    #[must_use]
    pub fn back(&self) -> &Cells {
        &self.back
    }

    /// When clients dialled.
    #[must_use]
    pub fn dials(&self) -> &Cells {
        &self.dials
    }
}

/// Cells in a second.
const SECOND: usize = 1_000;

/// Instants, counted by the millisecond.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    seconds: Vec<Option<Box<[u32; SECOND]>>>,
    count: u64,
    first: Option<Duration>,
    last: Option<Duration>,
}

impl Cells {
    /// Counts an instant.
    pub fn add(&mut self, at: Duration) {
        let second = at.as_secs() as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, None);
        }
        let cells = self.seconds[second].get_or_insert_with(|| Box::new([0; SECOND]));
        cells[at.subsec_millis() as usize] += 1;
        self.count += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first one; none of nothing.
    #[must_use]
    pub fn first(&self) -> Option<Duration> {
        self.first
    }

    /// The last one; none of nothing.
    #[must_use]
    pub fn last(&self) -> Option<Duration> {
        self.last
    }

    /// A quantile, 0 to 1, by nearest rank; none of nothing.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut sum = 0;
        let at = self.cells().find_map(|(cell, n)| {
            sum += u64::from(n);
            (sum >= rank).then_some(cell)
        })?;
        let at = Duration::from_millis(at as u64);
        // A cell is known by its beginning, which may lie before the first of all.
        Some(self.first.map_or(at, |first| at.max(first)))
    }

    /// The most instants in any window of so many whole milliseconds, its end excluded.
    #[must_use]
    pub fn peak(&self, window: Duration) -> u64 {
        let width = window.as_millis() as usize;
        let (mut held, mut most) = (0u64, 0);
        let mut leaving = self.cells().peekable();
        for (cell, n) in self.cells() {
            while let Some((_, gone)) = leaving.next_if(|(old, _)| old + width <= cell) {
                held -= u64::from(gone);
            }
            held += u64::from(n);
            most = most.max(held);
        }
        most
    }

    /// The cells that hold anything, in order.
    fn cells(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let seconds = self.seconds.iter().enumerate();
        seconds.flat_map(|(second, cells)| {
            let cells = cells.iter().flat_map(|cells| cells.iter().copied());
            cells
                .enumerate()
                .filter(|(_, n)| *n > 0)
                .map(move |(cell, n)| (second * SECOND + cell, n))
        })
    }
}

/// An instant as a duration since the first cut.
#[must_use]
pub fn since_cut(at: Elapsed) -> Duration {
    at.since(CUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted list of the same instants.
        #[test]
        fn cells_agree_with_a_list(
            mut at in proptest::collection::vec(0u64..5_000, 1..200),
            width in 1u64..2_000,
            q in 0.01f64..1.0,
        ) {
            let mut cells = Cells::default();
            for ms in &at {
                cells.add(Duration::from_millis(*ms));
            }
            at.sort_unstable();
            let within = |from: &u64| at.iter().filter(|ms| (*from..from + width).contains(ms)).count();
            let most = at.iter().map(within).max().unwrap_or(0);
            prop_assert_eq!(cells.peak(Duration::from_millis(width)), most as u64);
            let rank = (at.len() as f64 * q).ceil() as usize;
            prop_assert_eq!(cells.quantile(q), Some(Duration::from_millis(at[rank - 1])));
            prop_assert_eq!(cells.first(), Some(Duration::from_millis(at[0])));
            prop_assert_eq!(cells.last(), at.last().map(|ms| Duration::from_millis(*ms)));
            prop_assert_eq!(cells.count(), at.len() as u64);
        }
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let cells = Cells::default();
        assert_eq!(
            (cells.first(), cells.last(), cells.quantile(0.5)),
            (None, None, None)
        );
        assert_eq!(cells.peak(Duration::from_secs(1)), 0);
    }
}
