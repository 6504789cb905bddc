//! Performs what the clients' machines decide, over a transport, and keeps each client's record.
//!
//! `client/machine.rs` decides and `client/dial.rs` connects; this file joins them: one task a client. It judges nothing
//! and doesn't know why a server restarts.

mod alarm;
pub mod crew;
pub mod dial;
pub(crate) mod ending;
pub mod handle;
pub(crate) mod hide;
mod look;
pub mod machine;
pub mod numbers;
mod pulse;
mod refresh;
mod reload;
mod session;
pub mod table;
mod vigil;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use self::dial::{Due, Stamps, Way};
use self::handle::Order;
use self::machine::{Action, Dial, Input, Machine};
use self::table::{Cursor, Guess};
use crate::backoff::{Backoff, Ending, Then, rules};
use crate::history::{Attempt, AttemptOutcome, Elapsed, Event, Memory};
use crate::profile::{Fate, Talk};
use crate::transport::Opened;

pub use crew::{Counts, Crew, OwnNumbers};
pub use handle::{Handle, Progress, Status};
pub use look::first_look;

/// Runs one client until it is stopped or gives up; its first dial is due at its place in the ramp that begins at `from`.
pub async fn live(crew: Arc<Crew>, handle: Arc<Handle>, from: Elapsed) {
    let client = Client {
        machine: Machine::new(handle.id(), crew.plan.seed()),
        policy: crew.policy.of(handle.id().0),
        crew: &crew,
        handle: &handle,
        talk: Talk::new(crew.plan.profile()),
        resumed: None,
        cursor: Cursor::None,
        guess: Guess::default(),
        session: 0,
        dials: 0,
        target: 0,
        kept: [0; 3],
    };
    client.run(from + crew.plan.first_due(handle.id())).await;
}

/// What a dial came to.
enum Dialled {
    Open(Opened),
    /// When it was over, and how.
    Failed(Elapsed, AttemptOutcome),
    /// The run is over.
    Stopped,
    /// The client is to start anew.
    Refreshed(Memory),
}

/// One client's task.
struct Client<'a> {
    crew: &'a Arc<Crew>,
    handle: &'a Arc<Handle>,
    machine: Machine,
    policy: &'a Backoff,
    /// What it says, and what it keeps of the server's words.
    talk: Talk,
    /// The cursor that the last dial carried.
    resumed: Option<Arc<Event>>,
    /// What the next dial will carry; the machine, which can't read it, is told when the session is over.
    cursor: Cursor,
    guess: Guess,
    /// The number of the last session, from 1.
    session: u32,
    /// How often it has dialled.
    dials: u32,
    /// The target of the last dial, from 0.
    target: u16,
    /// Frames that were kept because they could not be read, of each kind.
    kept: [u32; 3],
}

impl Client<'_> {
    async fn run(mut self, due: Elapsed) {
        let mut action = self
            .machine
            .on(self.now(), Input::Start { due }, self.policy);
        while let Action::Dial(dial) = action {
            let next = match self.dial(dial).await {
                Dialled::Open(opened) => self.session(opened).await,
                Dialled::Failed(at, outcome) => Some(self.failed(at, &outcome)),
                Dialled::Refreshed(memory) => Some(self.refresh(self.now(), memory)),
                Dialled::Stopped => None,
            };
            match next {
                Some(next) => action = next,
                None => return,
            }
        }
        if let Action::Quit(why) = action {
            self.handle.lock().recorder.quit(self.now(), why);
            self.status(Status::GaveUp);
        }
    }

    /// Dials and records the attempt. One that an order ended before it was begun is none.
    async fn dial(&mut self, dial: Dial) -> Dialled {
        self.resumed = dial.cursor.map(|event| self.crew.table.get(event));
        let cursor = self.resumed.as_ref().and_then(|event| event.id.as_deref());
        let plan = &self.crew.plan;
        self.target = plan.target_of(self.handle.id(), self.dials);
        self.dials += 1;
        let call = plan.call(self.handle.id(), self.target, cursor, self.talk.named());
        let mut stamps = Stamps::default();
        let mut ordered = None;
        let result = {
            let dialler = &self.crew.dialler;
            // Boxed: while the connection is open, which is nearly always, it costs nothing.
            let way = Way {
                source: self.crew.plan.source(self.handle.id()),
                tunnels: self.crew.tunnels(self.handle.id()),
            };
            let due = Due {
                at: dial.due,
                within: self.machine.connect_timeout(self.policy),
            };
            let dialling = dialler.dial(due, call, way, &mut stamps);
            let mut dialling = Box::pin(dialling);
            tokio::select! {
                biased;
                order = poll_fn(|cx| self.handle.poll_order(cx, 0)) => {
                    ordered = Some(order);
                    Err(AttemptOutcome::Aborted)
                }
                result = &mut dialling => result,
            }
        };
        let result = result.map_err(|outcome| hide::outcome(outcome, |text| self.hidden(text)));
        let obeyed = ordered.map(|order| match order {
            Order::Refresh(memory) => Dialled::Refreshed(memory),
            Order::Stop | Order::HalfOpen => Dialled::Stopped,
        });
        let obeyed = match obeyed {
            Some(obeyed) if stamps.dialled.is_none() => return obeyed,
            obeyed => obeyed,
        };
        let ended = self.now();
        let outcome = result
            .as_ref()
            .map_or_else(Clone::clone, |_| AttemptOutcome::Opened);
        self.record(Attempt {
            attempt: dial.attempt,
            due: dial.due,
            dialled: stamps.dialled.unwrap_or(ended),
            connected: stamps.connected,
            ended,
            outcome,
            resumed_from: dial.cursor,
            target: self.target,
        });
        if let Some(delay) = stamps.retry_after {
            self.handle.lock().recorder.retry_after(ended, delay);
            self.machine
                .on(ended, Input::RetryAfter { delay }, self.policy);
        }
        obeyed.unwrap_or_else(|| match result {
            Ok(opened) => Dialled::Open(opened),
            Err(outcome) => Dialled::Failed(ended, outcome),
        })
    }

    /// What comes of a dial that ended otherwise than open: the protocol may have its own mind about a status.
    fn failed(&mut self, at: Elapsed, outcome: &AttemptOutcome) -> Action {
        let (fate, why) = match outcome {
            AttemptOutcome::Handshake {
                status: Some(status),
                why,
            } => (self.crew.plan.profile().after_status(*status), &**why),
            _ => (Fate::Reconnect, ""),
        };
        if fate == Fate::Reset {
            self.refused(at, why);
            self.tell_cursor(at);
        }
        let ending = ending::of_dial(outcome);
        let next = if self.stops(fate, ending) {
            Input::Stopped { why: why.into() }
        } else {
            Input::Failed { ending }
        };
        self.machine.on(at, next, self.policy)
    }

    /// Whether the profile ends it: the policy's own rules come before the profile's.
    fn stops(&self, fate: Fate, ending: Ending) -> bool {
        fate == Fate::Stop
            && rules::ruling(&self.policy.rules, ending).is_none_or(|then| then == Then::Stop)
    }

    fn record(&mut self, attempt: Attempt) {
        let (opened, at) = (attempt.outcome == AttemptOutcome::Opened, attempt.ended);
        let aborted = attempt.outcome == AttemptOutcome::Aborted;
        {
            let mut state = self.handle.lock();
            state.recorder.attempt(attempt);
            if opened {
                self.session += 1;
                state.progress.sessions = self.session;
                state.progress.opened = Some(at);
                if self.resumed.is_none() && state.progress.last_reset.is_some() {
                    // It begins anew: what it missed until now was reloaded.
                    state.progress.last_reset = Some(at);
                }
            }
        }
        if opened {
            self.machine.on(at, Input::Opened, self.policy);
            self.status(Status::Connected);
        } else if !aborted {
            self.crew.counters.failed.fetch_add(1, Relaxed);
        }
    }

    /// What a server said, without what nobody may write down.
    fn hidden(&self, text: &str) -> Box<str> {
        let (run, plan) = (self.crew.secrets(), &self.crew.plan);
        let own = hide::secrets(run, plan, self.handle.id());
        plan.hide(&own.redact(text)).into()
    }

    fn status(&self, status: Status) {
        let old = std::mem::replace(&mut self.handle.lock().progress.status, status);
        self.crew.counters.of(old).fetch_sub(1, Relaxed);
        self.crew.counters.of(status).fetch_add(1, Relaxed);
    }

    fn now(&self) -> Elapsed {
        self.crew.dialler.clock.now()
    }
}

#[cfg(test)]
pub(crate) mod tests;
