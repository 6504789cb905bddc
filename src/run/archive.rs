//! Collects what clients, publisher and conductor recorded, and appends it to the history every second.
//!
//! A thread of its own, so that a slow disk delays no dial. It refuses to know what the records mean; it only keeps the
//! order that makes every chunk whole: receipts are taken first, what they refer to after them.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::client::Crew;
use crate::clock::Clock;
use crate::history::file::{Chunk, FileError, Writer};
use crate::history::{Elapsed, Mark};
use crate::publish::Records;

/// How often a chunk is written; a killed herd loses no more than this.
const EVERY: Duration = Duration::from_secs(1);

/// What there is to collect from.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) clock: Clock,
    pub(super) crew: Arc<Crew>,
    pub(super) records: Option<Records>,
    pub(super) marks: Arc<Mutex<Vec<(Elapsed, Mark)>>>,
}

impl Sources {
    /// Notes a mark. A note, and last words, may hold what a server or a command said, so they are searched for secrets.
    pub(super) fn mark(&self, at: Elapsed, mark: Mark) {
        let mark = match mark {
            Mark::Note { text } => Mark::Note {
                text: self.crew.secrets().redact(&text).into(),
            },
            Mark::LastWords { target, text } => Mark::LastWords {
                target,
                text: self.crew.secrets().redact(&text).into(),
            },
            other => other,
        };
        self.marks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((at, mark));
    }

    /// What happened since the last call.
    fn chunk(&self) -> Chunk {
        let at = self.clock.now();
        let clients = self
            .crew
            .handles()
            .iter()
            .map(|handle| (handle.id(), handle.take()));
        let clients: Vec<_> = clients.filter(|(_, growth)| !growth.is_empty()).collect();
        let publications = self.records.as_ref().map(Records::take).unwrap_or_default();
        let events = self.crew.table().take_new();
        let marks = std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner));
        Chunk {
            at,
            events,
            publications,
            marks,
            clients,
        }
    }
}

/// The writing thread.
pub(super) struct Archive {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<Result<(), FileError>>>,
}

impl Archive {
    /// Starts writing.
    pub(super) fn start(mut writer: Writer, sources: Sources) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            loop {
                let last = match stopped.recv_timeout(EVERY) {
                    Err(RecvTimeoutError::Timeout) => false,
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
                };
                writer.append(&sources.chunk())?;
                if last {
                    return Ok(());
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Whether it stopped by itself, which only an error makes it do.
    pub(super) fn failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Writes the last chunk and ends. After an error, which is told once, there is nothing to end any more.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        // A thread that is gone has said why.
        let _ = self.stop.send(());
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(FileError::Io {
                action: "write",
                path: PathBuf::from("history.herd"),
                source: std::io::Error::other("the writing thread is gone"),
            }),
        }
    }
}
