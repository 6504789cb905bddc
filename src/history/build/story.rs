//! One client's part of a built history, told in the order of its instants.

use std::collections::HashMap;
use std::time::Duration;

use super::SEQ_BASE;
use crate::history::{
    Attempt, AttemptOutcome, Cause, Client, ClientEvent, Elapsed, Event, EventIx, Memory, Quit,
    Reload, Seq,
};

/// One client's story; call its methods in the order of their instants.
#[derive(Debug)]
pub struct Story<'a> {
    pub(super) client: &'a mut Client,
    pub(super) events: &'a mut Vec<Event>,
    pub(super) index: &'a mut HashMap<Event, EventIx>,
}

impl Story<'_> {
    fn intern(&mut self, event: Event) -> EventIx {
        let events = &mut *self.events;
        *self.index.entry(event).or_insert_with_key(|event| {
            events.push(event.clone());
            EventIx(events.len() as u32 - 1)
        })
    }

    /// A dial at `ms` that ended otherwise than open, 1 ms later.
    pub fn failed(&mut self, ms: u64, outcome: AttemptOutcome) -> &mut Self {
        let at = Elapsed::from_millis(ms);
        let connected = matches!(outcome, AttemptOutcome::Handshake { .. }).then_some(at);
        let attempt = self.client.attempts.len() as u32;
        let ended = at + Duration::from_millis(1);
        self.attempt(Attempt {
            attempt,
            due: at,
            dialled: at,
            connected,
            ended,
            outcome,
            resumed_from: None,
            target: 0,
        })
    }

    /// A dial at `ms` that was open 1 ms later, carrying no cursor.
    pub fn open(&mut self, ms: u64) -> &mut Self {
        self.opened(ms, ms, ms + 1, None)
    }

    /// A dial at `ms` that was open 1 ms later, carrying the id of event `n`.
    pub fn resume(&mut self, ms: u64, n: u64) -> &mut Self {
        self.opened(ms, ms, ms + 1, Some(n))
    }

    /// A dial at `ms` that was open 1 ms later, carrying a cursor that is no event's id.
    pub fn resume_cursor(&mut self, ms: u64, cursor: &str) -> &mut Self {
        let cursor = self.intern(Event {
            id: Some(cursor.into()),
            ..Event::default()
        });
        self.dial(ms, ms, ms + 1, Some(cursor))
    }

    /// A dial with each of its instants told.
    pub fn opened(&mut self, due: u64, dialled: u64, opened: u64, from: Option<u64>) -> &mut Self {
        let resumed_from = from.map(|n| self.event(n));
        self.dial(due, dialled, opened, resumed_from)
    }

    fn dial(&mut self, due: u64, dialled: u64, opened: u64, from: Option<EventIx>) -> &mut Self {
        let dialled = Elapsed::from_millis(dialled);
        self.attempt(Attempt {
            attempt: 0,
            due: Elapsed::from_millis(due),
            dialled,
            connected: Some(dialled),
            ended: Elapsed::from_millis(opened),
            outcome: AttemptOutcome::Opened,
            resumed_from: from,
            target: 0,
        })
    }

    /// A dial told whole.
    pub fn attempt(&mut self, attempt: Attempt) -> &mut Self {
        if attempt.outcome == AttemptOutcome::Opened {
            self.client.stream.session(attempt.ended);
        }
        self.client.push(ClientEvent::Attempt(attempt));
        self
    }

    /// The event number `n` as the server would send it.
    pub fn event(&mut self, n: u64) -> EventIx {
        self.intern(Self::variant(n, |_| {}))
    }

    /// Event `n` as the server would send it, told apart from [`Story::event`] by `change`: another order key, an epoch,
    /// a mark of redelivery.
    #[must_use]
    pub fn variant(n: u64, change: impl FnOnce(&mut Event)) -> Event {
        let mut event = Event {
            id: Some(n.to_string().into()),
            seq: Some(Seq(SEQ_BASE + n)),
            digest: n + 1,
            ..Event::default()
        };
        change(&mut event);
        event
    }

    /// Event `n` arrived with this order key.
    pub fn got_ordered(&mut self, ms: u64, n: u64, order: &str) -> &mut Self {
        self.got_event(ms, Self::variant(n, |e| e.order = Some(order.into())))
    }

    /// Event `n` arrived under this id of this epoch.
    pub fn got_in_epoch(&mut self, ms: u64, n: u64, epoch: &str, id: &str) -> &mut Self {
        let named = |e: &mut Event| (e.epoch, e.id) = (Some(epoch.into()), Some(id.into()));
        self.got_event(ms, Self::variant(n, named))
    }

    /// Event `n` arrived, marked as one that may have been sent before.
    pub fn got_marked(&mut self, ms: u64, n: u64) -> &mut Self {
        self.got_event(ms, Self::variant(n, |e| e.redelivered = true))
    }

    /// Event `n` arrived.
    pub fn got(&mut self, ms: u64, n: u64) -> &mut Self {
        let event = self.event(n);
        self.client.stream.receipt(Elapsed::from_millis(ms), event);
        self
    }

    /// Events arrived together.
    pub fn got_all(&mut self, ms: u64, numbers: std::ops::RangeInclusive<u64>) -> &mut Self {
        for n in numbers {
            self.got(ms, n);
        }
        self
    }

    /// Events arrived one by one, the first at `ms`, the others every `step_ms`.
    pub fn got_every(
        &mut self,
        ms: u64,
        step_ms: u64,
        numbers: std::ops::RangeInclusive<u64>,
    ) -> &mut Self {
        let first = *numbers.start();
        for n in numbers {
            self.got(ms + (n - first) * step_ms, n);
        }
        self
    }

    /// Any event arrived.
    pub fn got_event(&mut self, ms: u64, event: Event) -> &mut Self {
        let event = self.intern(event);
        self.client.stream.receipt(Elapsed::from_millis(ms), event);
        self
    }

    /// The server told the client to reload, naming an id.
    pub fn reset(&mut self, ms: u64, id: &str) -> &mut Self {
        self.reset_to(
            ms,
            Event {
                id: Some(id.into()),
                ..Event::default()
            },
        )
    }

    /// The server told the client to reload, naming what this event holds, which may be nothing.
    pub fn reset_to(&mut self, ms: u64, event: Event) -> &mut Self {
        let event = self.intern(event);
        self.client.stream.reset(Elapsed::from_millis(ms), event);
        self
    }

    /// The connection was lost.
    pub fn dropped(&mut self, ms: u64) -> &mut Self {
        self.closed(ms, Cause::Eof)
    }

    /// The session ended for this cause.
    pub fn closed(&mut self, ms: u64, cause: Cause) -> &mut Self {
        self.client.push(ClientEvent::Closed {
            at: Elapsed::from_millis(ms),
            cause,
        });
        self
    }

    /// The session is about to end, and the last sign of life came then.
    pub fn silent(&mut self, since_ms: u64) -> &mut Self {
        self.client.push(ClientEvent::Silent {
            since: Elapsed::from_millis(since_ms),
        });
        self
    }

    /// The client stopped for good.
    pub fn quit(&mut self, ms: u64, why: Quit) -> &mut Self {
        self.client.push(ClientEvent::Quit {
            at: Elapsed::from_millis(ms),
            why,
        });
        self
    }

    /// The client started anew.
    pub fn refreshed(&mut self, ms: u64, memory: Memory) -> &mut Self {
        self.client.push(ClientEvent::Refreshed {
            at: Elapsed::from_millis(ms),
            memory,
        });
        self
    }

    /// The client asked for the full state, and the answer ended `took` ms later with this status.
    pub fn reloaded(&mut self, ms: u64, took: u64, status: u16) -> &mut Self {
        let done = (200..300).contains(&status);
        let why = format!("status {status}");
        self.client.push(ClientEvent::Reloaded(Reload {
            asked: Elapsed::from_millis(ms),
            ended: Elapsed::from_millis(ms + took),
            status: Some(status),
            bytes: 10,
            why: if done { "".into() } else { why.into() },
        }));
        self
    }

    /// The server refused to resume the open session, or, after its end, the dial that follows.
    pub fn refused(&mut self, ms: u64, words: &str) -> &mut Self {
        self.client.push(ClientEvent::ResumeRefused {
            at: Elapsed::from_millis(ms),
            text: words.into(),
        });
        self
    }

    /// A frame came that was not read as event `n`, though its number stood in it.
    pub fn traced(&mut self, ms: u64, n: u64) -> &mut Self {
        self.client.push(ClientEvent::Traced {
            at: Elapsed::from_millis(ms),
            first: Seq(SEQ_BASE + n),
            last: Seq(SEQ_BASE + n),
        });
        self
    }

    /// A frame came that was not read as an event, and this much of it was kept.
    pub fn unread(&mut self, ms: u64, text: &str) -> &mut Self {
        self.client.push(ClientEvent::Unread {
            at: Elapsed::from_millis(ms),
            text: text.into(),
        });
        self
    }

    /// A frame came that was read as an event and lacked what herd needs of one.
    pub fn lacking(&mut self, ms: u64, text: &str) -> &mut Self {
        self.client.push(ClientEvent::Lacking {
            at: Elapsed::from_millis(ms),
            text: text.into(),
        });
        self
    }

    /// The session is about to end, and its opening was never finished.
    pub fn unanswered(&mut self, text: &str) -> &mut Self {
        self.client
            .push(ClientEvent::Unanswered { text: text.into() });
        self
    }

    /// The server named a delay after which to come back.
    pub fn retry_after(&mut self, ms: u64, delay_ms: u64) -> &mut Self {
        self.client.push(ClientEvent::RetryAfter {
            at: Elapsed::from_millis(ms),
            delay: Duration::from_millis(delay_ms),
        });
        self
    }

    /// The server said "caught up".
    pub fn marker(&mut self, ms: u64) -> &mut Self {
        self.client.push(ClientEvent::Marker {
            at: Elapsed::from_millis(ms),
        });
        self
    }
}
