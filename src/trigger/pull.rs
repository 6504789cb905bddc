//! How an outage is to be caused, and by whom: what [`super::Trigger::pull`] is told.
//!
//! Plain data; nothing is done here.

use std::time::Duration;

use tokio::sync::watch;

use super::cut::Severance;
use crate::history::Elapsed;
use crate::target::Restart;
use crate::target::guarded::Place;
use crate::target::probe::Probe;

/// What is not herd's: how to see that it was restarted.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Whether each target answers; at least one.
    pub probes: Vec<Probe>,
    /// How long it may take to be ready after it was gone.
    pub ready_limit: Duration,
    /// When most of the clients were found dropped in this outage; the caller sets it, and sets it back to none before
    /// the next [`super::Trigger::pull`].
    pub mostly_dropped: watch::Receiver<Option<Elapsed>>,
}

/// How an outage is to be caused.
#[derive(Debug, Clone)]
pub enum Pull {
    /// herd stops and starts the servers that it supervises, all at once.
    Restart(Restart),
    /// The same several times: a crash loop.
    Crashes {
        /// Each time.
        restart: Restart,
        /// How many times, at least 1.
        falls: u32,
        /// For how long they are up in between.
        up: Duration,
    },
    /// herd restarts the servers that it supervises one after another.
    Rolling {
        /// Each.
        restart: Restart,
        /// From one's readiness to the next one's stop.
        pause: Duration,
    },
    /// A command restarts each target, one after another.
    RollingBy {
        /// The line for one; `{target}` in it, and `TARGET` in its environment, is the target's number, from 1.
        line: String,
        /// How long each may take.
        limit: Duration,
        /// Where its output goes.
        place: Place,
        /// From one's readiness to the next one's command.
        pause: Duration,
    },
    /// A command, or somebody, restarts the target.
    Others(By),
    /// The network is taken away and given back.
    Cut(Severance),
}

/// Who restarts a target that is not herd's.
#[derive(Debug, Clone)]
pub enum By {
    /// A command line, by `sh -c`.
    Command {
        /// The line, templates expanded.
        line: String,
        /// What it finds in its environment besides herd's own.
        env: Vec<(String, String)>,
        /// How long it may take.
        limit: Duration,
        /// Where its output goes.
        place: Place,
    },
    /// Somebody, within a limit.
    Others {
        /// The limit.
        limit: Duration,
    },
}
