//! Watches over one open connection: notices signs of life of whatever kind, and knows when time is up, by the user's
//! heartbeat or by the profile's own.
//!
//! It reads nothing itself: whoever reads lets it look afterwards, so that what has arrived counts before time does.

use std::time::Duration;

use super::pulse::{Beat, Pulse};
use crate::clock::Clock;
use crate::history::{Cause, Elapsed};
use crate::profile::{Talk, Transport};
use crate::scenario::Heartbeat;
use crate::transport::Connection;

#[derive(Debug)]
pub(super) struct Vigil {
    pulse: Option<Pulse>,
    /// How much had come when it looked last.
    signs: u64,
    /// Since when nothing came, where it took the connection for dead.
    silent: Option<Duration>,
}

impl Vigil {
    /// Over a session that was just opened.
    pub(super) fn new(beat: Option<Heartbeat>, transport: Transport, now: Elapsed) -> Self {
        Self {
            pulse: beat.map(|beat| Pulse::new(beat, transport, now.duration())),
            signs: 0,
            silent: None,
        }
    }

    /// After each read: whether something came. Over an event stream the profile's own limit of silence counts comments too;
    /// pings and pongs of a WebSocket no page ever sees.
    pub(super) fn look(&mut self, connection: &Connection, talk: &mut Talk, clock: &Clock) {
        let hears = talk.listens_for_silence() && matches!(connection, Connection::Sse(_));
        if self.pulse.is_none() && !hears {
            return;
        }
        let signs = connection.signs();
        if std::mem::replace(&mut self.signs, signs) == signs {
            return;
        }
        let now = clock.now().duration();
        if let Some(pulse) = &mut self.pulse {
            pulse.hear(now);
        }
        if hears {
            talk.alive(now);
        }
    }

    /// When time is up next, for either.
    pub(super) fn due(&self, talk: &Talk) -> Option<Duration> {
        let pulse = self.pulse.as_ref().map(Pulse::due);
        [pulse, talk.due()].into_iter().flatten().min()
    }

    /// Time has passed: asks for a sign of life, or takes the connection for dead.
    pub(super) fn tick(&mut self, connection: &mut Connection, now: Duration) -> Option<Cause> {
        let pulse = self.pulse.as_mut()?;
        match pulse.tick(now) {
            Beat::Rest => None,
            Beat::Ping => {
                connection.ping();
                None
            }
            Beat::Dead => {
                self.silent = Some(pulse.heard());
                Some(Cause::Heartbeat)
            }
        }
    }

    /// When the last sign of life came of a session that is over because none came any more; the profile's own limit is
    /// another one's.
    pub(super) fn silent_since(&self, talk: &Talk) -> Elapsed {
        self.silent.unwrap_or(talk.heard()).into()
    }
}
