//! One open connection: what arrives is recorded in the order of the wire, and what the profile says goes out.
//!
//! It knows neither why the connection was dialled nor what the machine makes of its end.

mod heard;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio_tungstenite::tungstenite::http::HeaderMap;

use super::Client;
use super::alarm::Alarm;
use super::handle::{Order, Status};
use super::machine::{Action, Input};
use super::table::Part;
use super::vigil::Vigil;
use super::{ending, hide};
use crate::history::Cause;
use crate::profile::{Carried, Ending, Fate, Turn};
use crate::template::Values;
use crate::transport::{Connection, Opened, Payload};
use heard::{Needs, Sample};

/// How long a server may take to close after the close frames.
const GOODBYE: Duration = Duration::from_secs(1);

/// What an open connection brought.
enum Step {
    Message(Payload),
    End(Cause),
    Ordered(Order),
    /// The profile's time has come.
    Due,
    /// The stream named a time until reconnects.
    Retry(Duration),
}

impl Client<'_> {
    /// Talks until the connection ends and says what the machine makes of it; none = stopped.
    pub(super) async fn session(&mut self, opened: Opened) -> Option<Action> {
        let Opened {
            mut connection,
            headers,
        } = opened;
        let mut alarm = Alarm::default();
        let (beat, transport) = (self.crew.heartbeat, self.crew.plan.profile().transport());
        let mut vigil = Vigil::new(beat, transport, self.now());
        let mut end = self.greet(&mut connection, &headers);
        drop(headers);
        let mut opening = true;
        let cause = loop {
            if let Some(cause) = end {
                break cause;
            }
            if opening && !self.talk.is_opening(self.crew.plan.profile()) {
                opening = false;
                self.machine
                    .on(self.now(), Input::Acknowledged, self.policy);
            }
            end = match self.step(&mut connection, &mut alarm, &mut vigil).await {
                Step::Message(payload) => self.receive(&mut connection, &payload, &mut vigil),
                Step::Due => self.tick(&mut connection, &mut vigil),
                Step::Retry(delay) => self.told_to_wait(delay),
                Step::End(cause) => Some(cause),
                Step::Ordered(Order::HalfOpen) => Some(Cause::HalfOpen),
                Step::Ordered(Order::Stop) => Some(Cause::Herd),
                Step::Ordered(Order::Refresh(memory)) => {
                    // Boxed, as below.
                    return Some(Box::pin(self.closed_as_a_tab(connection, memory)).await);
                }
            };
        };
        // A `retry:` may have come with the end.
        if let Some(delay) = connection.take_retry() {
            self.told_to_wait(delay);
        }
        self.note_silence(&cause, &vigil);
        // Boxed: what the end needs must not be kept by every open connection.
        Box::pin(self.ended(connection, cause)).await
    }

    async fn step(
        &mut self,
        connection: &mut Connection,
        alarm: &mut Alarm,
        vigil: &mut Vigil,
    ) -> Step {
        let (clock, talk) = (&self.crew.dialler.clock, &mut self.talk);
        poll_fn(|cx| {
            // An order first, or a server that never pauses could not be left.
            if let Some(order) = self.handle.order(self.session) {
                return Poll::Ready(Step::Ordered(order));
            }
            if let Some(delay) = connection.take_retry() {
                return Poll::Ready(Step::Retry(delay));
            }
            let next = connection.poll_next(cx);
            vigil.look(connection, talk, clock);
            match next {
                Poll::Ready(Ok(payload)) => return Poll::Ready(Step::Message(payload)),
                Poll::Ready(Err(cause)) => return Poll::Ready(Step::End(cause)),
                Poll::Pending => {}
            }
            // Time last: what has arrived is a sign of life, however late herd comes to read it.
            match self.handle.poll_order(cx, self.session) {
                Poll::Ready(order) => Poll::Ready(Step::Ordered(order)),
                Poll::Pending => alarm.poll(cx, clock, vigil.due(talk)).map(|()| Step::Due),
            }
        })
        .await
    }

    /// A session that ends because it is silent: since when it was.
    fn note_silence(&self, cause: &Cause, vigil: &Vigil) {
        let mut state = self.handle.lock();
        let since = match cause {
            Cause::Heartbeat => vigil.silent_since(&self.talk),
            Cause::HalfOpen => {
                let opened = state.progress.opened;
                opened.max(state.progress.last_receipt).unwrap_or_default()
            }
            _ => return,
        };
        state.recorder.silent(since);
    }

    /// The session is over: records why, and asks the machine what comes next.
    async fn ended(&mut self, connection: Connection, cause: Cause) -> Option<Action> {
        let at = self.now();
        let cause = hide::cause(cause, |text| self.hidden(text));
        let fate = self.fate(&cause);
        if fate == Fate::Reset {
            self.refused(at, &told(&cause));
        }
        let waiting = self.talk.unanswered(self.crew.plan.profile());
        let waiting = waiting.map(|text| self.hidden(&text));
        {
            let recorder = &mut self.handle.lock().recorder;
            waiting
                .into_iter()
                .for_each(|text| recorder.unanswered(text));
            recorder.closed(at, cause.clone());
        }
        if cause == Cause::Herd {
            connection
                .leave(self.crew.dialler.clock.instant(at + GOODBYE))
                .await;
            return None;
        }
        self.handle.lock().progress.dropped = Some(at);
        self.status(Status::Reconnecting);
        self.tell_cursor(at);
        let ending = ending::of_session(&cause, self.crew.plan.profile().transport());
        let next = if self.stops(fate, ending) {
            Input::Stopped { why: told(&cause) }
        } else {
            Input::Closed { ending }
        };
        let action = self.machine.on(at, next, self.policy);
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

    /// What the protocol makes of an end. One that herd itself made says nothing of the server.
    fn fate(&self, cause: &Cause) -> Fate {
        let profile = self.crew.plan.profile();
        match cause {
            // RFC 6455 calls a close frame without a code 1005.
            Cause::Close { code, .. } => profile.after_close(Some(code.unwrap_or(1005))),
            Cause::Eof | Cause::Reset => profile.after_close(None),
            _ => Fate::Reconnect,
        }
    }

    fn greet(&mut self, connection: &mut Connection, headers: &HeaderMap) -> Option<Cause> {
        let at = self.now();
        let header = |name: &str| {
            let value = headers.get(name)?;
            String::from_utf8(value.as_bytes().to_vec()).ok()
        };
        let plan = &self.crew.plan;
        let values = Values {
            cursor: self.resumed.as_ref().and_then(|event| event.id.as_deref()),
            ..plan.values(self.handle.id(), self.target)
        };
        let turn = self
            .talk
            .open(plan.profile(), at.duration(), &values, &header);
        if turn.reset {
            self.reset(at, self.crew.table.nothing());
        }
        self.tell_opening();
        speak(connection, turn)
    }

    /// Open is not subscribed: the conductor waits until the opening is done.
    fn tell_opening(&self) {
        let opening = self.talk.is_opening(self.crew.plan.profile());
        self.handle.lock().progress.opening = opening;
    }

    /// The hot path: nothing here allocates for an event whose frame any client saw before.
    fn receive(
        &mut self,
        connection: &mut Connection,
        payload: &Payload,
        vigil: &mut Vigil,
    ) -> Option<Cause> {
        let (at, frame) = (self.now(), payload.frame());
        let plan = &self.crew.plan;
        let turn = if self.talk.wants(plan.profile(), frame) {
            let values = Values {
                cursor: self.resumed.as_ref().and_then(|event| event.id.as_deref()),
                ..plan.values(self.handle.id(), self.target)
            };
            let opening = self.talk.is_opening(plan.profile());
            let turn = self
                .talk
                .hear(plan.profile(), at.duration(), frame, &values);
            if opening {
                self.tell_opening();
            }
            turn
        } else {
            Turn::default()
        };
        if turn.reset {
            self.reset(at, self.crew.table.nothing());
        }
        let carried = match self.resumed {
            None => Carried::Nothing,
            Some(_) => Carried::Cursor,
        };
        let parts = self.crew.table.read(frame, carried, &mut self.guess);
        let (mut end, mut sample) = (None, None);
        for part in parts.as_slice() {
            match part {
                Part::Event(known, token) => {
                    if self.event(at, *known, token.as_ref()) == Needs::Missing {
                        sample = sample.max(Some(Sample::Lacking));
                    }
                }
                Part::Cursor(token) => self.moved(token.as_ref()),
                Part::Reset(known) => self.reset(at, *known),
                Part::CaughtUp => self.handle.lock().recorder.marker(at),
                Part::Refused(text) => self.refused(at, text),
                Part::Fatal(text) => {
                    end = Some(Cause::Declined((&**text).into()));
                    break;
                }
                Part::Unread => sample = sample.max(Some(Sample::Unread)),
                Part::Traced(numbers) => {
                    self.traced(at, numbers);
                    sample = Some(Sample::Traced);
                }
            }
        }
        if let Some(sample) = sample {
            self.keep(at, payload, sample);
        }
        let ended = speak(connection, turn);
        if end.is_none()
            && ended.is_none()
            && vigil
                .due(&self.talk)
                .is_some_and(|due| due <= at.duration())
        {
            // A server that never pauses must not keep the client from its own beat.
            return self.tick(connection, vigil);
        }
        end.or(ended)
    }

    /// `retry:`: recorded, and the policy decides whether it obeys.
    fn told_to_wait(&mut self, delay: Duration) -> Option<Cause> {
        let at = self.now();
        self.handle.lock().recorder.retry_after(at, delay);
        self.machine.on(at, Input::Retry { delay }, self.policy);
        None
    }

    fn tick(&mut self, connection: &mut Connection, vigil: &mut Vigil) -> Option<Cause> {
        let at = self.now();
        if let Some(cause) = vigil.tick(connection, at.duration()) {
            return Some(cause);
        }
        if self.talk.due().is_none_or(|due| due > at.duration()) {
            return None;
        }
        let plan = &self.crew.plan;
        let values = Values {
            cursor: self.resumed.as_ref().and_then(|event| event.id.as_deref()),
            ..plan.values(self.handle.id(), self.target)
        };
        let turn = self.talk.tick(plan.profile(), at.duration(), &values);
        speak(connection, turn)
    }
}

/// Sends what the profile says; why the session is to be ended, if it is.
fn speak(connection: &mut Connection, turn: Turn) -> Option<Cause> {
    for text in &turn.say {
        connection.send(text);
    }
    turn.end.map(|end| match end {
        Ending::Unanswered(_) => Cause::Unanswered,
        Ending::Silent(_) => Cause::Heartbeat,
    })
}

/// An end in the server's words.
fn told(cause: &Cause) -> Box<str> {
    match cause {
        Cause::Close { code, reason } => {
            let code = code.unwrap_or(1005);
            format!("close {code} {reason}").trim_end().into()
        }
        other => other.name().into(),
    }
}

/// Whether a close frame is on its way to a server that may still be there to read it.
fn is_close_sent(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Close { .. } | Cause::Utf8 | Cause::Oversize | Cause::Protocol(_)
    )
}
