//! How the log lies in the store: tables, and what is read from them. It knows no thread and no subscriber.

use std::io;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::journal::Journal;
use super::{Event, Place, Read, State};

/// Id -> what was published.
pub(super) const EVENTS: TableDefinition<'_, u64, &str> = TableDefinition::new("events");
/// Key -> (first id, count, digest of what was published).
pub(super) const KEYS: TableDefinition<'_, &str, (u64, u64, u64)> = TableDefinition::new("keys");
/// Last id of a keyed submission -> its key, so that a key goes when its events go.
pub(super) const KEY_OF: TableDefinition<'_, u64, &str> = TableDefinition::new("key_of");
/// `newest` and `evicted`: they outlive the events.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The file in the data directory.
pub(super) const FILE: &str = "log.redb";
/// Pages that the store may keep in memory, bytes.
const CACHE: usize = 64 << 20;

pub(super) fn open(place: &Place) -> io::Result<Database> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    let db = match place {
        // What is shared stands in a file of its own, and every process makes its tables of it.
        Place::Memory | Place::Shared(_) => builder.create_with_backend(InMemoryBackend::new()),
        Place::Dir(dir) => {
            std::fs::create_dir_all(dir)?;
            if Journal::lies_in(dir) {
                let why = "the log in it is shared by several servers; give --shared, or another directory";
                return Err(io::Error::other(why));
            }
            builder.create(dir.join(FILE))
        }
    }
    .map_err(broken)?;
    let txn = db.begin_write().map_err(broken)?;
    create(&txn).map_err(broken)?;
    txn.commit().map_err(broken)?;
    Ok(db)
}

fn create(txn: &WriteTransaction) -> Result<(), redb::Error> {
    txn.open_table(EVENTS)?;
    txn.open_table(KEYS)?;
    txn.open_table(KEY_OF)?;
    txn.open_table(META)?;
    Ok(())
}

/// Forgets everything, the ids too, but not what was answered: a publication that is repeated because its answer was lost
/// gets the old one, so what is gone is gone, and can be counted. The next id is the one after `newest`.
pub(super) fn wipe(db: &Database, newest: u64) -> io::Result<()> {
    let wipe = || -> Result<(), redb::Error> {
        let txn = db.begin_write()?;
        txn.delete_table(EVENTS)?;
        txn.delete_table(KEY_OF)?;
        txn.delete_table(META)?;
        create(&txn)?;
        {
            let mut meta = txn.open_table(META)?;
            meta.insert("newest", newest)?;
            meta.insert("evicted", newest)?;
        }
        txn.commit()?;
        Ok(())
    };
    wipe().map_err(broken)
}

pub(super) fn state(db: &Database) -> io::Result<State> {
    let state = || -> Result<State, redb::Error> {
        let meta = db.begin_read()?.open_table(META)?;
        meta_state(&meta).map_err(redb::Error::from)
    };
    state().map_err(broken)
}

pub(super) fn meta_state(
    meta: &impl ReadableTable<&'static str, u64>,
) -> Result<State, redb::StorageError> {
    let get = |name| -> Result<u64, redb::StorageError> {
        Ok(meta.get(name)?.map_or(0, |value| value.value()))
    };
    Ok(State {
        newest: get("newest")?,
        evicted: get("evicted")?,
    })
}

/// Reads `cursor` (exclusive) to `newest` (inclusive). Whether the cursor is still kept is asked of the same snapshot:
/// the writer may have moved on since the caller looked.
pub(super) fn read(db: &Database, cursor: u64, newest: u64, most: usize) -> io::Result<Read> {
    let read = || -> Result<Read, redb::Error> {
        let txn = db.begin_read()?;
        if cursor < meta_state(&txn.open_table(META)?)?.evicted {
            return Ok(Read::Evicted);
        }
        if cursor >= newest {
            return Ok(Read::Events(Vec::new()));
        }
        let events = txn.open_table(EVENTS)?;
        let range = events.range(cursor + 1..=newest)?.take(most);
        range
            .map(|row| {
                let (id, data) = row?;
                Ok(Event::new(id.value(), data.value()))
            })
            .collect::<Result<_, redb::Error>>()
            .map(Read::Events)
    };
    read().map_err(broken)
}

pub(super) fn broken(e: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(e)
}
