//! The life of a supervised server: one task that starts, stops, watches and revives it.
//!
//! Everything is done in order by this one task, so an ordered stop and a death can't be mistaken for each other.

use std::time::Duration;

use tokio::sync::mpsc;

use super::guard::{Ended, Order, Report};
use super::{Escalation, REVIVALS, Restart, Server, ServerEvent, StopReport};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::Elapsed;
use crate::scenario::StopSignal;

/// How long the system may take to end a process after SIGKILL.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Whether a server that died by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revivals {
    /// herd has not restarted it yet: a death breaks the run.
    NotYet,
    /// So often still.
    Left(u32),
}

/// Whether it was started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    First,
    Again,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Down,
}

/// The guard is gone, or what was to happen can't: the task ends.
struct Over;

/// What ended the wait for readiness.
enum Rise {
    Ready(Elapsed),
    Died(Elapsed, Ended),
    NotStarted(String),
    Late(String),
}

pub(super) struct Life {
    orders: mpsc::UnboundedSender<Order>,
    server: Server,
    clock: Clock,
    reports: mpsc::UnboundedReceiver<(Elapsed, Report)>,
    events: mpsc::UnboundedSender<ServerEvent>,
    state: State,
    starts: Starts,
    revivals: Revivals,
    /// As of the last restart.
    down: Duration,
}

impl Life {
    pub(super) fn new(
        server: Server,
        orders: mpsc::UnboundedSender<Order>,
        reports: mpsc::UnboundedReceiver<(Elapsed, Report)>,
        events: mpsc::UnboundedSender<ServerEvent>,
        clock: Clock,
    ) -> Self {
        Self {
            orders,
            server,
            clock,
            reports,
            events,
            state: State::Down,
            starts: Starts::First,
            revivals: Revivals::NotYet,
            down: Duration::ZERO,
        }
    }

    /// Starts it for the first time and waits until it is ready; its process id.
    pub(super) async fn first_start(&mut self) -> Result<u32, Error> {
        let mut pid = 0;
        let limit = self.server.ready_limit;
        let rise = self.rise(limit, |started| pid = started).await;
        let tail = || self.server.place.tail();
        let broken = match rise {
            Ok(Rise::Ready(_)) => return Ok(pid),
            Ok(Rise::Died(_, ended)) => {
                let hint = match ended {
                    Ended::Code(127) => "sh did not find the command",
                    Ended::Code(126) => "sh could not run the command",
                    Ended::Code(0) => {
                        "herd needs a server that stays in the foreground, so start it without daemonising"
                    }
                    _ => "see what it says",
                };
                format!(
                    "the server ended with {ended} before it was ready; {hint}; {}",
                    tail()
                )
            }
            Ok(Rise::NotStarted(why)) => {
                format!("the server command can't be started: {why}; check --server-cmd")
            }
            Ok(Rise::Late(why)) => format!(
                "the server was not ready within {limit:?}: {why}; check that it listens there, or name its readiness URL with --ready; {}",
                tail()
            ),
            Err(Over) => GUARD_GONE.into(),
        };
        Err(Error::Broken(broken))
    }

    /// Obeys and watches until nobody orders any more or the guard is gone.
    pub(super) async fn live(mut self, mut restarts: mpsc::UnboundedReceiver<Restart>) {
        loop {
            let done = tokio::select! {
                biased;
                report = self.reports.recv() => match report {
                    Some((at, Report::Exited(ended))) => self.died(at, ended).await,
                    Some(_) => Ok(()),
                    None => Err(Over),
                },
                order = restarts.recv() => match order {
                    Some(restart) => self.restart(restart).await,
                    None => return,
                },
            };
            if done.is_err() {
                self.tell(ServerEvent::Broken {
                    why: GUARD_GONE.into(),
                });
                return;
            }
        }
    }

    async fn restart(&mut self, restart: Restart) -> Result<(), Over> {
        self.revivals = Revivals::Left(REVIVALS);
        self.down = restart.down;
        if self.state == State::Up && !self.stop(restart.signal, restart.grace).await? {
            return Ok(());
        }
        tokio::time::sleep(self.down).await;
        self.bring_up().await
    }

    /// Whether it is gone. One that the system can't end is told as given up.
    async fn stop(&mut self, signal: StopSignal, grace: Duration) -> Result<bool, Over> {
        let signalled = self.clock.now();
        let mut escalation = Escalation::None;
        let first = match signal {
            StopSignal::Term => Order::Term,
            StopSignal::Kill => Order::Kill,
        };
        let limit = if signal == StopSignal::Term {
            grace
        } else {
            KILL_LIMIT
        };
        self.order(first);
        let mut exit = self.exit_within(limit).await?;
        if exit.is_none() && signal == StopSignal::Term {
            escalation = Escalation::Killed {
                at: self.clock.now(),
            };
            self.order(Order::Kill);
            exit = self.exit_within(KILL_LIMIT).await?;
        }
        let Some((exited, ended)) = exit else {
            self.give_up("the system did not end the server after SIGKILL");
            return Ok(false);
        };
        self.state = State::Down;
        self.tell(ServerEvent::Stopped(StopReport {
            signalled,
            exited,
            ended,
            escalation,
        }));
        Ok(true)
    }

    async fn died(&mut self, at: Elapsed, ended: Ended) -> Result<(), Over> {
        self.state = State::Down;
        self.tell(ServerEvent::Died {
            at,
            ended,
            words: self.server.place.last_words(),
        });
        match self.revivals {
            // The run is broken, which is for others to say.
            Revivals::NotYet => Ok(()),
            Revivals::Left(_) => self.revive().await,
        }
    }

    /// Starts it again after the down time, if it may be.
    async fn revive(&mut self) -> Result<(), Over> {
        if !self.spend_revival() {
            return Ok(());
        }
        tokio::time::sleep(self.down).await;
        self.bring_up().await
    }

    fn spend_revival(&mut self) -> bool {
        match self.revivals {
            Revivals::Left(n) if n > 0 => {
                self.revivals = Revivals::Left(n - 1);
                true
            }
            _ => {
                self.give_up(&format!(
                    "the server died {} times after one restart; herd doesn't start it again; {}",
                    REVIVALS + 1,
                    self.server.place.tail()
                ));
                false
            }
        }
    }

    async fn bring_up(&mut self) -> Result<(), Over> {
        let limit = self.server.ready_limit;
        loop {
            let events = self.events.clone();
            let clock = self.clock;
            let started = |pid| {
                let _ = events.send(ServerEvent::Started {
                    at: clock.now(),
                    pid,
                });
            };
            match self.rise(limit, started).await? {
                Rise::Ready(at) => self.tell(ServerEvent::Ready { at }),
                Rise::Late(why) => self.tell(ServerEvent::NotReady {
                    at: self.clock.now(),
                    why,
                }),
                Rise::NotStarted(why) => {
                    self.give_up(&format!("the server can't be started again: {why}"));
                }
                Rise::Died(at, ended) => {
                    self.tell(ServerEvent::Died {
                        at,
                        ended,
                        words: self.server.place.last_words(),
                    });
                    if self.spend_revival() {
                        tokio::time::sleep(self.down).await;
                        continue;
                    }
                }
            }
            return Ok(());
        }
    }

    /// Starts it and waits until it is ready, ends or is late.
    async fn rise(&mut self, limit: Duration, started: impl FnOnce(u32)) -> Result<Rise, Over> {
        let further = match std::mem::replace(&mut self.starts, Starts::Again) {
            Starts::First => &[][..],
            Starts::Again => &self.server.again,
        };
        self.order(match further {
            [] => Order::Start,
            further => Order::StartWith(further.to_vec()),
        });
        match self.reports.recv().await {
            Some((_, Report::Started(pid))) => started(pid),
            Some((_, Report::NotStarted(why))) => return Ok(Rise::NotStarted(why)),
            Some((_, Report::Exited(_) | Report::Line(_))) | None => return Err(Over),
        }
        self.state = State::Up;
        let probe = self.server.probe.clone();
        let ready = probe.wait_ready(self.clock, limit);
        let rise = tokio::select! {
            // A death that is known beats an answer: somebody else's.
            biased;
            exit = exit(&mut self.reports) => {
                let (at, ended) = exit?;
                Rise::Died(at, ended)
            }
            ready = ready => match ready {
                Ok(at) => Rise::Ready(at),
                Err(why) => Rise::Late(why),
            },
        };
        if matches!(rise, Rise::Died(..)) {
            self.state = State::Down;
        }
        Ok(rise)
    }

    async fn exit_within(&mut self, limit: Duration) -> Result<Option<(Elapsed, Ended)>, Over> {
        match tokio::time::timeout(limit, exit(&mut self.reports)).await {
            Ok(exit) => exit.map(Some),
            Err(_) => Ok(None),
        }
    }

    fn order(&self, order: Order) {
        // A guard that is gone is noticed where its reports end.
        let _ = self.orders.send(order);
    }

    fn give_up(&self, why: &str) {
        self.tell(ServerEvent::GaveUp {
            at: self.clock.now(),
            why: why.to_owned(),
        });
    }

    fn tell(&self, event: ServerEvent) {
        // Nobody listens any more only where the run is over.
        let _ = self.events.send(event);
    }
}

const GUARD_GONE: &str =
    "herd's guard process ended, so the server was killed; find out who ended it and run again";

async fn exit(
    reports: &mut mpsc::UnboundedReceiver<(Elapsed, Report)>,
) -> Result<(Elapsed, Ended), Over> {
    loop {
        match reports.recv().await {
            Some((at, Report::Exited(ended))) => return Ok((at, ended)),
            Some(_) => {}
            None => return Err(Over),
        }
    }
}
