//! Live questions about the clients: who is primed, who is back, who is caught up, whose connection is dead.
//!
//! The answers move the run from phase to phase and judge nothing: what they saw is in the history and is read again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::patience::SILENCE;
use crate::client::{Crew, Handle, Progress, Status};
use crate::history::{Elapsed, Fate, Publication, PublicationKind, Seq};

/// A receipt this long after its session's opening is live, not replayed.
const LIVE: Duration = Duration::from_secs(1);

/// How many of the newest priming events are tried as the one that everybody has.
const PRIMING_TRIES: u64 = 64;

/// Whether all clients received one and the same of the numbers `first..=last` (rule 9 of judgement).
pub(super) fn primed(crew: &Crew, first: Seq, last: Seq) -> bool {
    let oldest = first.0.max(last.0.saturating_sub(PRIMING_TRIES));
    (oldest..=last.0)
        .rev()
        .any(|n| crew.handles().iter().all(|handle| handle.has(Seq(n))))
}

/// How many clients hold a cursor and, where herd publishes, received one of the numbers that were sent.
pub(super) fn receiving(crew: &Crew, sent: Option<(Seq, Seq)>) -> usize {
    let some = |handle: &Handle| {
        sent.is_none_or(|(first, last)| handle.missing(first, last) != [first.0..=last.0])
    };
    crew.handles()
        .iter()
        .filter(|handle| holds_cursor(handle.progress()) && some(handle))
        .count()
}

/// Whether a client can resume: it holds a cursor, and its opening is done.
fn holds_cursor(progress: Progress) -> bool {
    progress.has_cursor && !progress.opening
}

/// How many clients hold a cursor and have finished their opening.
pub(super) fn with_cursor(crew: &Crew) -> usize {
    crew.handles()
        .iter()
        .filter(|handle| holds_cursor(handle.progress()))
        .count()
}

/// How many clients are connected now; a connection that may have died in the cut without a word isn't counted.
pub(super) fn connected(crew: &Crew, cut: Cut) -> usize {
    let connected = |p: Progress| p.status == Status::Connected && !silent_since(p, cut);
    let handles = crew.handles().iter();
    handles
        .filter(|handle| connected(handle.progress()))
        .count()
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

/// How many connections were open at an instant of the near past.
pub(super) fn open_at(crew: &Crew, at: Elapsed) -> usize {
    let open = |p: Progress| was_open(p, at);
    crew.handles()
        .iter()
        .filter(|handle| open(handle.progress()))
        .count()
}

fn was_open(progress: Progress, at: Elapsed) -> bool {
    let opened = progress.opened.is_some_and(|opened| opened <= at);
    let lost_since = progress.dropped.is_some_and(|dropped| dropped >= at);
    lost_since || progress.status == Status::Connected && opened
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
    /// Clients that have everything so far.
    pub(super) complete: usize,
    /// Clients that herd waits for until they are back and caught up.
    pub(super) recovering: usize,
    /// Clients that herd waits for until they are back and have everything.
    pub(super) settling: usize,
}

/// How long herd waits for one client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For its return, from its own drop (rule 6 of judgement).
    pub(super) back: Duration,
    /// For what it must have, from the later of the answer and its opening (rule 14).
    pub(super) settle: Duration,
    /// An opening or a drop later than this prolongs nothing: a client that comes and goes must not keep the run for ever.
    pub(super) latest: Elapsed,
}

/// An outage as a connection sees it that may have died in it without a word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cut {
    /// What was opened later is a return.
    pub(super) trigger: Elapsed,
    /// When the target was ready again, or the trigger before that. Up to here a receipt proves nothing: between the
    /// trigger and its death the old server still sends.
    pub(super) over: Elapsed,
    /// How long clients may take after that to find out for themselves that a connection is dead: until then herd closes
    /// none, and waits for them.
    pub(super) silence: Duration,
}

impl Cut {
    /// When every client must have noticed.
    fn noticed(self) -> Elapsed {
        self.over + self.silence
    }
}

/// Counts them. A connection that is older than the cut and silent since may be dead.
pub(super) fn standing(
    crew: &Crew,
    now: Elapsed,
    cut: Cut,
    needed: &Needed,
    patience: Patience,
) -> Standing {
    let mut standing = Standing::default();
    let last_answer = needed.last_answer().unwrap_or_default();
    for handle in crew.handles() {
        let progress = handle.progress();
        let complete = needed.complete(handle, progress);
        standing.complete += usize::from(complete);
        let opened = progress.opened.unwrap_or_default();
        let opened = opened.min(patience.latest);
        let overdue = |since: Elapsed| now > since + patience.settle;
        match progress.status {
            Status::GaveUp => {}
            Status::Connected => {
                let silent = silent_since(progress, cut);
                let caught_up = !silent && needed.caught_up(handle, progress);
                standing.back += usize::from(!silent);
                standing.caught_up += usize::from(caught_up);
                let waited_for = if silent { cut.noticed() } else { opened };
                // A request for the full state has a limit of its own.
                let waits = progress.reloading || !caught_up && !overdue(waited_for);
                standing.recovering += usize::from(waits);
                standing.settling += usize::from(!complete && !overdue(opened.max(last_answer)));
            }
            Status::Connecting | Status::Reconnecting => {
                let lost = progress.dropped.unwrap_or_default().min(patience.latest);
                let awaited = usize::from(now <= lost + patience.back);
                standing.recovering += awaited;
                standing.settling += awaited;
            }
        }
    }
    standing
}

fn silent_since(progress: Progress, cut: Cut) -> bool {
    let older = progress.opened.is_some_and(|opened| opened <= cut.trigger);
    older && progress.last_receipt.is_none_or(|at| at <= cut.over)
}

/// Closes connections that stayed open over the outage and silent for 5 s after others came back and received (rule 5).
/// `others_since` is when the first of those received; the caller keeps it.
pub(super) fn close_half_open(
    crew: &Crew,
    now: Elapsed,
    cut: Cut,
    others_since: &mut Option<Elapsed>,
) {
    if others_since.is_none() {
        let receives = |p: Progress| {
            let (opened, at) = p.opened.zip(p.last_receipt)?;
            (opened > cut.trigger && at >= opened + LIVE).then_some(at)
        };
        let mut handles = crew.handles().iter();
        *others_since = handles.find_map(|handle| receives(handle.progress()));
    }
    if now < cut.noticed() {
        return;
    }
    if others_since.is_some_and(|since| now.since(since) >= SILENCE) {
        for handle in crew.handles() {
            let progress = handle.progress();
            if progress.status == Status::Connected && silent_since(progress, cut) {
                handle.close_half_open(progress.sessions);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_was_open_until_it_was_lost() {
        let at = Elapsed::from_millis;
        let open = |status, opened: u64, dropped: Option<u64>| {
            let progress = Progress {
                status,
                opened: Some(at(opened)),
                dropped: dropped.map(at),
                ..Progress::default()
            };
            was_open(progress, at(1_000))
        };
        assert!(open(Status::Connected, 10, None));
        assert!(open(Status::Reconnecting, 10, Some(1_001)));
        assert!(open(Status::Connected, 1_050, Some(1_001)), "back already");
        assert!(!open(Status::Reconnecting, 10, Some(990)), "lost before");
        assert!(!open(Status::Connected, 1_050, Some(990)), "opened later");
    }

    #[test]
    fn what_the_old_server_sent_before_it_died_is_no_sign_of_life() {
        let at = Elapsed::from_millis;
        let cut = Cut {
            trigger: at(1_000),
            over: at(1_600),
            silence: Duration::ZERO,
        };
        let silent = |opened, last_receipt| {
            let progress = Progress {
                opened: Some(at(opened)),
                last_receipt: Some(at(last_receipt)),
                ..Progress::default()
            };
            silent_since(progress, cut)
        };
        assert!(silent(10, 990));
        assert!(silent(10, 1_020), "published while the kill was under way");
        assert!(!silent(10, 1_700), "it receives from the new server");
        assert!(!silent(1_700, 990), "it came back");
    }
}
