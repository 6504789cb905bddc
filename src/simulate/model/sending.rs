//! What each subscriber is sent, at once and live, and what the planted bug makes of it.

use std::ops::Range;

use super::{Feed, Frame, Model, NOBODY, Subscriber, name};
use crate::server::defect::Defect;

/// `gap-at-handoff`: so many are published between replay and subscription.
const GAP: u32 = 2;

/// `legal-redelivery`: so many come again.
const AGAIN: usize = 3;

impl Model {
    /// A client connected, with the id that it had last; the frames that it gets at once.
    pub(in crate::simulate) fn subscribe(
        &mut self,
        client: usize,
        after: Option<u64>,
        out: &mut Vec<Frame>,
    ) {
        self.subscribers[client] = Subscriber {
            feed: Feed::All,
            ..NOBODY
        };
        let Some(after) = after else {
            return;
        };
        let kept = self.kept_after(after);
        match self.acting() {
            Some(Defect::ResetAlways) => self.reset(after, self.next_id - 1, out),
            Some(Defect::NeverCatchUp) => self.withhold(client, kept),
            Some(Defect::LyingSession) => {
                out.push(Frame::CaughtUp);
                self.withhold(client, kept);
            }
            Some(Defect::Zombie) if self.life > 0 => {
                self.subscribers[client].feed = Feed::Nothing;
                self.withhold(client, kept);
            }
            Some(Defect::UnknownIsNow) if after <= self.forgotten => {
                let missed = self.log.partition_point(|e| e.id <= after);
                self.withhold(client, missed..self.log.len());
            }
            Some(Defect::ForgetLog) if after <= self.forgotten => self.withhold(client, kept),
            Some(Defect::LiveNotResubscribed) => {
                self.subscribers[client].feed = Feed::Nothing;
                self.replay(client, kept, out);
            }
            Some(Defect::IdsRestart) if self.life > 0 => {
                self.subscribers[client].feed = Feed::Above(after);
                self.withhold(client, self.start..kept.start);
                self.replay(client, kept, out);
            }
            Some(Defect::SkipEvicted | Defect::SilentOldest) if after < self.evicted => {
                let missing = self.log.partition_point(|e| e.id <= after);
                self.withhold(client, missing..self.start);
                self.replay(client, kept, out);
            }
            Some(Defect::SilentOldest) if after >= self.next_id => {
                self.replay(client, self.start..self.log.len(), out);
            }
            Some(Defect::PartialWithFlag) if after < self.evicted => {
                self.reset(after, self.evicted, out);
                self.replay(client, kept, out);
            }
            _ if after < self.evicted || after >= self.next_id => {
                self.reset(after, self.next_id - 1, out);
            }
            Some(Defect::GapAtHandoff) => {
                self.subscribers[client].feed = Feed::Gap(GAP);
                self.replay(client, kept, out);
            }
            Some(Defect::LiveOvertakes) if !kept.is_empty() => {
                let last = kept.end - 1;
                self.subscribers[client].held = Some(last);
                self.replay(client, kept.start..last, out);
            }
            Some(Defect::DataBeforeAck) => {
                self.subscribers[client].waits = true;
                self.replay(client, kept, out);
            }
            Some(Defect::LegalRedelivery) => {
                let again = kept.start.saturating_sub(AGAIN).max(self.start)..kept.start;
                self.ledger.redelivered +=
                    again.clone().filter(|&at| self.counts(at)).count() as u64;
                out.extend(again.map(Frame::Again));
                self.replay(client, kept, out);
            }
            Some(Defect::LoseOnResume) if !kept.is_empty() && self.bites(client, kept.start) => {
                let draw = self.draw(client, kept.end) * kept.len() as f64;
                let skipped = kept.start + draw as usize;
                self.replay(client, kept.start..skipped, out);
                self.withhold(client, skipped..skipped + 1);
                self.replay(client, skipped + 1..kept.end, out);
            }
            Some(Defect::DuplicateOnResume) if kept.start > self.start => {
                self.ledger.duplicated += 1;
                self.replay(client, kept.start - 1..kept.end, out);
            }
            _ => self.replay(client, kept, out),
        }
    }

    /// What one subscriber gets of an event that was just stored.
    pub(in crate::simulate) fn live(&mut self, client: usize, at: usize, out: &mut Vec<Frame>) {
        let id = self.log[at].id;
        match self.subscribers[client].feed {
            Feed::None => return,
            Feed::Nothing => return self.withhold(client, at..at + 1),
            Feed::Above(after) if id <= after => return self.withhold(client, at..at + 1),
            Feed::Gap(left @ 1..) => {
                self.subscribers[client].feed = Feed::Gap(left - 1);
                return self.withhold(client, at..at + 1);
            }
            Feed::Above(_) | Feed::Gap(0) | Feed::All => {}
        }
        let Some(defect) = self.acting() else {
            out.push(Frame::Event(at));
            return;
        };
        if let Some(held) = self.subscribers[client].held.take() {
            self.ledger.reordered += 1;
            out.extend([Frame::Event(at), Frame::Event(held)]);
            if defect == Defect::LiveOvertakes {
                self.ledger.duplicated += 1;
                out.push(Frame::Event(at));
            }
            return;
        }
        let bites = self.bites(client, at);
        match defect {
            Defect::LoseLive if bites => self.withhold(client, at..at + 1),
            Defect::DuplicateLive if bites => {
                self.ledger.duplicated += 1;
                out.extend([Frame::Event(at), Frame::Event(at)]);
            }
            Defect::Reorder if bites => self.subscribers[client].held = Some(at),
            Defect::Conflict if bites => {
                self.ledger.conflict += 1;
                out.extend([Frame::Event(at), Frame::Conflict(at)]);
            }
            Defect::CorruptFrame if bites => {
                self.ledger.corrupt += 1;
                self.withhold(client, at..at + 1);
                out.push(Frame::Cut(at));
            }
            Defect::DataBeforeAck if std::mem::take(&mut self.subscribers[client].waits) => {
                self.ledger.late_acks += 1;
                out.extend([Frame::Event(at), Frame::CaughtUp]);
            }
            _ => out.push(Frame::Event(at)),
        }
    }

    /// Nothing more is published: what is held back for a successor goes out alone.
    pub(in crate::simulate) fn flush(&mut self, client: usize, out: &mut Vec<Frame>) {
        out.extend(self.subscribers[client].held.take().map(Frame::Event));
    }

    /// The kept events above an id. Within the kept window ids ascend, whatever happened before.
    fn kept_after(&self, after: u64) -> Range<usize> {
        let kept = &self.log[self.start..];
        self.start + kept.partition_point(|e| e.id <= after)..self.log.len()
    }

    fn reset(&mut self, after: u64, to: u64, out: &mut Vec<Frame>) {
        self.ledger.resets += 1;
        let place = |id| self.log.partition_point(|e| e.id <= id);
        let missing = place(after)..place(to);
        self.ledger.covered += missing.filter(|&at| self.counts(at)).count() as u64;
        out.push(Frame::Reset(to));
    }

    fn replay(&mut self, client: usize, events: Range<usize>, out: &mut Vec<Frame>) {
        for at in events {
            if self.fault.is_some() {
                let pair = (name(client), self.log[at].seq);
                self.ledger.withheld.remove(&pair);
            }
            out.push(Frame::Event(at));
        }
    }

    fn withhold(&mut self, client: usize, events: Range<usize>) {
        for at in events {
            if self.counts(at) {
                let pair = (name(client), self.log[at].seq);
                self.ledger.withheld.insert(pair);
            }
        }
    }
}
