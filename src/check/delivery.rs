//! A stand-in with the shape of the delivery part; the other half of the judge replaces this file.

use super::timeline::Timeline;
use super::{DeliveryFacts, Finding, Offender, PublicationFacts, ResumeOutcome};
use crate::history::{Elapsed, Entry, History};

/// What the delivery part says.
#[derive(Debug, Clone, Default)]
pub struct Assessment {
    /// Pairs and receipts.
    pub facts: DeliveryFacts,
    /// Publications by fate.
    pub publications: PublicationFacts,
    /// Exactly-once, order, resets.
    pub findings: Vec<Finding>,
    /// The first offending pairs.
    pub offenders: Vec<Offender>,
    /// Per client, per session.
    pub resumes: Vec<Vec<Option<ResumeOutcome>>>,
    /// Per client, per session.
    pub caught_up: Vec<Vec<Option<Elapsed>>>,
    /// Per outage of the timeline: clients with a publication answered while they were away.
    pub exposed: Vec<u32>,
}

/// Judges delivery.
#[must_use]
pub fn assess(history: &History, _: &Timeline) -> Assessment {
    let caught_up = history.clients.iter().map(|client| {
        let mut first = vec![None; client.sessions.len()];
        for entry in client.entries(history) {
            if let Entry::Receipt(receipt) = entry {
                first[receipt.session].get_or_insert(receipt.at);
            }
        }
        first
    });
    Assessment {
        caught_up: caught_up.collect(),
        ..Assessment::default()
    }
}
