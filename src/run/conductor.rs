//! Moves a run from phase to phase: connect, prime, hold, restart, recover, tail, settle.
//!
//! It waits on conditions, pulls the trigger and writes marks. Every wait also listens to a request to stop, to the
//! trigger and to the history's writer, so that nothing that matters is noticed late.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as signal;
use tokio::task::JoinSet;

use super::archive::{Archive, Sources};
use super::progress::{Phase, Progress};
use super::start::{self, Started};
use super::watch::{self, Needed, Standing};
use super::{Signal, Ui};
use crate::backoff::forecast;
use crate::client::Crew;
use crate::clock::Clock;
use crate::error::Error;
use crate::history::file::Writer;
use crate::history::{Elapsed, End, Header, Mark, PublicationKind};
use crate::publish::{Publisher, Records};
use crate::scenario::{self, Scenario};
use crate::trigger::{Step, Trigger};

/// How often conditions are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long first connects may take after the ramp.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// What `all-reconnected` allows beyond the policy's own last client (rule 6 of judgement).
const RETURN_MARGIN: Duration = Duration::from_secs(10);
/// The quantile of the policy's last client (rule 6).
const RETURN_QUANTILE: f64 = 0.9999;
/// Publishing goes on this long, and for so many publications, after the last client caught up (rule 15).
const TAIL: (Duration, usize) = (Duration::from_secs(2), 10);
/// How long after the last deadline the run waits for what is on its way into the record.
const AFTER_DEADLINE: Duration = Duration::from_millis(500);
/// How long clients may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Why a run stops before its plan is done.
enum Stopped {
    /// Asked from outside.
    Asked(Signal),
    /// herd's own tools failed.
    Broken(Error),
    /// The plan ends here, for instance because not everybody connected.
    Early(End),
}

impl From<Error> for Stopped {
    fn from(e: Error) -> Self {
        Self::Broken(e)
    }
}

/// What is known of the outage that is going on.
#[derive(Default)]
struct Outage {
    trigger: Elapsed,
    gone: Option<Elapsed>,
    ready: Option<Elapsed>,
    /// The target doesn't come back.
    never: bool,
    /// Nobody restarted it.
    no_restart: bool,
    /// When somebody who came back first received.
    others_since: Option<Elapsed>,
    /// When the number of clients without a connection last rose.
    last_drop: Elapsed,
    away: usize,
}

struct Conductor<'a> {
    scenario: &'a Scenario,
    clock: Clock,
    crew: Arc<Crew>,
    publisher: Option<Publisher>,
    records: Option<Records>,
    trigger: Trigger,
    mostly_dropped: signal::Sender<Option<Elapsed>>,
    sources: Sources,
    archive: Archive,
    progress: Progress,
    signals: signal::Receiver<Option<Signal>>,
    outage: Option<Outage>,
}

/// Starts everything, conducts the run and ends everything. What happened is in the history afterwards.
pub(super) async fn conduct(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    writer: Writer,
    ui: Ui,
    mut signals: signal::Receiver<Option<Signal>>,
) -> Result<(), Error> {
    let clock = Clock::start();
    let mut progress = Progress::new(ui.show, ui.talk);
    scenario
        .implied
        .iter()
        .for_each(|sentence| progress.say(sentence));
    let started = tokio::select! {
        biased;
        Ok(asked) = signals.wait_for(Option::is_some) => Err(asked.unwrap_or(Signal::Interrupt)),
        started = start::start(scenario, dir, header, clock) => Ok(started?),
    };
    let Started {
        plan,
        trigger,
        publisher,
        mostly_dropped,
        port: _held,
    } = match started {
        Ok(started) => started,
        Err(asked) => return interrupted_early(writer, clock, asked),
    };
    let own = crate::client::OwnNumbers {
        base: header.seq_base,
        span: header.seq_span,
    };
    let crew = Arc::new(Crew::new(scenario, plan, clock, own));
    let records = publisher.as_ref().map(Publisher::records);
    let marks = Arc::default();
    let sources = Sources {
        clock,
        crew: crew.clone(),
        records: records.clone(),
        marks,
    };
    let archive = Archive::start(writer, sources.clone());
    let clients = crew.launch(clock.now());
    let outage = None;
    let conductor = Conductor {
        scenario,
        clock,
        crew,
        publisher,
        records,
        trigger,
        mostly_dropped,
        sources,
        archive,
        progress,
        signals,
        outage,
    };
    conductor.whole(clients).await
}

/// Nothing had begun: the history says who ended it.
fn interrupted_early(mut writer: Writer, clock: Clock, asked: Signal) -> Result<(), Error> {
    let at = clock.now();
    let marks = vec![(at, Mark::End(interrupted(asked)))];
    Ok(writer.append(&crate::history::file::Chunk {
        at,
        marks,
        ..Default::default()
    })?)
}

fn interrupted(asked: Signal) -> End {
    End::Interrupted {
        terminated: asked == Signal::Terminate,
    }
}

impl Conductor<'_> {
    async fn whole(mut self, mut clients: JoinSet<()>) -> Result<(), Error> {
        let (end, error) = match self.phases().await {
            Ok(()) => (End::Complete, None),
            Err(Stopped::Early(end)) => (end, None),
            Err(Stopped::Asked(asked)) => (interrupted(asked), None),
            Err(Stopped::Broken(e)) => {
                self.progress.say(&format!("the run ends here: {e}"));
                let why = e.to_string().into();
                (End::Broken { why }, Some(e))
            }
        };
        // Who left by herd's order has not been dropped: the record ends before the server does.
        self.crew.stop();
        let _ = tokio::time::timeout(GOODBYE, async {
            while clients.join_next().await.is_some() {}
        })
        .await;
        if let Some(publisher) = self.publisher.take() {
            publisher.end(GOODBYE).await;
        }
        self.trigger.end().await;
        let now = self.clock.now();
        if let Some(usage) = super::prepare::usage() {
            self.sources.mark(now, usage);
        }
        self.sources.mark(now, Mark::End(end));
        self.progress.clear();
        self.archive.finish()?;
        // Before the first trigger a broken run has no verdict; after it, the history is judged as far as it goes.
        match error {
            Some(e) if self.outage.is_none() => Err(e),
            _ => Ok(()),
        }
    }

    async fn phases(&mut self) -> Result<(), Stopped> {
        self.connect().await?;
        self.prime().await?;
        for outage in 1..=self.scenario.outage.count {
            self.outage(outage).await?;
        }
        self.tail().await?;
        self.settle().await
    }

    async fn connect(&mut self) -> Result<(), Stopped> {
        let all = self.crew.handles().len();
        let deadline = self.clock.now() + self.scenario.connect.ramp + CONNECT_LIMIT;
        let there = |c: &Self| watch::connected(&c.crew);
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
        let deadline = self.clock.now() + self.scenario.checks.settle;
        loop {
            let holding = watch::with_cursor(&self.crew);
            let sent = |records: &Records| {
                records.look(|sent| Some((sent.first()?.seq, sent.last()?.seq)))
            };
            let own = self.records.as_ref().map(sent);
            let primed = match own {
                None => holding == all,
                Some(sent) => {
                    sent.is_some_and(|(first, last)| watch::primed(&self.crew, first, last))
                }
            };
            if primed {
                break;
            }
            if self.clock.now() > deadline {
                // A cursor alone is no priming: it may be of an event in which herd's number was not found.
                let primed = own.map_or(holding, |sent| {
                    sent.map_or(0, |(first, last)| {
                        watch::most_primed(&self.crew, first, last)
                    })
                });
                return Err(Stopped::Early(End::NotPrimed {
                    primed: primed as u32,
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

    async fn outage(&mut self, number: u32) -> Result<(), Stopped> {
        self.hold(Phase::Steady, self.scenario.outage.steady)
            .await?;
        let trigger = self.clock.now();
        self.mostly_dropped.send_replace(None);
        self.outage = Some(Outage {
            trigger,
            last_drop: trigger,
            ..Outage::default()
        });
        self.trigger.pull(number);
        self.until_ready().await?;
        self.recover(trigger).await?;
        self.sources
            .mark(self.clock.now(), Mark::Settled { outage: number });
        Ok(())
    }

    async fn until_ready(&mut self) -> Result<(), Stopped> {
        let waits = matches!(self.scenario.outage.trigger, scenario::Trigger::Wait { .. });
        let phase = if waits { Phase::Waiting } else { Phase::Down };
        loop {
            let outage = self.outage.as_ref();
            if outage.is_some_and(|o| o.no_restart) {
                return Err(Stopped::Early(End::NoRestart));
            }
            if outage.is_some_and(|o| o.never || o.ready.is_some()) {
                return Ok(());
            }
            self.beat(phase, watch::connected(&self.crew), "").await?;
        }
    }

    /// Waits until every client is back and caught up, has given up, or is past the limit.
    async fn recover(&mut self, trigger: Elapsed) -> Result<(), Stopped> {
        let Some(outage) = &self.outage else {
            return Ok(());
        };
        if outage.never {
            return Ok(());
        }
        let began = outage.gone.unwrap_or(trigger);
        let down = outage.ready.unwrap_or(began).since(began);
        let back_by = began + self.return_limit(down);
        let rollout = !matches!(
            self.scenario.outage.trigger,
            scenario::Trigger::Child { .. }
        );
        loop {
            let now = self.clock.now();
            let standing = self.standing();
            let all = self.crew.handles().len() - standing.gave_up;
            let caught_up_by =
                standing.last_opening.max(back_by.min(now)) + self.scenario.checks.settle;
            let quiet = self.outage.as_ref().is_none_or(|o| {
                !rollout || now.since(o.last_drop) >= self.scenario.outage.quiet_period
            });
            if quiet && standing.caught_up == all {
                return Ok(());
            }
            if now > back_by && (standing.back == standing.caught_up || now > caught_up_by) {
                return Ok(());
            }
            if self.outage.as_ref().is_some_and(|o| o.never) {
                return Ok(());
            }
            if standing.back < all {
                self.beat(Phase::Reconnecting, standing.back, &self.refused())
                    .await?;
            } else {
                self.beat(Phase::CatchingUp, standing.caught_up, "").await?;
            }
        }
    }

    fn return_limit(&self, down: Duration) -> Duration {
        self.scenario.checks.reconnect_limit.unwrap_or_else(|| {
            let policy = &self.scenario.policy.backoff;
            let last = forecast::last_return(policy, self.scenario.clients, down, RETURN_QUANTILE);
            last.unwrap_or(down) + RETURN_MARGIN
        })
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
            self.beat(Phase::Settling, self.standing().caught_up, "")
                .await?;
        }
        Ok(())
    }

    /// Waits until every pair is in, or the last deadline is past (rule 14).
    async fn settle(&mut self) -> Result<(), Stopped> {
        let settle = self.scenario.checks.settle;
        let Some(publisher) = &self.publisher else {
            // Observing, the last settle limit is the part that nobody can be judged by (rule 20).
            return self.hold(Phase::Settling, settle + AFTER_DEADLINE).await;
        };
        publisher.pause();
        let answers_by = self.clock.now() + settle;
        let awaited = |c: &Self| c.publisher.as_ref().is_some_and(|p| p.outstanding() > 0);
        while awaited(self) && self.clock.now() < answers_by {
            self.beat(Phase::Settling, self.standing().complete, "")
                .await?;
        }
        loop {
            let needed = self.needed();
            let standing = watch::standing(&self.crew, self.began(), &needed);
            let last = needed
                .last_answer()
                .unwrap_or_default()
                .max(standing.last_opening);
            if standing.complete == standing.back
                || self.clock.now() > last + settle + AFTER_DEADLINE
            {
                return Ok(());
            }
            self.beat(Phase::Settling, standing.complete, "").await?;
        }
    }

    async fn hold(&mut self, phase: Phase, time: Duration) -> Result<(), Stopped> {
        let until = self.clock.now() + time;
        while self.clock.now() < until {
            self.beat(phase, watch::connected(&self.crew), "").await?;
        }
        Ok(())
    }

    /// Lets a moment pass: up to [`TICK`], or until something asks for attention.
    async fn beat(&mut self, phase: Phase, done: usize, note: &str) -> Result<(), Stopped> {
        let now = self.clock.now();
        self.progress
            .update(now, phase, done, self.crew.handles().len(), note);
        self.look_after(now);
        if self.archive.failed() {
            return Err(Stopped::Broken(
                self.archive.finish().map_or_else(Error::from, |()| {
                    Error::Broken("the history's writer ended early".into())
                }),
            ));
        }
        let publisher = &mut self.publisher;
        let publisher_broke = async {
            match publisher {
                Some(publisher) => publisher.broken().await,
                None => std::future::pending().await,
            }
        };
        let step = tokio::select! {
            biased;
            Ok(asked) = self.signals.wait_for(Option::is_some) => {
                return Err(Stopped::Asked((*asked).unwrap_or(Signal::Interrupt)));
            }
            e = publisher_broke => return Err(Stopped::Broken(e)),
            step = self.trigger.next() => step,
            () = tokio::time::sleep(TICK) => return Ok(()),
        };
        self.step(step)
    }

    fn look_after(&mut self, now: Elapsed) {
        let Some(outage) = &mut self.outage else {
            return;
        };
        if outage.ready.is_some() {
            watch::close_half_open(&self.crew, now, outage.trigger, &mut outage.others_since);
        }
        let counts = self.crew.counts();
        let away = (counts.away + counts.gave_up) as usize;
        if away > outage.away {
            outage.last_drop = now;
        }
        outage.away = away;
        let most = watch::dropped(&self.crew, outage.trigger) * 2 > self.crew.handles().len();
        if most && self.mostly_dropped.borrow().is_none() {
            self.mostly_dropped.send_replace(Some(now));
        }
    }

    fn step(&mut self, step: Step) -> Result<(), Stopped> {
        match step {
            Step::Mark(at, mark) => {
                if let Some(outage) = &mut self.outage {
                    match &mark {
                        Mark::Gone { .. } => outage.gone = Some(at),
                        Mark::Ready { .. } => outage.ready = Some(at),
                        _ => {}
                    }
                }
                if let Mark::Note { text } = &mark {
                    self.progress.say(text);
                }
                self.sources.mark(at, mark);
            }
            Step::NeverReady { at, why } => {
                self.progress.say(&why);
                self.sources.mark(
                    at,
                    Mark::Note {
                        text: why.clone().into(),
                    },
                );
                match &mut self.outage {
                    Some(outage) => outage.never = true,
                    None => return Err(Stopped::Broken(Error::Broken(why))),
                }
            }
            Step::NoRestart { .. } => {
                if let Some(outage) = &mut self.outage {
                    outage.no_restart = true;
                }
            }
            Step::Broken(e) => return Err(Stopped::Broken(e)),
        }
        Ok(())
    }

    fn needed(&self) -> Needed {
        self.records
            .as_ref()
            .map_or_else(Needed::default, |records| {
                records.look(|publications| Needed::new(publications, &self.crew))
            })
    }

    fn standing(&self) -> Standing {
        watch::standing(&self.crew, self.began(), &self.needed())
    }

    fn began(&self) -> Elapsed {
        self.outage
            .as_ref()
            .map_or(Elapsed::ZERO, |outage| outage.trigger)
    }

    fn refused(&self) -> String {
        match self.crew.counts().failed {
            0 => String::new(),
            failed => format!("{failed} attempts failed so far"),
        }
    }
}
