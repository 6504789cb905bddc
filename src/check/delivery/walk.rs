//! One client after the other: every receipt is counted as one thing, every pair ends as one thing (rule 13).
//!
//! Only one client's state is in memory at a time, a few bits an item. What an event means was decided in the
//! catalogue; what the counts come to is decided in `findings.rs`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::Duration;

use super::again::Again;
use super::bits::Bits;
use super::catalogue::{Catalogue, Meaning};
use super::explain;
use super::newcomer::{self, Newcomer};
use super::order::{Order, Progress};
use super::presence::Presence;
use super::refusal::Refusal;
use super::reload::Unsubscribed;
use super::resets::{Covers, sent_until};
use super::unread::{UnreadFacts, unread};
use super::visit::{Holdings, Visit};
use crate::check::bystanders::{Missed, Spared};
use crate::check::dedupe::{self, Delivery, Handlers, Kind};
use crate::check::timeline::{Place, Timeline};
use crate::check::{DeliveryFacts, MAX_OFFENDERS, Offender, ResumeOutcome, Return, Wrong};
use crate::history::{Client, Elapsed, Entry, EventIx, Fate, History, Receipt, Seq, Source};

/// What all clients share.
pub(super) struct Scene<'a> {
    pub(super) history: &'a History,
    pub(super) timeline: &'a Timeline,
    pub(super) catalogue: &'a Catalogue<'a>,
    pub(super) order: &'a Order<'a>,
    /// Times in which some clients must not notice anything.
    pub(super) spared: Vec<Spared>,
}

/// What all clients come to.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) facts: DeliveryFacts,
    /// Pairs still within their limit when a run ended as planned.
    pub(super) unobserved: u64,
    /// Receipts of items by clients that had one before.
    pub(super) compared: u64,
    /// What came and could not be read.
    pub(super) unread: UnreadFacts,
    /// Clients that began anew and were left without events for long.
    pub(super) unsubscribed: Unsubscribed,
    /// Clients that received nothing that counts (observe mode).
    pub(super) silent: u32,
    /// Clients that the server told to reload.
    pub(super) told: u32,
    /// Of these, clients that were told so by a refused resume.
    pub(super) refused: u32,
    /// The most items that came while one of these was away, and who.
    pub(super) longest_absence: u32,
    pub(super) offenders: Vec<Offender>,
    /// The first offence of each kind, told in a clause.
    pub(super) examples: BTreeMap<Wrong, String>,
    /// What handlers make of repeats; none where nobody asked.
    pub(super) handlers: Option<Handlers>,
    pub(super) resumes: Vec<Vec<Option<ResumeOutcome>>>,
    pub(super) caught_up: Vec<Vec<Option<Elapsed>>>,
    /// What clients missed of an outage that was not for them.
    pub(super) missed: Vec<Missed>,
}

/// One client's state while its entries are read.
pub(super) struct Walk<'s, 'a> {
    pub(super) scene: &'s Scene<'a>,
    pub(super) totals: &'s mut Totals,
    pub(super) client: &'a Client,
    pub(super) place: usize,
    pub(super) presence: Presence,
    /// Received since the last reset.
    pub(super) held: Bits,
    /// Received at all.
    pub(super) got: Bits,
    /// Covered by a reset.
    pub(super) covered: Bits,
    pub(super) resets: Vec<(Elapsed, Bits)>,
    pub(super) progress: Progress,
    /// Of items that may have several copies: those received since the last reset.
    pub(super) copies: HashMap<u32, Vec<EventIx>>,
    pub(super) again: Again,
    /// Of ids that were used again: the number that this client has under it since the last reset.
    pub(super) reused: HashMap<u32, Option<Seq>>,
    /// Came in frames that were not read as their events; none where there are no such frames.
    pub(super) unread: Option<Bits>,
    pub(super) visit: Option<Visit>,
    pub(super) refusal: Refusal,
    pub(super) newcomer: Newcomer,
    /// What was sent to others long after it had begun anew, before anything came to it; and for how long nothing did.
    pub(super) unsure: Vec<u32>,
    pub(super) unserved: Duration,
    pub(super) told: bool,
    /// It began anew without a cursor, after a refused resume or a reset.
    pub(super) anew: bool,
    /// Of its sessions.
    pub(super) places: &'s [Place],
    pub(super) late: u64,
    /// The items that the client must get.
    pub(super) due: Range<u32>,
    pub(super) first: Option<Elapsed>,
    pub(super) offences: Vec<(Elapsed, Offender)>,
    /// For the handlers; empty where there are none.
    pub(super) log: dedupe::Log,
}

impl<'s, 'a> Walk<'s, 'a> {
    /// Reads one client's record into the totals.
    pub(super) fn run(
        scene: &'s Scene<'a>,
        totals: &'s mut Totals,
        covers: &mut Covers<'a>,
        place: usize,
        returns: &[&Return],
    ) {
        let history = scene.history;
        let client = &history.clients[place];
        let places = scene
            .timeline
            .sessions
            .get(place)
            .map_or(&[][..], Vec::as_slice);
        let items = scene.catalogue.items.len();
        totals.resumes.push(vec![None; client.sessions.len()]);
        totals.caught_up.push(vec![None; client.sessions.len()]);
        let mut walk = Self {
            scene,
            totals,
            client,
            place,
            presence: Presence::new(client, places, returns, history.header.terms.settle),
            held: Bits::new(items),
            got: Bits::new(items),
            covered: Bits::new(items),
            resets: Vec::new(),
            progress: Progress::default(),
            copies: HashMap::new(),
            again: Again::new(history.header.terms.duplicates, items),
            reused: HashMap::new(),
            unread: unread(client, scene.catalogue),
            visit: None,
            refusal: Refusal::default(),
            newcomer: Newcomer::default(),
            unsure: Vec::new(),
            unserved: Duration::ZERO,
            told: false,
            anew: false,
            places,
            late: 0,
            due: match history.header.terms.source {
                Source::Herd => 0..items as u32,
                Source::Others | Source::Nobody => 0..0,
            },
            first: None,
            offences: Vec::new(),
            log: dedupe::Log::default(),
        };
        for entry in client.entries(history) {
            match entry {
                Entry::Session { session, .. } => walk.session(session),
                Entry::Receipt(receipt) => walk.receipt(receipt),
                Entry::Reset { at, event, session } => {
                    let covered = covers.of(scene.catalogue, at, event);
                    walk.reset(session, at, covered);
                }
            }
        }
        walk.leave();
        walk.pairs();
        walk.finish();
    }

    fn holdings(&self) -> Holdings<'_> {
        Holdings {
            held: &self.held,
            covered: &self.covered,
            unread: self.unread.as_ref(),
            first: self.due.start,
        }
    }

    pub(super) fn flapped(&self, index: usize) -> bool {
        self.places.get(index).is_some_and(|p| p.flapped)
    }

    fn session(&mut self, index: usize) {
        self.leave();
        if let Some(session) = self.client.sessions.get(index) {
            let anew = self.refusal.session(self.client, index);
            if self.newcomer.session(self.client, index) {
                // What it was told before it forgot everything stands, and changes nothing any more.
                let since = newcomer::since(self.client, index).unwrap_or_default();
                self.told |= self.refusal.forget(since);
                self.forget();
                let past = self.scene.catalogue.known_before(session.dialled);
                self.covered.add_all(&past);
            } else if anew {
                self.forget();
            }
            let flapped = self.flapped(index);
            let visit = Visit::new(
                index,
                session,
                flapped,
                self.scene.catalogue,
                &self.holdings(),
            );
            self.visit = Some(visit);
        }
    }

    /// The session that was being read is over.
    pub(super) fn leave(&mut self) {
        let Some(index) = self.visit.as_ref().map(|visit| visit.index) else {
            return;
        };
        let session = &self.client.sessions[index];
        if let Some(beginning) = self.refusal.left(session) {
            self.begin_anew(beginning, session.opened);
        }
        if let Some(until) = self.newcomer.left(session) {
            self.begin_as_new(session.opened, until);
        }
        let Some(visit) = self.visit.take() else {
            return;
        };
        let end = self
            .presence
            .windows
            .iter()
            .find(|w| w.opened == session.opened)
            .and_then(|w| w.until)
            .unwrap_or(self.scene.history.horizon);
        let outcome = visit.outcome(
            session,
            end,
            self.scene.catalogue,
            &self.holdings(),
            &self.presence,
            self.scene.history.header.terms.settle,
        );
        self.totals.resumes[self.place][visit.index] = outcome;
        self.totals.caught_up[self.place][visit.index] = visit.caught_up;
    }

    /// What was sent until then is past to the new client.
    pub(super) fn begin_as_new(&mut self, opened: Elapsed, until: Elapsed) {
        let past = sent_until(self.scene.catalogue, until);
        self.covered.add_all(&past);
        self.newcomer.past.push((opened, past));
    }

    fn receipt(&mut self, receipt: Receipt) {
        let reading = self.scene.catalogue.readings[receipt.event.0 as usize];
        if reading.reused != 0 {
            self.used_again(reading.reused, receipt);
        }
        if !matches!(reading.meaning, Meaning::Item(_)) {
            self.deliver(receipt, Delivery::Other);
        }
        match reading.meaning {
            Meaning::Item(x) => self.item(x, receipt),
            Meaning::Nothing => {}
            Meaning::Foreign => self.totals.facts.foreign += 1,
            Meaning::Unexpected => {
                self.totals.facts.unexpected += 1;
                self.offend(Wrong::Unexpected, receipt);
            }
            Meaning::Conflict(Some(x)) if self.is_unread(x) => self.totals.unread.receipts += 1,
            Meaning::Conflict(_) => {
                self.totals.facts.conflict += 1;
                self.offend(Wrong::Conflict, receipt);
            }
        }
    }

    /// A right content of an id that the server used for several: a conflict where the client has another one.
    fn used_again(&mut self, id: u32, receipt: Receipt) {
        let seq = self.scene.history.event(receipt.event).seq;
        if *self.reused.entry(id).or_insert(seq) != seq {
            self.totals.facts.conflict += 1;
            self.offend(Wrong::Conflict, receipt);
        }
    }

    fn item(&mut self, x: u32, receipt: Receipt) {
        self.after_refusal(receipt);
        let scene = self.scene;
        let item = scene.catalogue.item(x);
        if self.first.is_none() {
            self.first = Some(receipt.at);
            self.open_window(receipt.at);
        } else {
            self.totals.compared += 1;
        }
        let again = self.held.has(x);
        if item.copies > 1 {
            let copies = self.copies.entry(x).or_default();
            let same = |copy: &EventIx| {
                let event = |ix| scene.history.event(ix).identity();
                event(*copy) == event(receipt.event)
            };
            if again && (copies.iter().any(same) || copies.len() >= item.copies as usize) {
                return self.duplicate(x, receipt);
            }
            copies.push(receipt.event);
        } else if again {
            return self.duplicate(x, receipt);
        }
        self.again.first(x, receipt);
        self.deliver(receipt, Delivery::New(x));
        // By position or interval only the first copy has a place in the order.
        let judged = !again || scene.order.is_ranked();
        if judged
            && self
                .progress
                .is_late(scene.order, scene.catalogue, receipt.event, x)
        {
            self.totals.facts.reordered += 1;
            self.offend(Wrong::Reordered, receipt);
        }
        if again {
            return;
        }
        self.held.add(x);
        // What was there before the client was new is no pair of the count, given to it or not.
        let past = self.newcomer.past(x);
        let before = past.is_some_and(|since| item.known < since);
        if !self.got.has(x) && !before {
            self.got.add(x);
            self.totals.facts.recovered += u64::from(item.fate == Fate::Unknown);
            let deadline = self.presence.deadline(item.known);
            if self.due.contains(&x) && deadline.is_some_and(|d| receipt.at > d) {
                self.late += 1;
                self.miss(item.known);
                self.offend(Wrong::Late, receipt);
            }
        }
        if let Some(visit) = &mut self.visit {
            visit.receipt(x, receipt.at);
        }
    }

    fn duplicate(&mut self, x: u32, receipt: Receipt) {
        let (history, client) = (self.scene.history, self.client);
        if self.again.is_allowed(history, client, x, receipt) {
            self.deliver(receipt, Delivery::Repeat(x, Kind::Redelivered));
            self.totals.facts.redelivered += 1;
        } else {
            self.deliver(receipt, Delivery::Repeat(x, Kind::Duplicated));
            self.totals.facts.duplicated += 1;
            self.offend(Wrong::Duplicated, receipt);
        }
    }

    /// Tells the handler behind the client.
    fn deliver(&mut self, receipt: Receipt, delivery: Delivery) {
        if self.totals.handlers.is_some() {
            self.log.push(receipt.at, delivery);
        }
    }

    /// Rule 20: where others publish, a client must get what is first seen from its own first receipt on until a
    /// settle limit before the end.
    fn open_window(&mut self, at: Elapsed) {
        let history = self.scene.history;
        if history.header.terms.source == Source::Others {
            let to = history.horizon - history.header.terms.settle;
            self.due = self
                .scene
                .catalogue
                .between(at, Elapsed(to.0.saturating_add(1)));
        }
    }

    fn offend(&mut self, wrong: Wrong, receipt: Receipt) {
        let (history, client) = (self.scene.history, self.client);
        self.totals
            .examples
            .entry(wrong)
            .or_insert_with(|| explain::receipt(history, client, wrong, receipt));
        if self.offences.len() < MAX_OFFENDERS {
            let event = history.event(receipt.event);
            let offender = Offender {
                wrong,
                client: client.id,
                seq: event.seq,
                id: event.id.as_deref().map(Into::into),
                at: Some(receipt.at),
            };
            self.offences.push((receipt.at, offender));
        }
    }

    fn finish(mut self) {
        if let Some(handlers) = &mut self.totals.handlers {
            handlers.add(&self.log);
        }
        let others = self.scene.history.header.terms.source == Source::Others;
        self.totals.silent += u32::from(others && self.first.is_none());
        self.totals.told += u32::from(self.told);
        let sessions = &self.client.sessions;
        let refused =
            !self.client.refused_dials.is_empty() || sessions.iter().any(|s| s.refused.is_some());
        self.totals.refused += u32::from(self.anew && refused);
        self.offences.sort_by_key(|(at, _)| *at);
        let room = MAX_OFFENDERS - self.totals.offenders.len();
        let named = self.offences.drain(..).take(room).map(|(_, o)| o);
        self.totals.offenders.extend(named);
    }
}
