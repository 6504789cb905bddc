//! Causes an outage, or waits for one, and tells when the target was gone and when it was ready again (rule 21 of
//! judgement).
//!
//! All triggers look alike from outside: [`Trigger::pull`], then steps. It knows nothing of clients beyond "most of them
//! were dropped", and judges nothing.

mod command;
pub mod cut;
mod falls;
mod pull;
mod watcher;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Elapsed, Mark};
use crate::target::{Escalation, ServerEvent, Supervised};
use crate::transport::tunnel::Tunnels;
use cut::Severance;
use falls::{Agenda, Left};
pub use pull::{By, Pull, Remote};
use watcher::Watcher;

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
    /// A server that herd supervises was started.
    Started {
        /// Which target, from 0.
        target: u16,
        /// The process id.
        pid: u32,
    },
    /// Nothing more is to fall: the restart command has ended well, the last of several falls is over, or the network is
    /// back. Until then the outage is the trigger's doing and isn't over.
    Over,
    /// herd's own tools failed, such as the restart command (exit 4).
    Broken(Error),
}

/// A way to have outages.
#[derive(Debug)]
pub struct Trigger {
    clock: Clock,
    outage: u32,
    steps: mpsc::UnboundedReceiver<Step>,
    told: mpsc::UnboundedSender<Step>,
    servers: Vec<Child>,
    /// What is still to fall of them in this outage.
    agenda: Option<Agenda>,
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

/// Whether a fall's `Ready` was heard of a server: there is one a fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Return {
    Awaited,
    Told,
}

impl Trigger {
    /// herd stops and starts the servers that it supervises.
    #[must_use]
    pub fn child(
        servers: Vec<(Supervised, mpsc::UnboundedReceiver<ServerEvent>)>,
        clock: Clock,
    ) -> Self {
        let pids = servers.iter().map(|(server, _)| server.pid());
        let pids: Vec<u32> = pids.collect();
        let child = |(server, events)| Child {
            server,
            events,
            return_: Return::Told,
        };
        let trigger = Self {
            servers: servers.into_iter().map(child).collect(),
            ..Self::new(clock)
        };
        for (target, pid) in (0..).zip(pids) {
            let _ = trigger.told.send(Step::Started { target, pid });
        }
        trigger
    }

    /// A command, or somebody, restarts the targets.
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
            servers: Vec::new(),
            agenda: None,
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
        self.agenda = None;
        tell_mark(&self.told, self.clock.now(), Mark::Trigger { outage });
        let servers = self.servers.len();
        match (how, &self.remote) {
            (Pull::Cut(cut), _) if self.tunnels.is_some() => self.cut(cut),
            (Pull::Restart(restart), _) if servers > 0 => {
                self.begin(Agenda::all(restart, 1, Duration::ZERO));
            }
            (Pull::Crashes { restart, falls, up }, _) if servers > 0 => {
                self.begin(Agenda::all(restart, falls, up));
            }
            (Pull::Rolling { restart, pause }, _) if servers > 0 => {
                self.begin(Agenda::rolling(restart, servers, pause));
            }
            (Pull::Others(by), Some(remote)) => {
                let watcher = self.watcher(remote.clone());
                self.work.spawn(watcher.watch(by));
            }
            (
                Pull::RollingBy {
                    line,
                    limit,
                    place,
                    pause,
                },
                Some(remote),
            ) => {
                let watcher = self.watcher(remote.clone());
                let rolling = watcher.roll(line, (limit, pause), place);
                self.work.spawn(rolling);
            }
            _ => {
                let why = "herd has nothing to cause this outage with; check the trigger".into();
                let _ = self.told.send(Step::Broken(Error::Broken(why)));
            }
        }
    }

    fn watcher(&self, remote: Remote) -> Watcher {
        Watcher {
            remote,
            outage: self.outage,
            clock: self.clock,
            told: self.told.clone(),
        }
    }

    fn begin(&mut self, agenda: Agenda) {
        self.agenda = Some(agenda);
        self.fall();
    }

    /// Begins the next fall of the agenda.
    fn fall(&mut self) {
        let Some(agenda) = &mut self.agenda else {
            return;
        };
        let Some((fall, target)) = agenda.begin() else {
            return;
        };
        if agenda.is_several() {
            let outage = self.outage;
            let mark = Mark::Fall {
                outage,
                fall,
                target,
            };
            tell_mark(&self.told, self.clock.now(), mark);
        }
        let falls = |place: usize| target.is_none_or(|target| usize::from(target) == place);
        for (place, child) in self.servers.iter_mut().enumerate() {
            if falls(place) {
                child.return_ = Return::Awaited;
                child.server.restart(agenda.restart);
            }
        }
    }

    /// Takes the network away now, and gives it back when it is time.
    fn cut(&mut self, cut: Severance) {
        let Some(tunnels) = self.tunnels.clone() else {
            return;
        };
        let (clock, told, outage) = (self.clock, self.told.clone(), self.outage);
        // Before it begins: no drop may be older than what caused it.
        let at = clock.now();
        cut.begin(&tunnels);
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
            let due = self.agenda.as_ref().and_then(Agenda::next);
            let due = due.map(|at| self.clock.instant(at));
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let (place, event) = tokio::select! {
                biased;
                // `told` lives as long as this does.
                Some(step) = self.steps.recv() => return step,
                event = event_of(&mut self.servers) => event,
                () = due => {
                    self.fall();
                    continue;
                }
            };
            self.hear(place, event);
        }
    }

    /// Tells what a server's event means for the outage.
    fn hear(&mut self, place: usize, event: ServerEvent) {
        let (outage, target) = (self.outage, place as u16);
        let mark = |at, mark| tell_mark(&self.told, at, mark);
        let never = match event {
            ServerEvent::Stopped(stop) => {
                mark(stop.exited, Mark::Gone { outage });
                if let Escalation::Killed { at } = stop.escalation {
                    let grace = at.since(stop.signalled);
                    let _ = self.told.send(Step::Killed { at, grace });
                }
                return;
            }
            ServerEvent::Died { at, ended, words } => {
                let status = ended.to_string().into();
                mark(at, Mark::Died { status });
                let text = words.into();
                return mark(at, Mark::LastWords { target, text });
            }
            ServerEvent::Started { pid, .. } => {
                let _ = self.told.send(Step::Started { target, pid });
                return;
            }
            ServerEvent::Ready { at } => return self.ready(place, at),
            ServerEvent::NotReady { at, why } | ServerEvent::GaveUp { at, why } => {
                Step::NeverReady { at, why }
            }
            ServerEvent::Broken { why } => Step::Broken(Error::Broken(why)),
        };
        // What would fall next would fall on a target that is down already.
        self.agenda = None;
        let _ = self.told.send(never);
    }

    /// A server is ready: the outage's fall is over when all that fell in it are.
    fn ready(&mut self, place: usize, at: Elapsed) {
        let outage = self.outage;
        if std::mem::replace(&mut self.servers[place].return_, Return::Told) == Return::Told {
            let text = "herd started the server again after it died; it is ready".into();
            return tell_mark(&self.told, at, Mark::Note { text });
        }
        if self.servers.iter().any(|s| s.return_ == Return::Awaited) {
            return;
        }
        tell_mark(&self.told, at, Mark::Ready { outage });
        let Some(agenda) = &mut self.agenda else {
            return;
        };
        if agenda.ready(at) == Left::Nothing {
            if agenda.is_several() {
                let _ = self.told.send(Step::Over);
            }
            self.agenda = None;
        }
    }

    /// Kills what herd runs, and waits until it is gone.
    pub async fn end(mut self) {
        self.work.shutdown().await;
        let ending = self.servers.into_iter().map(|child| child.server.end());
        futures::future::join_all(ending).await;
    }
}

fn tell_mark(told: &mpsc::UnboundedSender<Step>, at: Elapsed, mark: Mark) {
    let _ = told.send(Step::Mark(at, mark));
}

/// The next event of any of them, and whose it is.
async fn event_of(servers: &mut [Child]) -> (usize, ServerEvent) {
    poll_fn(|cx| {
        for (place, child) in servers.iter_mut().enumerate() {
            if let Poll::Ready(Some(event)) = child.events.poll_recv(cx) {
                return Poll::Ready((place, event));
            }
        }
        Poll::Pending
    })
    .await
}
