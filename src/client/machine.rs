//! The client's state machine: when it dials, what it carries, when it gives up.
//!
//! No sockets, no clock, no async. The tokio shell in `client.rs` drives it in a real run and `simulate.rs` in virtual
//! time, so the same code decides in both. It holds the cursor but can't read it: which of two ids is the later one is
//! the profile's knowledge.

use std::time::Duration;

use crate::backoff::{Backoff, Ending, Next, Passed, Reset, Retries};
use crate::history::{ClientId, Elapsed, EventIx, Memory, Quit, Status};

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
    /// The client is closed and opened again, as a browser's tab is: whatever it was doing is over, its retries are
    /// forgotten, and it dials as one that begins.
    Refresh {
        /// When its dial is due.
        due: Elapsed,
        /// Whether it still knows its cursor.
        memory: Memory,
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
    /// Whether a connection was ever open.
    was_open: bool,
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
            was_open: false,
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

    /// Where the client stands. A dial is made when it is due: until then the client only waits for it.
    #[must_use]
    pub fn status(&self, now: Elapsed) -> Status {
        match self.state {
            State::Open { .. } => Status::Connected,
            State::Done => Status::GaveUp,
            State::Idle | State::Dialling if !self.was_open => Status::Connecting,
            State::Dialling if now >= self.due => Status::Reconnecting,
            State::Idle | State::Dialling => Status::Disconnected,
        }
    }

    /// How many HTTP requests the dial that is made now costs the server, at least 1.
    #[must_use]
    pub fn requests(&self, policy: &Backoff) -> u32 {
        self.retries.requests(policy).max(1)
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
                self.was_open = true;
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
            (State::Open { .. } | State::Dialling, Input::Refresh { due, memory }) => {
                self.retries.begin_anew();
                (self.state, self.due, self.dropped) = (State::Dialling, due, now);
                if memory == Memory::Lost {
                    self.cursor = None;
                }
                Action::Dial(Dial {
                    due,
                    attempt: 0,
                    cursor: self.cursor,
                })
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
mod tests;
