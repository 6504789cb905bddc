//! The numbers that a verdict rests on, in the shape of `summary.json`.
//!
//! Plain data: how they are counted is in `check/delivery.rs`, `check/reconnect.rs` and `check/generator.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::renewal::{RefreshFacts, ReloadFacts};

/// A number of milliseconds with its fraction, as reports show it.
pub type Ms = f64;

/// One outage in numbers; the shape is that of `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageFacts {
    /// From 1.
    pub outage: u32,
    /// `child`, `command` or `wait`.
    pub trigger: String,
    /// When it was triggered, since the run began.
    pub trigger_ms: Option<Ms>,
    /// When the first client lost its connection.
    pub first_drop_ms: Option<Ms>,
    /// When the last one did.
    pub last_drop_ms: Option<Ms>,
    /// When the target was ready again.
    pub ready_ms: Option<Ms>,
    /// Clients that lost their connection.
    pub dropped: u32,
    /// Of these, clients that came back, the last time too.
    pub reconnected: u32,
    /// Of these, clients whose policy gave up.
    pub gave_up: u32,
    /// Sessions that were too short to be a reconnect (rule 1).
    pub flapped: u32,
    /// The reconnects' distribution over all waves.
    pub reconnect: ReconnectFacts,
    /// Attempts by outcome.
    pub attempts: AttemptFacts,
    /// What came of each resume.
    #[serde(default)]
    pub resumes: ResumeFacts,
    /// Why sessions ended, those included that were too short: close codes (`1012`), and words such as `eof`, with how often.
    #[serde(default)]
    pub causes: BTreeMap<String, u64>,
    /// What failed attempts met: statuses (`503`), and words such as `refused`, with how often.
    #[serde(default)]
    pub statuses: BTreeMap<String, u64>,
    /// From each client's drop until it was caught up.
    pub recovery_ms: Option<Percentiles>,
    /// Clients that had a publication confirmed while they were away.
    pub exposed_clients: u32,
    /// Drops close together.
    pub waves: Vec<WaveFacts>,
    /// Clients that started anew; none where nobody did.
    #[serde(default)]
    pub refresh: Option<RefreshFacts>,
    /// Requests for the full state; none where nobody asked.
    #[serde(default)]
    pub reload: Option<ReloadFacts>,
}

/// How reconnects lie in time; all none where nobody came back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReconnectFacts {
    /// The first, since the run began.
    pub first_ms: Option<Ms>,
    /// The last, since the run began.
    pub last_ms: Option<Ms>,
    /// Last minus first, on opened.
    pub span_ms: Option<Ms>,
    /// Last minus first, on dialled.
    pub dialled_span_ms: Option<Ms>,
    /// Between the 5th and the 95th percentile, on opened.
    pub p5_p95_ms: Option<Ms>,
    /// Most reconnects in any 100 ms.
    pub peak_100ms: u32,
    /// Most reconnects in any second.
    pub peak_1s: u32,
}

/// Attempts of an outage; `total` is the sum of the other counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFacts {
    /// All.
    pub total: u64,
    /// Became a reconnect.
    pub opened: u64,
    /// TCP connect refused.
    pub refused: u64,
    /// TCP connect timed out.
    pub timeout: u64,
    /// Handshake failed.
    pub handshake: u64,
    /// Opened, but too short to count.
    pub flapped: u64,
    /// Most attempts past TCP connect in any second.
    pub peak_1s: u64,
}

/// Resumes by what came of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeFacts {
    /// Nothing is missing.
    pub resumed: u64,
    /// The server announced that the client must reload.
    pub reset: u64,
    /// History gone or cursor unknown, and nothing said so.
    pub missed_reset: u64,
    /// The server refused the cursor, in the session or in its answer to the handshake.
    pub refused: u64,
    /// Connected, but no events while others got them.
    pub never_resumed: u64,
}

/// Percentiles in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Ms,
    /// 90th.
    pub p90: Ms,
    /// 99th.
    pub p99: Ms,
    /// Largest.
    pub max: Ms,
}

/// One wave in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaveFacts {
    /// From 1, within its outage.
    pub wave: u32,
    /// Clients that lost their connection in it.
    pub dropped: u32,
    /// Of these, clients that came back, the last time too.
    pub reconnected: u32,
    /// Last minus first reconnect, on opened.
    pub span_ms: Option<Ms>,
    /// Last minus first reconnect, on dialled.
    pub dialled_span_ms: Option<Ms>,
    /// Most attempts past TCP connect in any second.
    pub peak_1s: u64,
}

/// Pairs and receipts; `expected` = delivered + late + lost + reset + absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryFacts {
    /// (client, expected publication) pairs that are due.
    pub expected: u64,
    /// Arrived in time.
    pub delivered: u64,
    /// Arrived after the settle limit.
    pub late: u64,
    /// Never arrived.
    pub lost: u64,
    /// Covered by a reload that the server asked for.
    pub reset: u64,
    /// That client never came back.
    pub absent: u64,
    /// Receipts of an event that the client had.
    pub duplicated: u64,
    /// Duplicates that the protocol allows and marks.
    pub redelivered: u64,
    /// Receipts after one that comes later in the server's order.
    pub reordered: u64,
    /// Receipts of events whose publication failed or never was.
    pub unexpected: u64,
    /// Receipts of events whose publication's fate was unknown.
    pub recovered: u64,
    /// Receipts of another run's, stream's or epoch's events.
    pub foreign: u64,
    /// Receipts of the same id with another content.
    pub conflict: u64,
}

/// Whom an outage hit that was asked to hit a share of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BystanderFacts {
    /// From 1.
    pub outage: u32,
    /// Clients that it was for.
    pub chosen: u32,
    /// Of these, clients that lost their connection.
    pub dropped: u32,
    /// Clients that it was not for.
    pub others: u32,
    /// Of these, clients that lost their connection meanwhile.
    pub others_dropped: u32,
    /// Publications of that time that never came to one of these, or late.
    pub others_missed: u64,
}

/// Publications by fate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationFacts {
    /// All, priming included.
    pub sent: u64,
    /// Accepted.
    pub acked: u64,
    /// Definitely not accepted.
    pub failed: u64,
    /// Answer lost.
    pub unknown: u64,
    /// Stored twice after a repeat: two ids for one number.
    pub double_stored: u64,
}

/// How late herd itself was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Dialled minus due, of all dials and publications.
    pub lag_ms: LagFacts,
    /// User and system CPU seconds.
    pub cpu_s: f64,
    /// Peak resident memory, bytes.
    pub rss_peak_bytes: u64,
}

/// herd's lag in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LagFacts {
    /// Median.
    pub p50: Ms,
    /// 99th percentile.
    pub p99: Ms,
    /// Largest.
    pub max: Ms,
}
