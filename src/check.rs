//! The questions, their answers and the verdict.
//!
//! The judge never sees the run, only what was recorded: everything here is a function of a [`History`]. What may be
//! imported: the history, and backoff for the rule of chance. `check/delivery.rs` says what became of every (client,
//! publication) pair, `check/reconnect.rs` who was away when, `check/chance.rs` what luck could have done,
//! `check/generator.rs` how late herd itself was,
//! `check/status.rs` and `check/staleness.rs` what a user saw meanwhile, `check/dedupe.rs` what idempotent handlers would
//! make of repeats.

pub mod bystanders;
pub mod chance;
pub mod dedupe;
pub mod delivery;
pub mod facts;
pub mod generator;
pub mod health;
mod name;
pub mod opening;
pub mod reconnect;
pub mod renewal;
pub mod staleness;
pub mod status;
pub mod timeline;
pub(crate) mod words;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use facts::{
    AttemptFacts, BystanderFacts, DeliveryFacts, GeneratorFacts, LagFacts, Ms, OutageFacts,
    Percentiles, PublicationFacts, ReconnectFacts, ResumeFacts, WaveFacts,
};

use crate::history::{ClientId, DeliveryMode, Elapsed, History, Seq, Source};
use dedupe::DedupeFacts;
pub use name::Check;
pub use renewal::{RefreshFacts, ReloadFacts};
use staleness::{Doubts, StalenessFacts};
use status::{StatusFacts, Statuses};
use timeline::Timeline;

/// What a question came to. The order is the order of precedence, written here and nowhere else: merging is `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Pass,
    /// It could not be judged.
    Unknown,
    /// It doesn't hold.
    Fail,
}

impl Outcome {
    /// The word in every report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unknown => "unknown",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One answer with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which question.
    #[serde(rename = "name")]
    pub check: Check,
    /// Of which outage (from 1); none = of the whole run.
    pub outage: Option<u32>,
    /// The answer.
    pub outcome: Outcome,
    /// What was measured, as people read it ("1.52 s", "3 lost, 1 duplicated").
    pub measured: String,
    /// What was asked for, as people read it.
    pub limit: String,
    /// One or two sentences: why, and what would decide where it is unknown. Empty for a plain pass.
    pub why: String,
}

/// What went wrong with one (client, event) pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrong {
    /// Published, due, never delivered.
    Lost,
    /// Delivered after the settle limit.
    Late,
    /// Delivered again.
    Duplicated,
    /// Delivered after one that comes later in the server's order.
    Reordered,
    /// Delivered though its publication definitely failed or never was.
    Unexpected,
    /// The same id with another content.
    Conflict,
}

impl Wrong {
    /// Whether it counts against the server under the delivery that must hold. What the server stored under a reused id or
    /// never should have sent counts in every mode. Where herd publishes, agreement asks for nothing less than
    /// exactly-once: the numbers are there. The order is a question of its own.
    #[must_use]
    pub fn gates(self, mode: DeliveryMode) -> bool {
        match self {
            Self::Lost | Self::Late => mode != DeliveryMode::AtMostOnce,
            Self::Duplicated => mode != DeliveryMode::AtLeastOnce,
            Self::Unexpected | Self::Conflict => true,
            Self::Reordered => false,
        }
    }
}

/// One offending (client, event) pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offender {
    /// What is wrong.
    pub wrong: Wrong,
    /// Which client.
    pub client: ClientId,
    /// herd's number as sent, where there is one.
    pub seq: Option<Seq>,
    /// The event's id, where it is known.
    pub id: Option<String>,
    /// When the offending receipt arrived; none where nothing did.
    pub at: Option<Elapsed>,
}

/// What came of one resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeOutcome {
    /// Nothing is missing.
    Resumed,
    /// The server announced that the client must reload.
    Reset,
    /// History gone or cursor unknown, and nothing said so.
    MissedReset,
    /// The server refused the cursor.
    Refused,
    /// Connected and pinged, but no events while others got them.
    NeverResumed,
}

impl ResumeOutcome {
    /// The word in every report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Reset => "reset",
            Self::MissedReset => "missed-reset",
            Self::Refused => "refused",
            Self::NeverResumed => "never-resumed",
        }
    }
}

/// What the judge says of one session, for the lists of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// The outage (from 1) that it came back from; 0 = the ramp.
    pub outage: u32,
    /// The wave (from 1) within it; 0 = the ramp.
    pub wave: u32,
    /// Too short to be a reconnect (rule 1).
    pub flapped: bool,
    /// What came of its resume; none where it carried no cursor.
    pub resume: Option<ResumeOutcome>,
    /// When it was caught up (rule 16).
    pub caught_up: Option<Elapsed>,
}

/// One client's loss of its connection and what followed: a row of `reconnects.csv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// From 1.
    pub outage: u32,
    /// From 1, within the outage.
    pub wave: u32,
    /// Who.
    pub client: ClientId,
    /// When it lost its connection (half-open: since the cut).
    pub dropped: Elapsed,
    /// The client's session that was the reconnect (index from 0); none = never came back.
    pub session: Option<usize>,
    /// Attempts from the drop to the reconnect, that one included.
    pub attempts: u32,
}

/// All answers together, with the numbers they rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The worst of the findings.
    pub outcome: Outcome,
    /// Every answer, in the order of [`Check::ALL`] and of the outages.
    pub findings: Vec<Finding>,
    /// Every outage in numbers.
    pub outages: Vec<OutageFacts>,
    /// Pairs and receipts.
    pub delivery: DeliveryFacts,
    /// Publications by fate.
    pub publications: PublicationFacts,
    /// herd's own lag.
    pub generator: GeneratorFacts,
    /// Where the clients stood, over time.
    pub status: StatusFacts,
    /// How long their data was stale.
    pub staleness: StalenessFacts,
    /// What idempotent handlers would make of repeated events; none where nobody asked.
    pub dedupe: Option<DedupeFacts>,
    /// Every outage that was for a share of the clients: whom it hit.
    pub bystanders: Vec<BystanderFacts>,
    /// The first offending pairs, at most [`MAX_OFFENDERS`].
    pub offenders: Vec<Offender>,
    /// Every loss of connection and what followed, by outage, wave, client.
    pub returns: Vec<Return>,
    /// For each client of the history, for each of its sessions.
    pub sessions: Vec<Vec<SessionFacts>>,
    /// What each server used, as far as somebody looked.
    pub health: Vec<health::HealthFacts>,
    /// Servers that ended although nobody asked them to.
    pub deaths: Vec<health::Death>,
}

/// How many offending pairs a verdict names.
pub const MAX_OFFENDERS: usize = 100;

/// Judges a history. Where nobody publishes, the checks of delivery and of herd itself are left out.
#[must_use]
pub fn judge(history: &History) -> Verdict {
    let timeline = Timeline::new(history);
    let generator = generator::assess(history);
    let delivery = delivery::assess(history, &timeline);
    // In virtual time herd itself is never late, so there is nothing to ask.
    let simulated = history.header.terms.source == Source::Nobody;
    let late = match simulated {
        true => Outcome::Pass,
        false => generator.finding.outcome,
    };
    let reconnect = reconnect::assess(history, &timeline, &delivery, late);

    let mut outages = reconnect.outages;
    let renewals = renewal::refreshes(history, &timeline);
    let renewals = renewals
        .into_iter()
        .zip(renewal::reloads(history, &timeline));
    for (facts, (refresh, reload)) in outages.iter_mut().zip(renewals) {
        (facts.refresh, facts.reload) = (refresh, reload);
    }
    let statuses = Statuses::new(history, &timeline.returns);
    let doubts = Doubts {
        generator: late,
        partial: reconnect.partial.as_deref(),
        dropped: !timeline.returns.is_empty(),
    };
    let staleness = staleness::assess(history, &statuses, &delivery, doubts);
    let (spared, bystanders) = bystanders::assess(history, &timeline, &delivery, late);

    let mut findings = reconnect.findings;
    findings.push(staleness.finding);
    findings.extend(spared);
    findings.extend(delivery.findings);
    if !simulated {
        findings.push(generator.finding);
    }
    findings.sort_by_key(|f| (f.check, f.outage));
    if history.truncated() {
        findings.iter_mut().for_each(doubt);
    }
    if let Some(why) = opening::unfit(history) {
        opening::doubt(&mut findings, &why);
    }
    let sessions = timeline
        .sessions
        .iter()
        .enumerate()
        .map(|(client, places)| {
            let facts = |(session, place): (usize, &timeline::Place)| SessionFacts {
                outage: place.outage,
                wave: place.wave,
                flapped: place.flapped,
                resume: at(&delivery.resumes, client, session),
                caught_up: at(&delivery.caught_up, client, session),
            };
            places.iter().enumerate().map(facts).collect()
        });
    let mut offenders = delivery.offenders;
    offenders.truncate(MAX_OFFENDERS);
    Verdict {
        outcome: findings
            .iter()
            .map(|f| f.outcome)
            .max()
            .unwrap_or(Outcome::Unknown),
        findings,
        outages,
        delivery: delivery.facts,
        publications: delivery.publications,
        generator: generator.facts,
        status: statuses.survey().facts(),
        staleness: staleness.facts,
        dedupe: delivery.dedupe,
        bystanders,
        offenders,
        sessions: sessions.collect(),
        health: health::facts(history),
        deaths: health::deaths(history),
        returns: timeline.returns,
    }
}

/// What is said of one session of one client, where anything is.
fn at<T: Copy>(said: &[Vec<Option<T>>], client: usize, session: usize) -> Option<T> {
    said.get(client)?.get(session).copied().flatten()
}

/// In a record of which something is missing nothing passes: what is missing may be what would fail.
fn doubt(finding: &mut Finding) {
    if finding.outcome == Outcome::Pass {
        finding.outcome = Outcome::Unknown;
        let why = "part of the run is missing from the record, so this is no pass";
        finding.why = match finding.why.as_str() {
            "" => why.into(),
            before => format!("{before}; {why}"),
        };
    }
}
