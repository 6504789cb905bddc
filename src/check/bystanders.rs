//! Whether a cut that was for some of the clients hit these and nobody else.
//!
//! A region that loses its network is no news to the others: they keep their connections and miss nothing. It knows who was
//! chosen and who was away when; what was missed it takes from delivery's walk.

use super::timeline::{OutageSpan, Timeline};
use super::words::{names, text};
use super::{BystanderFacts, Check, Finding, Outcome, Return, delivery};
use crate::history::{Cause, ClientId, Elapsed, History, Mark, chosen};

/// A time in which some of the clients must not notice anything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spared {
    pub(super) outage: u32,
    from: Elapsed,
    to: Elapsed,
    share: f64,
    clients: u32,
}

impl Spared {
    /// Every such time that was seen, in order.
    pub(super) fn all(history: &History, timeline: &Timeline) -> Vec<Self> {
        let spared = |outage: &OutageSpan| {
            let share = history.header.terms.outage(outage.outage).share;
            let from = outage.trigger.filter(|_| share < 1.0)?;
            // Merged shards each say so.
            let settled = history.marks.iter().filter_map(|(at, mark)| match mark {
                Mark::Settled { outage: of } if *of == outage.outage => Some(*at),
                _ => None,
            });
            Some(Self {
                outage: outage.outage,
                from,
                to: settled.max().unwrap_or(outage.until),
                share,
                clients: history.header.clients,
            })
        };
        timeline.outages.iter().filter_map(spared).collect()
    }

    fn is_chosen(&self, client: ClientId) -> bool {
        chosen(client, self.clients, self.share)
    }

    /// Whether this client must not miss what became known at this instant.
    pub(super) fn covers(&self, client: ClientId, at: Elapsed) -> bool {
        self.from <= at && at <= self.to && !self.is_chosen(client)
    }
}

/// What a client missed of a time in which it was to be spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// Of which outage.
    pub outage: u32,
    /// Who.
    pub client: ClientId,
    /// Publications that never came, or came late.
    pub pairs: u64,
}

/// Judges each outage that was asked to hit a share of the clients; `late` is the answer on herd itself.
pub(super) fn assess(
    history: &History,
    timeline: &Timeline,
    delivery: &delivery::Assessment,
    late: Outcome,
) -> (Vec<Finding>, Vec<BystanderFacts>) {
    let spared = Spared::all(history, timeline);
    let asked = history.header.terms.outages.iter().zip(1..);
    let asked = asked.filter_map(|(terms, outage)| (terms.share < 1.0).then_some(outage));
    let mut facts = Vec::new();
    let findings = asked.map(|outage: u32| {
        let Some(spared) = spared.iter().find(|s| s.outage == outage) else {
            let why = "nothing was cut, so nobody could be spared";
            return finding(outage, Outcome::Unknown, "nothing".into(), why.into());
        };
        let seen = Seen::new(history, timeline, delivery, spared);
        facts.push(seen.facts(outage));
        seen.finding(history, outage, late)
    });
    let findings = findings.collect();
    (findings, facts)
}

/// What one outage did to whom.
struct Seen<'a> {
    chosen: usize,
    others: usize,
    /// Clients that were chosen and dropped.
    hit: Vec<ClientId>,
    /// Drops of the others.
    drops: Vec<&'a Return>,
    missed: Vec<Missed>,
    share: f64,
}

impl<'a> Seen<'a> {
    fn new(
        history: &History,
        timeline: &'a Timeline,
        delivery: &delivery::Assessment,
        spared: &Spared,
    ) -> Self {
        let chosen = history.clients.iter().filter(|c| spared.is_chosen(c.id));
        let chosen = chosen.count();
        let rows = timeline.of_outage(spared.outage).iter();
        let within = rows.filter(|r| spared.from <= r.dropped && r.dropped <= spared.to);
        let (hit, mut drops): (Vec<_>, Vec<_>) = within.partition(|r| spared.is_chosen(r.client));
        // Who starts anew was closed by herd itself, whatever the network does.
        drops.retain(|row| !ended(history, row, &Cause::Refreshed));
        let mut hit: Vec<_> = hit.into_iter().map(|r| r.client).collect();
        hit.sort_unstable();
        hit.dedup();
        let missed = delivery.missed.iter().copied();
        Self {
            chosen,
            others: history.clients.len() - chosen,
            hit,
            drops,
            missed: missed.filter(|m| m.outage == spared.outage).collect(),
            share: spared.share,
        }
    }

    fn facts(&self, outage: u32) -> BystanderFacts {
        let mut dropped: Vec<_> = self.drops.iter().map(|r| r.client).collect();
        dropped.sort_unstable();
        dropped.dedup();
        BystanderFacts {
            outage,
            chosen: self.chosen as u32,
            dropped: self.hit.len() as u32,
            others: self.others as u32,
            others_dropped: dropped.len() as u32,
            others_missed: self.missed.iter().map(|m| m.pairs).sum(),
        }
    }

    fn finding(&self, history: &History, outage: u32, late: Outcome) -> Finding {
        let facts = self.facts(outage);
        let measured = format!(
            "{} of {} others dropped, {} missed",
            facts.others_dropped, facts.others, facts.others_missed
        );
        let (outcome, why) = self.ruling(history, late);
        finding(outage, outcome, measured, why)
    }

    fn ruling(&self, history: &History, late: Outcome) -> (Outcome, String) {
        let mut why = Vec::new();
        if let Some(first) = self.drops.first() {
            let mut clients: Vec<_> = self.drops.iter().map(|r| r.client).collect();
            clients.dedup();
            let at = text(first.dropped.duration());
            why.push(format!(
                "{} lost a connection (first at {at}), though the cut was for others",
                names(&clients)
            ));
        }
        if let Some(first) = self.missed.first() {
            let clients: Vec<_> = self.missed.iter().map(|m| m.client).collect();
            why.push(format!(
                "{} missed events meanwhile ({} of them client {})",
                names(&clients),
                first.pairs,
                first.client.0
            ));
        }
        if !why.is_empty() {
            let why = why.join("; ");
            let doubtful = late != Outcome::Pass
                && self.missed.is_empty()
                && (self.drops.iter()).all(|row| ended(history, row, &Cause::Heartbeat));
            return match doubtful {
                false => (Outcome::Fail, why),
                true => {
                    let late = "herd itself was late (see generator), so that signs of life may have waited unread";
                    (Outcome::Unknown, format!("{why}, but {late}"))
                }
            };
        }
        match (self.hit.len(), self.chosen) {
            (0, chosen) => (
                Outcome::Unknown,
                format!(
                    "herd cut the network of {chosen} clients and none of them lost its connection, so nobody had anything to notice"
                ),
            ),
            (hit, chosen) if hit < chosen => (
                Outcome::Unknown,
                format!(
                    "only {hit} of {chosen} clients that the cut was for lost their connection"
                ),
            ),
            (hit, _) => (
                Outcome::Pass,
                format!(
                    "{hit} clients dropped, as chosen ({})",
                    super::words::percent(self.share)
                ),
            ),
        }
    }
}

/// Whether the lost connection ended for this cause.
fn ended(history: &History, row: &Return, cause: &Cause) -> bool {
    let place = history.place(row.client);
    let mut sessions = place.iter().flat_map(|p| &history.clients[*p].sessions);
    sessions.any(
        |session| matches!(&session.closed, Some((at, why)) if *at == row.dropped && why == cause),
    )
}

fn finding(outage: u32, outcome: Outcome, measured: String, why: String) -> Finding {
    Finding {
        check: Check::Bystanders,
        outage: Some(outage),
        outcome,
        measured,
        limit: "0 dropped, 0 missed".into(),
        why,
    }
}
