//! Files that are whole, cut, damaged, of another version, or that lie; and shards that belong together or don't.

use super::*;
use crate::history::build::header;
use crate::history::record::Recorder;
use crate::history::{Attempt, AttemptOutcome, Cause, End, Entry, EventIx, Seq, Shard};
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
        target: 0,
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
            .contains("a history of format 1, and this herd reads format 4")
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
    assert!(refused("outages", |h| h.terms.outages =
        vec![h.terms.outage(1); MAX_OUTAGES as usize + 1]));
    assert!(refused("window", |h| h.terms.peak_window =
        std::time::Duration::ZERO));
    assert!(refused("peak", |h| h.terms.max_peak = f64::NAN));
    assert!(refused("share", |h| h.terms.outages[0].share = -1.0));
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
