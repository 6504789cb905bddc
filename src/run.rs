//! Conducts one run: prepare, start, ramp, publish, trigger, settle, collect, judge.
//!
//! This file is the table of contents; each step is a leaf under `run/`. What a run decides while it goes on (when to go
//! to the next phase, which silent connection to close) only shapes what is recorded. The verdict comes from the history
//! alone.

mod archive;
mod conductor;
mod health;
pub mod network;
mod note;
mod outage;
mod phases;
pub(crate) mod prepare;
mod progress;
mod refresh;
pub mod simulated;
pub(crate) mod start;
mod watch;

use std::io::Write;
use std::path::PathBuf;

use tokio::sync::watch as signal;

use crate::check::{self, Outcome, Verdict};
use crate::error::{Error, Exit};
use crate::history::file::{self, FileError};
use crate::history::{End, History};
use crate::report::{self, Summary};
use crate::scenario::Scenario;
use crate::secrets::Secrets;

pub use progress::{LINE_EVERY, Show};

/// The history's name in a run's directory.
pub const HISTORY: &str = "history.herd";

/// Where a run talks to a person.
pub struct Ui {
    /// How progress is shown.
    pub show: Show,
    /// Where sentences and lines go: stderr.
    pub talk: Box<dyn Write + Send>,
    /// The command that repeats the run.
    pub repeat: String,
}

/// A request to stop from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// A run that came to an end, whatever the end.
#[derive(Debug)]
pub struct Ended {
    /// The run's directory.
    pub dir: PathBuf,
    /// Every file in it that a reader wants to know of.
    pub files: Vec<PathBuf>,
    /// What happened.
    pub history: History,
    /// What it means.
    pub verdict: Verdict,
    /// The numbers.
    pub summary: Summary,
    /// The exit code.
    pub exit: Exit,
}

/// Carries a scenario out and judges it. Blocks until the run is over.
///
/// # Errors
/// [`Error::Broken`] and its like where the run could not begin or its results not be written; whatever was recorded
/// until then stays in the run's directory.
pub fn run(
    scenario: &Scenario,
    ui: Ui,
    signals: signal::Receiver<Option<Signal>>,
) -> Result<Ended, Error> {
    let network = network::load(scenario)?;
    prepare::descriptors(scenario)?;
    prepare::watched(scenario)?;
    let started = prepare::wall_clock();
    let header = prepare::header(scenario, &ui.repeat, started)?;
    let dir = prepare::directory(scenario, started)?;
    let path = dir.join(HISTORY);
    let outputs = report::open_outputs(&dir, &scenario.output.formats)?;
    let writer = file::Writer::create(&path, &header)?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::Broken(format!("the runtime can't be started: {e}")))?;
    let conducted = runtime.block_on(conductor::conduct(
        scenario,
        &dir,
        &header,
        network.clone(),
        writer,
        ui,
        signals,
    ));
    runtime.shutdown_background();
    conducted.map_err(|error| hidden(error, network.secrets()))?;

    let history = file::read_all(std::slice::from_ref(&path))?;
    let verdict = check::judge(&history);
    let exit = exit(&history, &verdict);
    let summary = Summary::new(&history, &verdict, exit);
    let mut files = vec![path];
    files.extend(outputs.write(&report::Input {
        history: &history,
        verdict: &verdict,
        summary: &summary,
    })?);
    Ok(Ended {
        dir,
        files,
        history,
        verdict,
        summary,
        exit,
    })
}

/// An error may repeat what a server said.
fn hidden(error: Error, secrets: &Secrets) -> Error {
    match error {
        Error::Usage(text) => Error::Usage(secrets.redact(&text).into()),
        Error::Broken(text) => Error::Broken(secrets.redact(&text).into()),
        other => other,
    }
}

/// The exit code of a judged history: interrupted, then broken, then the verdict.
#[must_use]
pub fn exit(history: &History, verdict: &Verdict) -> Exit {
    match history.end() {
        Some(End::Interrupted { terminated: false }) => Exit::Interrupted,
        Some(End::Interrupted { terminated: true }) => Exit::Terminated,
        Some(End::Broken { .. }) => Exit::Broken,
        _ => match verdict.outcome {
            Outcome::Pass => Exit::Pass,
            Outcome::Unknown => Exit::Unknown,
            Outcome::Fail => Exit::Fail,
        },
    }
}

impl From<FileError> for Error {
    fn from(e: FileError) -> Self {
        match e {
            FileError::Io {
                action,
                path,
                source,
            } => Self::File {
                action,
                path,
                source,
            },
            FileError::Format { .. } | FileError::Mismatch(_) => Self::Usage(e.to_string()),
        }
    }
}
