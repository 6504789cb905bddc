//! What became of whom: every publication, the lane of those to be sent again, and what the history hasn't heard yet.
//!
//! Pure bookkeeping: no socket, no clock, no decision about answers.

use std::collections::{BTreeSet, VecDeque};

use super::outcome::{self, Answer, Next, Repeat, Schedule};
use crate::history::{Elapsed, Fate, Publication, PublicationKind, Seq};

/// A publication's place in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ix(usize);

/// How many publications there are of each fate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub sent: u64,
    /// Accepted.
    pub acked: u64,
    /// Definitely not accepted so far; those that were refused are sent again.
    pub failed: u64,
    /// The answer was lost or is not in yet.
    pub unknown: u64,
    /// What the latest try that didn't succeed met.
    pub last_problem: Option<String>,
}

#[derive(Debug)]
pub(super) struct Book {
    first: Seq,
    kind: PublicationKind,
    rate: f64,
    /// None while paused.
    schedule: Option<Schedule>,
    publications: Vec<Publication>,
    changed: BTreeSet<Ix>,
    in_flight: BTreeSet<Ix>,
    lane: VecDeque<Ix>,
    last_problem: Option<String>,
}

impl Book {
    pub(super) fn new(first: Seq, start: Elapsed, rate: f64) -> Self {
        Self {
            first,
            kind: PublicationKind::Priming,
            rate,
            schedule: Some(Schedule::new(start, rate)),
            publications: Vec::new(),
            changed: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            lane: VecDeque::new(),
            last_problem: None,
        }
    }

    fn next_seq(&self) -> Seq {
        Seq(self.first.0 + self.publications.len() as u64)
    }

    pub(super) fn set_kind(&mut self, kind: PublicationKind) -> Seq {
        self.kind = kind;
        self.next_seq()
    }

    pub(super) fn pause(&mut self) {
        self.schedule = None;
    }

    pub(super) fn resume(&mut self, now: Elapsed) {
        if self.schedule.is_none() {
            self.schedule = Some(Schedule::new(now, self.rate));
        }
    }

    pub(super) fn next_due(&self) -> Option<Elapsed> {
        self.schedule.as_ref().map(Schedule::due)
    }

    /// Makes the next publication if it is due.
    pub(super) fn make_due(&mut self, now: Elapsed) -> Option<Ix> {
        let seq = self.next_seq();
        let schedule = self.schedule.as_mut()?;
        let due = schedule.due();
        if due > now {
            return None;
        }
        schedule.advance();
        let ix = Ix(self.publications.len());
        self.publications.push(Publication {
            seq,
            kind: self.kind,
            due,
            first_sent: now,
            sent: now,
            answered: None,
            fate: Fate::Unknown,
            id: None,
            position: None,
            tries: 0,
            lost_answers: 0,
        });
        self.changed.insert(ix);
        Some(ix)
    }

    /// A try begins.
    pub(super) fn begin(&mut self, ix: Ix, now: Elapsed) -> Seq {
        let p = &mut self.publications[ix.0];
        if p.tries == 0 {
            p.first_sent = now;
        }
        p.tries += 1;
        p.sent = now;
        p.fate = Fate::Unknown;
        p.answered = None;
        self.in_flight.insert(ix);
        self.changed.insert(ix);
        p.seq
    }

    /// Its first try was answered.
    pub(super) fn answer(&mut self, ix: Ix, answer: Answer, at: Elapsed, repeat: Repeat) {
        if self.settle(ix, answer, at, repeat) == Next::Again {
            self.lane.push_back(ix);
        }
    }

    /// A try from the lane was answered. One that couldn't be sent is the head again; one that was answered without
    /// success lets the others pass, so that it can't hold them up for ever.
    pub(super) fn answer_to_lane(&mut self, ix: Ix, answer: Answer, at: Elapsed, repeat: Repeat) {
        let unsent = matches!(answer, Answer::Unsent(_));
        match self.settle(ix, answer, at, repeat) {
            Next::Done => {}
            Next::Again if unsent => self.lane.push_front(ix),
            Next::Again => self.lane.push_back(ix),
        }
    }

    fn settle(&mut self, ix: Ix, answer: Answer, at: Elapsed, repeat: Repeat) -> Next {
        match &answer {
            Answer::Accepted(_) => {}
            Answer::Unsent(why) | Answer::Lost(why) => self.last_problem = Some(why.clone()),
            Answer::Status(status) => self.last_problem = Some(format!("status {status}")),
            Answer::Declined => self.last_problem = Some("the command said no".into()),
        }
        self.in_flight.remove(&ix);
        self.changed.insert(ix);
        outcome::note(&mut self.publications[ix.0], answer, at, repeat)
    }

    /// A command's line: no answer is awaited.
    pub(super) fn unanswered(&mut self, ix: Ix) {
        self.in_flight.remove(&ix);
    }

    /// A command's answer, if it is the first one to this try.
    pub(super) fn answer_by_seq(&mut self, seq: Seq, answer: Answer, at: Elapsed, repeat: Repeat) {
        let ix = seq
            .0
            .checked_sub(self.first.0)
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n < self.publications.len());
        let Some(ix) = ix else {
            self.last_problem = Some("the command answered a number that was never sent".into());
            return;
        };
        let p = &self.publications[ix];
        if p.answered.is_none() && p.fate == Fate::Unknown {
            self.answer(Ix(ix), answer, at, repeat);
        }
    }

    pub(super) fn leave_lane(&mut self) -> Option<Ix> {
        self.lane.pop_front()
    }

    pub(super) fn outstanding(&self) -> usize {
        self.in_flight.len() + self.lane.len()
    }

    /// What is under way is lost.
    pub(super) fn finish(&mut self) {
        for ix in std::mem::take(&mut self.in_flight) {
            self.publications[ix.0].lost_answers += 1;
            self.changed.insert(ix);
        }
    }

    pub(super) fn take(&mut self) -> Vec<Publication> {
        std::mem::take(&mut self.changed)
            .into_iter()
            .map(|ix| self.publications[ix.0].clone())
            .collect()
    }

    pub(super) fn publications(&self) -> &[Publication] {
        &self.publications
    }

    pub(super) fn counts(&self) -> Counts {
        let of = |fate| self.publications.iter().filter(|p| p.fate == fate).count() as u64;
        Counts {
            sent: self.publications.len() as u64,
            acked: of(Fate::Acked),
            failed: of(Fate::Failed),
            unknown: of(Fate::Unknown),
            last_problem: self.last_problem.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEAT: Repeat = Repeat::Idempotent;

    fn refused() -> Answer {
        Answer::Unsent("refused".into())
    }

    fn accepted() -> Answer {
        Answer::Accepted(outcome::Receipted::default())
    }

    fn sent(book: &mut Book, ms: u64) -> Ix {
        let ix = book.make_due(Elapsed::from_millis(ms)).unwrap();
        book.begin(ix, Elapsed::from_millis(ms));
        ix
    }

    #[test]
    fn a_lane_is_worked_off_in_order_and_a_poisoned_head_lets_others_pass() {
        let mut book = Book::new(Seq(101), Elapsed::ZERO, 1_000.0);
        let all: Vec<Ix> = (0..3).map(|ms| sent(&mut book, ms)).collect();
        for ix in &all {
            book.answer(*ix, refused(), Elapsed::from_millis(5), REPEAT);
        }
        assert_eq!((book.counts().failed, book.outstanding()), (3, 3));
        let head = book.leave_lane().unwrap();
        assert_eq!(book.begin(head, Elapsed::from_millis(50)), Seq(101));
        assert_eq!(book.counts().unknown, 1);
        book.answer_to_lane(head, refused(), Elapsed::from_millis(51), REPEAT);
        assert_eq!(book.leave_lane(), Some(head));
        book.begin(head, Elapsed::from_millis(100));
        book.answer_to_lane(head, Answer::Status(500), Elapsed::from_millis(101), REPEAT);
        assert_eq!(book.leave_lane(), Some(all[1]));
        book.begin(all[1], Elapsed::from_millis(150));
        book.answer_to_lane(all[1], accepted(), Elapsed::from_millis(151), REPEAT);
        let p = &book.publications()[1];
        assert_eq!((p.fate, p.tries, p.lost_answers), (Fate::Acked, 2, 0));
        assert_eq!(p.first_sent, Elapsed::from_millis(1));
        assert_eq!(p.sent, Elapsed::from_millis(150));
    }

    #[test]
    fn the_history_hears_of_every_change_once() {
        let mut book = Book::new(Seq(1), Elapsed::ZERO, 1_000.0);
        let first = sent(&mut book, 0);
        let second = sent(&mut book, 1);
        assert_eq!(book.take().len(), 2);
        assert_eq!(book.take(), []);
        book.answer(second, accepted(), Elapsed::from_millis(2), REPEAT);
        let taken = book.take();
        assert_eq!((taken.len(), taken[0].seq), (1, Seq(2)));
        book.finish();
        let taken = book.take();
        assert_eq!((taken[0].seq, taken[0].lost_answers), (Seq(1), 1));
        let _ = first;
    }

    #[test]
    fn the_kind_changes_at_a_boundary() {
        let mut book = Book::new(Seq(8), Elapsed::ZERO, 1_000.0);
        sent(&mut book, 0);
        assert_eq!(book.set_kind(PublicationKind::Expected), Seq(9));
        sent(&mut book, 1);
        let kinds: Vec<_> = book.publications().iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [PublicationKind::Priming, PublicationKind::Expected]);
    }

    #[test]
    fn a_pause_makes_no_events_and_no_backlog() {
        let mut book = Book::new(Seq(1), Elapsed::ZERO, 10.0);
        sent(&mut book, 0);
        book.pause();
        assert_eq!(book.make_due(Elapsed::from_millis(900)), None);
        book.resume(Elapsed::from_millis(1_000));
        sent(&mut book, 1_000);
        assert_eq!(book.make_due(Elapsed::from_millis(1_000)), None);
        assert_eq!(book.publications()[1].due, Elapsed::from_millis(1_000));
    }

    #[test]
    fn a_command_answers_once_and_only_what_was_sent() {
        let mut book = Book::new(Seq(5), Elapsed::ZERO, 1_000.0);
        let ix = sent(&mut book, 0);
        book.unanswered(ix);
        assert_eq!(book.outstanding(), 0);
        let at = Elapsed::from_millis(3);
        for seq in [4, 6, u64::MAX] {
            book.answer_by_seq(Seq(seq), accepted(), at, REPEAT);
        }
        assert_eq!(book.counts().acked, 0);
        book.answer_by_seq(Seq(5), accepted(), at, REPEAT);
        book.answer_by_seq(Seq(5), Answer::Declined, at, REPEAT);
        assert_eq!((book.counts().acked, book.outstanding()), (1, 0));
    }
}
