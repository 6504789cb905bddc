//! The planted defects at work: when each bites, and the ledger line that it writes before it does.
//!
//! It knows ids, clients and frames as numbers and text, no socket and no HTTP. A server without defects asks it too
//! and is always told to go on.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::defect::{Defect, Planted};

/// Written into the data directory by `die-again`, so that it dies once only; each of several servers has its own.
pub(super) const DIED: &str = "died";

/// `unknown-is-now`: with each restart the ids begin at the next multiple of this, so that no id of before is one of the
/// new ones, and all rise.
pub(crate) const EPOCH: u64 = 1_000_000_000;

/// What is planted, and what has happened so far.
#[derive(Default)]
pub(crate) struct Faults {
    planted: Vec<Planted>,
    seed: u64,
    ledger: Option<File>,
    /// Where it writes that it died once.
    died: Option<PathBuf>,
    /// The newest id when the log was opened; 0 = this is no restart.
    before: AtomicU64,
    resumed: AtomicBool,
    flapping: AtomicBool,
    handshakes: AtomicU64,
    refused: Mutex<HashSet<u64>>,
    pace: tokio::sync::Mutex<Option<Interval>>,
}

impl Faults {
    /// Opens the ledger.
    ///
    /// # Errors
    /// Where the ledger can't be opened for appending.
    pub(crate) fn new(
        planted: Vec<Planted>,
        seed: u64,
        ledger: Option<&Path>,
        died: Option<PathBuf>,
    ) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path);
        Ok(Self {
            planted,
            seed,
            ledger: ledger.map(open).transpose()?,
            died,
            ..Self::default()
        })
    }

    /// The seed of every draw.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The defect, where it is planted.
    pub(crate) fn planted(&self, defect: Defect) -> Option<Planted> {
        self.planted.iter().copied().find(|p| p.defect == defect)
    }

    /// All that is planted.
    pub(crate) fn all(&self) -> &[Planted] {
        &self.planted
    }

    /// The newest id of before the restart, where this is one.
    pub(crate) fn before(&self) -> Option<u64> {
        Some(self.before.load(Ordering::Relaxed)).filter(|&before| before > 0)
    }

    /// Writes a ledger line: one act on one (client, event) pair, whichever of the two there is. Says whether the act
    /// may follow: one that can't be written down must not happen, or the counts would be wrong.
    #[must_use]
    pub(crate) fn note(&self, defect: Defect, client: Option<u64>, id: Option<u64>) -> bool {
        let Some(mut ledger) = self.ledger.as_ref() else {
            return true;
        };
        let mut line = json!({ "defect": defect.name() });
        if let Some(client) = client {
            line["client"] = client.into();
        }
        if let Some(id) = id {
            line["id"] = id.to_string().into();
        }
        let line = format!("{line}\n");
        // One write to a file opened for appending: whole lines, and nothing of them in this process's memory.
        matches!(ledger.write(line.as_bytes()), Ok(n) if n == line.len())
    }

    /// The log was opened and its newest id is this one; 0 = it is new. Says after which id the ids must begin anew,
    /// with everything of before forgotten; none = they go on.
    pub(crate) fn on_open(&self, newest: u64) -> Option<u64> {
        self.before.store(newest, Ordering::Relaxed);
        if newest == 0 {
            None
        } else if self.planted(Defect::IdsRestart).is_some() {
            Some(0)
        } else if self.planted(Defect::UnknownIsNow).is_some() {
            Some((newest / EPOCH + 1) * EPOCH)
        } else {
            None
        }
    }

    /// How many events are kept: fewer than asked for, where a defect is about what no longer is.
    pub(crate) fn keep(&self, asked: u64) -> u64 {
        let keeping = [
            Defect::SkipEvicted,
            Defect::SilentOldest,
            Defect::PartialWithFlag,
        ];
        let planted = keeping.into_iter().find_map(|defect| self.planted(defect));
        planted.map_or(asked, |planted| planted.arg)
    }

    /// Starts what runs by the clock; called within the runtime, when the server is about to listen.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.before().is_none() {
            return;
        }
        if let Some(planted) = self.planted(Defect::AcceptThenClose) {
            self.flapping.store(true, Ordering::Relaxed);
            let faults = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(planted.arg)).await;
                faults.flapping.store(false, Ordering::Relaxed);
            });
        }
    }

    /// `ack-then-lose`: not before a subscriber has resumed, so that it is never a priming event.
    pub(crate) fn loses_publication(&self, id: u64) -> bool {
        self.planted(Defect::AckThenLose).is_some_and(|planted| {
            self.resumed.load(Ordering::Relaxed)
                && planted.hits(self.seed, 0, id)
                && self.note(planted.defect, None, Some(id))
        })
    }

    /// A subscriber with a cursor came.
    pub(crate) fn on_resume(&self) {
        self.resumed.store(true, Ordering::Relaxed);
    }

    /// A handshake arrived: `die-again` may end the process here, `slow-accept` lets it wait.
    pub(crate) async fn on_handshake(&self) {
        if self.before().is_none() {
            return;
        }
        let arrived = self.handshakes.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(planted) = self.planted(Defect::DieAgain)
            && arrived == planted.arg
        {
            self.die_once(planted.defect);
        }
        if let Some(planted) = self.planted(Defect::SlowAccept) {
            let mut pace = self.pace.lock().await;
            let pace = pace.get_or_insert_with(|| {
                let nanos = 1_000_000_000 / planted.arg.min(1_000_000_000);
                let mut pace = interval(Duration::from_nanos(nanos));
                pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
                pace
            });
            pace.tick().await;
            let _ = self.note(planted.defect, None, None);
        }
    }

    fn die_once(&self, defect: Defect) {
        let Some(died) = &self.died else {
            return;
        };
        if File::create_new(died).is_ok() && self.note(defect, None, None) {
            let me = rustix::process::getpid();
            // Nothing may run after it, no destructor and no answer: that is what the defect is about.
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }

    /// `refuse-some`: whether this client is refused. It has one line, however often it comes.
    pub(crate) fn refuses(&self, client: u64) -> bool {
        let Some(planted) = self.planted(Defect::RefuseSome) else {
            return false;
        };
        if self.before().is_none() || !planted.picks(self.seed, client) {
            return false;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.contains(&client) && self.note(planted.defect, Some(client), None) {
            refused.insert(client);
        }
        refused.contains(&client)
    }

    /// `accept-then-close`: whether this connection is closed as soon as it is open.
    pub(crate) fn flaps(&self, client: u64) -> bool {
        self.flapping.load(Ordering::Relaxed)
            && self.note(Defect::AcceptThenClose, Some(client), None)
    }

    /// `half-open`: whether this connection's socket is given to the holder. Only before a restart: its line counts
    /// sockets that outlive a server.
    pub(crate) fn holds(&self, client: u64) -> bool {
        self.planted(Defect::HalfOpen)
            .is_some_and(|planted| self.before().is_none() && planted.picks(self.seed, client))
    }
}
