//! One direction of a tunnel: what has come and is not passed on yet, and when it may be. Synchronous, without a clock and
//! without a socket: time is told to it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::history::Elapsed;

/// How much of what has come may wait (bytes); whoever sends more has to wait too.
const MOST: usize = 256 * 1024;
/// What trickles goes in pieces of about this long.
const PIECE: Duration = Duration::from_millis(20);
/// The largest piece (bytes).
const LARGEST: usize = 4 * 1024;

/// What a network does to bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weather {
    /// Nothing.
    #[default]
    Clear,
    /// Every byte comes so much later; the order stays.
    Late(Duration),
    /// So many bytes a second go through, at least 1, in pieces that know nothing of frames.
    Slow(u32),
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order, after everything that was sent.
    Fin,
    /// By a reset.
    Rst,
}

/// The direction.
#[derive(Debug, Default)]
pub(super) struct Flow {
    weather: Weather,
    /// What came together, and when it may go on.
    queue: VecDeque<(Elapsed, Vec<u8>)>,
    /// How much of the first is gone already.
    gone: usize,
    held: usize,
    /// When the next piece may go, where they trickle.
    free: Elapsed,
    end: Option<(Elapsed, End)>,
    /// Nobody takes anything any more: what comes is forgotten.
    abandoned: bool,
}

impl Flow {
    /// A direction in such weather.
    pub(super) fn new(weather: Weather) -> Self {
        Self {
            weather,
            ..Self::default()
        }
    }

    /// Whether more may come.
    pub(super) fn has_room(&self) -> bool {
        self.end.is_none() && self.held < MOST
    }

    /// These bytes came.
    pub(super) fn push(&mut self, now: Elapsed, bytes: &[u8]) {
        if self.abandoned {
            return;
        }
        self.held += bytes.len();
        let at = self.arrival(now);
        self.queue.push_back((at, bytes.to_vec()));
    }

    /// Its end came; nothing may come behind it.
    pub(super) fn close(&mut self, now: Elapsed, end: End) {
        self.end = Some((self.arrival(now), end));
    }

    /// Whom it goes to takes nothing any more.
    pub(super) fn abandon(&mut self) {
        self.queue.clear();
        (self.held, self.gone, self.abandoned) = (0, 0, true);
    }

    /// Whether [`Flow::abandon`] was called.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// What may be passed on now.
    pub(super) fn ready(&self, now: Elapsed) -> &[u8] {
        let Some((_, bytes)) = self.queue.front().filter(|(at, _)| *at <= now) else {
            return &[];
        };
        let bytes = &bytes[self.gone..];
        match self.weather {
            Weather::Slow(_) if self.free > now => &[],
            Weather::Slow(rate) => &bytes[..bytes.len().min(piece(rate))],
            Weather::Clear | Weather::Late(_) => bytes,
        }
    }

    /// So many bytes of [`Flow::ready`] were passed on.
    pub(super) fn passed(&mut self, now: Elapsed, count: usize) {
        self.held -= count;
        self.gone += count;
        if self
            .queue
            .front()
            .is_some_and(|(_, b)| b.len() == self.gone)
        {
            self.queue.pop_front();
            self.gone = 0;
        }
        if let Weather::Slow(rate) = self.weather {
            let took = Duration::from_secs_f64(count as f64 / f64::from(rate.max(1)));
            // A timer that was a little late is made up for; a pause isn't.
            self.free = self.free.max(now - PIECE) + took;
        }
    }

    /// When there is something to pass on, or the end is; none = nothing waits. It may be in the past.
    pub(super) fn due(&self) -> Option<Elapsed> {
        let Some((at, _)) = self.queue.front() else {
            return self.end.map(|(at, _)| at);
        };
        Some(match self.weather {
            Weather::Slow(_) => self.free.max(*at),
            Weather::Clear | Weather::Late(_) => *at,
        })
    }

    /// The end, once everything before it is passed on and its time has come.
    pub(super) fn over(&self, now: Elapsed) -> Option<End> {
        let due = |(at, end): (Elapsed, End)| (at <= now).then_some(end);
        self.end.filter(|_| self.queue.is_empty()).and_then(due)
    }

    /// The weather changes for what comes from now on. What is under way arrives when it would have: all of it at once would
    /// be a burst that no network makes.
    pub(super) fn set(&mut self, now: Elapsed, weather: Weather) {
        self.weather = weather;
        self.free = now;
    }

    /// When what comes now may go on: never before what came earlier.
    fn arrival(&self, now: Elapsed) -> Elapsed {
        let at = match self.weather {
            Weather::Late(delay) => now + delay,
            Weather::Clear | Weather::Slow(_) => now,
        };
        self.queue.back().map_or(at, |(last, _)| at.max(*last))
    }
}

/// How much trickles at once.
fn piece(rate: u32) -> usize {
    let bytes = f64::from(rate) * PIECE.as_secs_f64();
    (bytes as usize).clamp(1, LARGEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Elapsed = Elapsed::from_millis;

    /// Passes on whatever may go at an instant.
    fn drain(flow: &mut Flow, now: Elapsed) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let piece = flow.ready(now).to_vec();
            if piece.is_empty() {
                return out;
            }
            flow.passed(now, piece.len());
            out.extend(piece);
        }
    }

    #[test]
    fn late_bytes_come_late_in_order_and_those_under_way_as_late_when_it_clears_up() {
        let mut flow = Flow::new(Weather::Late(Duration::from_millis(100)));
        flow.push(MS(0), b"one ");
        flow.push(MS(50), b"two ");
        assert_eq!(flow.due(), Some(MS(100)));
        assert_eq!(drain(&mut flow, MS(99)), b"");
        assert_eq!(drain(&mut flow, MS(100)), b"one ");
        flow.close(MS(60), End::Fin);
        flow.set(MS(120), Weather::Clear);
        assert_eq!(drain(&mut flow, MS(149)), b"");
        assert_eq!(drain(&mut flow, MS(150)), b"two ");
        assert_eq!(flow.over(MS(159)), None);
        assert_eq!(flow.over(MS(160)), Some(End::Fin));
        assert!(!flow.has_room(), "nothing comes behind an end");
    }

    #[test]
    fn an_end_comes_as_late_as_the_bytes_before_it() {
        let mut flow = Flow::new(Weather::Late(Duration::from_millis(100)));
        flow.push(MS(0), b"x");
        flow.close(MS(10), End::Rst);
        assert_eq!(flow.over(MS(200)), None, "a byte is still to be passed on");
        assert_eq!(drain(&mut flow, MS(100)), b"x");
        assert_eq!(flow.over(MS(109)), None);
        assert_eq!(flow.due(), Some(MS(110)));
        assert_eq!(flow.over(MS(110)), Some(End::Rst));
    }

    #[test]
    fn a_trickle_keeps_its_rate_and_cuts_anywhere() {
        let mut flow = Flow::new(Weather::Slow(100));
        flow.push(MS(0), &[7; 300]);
        let mut passed = 0;
        for ms in 0..1_000 {
            let piece = drain(&mut flow, MS(ms));
            assert!(piece.len() <= 4, "{} bytes at once", piece.len());
            passed += piece.len();
        }
        assert!((95..=104).contains(&passed), "{passed} bytes in a second");
        assert!(flow.due().is_some_and(|at| at >= MS(980)));
    }

    #[test]
    fn who_sends_too_much_has_to_wait() {
        let mut flow = Flow::new(Weather::Late(Duration::from_secs(1)));
        flow.push(MS(0), &vec![0; MOST - 1]);
        assert!(flow.has_room());
        flow.push(MS(0), &[0]);
        assert!(!flow.has_room());
        assert_eq!(drain(&mut flow, MS(1_000)).len(), MOST);
        assert!(flow.has_room());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_disordered_whatever_the_weather(
            steps in prop::collection::vec((0u64..400, 0u8..4, 1usize..200), 1..60)
        ) {
            let mut flow = Flow::default();
            let (mut now, mut sent, mut came) = (MS(0), Vec::<u8>::new(), Vec::<u8>::new());
            for (ms, what, size) in steps {
                now = now + Duration::from_millis(ms);
                match what {
                    0 => flow.set(now, Weather::Late(Duration::from_millis(ms))),
                    1 => flow.set(now, Weather::Slow(size as u32)),
                    2 => flow.set(now, Weather::Clear),
                    _ => {
                        let bytes: Vec<u8> = (0..size).map(|n| (sent.len() + n) as u8).collect();
                        sent.extend(&bytes);
                        flow.push(now, &bytes);
                    }
                }
                came.extend(drain(&mut flow, now));
            }
            flow.set(now, Weather::Clear);
            came.extend(drain(&mut flow, now + Duration::from_millis(400)));
            prop_assert_eq!(came, sent);
            prop_assert_eq!(flow.due(), None);
        }
    }
}
