//! The history's form on disk: written as the run goes, read back whole or up to where it was cut, merged from shards.
//!
//! ```text
//! "herd-history/2\n"  then records: length (u32 LE) | CRC-32 (u32 LE) | LZ4 block of a postcard value
//! ```
//!
//! The first record is the [`Header`], every other a [`Chunk`]. A chunk is in the file whole or not at all, and holds
//! everything that its receipts refer to, so a herd that was killed leaves a history that is true up to its last chunk.
//! The format's number rises with every change that an older reader would misread; a reader refuses numbers above its
//! own. This file knows bytes and refuses to know what they mean.

mod align;

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Client, ClientId, Elapsed, Event, EventIx, Header, History, Mark, Publication, record::Growth,
};

const MAGIC: &[u8] = b"herd-history/1\n";
const MAGIC_STEM: &[u8] = b"herd-history/";

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
        .take(MAGIC.len() as u64)
        .read_to_end(&mut magic)
        .map_err(io)?;
    if magic != MAGIC {
        return Err(damaged(if magic.starts_with(MAGIC_STEM) {
            "a history of another format version; judge it with the herd that wrote it"
        } else {
            "not a herd history; give the history.herd of a run's directory"
        }));
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

/// What no run can have been asked, and no reader could judge.
fn impossible(header: &Header) -> Option<&'static str> {
    let (shard, terms) = (header.shard, &header.terms);
    let share = |share: f64| (0.0..=1.0).contains(&share);
    if shard.of == 0 || shard.index == 0 || shard.index > shard.of {
        Some("the header names a shard that can't be; nothing can be judged")
    } else if header.clients > MAX_CLIENTS || terms.outages > MAX_OUTAGES {
        Some("the header names more clients or outages than a run can have; nothing can be judged")
    } else if terms.peak_window.is_zero() || !share(terms.max_peak) || !share(terms.share) {
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

/// Reads several histories and merges them as shards of one run.
///
/// # Errors
/// One can't be read (see [`read`]) or they don't belong together (see [`merge`]).
pub fn read_all(paths: &[PathBuf]) -> Result<History, FileError> {
    let histories: Result<Vec<_>, _> = paths.iter().map(|path| read(path)).collect();
    merge(histories?)
}

/// Merges shards of one run into one history, in whatever order they are given, and checks each one's inner references.
///
/// # Errors
/// None was given, they are of different runs, or a shard is there twice.
pub fn merge(mut parts: Vec<History>) -> Result<History, FileError> {
    parts.sort_by_key(|part| part.header.shard.index);
    align::clocks(&mut parts)?;
    let common = align::Common::of(&parts);
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else {
        return Err(FileError::Mismatch(
            "no history was given; name at least one file".into(),
        ));
    };
    check_references(&whole)?;
    for part in parts {
        check_references(&part)?;
        join(&mut whole, part)?;
    }
    add_silent(&mut whole);
    whole.clients.sort_by_key(|client| client.id);
    whole.marks.sort_by_key(|(at, _)| *at);
    common.impose(&mut whole);
    Ok(whole)
}

/// A client that did nothing before the end has no record in the file, and is a client all the same.
fn add_silent(whole: &mut History) {
    let recorded: std::collections::HashSet<ClientId> =
        whole.clients.iter().map(|c| c.id).collect();
    let shards = whole.shards.clone();
    let ours = (1..=whole.header.clients)
        .map(ClientId)
        .filter(|id| shards.iter().any(|s| s.holds(*id)));
    whole
        .clients
        .extend(ours.filter(|id| !recorded.contains(id)).map(Client::new));
}

fn join(whole: &mut History, part: History) -> Result<(), FileError> {
    if part.header.run != whole.header.run
        || part.header.clients != whole.header.clients
        || part.header.shard.of != whole.header.shard.of
        || part.header.terms != whole.header.terms
    {
        return Err(FileError::Mismatch(
            "the files are of different runs; give the shards of one run (same scenario, same seed)".into(),
        ));
    }
    if let Some(twice) = part
        .shards
        .iter()
        .find(|shard| whole.shards.contains(shard))
    {
        return Err(FileError::Mismatch(format!(
            "shard {}/{} is there twice; give each shard once",
            twice.index, twice.of
        )));
    }
    let index: std::collections::HashMap<Event, EventIx> = whole
        .events
        .iter()
        .enumerate()
        .map(|(i, e)| (e.clone(), EventIx(i as u32)))
        .collect();
    let map = part
        .events
        .into_iter()
        .map(|event| match index.get(&event) {
            Some(ix) => *ix,
            None => {
                whole.events.push(event);
                EventIx(whole.events.len() as u32 - 1)
            }
        });
    let map: Vec<EventIx> = map.collect();
    let number = whole.maps.len();
    for mut client in part.clients {
        let sent = client.attempts.iter_mut().map(|a| &mut a.resumed_from);
        for cursor in sent
            .chain(client.sessions.iter_mut().map(|s| &mut s.resumed_from))
            .flatten()
        {
            *cursor = map[cursor.0 as usize];
        }
        client.map = number;
        whole.clients.push(client);
    }
    whole.maps.push(map);
    whole.shards.extend(part.shards);
    whole.publications.extend(part.publications);
    whole.marks.extend(part.marks);
    whole.horizon = whole.horizon.min(part.horizon);
    Ok(())
}

/// Every event number that a client refers to must stand in the table: a file can be whole and still lie.
fn check_references(history: &History) -> Result<(), FileError> {
    let known = |ix: EventIx| (ix.0 as usize) < history.events.len();
    let lies = |client: &Client| {
        let mut entries = client.entries(history);
        let entries_known = entries.by_ref().all(|entry| match entry {
            super::Entry::Session { session, .. } => session < client.sessions.len(),
            super::Entry::Receipt(receipt) => {
                receipt.session < client.sessions.len() && known(receipt.event)
            }
            super::Entry::Reset { session, event, .. } => {
                session < client.sessions.len() && known(event)
            }
        });
        !entries_known
            || !entries.is_exhausted()
            || !client
                .attempts
                .iter()
                .filter_map(|a| a.resumed_from)
                .all(known)
    };
    match history.clients.iter().find(|client| lies(client)) {
        Some(client) => Err(FileError::Mismatch(format!(
            "the record of client {} refers to what the file doesn't hold; the history is damaged",
            client.id.0
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::build::header;
    use crate::history::record::Recorder;
    use crate::history::{Attempt, AttemptOutcome, Cause, End, Entry, Seq, Shard};
    use proptest::prelude::*;

    fn opened(at: u64, resumed_from: Option<EventIx>) -> Attempt {
        Attempt {
            attempt: 0,
            due: Elapsed(at),
            dialled: Elapsed(at),
            connected: Some(Elapsed(at)),
            ended: Elapsed(at),
            outcome: AttemptOutcome::Opened,
            resumed_from,
        }
    }

    fn event(n: u32) -> Event {
        Event {
            id: Some(n.to_string().into()),
            seq: Some(Seq(u64::from(n))),
            digest: 1,
            ..Event::default()
        }
    }

    /// Chunks of a run in which each client of the shard opens, receives the given events and is cut.
    fn chunks(shard: Shard, events: &[u32]) -> Vec<Chunk> {
        let mut table: Vec<u32> = Vec::new();
        let mut recorders: Vec<(ClientId, Recorder)> = (1..=4)
            .map(ClientId)
            .filter(|id| shard.holds(*id))
            .map(|id| (id, Recorder::default()))
            .collect();
        let mut chunks = Vec::new();
        for (step, n) in events.iter().enumerate() {
            let at = step as u64 * 10;
            let known = table.len();
            if !table.contains(n) {
                table.push(*n);
            }
            let ix = EventIx(table.iter().position(|t| t == n).unwrap() as u32);
            for (id, recorder) in &mut recorders {
                recorder.attempt(opened(at, (step > 0).then_some(ix)));
                recorder.receipt(Elapsed(at + u64::from(id.0)), ix);
                recorder.closed(Elapsed(at + 9), Cause::Eof);
            }
            chunks.push(Chunk {
                at: Elapsed(at + 9),
                events: table[known..].iter().map(|n| event(*n)).collect(),
                clients: recorders
                    .iter_mut()
                    .map(|(id, r)| (*id, r.take()))
                    .collect(),
                ..Chunk::default()
            });
        }
        chunks
    }

    fn write(path: &Path, shard: Shard, chunks: &[Chunk]) {
        let mut header = header(4);
        header.shard = shard;
        let mut writer = Writer::create(path, &header).unwrap();
        chunks
            .iter()
            .for_each(|chunk| writer.append(chunk).unwrap());
    }

    /// What each client received, as ids: comparable however the table is numbered.
    fn receipts(history: &History) -> Vec<(u32, Vec<(u64, String)>)> {
        let told = |client: &Client| {
            let entries = client.entries(history);
            let receipts = entries.filter_map(|entry| match entry {
                Entry::Receipt(r) => Some((
                    r.at.0,
                    history.event(r.event).id.as_deref().unwrap().to_owned(),
                )),
                _ => None,
            });
            receipts.collect()
        };
        history
            .clients
            .iter()
            .map(|client| (client.id.0, told(client)))
            .collect()
    }

    #[test]
    fn a_file_cut_anywhere_is_true_up_to_its_last_whole_chunk() {
        let dir = tempfile::tempdir().unwrap();
        let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
        let all = chunks(Shard::WHOLE, &[1, 2, 3, 2]);
        write(&whole, Shard::WHOLE, &all);
        let bytes = std::fs::read(&whole).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for length in 0..=bytes.len() {
            std::fs::write(&cut, &bytes[..length]).unwrap();
            if let Ok(history) = read_all(std::slice::from_ref(&cut)) {
                let sessions = history.clients[0].sessions.len();
                assert!(history.truncated());
                assert_eq!(history.events.len(), sessions.min(3));
                assert_eq!(receipts(&history)[0].1.len(), sessions);
                seen.insert(sessions);
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn damage_ends_what_is_known_and_a_wrong_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h");
        write(&path, Shard::WHOLE, &chunks(Shard::WHOLE, &[1, 2, 3]));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap().clients[0].sessions.len(), 2);
        bytes[MAGIC.len() - 2] = b'1';
        std::fs::write(&path, &bytes).unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("another format version")
        );
        std::fs::write(&path, "a,b,c\n").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("not a herd history")
        );
        assert!(
            read(&dir.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("can't read")
        );
        assert!(
            Writer::create(&path, &header(1)).is_err(),
            "a file that exists is never overwritten"
        );
    }

    #[test]
    fn a_header_that_claims_what_no_run_can_have_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str, change: fn(&mut Header)| {
            let path = dir.path().join(name);
            let mut header = header(1);
            change(&mut header);
            Writer::create(&path, &header).unwrap();
            read(&path).is_err()
        };
        assert!(!refused("whole", |_| ()));
        assert!(refused("clients", |h| h.clients = u32::MAX));
        assert!(refused("outages", |h| h.terms.outages = u32::MAX));
        assert!(refused("window", |h| h.terms.peak_window =
            std::time::Duration::ZERO));
        assert!(refused("peak", |h| h.terms.max_peak = f64::NAN));
        assert!(refused("share", |h| h.terms.share = -1.0));
    }

    #[test]
    fn a_record_that_claims_to_unpack_to_more_than_a_record_may_hold_is_damage() {
        let packed = [u32::MAX.to_le_bytes(), [0; 4]].concat();
        let record_of = |packed: &[u8]| {
            let (length, crc) = (packed.len() as u32, crc32fast::hash(packed));
            [&length.to_le_bytes(), &crc.to_le_bytes(), packed].concat()
        };
        let read: Option<Chunk> = record(&mut &record_of(&packed)[..]).unwrap();
        assert!(read.is_none());
    }

    #[test]
    fn what_follows_after_the_end_is_refused_and_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h");
        let end = Chunk {
            at: Elapsed(9),
            marks: vec![(Elapsed(9), Mark::End(End::Complete))],
            ..Chunk::default()
        };
        write(&path, Shard::WHOLE, &[end]);
        let whole = std::fs::read(&path).unwrap();
        assert!(!read(&path).unwrap().truncated());
        for more in [&whole[..], &b"\n"[..]] {
            std::fs::write(&path, [&whole[..], more].concat()).unwrap();
            let refused = read(&path).err().map(|e| e.to_string());
            assert!(refused.is_some_and(|e| e.contains("more follows")));
        }
    }

    #[test]
    fn a_receipt_of_an_event_that_is_not_in_the_file_is_refused() {
        let mut history = History::new(header(1));
        let mut client = Client::new(ClientId(1));
        let mut recorder = Recorder::default();
        recorder.attempt(opened(0, None));
        recorder.receipt(Elapsed(1), EventIx(5));
        let growth = recorder.take();
        growth
            .events
            .into_iter()
            .for_each(|event| client.push(event));
        client.stream.extend(&growth.stream);
        history.clients.push(client);
        assert!(merge(vec![history]).is_err());
    }

    #[test]
    fn shards_of_different_runs_or_the_same_shard_twice_are_refused() {
        let part = |index, seed| {
            let mut header = header(4);
            header.shard = Shard { index, of: 2 };
            header.run = format!("run {seed}");
            History::new(header)
        };
        assert!(merge(vec![part(1, 1), part(2, 2)]).is_err());
        assert!(merge(vec![part(1, 1), part(1, 1)]).is_err());
        assert!(merge(vec![]).is_err());
        let half = merge(vec![part(2, 1)]).unwrap();
        assert!(half.truncated(), "a shard is missing");
        assert_eq!(
            merge(vec![part(2, 1), part(1, 1)]).unwrap().clients.len(),
            4
        );
    }

    #[test]
    fn a_client_that_did_nothing_is_a_client() {
        let history = merge(vec![History::new(header(3))]).unwrap();
        assert_eq!(
            history.clients.iter().map(|c| c.id.0).collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn shards_merge_in_any_order_to_the_same_receipts(
            first in proptest::collection::vec(0u32..6, 1..8),
            second in proptest::collection::vec(0u32..6, 1..8),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (a, b) = (Shard { index: 1, of: 2 }, Shard { index: 2, of: 2 });
            let paths = [dir.path().join("a"), dir.path().join("b")];
            write(&paths[0], a, &chunks(a, &first));
            write(&paths[1], b, &chunks(b, &second));
            let there = read_all(&paths).unwrap();
            let back = read_all(&[paths[1].clone(), paths[0].clone()]).unwrap();
            prop_assert_eq!(receipts(&there), receipts(&back));
            for (client, told) in receipts(&there) {
                let sent = if a.holds(ClientId(client)) { &first } else { &second };
                let ids: Vec<u32> = told.iter().map(|(_, id)| id.parse().unwrap()).collect();
                prop_assert_eq!(&ids, sent);
            }
        }

        #[test]
        fn a_mark_and_a_publication_come_back_as_they_were(at in 0u64..1 << 40, tries in 1u32..9) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("h");
            let built = crate::history::build::Builder::new(1).publication(1, 5, |p| p.tries = tries).end(9);
            let chunk = Chunk {
                at: Elapsed(at),
                publications: built.publications.values().cloned().collect(),
                marks: vec![(Elapsed(at), Mark::End(End::Complete))],
                ..Chunk::default()
            };
            Writer::create(&path, &header(1)).unwrap().append(&chunk).unwrap();
            let history = read(&path).unwrap();
            prop_assert_eq!(history.publications, built.publications);
            prop_assert_eq!(history.marks, chunk.marks);
            prop_assert!(history.header == header(1) && history.horizon == Elapsed(at));
        }
    }
}
