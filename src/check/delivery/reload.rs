//! What a reload makes of one client's state: because the server asked for it, or because it refused a resume (rule 17).
//! Which items it covers is decided in `resets.rs`, when a refusal takes effect in `refusal.rs`.

use std::time::Duration;

use super::bits::Bits;
use super::order::Progress;
use super::refusal::Beginning;
use super::resets::sent_until;
use super::walk::Walk;
use crate::history::{Elapsed, Receipt, Session};

/// Open is not subscribed (rule 9), but a server has this long to see to it: as long as a session may be silent while others
/// receive (rule 5).
const SUBSCRIBED: Duration = Duration::from_secs(5);

/// Clients that began anew over a connection that brought nothing for longer than [`SUBSCRIBED`], while others received.
#[derive(Debug, Default)]
pub(super) struct Unsubscribed {
    /// How many there are.
    pub(super) clients: u32,
    /// What was sent after that time, and never came to them.
    pub(super) pairs: u64,
    /// The longest time from an opening to its first event.
    pub(super) longest: Duration,
}

impl Walk<'_, '_> {
    /// What an earlier refusal makes of an item that arrives.
    pub(super) fn after_refusal(&mut self, receipt: Receipt) {
        let Some(session) = self.client.sessions.get(receipt.session) else {
            return;
        };
        if let Some(until) = self.newcomer.served(session, receipt.at) {
            self.begin_as_new(session.opened, until);
            self.doubt(session, until);
        }
        if self.refusal.goes_on(receipt.session, session, receipt.at) {
            self.forget();
        }
        if let Some(beginning) = self.refusal.served(session, receipt.at) {
            self.begin_anew(beginning, receipt.at);
            self.doubt(session, beginning.until);
        }
    }

    /// What was sent until then is not owed to the client; but of what was sent long after its connection was open nobody
    /// can tell whether it wasn't.
    fn doubt(&mut self, session: &Session, until: Elapsed) {
        let soon = session.opened + SUBSCRIBED;
        if until <= soon {
            return;
        }
        let catalogue = self.scene.catalogue;
        let (before, sent) = (sent_until(catalogue, soon), sent_until(catalogue, until));
        let unsure = (0..catalogue.items.len() as u32).filter(|x| sent.has(*x) && !before.has(*x));
        self.unsure.extend(unsure);
        self.unserved = self.unserved.max(until.since(session.opened));
    }

    pub(super) fn begin_anew(&mut self, beginning: Beginning, at: Elapsed) {
        let covered = sent_until(self.scene.catalogue, beginning.until);
        self.cover(at, beginning.asked, covered);
        self.tell(beginning.session);
        self.anew = true;
    }

    pub(super) fn reset(&mut self, session: usize, at: Elapsed, covered: Bits) {
        let sessions = &self.client.sessions;
        let told_in = sessions.get(session);
        let over = told_in
            .and_then(|s| s.closed.as_ref())
            .is_some_and(|(closed, _)| *closed <= at);
        if over {
            // A status or a close code says so: nothing of that session's own.
            self.leave();
        }
        // A server may begin a new client's connection so.
        let new = !over && self.newcomer.is_unserved();
        if let Some(session) = told_in.filter(|_| new) {
            self.newcomer.served(session, at);
            self.begin_as_new(session.opened, at);
            self.newcomer.past.push((session.opened, covered.clone()));
        }
        self.cover(at, at, covered);
        self.forget();
        if new {
            return;
        }
        self.refusal.ask(at);
        let resumed = told_in.is_some_and(|s| s.resumed_from.is_some());
        if over {
            self.told = true;
        } else if resumed || session > 0 || self.first.is_some() {
            // Before its first event a client has nothing to reload: servers may begin a connection so.
            self.tell(session);
        }
    }

    /// These items need not come any more, as the server `asked` then; the client knows since `at`.
    fn cover(&mut self, at: Elapsed, asked: Elapsed, covered: Bits) {
        self.covered.add_all(&covered);
        if let Some(visit) = &mut self.visit {
            visit.reset(at, &covered);
        }
        self.resets.push((asked, covered));
    }

    /// What the client holds, and its order, begin anew.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        self.copies.clear();
        self.reused.clear();
        self.progress = Progress::default();
    }

    /// The client was told to reload in this session. It was away since the last one that was of use to it.
    fn tell(&mut self, session: usize) {
        self.told = true;
        let sessions = &self.client.sessions;
        let Some(now) = sessions.get(session) else {
            return;
        };
        let before = (0..session)
            .rev()
            .find(|i| !self.flapped(*i) && sessions[*i].refused.is_none());
        let dropped = before.and_then(|before| sessions[before].dropped());
        let away = dropped.map(|dropped| self.scene.catalogue.between(dropped, now.dialled).len());
        let longest = &mut self.totals.longest_absence;
        *longest = (*longest).max(away.unwrap_or(0) as u32);
    }
}
