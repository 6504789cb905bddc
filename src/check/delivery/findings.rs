//! What the counts mean: the three answers, with the reasons why something could not be judged. A count that gates is a
//! Fail whatever else is missing; without one, every reason not to have seen enough makes the answer Unknown.

use super::Exposure;
use super::catalogue::Catalogue;
use super::explain;
use super::walk::Totals;
use crate::check::timeline::Timeline;
use crate::check::words::{names, no_restart, unprimed};
use crate::check::{Check, Finding, Outcome, Wrong};
use crate::history::{Client, ClientId, DeliveryMode, End, Fate, History, PublicationKind, Source};

/// Everything that the answers rest on.
pub(super) struct Case<'a> {
    pub(super) history: &'a History,
    pub(super) timeline: &'a Timeline,
    pub(super) catalogue: &'a Catalogue<'a>,
    pub(super) totals: &'a Totals,
    /// Of each outage of the timeline.
    pub(super) exposures: &'a [Exposure],
}

/// How many first offences a finding tells.
const TOLD: usize = 3;

impl Case<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
        vec![self.exactly_once(), self.order(), self.resets()]
    }

    fn exactly_once(&self) -> Finding {
        let facts = &self.totals.facts;
        let counts = [
            (Wrong::Lost, facts.lost, "lost"),
            (Wrong::Late, facts.late, "late"),
            (Wrong::Duplicated, facts.duplicated, "duplicated"),
            (Wrong::Unexpected, facts.unexpected, "unexpected"),
            (Wrong::Conflict, facts.conflict, "in conflict"),
        ];
        let mode = self.history.header.terms.delivery;
        let list = |gating: bool| {
            let listed = counts
                .iter()
                .filter(|(wrong, n, _)| *n > 0 && wrong.gates(mode) == gating);
            let parts: Vec<String> = listed.map(|(_, n, word)| format!("{n} {word}")).collect();
            parts.join(", ")
        };
        let (wrong, allowed) = (list(true), list(false));
        let mut measured = if wrong.is_empty() {
            format!("0 of {} pairs wrong", facts.expected)
        } else {
            wrong.clone()
        };
        let redelivered = match facts.redelivered {
            0 => String::new(),
            n => format!("{n} redelivered"),
        };
        let allowed: Vec<_> = [allowed, redelivered]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        if !allowed.is_empty() {
            measured += &format!("; allowed: {}", allowed.join(", "));
        }
        let renamed = self.catalogue.several_ids;
        if renamed > 0 {
            measured += &format!("; {renamed} under several ids");
        }
        if self.agreement_only() {
            measured.insert_str(0, "agreement: ");
        }
        let told = counts.iter().filter(|(wrong, _, _)| wrong.gates(mode));
        let examples = told
            .filter_map(|(wrong, _, _)| self.totals.examples.get(wrong))
            .cloned();
        let mut why: Vec<String> = examples.take(TOLD).collect();
        // What can't be read can't be told from what never came.
        if facts.lost + facts.late > 0 {
            why.extend(explain::unread(self.history));
            why.extend(self.could_not_read());
        }
        let mut finding = self.finding(
            Check::ExactlyOnce,
            wrong.is_empty(),
            measured,
            why,
            self.unseen_pairs(),
        );
        if finding.outcome == Outcome::Pass && renamed > 0 {
            finding.why = format!(
                "{renamed} events came under several ids, each published once: where clients resume from the id, or know by it what they have, these are other events to them; where it is a cursor of each reader's own that is right"
            );
        }
        finding
    }

    fn order(&self) -> Finding {
        let (wrong, seen) = (self.totals.facts.reordered, self.totals.compared);
        let measured = if wrong == 0 {
            format!("0 of {seen} receipts out of order")
        } else {
            format!("{wrong} reordered")
        };
        let mut unseen = self.unseen();
        if seen == 0 {
            unseen.push("no client received two events to compare".into());
        }
        let why = self.totals.examples.get(&Wrong::Reordered);
        self.finding(
            Check::Order,
            wrong == 0,
            measured,
            why.cloned().into_iter().collect(),
            unseen,
        )
    }

    /// Rule 17. The longest absence in events is what the server has to keep so that nobody must reload.
    fn resets(&self) -> Finding {
        let (told, most) = (self.totals.told, self.history.header.terms.max_resets);
        let mut measured = format!("{told} told to reload");
        if self.totals.refused > 0 {
            measured += &format!(", {} by a refused resume", self.totals.refused);
        }
        let mut why = Vec::new();
        if told > 0 {
            why.push(format!(
                "{} pairs are covered by a reload; the longest absence of a client told to reload was {} events: keep at least {}",
                self.totals.facts.reset, self.totals.longest_absence, self.totals.longest_absence
            ));
        }
        why.extend(self.failed_reloads());
        let mut unseen = self.unseen();
        unseen.extend(self.not_reloaded());
        let mut finding = self.finding(Check::Resets, told <= most, measured, why.clone(), unseen);
        finding.limit = most.to_string();
        if finding.outcome == Outcome::Pass {
            finding.why = why.join("; ");
        }
        finding
    }

    /// Who was told to reload and could not is left with nothing.
    fn failed_reloads(&self) -> Option<String> {
        let reloads = || self.history.clients.iter().flat_map(|c| &c.reloads);
        let failed = reloads().filter(|r| !r.is_done());
        let first = failed.clone().min_by_key(|r| r.ended)?;
        Some(format!(
            "{} of {} requests for the full state failed, the first with: {}",
            failed.count(),
            reloads().count(),
            first.why.escape_debug()
        ))
    }

    /// What a reload covers is there only where that was had: a client that asked and never got it shows what nobody knows.
    fn not_reloaded(&self) -> Option<String> {
        let without = |c: &&Client| c.reloads.last().is_some_and(|r| !r.is_done());
        let clients = self.history.clients.iter().filter(without);
        let clients: Vec<ClientId> = clients.map(|c| c.id).collect();
        let failed = self.failed_reloads().filter(|_| !clients.is_empty())?;
        Some(format!(
            "{failed}; {} never got what covers the events that they missed",
            names(&clients)
        ))
    }

    fn finding(
        &self,
        check: Check,
        holds: bool,
        measured: String,
        against: Vec<String>,
        unseen: Vec<String>,
    ) -> Finding {
        let (outcome, why) = match (holds, unseen.is_empty()) {
            (false, _) => (Outcome::Fail, against),
            (true, false) => (Outcome::Unknown, unseen),
            (true, true) => (Outcome::Pass, Vec::new()),
        };
        Finding {
            check,
            outage: None,
            outcome,
            measured,
            limit: "0".into(),
            why: why.join("; "),
        }
    }

    /// Why the run as a whole does not show enough for a Pass of anything.
    fn unseen(&self) -> Vec<String> {
        let (history, of) = (self.history, self.history.header.clients);
        let mut unseen = Vec::new();
        let shards = history.header.shard.of;
        if history.shards.len() < shards as usize {
            unseen.push(format!(
                "only {} of {shards} shards are here",
                history.shards.len()
            ));
        }
        match history.end() {
            Some(End::Complete) => {
                if self.timeline.returns.is_empty() {
                    unseen.push("no outage was seen: no client lost its connection".into());
                }
            }
            None => {
                unseen.push("the history is truncated: herd was killed, or the file was cut".into())
            }
            Some(End::Interrupted { .. }) => {
                unseen.push("the history is truncated: the run was interrupted".into())
            }
            Some(End::NotConnected { connected }) => unseen.push(format!(
                "only {connected} of {of} clients could connect, so nothing was restarted"
            )),
            Some(End::NotPrimed { primed }) => {
                unseen.push(format!(
                    "{}, so nothing was restarted: {}",
                    unprimed(history, *primed),
                    explain::unprimed(history)
                ));
                unseen.extend(explain::unread(history));
            }
            Some(End::NoRestart) => {
                unseen.push(no_restart(history));
            }
            Some(End::Broken { why }) => {
                unseen.push(format!("the run was broken off: {}", why.escape_debug()))
            }
        }
        unseen
    }

    /// Why pairs in particular could not be judged.
    fn unseen_pairs(&self) -> Vec<String> {
        let mut unseen = self.unseen();
        let planned = matches!(self.history.end(), Some(End::Complete));
        if planned && self.catalogue.items.is_empty() {
            unseen.push(self.nothing().into());
        } else if planned && self.unconfirmed_only() {
            unseen.push("no publication was confirmed, so an event that no client got can't be seen: let the publisher answer each event".into());
        } else if planned {
            self.not_exercised(&mut unseen);
        }
        if self.totals.unobserved > 0 {
            unseen.push(format!(
                "{} pairs were still within the settle limit of {:?} when the run ended",
                self.totals.unobserved, self.history.header.terms.settle
            ));
        }
        unseen.extend(self.left_unserved());
        unseen.extend(self.could_not_read());
        if self.history.header.terms.source == Source::Others {
            self.not_identified(&mut unseen);
        }
        unseen
    }

    /// Open is not subscribed, but a client that others outdo for long may have been kept from what it was owed.
    fn left_unserved(&self) -> Option<String> {
        let unserved = &self.totals.unsubscribed;
        (unserved.clients > 0).then(|| {
            format!(
                "nothing came to {} clients that began anew for up to {:.1} s after they were open, and {} pairs of what was sent meanwhile never did: whether they were subscribed can't be told; let the server serve them at once, or answer with a marker",
                unserved.clients,
                unserved.longest.as_secs_f64(),
                unserved.pairs
            )
        })
    }

    /// What came in frames that were not read as their events: whose fault that is, nobody can tell but the profile's author.
    fn could_not_read(&self) -> Option<String> {
        let unread = &self.totals.unread;
        let what = match (unread.pairs, unread.receipts) {
            (0, 0) => return None,
            (0, n) => format!("{n} events came under their ids with their numbers elsewhere"),
            (n, _) => {
                format!("{n} pairs came in frames that the profile does not read as their events")
            }
        };
        let example = unread.example.as_ref();
        let example = example.map_or(String::new(), |example| format!("; {example}"));
        Some(format!("{what}{example}; {}", explain::SAY_WHAT_IT_IS))
    }

    /// Whether the publisher was never told that an event is stored.
    fn unconfirmed_only(&self) -> bool {
        let mut publications = self.history.publications.values();
        self.history.header.terms.source == Source::Herd
            && publications.all(|p| p.kind == PublicationKind::Priming || p.fate != Fate::Acked)
    }

    fn nothing(&self) -> &'static str {
        let mut publications = self.history.publications.values();
        let published = publications.any(|p| p.kind == PublicationKind::Expected);
        match (self.history.header.terms.source, published) {
            (Source::Others | Source::Nobody, _) => "no event was seen",
            (Source::Herd, true) => "no publication was accepted",
            (Source::Herd, false) => "nothing was published",
        }
    }

    /// Rule 15, for each outage that a trigger caused (for all of them where there was no trigger): a small drop of one
    /// client between two events must not undo what the restart has shown, nor the first restart speak for the second.
    fn not_exercised(&self, unseen: &mut Vec<String>) {
        let outages = &self.timeline.outages;
        let triggered = outages.iter().any(|o| o.trigger.is_some());
        let counted = outages
            .iter()
            .zip(self.exposures)
            .filter(|(outage, _)| outage.trigger.is_some() || !triggered);
        if self.history.header.terms.source == Source::Others {
            if self.exposures.iter().all(|e| e.exposed == 0) {
                unseen.push("resume not exercised: no event was first seen while a client that came back was away".into());
            }
            return;
        }
        for (outage, exposure) in counted {
            let (k, n, outage) = (exposure.exposed, exposure.returning, outage.outage);
            let lost = self.timeline.returns.iter().any(|r| r.outage == outage);
            if n == 0 && exposure.anew {
                unseen.push(format!(
                    "resume not exercised: all who came back in outage {outage} started anew, without their memory"
                ));
            } else if n == 0 && lost {
                unseen.push(format!("nobody came back in outage {outage}"));
            } else if n == 0 && !self.timeline.returns.is_empty() {
                unseen.push(format!("no client lost its connection in outage {outage}"));
            } else if k * 2 < n {
                unseen.push(format!(
                    "resume not exercised: in outage {outage} only {k} of {n} returning clients had a publication confirmed while they were away; raise --rate or --down"
                ));
            }
        }
    }

    /// Whether what no client got can't be seen.
    fn agreement_only(&self) -> bool {
        let terms = &self.history.header.terms;
        let seen = terms.contiguous && self.catalogue.not_contiguous.is_none();
        terms.source == Source::Others && !seen
    }

    /// Rule 20.
    fn not_identified(&self, unseen: &mut Vec<String>) {
        unseen.extend(self.catalogue.not_contiguous.clone());
        if self.catalogue.anonymous > 0 {
            unseen.push(format!(
                "{} events carried no id: point --id at it",
                self.catalogue.anonymous
            ));
        }
        if self.totals.silent > 0 && !self.catalogue.items.is_empty() {
            unseen.push(format!(
                "{} clients never received an event",
                self.totals.silent
            ));
        }
        let asks_for_all = matches!(
            self.history.header.terms.delivery,
            DeliveryMode::ExactlyOnce | DeliveryMode::AtLeastOnce
        );
        if self.agreement_only() && asks_for_all {
            unseen.push(
                "others publish, so an event that no client got can't be seen: declare ids contiguous, or accept --delivery agreement".into(),
            );
        }
    }
}
