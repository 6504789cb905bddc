//! From phase to phase: connect, prime, hold, restart, recover, tail, settle.
//!
//! Each phase waits on a condition, bounded in time, and says why it ends early. It judges nothing: a limit here is only
//! how long herd waits.

use std::time::Duration;

use super::conductor::{Conductor, Stopped};
use super::note;
use super::outage::Outage;
use super::progress::Phase;
use super::start;
use super::watch::{self, Patience};
use crate::backoff::patience::{self, MARGIN, TAIL};
use crate::error::Error;
use crate::history::{Elapsed, End, Mark, PublicationKind, Seq, TriggerKind};
use crate::scenario::{self, Heartbeat, Scenario};

/// How long a server may refuse every publication before priming ends.
const PUBLISH_LIMIT: Duration = Duration::from_secs(5);
/// How many clients' first unread frames are looked at for a hint.
const FRAMES: usize = 3;
/// How long first connects may take after the ramp.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// A rollout that takes longer than this is none: the target keeps falling over.
const LONGEST_ROLLOUT: Duration = Duration::from_secs(3600);
/// How long a profile that listens for silence by itself may take. Its limit may be the server's to say (Socket.IO: 45 s).
const LISTENS: Duration = Duration::from_secs(60);
/// How long after the last deadline the run waits for what is on its way into the record.
const AFTER_DEADLINE: Duration = Duration::from_millis(500);
/// How long the run listens on once everybody has everything: a second copy of the last event comes right behind it.
const LAST_WORDS: Duration = Duration::from_millis(100);

impl Conductor<'_> {
    pub(super) async fn phases(&mut self) -> Result<(), Stopped> {
        self.connect().await?;
        self.prime().await?;
        for outage in 1..=self.scenario.each_outage().count() as u32 {
            self.outage(outage).await?;
        }
        self.tail().await?;
        self.settle().await
    }

    async fn connect(&mut self) -> Result<(), Stopped> {
        let all = self.crew.handles().len();
        let deadline = self.clock.now() + self.scenario.connect.ramp + CONNECT_LIMIT;
        let there = |c: &Self| watch::connected(&c.crew, c.cut());
        while there(self) < all {
            if self.clock.now() > deadline {
                return Err(match there(self) {
                    0 => Stopped::Broken(Error::Broken(format!(
                        "no client could connect to {}; is it the right address?",
                        super::prepare::shown_target(self.scenario)
                    ))),
                    some => Stopped::Early(End::NotConnected {
                        connected: some as u32,
                    }),
                });
            }
            self.beat(Phase::Connecting, there(self), "").await?;
        }
        Ok(())
    }

    /// Rule 9 of judgement: nothing is restarted before every client has received one and the same event.
    async fn prime(&mut self) -> Result<(), Stopped> {
        let all = self.crew.handles().len();
        let begin = self.clock.now();
        let deadline = begin + self.scenario.checks.settle;
        loop {
            let holding = watch::with_cursor(&self.crew);
            let sent = self.sent_so_far();
            let common = self.records.is_none()
                || sent.is_some_and(|(first, last)| watch::primed(&self.crew, first, last));
            if common && holding == all {
                break;
            }
            let now = self.clock.now();
            let unpublished = self.unpublished();
            let hopeless = unpublished.is_some() && now > begin + PUBLISH_LIMIT;
            if hopeless || now > deadline {
                if let Some(why) = unpublished.or_else(|| self.misread()) {
                    self.note(now, why);
                }
                return Err(Stopped::Early(End::NotPrimed {
                    primed: watch::receiving(&self.crew, sent) as u32,
                }));
            }
            self.beat(Phase::Priming, holding, "").await?;
        }
        if let Some(publisher) = &self.publisher {
            publisher.set_kind(PublicationKind::Expected);
        }
        self.sources.mark(self.clock.now(), Mark::Primed);
        Ok(())
    }

    /// What the server seems to speak, where its frames could not be read.
    fn misread(&self) -> Option<String> {
        let unread = self.crew.handles().iter().filter_map(|h| h.unread());
        let frames: Vec<_> = unread.take(FRAMES).collect();
        let frames: Vec<&str> = frames.iter().map(|frame| &**frame).collect();
        note::misread(self.profile, &frames)
    }

    /// The first and the last of the numbers that were sent.
    fn sent_so_far(&self) -> Option<(Seq, Seq)> {
        let records = self.records.as_ref()?;
        records.look(|sent| Some((sent.first()?.seq, sent.last()?.seq)))
    }

    /// Why nobody can be primed, where no publication was accepted.
    fn unpublished(&self) -> Option<String> {
        let counts = self.publisher.as_ref()?.counts();
        let problem = counts.last_problem.filter(|_| counts.acked == 0)?;
        let sent = counts.sent;
        Some(format!(
            "none of {sent} publications was accepted, the last one met: {problem}; check where and what herd publishes"
        ))
    }

    async fn outage(&mut self, number: u32) -> Result<(), Stopped> {
        let asked = self.scenario.outage(number);
        match asked.trigger {
            // Somebody else may restart the target as soon as they are told to.
            scenario::Trigger::Wait { limit } => self.progress.say(&format!(
                "every client is primed: restart the target now, herd waits up to {}",
                humantime::format_duration(limit)
            )),
            _ => self.hold(Phase::Steady, asked.steady).await?,
        }
        let trigger = self.clock.now();
        self.mostly_dropped.send_replace(None);
        self.outage = Some(Outage::new(number, trigger, asked, self.silence(asked)));
        let how = start::pull(self.scenario, asked, self.dir);
        self.trigger.pull(number, how);
        self.until_ready().await?;
        self.recover(trigger).await?;
        self.sources
            .mark(self.clock.now(), Mark::Settled { outage: number });
        Ok(())
    }

    /// How long clients may take to notice by themselves, a tenth more for timers that are late. Only a cut leaves connections
    /// without anybody behind them as a rule; where a server does it, rule 5 finds them.
    fn silence(&self, asked: &scenario::Outage) -> Duration {
        if asked.trigger.kind() != TriggerKind::Cut {
            return Duration::ZERO;
        }
        let own = self.scenario.heartbeat.map(Heartbeat::limit);
        let profile = self.crew.listens_for_silence().then_some(LISTENS);
        own.or(profile).unwrap_or_default().mul_f64(1.1)
    }

    async fn until_ready(&mut self) -> Result<(), Stopped> {
        let outage = self.outage.as_ref();
        let waits = outage.is_some_and(|o| o.asked.trigger.kind() == TriggerKind::Wait);
        let phase = if waits { Phase::Waiting } else { Phase::Down };
        loop {
            let outage = self.outage.as_ref();
            if outage.is_some_and(|o| o.no_restart) {
                return Err(Stopped::Early(End::NoRestart));
            }
            if outage.is_some_and(|o| o.never || o.ready.is_some()) {
                return Ok(());
            }
            self.beat(phase, watch::connected(&self.crew, self.cut()), "")
                .await?;
        }
    }

    /// Waits until every client is back and caught up, has given up, or is past its limit; and, where somebody else
    /// restarts the target, until that is over.
    async fn recover(&mut self, trigger: Elapsed) -> Result<(), Stopped> {
        let mut known = None;
        loop {
            let now = self.clock.now();
            let Some(outage) = self.outage.as_mut().filter(|outage| !outage.never) else {
                return Ok(());
            };
            // A rollout ends at the target that its command did nothing to.
            if outage.no_restart {
                return Err(Stopped::Early(End::NoRestart));
            }
            // A server that dies again is gone again, and the limit begins anew.
            let times = (outage.gone.unwrap_or(trigger), outage.ready);
            if known != Some(times) {
                known = Some(times);
                // Whoever lost the connection in the first of several falls may be away until the last is over.
                let since = if outage.several { trigger } else { times.0 };
                let times = (since, times.1.filter(|ready| *ready > times.0));
                outage.limit = return_limit(self.scenario, outage.asked.down, times);
            }
            let patience = Patience {
                back: outage.limit,
                settle: self.scenario.checks.settle,
                latest: outage.last_drop.max(times.0 + outage.silence) + outage.limit,
            };
            let over = self.is_over(now, trigger);
            let standing = self.standing(patience);
            if over && standing.recovering == 0 {
                return Ok(());
            }
            if standing.back < self.crew.handles().len() {
                self.beat(Phase::Reconnecting, standing.back, &self.refused())
                    .await?;
            } else {
                self.beat(Phase::CatchingUp, standing.caught_up, "").await?;
            }
        }
    }

    /// Whether nothing more of this outage is to come: for a while no wave, and no command at work.
    fn is_over(&self, now: Elapsed, trigger: Elapsed) -> bool {
        let Some(outage) = &self.outage else {
            return true;
        };
        let own = match outage.asked.trigger.kind() {
            TriggerKind::Child | TriggerKind::Cut | TriggerKind::Rolling => !outage.commanded,
            TriggerKind::Command | TriggerKind::Wait => false,
        };
        if outage.is_refreshing(now) && now.since(trigger) <= LONGEST_ROLLOUT {
            return false;
        }
        let quiet = now.since(outage.last_drop) >= outage.asked.quiet_period;
        own || quiet && !outage.commanded || now.since(trigger) > LONGEST_ROLLOUT
    }

    /// Live must work after replay: publishing goes on for a while (rule 15).
    async fn tail(&mut self) -> Result<(), Stopped> {
        let begin = self.clock.now();
        let count = |c: &Self| {
            c.records
                .as_ref()
                .map_or(usize::MAX, |records| records.look(<[_]>::len))
        };
        let enough = count(self).saturating_add(TAIL.1);
        while self.clock.now().since(begin) < TAIL.0 || count(self) < enough {
            let connected = watch::connected(&self.crew, self.cut());
            self.beat(Phase::Settling, connected, "").await?;
        }
        Ok(())
    }

    /// Waits until every pair is in and every client back, or the last limit is past (rules 6 and 14).
    async fn settle(&mut self) -> Result<(), Stopped> {
        let settle = self.scenario.checks.settle;
        match &self.publisher {
            Some(publisher) => publisher.pause(),
            // Observing, the last settle limit is the part that nobody can be judged by (rule 20).
            None => self.hold(Phase::Settling, settle + AFTER_DEADLINE).await?,
        }
        let answers_by = self.clock.now() + settle;
        let awaited = |c: &Self| c.publisher.as_ref().is_some_and(|p| p.outstanding() > 0);
        while awaited(self) && self.clock.now() < answers_by {
            let connected = watch::connected(&self.crew, self.cut());
            self.beat(Phase::Settling, connected, "").await?;
        }
        let patience = Patience {
            back: self.outage.as_ref().map_or(Duration::ZERO, |o| o.limit),
            settle: settle + AFTER_DEADLINE,
            latest: self.clock.now(),
        };
        loop {
            let standing = self.standing(patience);
            if standing.settling == 0 {
                return self.hold(Phase::Settling, LAST_WORDS).await;
            }
            self.beat(Phase::Settling, standing.complete, "").await?;
        }
    }

    async fn hold(&mut self, phase: Phase, time: Duration) -> Result<(), Stopped> {
        let until = self.clock.now() + time;
        while self.clock.now() < until {
            self.beat(phase, watch::connected(&self.crew, self.cut()), "")
                .await?;
        }
        Ok(())
    }
}

/// For how long a server that listens serves nobody yet.
fn slow_start(scenario: &Scenario) -> Duration {
    match scenario.target.server {
        scenario::Server::Embedded {
            slow_start: Some(slow),
            ..
        } => slow.lasts,
        _ => Duration::ZERO,
    }
}

/// How long whoever comes back at all may take, for a server that was gone and ready then (rule 6 of judgement).
fn return_limit(
    scenario: &Scenario,
    down: Duration,
    (gone, ready): (Elapsed, Option<Elapsed>),
) -> Duration {
    // A server that died again is started again after the same time.
    let ready = ready.filter(|ready| *ready > gone);
    let down = ready.map_or(down, |ready| ready.since(gone)) + slow_start(scenario);
    scenario.checks.reconnect_limit.unwrap_or_else(|| {
        let mix = &scenario.policy.mix;
        patience::return_limit(mix, scenario.clients, down).unwrap_or(down + MARGIN)
    })
}
