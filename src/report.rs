//! The numbers that every report shows, and the list of formats.
//!
//! A [`Summary`] is read off the verdict; every format is a pure function of it, and of the history and the verdict
//! where it lists rows. Nothing here knows how a run is made or how a verdict comes about. One leaf per format stands
//! under `report/`; `report/terminal.rs` is the one for people.

pub mod csv;
pub mod escape;
pub mod hdr;
pub mod json;
pub mod terminal;
mod told;

pub use told::{Declined, RetryAfter};

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::check::dedupe::DedupeFacts;
use crate::check::health::{Death, HealthFacts};
use crate::check::staleness::StalenessFacts;
use crate::check::status::StatusFacts;
use crate::check::{
    BystanderFacts, DeliveryFacts, Finding, GeneratorFacts, OutageFacts, Outcome, PublicationFacts,
    Verdict,
};
use crate::error::{Error, Exit};
use crate::history::History;

/// A format that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// summary.json
    Json,
    /// the CSV files
    Csv,
    /// the HdrHistogram files
    Hdr,
}

impl Format {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 3] = [Self::Json, Self::Csv, Self::Hdr];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Hdr => "hdr",
        }
    }

    /// The format of this name; none where there is no such format.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// What it writes, in one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Json => "summary.json: the verdict and its numbers",
            Self::Csv => {
                "attempts, sessions, reconnects, receipts, publications, reloads and health, one row each, and who was connected when, in microseconds"
            }
            Self::Hdr => {
                "reconnect, connect and delivery times as .hgrm and .hlog for HdrHistogram tools"
            }
        }
    }

    /// The files that it writes.
    pub fn files(self) -> impl Iterator<Item = &'static str> {
        self.table().iter().map(|(name, _)| *name)
    }

    fn table(self) -> &'static [(&'static str, Render)] {
        match self {
            Self::Json => json::FILES,
            Self::Csv => csv::FILES,
            Self::Hdr => hdr::FILES,
        }
    }
}

/// What a format is a function of.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What happened.
    pub history: &'a History,
    /// What it means.
    pub verdict: &'a Verdict,
    /// The same in numbers.
    pub summary: &'a Summary,
}

/// Writes one file.
type Render = fn(&mut dyn Write, &Input<'_>) -> io::Result<()>;

/// The version of the shape of `summary.json`.
pub const SCHEMA: &str = "herd-summary/1";

/// The numbers that every report shows; as JSON it is `summary.json`, described by `report/summary.schema.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The worst of the checks.
    pub outcome: Outcome,
    /// The process's exit code; it differs from the outcome where the run was broken or interrupted.
    pub exit: u8,
    /// Whether something of the run is missing.
    pub truncated: bool,
    /// What replays the run's delays.
    pub seed: u64,
    /// Clients over all shards.
    pub clients: u32,
    /// The reconnect policy's name.
    pub backoff: String,
    /// The profile's name.
    pub profile: String,
    /// The target as the user wrote it, secrets masked.
    pub target: String,
    /// Publications by fate.
    pub publications: PublicationFacts,
    /// Every outage in numbers.
    pub outages: Vec<OutageFacts>,
    /// Pairs and receipts.
    pub delivery: DeliveryFacts,
    /// How late herd itself was.
    pub generator: GeneratorFacts,
    /// Where the clients stood, over time.
    #[serde(default)]
    pub status: StatusFacts,
    /// How long their data was stale.
    #[serde(default)]
    pub staleness: StalenessFacts,
    /// What idempotent handlers would make of repeated events; none where nobody asked.
    #[serde(default)]
    pub dedupe: Option<DedupeFacts>,
    /// Delays that the server asked clients to wait; none where it named none.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
    /// The words with which the server declined sessions or refused resumes, the commonest first, at most 10.
    #[serde(default)]
    pub declined: Vec<Declined>,
    /// What each server used; none where nobody looked.
    #[serde(default)]
    pub health: Vec<HealthFacts>,
    /// Servers that ended although nobody asked them to.
    #[serde(default)]
    pub deaths: Vec<Death>,
    /// Every outage that was for a share of the clients: whom it hit.
    #[serde(default)]
    pub bystanders: Vec<BystanderFacts>,
    /// Every answer.
    pub checks: Vec<Finding>,
}

impl Summary {
    /// Reads it off a verdict; `exit` is what the process ends in.
    #[must_use]
    pub fn new(history: &History, verdict: &Verdict, exit: Exit) -> Self {
        let header = &history.header;
        Self {
            schema: SCHEMA.into(),
            outcome: verdict.outcome,
            exit: exit.code(),
            truncated: history.truncated(),
            seed: header.seed,
            clients: header.clients,
            backoff: header.terms.policy_name.clone(),
            profile: header.terms.profile.clone(),
            target: header.terms.target.clone(),
            publications: verdict.publications.clone(),
            outages: verdict.outages.clone(),
            delivery: verdict.delivery.clone(),
            generator: verdict.generator.clone(),
            status: verdict.status.clone(),
            staleness: verdict.staleness.clone(),
            dedupe: verdict.dedupe.clone(),
            retry_after: told::retry_after(history),
            declined: told::declined(history),
            health: verdict.health.clone(),
            deaths: verdict.deaths.clone(),
            bystanders: verdict.bystanders.clone(),
            checks: verdict.findings.clone(),
        }
    }

    /// The word for how it ended: that of the exit code.
    #[must_use]
    pub fn ending(&self) -> &'static str {
        Exit::ALL
            .into_iter()
            .find(|exit| exit.code() == self.exit)
            .map_or(self.outcome.name(), Exit::name)
    }
}

/// Files that were created before the run, to be written after it. Those that never are written are removed again.
#[derive(Debug)]
pub struct Outputs {
    files: Vec<Output>,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    render: Render,
    /// None once it was written.
    file: Option<File>,
}

/// Creates every file of these formats in an existing directory, so that a run that can't write its results fails
/// before it starts.
///
/// # Errors
///
/// [`Error::File`] for the first file that can't be created.
pub fn open_outputs(dir: &Path, formats: &[Format]) -> Result<Outputs, Error> {
    let mut outputs = Outputs { files: Vec::new() };
    for format in Format::ALL.into_iter().filter(|f| formats.contains(f)) {
        for (name, render) in format.table() {
            let path = dir.join(name);
            let file = File::create(&path).map_err(|source| Error::File {
                action: "create",
                path: path.clone(),
                source,
            })?;
            outputs.files.push(Output {
                path,
                render: *render,
                file: Some(file),
            });
        }
    }
    Ok(outputs)
}

impl Outputs {
    /// Writes every file and says which.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for the first file that can't be written, a full disk for example.
    pub fn write(mut self, input: &Input<'_>) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        for output in &mut self.files {
            if let Some(file) = &output.file {
                render(output.render, file, input).map_err(|source| Error::File {
                    action: "write",
                    path: output.path.clone(),
                    source,
                })?;
            }
            output.file = None;
            written.push(output.path.clone());
        }
        Ok(written)
    }
}

fn render(render: Render, file: &File, input: &Input<'_>) -> io::Result<()> {
    let mut buffer = BufWriter::with_capacity(1 << 16, file);
    render(&mut buffer, input)?;
    buffer.flush()
}

impl Drop for Outputs {
    fn drop(&mut self) {
        for output in self.files.iter().filter(|output| output.file.is_some()) {
            // Nobody is left to tell, and an empty or half file says by itself that something went wrong.
            let _ = std::fs::remove_file(&output.path);
        }
    }
}

/// Writes every file of these formats into an existing directory and says which.
///
/// # Errors
///
/// [`Error::File`] for the first file that can't be created or written.
pub fn write_all(
    dir: &Path,
    formats: &[Format],
    history: &History,
    verdict: &Verdict,
    summary: &Summary,
) -> Result<Vec<PathBuf>, Error> {
    open_outputs(dir, formats)?.write(&Input {
        history,
        verdict,
        summary,
    })
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(Format::parse(format.name()), Some(format));
            assert_eq!(
                serde_json::to_value(format).unwrap(),
                serde_json::Value::from(format.name())
            );
        }
        assert_eq!(Format::parse("xml"), None);
    }

    #[test]
    fn outputs_that_are_never_written_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = open_outputs(dir.path(), &Format::ALL).unwrap();
        let count = || std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(count(), 15);
        drop(outputs);
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_created_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("receipts.csv");
        std::fs::create_dir(&taken).unwrap();
        let error = open_outputs(dir.path(), &[Format::Csv]).unwrap_err();
        assert_eq!(error.exit(), Exit::Broken);
        assert!(error.to_string().contains("receipts.csv"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let (history, verdict) = fixture::pass();
        let summary = Summary::new(&history, &verdict, Exit::Pass);
        let error = write_all(dir.path(), &[Format::Json], &history, &verdict, &summary);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("summary.json"), "{error}");
    }
}
