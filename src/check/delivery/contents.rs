//! Rule 18: which content of an id is the right one. It looks at the table of events alone, at no client.
//!
//! The right content is the one whose number the publisher was answered with that id. Where it was answered with that
//! id for no content that arrived, or for several writings of one number, the most received content is right, and of
//! equally received ones the first seen: a server that garbles an event for one client must not turn all the others
//! into offenders. Where the publisher was answered with one id for several numbers, the server has used the id again
//! for something else (in one epoch: the same id of another is another event). Each of them is then right by the publisher's word and counts for its own number, but a client
//! that gets two of them under that id, with no reset between, has a conflict.
//!
//! Where herd publishes, only ids under which one of this run's numbers arrived are judged: a heartbeat that always
//! carries id 0 is foreign, and foreign events are in no gate.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::catalogue::Survey;
use crate::history::{Event, EventIx, History, Seq, Source};

/// How an event stands among those of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The right content, or nothing to compare with.
    Right,
    /// One of several right contents of an id that was used again: which id (from 1).
    Reused(u32),
    /// Another content than the right one.
    Wrong,
}

/// The standing of every event.
#[derive(Debug)]
pub(super) struct Contents(HashMap<EventIx, Standing>);

impl Contents {
    pub(super) fn new(history: &History, survey: &Survey) -> Self {
        let mut by_identity: HashMap<_, Vec<EventIx>> =
            HashMap::with_capacity(history.events.len());
        for (place, event) in history.events.iter().enumerate() {
            if let (Some(id), true) = (event.id.as_deref(), survey.received[place] > 0) {
                let same = by_identity.entry((event.epoch.as_deref(), id)).or_default();
                same.push(EventIx(place as u32));
            }
        }
        let mut groups: Vec<_> = by_identity
            .into_iter()
            .filter(|(_, g)| g.len() > 1)
            .collect();
        groups.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        let mut standings = HashMap::new();
        for (number, ((_, id), group)) in groups.into_iter().enumerate() {
            judge(
                history,
                survey,
                id,
                &group,
                number as u32 + 1,
                &mut standings,
            );
        }
        Self(standings)
    }

    pub(super) fn standing(&self, ix: EventIx) -> Standing {
        self.0.get(&ix).copied().unwrap_or(Standing::Right)
    }
}

fn judge(
    history: &History,
    survey: &Survey,
    id: &str,
    group: &[EventIx],
    number: u32,
    standings: &mut HashMap<EventIx, Standing>,
) {
    let mut candidates: Vec<EventIx> = match history.header.terms.source {
        Source::Others | Source::Nobody => group.to_vec(),
        Source::Herd => {
            let own = |ix: &&EventIx| own_seq(history, **ix).is_some();
            group.iter().filter(own).copied().collect()
        }
    };
    // One content may stand in the table more than once: once marked, once with another order key.
    let content = |ix: EventIx| (history.event(ix).seq, history.event(ix).digest);
    let mut received: HashMap<_, u64> = HashMap::new();
    for ix in &candidates {
        *received.entry(content(*ix)).or_default() += u64::from(survey.received[ix.0 as usize]);
    }
    candidates.sort_by_key(|ix| {
        let first_seen = survey.first_seen[ix.0 as usize];
        (Reverse(received[&content(*ix)]), first_seen, *ix)
    });
    let answered = |ix: &&EventIx| {
        own_seq(history, **ix)
            .and_then(|seq| history.publications.get(&seq))
            .is_some_and(|p| p.id.as_deref() == Some(id))
    };
    let mut right: Vec<EventIx> = Vec::new();
    for ix in candidates.iter().filter(answered) {
        if !right
            .iter()
            .any(|r| history.event(*r).seq == history.event(*ix).seq)
        {
            right.push(*ix);
        }
    }
    if right.is_empty() {
        right.extend(candidates.first());
    }
    if right.is_empty() {
        return;
    }
    for ix in group {
        let same = right
            .iter()
            .any(|r| same_content(history.event(*r), history.event(*ix)));
        let standing = match (same, right.len()) {
            (false, _) => Standing::Wrong,
            (true, 1) => Standing::Right,
            (true, _) => Standing::Reused(number),
        };
        standings.insert(*ix, standing);
    }
}

fn own_seq(history: &History, ix: EventIx) -> Option<Seq> {
    history
        .event(ix)
        .seq
        .filter(|seq| history.header.owns(*seq))
}

/// Two numbers are two contents even where all that is digested is equal, as with a constant payload.
fn same_content(a: &Event, b: &Event) -> bool {
    let digests = a.digest == b.digest || a.digest == 0 || b.digest == 0;
    let numbers = match (a.seq, b.seq) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    digests && numbers
}
