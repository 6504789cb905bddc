//! Falls that follow one another: servers that are restarted in turn, or one that falls again and again. It decides what
//! falls when; who stops and starts it is the trigger's knowledge.

use std::time::Duration;

use crate::history::Elapsed;
use crate::target::Restart;

/// What is still to fall in one outage.
#[derive(Debug)]
pub(super) struct Agenda {
    pub(super) restart: Restart,
    /// From one's readiness to the next fall.
    pause: Duration,
    /// What falls, in order: a server by its place, or all; at least one.
    falls: Vec<Option<u16>>,
    begun: usize,
    /// When the next one is due.
    next: Option<Elapsed>,
}

impl Agenda {
    /// All servers at once, so many times, and up for so long in between.
    pub(super) fn all(restart: Restart, falls: u32, up: Duration) -> Self {
        Self::new(restart, up, vec![None; falls.max(1) as usize])
    }

    /// Each of so many servers in turn.
    pub(super) fn rolling(restart: Restart, servers: usize, pause: Duration) -> Self {
        Self::new(restart, pause, (0..servers as u16).map(Some).collect())
    }

    fn new(restart: Restart, pause: Duration, falls: Vec<Option<u16>>) -> Self {
        Self {
            restart,
            pause,
            falls,
            begun: 0,
            next: None,
        }
    }

    /// Begins the next fall: its number, from 1, and what falls; none where all have begun.
    pub(super) fn begin(&mut self) -> Option<(u32, Option<u16>)> {
        let target = *self.falls.get(self.begun)?;
        self.begun += 1;
        self.next = None;
        Some((self.begun as u32, target))
    }

    /// Whether there are several: then each is told, and that there are no more.
    pub(super) fn is_several(&self) -> bool {
        self.falls.len() > 1
    }

    /// What had fallen is ready again; says whether it was the last.
    pub(super) fn ready(&mut self, at: Elapsed) -> Left {
        if self.begun == self.falls.len() {
            return Left::Nothing;
        }
        self.next = Some(at + self.pause);
        Left::More
    }

    pub(super) fn next(&self) -> Option<Elapsed> {
        self.next
    }
}

/// Whether more is to fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    More,
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::StopSignal;

    const RESTART: Restart = Restart {
        signal: StopSignal::Kill,
        grace: Duration::ZERO,
        down: Duration::ZERO,
    };

    #[test]
    fn each_fall_waits_for_the_one_before_and_the_pause() {
        let pause = Duration::from_secs(2);
        let mut agenda = Agenda::rolling(RESTART, 2, pause);
        assert_eq!(agenda.begin(), Some((1, Some(0))));
        assert_eq!(agenda.next(), None);
        assert_eq!(agenda.ready(Elapsed::from_millis(500)), Left::More);
        assert_eq!(agenda.next(), Some(Elapsed::from_millis(2_500)));
        assert_eq!(agenda.begin(), Some((2, Some(1))));
        assert_eq!(agenda.next(), None);
        assert_eq!(agenda.ready(Elapsed::from_millis(3_000)), Left::Nothing);
        assert_eq!(agenda.begin(), None);
    }

    #[test]
    fn a_crash_loop_takes_all_servers_each_time_and_one_fall_is_none() {
        let mut agenda = Agenda::all(RESTART, 3, Duration::ZERO);
        let begun: Vec<_> = std::iter::from_fn(|| agenda.begin()).collect();
        assert_eq!(begun, [(1, None), (2, None), (3, None)]);
        assert!(agenda.is_several());
        assert!(!Agenda::all(RESTART, 1, Duration::ZERO).is_several());
    }
}
