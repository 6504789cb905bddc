//! The falls of one outage: when each began and was over, and which losses of connection they explain. It knows nothing of waves
//! and of who came back.

use std::collections::HashSet;
use std::time::Duration;

use super::absence::Absence;
use super::starts::Start;
use super::{OutageSpan, PAUSE, gone_of, ready_of};
use crate::history::{Elapsed, History, Mark, TriggerKind};

/// One time that a server was stopped, or the network was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FallSpan {
    /// From 1 within its outage.
    pub fall: u32,
    /// Which target, from 0; none = all of them.
    pub target: Option<u16>,
    /// When it began.
    pub at: Elapsed,
    /// When the server was gone; none of a cut, which takes no server.
    pub gone: Option<Elapsed>,
    /// When it was ready again, or the network was back.
    pub ready: Option<Elapsed>,
}

impl OutageSpan {
    /// Whether what drops at this instant is still the doing of one of herd's own falls. Until a server is gone, it is being
    /// stopped; in a slow network the end of a connection comes up to `slack` later.
    pub(super) fn stopping(&self, drop: Elapsed, slack: Duration) -> bool {
        let caused = |fall: &FallSpan| {
            let over = fall.ready.or(fall.gone);
            fall.at <= drop && over.is_none_or(|over| drop <= over + slack + PAUSE)
        };
        self.falls.iter().any(caused)
    }

    /// Since when a cut of this outage had left a session in silence that ended for want of signs of life at `drop`: from its
    /// last one on, and not before the cut; none = no cut did.
    pub(super) fn silenced(&self, last_sign: Option<Elapsed>, drop: Elapsed) -> Option<Elapsed> {
        let last_sign = last_sign?;
        let caused = |fall: &&FallSpan| {
            let over = fall.ready.or(fall.gone);
            fall.at <= drop && over.is_none_or(|over| last_sign <= over + PAUSE)
        };
        let fall = self.falls.iter().find(caused)?;
        Some(last_sign.max(fall.at))
    }

    /// How many clients lost connections of a wave otherwise than by the cut: neither in it, nor one close after the other with
    /// those, nor by a silence that it began. However late that was noticed: a profile may have a limit of its own.
    pub(super) fn unexplained(&self, drops: &[Absence], slack: Duration) -> usize {
        let mut in_it: Option<Elapsed> = None;
        let mut others = HashSet::new();
        for drop in drops.iter().filter(|drop| !drop.own) {
            if self.silenced(drop.silent, drop.at).is_some() {
                continue;
            }
            if self.stopping(drop.at, slack) || in_it.is_some_and(|at| drop.at.since(at) <= PAUSE) {
                in_it = Some(drop.at);
            } else {
                others.insert(drop.client);
            }
        }
        others.len()
    }
}

/// When the falls of an outage began.
pub(super) struct Falls(Vec<Elapsed>);

impl Falls {
    pub(super) fn of_spans(falls: &[FallSpan]) -> Self {
        Self(falls.iter().map(|fall| fall.at).collect())
    }

    /// The fall, from 1, that a drop belongs to, where there are several.
    pub(super) fn of(&self, drop: Elapsed) -> Option<u32> {
        let several = self.0.len() > 1;
        several.then(|| self.0.partition_point(|at| *at <= drop) as u32)
    }

    pub(super) fn same(&self, a: Elapsed, b: Elapsed) -> bool {
        self.of(a) == self.of(b)
    }
}

/// The falls of an outage. A history that tells of none has one, which is all of it.
pub(super) fn falls(history: &History, start: Start) -> Vec<FallSpan> {
    let Some(trigger) = start.trigger else {
        return Vec::new();
    };
    let told = history.marks.iter().filter_map(|(at, mark)| match mark {
        Mark::Fall {
            outage,
            fall,
            target,
        } if *outage == start.outage => Some((*at, *fall, *target)),
        _ => None,
    });
    let mut begun: Vec<_> = told.collect();
    begun.sort_unstable();
    begun.dedup_by_key(|(_, fall, _)| *fall);
    if begun.is_empty() {
        begun.push((trigger, 1, None));
    }
    let first = |of: fn(&Mark) -> Option<u32>, from: Elapsed, to: Elapsed| {
        let found = history.marks.iter().filter_map(|(at, mark)| {
            (of(mark) == Some(start.outage) && (from..to).contains(at)).then_some(*at)
        });
        found.min()
    };
    // Each shard cuts its own clients off: the network is back when it is for the last of them.
    let last = |of: fn(&Mark) -> Option<u32>| {
        let marks = history.marks.iter();
        let found = marks.filter_map(|(at, mark)| (of(mark) == Some(start.outage)).then_some(*at));
        found.max()
    };
    let is_cut = history.header.terms.outage(start.outage).trigger == TriggerKind::Cut;
    let span = |(place, (at, fall, target)): (usize, &(Elapsed, u32, Option<u16>))| {
        let next = begun.get(place + 1);
        let to = next.map_or(Elapsed(u64::MAX), |(at, ..)| *at);
        FallSpan {
            fall: *fall,
            target: *target,
            at: *at,
            // The network is gone at once, and what happens until it is back is the cut's doing.
            gone: first(gone_of, *at, to).filter(|_| !is_cut),
            ready: match is_cut {
                true => last(ready_of),
                false => first(ready_of, *at, to),
            },
        }
    };
    begun.iter().enumerate().map(span).collect()
}
