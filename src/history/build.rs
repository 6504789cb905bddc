//! Histories in a few lines, for tests and for whoever wants to see what the judge makes of a case.
//!
//! The builder records what it is told and nothing else: it doesn't know what is right. Instants are milliseconds,
//! numbers are those that people see (from 1), ids are the number as text unless said otherwise.

mod story;

use std::collections::HashMap;
use std::time::Duration;

use super::{
    Client, ClientId, DeliveryMode, Duplicates, Elapsed, End, Event, EventIx, Fate, Header,
    History, IdKind, Mark, OutageTerms, PolicySource, Publication, PublicationKind, Seq, Shard,
    Source, Terms, TriggerKind,
};

pub use story::Story;

/// The number before the first one of a built history.
pub const SEQ_BASE: u64 = 7 << 20;

/// herd's default policy as a history holds it.
pub const FULL_JITTER: &str = r#"{"parts":[{"name":"full-jitter","share":1.0,"backoff":{"first":{"steps":[]},
    "then":{"base":{"least":{"secs":5,"nanos":0},"most":{"secs":5,"nanos":0}},"grows":{"times":2.0},"cap":{"secs":60,"nanos":0},
    "jitter":"full","plus":{"secs":0,"nanos":0},"ceiling":null},"counted":"from-end","limits":{"attempts":null,"elapsed":null,"slow":null},
    "reset":"on-open","connect":null,"rules":[],"hints":{"retry":null,"retry_after":"ignored"},"fallback":null,"requests":1}}]}"#;

/// Builds a [`History`].
#[derive(Debug, Clone)]
pub struct Builder {
    history: History,
    index: HashMap<Event, EventIx>,
}

/// A header as a run of the embedded server with full jitter would have it.
#[must_use]
pub fn header(clients: u32) -> Header {
    Header {
        herd: "test".into(),
        run: "test".into(),
        started_unix_us: 1_700_000_000_000_000,
        name: "built".into(),
        scenario: String::new(),
        repeat: "herd run --seed 1".into(),
        seed: 1,
        clients,
        shard: Shard::WHOLE,
        seq_base: SEQ_BASE,
        seq_span: 1 << 20,
        terms: terms(),
    }
}

/// What a run of the embedded server with full jitter is asked to prove by default.
#[must_use]
pub fn terms() -> Terms {
    Terms {
        policy_name: "full-jitter".into(),
        policy: FULL_JITTER.into(),
        policy_source: PolicySource::Named,
        profile: "after".into(),
        target: "embedded".into(),
        outages: vec![OutageTerms::plain(TriggerKind::Child)],
        targets: 1,
        silence: None,
        source: Source::Herd,
        ids: IdKind::Integer,
        contiguous: false,
        duplicates: Duplicates::Forbidden,
        idempotent: true,
        min_spread: Duration::from_secs(5),
        max_peak: 0.75,
        peak_window: Duration::from_secs(1),
        delivery: DeliveryMode::ExactlyOnce,
        max_resets: 0,
        settle: Duration::from_secs(30),
        reconnect_limit: None,
        max_recovery: None,
        max_staleness: None,
        dedupe: Vec::new(),
    }
}

impl Builder {
    /// A run with this many clients, none of which has done anything yet.
    #[must_use]
    pub fn new(clients: u32) -> Self {
        let mut history = History::new(header(clients));
        history.clients = (1..=clients).map(|k| Client::new(ClientId(k))).collect();
        Self {
            history,
            index: HashMap::new(),
        }
    }

    /// Changes what the run was asked to prove.
    #[must_use]
    pub fn terms(mut self, change: impl FnOnce(&mut Terms)) -> Self {
        change(&mut self.history.header.terms);
        self
    }

    /// Changes the header.
    #[must_use]
    pub fn header(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(&mut self.history.header);
        self
    }

    /// Something happened to the run.
    #[must_use]
    pub fn mark(mut self, ms: u64, mark: Mark) -> Self {
        self.history.marks.push((Elapsed::from_millis(ms), mark));
        self
    }

    /// An outage of a supervised server: trigger, process gone 1 ms later, ready again.
    #[must_use]
    pub fn outage(self, outage: u32, trigger_ms: u64, ready_ms: u64) -> Self {
        self.mark(trigger_ms, Mark::Trigger { outage })
            .mark(trigger_ms + 1, Mark::Gone { outage })
            .mark(ready_ms, Mark::Ready { outage })
    }

    /// A publication accepted 1 ms after it was sent, under its number as the id.
    #[must_use]
    pub fn acked(self, n: u64, ms: u64) -> Self {
        self.publication(n, ms, |_| {})
    }

    /// Several accepted publications, the first at `ms`, the others every `step_ms`.
    #[must_use]
    pub fn acked_every(mut self, n: std::ops::RangeInclusive<u64>, ms: u64, step_ms: u64) -> Self {
        let first = *n.start();
        for k in n {
            self = self.acked(k, ms + (k - first) * step_ms);
        }
        self
    }

    /// A publication that differs from [`Builder::acked`] by `change`.
    #[must_use]
    pub fn publication(mut self, n: u64, ms: u64, change: impl FnOnce(&mut Publication)) -> Self {
        let at = Elapsed::from_millis(ms);
        let mut publication = Publication {
            seq: Seq(SEQ_BASE + n),
            kind: PublicationKind::Expected,
            due: at,
            first_sent: at,
            sent: at,
            answered: Some(at + Duration::from_millis(1)),
            fate: Fate::Acked,
            id: Some(n.to_string().into()),
            position: None,
            tries: 1,
            lost_answers: 0,
        };
        change(&mut publication);
        self.history
            .publications
            .insert(publication.seq, publication);
        self
    }

    /// Writes one client's story.
    #[must_use]
    pub fn client(mut self, k: u32, story: impl FnOnce(&mut Story<'_>)) -> Self {
        let place = self
            .history
            .clients
            .iter()
            .position(|c| c.id == ClientId(k));
        let Some(place) = place else {
            panic!("no client {k} in this history");
        };
        let mut client = self.history.clients[place].clone();
        story(&mut Story {
            client: &mut client,
            events: &mut self.history.events,
            index: &mut self.index,
        });
        self.history.clients[place] = client;
        self
    }

    /// Writes the same story, told the client's number, for all of them.
    #[must_use]
    pub fn each(mut self, mut story: impl FnMut(u32, &mut Story<'_>)) -> Self {
        for k in 1..=self.history.header.clients {
            self = self.client(k, |s| story(k, s));
        }
        self
    }

    /// The history, ended as planned at `ms`.
    #[must_use]
    pub fn end(self, ms: u64) -> History {
        let mut history = self.mark(ms, Mark::End(End::Complete)).history;
        history.horizon = Elapsed::from_millis(ms);
        history.marks.sort_by_key(|(at, _)| *at);
        history
    }

    /// The history without an end: cut at `ms`.
    #[must_use]
    pub fn cut(mut self, ms: u64) -> History {
        self.history.horizon = Elapsed::from_millis(ms);
        self.history.marks.sort_by_key(|(at, _)| *at);
        self.history
    }
}
