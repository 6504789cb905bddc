//! The client's state machine: when it dials, what it carries, when it gives up.
//!
//! No sockets, no clock, no async. The tokio shell in `client.rs` drives it in a real run and `simulate.rs` in virtual
//! time, so the same code decides in both. It holds the cursor but can't read it: which of two ids is the later one is
//! the profile's knowledge.

use std::time::Duration;

use crate::backoff::{Backoff, Ending, Next, Passed, Reset, Retries};
use crate::history::{ClientId, Elapsed, EventIx, Quit};

/// What happened to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The run begins; the first dial is due then.
    Start {
        /// When.
        due: Elapsed,
    },
    /// The dial ended in an open connection.
    Opened,
    /// The application acknowledged it: the profile's opening is over.
    Acknowledged,
    /// The dial failed.
    Failed {
        /// How.
        ending: Ending,
    },
    /// An event arrived.
    Event {
        /// Which.
        event: EventIx,
        /// Whether it becomes the cursor: always for opaque ids, only a greater one where ids are declared ordered
        /// (rule 19 of judgement).
        supersedes: bool,
    },
    /// The server said that the client must reload; its frame named this id, which becomes the cursor.
    Reset {
        /// Whose id.
        event: EventIx,
    },
    /// What a dial must carry was learnt otherwise than with an event: the profile keeps cursors of its own, or the server
    /// said that it can't resume from the old one.
    Cursor {
        /// The entry of the table that holds it; none = the next dial carries nothing.
        event: Option<EventIx>,
    },
    /// The stream named a time until reconnects (`retry:`).
    Retry {
        /// How long.
        delay: Duration,
    },
    /// A refusal named a time until the next dial (`Retry-After`).
    RetryAfter {
        /// How long.
        delay: Duration,
    },
    /// The open connection ended.
    Closed {
        /// How.
        ending: Ending,
    },
    /// The connection or the dial ended in a way after which the protocol forbids to come back.
    Stopped {
        /// What the server said, made safe.
        why: Box<str>,
    },
}

/// What the client does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read on, or wait for the dial to end.
    Nothing,
    /// Dial at an instant.
    Dial(Dial),
    /// Stop for good.
    Quit(Quit),
}

/// A dial to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dial {
    /// When.
    pub due: Elapsed,
    /// Which retry since the count was reset, from 0; 0 for the very first connect too.
    pub attempt: u32,
    /// The cursor to resume from.
    pub cursor: Option<EventIx>,
}

/// One client's state.
#[derive(Debug, Clone)]
pub struct Machine {
    state: State,
    cursor: Option<EventIx>,
    retries: Retries,
    /// When the connection was lost, if it ever was.
    dropped: Elapsed,
    /// When the current dial was due.
    due: Elapsed,
    /// When the last event arrived.
    heard: Elapsed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Dialling,
    Open { since: Elapsed },
    Done,
}

impl Machine {
    /// A client that has done nothing yet.
    #[must_use]
    pub fn new(client: ClientId, seed: u64) -> Self {
        Self {
            state: State::Idle,
            cursor: None,
            retries: Retries::new(seed, client.0),
            dropped: Elapsed::ZERO,
            due: Elapsed::ZERO,
            heard: Elapsed::ZERO,
        }
    }

    /// The event whose id is the cursor.
    #[must_use]
    pub fn cursor(&self) -> Option<EventIx> {
        self.cursor
    }

    /// Whether a connection is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// The policy's own limit of the connect, and of the handshake, of the dial that is made now; none = the run's.
    #[must_use]
    pub fn connect_timeout(&self, policy: &Backoff) -> Option<Duration> {
        self.retries.connect_timeout(policy)
    }

    /// Takes what happened and says what to do. An input that doesn't fit the state (an end of a connection that isn't
    /// open, anything after the end) changes nothing: a late notice must not make a client dial twice.
    pub fn on(&mut self, now: Elapsed, input: Input, policy: &Backoff) -> Action {
        match (self.state, input) {
            (State::Idle, Input::Start { due }) => {
                (self.state, self.due) = (State::Dialling, due);
                Action::Dial(Dial {
                    due,
                    attempt: 0,
                    cursor: None,
                })
            }
            (State::Dialling, Input::Opened) => {
                (self.state, self.heard) = (State::Open { since: now }, now);
                if policy.reset == Reset::OnOpen {
                    self.retries.reset();
                }
                Action::Nothing
            }
            (State::Open { .. }, Input::Acknowledged) => {
                if policy.reset == Reset::OnAck {
                    self.retries.reset();
                }
                Action::Nothing
            }
            (State::Dialling, Input::Failed { ending }) => self.retry(now, ending, policy),
            (State::Open { since }, Input::Closed { ending }) => {
                self.retries.dropped();
                self.dropped = now;
                let lasted = match policy.reset {
                    Reset::AfterUptime(least) => now.since(since) >= least,
                    Reset::AfterQuiet(least) => now.since(self.heard) >= least,
                    Reset::OnOpen | Reset::OnAck => false,
                };
                if lasted {
                    self.retries.reset();
                }
                self.retry(now, ending, policy)
            }
            (State::Open { .. } | State::Dialling, Input::Retry { delay }) => {
                self.retries.retry(policy, delay);
                Action::Nothing
            }
            (State::Dialling, Input::RetryAfter { delay }) => {
                self.retries.retry_after(policy, delay);
                Action::Nothing
            }
            (State::Open { .. }, Input::Event { event, supersedes }) => {
                self.heard = now;
                if supersedes {
                    self.cursor = Some(event);
                }
                Action::Nothing
            }
            (State::Open { .. }, Input::Reset { event }) => {
                self.cursor = Some(event);
                Action::Nothing
            }
            (State::Open { .. } | State::Dialling, Input::Cursor { event }) => {
                self.cursor = event;
                Action::Nothing
            }
            (State::Open { .. } | State::Dialling, Input::Stopped { why }) => {
                self.state = State::Done;
                Action::Quit(Quit::Fatal(why))
            }
            _ => Action::Nothing,
        }
    }

    fn retry(&mut self, now: Elapsed, ending: Ending, policy: &Backoff) -> Action {
        let away = match self.retries.has_dropped() {
            true => now.since(self.dropped),
            false => Duration::ZERO,
        };
        let passed = Passed {
            away,
            since_dial: now.since(self.due),
        };
        match self.retries.next(policy, ending, passed) {
            Next::Wait { delay, attempt } => {
                (self.state, self.due) = (State::Dialling, now + delay);
                Action::Dial(Dial {
                    due: self.due,
                    attempt,
                    cursor: self.cursor,
                })
            }
            Next::GiveUp => {
                self.state = State::Done;
                Action::Quit(Quit::GaveUp)
            }
            Next::Fatal => {
                self.state = State::Done;
                Action::Quit(Quit::Fatal(ending.to_string().into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::{Growth, presets};
    use proptest::prelude::*;

    fn ms(ms: u64) -> Elapsed {
        Elapsed::from_millis(ms)
    }

    fn fixed(reset: Reset, max_attempts: Option<u32>) -> Backoff {
        let mut policy = Backoff::new(Vec::new(), Growth::fixed(Duration::from_secs(1)));
        (policy.limits.attempts, policy.reset) = (max_attempts, reset);
        policy
    }

    fn failed() -> Input {
        Input::Failed {
            ending: Ending::Unconnected,
        }
    }

    fn closed() -> Input {
        Input::Closed {
            ending: Ending::Lost,
        }
    }

    fn dial(action: Action) -> Dial {
        match action {
            Action::Dial(dial) => dial,
            other => panic!("{other:?} is no dial"),
        }
    }

    #[test]
    fn it_carries_the_last_event_as_its_cursor() {
        let policy = fixed(Reset::OnOpen, None);
        let mut m = Machine::new(ClientId(1), 9);
        assert_eq!(
            dial(m.on(ms(0), Input::Start { due: ms(5) }, &policy)).due,
            ms(5)
        );
        m.on(ms(6), Input::Opened, &policy);
        m.on(
            ms(7),
            Input::Event {
                event: EventIx(3),
                supersedes: true,
            },
            &policy,
        );
        m.on(
            ms(8),
            Input::Event {
                event: EventIx(2),
                supersedes: false,
            },
            &policy,
        );
        let next = dial(m.on(ms(10), closed(), &policy));
        assert_eq!(
            next,
            Dial {
                due: ms(1010),
                attempt: 0,
                cursor: Some(EventIx(3))
            }
        );
    }

    #[test]
    fn the_count_returns_to_zero_on_open_or_only_after_a_minimum_uptime() {
        for (reset, after_short, after_long) in [
            (Reset::OnOpen, 0, 0),
            (Reset::AfterUptime(Duration::from_secs(5)), 2, 0),
        ] {
            let policy = fixed(reset, None);
            let mut m = Machine::new(ClientId(1), 9);
            m.on(ms(0), Input::Start { due: ms(0) }, &policy);
            m.on(ms(0), failed(), &policy);
            m.on(ms(0), failed(), &policy);
            m.on(ms(0), Input::Opened, &policy);
            assert_eq!(dial(m.on(ms(100), closed(), &policy)).attempt, after_short);
            m.on(ms(200), Input::Opened, &policy);
            assert_eq!(dial(m.on(ms(9000), closed(), &policy)).attempt, after_long);
        }
    }

    #[test]
    fn it_gives_up_once_and_stays_so() {
        let policy = fixed(Reset::OnOpen, Some(1));
        let mut m = Machine::new(ClientId(1), 9);
        m.on(ms(0), Input::Start { due: ms(0) }, &policy);
        assert_eq!(dial(m.on(ms(0), failed(), &policy)).attempt, 0);
        assert_eq!(m.on(ms(0), failed(), &policy), Action::Quit(Quit::GaveUp));
        assert_eq!(m.on(ms(0), failed(), &policy), Action::Nothing);
        assert_eq!(
            m.on(ms(0), Input::Start { due: ms(0) }, &policy),
            Action::Nothing
        );
    }

    #[test]
    fn a_cursor_can_be_told_and_taken_back_between_two_dials() {
        let policy = fixed(Reset::OnOpen, None);
        let mut m = Machine::new(ClientId(1), 9);
        m.on(ms(0), Input::Start { due: ms(0) }, &policy);
        m.on(ms(0), Input::Opened, &policy);
        let told = Some(EventIx(7));
        m.on(ms(1), Input::Cursor { event: told }, &policy);
        assert_eq!(dial(m.on(ms(2), closed(), &policy)).cursor, told);
        m.on(ms(3), Input::Cursor { event: None }, &policy);
        assert_eq!(dial(m.on(ms(4), failed(), &policy)).cursor, None);
    }

    #[test]
    fn what_the_protocol_forbids_ends_it_whether_open_or_dialling() {
        let policy = fixed(Reset::OnOpen, None);
        let why = || Input::Stopped { why: "204".into() };
        for opened in [false, true] {
            let mut m = Machine::new(ClientId(1), 9);
            m.on(ms(0), Input::Start { due: ms(0) }, &policy);
            if opened {
                m.on(ms(0), Input::Opened, &policy);
            }
            let quit = Action::Quit(Quit::Fatal("204".into()));
            assert_eq!(m.on(ms(1), why(), &policy), quit);
            assert_eq!(m.on(ms(2), why(), &policy), Action::Nothing);
            assert_eq!(m.on(ms(2), closed(), &policy), Action::Nothing);
        }
    }

    fn input() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(Input::Start { due: ms(0) }),
            Just(Input::Opened),
            Just(failed()),
            Just(closed()),
            proptest::option::of((0u32..9).prop_map(EventIx))
                .prop_map(|event| Input::Cursor { event }),
            (0u32..9, any::<bool>()).prop_map(|(e, supersedes)| Input::Event {
                event: EventIx(e),
                supersedes
            }),
        ]
    }

    proptest! {
        /// Whatever is thrown at it, between two dials lies the end of the first one.
        #[test]
        fn it_never_dials_twice_without_an_end_between(inputs in proptest::collection::vec(input(), 0..60)) {
            let policy = (presets::find(presets::DEFAULT).unwrap().policy)();
            let mut m = Machine::new(ClientId(1), 9);
            let mut dialling = false;
            for (now, input) in inputs.into_iter().enumerate() {
                let ends = matches!(input, Input::Failed { .. } | Input::Closed { .. });
                match m.on(ms(now as u64), input, &policy) {
                    Action::Dial(_) => {
                        prop_assert!(!dialling || ends);
                        dialling = true;
                    }
                    _ => dialling &= !m.is_open(),
                }
            }
        }
    }
}
