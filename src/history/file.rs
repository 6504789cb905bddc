//! The history's form on disk: written as the run goes, read back whole or up to where it was cut, merged from shards.
//!
//! ```text
//! "herd-history/4\n"  then records: length (u32 LE) | CRC-32 (u32 LE) | LZ4 block of a postcard value
//! ```
//!
//! The first record is the [`Header`], every other a [`Chunk`]. A chunk is in the file whole or not at all, and holds
//! everything that its receipts refer to, so a herd that was killed leaves a history that is true up to its last chunk.
//! The format's number rises with every change that an older reader would misread; a reader refuses numbers above its
//! own. This file knows bytes and refuses to know what they mean.

mod align;
mod merge;

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Client, ClientId, Elapsed, Event, Header, History, Mark, Publication, record::Growth};

pub use merge::{merge, read_all};

const MAGIC: &[u8] = b"herd-history/4\n";
const MAGIC_STEM: &str = "herd-history/";

/// The longest first line that a history of any format could have.
const MAGIC_MOST: u64 = 24;

/// The largest record that a reader accepts, bytes: a length beyond it is damage, not data.
const MAX_RECORD: u32 = 1 << 30;

/// The most clients that a history may claim: each takes memory before it has done anything.
pub const MAX_CLIENTS: u32 = 10_000_000;

/// The most outages that a history may claim: each has findings of its own, even one that never came.
pub const MAX_OUTAGES: u32 = 10_000;

/// Everything that happened since the chunk before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// Up to when the record is whole.
    pub at: Elapsed,
    /// New entries of the event table, in its order.
    pub events: Vec<Event>,
    /// Publications that are new or have changed.
    pub publications: Vec<Publication>,
    /// New marks.
    pub marks: Vec<(Elapsed, Mark)>,
    /// What clients' records grew by.
    pub clients: Vec<(ClientId, Growth)>,
}

/// Why a history can't be read or merged.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It isn't a history, or a damaged one.
    #[error("{}: {what}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// The files don't belong together.
    #[error("{0}")]
    Mismatch(String),
}

/// Appends to a history.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Writer {
    /// Creates the file and writes the header. It must not exist yet.
    ///
    /// # Errors
    /// What the system said.
    pub fn create(path: &Path, header: &Header) -> Result<Self, FileError> {
        let io = |source| FileError::Io {
            action: "create",
            path: path.into(),
            source,
        };
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(io)?;
        let mut writer = Self {
            path: path.into(),
            out: BufWriter::new(file),
        };
        writer.out.write_all(MAGIC).map_err(io)?;
        writer.record(header)?;
        Ok(writer)
    }

    /// Appends a chunk and hands it to the system, so that herd's own death loses nothing of it.
    ///
    /// # Errors
    /// What the system said, for instance that the disk is full.
    pub fn append(&mut self, chunk: &Chunk) -> Result<(), FileError> {
        self.record(chunk)
    }

    fn record<T: Serialize>(&mut self, value: &T) -> Result<(), FileError> {
        let write = |source| FileError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        };
        let plain = postcard::to_stdvec(value).map_err(|e| write(io::Error::other(e)))?;
        if plain.len() > MAX_RECORD as usize {
            return Err(write(io::Error::other("a chunk of over 1 GiB")));
        }
        let packed = lz4_flex::block::compress_prepend_size(&plain);
        let length = u32::try_from(packed.len())
            .ok()
            .filter(|len| *len <= MAX_RECORD);
        let length = length.ok_or_else(|| write(io::Error::other("a chunk of over 1 GiB")))?;
        self.out
            .write_all(&length.to_le_bytes())
            .and_then(|()| self.out.write_all(&crc32fast::hash(&packed).to_le_bytes()))
            .and_then(|()| self.out.write_all(&packed))
            .and_then(|()| self.out.flush())
            .map_err(write)
    }
}

/// Reads one history. One that was cut (herd was killed, the disk was full) is read up to its last whole chunk.
///
/// # Errors
/// The file can't be read, isn't a history of a known version, its header is damaged, or more follows after the run's end
/// (two histories in one file, of which the second would not be judged). Other damage after the header is no error but
/// the end of what is known: the history is then truncated.
pub fn read(path: &Path) -> Result<History, FileError> {
    let io = |source| FileError::Io {
        action: "read",
        path: path.into(),
        source,
    };
    let damaged = |what: &str| FileError::Format {
        path: path.into(),
        what: what.into(),
    };
    let mut input = io::BufReader::new(File::open(path).map_err(io)?);
    let mut magic = Vec::new();
    input
        .by_ref()
        .take(MAGIC_MOST)
        .read_until(b'\n', &mut magic)
        .map_err(io)?;
    match (format_of(&magic), format_of(MAGIC)) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            return Err(damaged(&format!(
                "a history of format {theirs}, and this herd reads format {ours}; judge it with the herd that wrote it"
            )));
        }
        (Some(_), _) => {}
        (None, _) => {
            return Err(damaged(
                "not a herd history; give the history.herd of a run's directory",
            ));
        }
    }
    let header: Option<Header> = record(&mut input).map_err(io)?;
    let header = header.ok_or_else(|| damaged("the header is damaged; nothing can be judged"))?;
    if let Some(what) = impossible(&header) {
        return Err(damaged(what));
    }
    let mut reading = Reading::new(History::new(header));
    while let Some(chunk) = record::<Chunk>(&mut input).map_err(io)? {
        if !reading.add(chunk) {
            break;
        }
        let over = reading.history.end().is_some();
        if over && !input.fill_buf().map_err(io)?.is_empty() {
            return Err(damaged(
                "more follows after the end of the run; give each history as a file of its own",
            ));
        }
    }
    Ok(reading.history)
}

/// The number of the format that a first line names.
fn format_of(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let number = line.strip_prefix(MAGIC_STEM)?;
    // "+4" and "04" are numbers too, and nobody wrote them.
    number
        .parse()
        .ok()
        .filter(|n: &u16| n.to_string() == number)
}

/// What no run can have been asked, and no reader could judge.
fn impossible(header: &Header) -> Option<&'static str> {
    let (shard, terms) = (header.shard, &header.terms);
    let share = |share: f64| (0.0..=1.0).contains(&share);
    if shard.of == 0 || shard.index == 0 || shard.index > shard.of {
        Some("the header names a shard that can't be; nothing can be judged")
    } else if header.clients > MAX_CLIENTS || terms.outages.len() > MAX_OUTAGES as usize {
        Some("the header names more clients or outages than a run can have; nothing can be judged")
    } else if terms.peak_window.is_zero()
        || !share(terms.max_peak)
        || !terms.outages.iter().all(|o| share(o.share) && o.falls > 0)
    {
        Some("the header names limits that can't be; nothing can be judged")
    } else {
        None
    }
}

/// The next record; none at the end of the file or of what is whole in it.
fn record<T: for<'a> Deserialize<'a>>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
    let (length, crc) = (
        u32::from_le_bytes([l0, l1, l2, l3]),
        u32::from_le_bytes([c0, c1, c2, c3]),
    );
    if length > MAX_RECORD {
        return Ok(None);
    }
    let mut packed = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut packed)?;
    if packed.len() as u64 != u64::from(length) || crc32fast::hash(&packed) != crc {
        return Ok(None);
    }
    // The size that it claims is allocated before the first byte is unpacked.
    let claimed = packed
        .first_chunk()
        .map_or(u32::MAX, |size| u32::from_le_bytes(*size));
    if claimed > MAX_RECORD {
        return Ok(None);
    }
    let plain = lz4_flex::block::decompress_size_prepended(&packed).ok();
    Ok(plain.and_then(|plain| postcard::from_bytes(&plain).ok()))
}

/// A history being put together from chunks.
struct Reading {
    history: History,
    /// Where each client of the shard stands in the history's list, by (client - 1) / shards.
    places: Vec<Option<usize>>,
}

impl Reading {
    fn new(history: History) -> Self {
        Self {
            history,
            places: Vec::new(),
        }
    }

    /// Adds a chunk; false where it contradicts the ones before (then nothing of it is added).
    fn add(&mut self, chunk: Chunk) -> bool {
        let (clients, shard) = (self.history.header.clients, self.history.header.shard);
        let ours = |id: ClientId| (1..=clients).contains(&id.0) && shard.holds(id);
        if chunk.at < self.history.horizon || !chunk.clients.iter().all(|(id, _)| ours(*id)) {
            return false;
        }
        let history = &mut self.history;
        history.horizon = chunk.at;
        history.events.extend(chunk.events);
        history
            .publications
            .extend(chunk.publications.into_iter().map(|p| (p.seq, p)));
        history.marks.extend(chunk.marks);
        for (id, growth) in chunk.clients {
            let slot = ((id.0 - 1) / shard.of) as usize;
            if self.places.len() <= slot {
                self.places.resize(slot + 1, None);
            }
            let place = *self.places[slot].get_or_insert_with(|| {
                history.clients.push(Client::new(id));
                history.clients.len() - 1
            });
            let client = &mut history.clients[place];
            growth
                .events
                .into_iter()
                .for_each(|event| client.push(event));
            client.stream.extend(&growth.stream);
        }
        true
    }
}

#[cfg(test)]
mod tests;
