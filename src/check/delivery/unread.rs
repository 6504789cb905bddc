//! What came and could not be read: herd's number of a publication stood, whole, in a frame that the profile did not read as
//! its event. Such a pair is not lost, and nothing says that it was delivered as it should be: it is no pair of the count,
//! and the answer is Unknown. It knows no frame: which numbers stood in one was recorded by the client.

use super::bits::Bits;
use super::catalogue::Catalogue;
use super::explain;
use super::walk::Walk;
use crate::history::{Client, Seq, Trace};

/// What all clients could not read.
#[derive(Debug, Default)]
pub(super) struct UnreadFacts {
    /// Pairs that would else be lost.
    pub(super) pairs: u64,
    /// Receipts under an id with herd's number elsewhere, that would else be conflicts.
    pub(super) receipts: u64,
    /// The first one, told in a clause.
    pub(super) example: Option<String>,
}

/// The items whose numbers a client saw in such frames; none where there are no such frames.
pub(super) fn unread(client: &Client, catalogue: &Catalogue<'_>) -> Option<Bits> {
    if client.traced.is_empty() {
        return None;
    }
    let mut traced: Vec<(Seq, Seq)> = client.traced.iter().map(|t| (t.first, t.last)).collect();
    traced.sort_unstable();
    let mut unread = Bits::new(catalogue.items.len());
    for (x, item) in (0..).zip(&catalogue.items) {
        let seen = item.seq.is_some_and(|seq| {
            let before = traced.partition_point(|(first, _)| *first <= seq);
            // Each number is told once, so the ranges don't overlap.
            before > 0 && seq <= traced[before - 1].1
        });
        if seen {
            unread.add(x);
        }
    }
    Some(unread)
}

impl Walk<'_, '_> {
    pub(super) fn is_unread(&self, x: u32) -> bool {
        self.unread.as_ref().is_some_and(|unread| unread.has(x))
    }

    /// These pairs end so.
    pub(super) fn could_not_read(&mut self, items: &[u32]) {
        let facts = &mut self.totals.unread;
        facts.pairs += items.len() as u64;
        let Some(seq) = items
            .first()
            .and_then(|x| self.scene.catalogue.item(*x).seq)
        else {
            return;
        };
        let (history, client) = (self.scene.history, self.client);
        let holds = |trace: &&Trace| (trace.first..=trace.last).contains(&seq);
        let trace = client.traced.iter().find(holds);
        facts
            .example
            .get_or_insert_with(|| explain::traced(history, client, seq, trace));
    }
}
