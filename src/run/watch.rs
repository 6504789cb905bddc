//! Live questions about the clients: who is primed, who is back, who is caught up, whose connection is dead.
//!
//! The answers move the run from phase to phase and judge nothing: what they saw is in the history and is read again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::client::{Crew, Handle, Progress, Status};
use crate::history::{Elapsed, Fate, Publication, PublicationKind, Seq};

/// How long a connection may stay silent while others, back from the outage, receive (rule 5 of judgement).
const SILENCE: Duration = Duration::from_secs(5);

/// How many of the newest priming events are tried as the one that everybody has.
const PRIMING_TRIES: u64 = 64;

/// Whether all clients received one and the same of the numbers `first..=last` (rule 9 of judgement).
pub(super) fn primed(crew: &Crew, first: Seq, last: Seq) -> bool {
    let oldest = first.0.max(last.0.saturating_sub(PRIMING_TRIES));
    (oldest..=last.0)
        .rev()
        .any(|n| crew.handles().iter().all(|handle| handle.has(Seq(n))))
}

/// How many clients received the one of the numbers `first..=last` that most received.
pub(super) fn most_primed(crew: &Crew, first: Seq, last: Seq) -> usize {
    let oldest = first.0.max(last.0.saturating_sub(PRIMING_TRIES));
    let holders = |n| {
        crew.handles()
            .iter()
            .filter(|handle| handle.has(Seq(n)))
            .count()
    };
    (oldest..=last.0).map(holders).max().unwrap_or(0)
}

/// How many clients hold a cursor, or received anything at all.
pub(super) fn with_cursor(crew: &Crew) -> usize {
    crew.handles()
        .iter()
        .filter(|handle| handle.progress().has_cursor)
        .count()
}

/// How many clients are connected now.
pub(super) fn connected(crew: &Crew) -> usize {
    crew.counts().connected as usize
}

/// How many clients have lost a connection that was open before `since`, or never had one.
pub(super) fn dropped(crew: &Crew, since: Elapsed) -> usize {
    let lost = |p: Progress| {
        p.status != Status::Connected || p.opened.is_some_and(|opened| opened > since)
    };
    crew.handles()
        .iter()
        .filter(|handle| lost(handle.progress()))
        .count()
}

/// The publications that every client must have, by the instant from which it must: the answer, or for one whose answer
/// was lost and that somebody received all the same, its sending (rule 12 of judgement).
#[derive(Default)]
pub(super) struct Needed {
    by_answer: Vec<(Elapsed, Seq)>,
    by_seq: BTreeMap<u64, Elapsed>,
}

impl Needed {
    pub(super) fn new<'a>(
        publications: impl IntoIterator<Item = &'a Publication>,
        crew: &Crew,
    ) -> Self {
        let seen = |seq| crew.handles().iter().any(|handle| handle.has(seq));
        let since = |publication: &Publication| match publication.fate {
            Fate::Acked => publication.answered,
            Fate::Unknown => seen(publication.seq).then_some(publication.sent),
            Fate::Failed => None,
        };
        let expected = publications
            .into_iter()
            .filter(|p| p.kind == PublicationKind::Expected);
        let mut by_answer: Vec<_> = expected.filter_map(|p| Some((since(p)?, p.seq))).collect();
        by_answer.sort_unstable();
        let by_seq = by_answer.iter().map(|(at, seq)| (seq.0, *at)).collect();
        Self { by_answer, by_seq }
    }

    /// The last answer, where there is one.
    pub(super) fn last_answer(&self) -> Option<Elapsed> {
        self.by_answer.last().map(|(at, _)| *at)
    }

    /// Whether a connected client has what was answered last before it opened (rule 16 of judgement).
    fn caught_up(&self, handle: &Handle, progress: Progress) -> bool {
        let Some(opened) = progress.opened else {
            return false;
        };
        let missed = self.by_answer.partition_point(|(at, _)| *at < opened);
        let last = missed.checked_sub(1).map(|i| self.by_answer[i].1);
        progress.last_reset.is_some_and(|reset| reset >= opened)
            || last.is_none_or(|seq| handle.has(seq))
    }

    /// Whether a connected client has everything; what a reload covered it needn't have.
    fn complete(&self, handle: &Handle, progress: Progress) -> bool {
        let ends = (self.by_seq.first_key_value(), self.by_seq.last_key_value());
        let (Some((first, _)), Some((last, _))) = ends else {
            return true;
        };
        let covered = progress.last_reset.unwrap_or_default();
        let missing = handle.missing(Seq(*first), Seq(*last));
        !missing
            .into_iter()
            .any(|range| self.by_seq.range(range).any(|(_, at)| *at > covered))
    }
}

/// Where the clients stand after an outage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    /// Connected, and not silently dead.
    pub(super) back: usize,
    /// Of these, those that have what they missed.
    pub(super) caught_up: usize,
    /// Of these, those that have everything so far.
    pub(super) complete: usize,
    /// Clients that stopped for good.
    pub(super) gave_up: usize,
    /// The latest opening.
    pub(super) last_opening: Elapsed,
}

/// Counts them. `trigger` is when the outage began: a connection that is older and silent since may be dead.
pub(super) fn standing(crew: &Crew, trigger: Elapsed, needed: &Needed) -> Standing {
    let mut standing = Standing::default();
    for handle in crew.handles() {
        let progress = handle.progress();
        standing.last_opening = standing
            .last_opening
            .max(progress.opened.unwrap_or_default());
        match progress.status {
            Status::GaveUp => standing.gave_up += 1,
            Status::Connected if !silent_since(progress, trigger) => {
                standing.back += 1;
                if needed.caught_up(handle, progress) {
                    standing.caught_up += 1;
                    standing.complete += usize::from(needed.complete(handle, progress));
                }
            }
            _ => {}
        }
    }
    standing
}

fn silent_since(progress: Progress, trigger: Elapsed) -> bool {
    let older = progress.opened.is_some_and(|opened| opened <= trigger);
    older && progress.last_receipt.is_none_or(|at| at <= trigger)
}

/// Closes connections that stayed open over the outage and silent for 5 s after others came back and received (rule 5).
/// `others_since` is when the first of those received; the caller keeps it.
pub(super) fn close_half_open(
    crew: &Crew,
    now: Elapsed,
    trigger: Elapsed,
    others_since: &mut Option<Elapsed>,
) {
    if others_since.is_none() {
        let receives = |p: Progress| {
            p.status == Status::Connected
                && p.opened.is_some_and(|opened| opened > trigger)
                && p.last_receipt > p.opened
        };
        if crew
            .handles()
            .iter()
            .any(|handle| receives(handle.progress()))
        {
            *others_since = Some(now);
        }
    }
    if others_since.is_some_and(|since| now.since(since) >= SILENCE) {
        for handle in crew.handles() {
            let progress = handle.progress();
            if progress.status == Status::Connected && silent_since(progress, trigger) {
                handle.close_half_open(progress.sessions);
            }
        }
    }
}
