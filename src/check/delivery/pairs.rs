//! The end of one client's pairs (rule 13): what was never delivered is lost, reset, absent or not yet due. It looks at no
//! receipt again.

use super::explain::Loss;
use super::walk::Walk;
use crate::check::bystanders::Missed;
use crate::check::{MAX_OFFENDERS, Offender, Wrong};
use crate::history::{Elapsed, End};

/// How a pair ended that was never delivered.
enum Missing {
    Lost,
    Reset,
    Absent,
    NotDue,
    /// The client was new when it was past: no pair of the count.
    Past,
}

impl Walk<'_, '_> {
    fn missing(&self, x: u32) -> Missing {
        let history = self.scene.history;
        let deadline = self.presence.deadline(self.scene.catalogue.item(x).known);
        let reset = self.resets.iter().find(|(_, covered)| covered.has(x));
        if let Some(since) = self.newcomer.past(x) {
            // Overdue, or reloaded, before the client forgot everything: that doesn't undo it.
            return match (deadline, reset) {
                (Some(due), Some((at, _))) if due < *at && due < since => Missing::Lost,
                (_, Some((at, _))) if *at < since => Missing::Reset,
                (Some(due), _) if due < since => Missing::Lost,
                _ => Missing::Past,
            };
        }
        match (deadline, reset) {
            // Overdue before the reload was asked for: the reload doesn't undo it.
            (Some(due), Some((at, _))) if due < *at => Missing::Lost,
            (_, Some(_)) => Missing::Reset,
            (Some(due), None) if due <= history.horizon => Missing::Lost,
            (Some(_), None) => Missing::NotDue,
            (None, None) if self.is_absent() => Missing::Absent,
            (None, None) => Missing::NotDue,
        }
    }

    /// Whether the client is away for good. Whether it should have been back is judged elsewhere, and until then nothing
    /// is due to it.
    fn is_absent(&self) -> bool {
        let (history, terms) = (self.scene.history, &self.scene.history.header.terms);
        let whole = matches!(history.end(), Some(End::Complete));
        let limit = terms.reconnect_limit.unwrap_or(terms.settle);
        let left = self.presence.windows.last().map(|w| w.until);
        let since = left.map_or(Some(Elapsed::ZERO), |until| until);
        let waited = since.is_some_and(|since| history.horizon.since(since) >= limit);
        self.client.quit.is_some() || whole && waited
    }

    /// Ends every pair of the client.
    pub(super) fn pairs(&mut self) {
        let due = self.due.clone();
        let (mut lost, mut unread) = (Vec::new(), Vec::new());
        let (mut reset, mut absent, mut not_due) = (0, 0, 0);
        for x in self.got.missing(due.clone()) {
            match self.missing(x) {
                Missing::Lost if self.is_unread(x) => unread.push(x),
                Missing::Lost => lost.push(x),
                Missing::Reset => reset += 1,
                Missing::Absent => absent += 1,
                Missing::NotDue => not_due += 1,
                Missing::Past => {}
            }
        }
        let delivered = self.got.count(due) - self.late;
        let facts = &mut self.totals.facts;
        facts.delivered += delivered;
        facts.late += self.late;
        facts.lost += lost.len() as u64;
        facts.reset += reset;
        facts.absent += absent;
        facts.expected += delivered + self.late + lost.len() as u64 + reset + absent;
        if matches!(self.scene.history.end(), Some(End::Complete)) {
            self.totals.unobserved += not_due;
        }
        self.told |= reset > 0;
        let missed = |x: &&u32| self.due.contains(x) && !self.got.has(**x);
        let unsure = self.unsure.iter().filter(missed).count() as u64;
        if unsure > 0 {
            let unsubscribed = &mut self.totals.unsubscribed;
            unsubscribed.clients += 1;
            unsubscribed.pairs += unsure;
            unsubscribed.longest = unsubscribed.longest.max(self.unserved);
        }
        for x in &lost {
            self.miss(self.scene.catalogue.item(*x).known);
        }
        self.lose(&lost);
        self.could_not_read(&unread);
    }

    /// Something that became known at this instant never came, or late: whether that was while an outage was not for the
    /// client.
    pub(super) fn miss(&mut self, known: Elapsed) {
        let client = self.client.id;
        for spared in &self.scene.spared {
            if !spared.covers(client, known) {
                continue;
            }
            let outage = spared.outage;
            let mut own =
                (self.totals.missed.iter_mut().rev()).take_while(|missed| missed.client == client);
            match own.find(|missed| missed.outage == outage) {
                Some(missed) => missed.pairs += 1,
                None => self.totals.missed.push(Missed {
                    outage,
                    client,
                    pairs: 1,
                }),
            }
        }
    }

    fn lose(&mut self, lost: &[u32]) {
        let catalogue = self.scene.catalogue;
        if !lost.is_empty() && !self.totals.examples.contains_key(&Wrong::Lost) {
            let loss = Loss {
                history: self.scene.history,
                catalogue,
                client: self.client,
                presence: &self.presence,
                lost,
                outcomes: &self.totals.resumes[self.place],
            };
            self.totals.examples.insert(Wrong::Lost, loss.explain());
        }
        for x in lost.iter().take(MAX_OFFENDERS) {
            let item = catalogue.item(*x);
            let offender = Offender {
                wrong: Wrong::Lost,
                client: self.client.id,
                seq: item.seq,
                id: item.id.map(Into::into),
                at: None,
            };
            self.offences.push((item.known, offender));
        }
    }
}
