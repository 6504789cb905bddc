//! Where each outage begins, and since when a half-open session was lost. It knows nothing of returns.

use std::collections::HashSet;

use super::absence::Absence;
use super::{PAUSE, least_judged};
use crate::history::{Elapsed, History, Mark, TriggerKind};

/// Where an outage begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) outage: u32,
    pub(super) trigger: Option<Elapsed>,
    pub(super) at: Elapsed,
    /// What a half-open session dates from where nothing else dropped.
    cut: Option<Elapsed>,
}

/// Where each outage begins, outage 0 first: at its trigger, or, where herd waits for somebody else, with the first
/// wave after that which is big enough to be judged. An outage that was waited for and never came isn't in it.
pub(super) fn starts(history: &History, absences: &[Absence]) -> Vec<Start> {
    let mut starts = vec![Start {
        outage: 0,
        trigger: None,
        at: Elapsed::ZERO,
        cut: None,
    }];
    let plain = |a: &&Absence| a.half_open.is_none() && !a.own;
    let plain: Vec<&Absence> = absences.iter().filter(plain).collect();
    let waves: Vec<_> = plain.chunk_by(|a, b| b.at.since(a.at) <= PAUSE).collect();
    let triggers = history.marks.iter().filter_map(|(at, mark)| match mark {
        Mark::Trigger { outage } => Some((*outage, *at)),
        _ => None,
    });
    // Merged shards tell of the same trigger more than once: the first counts.
    let mut triggers: Vec<_> = triggers.collect();
    triggers.sort_unstable();
    triggers.dedup_by_key(|(outage, _)| *outage);
    for (outage, trigger) in triggers {
        let at = match history.header.terms.outage(outage).trigger {
            TriggerKind::Child | TriggerKind::Command | TriggerKind::Cut | TriggerKind::Rolling => {
                Some(trigger)
            }
            TriggerKind::Wait => waves
                .iter()
                .filter_map(|wave| {
                    let after = wave.partition_point(|a| a.at < trigger);
                    let clients: HashSet<_> = wave[after..].iter().map(|a| a.client).collect();
                    (clients.len() >= least_judged(history.clients.len())).then(|| wave[after].at)
                })
                .next(),
        };
        let cut = match history.header.terms.outage(outage).trigger {
            TriggerKind::Child | TriggerKind::Command | TriggerKind::Cut | TriggerKind::Rolling => {
                Some(trigger)
            }
            TriggerKind::Wait => None,
        };
        starts.extend(at.map(|at| Start {
            outage,
            trigger: Some(trigger),
            at,
            cut,
        }));
    }
    starts
}

/// Rule 5: a half-open session was lost when the others were, not when herd noticed.
pub(super) fn settle_half_open(absences: &mut [Absence], starts: &[Start]) {
    let plain: Vec<Elapsed> = absences
        .iter()
        .filter(|a| a.half_open.is_none() && !a.own)
        .map(|a| a.at)
        .collect();
    for absence in absences {
        let Some(opened) = absence.half_open else {
            continue;
        };
        let start = starts[starts.partition_point(|s| s.at <= absence.at).max(1) - 1];
        // What still brought something then was not lost before.
        let heard = absence.silent.unwrap_or_default();
        let from = start.at.max(opened).max(heard);
        let cut = plain[plain.partition_point(|at| *at < from)..].first();
        absence.at = cut
            .filter(|at| **at <= absence.at)
            .copied()
            .or(start.cut.filter(|at| *at >= opened))
            .map_or(absence.at, |at| at.max(heard).min(absence.at));
    }
}
