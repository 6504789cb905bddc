//! Watches targets that are not herd's: whether they are gone, and whether they are back. Who restarts them is somebody
//! else, or a command that is run here.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::{By, Remote, Step, command, tell_mark};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Elapsed, Mark};
use crate::target::guarded::Place;
use crate::target::probe::{PACE, Probe};

/// How often a target that isn't herd's is asked whether it is still there.
const WATCH_PACE: Duration = Duration::from_millis(100);

/// Watches one outage of targets that are not herd's.
pub(super) struct Watcher {
    pub(super) remote: Remote,
    pub(super) outage: u32,
    pub(super) clock: Clock,
    pub(super) told: mpsc::UnboundedSender<Step>,
}

/// Whether a target came back from a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    Yes,
    No,
}

/// A command that restarts something.
struct Run {
    line: String,
    env: Vec<(String, String)>,
    limit: Duration,
    place: Place,
}

impl Watcher {
    pub(super) async fn watch(self, by: By) {
        match by {
            By::Others { limit } => {
                if tokio::time::timeout(limit, self.gone(WATCH_PACE))
                    .await
                    .is_ok()
                {
                    self.back().await;
                } else {
                    self.tell(Step::NoRestart {
                        at: self.clock.now(),
                    });
                }
            }
            By::Command {
                line,
                env,
                limit,
                place,
            } => {
                let run = Run {
                    line,
                    env,
                    limit,
                    place,
                };
                if let Err(e) = self.command(run, || self.tell(Step::Over)).await {
                    self.tell(Step::Broken(e));
                }
            }
        }
    }

    /// Has each target restarted by the command, one after another; the times are the limit of one and the pause between two.
    pub(super) async fn roll(self, line: String, times: (Duration, Duration), place: Place) {
        let (limit, pause) = times;
        for (target, probe) in self.remote.probes.iter().enumerate() {
            if target > 0 {
                tokio::time::sleep(pause).await;
            }
            let outage = self.outage;
            let fall = Mark::Fall {
                outage,
                fall: target as u32 + 1,
                target: Some(target as u16),
            };
            tell_mark(&self.told, self.clock.now(), fall);
            let number = (target + 1).to_string();
            let run = Run {
                line: line.replace("{target}", &number),
                env: vec![("TARGET".into(), number)],
                limit,
                place: place.clone(),
            };
            match self.one(probe).command(run, || ()).await {
                Ok(Back::Yes) => {}
                // A rollout stops where a target stays down.
                Ok(Back::No) => return,
                Err(e) => return self.tell(Step::Broken(e)),
            }
        }
        self.tell(Step::Over);
    }

    /// Watches one of the targets. Most clients needn't have been on it, so only the probe tells.
    fn one(&self, probe: &Probe) -> Self {
        Self {
            remote: Remote {
                probes: vec![probe.clone()],
                ready_limit: self.remote.ready_limit,
                mostly_dropped: watch::channel(None).1,
            },
            outage: self.outage,
            clock: self.clock,
            told: self.told.clone(),
        }
    }

    /// Runs a command to its end and watches the target meanwhile; it may be gone, and even back, before the command ends.
    async fn command(&self, run: Run, ended: impl FnOnce()) -> Result<Back, Error> {
        let (tell_end, end) = oneshot::channel();
        let command = async {
            command::run(&run.line, &run.env, run.limit, &run.place, self.clock).await?;
            let _ = tell_end.send(());
            ended();
            Ok::<(), Error>(())
        };
        let outage = async {
            let back = tokio::select! {
                biased;
                () = self.gone(PACE) => self.back().await,
                () = self.nothing_after(end) => {
                    self.tell(Step::NoRestart {
                        at: self.clock.now(),
                    });
                    Back::No
                }
            };
            Ok::<Back, Error>(back)
        };
        let ((), back) = tokio::try_join!(command, outage)?;
        Ok(back)
    }

    /// Waits until the target can be said to have lived through the restart command.
    async fn nothing_after(&self, end: oneshot::Receiver<()>) {
        if end.await.is_err() {
            // The command failed, which is told elsewhere.
            std::future::pending().await
        }
        tokio::time::sleep(self.remote.ready_limit).await;
    }

    /// Waits until the probe fails or most clients were dropped.
    async fn gone(&self, pace: Duration) {
        let mut dropped = self.remote.mostly_dropped.clone();
        let by_clients = async {
            let at = dropped.wait_for(Option::is_some).await.map(|at| *at);
            match at {
                Ok(at) => at.unwrap_or_else(|| self.clock.now()),
                Err(_) => std::future::pending().await,
            }
        };
        let at = tokio::select! {
            biased;
            at = by_clients => at,
            at = self.any_gone(pace) => at,
        };
        let outage = self.outage;
        tell_mark(&self.told, at, Mark::Gone { outage });
    }

    /// Waits until one of the targets is gone.
    async fn any_gone(&self, pace: Duration) -> Elapsed {
        let probes = self.remote.probes.iter();
        let gone = probes.map(|probe| Box::pin(probe.wait_gone(self.clock, pace)));
        futures::future::select_all(gone).await.0
    }

    /// Waits until all targets are ready.
    async fn back(&self) -> Back {
        let limit = self.remote.ready_limit;
        let probes = self.remote.probes.iter();
        let ready = probes.map(|probe| probe.wait_ready(self.clock, limit));
        match futures::future::try_join_all(ready).await {
            Ok(ready) => {
                let at = ready.into_iter().max().unwrap_or_else(|| self.clock.now());
                let outage = self.outage;
                tell_mark(&self.told, at, Mark::Ready { outage });
                Back::Yes
            }
            Err(why) => {
                self.tell(Step::NeverReady {
                    at: self.clock.now(),
                    why: format!("the target was not ready again within {limit:?}: {why}"),
                });
                Back::No
            }
        }
    }

    fn tell(&self, step: Step) {
        let _ = self.told.send(step);
    }
}
