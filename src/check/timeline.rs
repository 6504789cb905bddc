//! Who was away when: drops, waves, outages and returns, read off the history. No limit is known here.

use crate::check::Return;
use crate::history::{Elapsed, History};

/// What the other parts of the judge need to know of time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Every outage, in order.
    pub outages: Vec<OutageSpan>,
    /// Every loss of connection and what followed, by outage, wave, client. A flapped session ends no absence: its
    /// client is still away, and it gets no row of its own.
    pub returns: Vec<Return>,
    /// For each client of the history (same index), for each of its sessions (same index).
    pub sessions: Vec<Vec<Place>>,
}

/// One outage: from its trigger (or first drop) on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageSpan {
    /// From 1.
    pub outage: u32,
    /// When it was triggered; none where it began by itself.
    pub trigger: Option<Elapsed>,
    /// The old process was reaped, or the probe first failed.
    pub gone: Option<Elapsed>,
    /// When the target was ready again.
    pub ready: Option<Elapsed>,
    /// When the next outage begins, or the history ends.
    pub until: Elapsed,
    /// Its waves, in order.
    pub waves: Vec<WaveSpan>,
}

/// Drops close together: a pause of more than 1 s starts a new wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveSpan {
    /// From 1 within its outage.
    pub wave: u32,
    /// The first drop.
    pub first_drop: Elapsed,
    /// The last drop.
    pub last_drop: Elapsed,
    /// Clients dropped in it.
    pub dropped: u32,
    /// Whether the trigger caused it; if not, it is a relapse (rule 3 of judgement).
    pub triggered: bool,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The outage (from 1) that it came back from; 0 = the ramp.
    pub outage: u32,
    /// The wave (from 1) within it; 0 = the ramp.
    pub wave: u32,
    /// It lasted under 1 s and delivered nothing: the client is still away (rule 1 of judgement).
    pub flapped: bool,
}

impl Timeline {
    /// Reads it off a history.
    #[must_use]
    pub fn new(history: &History) -> Self {
        let _ = history;
        Self::default()
    }
}
