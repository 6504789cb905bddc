//! herd's publisher in virtual time: numbers, due times, tries and answers. The way there is the world's business.

use std::time::Duration;

use crate::history::{Elapsed, Fate, Publication, PublicationKind, Seq};

/// From a refusal or a lost answer to the next try.
pub(super) const RETRY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Publisher {
    base: u64,
    rate: f64,
    start: Elapsed,
    idempotent: bool,
    publications: Vec<Publication>,
    /// Those whose fate is open.
    pending: usize,
    /// Answers in the order in which they came: when, and to which number.
    answers: Vec<(Elapsed, usize)>,
}

impl Publisher {
    pub(super) fn new(base: u64, rate: f64, start: Elapsed, idempotent: bool) -> Self {
        Self {
            base,
            rate,
            start,
            idempotent,
            publications: Vec::new(),
            pending: 0,
            answers: Vec::new(),
        }
    }

    /// When the next one is due: from the beginning, never from the last answer.
    pub(super) fn due(&self) -> Elapsed {
        self.start + Duration::from_secs_f64(self.publications.len() as f64 / self.rate)
    }

    pub(super) fn seq(&self, number: usize) -> Seq {
        Seq(self.base + number as u64)
    }

    /// The number (from 1) of one of herd's own.
    pub(super) fn number(&self, seq: Seq) -> usize {
        (seq.0 - self.base) as usize
    }

    pub(super) fn len(&self) -> usize {
        self.publications.len()
    }

    pub(super) fn is_expected(&self, number: usize) -> bool {
        self.publications[number - 1].kind == PublicationKind::Expected
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending == 0
    }

    /// Expected and accepted: every client must get these.
    pub(super) fn promised(&self) -> impl Iterator<Item = usize> {
        let promised =
            |p: &Publication| p.kind == PublicationKind::Expected && p.fate == Fate::Acked;
        self.publications
            .iter()
            .enumerate()
            .filter(move |(_, p)| promised(p))
            .map(|(i, _)| i + 1)
    }

    /// The last one answered before an instant.
    pub(super) fn answered_before(&self, at: Elapsed) -> Option<usize> {
        let count = self.answers.partition_point(|(answered, _)| *answered < at);
        Some(self.answers[..count].last()?.1)
    }

    pub(super) fn last_answer(&self) -> Elapsed {
        self.answers.last().map_or(Elapsed::ZERO, |(at, _)| *at)
    }

    /// The next one comes into being; its number.
    pub(super) fn create(&mut self, kind: PublicationKind) -> usize {
        let due = self.due();
        let number = self.publications.len() + 1;
        self.publications.push(Publication {
            seq: self.seq(number),
            kind,
            due,
            first_sent: due,
            sent: due,
            answered: None,
            fate: Fate::Failed,
            id: None,
            position: None,
            tries: 0,
            lost_answers: 0,
        });
        self.pending += 1;
        number
    }

    pub(super) fn sent(&mut self, number: usize, at: Elapsed) {
        let publication = &mut self.publications[number - 1];
        publication.tries += 1;
        publication.sent = at;
    }

    pub(super) fn accepted(&mut self, number: usize, at: Elapsed, id: u64) {
        let publication = &mut self.publications[number - 1];
        publication.fate = Fate::Acked;
        publication.answered = Some(at);
        publication.id = Some(id.to_string().into());
        self.answers.push((at, number));
        self.pending -= 1;
    }

    /// The answer was lost; whether to try again (rule 11 of judgement).
    pub(super) fn unanswered(&mut self, number: usize) -> bool {
        let publication = &mut self.publications[number - 1];
        publication.lost_answers += 1;
        if !self.idempotent {
            publication.fate = Fate::Unknown;
            self.pending -= 1;
        }
        self.idempotent
    }

    pub(super) fn into_publications(self) -> Vec<Publication> {
        self.publications
    }
}
