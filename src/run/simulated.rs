//! A run in virtual time, judged like any: no target, no runtime, and files only where they were asked for.

use std::path::Path;

use super::{Ended, HISTORY, exit, prepare};
use crate::check;
use crate::error::Error;
use crate::history::file::{Chunk, FileError, Writer};
use crate::history::record::Growth;
use crate::history::{
    AttemptOutcome, Client, ClientEvent, Header, History, OutageTerms, Source, Terms, TriggerKind,
};
use crate::report::{self, Summary};
use crate::scenario::Scenario;
use crate::simulate::storm::{Storm, record};

/// Clients in a chunk of the file.
const CHUNK: usize = 50_000;

/// Follows the storm of a scenario, judges it, and writes it down where the scenario names a directory.
///
/// # Errors
/// [`Error::Usage`] where the herd dials too often for a history, and what the files meet.
pub fn run(scenario: &Scenario, storm: &Storm, repeat: &str) -> Result<Ended, Error> {
    let started = prepare::wall_clock();
    let header = header(scenario, repeat, started)?;
    let dir = match scenario.output.dir {
        Some(_) => Some(prepare::directory(scenario, started)?),
        None => None,
    };
    let outputs = match &dir {
        Some(dir) => Some(report::open_outputs(dir, &scenario.output.formats)?),
        None => None,
    };
    let followed = record::history(storm, header);
    let (history, _) = followed.map_err(|error| {
        Error::Usage(format!(
            "{error}; --compare counts without keeping a history"
        ))
    })?;
    let mut files = Vec::new();
    if let Some(dir) = &dir {
        let path = dir.join(HISTORY);
        write(&path, &history)?;
        files.push(path);
    }
    let verdict = check::judge(&history);
    let exit = exit(&history, &verdict);
    let summary = Summary::new(&history, &verdict, exit);
    if let Some(outputs) = outputs {
        files.extend(outputs.write(&report::Input {
            history: &history,
            verdict: &verdict,
            summary: &summary,
        })?);
    }
    Ok(Ended {
        dir: dir.unwrap_or_default(),
        files,
        history,
        verdict,
        summary,
        exit,
    })
}

fn header(scenario: &Scenario, repeat: &str, started: u64) -> Result<Header, Error> {
    let header = prepare::header(scenario, repeat, started)?;
    let outages = header.terms.outages.len();
    Ok(Header {
        seq_base: 0,
        seq_span: 0,
        terms: Terms {
            source: Source::Nobody,
            outages: vec![OutageTerms::plain(TriggerKind::Child); outages],
            profile: "none".into(),
            target: "simulated".into(),
            ..header.terms
        },
        ..header
    })
}

fn write(path: &Path, history: &History) -> Result<(), FileError> {
    let mut writer = Writer::create(path, &history.header)?;
    let at = history.horizon;
    for clients in history.clients.chunks(CHUNK) {
        writer.append(&Chunk {
            at,
            clients: clients.iter().map(|c| (c.id, growth(c))).collect(),
            ..Chunk::default()
        })?;
    }
    writer.append(&Chunk {
        at,
        marks: history.marks.clone(),
        ..Chunk::default()
    })
}

/// A client's record as the log that it came of.
fn growth(client: &Client) -> Growth {
    let mut events = Vec::with_capacity(client.attempts.len() + client.sessions.len());
    let mut sessions = client.sessions.iter();
    for attempt in &client.attempts {
        let opened = attempt.outcome == AttemptOutcome::Opened;
        events.push(ClientEvent::Attempt(attempt.clone()));
        if opened
            && let Some((at, cause)) = sessions.next().and_then(|session| session.closed.clone())
        {
            events.push(ClientEvent::Closed { at, cause });
        }
    }
    if let Some((at, why)) = client.quit.clone() {
        events.push(ClientEvent::Quit { at, why });
    }
    Growth {
        events,
        stream: client.stream.bytes().to_vec(),
    }
}
