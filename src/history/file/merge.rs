//! Several histories as one: shards of a run are put together, and each one's inner references are checked.
//!
//! `file/align.rs` brings their clocks, their priming and their ends together. This file knows nothing of bytes.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::{FileError, align, read};
use crate::history::{Client, ClientId, Entry, Event, EventIx, History};

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
    let recorded: HashSet<ClientId> = whole.clients.iter().map(|c| c.id).collect();
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
    let index: HashMap<Event, EventIx> = whole
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
            Entry::Session { session, .. } => session < client.sessions.len(),
            Entry::Receipt(receipt) => {
                receipt.session < client.sessions.len() && known(receipt.event)
            }
            Entry::Reset { session, event, .. } => session < client.sessions.len() && known(event),
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
