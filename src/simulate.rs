//! The same clients in virtual time, against a model server.
//!
//! The machines that decide when a client dials are those of a real run; an event queue stands for the clock and the
//! network, `simulate/model.rs` for the server, and what comes out is a history like any other. No tokio, no sockets,
//! nothing ambient: a setup gives the same history everywhere. This file knows what can be asked for; it judges nothing.

pub mod advise;
mod arrival;
pub mod compare;
mod conduct;
mod ledger;
mod model;
mod peer;
mod publisher;
mod queue;
pub mod storm;
mod table;
mod world;

use std::time::Duration;

use crate::backoff::{Address, Mix, Window, presets};
use crate::history::{Header, History, OutageTerms, Shard, Source, Terms, TriggerKind, build};
use crate::server::defect::Defect;

pub use ledger::Ledger;

/// A run in virtual time.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Clients over all shards, at least 1.
    pub clients: u32,
    /// Decides every draw.
    pub seed: u64,
    /// Whose records are kept. The world is the whole one: a shard's clients meet a server that serves all.
    pub shard: Shard,
    /// When clients come back.
    pub mix: Mix,
    /// Publications a second, above 0.
    pub rate: f64,
    /// First connects are spread evenly over this.
    pub ramp: Duration,
    /// Time between all primed (or the last outage settled) and the trigger.
    pub steady: Duration,
    /// From the end of the old server process to the start of the new one.
    pub down: Duration,
    /// How many restarts.
    pub outages: u32,
    /// What a message takes one way; each client's is drawn once, from these bounds.
    pub latency: Window,
    /// How many events the server keeps for replay.
    pub keep: usize,
    /// What the server does wrong.
    pub fault: Option<Fault>,
    /// What must hold. Policy, number of outages and who publishes are the setup's and are filled in.
    pub terms: Terms,
}

/// A planted misbehaviour of the model server; it begins once all clients are primed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Which.
    pub defect: Defect,
    /// The share of its chances that it takes, 0 to 1: of the events sent, replays, publications or clients,
    /// whichever it is about; for `die-again` the share of clients that are back when the server dies. The defects
    /// that describe what a server always does ignore it.
    pub share: f64,
    /// `accept-then-close`: for how long after the restart. `slow-accept`: what one accept takes. `die-again`: how long
    /// the server stays away. Others ignore it.
    pub lasting: Duration,
}

impl Fault {
    /// A defect in the measure in which a few hundred clients are sure to meet it.
    #[must_use]
    pub fn new(defect: Defect) -> Self {
        let (share, lasting) = match defect {
            Defect::LoseLive
            | Defect::DuplicateLive
            | Defect::Reorder
            | Defect::Conflict
            | Defect::CorruptFrame => (0.01, Duration::ZERO),
            Defect::AckThenLose => (0.05, Duration::ZERO),
            Defect::LoseOnResume => (0.5, Duration::ZERO),
            Defect::DieAgain => (0.5, Duration::from_secs(1)),
            Defect::RefuseSome | Defect::HalfOpen => (0.1, Duration::ZERO),
            Defect::AcceptThenClose => (1.0, Duration::from_secs(60)),
            Defect::SlowAccept => (1.0, Duration::from_millis(30)),
            Defect::DuplicateOnResume
            | Defect::IdsRestart
            | Defect::ForgetLog
            | Defect::ResetAlways
            | Defect::SkipEvicted
            | Defect::NeverCatchUp
            | Defect::LiveNotResubscribed
            | Defect::GapAtHandoff
            | Defect::SilentOldest
            | Defect::UnknownIsNow
            | Defect::LiveOvertakes
            | Defect::LyingSession
            | Defect::Zombie
            | Defect::PartialWithFlag
            | Defect::LegalRedelivery
            | Defect::DataBeforeAck => (1.0, Duration::ZERO),
        };
        Self {
            defect,
            share,
            lasting,
        }
    }
}

impl Setup {
    /// The default run: full jitter, 20 events a second, one restart that takes a second.
    #[must_use]
    pub fn new(clients: u32, seed: u64) -> Self {
        Self {
            clients,
            seed,
            shard: Shard::WHOLE,
            mix: usual(),
            rate: 20.0,
            ramp: Duration::from_secs(2),
            steady: Duration::from_secs(3),
            down: Duration::from_secs(1),
            outages: 1,
            latency: Window {
                least: Duration::from_micros(100),
                most: Duration::from_millis(2),
            },
            keep: 1 << 20,
            fault: None,
            terms: terms(),
        }
    }

    fn header(&self) -> Header {
        let policy = serde_json::to_string(&self.mix).expect("a policy is plain data without maps");
        Header {
            herd: env!("CARGO_PKG_VERSION").into(),
            run: format!("simulated-{}", self.seed),
            started_unix_us: 0,
            name: "simulated".into(),
            scenario: String::new(),
            repeat: format!("herd simulate --seed {}", self.seed),
            seed: self.seed,
            clients: self.clients,
            shard: self.shard,
            seq_base: self.seq_base(),
            seq_span: 1 << 20,
            terms: Terms {
                policy,
                policy_name: self.mix.name(),
                outages: vec![OutageTerms::plain(TriggerKind::Child); self.outages as usize],
                source: Source::Herd,
                ..self.terms.clone()
            },
        }
    }

    /// A random multiple of 2^20 below 2^52 (rule 10 of judgement). Client 0 is nobody, so no client shares its draw.
    fn seq_base(&self) -> u64 {
        let random = Address {
            seed: self.seed,
            client: 0,
            drop: 0,
            attempt: 0,
        }
        .random();
        ((random * 2f64.powi(32)) as u64) << 20
    }
}

/// The policy that holds where nobody named one.
fn usual() -> Mix {
    presets::find(presets::DEFAULT).map_or_else(
        || unreachable!("the default preset is in the list"),
        presets::Preset::mix,
    )
}

/// What a run of the embedded server is asked to prove by default.
fn terms() -> Terms {
    Terms {
        target: "simulated".into(),
        ..build::terms()
    }
}

/// Runs it.
#[must_use]
pub fn run(setup: &Setup) -> History {
    run_with_ledger(setup).0
}

/// Runs it and says what the model server did wrong, for tests that compare counts.
#[must_use]
pub fn run_with_ledger(setup: &Setup) -> (History, Ledger) {
    world::World::new(setup).run()
}
