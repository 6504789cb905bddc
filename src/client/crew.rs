//! What all clients of a process share, and how the conductor starts, watches and stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tokio::task::JoinSet;

use super::dial::Dialler;
use super::handle::{Handle, Status};
use super::live;
use super::table::EventTable;
use crate::backoff::Mix;
use crate::clock::Clock;
use crate::history::{ClientId, Elapsed, Seq, Source};
use crate::plan::Plan;
use crate::profile::Transport;
use crate::scenario::{Heartbeat, Scenario};
use crate::secrets::Secrets;
use crate::transport::network::Network;
use crate::transport::tunnel::Tunnels;

/// herd's numbers of this run: `base + 1 ..= base + span` (rule 10 of judgement).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnNumbers {
    /// The number before the first.
    pub base: u64,
    /// How many there are.
    pub span: u64,
}

impl OwnNumbers {
    /// Whether a number is one of them.
    #[must_use]
    pub fn holds(self, seq: Seq) -> bool {
        seq.0 > self.base && seq.0 - self.base <= self.span
    }
}

/// Whose events' ids a client resumes from. A cursor that the profile keeps besides ids is the stream's whoever published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumes {
    /// Only those of herd's own events. Where herd publishes, only they are sure to be the stream's: presence, answers and
    /// beats have ids too, and no server can resume from those. What others published meanwhile may come again, and is in
    /// no gate.
    FromOwn,
    /// Anybody's: others publish, or the transport itself says what an id is, as event streams do.
    FromAny,
}

/// What all clients of a process share.
#[derive(Debug)]
pub struct Crew {
    pub(super) plan: Plan,
    pub(super) policy: Mix,
    pub(super) own: OwnNumbers,
    pub(super) resumes: Resumes,
    pub(super) dialler: Dialler,
    tunnels: Option<Arc<Tunnels>>,
    pub(super) heartbeat: Option<Heartbeat>,
    pub(super) table: EventTable,
    handles: Vec<Arc<Handle>>,
    pub(super) counters: Counters,
}

/// Live numbers for whoever watches the run.
#[derive(Debug, Default)]
pub(super) struct Counters {
    connecting: AtomicU32,
    connected: AtomicU32,
    away: AtomicU32,
    gave_up: AtomicU32,
    pub(super) failed: AtomicU64,
    pub(super) receipts: AtomicU64,
}

/// Live numbers at one moment. While clients change state, the first four may be off by the few that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Never connected yet.
    pub connecting: u32,
    /// Connected.
    pub connected: u32,
    /// Lost their connection and not back.
    pub away: u32,
    /// Gave up.
    pub gave_up: u32,
    /// Dials that did not end in an open connection.
    pub failed: u64,
    /// Events received.
    pub receipts: u64,
}

impl Crew {
    /// This shard's clients, none of which has begun.
    #[must_use]
    pub fn new(
        scenario: &Scenario,
        plan: Plan,
        network: Arc<Network>,
        clock: Clock,
        own: OwnNumbers,
    ) -> Self {
        let connect = &scenario.connect;
        let profile = plan.profile().clone();
        let streams = profile.transport() == Transport::Sse;
        let resumes = match scenario.publish.source() {
            Source::Herd if !streams => Resumes::FromOwn,
            Source::Herd | Source::Others | Source::Nobody => Resumes::FromAny,
        };
        let handles: Vec<_> = plan.clients().map(|id| Arc::new(Handle::new(id))).collect();
        let counters = Counters::default();
        counters.connecting.store(handles.len() as u32, Relaxed);
        Self {
            policy: scenario.policy.mix.clone(),
            own,
            resumes,
            dialler: Dialler::new(scenario, network, clock),
            tunnels: None,
            heartbeat: scenario.heartbeat,
            table: EventTable::new(
                profile,
                connect.ids,
                (scenario.publish.source() == Source::Herd).then_some(own),
            ),
            plan,
            handles,
            counters,
        }
    }

    /// The same clients, whose every dial goes through tunnels.
    #[must_use]
    pub fn through(mut self, tunnels: Option<Arc<Tunnels>>) -> Self {
        self.tunnels = tunnels;
        self
    }

    /// Whether the profile's clients take a silent server for dead by themselves.
    #[must_use]
    pub fn listens_for_silence(&self) -> bool {
        self.plan.profile().listens_for_silence()
    }

    /// What a client dials through.
    pub(super) fn tunnels(&self, client: ClientId) -> Option<(&Tunnels, ClientId)> {
        self.tunnels.as_deref().map(|tunnels| (tunnels, client))
    }

    /// Starts every client; the first is due at `from`, the others over the ramp behind it. The tasks end after
    /// [`Crew::stop`], or earlier where a client gives up.
    #[must_use]
    pub fn launch(self: &Arc<Self>, from: Elapsed) -> JoinSet<()> {
        let clients = self
            .handles
            .iter()
            .map(|h| live(self.clone(), h.clone(), from));
        clients.collect()
    }

    /// Ends the run: every client says goodbye to its server (which may take a second) and its task ends.
    pub fn stop(&self) {
        self.handles.iter().for_each(|handle| handle.stop());
    }

    /// The clients, by number.
    #[must_use]
    pub fn handles(&self) -> &[Arc<Handle>] {
        &self.handles
    }

    /// The distinct events received.
    #[must_use]
    pub fn table(&self) -> &EventTable {
        &self.table
    }

    /// What nobody may write down of what a server says.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        self.dialler.network.secrets()
    }

    /// How things stand.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let c = &self.counters;
        Counts {
            connecting: c.connecting.load(Relaxed),
            connected: c.connected.load(Relaxed),
            away: c.away.load(Relaxed),
            gave_up: c.gave_up.load(Relaxed),
            failed: c.failed.load(Relaxed),
            receipts: c.receipts.load(Relaxed),
        }
    }
}

impl Counters {
    pub(super) fn of(&self, status: Status) -> &AtomicU32 {
        match status {
            Status::Connecting => &self.connecting,
            Status::Connected => &self.connected,
            Status::Reconnecting => &self.away,
            Status::GaveUp => &self.gave_up,
        }
    }
}
