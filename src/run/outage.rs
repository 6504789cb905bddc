//! What is known, while it goes on, of the outage that is going on: what was asked, what was seen of it, who is away.
//!
//! It is told everything and does nothing itself; what follows from it is decided in `run/phases.rs`.

use std::time::Duration;

use super::refresh::Refreshing;
use super::watch::Cut;
use crate::client::Counts;
use crate::history::{Elapsed, TriggerKind};
use crate::scenario;

/// A longer pause between two drops ends a wave.
const WAVE_PAUSE: Duration = Duration::from_secs(1);

/// What is known of the outage that is going on.
pub(super) struct Outage<'a> {
    /// What it was asked to be.
    pub(super) asked: &'a scenario::Outage,
    pub(super) trigger: Elapsed,
    pub(super) gone: Option<Elapsed>,
    pub(super) ready: Option<Elapsed>,
    /// The target doesn't come back.
    pub(super) never: bool,
    /// Nobody restarted it.
    pub(super) no_restart: bool,
    /// When somebody who came back first received.
    pub(super) others_since: Option<Elapsed>,
    /// When clients were last lost in such a number that it is a wave.
    pub(super) last_drop: Elapsed,
    away: usize,
    /// Lost one close after the other: how many, and when the last one was.
    wave: (usize, Elapsed),
    /// How long whoever comes back at all may take.
    pub(super) limit: Duration,
    /// More falls are to come: the restart command is still at work, or herd is.
    pub(super) commanded: bool,
    /// From 1.
    pub(super) number: u32,
    /// Clients that start anew, where it has begun and some do.
    pub(super) refreshing: Option<Refreshing>,
    /// herd itself has the target fall several times.
    pub(super) several: bool,
    /// How long clients may take to notice that a connection is dead, where nobody tells them.
    pub(super) silence: Duration,
}

impl<'a> Outage<'a> {
    /// It begins now; where falls may follow one another, it isn't over until the trigger says so.
    pub(super) fn new(
        number: u32,
        trigger: Elapsed,
        asked: &'a scenario::Outage,
        silence: Duration,
    ) -> Self {
        let several = match asked.trigger.kind() {
            TriggerKind::Child => asked.falls > 1,
            TriggerKind::Command | TriggerKind::Cut | TriggerKind::Rolling => true,
            TriggerKind::Wait => false,
        };
        Self {
            asked,
            trigger,
            gone: None,
            ready: None,
            never: false,
            no_restart: false,
            others_since: None,
            last_drop: trigger,
            away: 0,
            wave: (0, Elapsed::ZERO),
            limit: Duration::ZERO,
            commanded: several,
            number,
            refreshing: None,
            several: asked.falls > 1 || asked.trigger.kind() == TriggerKind::Rolling,
            silence,
        }
    }

    /// When clients begin to start anew: once the network is cut or a server is gone. Where nothing happens, nobody does:
    /// connections that herd itself closed must not look like an outage.
    pub(super) fn refresh_from(&self) -> Option<Elapsed> {
        match self.asked.trigger.kind() {
            TriggerKind::Cut => Some(self.trigger),
            _ => self.gone,
        }
    }

    /// Whether clients that are to start anew have not all been told so.
    pub(super) fn is_refreshing(&self, now: Elapsed) -> bool {
        let told = self.refreshing.as_ref().map(|r| r.until);
        let begun = self.asked.refresh.is_some() && self.refresh_from().is_some();
        begun && told.is_none_or(|until| now <= until)
    }

    /// A few that come and go are no wave (rule 3 of judgement): they must not keep a rollout from being over.
    pub(super) fn notice(&mut self, now: Elapsed, counts: Counts, clients: usize) {
        let away = (counts.away + counts.gave_up) as usize;
        let lost = away.saturating_sub(self.away);
        self.away = away;
        if lost > 0 {
            let (so_far, last) = self.wave;
            let so_far = if now.since(last) > WAVE_PAUSE {
                0
            } else {
                so_far
            };
            self.wave = (so_far + lost, now);
            if self.wave.0 >= (clients / 20).max(2).min(clients) {
                self.last_drop = now;
            }
        }
    }

    pub(super) fn cut(&self) -> Cut {
        Cut {
            trigger: self.trigger,
            over: self.ready.unwrap_or(self.trigger),
            silence: self.silence,
        }
    }
}
