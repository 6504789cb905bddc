//! Holds a run together: starts everything, keeps an eye on it from beat to beat, ends everything.
//!
//! Which phase follows which is in `run/phases.rs`. Every wait there passes through [`Conductor::beat`], which also
//! listens to a request to stop, to the trigger and to the history's writer, so that nothing that matters is noticed
//! late.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as signal;
use tokio::task::JoinSet;

use super::archive::{Archive, Sources};
use super::health::Watch;
use super::note;
use super::outage::Outage;
use super::progress::{Phase, Progress};
use super::refresh;
use super::start::{self, Started};
use super::watch::{self, Cut, Needed, Patience, Standing};
use super::{Signal, Ui};
use crate::client::Crew;
use crate::clock::Clock;
use crate::error::Error;
use crate::history::file::Writer;
use crate::history::{Elapsed, End, Header, Mark};
use crate::publish::{Publisher, Records};
use crate::scenario::Scenario;
use crate::transport::network::Network;
use crate::trigger::{Step, Trigger};

/// How often conditions are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long clients may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Why a run stops before its plan is done.
pub(super) enum Stopped {
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

pub(super) struct Conductor<'a> {
    pub(super) scenario: &'a Scenario,
    /// The run's directory.
    pub(super) dir: &'a Path,
    /// The profile's name.
    pub(super) profile: &'a str,
    pub(super) clock: Clock,
    pub(super) crew: Arc<Crew>,
    pub(super) publisher: Option<Publisher>,
    pub(super) records: Option<Records>,
    pub(super) trigger: Trigger,
    pub(super) mostly_dropped: signal::Sender<Option<Elapsed>>,
    pub(super) sources: Sources,
    archive: Archive,
    health: Watch,
    pub(super) progress: Progress,
    signals: signal::Receiver<Option<Signal>>,
    pub(super) outage: Option<Outage<'a>>,
}

/// Starts everything, conducts the run and ends everything. What happened is in the history afterwards.
pub(super) async fn conduct(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    network: Arc<Network>,
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
        started = start::start(scenario, dir, header, &network, clock) => Ok(started?),
    };
    let Started {
        plan,
        trigger,
        publisher,
        mostly_dropped,
        tunnels,
        ports: _held,
    } = match started {
        Ok(started) => started,
        Err(asked) => return interrupted_early(writer, clock, asked),
    };
    let own = crate::client::OwnNumbers {
        base: header.seq_base,
        span: header.seq_span,
    };
    let crew = Arc::new(Crew::new(scenario, plan, network, clock, own).through(tunnels));
    let records = publisher.as_ref().map(Publisher::records);
    let marks = Arc::default();
    let sources = Sources {
        clock,
        crew: crew.clone(),
        records: records.clone(),
        marks,
    };
    let archive = Archive::start(writer, sources.clone());
    let health = Watch::start(sources.clone());
    if let Some(pid) = scenario.target.watch_pid {
        health.of(0, pid);
    }
    let clients = crew.launch(clock.now());
    let outage = None;
    let conductor = Conductor {
        scenario,
        dir,
        profile: &header.terms.profile,
        clock,
        crew,
        publisher,
        records,
        trigger,
        mostly_dropped,
        sources,
        archive,
        health,
        progress,
        signals,
        outage,
    };
    let result = conductor.whole(clients).await;
    // Only herd's own server has one, and it has ended.
    let _ = std::fs::remove_dir_all(dir.join(start::DATA));
    result
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
                let why: Box<str> = self.crew.secrets().redact(&e.to_string()).into();
                self.progress.say(&format!("the run ends here: {why}"));
                (End::Broken { why }, Some(e))
            }
        };
        // What is accepted once nobody listens any more would look lost.
        if let Some(publisher) = self.publisher.take() {
            publisher.end(GOODBYE).await;
        }
        // Before the server is ended.
        self.health.finish();
        // Who left by herd's order has not been dropped: the record ends before the server does.
        self.crew.stop();
        let _ = tokio::time::timeout(GOODBYE, async {
            while clients.join_next().await.is_some() {}
        })
        .await;
        self.trigger.end().await;
        let now = self.clock.now();
        if let Some(usage) = super::prepare::usage() {
            self.sources.mark(now, usage);
        }
        self.sources.mark(now, Mark::End(end));
        self.progress.clear();
        self.archive.finish()?;
        // Before the first trigger a broken run has no verdict; after it, the history is judged as far as it goes. One that
        // can't be written lacks its end.
        match error {
            Some(e) if self.outage.is_none() || matches!(e, Error::File { .. }) => Err(e),
            _ => Ok(()),
        }
    }

    /// Lets a moment pass: up to [`TICK`], or until something asks for attention.
    pub(super) async fn beat(
        &mut self,
        phase: Phase,
        done: usize,
        note: &str,
    ) -> Result<(), Stopped> {
        let now = self.clock.now();
        self.progress
            .update(now, phase, done, self.crew.handles().len(), note);
        self.look_after(now);
        if self.archive.failed() {
            self.archive.finish().map_err(Error::from)?;
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
            let cut = outage.cut();
            watch::close_half_open(&self.crew, now, cut, &mut outage.others_since);
        }
        if let (Some((share, memory)), Some(from), None) = (
            outage.asked.refresh,
            outage.refresh_from(),
            &outage.refreshing,
        ) {
            let draw = refresh::Draw {
                seed: self.scenario.seed,
                clients: self.scenario.clients,
                outage: outage.number,
                share,
            };
            let span = (from, outage.asked.down);
            outage.refreshing = Some(refresh::begin(&self.crew, self.clock, draw, memory, span));
        }
        outage.notice(now, self.crew.counts(), self.crew.handles().len());
        let most = watch::dropped(&self.crew, outage.trigger) * 2 > self.crew.handles().len();
        if most && self.mostly_dropped.borrow().is_none() {
            self.mostly_dropped.send_replace(Some(now));
        }
    }

    fn step(&mut self, step: Step) -> Result<(), Stopped> {
        match step {
            Step::Mark(at, mark) => {
                self.sources.mark(at, mark.clone());
                match (&mut self.outage, mark) {
                    (Some(outage), Mark::Gone { .. }) => outage.gone = Some(at),
                    (Some(outage), Mark::Ready { .. }) => {
                        outage.ready = Some(at);
                        // With several falls, what came before this one is no sign of life any more.
                        outage.others_since = None;
                    }
                    // Whoever is back has lost the connection again, and the limit for coming back begins anew.
                    (Some(outage), Mark::Died { .. }) => {
                        (outage.gone, outage.ready) = (Some(at), None)
                    }
                    (None, Mark::Died { status }) => {
                        return Err(Stopped::Broken(Error::Broken(format!(
                            "the server ended by itself ({status}) before anything was restarted; see server.log in the \
                             run's directory"
                        ))));
                    }
                    (_, Mark::Note { text }) => {
                        self.progress.say(&self.crew.secrets().redact(&text));
                    }
                    _ => {}
                }
            }
            Step::Killed { at, grace } => {
                let open = watch::open_at(&self.crew, at);
                let text = note::killed(grace, open);
                self.note(at, text);
            }
            Step::NeverReady { at, why } => {
                let why = self.crew.secrets().redact(&why).into_owned();
                self.note(at, why.clone());
                match &mut self.outage {
                    Some(outage) => {
                        outage.never = true;
                        let number = self.trigger.outage();
                        self.sources.mark(at, Mark::NeverReady { outage: number });
                    }
                    None => return Err(Stopped::Broken(Error::Broken(why))),
                }
            }
            Step::NoRestart { .. } => {
                if let Some(outage) = &mut self.outage {
                    outage.no_restart = true;
                }
            }
            Step::Started { target, pid } => self.health.of(target, pid),
            Step::Over => {
                if let Some(outage) = &mut self.outage {
                    outage.commanded = false;
                }
            }
            Step::Broken(e) => return Err(Stopped::Broken(e)),
        }
        Ok(())
    }

    /// Says something on the way that the reports show too.
    pub(super) fn note(&mut self, at: Elapsed, text: String) {
        let text = self.crew.secrets().redact(&text).into_owned();
        self.progress.say(&text);
        self.sources.mark(at, Mark::Note { text: text.into() });
    }

    pub(super) fn needed(&self) -> Needed {
        self.records
            .as_ref()
            .map_or_else(Needed::default, |records| {
                records.look(|publications| Needed::new(publications, &self.crew))
            })
    }

    pub(super) fn standing(&self, patience: Patience) -> Standing {
        watch::standing(
            &self.crew,
            self.clock.now(),
            self.cut(),
            &self.needed(),
            patience,
        )
    }

    pub(super) fn cut(&self) -> Cut {
        self.outage.as_ref().map_or(Cut::default(), |o| o.cut())
    }

    pub(super) fn refused(&self) -> String {
        match self.crew.counts().failed {
            0 => String::new(),
            failed => format!("{failed} attempts failed so far"),
        }
    }
}
