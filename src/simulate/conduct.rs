//! The conductor: which phase the run is in, when a restart has settled and when all is over.
//!
//! It looks at clients and publisher from time to time, as the conductor of a real run does, and knows the limits.

use std::ops::ControlFlow;
use std::time::Duration;

use super::Setup;
use super::peer::{Link, Peer};
use super::world::{Step, World};
use crate::backoff::patience::{self, MARGIN, SILENCE, TAIL};
use crate::history::{Cause, Elapsed, Mark};

/// How often the conductor looks.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Priming,
    /// Waiting for a trigger.
    Steady,
    /// Clients are coming back.
    Outage {
        outage: u32,
        trigger: Elapsed,
    },
    /// Publishing goes on.
    Tail {
        from: Elapsed,
        numbers: usize,
    },
    /// Nothing more is published.
    Drain,
}

impl World<'_> {
    pub(super) fn steady(&mut self, now: Elapsed, outage: u32) {
        if outage <= self.setup.outages {
            self.phase = Phase::Steady;
            self.queue
                .push(now + self.setup.steady, Step::Trigger { outage });
        } else {
            self.phase = Phase::Tail {
                from: now,
                numbers: self.publisher.len(),
            };
        }
    }

    pub(super) fn look(&mut self, now: Elapsed) -> ControlFlow<()> {
        match self.phase {
            Phase::Priming | Phase::Steady => {}
            Phase::Outage { outage, trigger } => {
                self.close_half_open(now, trigger);
                let back = self.peers.iter().filter(|p| p.is_open()).count();
                if let Some(away) = self.model.dies(back) {
                    self.die(now, away);
                } else if self.ready && self.peers.iter().all(|p| self.is_settled(now, trigger, p))
                {
                    self.mark(now, Mark::Settled { outage });
                    self.steady(now, outage + 1);
                }
            }
            Phase::Tail { from, numbers } => {
                let published = self.publisher.len() - numbers;
                if now.since(from) >= TAIL.0 && published >= TAIL.1 {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Drain if self.is_over(now) => {
                return ControlFlow::Break(());
            }
            // What is held back for a successor has none any more.
            Phase::Drain => self.flush(now),
        }
        self.queue.push(now + LOOK, Step::Look);
        ControlFlow::Continue(())
    }

    /// What stayed open across the trigger and has been silent for long enough (rule 5 of judgement).
    fn close_half_open(&mut self, now: Elapsed, trigger: Elapsed) {
        if self
            .others_receive
            .is_none_or(|since| now.since(since) <= SILENCE)
        {
            return;
        }
        for client in 0..self.peers.len() {
            let peer = &mut self.peers[client];
            if matches!(peer.link, Link::Open { since } if since < trigger) {
                let dial = peer.closed(now, Cause::HalfOpen);
                self.schedule(client, dial);
            }
        }
    }

    fn die(&mut self, now: Elapsed, away: Duration) {
        let status = "signal: 9 (SIGKILL)".into();
        self.mark(now, Mark::Died { status });
        self.kill(now);
        self.queue.push(now + away, Step::Boot);
    }

    /// Caught up, gone for good, or past its limit; a socket from before the trigger is none of these.
    fn is_settled(&self, now: Elapsed, trigger: Elapsed, peer: &Peer<'_>) -> bool {
        match peer.link {
            Link::Open { since } if since < trigger => now.since(trigger) > self.reconnect_limit(),
            _ => peer.is_caught_up() || self.is_past_limit(now, peer),
        }
    }

    fn is_past_limit(&self, now: Elapsed, peer: &Peer<'_>) -> bool {
        match (peer.link, peer.dropped) {
            (Link::Gone, _) => true,
            (Link::Open { since }, _) => {
                let from = match self.phase {
                    Phase::Drain => since.max(self.publisher.last_answer()),
                    _ => since,
                };
                now.since(from) > self.setup.terms.settle + LOOK
            }
            (_, Some(dropped)) => now.since(dropped) > self.reconnect_limit(),
            (_, None) => false,
        }
    }

    /// For a client that is away, from its drop.
    fn reconnect_limit(&self) -> Duration {
        self.reconnect_limit + LOOK
    }

    /// All pairs are in, or past their limits; an answer that is still out counts as long as there is somebody to tell.
    fn is_over(&self, now: Elapsed) -> bool {
        let over = |peer: &Peer<'_>| {
            let has_all = || peer.is_open() && self.publisher.promised().all(|n| peer.has(n));
            self.is_past_limit(now, peer) || (self.publisher.is_idle() && has_all())
        };
        self.peers.iter().all(over) && (self.publisher.is_idle() || !self.model.is_up())
    }
}

/// How long the conductor waits for a client that is away: its last dial may just have been refused when the server
/// came back, so the longest wait and what the judge grants beside (rule 6 of judgement) are enough for all.
pub(super) fn reconnect_limit(setup: &Setup) -> Duration {
    let latest = setup.mix.parts().iter();
    let latest = latest.map(|part| patience::latest(&part.backoff, setup.down));
    let derived = latest.max().unwrap_or(setup.down) + MARGIN;
    setup.terms.reconnect_limit.unwrap_or(derived)
}
