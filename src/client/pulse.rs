//! One connection's heartbeat: when to ask for a sign of life, and when to take the connection for dead. Synchronous and
//! without a clock: time is told to it, counted from the run's beginning. It knows no socket and no profile.

use std::time::Duration;

use crate::profile::Transport;
use crate::scenario::Heartbeat;

/// How long a connection that seems dead is looked at once more: what arrived while herd itself was busy may still wait to be
/// read when its timers already went off.
const DOUBT: Duration = Duration::from_millis(20);

/// How signs of life are come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// A ping asks for one: when the next is due, and since when one has had no answer.
    Asks {
        next: Duration,
        waiting: Option<Duration>,
    },
    /// They come by themselves, or don't.
    Listens,
}

/// What is to be done when time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing yet.
    Rest,
    /// Ask.
    Ping,
    /// Take the connection for dead.
    Dead,
}

/// The heartbeat of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pulse {
    beat: Heartbeat,
    heard: Duration,
    how: How,
    /// Until when a connection that seems dead is doubted to be.
    doubt: Option<Duration>,
}

impl Pulse {
    /// A session that was just opened.
    pub(super) fn new(beat: Heartbeat, transport: Transport, now: Duration) -> Self {
        let how = match transport {
            Transport::Ws => How::Asks {
                next: now.saturating_add(beat.interval),
                waiting: None,
            },
            Transport::Sse => How::Listens,
        };
        Self {
            beat,
            heard: now,
            how,
            doubt: None,
        }
    }

    /// Something came, whatever it was.
    pub(super) fn hear(&mut self, now: Duration) {
        (self.heard, self.doubt) = (now, None);
        if let How::Asks { waiting, .. } = &mut self.how {
            *waiting = None;
        }
    }

    /// When the last sign of life came.
    pub(super) fn heard(&self) -> Duration {
        self.heard
    }

    /// When [`Pulse::tick`] must be called next.
    pub(super) fn due(&self) -> Duration {
        if let Some(until) = self.doubt {
            return until;
        }
        self.dead()
            .map_or(Duration::MAX, |at| at)
            .min(match self.how {
                How::Asks { next, .. } => next,
                How::Listens => Duration::MAX,
            })
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Duration) -> Beat {
        if self.dead().is_some_and(|at| now >= at) {
            let until = *self.doubt.get_or_insert(now.saturating_add(DOUBT));
            return match now >= until {
                true => Beat::Dead,
                false => Beat::Rest,
            };
        }
        match &mut self.how {
            How::Asks { next, waiting } if now >= *next => {
                *next = now.saturating_add(self.beat.interval);
                waiting.get_or_insert(now);
                Beat::Ping
            }
            How::Asks { .. } | How::Listens => Beat::Rest,
        }
    }

    /// When the connection is dead, unless something comes before.
    fn dead(&self) -> Option<Duration> {
        match self.how {
            How::Asks { waiting, .. } => waiting.map(|at| at.saturating_add(self.beat.timeout)),
            How::Listens => Some(self.heard.saturating_add(self.beat.limit())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn pulse(transport: Transport) -> Pulse {
        let beat = Heartbeat {
            interval: S(5),
            timeout: S(2),
        };
        Pulse::new(beat, transport, S(100))
    }

    #[test]
    fn a_ping_that_nothing_answers_in_time_is_a_dead_connection() {
        let mut pulse = pulse(Transport::Ws);
        assert_eq!(pulse.due(), S(105));
        assert_eq!(pulse.tick(S(104)), Beat::Rest);
        assert_eq!(pulse.tick(S(105)), Beat::Ping);
        assert_eq!(pulse.due(), S(107));
        pulse.hear(S(106));
        assert_eq!(pulse.due(), S(110));
        assert_eq!(pulse.tick(S(107)), Beat::Rest);
        assert_eq!(pulse.tick(S(110)), Beat::Ping);
        assert_eq!(pulse.tick(S(112)), Beat::Rest, "it is looked at once more");
        assert_eq!(pulse.due(), S(112) + DOUBT);
        assert_eq!(pulse.tick(S(112) + DOUBT), Beat::Dead);
        assert_eq!(pulse.heard(), S(106));
    }

    #[test]
    fn a_timeout_longer_than_the_interval_runs_from_the_first_unanswered_ping() {
        let beat = Heartbeat {
            interval: S(1),
            timeout: S(3),
        };
        let mut pulse = Pulse::new(beat, Transport::Ws, S(0));
        for at in 1..4 {
            assert_eq!(pulse.tick(S(at)), Beat::Ping);
        }
        assert_eq!(pulse.tick(S(4)), Beat::Rest);
        assert_eq!(pulse.tick(S(4) + DOUBT), Beat::Dead);
    }

    #[test]
    fn a_stream_is_dead_once_nothing_has_come_for_both_times() {
        let mut pulse = pulse(Transport::Sse);
        assert_eq!(pulse.due(), S(107));
        pulse.hear(S(106));
        assert_eq!(pulse.tick(S(107)), Beat::Rest);
        assert_eq!(pulse.due(), S(113));
        assert_eq!(pulse.tick(S(113)), Beat::Rest);
        assert_eq!(pulse.tick(S(113) + DOUBT), Beat::Dead);
    }

    /// herd was busy: its timer goes off late, and before what had arrived in time is read.
    #[test]
    fn what_is_read_right_after_the_timer_was_there_before_it() {
        for transport in [Transport::Ws, Transport::Sse] {
            let mut pulse = pulse(transport);
            pulse.tick(S(105));
            assert_eq!(pulse.tick(S(110)), Beat::Rest);
            pulse.hear(S(110) + DOUBT / 2);
            assert_ne!(pulse.tick(S(110) + DOUBT), Beat::Dead);
        }
    }

    proptest! {
        /// Whenever it falls silent, that is noticed within interval + timeout, and never within the timeout.
        #[test]
        fn silence_is_noticed_in_time_and_life_never_taken_for_death(
            signs in prop::collection::vec(1u64..7_000, 0..30), sse: bool
        ) {
            let transport = if sse { Transport::Sse } else { Transport::Ws };
            let mut pulse = pulse(transport);
            let mut now = S(100);
            for sign in signs {
                let at = now + Duration::from_millis(sign);
                while pulse.due() < at {
                    let due = pulse.due();
                    let beat = pulse.tick(due);
                    // A ping is answered at once: what comes later is something else.
                    prop_assert_ne!(beat, Beat::Dead);
                    if beat == Beat::Ping {
                        pulse.hear(due);
                    }
                }
                now = at;
                pulse.hear(now);
            }
            let last = pulse.heard();
            loop {
                let due = pulse.due();
                if pulse.tick(due) == Beat::Dead {
                    let silent = due - last;
                    prop_assert!(silent >= S(2) && silent <= S(7) + DOUBT, "{silent:?}");
                    break;
                }
            }
        }
    }
}
