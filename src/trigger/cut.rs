//! Takes the network away between clients and target, and gives it back.
//!
//! What a cut does to tunnels is here; tunnels themselves are `transport/tunnel.rs`'s. It doesn't know what clients make of
//! it, nor when they notice.

use std::time::Duration;

use crate::scenario::{Cut, Then};
use crate::transport::tunnel::{Blow, Dials, End, Part, Tunnels, Weather};

/// One cut, as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Severance {
    /// How.
    pub cut: Cut,
    /// Whom it hits.
    pub part: Part,
    /// How long it lasts.
    pub down: Duration,
}

impl Severance {
    /// The network goes.
    pub(super) fn begin(&self, tunnels: &Tunnels) {
        let (blow, dials) = match self.cut {
            Cut::Fin => (Blow::End(End::Fin), Dials::Refused),
            Cut::Rst | Cut::Refuse => (Blow::End(End::Rst), Dials::Refused),
            Cut::Blackhole => (Blow::Vanish, Dials::Unanswered),
            Cut::Latency { delay, .. } => (Blow::Weather(Weather::Late(delay)), Dials::Through),
            Cut::Bandwidth { bytes, .. } => (Blow::Weather(Weather::Slow(bytes)), Dials::Through),
        };
        tunnels.befall(self.part, blow, dials);
    }

    /// The network is back; tunnels whose bytes vanished stay as they are.
    pub(super) fn finish(&self, tunnels: &Tunnels) {
        let then = match self.cut {
            Cut::Fin | Cut::Rst | Cut::Refuse | Cut::Blackhole => Then::Keep,
            Cut::Latency { then, .. } | Cut::Bandwidth { then, .. } => then,
        };
        let blow = match then {
            Then::Keep => Blow::Weather(Weather::Clear),
            Then::Fin => Blow::End(End::Fin),
            Then::Rst => Blow::End(End::Rst),
        };
        tunnels.befall(self.part, blow, Dials::Through);
    }
}
