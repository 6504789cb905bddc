//! The durable log: events under ascending ids, and the idempotency keys of those that are kept.
//!
//! One thread writes. It takes whatever has been submitted meanwhile, commits it as one transaction and only then
//! answers, so nothing is acknowledged that a SIGKILL could take back, and a thousand publications a second cost only
//! as many commits as the disk can do. Readers pull by id: what is committed is the truth, the channel only says that
//! there is more. So a replay can't have a gap or an overlap with what comes live, and a slow reader misses nothing.
//! This file knows nothing of HTTP, sockets or frames' fate.

mod journal;
mod table;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use axum::extract::ws::Utf8Bytes;
use redb::Database;
use tokio::sync::{mpsc, oneshot, watch};

use super::faults::Faults;
use journal::Journal;
use writer::Writer;

/// How many recent events are also kept in memory, where most replays are served from.
const RECENT: usize = 4096;
/// The most bytes of these.
const RECENT_BYTES: usize = 16 << 20;
/// Submissions waiting for the writer; beyond it publishers wait.
const INBOX: usize = 1024;

/// An event as it is sent; clones share its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// From 1, ascending.
    pub(crate) id: u64,
    /// The whole frame of a WebSocket.
    pub(crate) frame: Utf8Bytes,
    /// Where in it stands what was published.
    data: usize,
}

impl Event {
    /// The frame of what was published, which is JSON.
    pub(crate) fn new(id: u64, data: &str) -> Self {
        let frame = format!(r#"{{"id":"{id}","type":"event","data":{data}}}"#);
        Self {
            id,
            data: frame.len() - data.len() - 1,
            frame: frame.into(),
        }
    }

    /// What was published.
    pub(crate) fn data(&self) -> &str {
        &self.frame[self.data..self.frame.len() - 1]
    }
}

/// What the log holds, as of one commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The newest id ever given; 0 = none.
    pub(crate) newest: u64,
    /// All ids up to this one are no longer kept.
    pub(crate) evicted: u64,
}

/// The answer to a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// What follows the cursor, in order; empty = nothing yet.
    Events(Vec<Event>),
    /// What follows the cursor is no longer kept.
    Evicted,
}

/// Ids that were given to one submission; they have no holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids {
    /// The first.
    pub(crate) first: u64,
    /// How many.
    pub(crate) count: u64,
}

impl Ids {
    /// All of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        self.first..self.first + self.count
    }
}

/// Why nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The key was used for something else.
    #[error("this Idempotency-Key was used for another publication; use a new one")]
    KeyReused,
    /// The store failed; nothing of the submission is in it.
    #[error("the log can't be written: {0}")]
    Store(String),
    /// The server is going down.
    #[error("the server is shutting down; publish again")]
    Closed,
}

/// What came of a submission.
type Answer = Result<Ids, Refused>;

/// Something to be stored, and who waits for it.
struct Submission {
    data: Vec<Box<str>>,
    key: Option<Box<str>>,
    answer: oneshot::Sender<Answer>,
}

/// What the writer is told.
enum Order {
    /// To store something.
    Store(Submission),
    /// That another server may have.
    Look,
}

/// Where the log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In memory: gone with the process.
    Memory,
    /// In this directory, which is made where there is none.
    Dir(PathBuf),
    /// In this directory, by several servers at once.
    Shared(PathBuf),
}

/// The log.
pub(crate) struct Log {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    inbox: Mutex<Option<mpsc::Sender<Order>>>,
}

/// What the writer and the readers share.
struct Shared {
    db: Database,
    recent: RwLock<Recent>,
    newest: watch::Sender<u64>,
}

/// The end of the log, in memory.
#[derive(Default)]
struct Recent {
    state: State,
    /// Every kept event with an id above this is in `events`.
    floor: u64,
    events: VecDeque<Event>,
    bytes: usize,
}

impl Recent {
    fn push(&mut self, event: Event) {
        self.bytes += event.frame.len();
        self.events.push_back(event);
        while self.events.len() > RECENT || self.bytes > RECENT_BYTES {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.frame.len();
            self.floor = oldest.id;
        }
    }

    fn after(&self, cursor: u64, most: usize) -> Vec<Event> {
        let from = self.events.partition_point(|event| event.id <= cursor);
        self.events.range(from..).take(most).cloned().collect()
    }
}

impl Log {
    /// Opens the log and starts its writer, which keeps the newest `keep` events.
    ///
    /// # Errors
    /// Where the directory can't be made, or the file isn't a log, or another process has it open and doesn't share it.
    pub(crate) fn open(place: &Place, keep: u64, faults: Arc<Faults>) -> io::Result<Self> {
        let db = table::open(place)?;
        let journal = match place {
            Place::Shared(dir) => Some(Journal::open(dir)?),
            Place::Memory | Place::Dir(_) => None,
        };
        if let Some(journal) = &journal {
            writer::replay(&db, journal, keep).map_err(table::broken)?;
        }
        if let Some(first) = faults.on_open(table::state(&db)?.newest) {
            table::wipe(&db, first)?;
        }
        let state = table::state(&db)?;
        let mut recent = Recent {
            state,
            floor: state.newest.saturating_sub(RECENT as u64),
            ..Recent::default()
        };
        if let Read::Events(events) =
            table::read(&db, recent.floor.max(state.evicted), state.newest, RECENT)?
        {
            events.into_iter().for_each(|event| recent.push(event));
        }
        let shared = Arc::new(Shared {
            db,
            recent: RwLock::new(recent),
            newest: watch::Sender::new(state.newest),
        });
        let (inbox, submissions) = mpsc::channel(INBOX);
        if let Some(journal) = &journal {
            journal.watch(inbox.downgrade())?;
        }
        let writer = Writer::new(Arc::clone(&shared), journal, keep, faults);
        let thread = std::thread::Builder::new()
            .name("herd-log".into())
            .spawn(move || writer.run(submissions))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            inbox: Mutex::new(Some(inbox)),
        })
    }

    /// Stores events in one piece; returns when they are durable. What was stored under the same key before is
    /// answered again and not stored.
    pub(crate) async fn append(&self, data: Vec<Box<str>>, key: Option<Box<str>>) -> Answer {
        let inbox = self.inbox();
        let inbox = inbox.ok_or(Refused::Closed)?;
        let (answer, answered) = oneshot::channel();
        let submission = Submission { data, key, answer };
        let order = Order::Store(submission);
        inbox.send(order).await.map_err(|_| Refused::Closed)?;
        drop(inbox);
        answered.await.unwrap_or(Err(Refused::Closed))
    }

    fn inbox(&self) -> Option<mpsc::Sender<Order>> {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What the log holds now.
    pub(crate) fn state(&self) -> State {
        self.shared.recent().state
    }

    /// Resolves whenever there is more to read.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.newest.subscribe()
    }

    /// Reads at most `most` events after a cursor.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub(crate) fn read(&self, cursor: u64, most: usize) -> io::Result<Read> {
        let newest = {
            let recent = self.shared.recent();
            if cursor < recent.state.evicted {
                return Ok(Read::Evicted);
            }
            if cursor >= recent.floor {
                return Ok(Read::Events(recent.after(cursor, most)));
            }
            recent.state.newest
        };
        table::read(&self.shared.db, cursor, newest, most)
    }

    /// Lets the writer finish what was submitted, and waits for it. Later submissions are refused.
    pub(crate) fn close(&self) {
        let inbox =
            |mutex: &Mutex<Option<_>>| mutex.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(inbox(&self.inbox));
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A writer that panicked has answered nobody; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn recent(&self) -> std::sync::RwLockReadGuard<'_, Recent> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what was committed: first the events, then that there are some.
    fn show(&self, state: State, events: Vec<Event>) {
        {
            let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
            recent.state = state;
            events.into_iter().for_each(|event| recent.push(event));
        }
        self.newest.send_replace(state.newest);
    }
}

#[cfg(test)]
mod tests;
