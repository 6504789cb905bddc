//! Clients that began anew, in numbers: what those that forgot everything were given, and how long it took to get the full
//! state. It judges nothing; what the lost memory means for each pair is decided in `check/delivery/newcomer.rs`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::timeline::{OutageSpan, Timeline};
use super::{Percentiles, reconnect};
use crate::history::{Client, Elapsed, Entry, Fate, History, Memory, Reload, Source};

/// How many kinds of failure are told apart.
const KINDS: usize = 10;

/// The clients that started anew in one outage, as closed tabs do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshFacts {
    /// How often a client did.
    pub refreshed: u64,
    /// Of these, with their cursor.
    pub kept: u64,
    /// Of these, as new ones.
    pub lost: u64,
    /// New ones that were served nothing that was there before them.
    pub given_nothing: u64,
    /// New ones that were served some of it.
    pub given_some: u64,
    /// New ones that were served all of it, from the run's first event on.
    pub given_everything: u64,
    /// New ones that never came back.
    pub away: u64,
    /// The fewest such events that one of those was served that were served some.
    pub some_least: u64,
    /// The most.
    pub some_most: u64,
    /// Of herd's own numbers, from 1: the oldest that one of these was served; none where others publish.
    pub some_from: Option<u64>,
}

/// Requests for the full state in one outage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadFacts {
    /// Answered in full with a success.
    pub done: u64,
    /// Not so.
    pub failed: u64,
    /// From the question to the end of the answer, of those that were done.
    pub latency_ms: Option<Percentiles>,
    /// Most of them begun in any second.
    pub peak_1s: u64,
    /// The answers' bodies together.
    pub bytes: u64,
    /// What went wrong, with how often; the commonest ten.
    pub failures: BTreeMap<String, u64>,
}

/// Everything that was there to be served, and since when.
struct Past {
    /// By event number; none = nothing that counts.
    keys: Vec<Option<u64>>,
    known: HashMap<u64, Elapsed>,
    /// In order.
    instants: Vec<Elapsed>,
}

impl Past {
    fn new(history: &History) -> Self {
        let mut keys = Vec::with_capacity(history.events.len());
        let mut known = HashMap::new();
        if history.header.terms.source == Source::Herd {
            for p in history.publications.values() {
                if let (Fate::Acked, Some(at)) = (p.fate, p.answered) {
                    known.insert(history.header.shown(p.seq), at);
                }
            }
            keys.extend(history.events.iter().map(|event| {
                let own = event.seq.filter(|seq| history.header.owns(*seq));
                own.map(|seq| history.header.shown(seq))
            }));
        } else {
            keys.extend((0..history.events.len() as u64).map(Some));
            for client in &history.clients {
                for entry in client.entries(history) {
                    if let Entry::Receipt(receipt) = entry {
                        let at = known.entry(receipt.event.0.into()).or_insert(receipt.at);
                        *at = (*at).min(receipt.at);
                    }
                }
            }
        }
        let mut instants: Vec<_> = known.values().copied().collect();
        instants.sort_unstable();
        Self {
            keys,
            known,
            instants,
        }
    }

    /// How many there were.
    fn before(&self, at: Elapsed) -> usize {
        self.instants.partition_point(|known| *known < at)
    }

    /// Those of them that one session of a client brought, oldest key first.
    fn served(&self, history: &History, client: &Client, session: usize) -> Vec<u64> {
        let dialled = client.sessions[session].dialled;
        let mut keys = HashSet::new();
        for entry in client.entries(history) {
            if let Entry::Receipt(receipt) = entry
                && receipt.session == session
                && let Some(key) = self.keys.get(receipt.event.0 as usize).copied().flatten()
                && self.known.get(&key).is_some_and(|known| *known < dialled)
            {
                keys.insert(key);
            }
        }
        let mut keys: Vec<_> = keys.into_iter().collect();
        keys.sort_unstable();
        keys
    }
}

/// What each outage of the timeline came to; none where nobody started anew in it.
#[must_use]
pub fn refreshes(history: &History, timeline: &Timeline) -> Vec<Option<RefreshFacts>> {
    let mut all = vec![None; timeline.outages.len()];
    if history.clients.iter().all(|c| c.refreshed.is_empty()) {
        return all;
    }
    let past = Past::new(history);
    for (place, client) in history.clients.iter().enumerate() {
        for (at, memory) in &client.refreshed {
            let Some(outage) = outage(&timeline.outages, *at) else {
                continue;
            };
            let facts: &mut RefreshFacts = all[outage].get_or_insert_default();
            facts.refreshed += 1;
            match memory {
                Memory::Kept => facts.kept += 1,
                Memory::Lost => {
                    facts.lost += 1;
                    let places = timeline.sessions.get(place).map_or(&[][..], Vec::as_slice);
                    let flapped = |n: usize| places.get(n).is_some_and(|place| place.flapped);
                    let back = (0..client.sessions.len())
                        .find(|n| client.sessions[*n].dialled >= *at && !flapped(*n));
                    match back {
                        None => facts.away += 1,
                        Some(session) => facts.served(
                            &past.served(history, client, session),
                            past.before(client.sessions[session].dialled),
                            history.header.terms.source,
                        ),
                    }
                }
            }
        }
    }
    all
}

impl RefreshFacts {
    fn served(&mut self, keys: &[u64], all: usize, source: Source) {
        let n = keys.len() as u64;
        match n {
            0 => self.given_nothing += 1,
            _ if keys.len() >= all => self.given_everything += 1,
            _ => {
                self.some_least = match self.given_some {
                    0 => n,
                    _ => self.some_least.min(n),
                };
                self.some_most = self.some_most.max(n);
                self.given_some += 1;
                if source == Source::Herd {
                    let from = keys[0];
                    self.some_from = Some(self.some_from.map_or(from, |known| known.min(from)));
                }
            }
        }
    }
}

/// What each outage of the timeline came to; none where nobody asked for the full state in it.
#[must_use]
pub fn reloads(history: &History, timeline: &Timeline) -> Vec<Option<ReloadFacts>> {
    let mut asked: Vec<Vec<&Reload>> = vec![Vec::new(); timeline.outages.len()];
    for reload in history.clients.iter().flat_map(|c| &c.reloads) {
        if let Some(outage) = outage(&timeline.outages, reload.asked) {
            asked[outage].push(reload);
        }
    }
    let facts = |reloads: &Vec<&Reload>| (!reloads.is_empty()).then(|| of(reloads));
    asked.iter().map(facts).collect()
}

fn of(reloads: &[&Reload]) -> ReloadFacts {
    let (done, failed): (Vec<&Reload>, Vec<&Reload>) = reloads.iter().partition(|r| r.is_done());
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    for reload in &failed {
        let why = reload.why.escape_debug().to_string();
        if failures.len() < KINDS || failures.contains_key(&why) {
            *failures.entry(why).or_default() += 1;
        }
    }
    let latencies = done.iter().map(|r| r.ended.since(r.asked)).collect();
    let begun = reloads.iter().map(|r| r.asked).collect();
    ReloadFacts {
        done: done.len() as u64,
        failed: failed.len() as u64,
        latency_ms: reconnect::percentiles(latencies),
        peak_1s: reconnect::busiest(begun, std::time::Duration::from_secs(1)),
        bytes: reloads.iter().map(|r| r.bytes).sum(),
        failures,
    }
}

/// The outage that an instant belongs to, by its place.
fn outage(outages: &[OutageSpan], at: Elapsed) -> Option<usize> {
    let begun = |o: &OutageSpan| o.trigger.unwrap_or_default() <= at;
    outages.iter().rposition(begun)
}
