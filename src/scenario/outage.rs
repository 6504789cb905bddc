//! What is restarted or taken away, by what and how often: the typed form of `[outage]`.
//!
//! Only words and units. What contradicts what stands in `resolve/outage.rs`; how an outage is made, in `crate::trigger`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::history::{CutKind, Memory, TriggerKind};

/// What is restarted, how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// Who does it.
    pub trigger: Trigger,
    /// How many times.
    pub count: u32,
    /// How long a supervised server, or the network, stays away.
    pub down: Duration,
    /// How often it falls, at least 1; above 1 it is a crash loop.
    pub falls: u32,
    /// How long a server is up between two falls.
    pub up: Duration,
    /// The share of the clients that a cut hits, above 0 and at most 1.
    pub share: f64,
    /// The share of the clients that restart during it, and whether they keep their memory.
    pub refresh: Option<(f64, Memory)>,
    /// Time between all primed (or the last outage settled) and the trigger.
    pub steady: Duration,
    /// A pause longer than this ends a rollout that herd waits for.
    pub quiet_period: Duration,
}

/// Who causes an outage.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// herd restarts the server that it supervises.
    Child {
        /// How it is stopped.
        signal: StopSignal,
        /// How long it may take after SIGTERM.
        grace: Duration,
    },
    /// A command (by `sh -c`) restarts the target.
    Command {
        /// The command line.
        command: String,
        /// How long it may take.
        limit: Duration,
    },
    /// Somebody restarts it within a limit.
    Wait {
        /// The limit.
        limit: Duration,
    },
    /// herd takes the network away between clients and target.
    Cut(Cut),
    /// Several targets are restarted one after another.
    Rolling {
        /// By what.
        means: Means,
        /// From one's readiness to the next one's stop.
        pause: Duration,
    },
}

/// How the targets of a rolling restart are restarted.
#[derive(Debug, Clone, PartialEq)]
pub enum Means {
    /// herd supervises them.
    Child {
        /// How each is stopped.
        signal: StopSignal,
        /// How long it may take after SIGTERM.
        grace: Duration,
    },
    /// A command (by `sh -c`) for each; `{target}` in it, and `TARGET` in its environment, is the target's number from 1.
    Command {
        /// The command line.
        command: String,
        /// How long each may take.
        limit: Duration,
    },
}

/// How the network is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Connections end in order; new ones are refused while it is away.
    Fin,
    /// Connections are reset; new ones are refused while it is away.
    Rst,
    /// Bytes vanish in connections that are open; new ones get no answer while it is away.
    Blackhole,
    /// Connections are reset, and new ones refused while it is away.
    Refuse,
    /// Bytes come so much later while it lasts.
    Latency {
        /// How much later.
        delay: Duration,
        /// What becomes of the connections at its end.
        then: Then,
    },
    /// Bytes trickle while it lasts.
    Bandwidth {
        /// Bytes a second, of each connection and each way.
        bytes: u32,
        /// What becomes of the connections at its end.
        then: Then,
    },
}

impl Cut {
    /// Which kind it is.
    #[must_use]
    pub fn kind(self) -> CutKind {
        match self {
            Self::Fin => CutKind::Fin,
            Self::Rst => CutKind::Rst,
            Self::Blackhole => CutKind::Blackhole,
            Self::Refuse => CutKind::Refuse,
            Self::Latency { .. } => CutKind::Latency,
            Self::Bandwidth { .. } => CutKind::Bandwidth,
        }
    }
}

/// What becomes of connections at the end of a slow time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// They go on.
    #[default]
    Keep,
    /// They end in order, in the middle of whatever was being sent.
    Fin,
    /// They are reset, in the middle of whatever was being sent.
    Rst,
}

impl Then {
    /// The word in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Fin => "fin",
            Self::Rst => "rst",
        }
    }
}

impl Trigger {
    /// Whether herd itself stops and starts servers.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(
            self,
            Self::Child { .. }
                | Self::Rolling {
                    means: Means::Child { .. },
                    ..
                }
        )
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::Child { .. } => TriggerKind::Child,
            Self::Command { .. } => TriggerKind::Command,
            Self::Wait { .. } => TriggerKind::Wait,
            Self::Cut(_) => TriggerKind::Cut,
            Self::Rolling { .. } => TriggerKind::Rolling,
        }
    }
}

/// How herd stops a server that it supervises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM, then SIGKILL after the grace.
    Term,
    /// SIGKILL.
    Kill,
}

impl StopSignal {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Term, Self::Kill];

    /// The word in scenarios and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Kill => "KILL",
        }
    }
}
