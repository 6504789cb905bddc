//! What became of every (client, publication) pair: the delivery half of the judge (rules 9 to 20).
//!
//! It answers `exactly-once`, `order` and `resets`, and tells the other half when each session was caught up. It reads
//! the history and the timeline and knows no policy and no limit of time but the settle limit. The publications are the
//! truth; what the server says of itself ("recovered", "caught up") is never read.
//!
//! How it goes: `catalogue.rs` decides once what there was to deliver and what each distinct event means (`contents.rs`
//! for ids with several contents, `observe.rs` where others publish), `walk.rs` reads one client after the other and
//! counts, `pairs.rs` ends its pairs, with `presence.rs` for deadlines, `order.rs` for what comes later, `again.rs` for
//! duplicates that are allowed, `resets.rs` for what a reload covers, `reload.rs` for what it does, `refusal.rs` for when
//! a refused resume is one, `newcomer.rs` for clients that forgot everything, `unread.rs` for what came and could not be read, and `visit.rs` for what came of a resume; `findings.rs` says what the counts mean and
//! `explain.rs` how people read it.
//! It takes time linear in the receipts and memory for one client at a time.

mod again;
mod bits;
mod catalogue;
mod contents;
mod explain;
mod findings;
mod newcomer;
mod observe;
mod order;
mod pairs;
mod presence;
mod refusal;
mod reload;
mod resets;
mod unread;
mod visit;
mod walk;

use super::bystanders::{Missed, Spared};
use super::dedupe::{DedupeFacts, Handlers};
use super::timeline::Timeline;
use super::{
    DeliveryFacts, Finding, MAX_OFFENDERS, Offender, PublicationFacts, ResumeOutcome, Return,
};
use crate::history::{ClientId, Elapsed, Fate, History, Source};

use catalogue::Catalogue;
use findings::Case;
use order::{Disagreement, Order};
use resets::Covers;
use walk::{Scene, Totals, Walk};

/// How well one outage exercised resume (rule 15).
#[derive(Debug, Clone, Copy)]
struct Exposure {
    /// Clients that came back.
    returning: u32,
    /// Whether others came back as new ones, without their memory.
    anew: bool,
    /// Of these, clients that had at least one publication confirmed while they were away.
    exposed: u32,
}

/// What the delivery half of the judge found.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Pairs and receipts.
    pub facts: DeliveryFacts,
    /// Publications by fate.
    pub publications: PublicationFacts,
    /// `exactly-once`, `order` and `resets`, each once, of the whole run.
    pub findings: Vec<Finding>,
    /// The first offending pairs, by client, then time; at most [`MAX_OFFENDERS`].
    pub offenders: Vec<Offender>,
    /// For each client of the history, for each of its sessions: what came of its resume; none where it carried no
    /// cursor or ended before anything could be told.
    pub resumes: Vec<Vec<Option<ResumeOutcome>>>,
    /// For each client of the history, for each of its sessions: when it was caught up (rule 16).
    pub caught_up: Vec<Vec<Option<Elapsed>>>,
    /// For each outage of the timeline: returning clients that had a publication confirmed while they were away.
    pub exposed: Vec<u32>,
    /// Pairs and receipts that came in frames that were not read as their events.
    pub unread: u64,
    /// What idempotent handlers would make of repeats; none where nobody asked.
    pub dedupe: Option<DedupeFacts>,
    /// What clients missed of an outage that was not for them.
    pub missed: Vec<Missed>,
}

/// Judges what was delivered. Where nobody publishes there is no question to answer.
#[must_use]
pub fn assess(history: &History, timeline: &Timeline) -> Assessment {
    if history.header.terms.source == Source::Nobody {
        return nothing_published(history, timeline);
    }
    let catalogue = Catalogue::new(history);
    let order = Order::new(history, &catalogue);
    let scene = Scene {
        history,
        timeline,
        catalogue: &catalogue,
        order: &order,
        spared: Spared::all(history, timeline),
    };
    let returns = by_client(history, timeline);
    let mut covers = Covers::new(history, &catalogue);
    let mut totals = Totals {
        handlers: Handlers::new(&history.header.terms),
        ..Totals::default()
    };
    for (place, returns) in returns.iter().enumerate() {
        Walk::run(&scene, &mut totals, &mut covers, place, returns);
    }
    let exposures = exposures(history, timeline, &catalogue);
    disagree(history, &catalogue, &order, &mut totals);
    let findings = Case {
        history,
        timeline,
        catalogue: &catalogue,
        totals: &totals,
        exposures: &exposures,
    }
    .findings();
    let unread = totals.unread.pairs + totals.unread.receipts;
    Assessment {
        facts: totals.facts,
        publications: publications(history, catalogue.double_stored),
        findings,
        offenders: totals.offenders,
        resumes: totals.resumes,
        caught_up: totals.caught_up,
        exposed: exposures.iter().map(|e| e.exposed).collect(),
        unread,
        dedupe: totals.handlers.map(Handlers::facts),
        missed: totals.missed,
    }
}

/// Nothing to catch up with: whoever is open is caught up.
fn nothing_published(history: &History, timeline: &Timeline) -> Assessment {
    let sessions = history.clients.iter().zip(&timeline.sessions);
    let caught_up = sessions.map(|(client, places)| {
        let both = client.sessions.iter().zip(places);
        both.map(|(session, place)| (!place.flapped).then_some(session.opened))
            .collect()
    });
    Assessment {
        facts: DeliveryFacts::default(),
        publications: PublicationFacts::default(),
        findings: Vec::new(),
        offenders: Vec::new(),
        resumes: Vec::new(),
        caught_up: caught_up.collect(),
        exposed: vec![0; timeline.outages.len()],
        unread: 0,
        dedupe: None,
        missed: Vec::new(),
    }
}

/// Each client's returns, in the order of the history's clients.
fn by_client<'t>(history: &History, timeline: &'t Timeline) -> Vec<Vec<&'t Return>> {
    let mut returns = vec![Vec::new(); history.clients.len()];
    for row in &timeline.returns {
        if let Some(place) = place(history, row.client) {
            returns[place].push(row);
        }
    }
    returns
}

fn place(history: &History, client: ClientId) -> Option<usize> {
    history.place(client)
}

/// Rule 15, per outage. A client that was lost twice in one outage counts once, and is exposed if it was so once. A
/// publication without a confirmation exposes nobody: were its event lost for all, nobody would know of it.
fn exposures(history: &History, timeline: &Timeline, catalogue: &Catalogue<'_>) -> Vec<Exposure> {
    let outage = |outage: &super::timeline::OutageSpan| {
        let mut anew = false;
        let mut rows: Vec<(ClientId, bool)> = timeline
            .returns
            .iter()
            .filter(|r| r.outage == outage.outage)
            .filter_map(|r| {
                let client = &history.clients[place(history, r.client)?];
                let session = r.session?;
                let dialled = client.sessions.get(session)?.dialled;
                if newcomer::is_new(client, session) {
                    // It has nothing to resume from.
                    anew = true;
                    return None;
                }
                let exposed = catalogue
                    .between(r.dropped, dialled)
                    .any(|x| catalogue.item(x).fate == Fate::Acked);
                Some((r.client, !exposed))
            })
            .collect();
        rows.sort_unstable();
        rows.dedup_by_key(|(client, _)| *client);
        Exposure {
            returning: rows.len() as u32,
            anew,
            exposed: rows.iter().filter(|(_, unexposed)| !unexposed).count() as u32,
        }
    };
    timeline.outages.iter().map(outage).collect()
}

/// Adds what only a comparison of clients shows (rule 19).
fn disagree(history: &History, catalogue: &Catalogue<'_>, order: &Order, totals: &mut Totals) {
    let found = Disagreement::new(history, catalogue, order, MAX_OFFENDERS);
    totals.facts.reordered += found.reordered;
    if let Some(first) = found.offenders.first() {
        let text = explain::disagreement(history, first);
        totals
            .examples
            .entry(super::Wrong::Reordered)
            .or_insert(text);
    }
    totals.offenders.extend(found.offenders);
    // Stable, so that each client's own stay in the order of their instants.
    totals.offenders.sort_by_key(|offender| offender.client);
    totals.offenders.truncate(MAX_OFFENDERS);
}

fn publications(history: &History, double_stored: u64) -> PublicationFacts {
    let count = |fate| {
        let same = history.publications.values().filter(|p| p.fate == fate);
        same.count() as u64
    };
    PublicationFacts {
        sent: history.publications.len() as u64,
        acked: count(Fate::Acked),
        failed: count(Fate::Failed),
        unknown: count(Fate::Unknown),
        double_stored,
    }
}
