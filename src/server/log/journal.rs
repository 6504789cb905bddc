//! The file that several servers share: what was stored, in the order in which it was.
//!
//! Whoever appends holds the file's advisory lock and has read everything before it, so ids and keys are the same in every
//! process. Readers need no lock: a record counts only when all of it is there, and what a process that died left half
//! written is cut off by the next one that appends. It knows records, not what is made of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::WeakSender;
use xxhash_rust::xxh3::xxh3_64;

use super::Order;
use super::table::FILE as ALONE;

/// The file in the data directory.
const FILE: &str = "log.shared";
/// A record's length and digest stand before it.
const HEAD: usize = 4 + 8;
/// How often it is looked whether others have written.
const PACE: Duration = Duration::from_millis(5);

/// What one submission stored.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The first id that it was given; the others follow one by one.
    pub(super) first: u64,
    /// Its idempotency key.
    pub(super) key: Option<Box<str>>,
    /// The digest of what was published.
    pub(super) digest: u64,
    /// What was published; none = lost on purpose.
    pub(super) data: Vec<Option<Box<str>>>,
}

/// One process's place in the shared file.
pub(super) struct Journal {
    file: Arc<File>,
    /// Up to here it was read: the end of the last whole record.
    read: Arc<AtomicU64>,
}

/// While it lives nobody else appends.
pub(super) struct Turn<'a>(&'a File);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // One that fails is let go with the process.
        let _ = self.0.unlock();
    }
}

impl Journal {
    /// Opens the file, or makes it.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        if dir.join(ALONE).exists() {
            return Err(io::Error::other(
                "the log in it is one server's own; share another directory",
            ));
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(FILE))?;
        Ok(Self {
            file: Arc::new(file),
            read: Arc::default(),
        })
    }

    /// Whether a directory holds such a file.
    pub(super) fn lies_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Waits until nobody else appends.
    pub(super) fn turn(&self) -> io::Result<Turn<'_>> {
        self.file.lock()?;
        Ok(Turn(&self.file))
    }

    /// What was appended since the last call.
    pub(super) fn read(&self) -> io::Result<Vec<Record>> {
        let from = self.read.load(Ordering::Relaxed);
        let len = self.file.metadata()?.len().saturating_sub(from);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while filled < bytes.len() {
            // A torn record may be cut off meanwhile.
            match self
                .file
                .read_at(&mut bytes[filled..], from + filled as u64)?
            {
                0 => break,
                n => filled += n,
            }
        }
        let mut rest = &bytes[..filled];
        let mut records = Vec::new();
        while let Some((record, after)) = next(rest) {
            records.push(record);
            rest = after;
        }
        let whole = (filled - rest.len()) as u64;
        self.read.store(from + whole, Ordering::Relaxed);
        Ok(records)
    }

    /// Appends records, durably. Everything before them was read in this turn.
    pub(super) fn append(&self, _turn: &Turn<'_>, records: &[Record]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for record in records {
            let body = serde_json::to_vec(record)?;
            let len = u32::try_from(body.len())
                .map_err(|_| io::Error::other("a publication of 4 GiB can't be kept"))?;
            bytes.extend(len.to_le_bytes());
            bytes.extend(xxh3_64(&body).to_le_bytes());
            bytes.extend(body);
        }
        let end = self.read.load(Ordering::Relaxed);
        if self.file.metadata()?.len() > end {
            self.file.set_len(end)?;
        }
        self.file.write_all_at(&bytes, end)?;
        self.file.sync_data()?;
        self.read.store(end + bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Starts to tell the writer whenever there is something to read, until the writer is gone.
    pub(super) fn watch(&self, inbox: WeakSender<Order>) -> io::Result<()> {
        let (file, read) = (Arc::clone(&self.file), Arc::clone(&self.read));
        let look = move || {
            while let Some(inbox) = inbox.upgrade() {
                let len = file.metadata().map_or(0, |meta| meta.len());
                if len != read.load(Ordering::Relaxed) {
                    // A full inbox has the writer look anyway.
                    let _ = inbox.try_send(Order::Look);
                }
                drop(inbox);
                std::thread::sleep(PACE);
            }
        };
        std::thread::Builder::new()
            .name("herd-log-watch".into())
            .spawn(look)?;
        Ok(())
    }
}

/// The first record, if it is whole, and what follows it.
fn next(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (len, digest) = head.split_at(4);
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    let digest = u64::from_le_bytes(digest.try_into().ok()?);
    let (body, rest) = rest.split_at_checked(len)?;
    if xxh3_64(body) != digest {
        return None;
    }
    Some((serde_json::from_slice(body).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(first: u64) -> Record {
        Record {
            first,
            key: Some(format!("k{first}").into()),
            digest: 7,
            data: vec![Some("{}".into()), None],
        }
    }

    fn append(journal: &Journal, record: Record) {
        let turn = journal.turn().unwrap();
        journal.read().unwrap();
        journal.append(&turn, &[record]).unwrap();
    }

    #[test]
    fn what_one_appends_the_other_reads_once() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (
            Journal::open(dir.path()).unwrap(),
            Journal::open(dir.path()).unwrap(),
        );
        append(&one, record(1));
        assert_eq!(two.read().unwrap(), [record(1)]);
        append(&two, record(3));
        assert_eq!(two.read().unwrap(), []);
        assert_eq!(one.read().unwrap(), [record(3)]);
    }

    #[test]
    fn a_write_that_was_torn_at_any_byte_is_read_by_nobody_and_overwritten() {
        let whole = {
            let dir = tempfile::tempdir().unwrap();
            append(&Journal::open(dir.path()).unwrap(), record(3));
            std::fs::read(dir.path().join(FILE)).unwrap()
        };
        for torn in 1..whole.len() {
            let dir = tempfile::tempdir().unwrap();
            let (one, two) = (
                Journal::open(dir.path()).unwrap(),
                Journal::open(dir.path()).unwrap(),
            );
            append(&one, record(1));
            let end = one.read.load(Ordering::Relaxed);
            one.file.write_all_at(&whole[..torn], end).unwrap();
            assert_eq!(two.read().unwrap(), [record(1)], "{torn}");
            append(&two, record(5));
            assert_eq!(one.read().unwrap(), [record(5)], "{torn}");
        }
    }
}
