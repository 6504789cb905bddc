//! What idempotent handlers behind the clients would make of repeated events: one that remembers everything that it
//! applied, the last so many, or what it applied within a time.
//!
//! It is told what `exactly-once` made of each receipt (new, or a repeat) and judges nothing: the numbers are for
//! whoever builds such a handler. Handlers live as long as the run; no connection's end makes them forget.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Ms;
use crate::history::{DeliveryMode, Elapsed, Remembers, Terms};

/// The handlers that are asked about where the user accepts repeats and names none.
const USUAL: [Remembers; 3] = [
    Remembers::Everything,
    Remembers::Last(1_000),
    Remembers::For(Duration::from_secs(600)),
];

/// The handlers that a run asks about: those that the user named, or, where repeats are accepted, three usual ones.
#[must_use]
pub fn handlers(terms: &Terms) -> Vec<Remembers> {
    match (terms.dedupe.is_empty(), terms.delivery) {
        (true, DeliveryMode::AtLeastOnce) => USUAL.into(),
        _ => terms.dedupe.clone(),
    }
}

/// What one receipt was to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// An event that it lacked: a handler applies it, whatever it remembers.
    New(u32),
    /// An event that it had.
    Repeat(u32, Kind),
    /// Something else that a handler would apply and remember: an event of somebody else's.
    Other,
}

/// Which repeats the protocol allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It doesn't: the event is duplicated.
    Duplicated,
    /// It does: the event is redelivered.
    Redelivered,
}

/// One client's receipts, in order.
#[derive(Debug, Default)]
pub struct Log(Vec<(Elapsed, Delivery)>);

impl Log {
    /// Adds one.
    pub fn push(&mut self, at: Elapsed, delivery: Delivery) {
        self.0.push((at, delivery));
    }
}

/// What handlers would make of the repeats of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DedupeFacts {
    /// Receipts of an event that the client had and should not have got again.
    pub duplicated: u64,
    /// Receipts of an event that the client had and, by the protocol, might get again.
    pub redelivered: u64,
    /// What each handler would make of them.
    pub handlers: Vec<HandlerFacts>,
    /// The least number of events that a handler must remember so that nothing is applied twice; 0 where nothing was repeated.
    pub enough_last: u64,
    /// The least time for which it must; 0 where nothing was repeated, or at once.
    pub enough_for_ms: Ms,
}

/// What one handler would make of the repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HandlerFacts {
    /// What it remembers, as people read it: `everything`, `last 1000`, `for 10m`.
    pub remembers: String,
    /// Repeats that it would apply all the same.
    pub applied_twice: u64,
    /// Of these, repeats that the protocol allows.
    pub redelivered: u64,
    /// Clients behind which that would happen.
    pub clients: u64,
}

/// Adds up what the handlers behind all clients make of their repeats.
#[derive(Debug)]
pub struct Handlers {
    remember: Vec<Remembers>,
    facts: DedupeFacts,
    enough_for: Duration,
}

impl Handlers {
    /// Those that a run asks about; none where it asks about none.
    #[must_use]
    pub fn new(terms: &Terms) -> Option<Self> {
        let remember = handlers(terms);
        let facts = |r: &Remembers| HandlerFacts {
            remembers: words(*r),
            ..HandlerFacts::default()
        };
        let facts = DedupeFacts {
            handlers: remember.iter().map(facts).collect(),
            ..DedupeFacts::default()
        };
        (!remember.is_empty()).then_some(Self {
            remember,
            facts,
            enough_for: Duration::ZERO,
        })
    }

    /// Adds a client. One without repeats costs nothing.
    pub fn add(&mut self, log: &Log) {
        let repeats = log.0.iter().filter_map(|(_, delivery)| match delivery {
            Delivery::Repeat(_, kind) => Some(*kind),
            Delivery::New(_) | Delivery::Other => None,
        });
        let before = self.facts.duplicated + self.facts.redelivered;
        for kind in repeats {
            match kind {
                Kind::Duplicated => self.facts.duplicated += 1,
                Kind::Redelivered => self.facts.redelivered += 1,
            }
        }
        if before == self.facts.duplicated + self.facts.redelivered {
            return;
        }
        for (remembers, facts) in self.remember.iter().zip(&mut self.facts.handlers) {
            let mut handler = Handler::new(*remembers);
            let mut applied_twice = 0;
            for (at, delivery) in &log.0 {
                if handler.receive(*at, *delivery) == Applied::Twice {
                    applied_twice += 1;
                    let allowed = matches!(delivery, Delivery::Repeat(_, Kind::Redelivered));
                    facts.redelivered += u64::from(allowed);
                }
            }
            facts.applied_twice += applied_twice;
            facts.clients += u64::from(applied_twice > 0);
        }
        self.bounds(log);
    }

    /// What would be enough: how far a repeat lies behind what it repeats where nothing was ever applied twice.
    fn bounds(&mut self, log: &Log) {
        let mut handler = Handler::new(Remembers::Everything);
        for (at, delivery) in &log.0 {
            if let Delivery::Repeat(event, _) = delivery
                && let Some(age) = handler.age(*at, *event)
            {
                self.facts.enough_last = self.facts.enough_last.max(age.events);
                self.enough_for = self.enough_for.max(age.time);
            }
            handler.receive(*at, *delivery);
        }
    }

    /// What it comes to.
    #[must_use]
    pub fn facts(mut self) -> DedupeFacts {
        self.facts.enough_for_ms = self.enough_for.as_micros() as f64 / 1e3;
        self.facts
    }
}

fn words(remembers: Remembers) -> String {
    match remembers {
        Remembers::Everything => "everything".into(),
        Remembers::Last(n) => format!("last {n}"),
        Remembers::For(time) => format!("for {}", humantime::format_duration(time)),
    }
}

/// What a handler did with a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    Once,
    Twice,
    Skipped,
}

/// How long ago an event was applied last.
struct Age {
    /// How many a handler must remember to remember it: the event itself and those applied since.
    events: u64,
    time: Duration,
}

/// One client's handler. What it remembers it never moves up: a repeat that it skips is no news.
struct Handler {
    remembers: Remembers,
    /// How many events it applied.
    applied: u64,
    /// By event: the number, from 1, under which it was applied last, and when.
    last: HashMap<u32, (u64, Elapsed)>,
}

impl Handler {
    fn new(remembers: Remembers) -> Self {
        Self {
            remembers,
            applied: 0,
            last: HashMap::new(),
        }
    }

    fn age(&self, now: Elapsed, event: u32) -> Option<Age> {
        let (number, at) = self.last.get(&event)?;
        Some(Age {
            events: self.applied - number + 1,
            time: now.since(*at),
        })
    }

    fn receive(&mut self, at: Elapsed, delivery: Delivery) -> Applied {
        let (event, applied) = match delivery {
            Delivery::Other => {
                self.applied += 1;
                return Applied::Once;
            }
            Delivery::New(event) => (event, Applied::Once),
            Delivery::Repeat(event, _) if self.remembers(at, event) => return Applied::Skipped,
            Delivery::Repeat(event, _) => (event, Applied::Twice),
        };
        self.applied += 1;
        self.last.insert(event, (self.applied, at));
        applied
    }

    fn remembers(&self, now: Elapsed, event: u32) -> bool {
        self.age(now, event)
            .is_some_and(|age| match self.remembers {
                Remembers::Everything => true,
                Remembers::Last(n) => age.events <= u64::from(n),
                Remembers::For(time) => age.time <= time,
            })
    }
}

#[cfg(test)]
mod tests;
