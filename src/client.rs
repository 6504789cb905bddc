//! Performs what the clients' machines decide, over a transport, and keeps each client's record.
//!
//! `client/machine.rs` decides and `client/dial.rs` connects; this file joins them: one task a client. It judges nothing
//! and doesn't know why a server restarts.

pub mod crew;
mod dial;
pub mod handle;
mod hide;
mod look;
pub mod machine;
pub mod numbers;
pub mod table;

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use self::dial::Stamps;
use self::handle::Order;
use self::machine::{Action, Dial, Input, Machine};
use self::table::{Guess, Known, Part};
use crate::history::{Attempt, AttemptOutcome, Cause, Elapsed, Source};
use crate::plan::Call;
use crate::secrets::Secrets;
use crate::transport::{Connection, Opened, Payload, safe};

pub use crew::{Counts, Crew, OwnNumbers};
pub use handle::{Handle, Progress, Status};
pub use look::first_look;

/// Frames that are kept of those that a client could not read, and how much of each (bytes).
const UNREAD: (u32, usize) = (3, 200);
/// How long a server may take to close after the close frames.
const GOODBYE: Duration = Duration::from_secs(1);

/// Runs one client until it is stopped or gives up; its first dial is due at its place in the ramp that begins at `from`.
pub async fn live(crew: Arc<Crew>, handle: Arc<Handle>, from: Elapsed) {
    let client = Client {
        machine: Machine::new(handle.id(), crew.plan.seed()),
        source: crew.plan.source(handle.id()),
        crew: &crew,
        handle: &handle,
        cursor: None,
        guess: Guess::default(),
        session: 0,
        unread: 0,
    };
    client.run(from + crew.plan.first_due(handle.id())).await;
}

/// One client's task.
struct Client<'a> {
    crew: &'a Crew,
    handle: &'a Handle,
    machine: Machine,
    source: Option<IpAddr>,
    /// What the machine's cursor is; the machine can't read it.
    cursor: Option<Known>,
    guess: Guess,
    /// The number of the last session, from 1.
    session: u32,
    unread: u32,
}

/// What an open connection brought.
enum Step {
    Message(Payload),
    End(Cause),
    Ordered(Order),
}

impl Client<'_> {
    async fn run(mut self, due: Elapsed) {
        let mut action = self
            .machine
            .on(self.now(), Input::Start { due }, &self.crew.policy);
        while let Action::Dial(dial) = action {
            let next = match self.dial(dial).await {
                Some(Ok(opened)) => self.session(opened.connection).await,
                Some(Err(at)) => Some(self.machine.on(at, Input::Failed, &self.crew.policy)),
                None => None,
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

    /// Dials and records the attempt; none = stopped. An error tells when the attempt was over.
    async fn dial(&mut self, dial: Dial) -> Option<Result<Opened, Elapsed>> {
        let resumed_from = self.cursor.filter(|c| c.has_id());
        let call = self.call(resumed_from);
        let mut stamps = Stamps::default();
        let result = {
            let dialler = &self.crew.dialler;
            // Boxed: while the connection is open, which is nearly always, it costs nothing.
            let mut dialling = Box::pin(dialler.dial(dial.due, call, self.source, &mut stamps));
            tokio::select! {
                biased;
                _ = poll_fn(|cx| self.handle.poll_order(cx, 0)) => Err(AttemptOutcome::Aborted),
                result = &mut dialling => result,
            }
        };
        let result = result.map_err(|outcome| hide::outcome(outcome, || self.secrets()));
        let stopped = matches!(result, Err(AttemptOutcome::Aborted));
        if stopped && stamps.dialled.is_none() {
            return None;
        }
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
            resumed_from: resumed_from.map(|known| known.event),
        });
        if let Some(delay) = stamps.retry_after {
            self.handle.lock().recorder.retry_after(ended, delay);
        }
        (!stopped).then(|| result.map_err(|_| ended))
    }

    fn call(&self, cursor: Option<Known>) -> Result<Call, String> {
        let event = cursor.map(|known| self.crew.table.get(known.event));
        let after = event.as_ref().and_then(|event| event.id.as_deref());
        self.crew.plan.call(self.handle.id(), after.unwrap_or(""))
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
            }
        }
        if opened {
            self.machine.on(at, Input::Opened, &self.crew.policy);
            self.status(Status::Connected);
        } else if !aborted {
            self.crew.counters.failed.fetch_add(1, Relaxed);
        }
    }

    /// Reads until the connection ends and says what the machine makes of it; none = stopped.
    async fn session(&mut self, mut connection: Connection) -> Option<Action> {
        let cause = loop {
            match self.step(&mut connection).await {
                Step::Message(payload) => self.receive(&payload),
                Step::End(cause) => break cause,
                Step::Ordered(Order::HalfOpen) => break Cause::HalfOpen,
                Step::Ordered(Order::Stop) => break Cause::Herd,
            }
        };
        let at = self.now();
        let cause = hide::cause(cause, || self.secrets());
        self.handle.lock().recorder.closed(at, cause.clone());
        if cause == Cause::Herd {
            connection
                .leave(self.crew.dialler.clock.instant(at + GOODBYE))
                .await;
            return None;
        }
        self.handle.lock().progress.dropped = Some(at);
        self.status(Status::Reconnecting);
        let action = self.machine.on(at, Input::Closed, &self.crew.policy);
        if is_close_sent(&cause) {
            let until = match &action {
                Action::Dial(dial) => dial.due.min(at + GOODBYE),
                _ => at + GOODBYE,
            };
            connection
                .linger(self.crew.dialler.clock.instant(until))
                .await;
        }
        Some(action)
    }

    async fn step(&self, connection: &mut Connection) -> Step {
        poll_fn(|cx| {
            // An order first, or a server that never pauses could not be left.
            if let Some(order) = self.handle.order(self.session) {
                return Poll::Ready(Step::Ordered(order));
            }
            let next = connection.poll_next(cx);
            if let Some(delay) = connection.take_retry() {
                self.handle.lock().recorder.retry_after(self.now(), delay);
            }
            match next {
                Poll::Ready(Ok(payload)) => Poll::Ready(Step::Message(payload)),
                Poll::Ready(Err(cause)) => Poll::Ready(Step::End(cause)),
                Poll::Pending => self.handle.poll_order(cx, self.session).map(Step::Ordered),
            }
        })
        .await
    }

    /// The hot path: nothing here allocates for an event whose frame any client saw before.
    fn receive(&mut self, payload: &Payload) {
        let at = self.now();
        let parts = self.crew.table.read(payload.frame(), &mut self.guess);
        for part in parts.as_slice() {
            match part {
                Part::Event(known) => self.event(at, *known),
                Part::Reset(known) => self.reset(at, *known),
                Part::CaughtUp => self.handle.lock().recorder.marker(at),
                Part::Unread => self.unread(at, payload),
            }
        }
    }

    fn event(&mut self, at: Elapsed, known: Known) {
        let own = known.seq.filter(|seq| self.crew.own.holds(*seq));
        // Where herd publishes, only its own events are sure to be the stream's: presence, answers and beats have ids too,
        // and no server can resume from those. What others published meanwhile may come again, and is in no gate.
        let resumable = own.is_some() || self.crew.source == Source::Others;
        let supersedes = resumable && self.crew.table.supersedes(known, self.cursor);
        let input = Input::Event {
            event: known.event,
            supersedes,
        };
        self.machine.on(at, input, &self.crew.policy);
        if supersedes {
            self.cursor = Some(known);
        }
        self.crew.counters.receipts.fetch_add(1, Relaxed);
        let mut state = self.handle.lock();
        state.recorder.receipt(at, known.event);
        state.progress.last_receipt = Some(at);
        state.progress.has_cursor |= supersedes;
        if let Some(seq) = own {
            state.numbers.insert(seq.0);
        }
    }

    fn reset(&mut self, at: Elapsed, known: Known) {
        let input = Input::Reset { event: known.event };
        self.machine.on(at, input, &self.crew.policy);
        self.cursor = Some(known);
        let mut state = self.handle.lock();
        state.recorder.reset(at, known.event);
        state.progress.last_reset = Some(at);
        state.progress.has_cursor = known.has_id();
    }

    fn unread(&mut self, at: Elapsed, payload: &Payload) {
        let (most, bytes) = UNREAD;
        if self.unread < most {
            self.unread += 1;
            let text = safe(payload.frame().bytes, bytes);
            let text: Box<str> = self.secrets().redact(&text).into();
            let mut state = self.handle.lock();
            state.unread.get_or_insert_with(|| text.clone());
            state.recorder.unread(at, text);
        }
    }

    /// What the server may repeat and nobody may write down.
    fn secrets(&self) -> Secrets {
        let run = self.crew.secrets();
        hide::secrets(run, &self.crew.plan, self.handle.id())
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

/// Whether a close frame is on its way to a server that may still be there to read it.
fn is_close_sent(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Close { .. } | Cause::Utf8 | Cause::Oversize | Cause::Protocol(_)
    )
}

#[cfg(test)]
pub(crate) mod tests;
