//! Causes an outage, or waits for one, and tells when the target was gone and when it was ready again (rule 21 of
//! judgement).
//!
//! All triggers look alike from outside: [`Trigger::pull`], then steps. It knows nothing of clients beyond "most of them
//! were dropped", and judges nothing.

mod command;
pub mod cut;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Elapsed, Mark};
use crate::target::guarded::Place;
use crate::target::probe::{PACE, Probe};
use crate::target::{Escalation, Restart, ServerEvent, Supervised};
use crate::transport::tunnel::Tunnels;
use cut::Severance;

/// How often a target that isn't herd's is asked whether it is still there.
const WATCH_PACE: Duration = Duration::from_millis(100);

/// What a trigger tells.
#[derive(Debug)]
pub enum Step {
    /// Something for the history: `Trigger`, `Gone`, `Ready`, `Died` or a `Note`.
    Mark(Elapsed, Mark),
    /// The supervised server had to be killed, because it was still there when the grace was over.
    Killed {
        /// When SIGKILL was sent.
        at: Elapsed,
        /// How long SIGTERM had been given.
        grace: Duration,
    },
    /// The target does not come back: not ready within the limit, or dead too often. Its fault, so the run is judged
    /// (rule 23 of judgement).
    NeverReady {
        /// When herd stopped waiting.
        at: Elapsed,
        /// Why, in one sentence.
        why: String,
    },
    /// Nobody restarted it within the limit, or nothing was seen of it.
    NoRestart {
        /// When herd stopped waiting.
        at: Elapsed,
    },
    /// No more falls come: the restart command has ended well, or the network is back. Until then the outage is the
    /// trigger's doing and isn't over.
    Over,
    /// herd's own tools failed, such as the restart command (exit 4).
    Broken(Error),
}

/// What is not herd's: how to see that it was restarted.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Whether it answers.
    pub probe: Probe,
    /// How long it may take to be ready after it was gone.
    pub ready_limit: Duration,
    /// When most of the clients were found dropped in this outage; the caller sets it, and sets it back to none before
    /// the next [`Trigger::pull`].
    pub mostly_dropped: watch::Receiver<Option<Elapsed>>,
}

/// How an outage is to be caused.
#[derive(Debug, Clone)]
pub enum Pull {
    /// herd stops and starts the server that it supervises.
    Restart(Restart),
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

/// A way to have outages.
#[derive(Debug)]
pub struct Trigger {
    clock: Clock,
    outage: u32,
    steps: mpsc::UnboundedReceiver<Step>,
    told: mpsc::UnboundedSender<Step>,
    server: Option<Child>,
    remote: Option<Remote>,
    tunnels: Option<Arc<Tunnels>>,
    /// What is at work in this outage.
    work: JoinSet<()>,
}

/// A server that herd supervises.
#[derive(Debug)]
struct Child {
    server: Supervised,
    events: mpsc::UnboundedReceiver<ServerEvent>,
    return_: Return,
}

/// Whether this outage's `Ready` was told: there is one an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Return {
    Awaited,
    Told,
}

impl Trigger {
    /// herd stops and starts the server that it supervises.
    #[must_use]
    pub fn child(
        server: Supervised,
        events: mpsc::UnboundedReceiver<ServerEvent>,
        clock: Clock,
    ) -> Self {
        let child = Child {
            server,
            events,
            return_: Return::Told,
        };
        Self {
            server: Some(child),
            ..Self::new(clock)
        }
    }

    /// A command, or somebody, restarts the target.
    #[must_use]
    pub fn remote(remote: Remote, clock: Clock) -> Self {
        Self {
            remote: Some(remote),
            ..Self::new(clock)
        }
    }

    /// The same, which can take away the network of these tunnels too.
    #[must_use]
    pub fn with_tunnels(mut self, tunnels: Option<Arc<Tunnels>>) -> Self {
        self.tunnels = tunnels;
        self
    }

    fn new(clock: Clock) -> Self {
        let (told, steps) = mpsc::unbounded_channel();
        Self {
            clock,
            outage: 0,
            steps,
            told,
            server: None,
            remote: None,
            tunnels: None,
            work: JoinSet::new(),
        }
    }

    /// The outage (from 1) that was begun last; 0 before the first.
    #[must_use]
    pub fn outage(&self) -> u32 {
        self.outage
    }

    /// Begins an outage (from 1). What follows is told by [`Trigger::next`], first `Mark::Trigger`. What there is nothing
    /// for (a restart of a server that herd doesn't run) is told as broken.
    pub fn pull(&mut self, outage: u32, how: Pull) {
        self.outage = outage;
        self.work.abort_all();
        tell_mark(&self.told, self.clock.now(), Mark::Trigger { outage });
        match (how, &mut self.server, &self.remote) {
            (Pull::Cut(cut), ..) if self.tunnels.is_some() => self.cut(cut),
            (Pull::Restart(restart), Some(child), _) => {
                child.return_ = Return::Awaited;
                child.server.restart(restart);
            }
            (Pull::Others(by), _, Some(remote)) => {
                let next = Watcher {
                    remote: remote.clone(),
                    by,
                    outage,
                    clock: self.clock,
                    told: self.told.clone(),
                };
                self.work.spawn(next.watch());
            }
            _ => {
                let why = "herd has nothing to cause this outage with; check the trigger".into();
                let _ = self.told.send(Step::Broken(Error::Broken(why)));
            }
        }
    }

    /// Takes the network away now, and gives it back when it is time.
    fn cut(&mut self, cut: Severance) {
        let Some(tunnels) = self.tunnels.clone() else {
            return;
        };
        let (clock, told, outage) = (self.clock, self.told.clone(), self.outage);
        cut.begin(&tunnels);
        let at = clock.now();
        let fall = Mark::Fall {
            outage,
            fall: 1,
            target: None,
        };
        tell_mark(&told, at, fall);
        tell_mark(&told, at, Mark::Gone { outage });
        self.work.spawn(async move {
            tokio::time::sleep_until(clock.instant(at + cut.down)).await;
            cut.finish(&tunnels);
            tell_mark(&told, clock.now(), Mark::Ready { outage });
            let _ = told.send(Step::Over);
        });
    }

    /// The next thing that happened; waits for ever where nothing is going on. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Step {
        loop {
            let Some(child) = &mut self.server else {
                return match self.steps.recv().await {
                    Some(step) => step,
                    // Not while `told` lives.
                    None => std::future::pending().await,
                };
            };
            let event = tokio::select! {
                biased;
                Some(step) = self.steps.recv() => return step,
                event = child.events.recv() => event,
            };
            let Some(event) = event else {
                return std::future::pending().await;
            };
            let (first, then) = steps_of(event, self.outage, &mut child.return_);
            if let Some(then) = then {
                let _ = self.told.send(then);
            }
            if let Some(first) = first {
                return first;
            }
        }
    }

    /// Kills what herd runs, and waits until it is gone.
    pub async fn end(mut self) {
        self.work.shutdown().await;
        if let Some(child) = self.server {
            child.server.end().await;
        }
    }
}

fn tell_mark(told: &mpsc::UnboundedSender<Step>, at: Elapsed, mark: Mark) {
    let _ = told.send(Step::Mark(at, mark));
}

/// What a supervised server's event means for an outage: at most two steps.
fn steps_of(event: ServerEvent, outage: u32, ready: &mut Return) -> (Option<Step>, Option<Step>) {
    let note = |at, text: String| Step::Mark(at, Mark::Note { text: text.into() });
    match event {
        ServerEvent::Stopped(stop) => {
            let gone = Step::Mark(stop.exited, Mark::Gone { outage });
            let killed = match stop.escalation {
                Escalation::None => None,
                Escalation::Killed { at } => Some(Step::Killed {
                    at,
                    grace: at.since(stop.signalled),
                }),
            };
            (Some(gone), killed)
        }
        ServerEvent::Died { at, ended } => {
            let status = ended.to_string().into();
            (Some(Step::Mark(at, Mark::Died { status })), None)
        }
        ServerEvent::Started { .. } => (None, None),
        ServerEvent::Ready { at } if *ready == Return::Awaited => {
            *ready = Return::Told;
            (Some(Step::Mark(at, Mark::Ready { outage })), None)
        }
        ServerEvent::Ready { at } => (
            Some(note(
                at,
                "herd started the server again after it died; it is ready".into(),
            )),
            None,
        ),
        ServerEvent::NotReady { at, why } | ServerEvent::GaveUp { at, why } => {
            (Some(Step::NeverReady { at, why }), None)
        }
        ServerEvent::Broken { why } => (Some(Step::Broken(Error::Broken(why))), None),
    }
}

/// Watches one outage of a target that is not herd's.
struct Watcher {
    remote: Remote,
    by: By,
    outage: u32,
    clock: Clock,
    told: mpsc::UnboundedSender<Step>,
}

impl Watcher {
    async fn watch(self) {
        match self.by.clone() {
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
            By::Command { line, limit, place } => {
                let (ended, end) = oneshot::channel();
                let command = async {
                    command::run(&line, limit, &place, self.clock).await?;
                    let _ = ended.send(());
                    self.tell(Step::Over);
                    Ok(())
                };
                // It may be gone, and even back, before the command ends.
                let outage = async {
                    tokio::select! {
                        biased;
                        () = self.gone(PACE) => self.back().await,
                        () = self.nothing_after(end) => self.tell(Step::NoRestart {
                            at: self.clock.now(),
                        }),
                    }
                    Ok(())
                };
                if let Err(e) = tokio::try_join!(command, outage) {
                    self.tell(Step::Broken(e));
                }
            }
        }
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
            at = self.remote.probe.wait_gone(self.clock, pace) => at,
        };
        let outage = self.outage;
        tell_mark(&self.told, at, Mark::Gone { outage });
    }

    async fn back(&self) {
        let ready = self
            .remote
            .probe
            .wait_ready(self.clock, self.remote.ready_limit);
        match ready.await {
            Ok(at) => {
                let outage = self.outage;
                tell_mark(&self.told, at, Mark::Ready { outage });
            }
            Err(why) => self.tell(Step::NeverReady {
                at: self.clock.now(),
                why: format!(
                    "the target was not ready again within {:?}: {why}",
                    self.remote.ready_limit
                ),
            }),
        }
    }

    fn tell(&self, step: Step) {
        let _ = self.told.send(step);
    }
}
