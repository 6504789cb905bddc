//! What a run was asked to prove, by whom and with which numbers: the first thing in a history.
//!
//! These are the only words in which the judge hears of the scenario; what happened is in `history.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ClientId, Seq};

/// A share of the clients: `index` of `of`, from 1. Client k belongs to shard `(k - 1) % of + 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// The whole.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether a client belongs to this share.
    #[must_use]
    pub fn holds(self, client: ClientId) -> bool {
        (client.0 - 1) % self.of + 1 == self.index
    }
}

/// Who causes the outages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// herd restarts the server that it started.
    Child,
    /// A command of the user's restarts a server that herd doesn't own.
    Command,
    /// Somebody restarts it; herd waits.
    Wait,
    /// herd takes the network away between clients and target. It and those below are last, because a file names a trigger by
    /// its place in this list.
    Cut,
    /// Several targets are restarted one after another.
    Rolling,
}

impl TriggerKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Child,
        Self::Command,
        Self::Wait,
        Self::Cut,
        Self::Rolling,
    ];

    /// The word in scenarios and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Child => "child",
            Self::Command => "command",
            Self::Wait => "wait",
            Self::Cut => "cut",
            Self::Rolling => "rolling",
        }
    }
}

/// How a cut takes the network away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutKind {
    /// Connections end in order, as when a proxy closes them.
    Fin,
    /// Connections are reset.
    Rst,
    /// Bytes vanish, and no end is told: who doesn't listen for signs of life never notices.
    Blackhole,
    /// Connections are reset, and new ones refused for a time.
    Refuse,
    /// Bytes come late for a time.
    Latency,
    /// Bytes trickle for a time.
    Bandwidth,
}

impl CutKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Fin,
        Self::Rst,
        Self::Blackhole,
        Self::Refuse,
        Self::Latency,
        Self::Bandwidth,
    ];

    /// The word in scenarios and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Blackhole => "blackhole",
            Self::Refuse => "refuse",
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }
}

/// Whether a client that restarts, as a closed browser tab does, still knows what it received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// It kept its cursor, as in a browser's local storage.
    Kept,
    /// It comes back as if it were new.
    Lost,
}

/// What one outage was asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutageTerms {
    /// Who causes it.
    pub trigger: TriggerKind,
    /// How, where it is a cut.
    pub cut: Option<CutKind>,
    /// The share of the clients that it was asked to hit, 0 to 1; see [`chosen`].
    pub share: f64,
    /// How often the server falls in it, at least 1: more than once in a crash loop, and once for each target where they
    /// are restarted one after another.
    pub falls: u32,
    /// The share of the clients that restart during it, 0 to 1, and whether they keep their memory; see [`chosen`].
    pub refresh: Option<(f64, Memory)>,
}

impl OutageTerms {
    /// One plain restart of everything.
    #[must_use]
    pub fn plain(trigger: TriggerKind) -> Self {
        Self {
            trigger,
            cut: None,
            share: 1.0,
            falls: 1,
            refresh: None,
        }
    }
}

/// Whether a client is one of the `share` (0 to 1) of all `clients` that something happens to: `clients x share` of them,
/// rounded to the nearest (a half up), spread evenly over their numbers. The same in every shard.
#[must_use]
pub fn chosen(client: ClientId, clients: u32, share: f64) -> bool {
    let (k, all) = (u64::from(client.0), u64::from(clients.max(1)));
    let part = (clients as f64 * share).round() as u64;
    k * part / all > (k - 1) * part / all
}

/// What an idempotent handler behind a client remembers of the events that it applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remembers {
    /// All of them.
    Everything,
    /// The last so many.
    Last(u32),
    /// Those of so long.
    For(Duration),
}

/// What the user promises (or accepts) of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryMode {
    /// Nothing lost, nothing twice.
    ExactlyOnce,
    /// Nothing lost.
    AtLeastOnce,
    /// Nothing twice.
    AtMostOnce,
    /// Observing: all clients agree on what there was; enough for a Pass.
    Agreement,
}

impl DeliveryMode {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::ExactlyOnce,
        Self::AtLeastOnce,
        Self::AtMostOnce,
        Self::Agreement,
    ];

    /// The word in scenarios and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "exactly-once",
            Self::AtLeastOnce => "at-least-once",
            Self::AtMostOnce => "at-most-once",
            Self::Agreement => "agreement",
        }
    }
}

/// Who sends the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// herd publishes numbered events.
    Herd,
    /// Others publish; herd observes.
    Others,
    /// Nobody: a simulation of dials alone. Last, because a file names a source by its place in this list.
    Nobody,
}

/// How ids are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// Only for equality.
    Opaque,
    /// Decimal integers of any size.
    Integer,
    /// By bytes.
    Lexicographic,
}

impl IdKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Opaque, Self::Integer, Self::Lexicographic];

    /// The word in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::Integer => "integer",
            Self::Lexicographic => "lexicographic",
        }
    }

    /// Compares two ids in this order; none where the kind (or an id that isn't of the kind) has no order.
    #[must_use]
    pub fn compare(self, a: &str, b: &str) -> Option<std::cmp::Ordering> {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        match self {
            Self::Opaque => None,
            Self::Lexicographic => Some(a.cmp(b)),
            Self::Integer if digits(a) && digits(b) => {
                let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
                Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
            }
            Self::Integer => None,
        }
    }
}

/// Which raw duplicates the protocol allows; they count as redelivered and fail nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// None.
    #[default]
    Forbidden,
    /// Those that the server marks as sent again.
    Marked,
    /// Those that a resume brings again: an event of an earlier session in the replay of a resumed one.
    OnResume,
}

/// Whether the reconnect policy was the user's choice (rule 8 of judgement).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySource {
    /// Named by the user, or the target is herd's own server.
    Named,
    /// herd's default against the user's server: the policy of the real clients isn't known.
    Assumed,
}

/// What the run was asked to prove: everything that the judge needs besides what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The reconnect policy's name, for people.
    pub policy_name: String,
    /// The reconnect policy as JSON, for the rule of chance.
    pub policy: String,
    /// Who chose it.
    pub policy_source: PolicySource,
    /// The profile's name.
    pub profile: String,
    /// The target as the user wrote it, secrets masked.
    pub target: String,
    /// The outages that were asked for, in order.
    pub outages: Vec<OutageTerms>,
    /// How many targets the clients choose from, at least 1.
    pub targets: u16,
    /// How long a connection may be silent before its client takes it for dead; none = no client listens for that.
    pub silence: Option<Duration>,
    /// Who publishes.
    pub source: Source,
    /// How the target's ids are compared.
    pub ids: IdKind,
    /// Whether ids are declared to have no holes.
    pub contiguous: bool,
    /// Which duplicates are legal.
    pub duplicates: Duplicates,
    /// Whether the server was declared idempotent, so that an unknown publication was sent again.
    pub idempotent: bool,
    /// Limit of `reconnect-spread`.
    pub min_spread: Duration,
    /// Limit of `peak`: share of the wave's clients, 0 to 1.
    pub max_peak: f64,
    /// Window of `peak`.
    pub peak_window: Duration,
    /// Delivery that must hold.
    pub delivery: DeliveryMode,
    /// How many clients the server may tell to reload.
    pub max_resets: u32,
    /// How long a pair may take from the later of the publication's answer and the client's opening.
    pub settle: Duration,
    /// Limit of `all-reconnected`; none = derived from the policy.
    pub reconnect_limit: Option<Duration>,
    /// Limit of `recovery` (at its percentile); none = only reported.
    pub max_recovery: Option<Duration>,
    /// Limit of `staleness`, at a percentile of the clients (0 to 100); none = only reported.
    pub max_staleness: Option<(f64, Duration)>,
    /// Handlers for which repeated events are counted.
    pub dedupe: Vec<Remembers>,
}

impl Terms {
    /// What an outage (from 1) was asked to be. Outages that nobody asked for are taken for ones like the first.
    #[must_use]
    pub fn outage(&self, outage: u32) -> OutageTerms {
        let asked = self.outages.get((outage.max(1) - 1) as usize);
        let asked = asked.or(self.outages.first()).copied();
        asked.unwrap_or_else(|| OutageTerms::plain(TriggerKind::Child))
    }
}

/// The first thing in a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// herd's version that wrote it.
    pub herd: String,
    /// What shards of one run have in common: the same scenario and the same seed.
    pub run: String,
    /// Wall clock at the run's beginning, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// The scenario's name.
    pub name: String,
    /// The scenario as TOML, flags merged in, templates unexpanded.
    pub scenario: String,
    /// The command that repeats the run.
    pub repeat: String,
    /// The run's seed.
    pub seed: u64,
    /// Clients over all shards.
    pub clients: u32,
    /// This history's share of them.
    pub shard: Shard,
    /// herd's numbers in this run are `seq_base + 1 ..= seq_base + seq_span`; anything else is foreign.
    pub seq_base: u64,
    /// How many numbers belong to this run.
    pub seq_span: u64,
    /// What was asked for.
    pub terms: Terms,
}

impl Header {
    /// Whether a number belongs to this run (rule 10 of judgement).
    #[must_use]
    pub fn owns(&self, seq: Seq) -> bool {
        seq.0 > self.seq_base && seq.0 - self.seq_base <= self.seq_span
    }

    /// The number as people see it, from 1; a foreign one as it was sent.
    #[must_use]
    pub fn shown(&self, seq: Seq) -> u64 {
        if self.owns(seq) {
            seq.0 - self.seq_base
        } else {
            seq.0
        }
    }
}
