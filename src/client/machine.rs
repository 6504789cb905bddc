//! The client's state machine: when it dials, what it carries, when it gives up.
//!
//! No sockets, no clock, no async. The tokio shell in `client.rs` drives it in a real run and `simulate.rs` in virtual
//! time, so the same code decides in both. It holds the cursor but can't read it: which of two ids is the later one is
//! the profile's knowledge.

use crate::backoff::{Address, Backoff, Reset};
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
    /// The dial failed.
    Failed,
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
    /// The open connection ended.
    Closed,
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
    client: ClientId,
    seed: u64,
    state: State,
    cursor: Option<EventIx>,
    /// How many connections were lost.
    drops: u32,
    /// Retries made since the count was last reset.
    retries: u32,
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
            client,
            seed,
            state: State::Idle,
            cursor: None,
            drops: 0,
            retries: 0,
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

    /// Takes what happened and says what to do. An input that doesn't fit the state (an end of a connection that isn't
    /// open, anything after the end) changes nothing: a late notice must not make a client dial twice.
    pub fn on(&mut self, now: Elapsed, input: Input, policy: &Backoff) -> Action {
        match (self.state, input) {
            (State::Idle, Input::Start { due }) => {
                self.state = State::Dialling;
                Action::Dial(Dial {
                    due,
                    attempt: 0,
                    cursor: None,
                })
            }
            (State::Dialling, Input::Opened) => {
                self.state = State::Open { since: now };
                if policy.reset == Reset::OnOpen {
                    self.retries = 0;
                }
                Action::Nothing
            }
            (State::Dialling, Input::Failed) => self.retry(now, policy),
            (State::Open { since }, Input::Closed) => {
                self.drops += 1;
                if matches!(policy.reset, Reset::AfterUptime(least) if now.since(since) >= least) {
                    self.retries = 0;
                }
                self.retry(now, policy)
            }
            (State::Open { .. }, Input::Event { event, supersedes }) => {
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

    fn retry(&mut self, now: Elapsed, policy: &Backoff) -> Action {
        let attempt = self.retries;
        let at = Address {
            seed: self.seed,
            client: self.client.0,
            drop: self.drops,
            attempt,
        };
        match policy.delay(attempt, at.random()) {
            Some(delay) => {
                self.state = State::Dialling;
                self.retries += 1;
                Action::Dial(Dial {
                    due: now + delay,
                    attempt,
                    cursor: self.cursor,
                })
            }
            None => {
                self.state = State::Done;
                Action::Quit(Quit::GaveUp)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::backoff::{Delay, Preset};
    use proptest::prelude::*;

    fn ms(ms: u64) -> Elapsed {
        Elapsed::from_millis(ms)
    }

    fn fixed(reset: Reset, max_attempts: Option<u32>) -> Backoff {
        Backoff {
            delay: Delay::Fixed {
                delay: Duration::from_secs(1),
                jitter: 0.0,
            },
            max_attempts,
            reset,
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
        let next = dial(m.on(ms(10), Input::Closed, &policy));
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
            m.on(ms(0), Input::Failed, &policy);
            m.on(ms(0), Input::Failed, &policy);
            m.on(ms(0), Input::Opened, &policy);
            assert_eq!(
                dial(m.on(ms(100), Input::Closed, &policy)).attempt,
                after_short
            );
            m.on(ms(200), Input::Opened, &policy);
            assert_eq!(
                dial(m.on(ms(9000), Input::Closed, &policy)).attempt,
                after_long
            );
        }
    }

    #[test]
    fn it_gives_up_once_and_stays_so() {
        let policy = fixed(Reset::OnOpen, Some(1));
        let mut m = Machine::new(ClientId(1), 9);
        m.on(ms(0), Input::Start { due: ms(0) }, &policy);
        assert_eq!(dial(m.on(ms(0), Input::Failed, &policy)).attempt, 0);
        assert_eq!(
            m.on(ms(0), Input::Failed, &policy),
            Action::Quit(Quit::GaveUp)
        );
        assert_eq!(m.on(ms(0), Input::Failed, &policy), Action::Nothing);
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
        assert_eq!(dial(m.on(ms(2), Input::Closed, &policy)).cursor, told);
        m.on(ms(3), Input::Cursor { event: None }, &policy);
        assert_eq!(dial(m.on(ms(4), Input::Failed, &policy)).cursor, None);
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
            assert_eq!(m.on(ms(2), Input::Closed, &policy), Action::Nothing);
        }
    }

    fn input() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(Input::Start { due: ms(0) }),
            Just(Input::Opened),
            Just(Input::Failed),
            Just(Input::Closed),
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
            let policy = Preset::FullJitter.backoff();
            let mut m = Machine::new(ClientId(1), 9);
            let mut dialling = false;
            for (now, input) in inputs.into_iter().enumerate() {
                let ends = matches!(input, Input::Failed | Input::Closed);
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
