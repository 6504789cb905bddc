//! The server under test, where herd runs it: started behind a guard, stopped, started again, watched.
//!
//! A task owns the server's life and tells what happens as [`ServerEvent`]s. It knows nothing of clients, publications
//! or verdicts: which death counts against the server is said elsewhere.

pub mod guard;
pub mod guarded;
mod life;
pub mod port;
pub mod probe;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::Elapsed;
use crate::scenario::StopSignal;
use guard::{Ended, Mode};
use guarded::{Guarded, Place, Program};
use life::Life;
use probe::Probe;

/// How often herd starts a server again that died by itself, per restart that herd asked for.
pub const REVIVALS: u32 = 3;

/// A server to supervise.
#[derive(Debug, Clone)]
pub struct Server {
    /// What is run; `{port}` and the like are expanded.
    pub program: Program,
    /// Further arguments of herd's own server, at each start but the first.
    pub again: Vec<String>,
    /// Its environment besides herd's own; `PORT` is for the caller to add.
    pub env: Vec<(String, String)>,
    /// herd's binary and the server's log.
    pub place: Place,
    /// Whether it is ready.
    pub probe: Probe,
    /// How long it may take to be ready, at first and after a restart.
    pub ready_limit: Duration,
}

/// How a server is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// How it is stopped.
    pub signal: StopSignal,
    /// How long it may take after SIGTERM; then SIGKILL follows.
    pub grace: Duration,
    /// How long it stays down before it is started again, then and if it dies again.
    pub down: Duration,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// When the signal was sent.
    pub signalled: Elapsed,
    /// When the process was reaped and nothing was left of its group.
    pub exited: Elapsed,
    /// How it ended.
    pub ended: Ended,
    /// Whether the signal was enough.
    pub escalation: Escalation,
}

/// Whether a stop signal was enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escalation {
    /// It was.
    None,
    /// The grace passed; SIGKILL followed.
    Killed {
        /// When it was sent.
        at: Elapsed,
    },
}

/// What happened to a supervised server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// It was stopped as ordered.
    Stopped(StopReport),
    /// It ended although nobody asked it to.
    Died {
        /// When it was reaped.
        at: Elapsed,
        /// How it ended.
        ended: Ended,
        /// The last lines of its log, made safe; empty where it wrote nothing.
        words: String,
    },
    /// It was started again.
    Started {
        /// When.
        at: Elapsed,
        /// The process id.
        pid: u32,
    },
    /// The probe first succeeded after that.
    Ready {
        /// When.
        at: Elapsed,
    },
    /// It was not ready within the limit; it is left running.
    NotReady {
        /// When the limit passed.
        at: Elapsed,
        /// What the last probe met.
        why: String,
    },
    /// It isn't started again.
    GaveUp {
        /// When.
        at: Elapsed,
        /// Why.
        why: String,
    },
    /// herd's own means failed (exit 4), such as a guard that was killed.
    Broken {
        /// What, and what to do.
        why: String,
    },
}

/// A server that herd runs. Dropping it has the server, and all that it started, killed.
#[derive(Debug)]
pub struct Supervised {
    guarded: Guarded,
    task: JoinHandle<()>,
    restarts: mpsc::UnboundedSender<Restart>,
    pid: u32,
}

impl Supervised {
    /// Starts the server and waits until it is ready. The receiver tells all that happens from then on.
    ///
    /// # Errors
    ///
    /// Broken, with the last lines of its log, where something else answers already, where the command can't be
    /// started, ends, or isn't ready within the limit.
    pub async fn start(
        server: Server,
        clock: Clock,
    ) -> Result<(Self, mpsc::UnboundedReceiver<ServerEvent>), Error> {
        if server.probe.once().await.is_ok() {
            return Err(Error::Broken(format!(
                "something answers at {} before the server was started; end it, or let herd choose with {{port}}",
                server.probe.peer()
            )));
        }
        let (guarded, reports) = Guarded::start(
            Mode::Serve,
            &server.program,
            &server.env,
            &server.place,
            clock,
        )?;
        let (events, receiver) = mpsc::unbounded_channel();
        let mut life = Life::new(server, guarded.orders(), reports, events, clock);
        let pid = match life.first_start().await {
            Ok(pid) => pid,
            Err(e) => {
                guarded.end().await;
                return Err(e);
            }
        };
        let (restarts, ordered) = mpsc::unbounded_channel();
        let supervised = Self {
            guarded,
            task: tokio::spawn(life.live(ordered)),
            restarts,
            pid,
        };
        Ok((supervised, receiver))
    }

    /// The process id of the first start.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Orders a stop (SIGKILL follows SIGTERM after the grace) and a start after the server's down time. Returns at
    /// once: `Stopped`, `Started` and `Ready` (or what went wrong) are told as events.
    pub fn restart(&self, restart: Restart) {
        // The task ends only after it has told why.
        let _ = self.restarts.send(restart);
    }

    /// Kills the server and all that it started, and waits until they are gone.
    pub async fn end(self) {
        self.task.abort();
        self.guarded.end().await;
    }
}
