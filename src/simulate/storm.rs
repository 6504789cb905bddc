//! A reconnect storm in virtual time: a herd that is cut at once, and the model server that it comes back to.
//!
//! The machines that decide are those of a real run, drawing the same addressed numbers. Nobody publishes, no message takes
//! time: what is asked is when clients dial and what becomes of that. Where the server has no limits clients don't
//! influence each other, so `storm/alone.rs` follows one after the other and remembers none; `storm/crowd.rs` moves all of
//! them through a queue. `storm/server.rs` is the server, `storm/tally.rs` counts what happens, `storm/record.rs` makes a
//! history of it. This file knows what can be asked for.

mod alone;
mod crowd;
pub mod record;
mod server;
pub mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::backoff::{Address, Backoff, Ending, Mix, Window, patience};
use crate::client::machine::{Action, Input, Machine};
use crate::history::{ClientId, Elapsed, Quit};

/// A herd, its outages and the server that it comes back to.
#[derive(Debug, Clone, PartialEq)]
pub struct Storm {
    /// How many clients, at least 1.
    pub clients: u32,
    /// Decides every draw.
    pub seed: u64,
    /// When clients come back.
    pub mix: Mix,
    /// From a cut, or from a fall, until the server is back. A dial at that very instant is served.
    pub down: Duration,
    /// How long a client takes to notice that its connection is gone, uniform.
    pub detect: Window,
    /// How many cuts, at least 1.
    pub outages: u32,
    /// From the last client back until the next cut; at least a second, or nobody would have been back.
    pub steady: Duration,
    /// The limit of a connect, and of a handshake; none = each policy's own, or 10 s.
    pub timeout: Option<Duration>,
    /// What the server can bear.
    pub limits: Limits,
    /// How long after the last cut whoever is away is given up; none = long enough for every policy, and 10 minutes more.
    pub until: Option<Duration>,
}

/// What the model server can bear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Connections that it accepts in a second, above 0; none = any number.
    pub accept_rate: Option<f64>,
    /// Connections that wait to be accepted, at least 1. Behind them the kernel drops SYNs.
    pub backlog: u32,
    /// What one HTTP request of a handshake costs it, one after the other; a dial makes one or more.
    pub handshake: Duration,
    /// It falls over when more clients than this are connected and wait; none = never.
    pub collapse: Option<u32>,
}

impl Limits {
    /// A server that bears everything; the backlog is Linux's (`net.core.somaxconn`, since 5.4).
    pub const NONE: Self = Self {
        accept_rate: None,
        backlog: 4_096,
        handshake: Duration::ZERO,
        collapse: None,
    };

    /// Whether what one client does changes what becomes of another.
    #[must_use]
    pub fn any(&self) -> bool {
        self.accept_rate.is_some() || !self.handshake.is_zero() || self.collapse.is_some()
    }
}

/// When the first cut comes: a connection that ends earlier would have been too short to count (rule 1 of judgement).
pub const CUT: Elapsed = Elapsed::from_millis(1_000);

/// How long a connection must last to count.
const LASTING: Duration = Duration::from_secs(1);

/// The limit of a connect, and of a handshake, where nobody has another.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a herd may take beyond what its policy explains.
const PATIENCE: Duration = Duration::from_secs(600);

/// Something that happened. Clients count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A dial is over.
    Dialled(Dialled),
    /// A client noticed that its connection is gone.
    Lost {
        /// Which client.
        client: u32,
        /// Since when it was gone, which is earlier than the notice: a late one is no later loss.
        at: Elapsed,
    },
    /// A client stopped for good.
    Quit {
        /// Which client.
        client: u32,
        /// When.
        at: Elapsed,
        /// Why.
        why: Quit,
    },
    /// A client has been open since an instant when all is over.
    Stayed {
        /// Which client.
        client: u32,
        /// Since when.
        since: Elapsed,
    },
    /// The server was stopped, and will be back.
    Cut {
        /// Which outage, from 1.
        outage: u32,
        /// When.
        at: Elapsed,
        /// When it is back.
        back: Elapsed,
    },
    /// The server fell over, and will be back.
    Fell {
        /// In which outage.
        outage: u32,
        /// When.
        at: Elapsed,
        /// When it is back.
        back: Elapsed,
    },
    /// Nobody is away any more.
    Settled {
        /// Which outage.
        outage: u32,
        /// When.
        at: Elapsed,
    },
}

/// One dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialled {
    /// Whose.
    pub client: u32,
    /// When.
    pub due: Elapsed,
    /// Which retry since the count was set back, from 0.
    pub attempt: u32,
    /// When the TCP connect succeeded.
    pub connected: Option<Elapsed>,
    /// When it was over.
    pub ended: Elapsed,
    /// What it met.
    pub met: Met,
}

/// What a dial met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    /// It is open.
    Opened,
    /// The server was down.
    Refused,
    /// The backlog was full each time until the client's limit.
    Unanswered,
    /// It was connected, and not served within the client's limit.
    Unserved,
    /// It was connected, and the server fell over.
    Reset,
}

/// How a storm went as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Dials after the first cut.
    pub dials: u64,
    /// When the server fell over.
    pub falls: Vec<Elapsed>,
    /// Since when nobody is away any more; none = somebody was until the end. Who stopped for good isn't away.
    pub recovered: Option<Elapsed>,
    /// When it ended.
    pub end: Elapsed,
}

impl Course {
    /// Up to when a history of it reaches, so that the last connection lasted long enough to count.
    #[must_use]
    pub fn horizon(&self) -> Elapsed {
        self.end + LASTING * 2
    }
}

/// Why a storm was not followed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the herd dials more than {0} times; use fewer clients, a shorter --down or a policy that waits"
)]
pub struct TooMany(pub u64);

/// Follows a storm, telling what happens. Of one client all is told in order; clients come one after the other or mixed.
/// Once the server has fallen over, reaching `most` dials ends the storm instead of failing it: it has not recovered.
///
/// # Errors
/// [`TooMany`] where the herd dials more than `most` times.
pub fn run(storm: &Storm, most: u64, told: &mut impl FnMut(Told)) -> Result<Course, TooMany> {
    if storm.limits.any() || storm.outages > 1 {
        crowd::run(storm, most, told)
    } else {
        alone::run(storm, most, told)
    }
}

impl Storm {
    /// Clients of one policy, one outage, a server without limits.
    #[must_use]
    pub fn new(clients: u32, seed: u64, mix: Mix, down: Duration) -> Self {
        Self {
            clients,
            seed,
            mix,
            down,
            detect: Window::exactly(Duration::ZERO),
            outages: 1,
            steady: Duration::from_secs(3),
            timeout: None,
            limits: Limits::NONE,
            until: None,
        }
    }

    /// How long after a cut whoever is away is given up.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let parts = self.mix.parts().iter();
        let latest = parts.map(|part| patience::latest(&part.backoff, self.down));
        let latest = latest.max().unwrap_or(self.down) + self.detect.most;
        self.until.unwrap_or(latest.saturating_add(PATIENCE))
    }

    /// When a client notices the cut with this number, counting falls.
    fn notices(&self, client: u32, cut: u32, at: Elapsed) -> Elapsed {
        if self.detect.least == self.detect.most {
            return at + self.detect.least;
        }
        let address = Address {
            seed: self.seed,
            client,
            drop: cut,
            attempt: NOTICE,
        };
        at + self.detect.at(address.random())
    }

    /// What a dial may take to connect, and then to be served.
    fn patience_of(&self, machine: &Machine, policy: &Backoff) -> Duration {
        let own = machine.connect_timeout(policy);
        self.timeout.or(own).unwrap_or(TIMEOUT)
    }
}

/// The place of the draw for how long a client takes to notice; no retry has this number.
const NOTICE: u32 = u32::MAX - 2;

/// A client that has been open since the beginning.
fn begun(client: u32, seed: u64, policy: &Backoff) -> Machine {
    let mut machine = Machine::new(ClientId(client), seed);
    machine.on(Elapsed::ZERO, Input::Start { due: Elapsed::ZERO }, policy);
    opened(&mut machine, Elapsed::ZERO, policy);
    machine
}

/// The dial that is made is open, and whatever stands on the connection said so.
fn opened(machine: &mut Machine, at: Elapsed, policy: &Backoff) {
    machine.on(at, Input::Opened, policy);
    machine.on(at, Input::Acknowledged, policy);
}

/// The connection is gone without a word, as it is where a process is killed.
fn lost(machine: &mut Machine, at: Elapsed, policy: &Backoff) -> Action {
    let ending = Ending::Lost;
    machine.on(at, Input::Closed { ending }, policy)
}

fn failed(machine: &mut Machine, at: Elapsed, policy: &Backoff) -> Action {
    let ending = Ending::Unconnected;
    machine.on(at, Input::Failed { ending }, policy)
}
