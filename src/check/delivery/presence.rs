//! Rule 14: when a client was there to be served, and so by when it must have had something. It knows of instants only,
//! not of what was delivered.
//!
//! The clock of a pair runs while the client is connected: it starts with the later of the item's own instant and the
//! session's opening, and a session that ends before the settle limit has passed proves nothing, so the clock starts
//! anew with the next one. Otherwise whoever is away for longer than the limit would be served late by any server, and
//! what was overdue before a drop would be forgiven by it.

use std::time::Duration;

use crate::check::Return;
use crate::check::timeline::Place;
use crate::history::{Client, Elapsed};

/// A session that counts (rule 1), from its opening to its loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) opened: Elapsed,
    /// None = to the end of the history.
    pub(super) until: Option<Elapsed>,
}

/// One client's presence.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) windows: Vec<Window>,
    settle: Duration,
}

impl Presence {
    /// From the client's sessions that didn't flap. A half-open one ends when its return says that the cut was, which
    /// is earlier than when herd closed it, and one that a cut silenced when it did so: nobody could have served it any more.
    pub(super) fn new(
        client: &Client,
        places: &[Place],
        returns: &[&Return],
        settle: Duration,
    ) -> Self {
        let counts = |i: usize| !places.get(i).is_some_and(|place| place.flapped);
        let windows = client
            .sessions
            .iter()
            .enumerate()
            .filter(|(i, _)| counts(*i))
            .map(|(i, session)| {
                let silenced = places.get(i).and_then(|place| place.silenced);
                let until = session.dropped().map(|closed| {
                    returns
                        .iter()
                        .map(|r| r.dropped)
                        .chain(silenced)
                        .filter(|at| *at >= session.opened && *at < closed)
                        .fold(closed, Elapsed::min)
                });
                Window {
                    opened: session.opened,
                    until,
                }
            })
            .collect();
        Self { windows, settle }
    }

    /// By when the client must have had something known since then; none where no session was long enough.
    pub(super) fn deadline(&self, known: Elapsed) -> Option<Elapsed> {
        self.windows.iter().find_map(|w| {
            let deadline = known.max(w.opened) + self.settle;
            w.until.is_none_or(|u| deadline <= u).then_some(deadline)
        })
    }

    /// Whether something was overdue before an instant at which a session begins.
    pub(super) fn overdue_before(&self, known: Elapsed, opened: Elapsed) -> bool {
        self.deadline(known).is_some_and(|d| d <= opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(s: u64) -> Elapsed {
        Elapsed::from_millis(s * 1000)
    }

    #[test]
    fn the_clock_starts_anew_with_a_session_unless_it_had_run_out() {
        let presence = Presence {
            windows: vec![
                Window {
                    opened: s(0),
                    until: Some(s(50)),
                },
                Window {
                    opened: s(100),
                    until: None,
                },
            ],
            settle: Duration::from_secs(30),
        };
        assert_eq!(presence.deadline(s(10)), Some(s(40)));
        assert_eq!(presence.deadline(s(20)), Some(s(50)));
        assert_eq!(presence.deadline(s(21)), Some(s(130)));
        assert_eq!(presence.deadline(s(110)), Some(s(140)));
        assert!(presence.overdue_before(s(20), s(100)));
        assert!(!presence.overdue_before(s(21), s(100)));
    }
}
