//! The table against what the profile alone makes of the same frames.

use proptest::prelude::*;

use super::*;
use crate::profile::{Pointers, ProfileName, Spec};
use crate::transport::Kind;

fn table(ids: IdKind) -> EventTable {
    let spec = Spec::builtin(ProfileName::After);
    let profile = Profile::compile(&spec, &Pointers::default()).unwrap();
    EventTable::new(Arc::new(profile), ids, None)
}

fn read(table: &EventTable, frame: &str, guess: &mut Guess) -> Vec<Part> {
    let frame = Frame {
        bytes: frame.as_bytes(),
        kind: Kind::Text,
    };
    table
        .read(frame, Carried::Nothing, guess)
        .as_slice()
        .to_vec()
}

fn known(table: &EventTable, frame: &str) -> Known {
    match read(table, frame, &mut Guess::default())[..] {
        [Part::Event(known, _) | Part::Reset(known)] => known,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_means_the_same_however_often_it_is_read() {
    let table = table(IdKind::Opaque);
    let frames = [
        r#"{"id":"1","data":{"seq":5}}"#,
        r#"{"id":"2"}"#,
        r#"[{"id":"3"},{"type":"caught-up"},{"id":"1","data":{"seq":5}}]"#,
        r#"{"type":"reset","id":"9"}"#,
        "[]",
        "rubbish",
    ];
    let (mut first, mut second) = (Guess::default(), Guess::default());
    let once: Vec<_> = frames.map(|f| read(&table, f, &mut first)).into();
    let again: Vec<_> = frames.map(|f| read(&table, f, &mut second)).into();
    assert_eq!(once, again);
    assert_eq!(once[2].len(), 3);
    assert_eq!(once[2][2], once[0][0], "the same event in another frame");
    assert_eq!(once[5], [Part::Unread]);
    let events = table.take_new();
    let ids: Vec<_> = events.iter().map(|e| e.id.as_deref()).collect();
    assert_eq!(ids, [Some("1"), Some("2"), Some("3"), Some("9")]);
    assert_eq!(events[0].seq, Some(Seq(5)));
    assert!(table.take_new().is_empty());
    assert_eq!(*table.get(EventIx(1)), events[1]);
}

#[test]
fn the_same_id_with_other_content_is_another_event() {
    let table = table(IdKind::Opaque);
    let a = known(&table, r#"{"id":"1","data":{"seq":5,"x":1}}"#);
    let b = known(&table, r#"{"id":"1","data":{"seq":5,"x":2}}"#);
    let c = known(&table, r#"{ "id": "1", "data": {"x": 1, "seq": 5} }"#);
    assert_ne!(a.event, b.event);
    assert_eq!(a.event, c.event, "white space makes no other event");
}

#[test]
fn the_cursor_is_the_last_one_or_the_greatest_where_ids_are_ordered() {
    // Each row: the kind, the cursor, the newcomer, whether it supersedes.
    for (ids, old, new, expected) in [
        (IdKind::Opaque, "9", "1", true),
        (IdKind::Integer, "9", "10", true),
        (IdKind::Integer, "10", "9", false),
        (IdKind::Integer, "9", "9", false),
        (IdKind::Integer, "9", "123456789012345678901234567890", true),
        (
            IdKind::Integer,
            "123456789012345678901234567890",
            "9",
            false,
        ),
        (IdKind::Integer, "9", "x", true),
        (IdKind::Lexicographic, "9", "10", false),
        (IdKind::Lexicographic, "a", "b", true),
    ] {
        let table = table(ids);
        let old = known(&table, &format!(r#"{{"id":"{old}"}}"#));
        let new = known(&table, &format!(r#"{{"id":"{new}"}}"#));
        assert_eq!(
            table.supersedes(&Cursor::Id(new), &Cursor::Id(old)),
            expected,
            "{ids:?}"
        );
        assert!(table.supersedes(&Cursor::Id(new), &Cursor::None));
    }
    let table = table(IdKind::Integer);
    let nameless = known(&table, r#"{"seq":3}"#);
    let named = known(&table, r#"{"id":3}"#);
    let (nameless, named) = (Cursor::Id(nameless), Cursor::Id(named));
    assert!(!table.supersedes(&nameless, &Cursor::None));
    assert!(!table.supersedes(&nameless, &named));
    assert!(table.supersedes(&named, &nameless));
    assert_eq!(table.place(&nameless), None, "nothing to resume from");
}

/// A table whose profile isn't asked: the test says what was decoded.
fn parts(table: &EventTable, decoded: Vec<Decoded>) -> Vec<Part> {
    let mut events = table.lock();
    let parts = decoded.into_iter();
    parts.filter_map(|p| table.part(&mut events, p)).collect()
}

fn event(id: &str, cursor: Moves, epoch: Option<&str>) -> Decoded {
    Decoded::Event(Reading {
        id: Some(id.into()),
        cursor,
        epoch: epoch.map(Box::from),
        ..Reading::default()
    })
}

fn cursor(part: &Part) -> Cursor {
    match part {
        Part::Event(_, Some(token)) | Part::Cursor(Some(token)) => Cursor::Token(token.clone()),
        Part::Event(known, None) => Cursor::Id(*known),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cursor_that_is_no_id_gets_a_place_only_when_it_is_carried() {
    let table = table(IdKind::Opaque);
    let decoded = vec![
        event("1", Moves::To("Q8hz".into()), None),
        event("2", Moves::Nowhere, None),
        Decoded::Cursor(Some("Q9".into())),
    ];
    let parts = parts(&table, decoded);
    assert_eq!(table.take_new().len(), 2);
    let first = cursor(&parts[0]);
    assert!(table.supersedes(&first, &Cursor::None));
    assert!(!table.supersedes(&cursor(&parts[1]), &first));
    assert!(table.supersedes(&cursor(&parts[2]), &first));
    let place = table.place(&cursor(&parts[2]));
    assert_eq!(place, Some(EventIx(2)));
    assert_eq!(table.place(&cursor(&parts[2])), place);
    let carried = table.take_new();
    assert_eq!((carried.len(), carried[0].id.as_deref()), (1, Some("Q9")));
}

#[test]
fn ordered_cursors_compare_within_one_epoch_only() {
    let table = table(IdKind::Integer);
    let at = |cursor: &str, epoch| {
        let moves = Moves::To(cursor.into());
        parts(&table, vec![event("x", moves, epoch)]).remove(0)
    };
    for (old, new, expected) in [
        (at("9", Some("a")), at("10", Some("a")), true),
        (at("10", Some("a")), at("9", Some("a")), false),
        (at("10", Some("a")), at("1", Some("b")), true),
        (at("10", None), at("9", None), false),
    ] {
        assert_eq!(table.supersedes(&cursor(&new), &cursor(&old)), expected);
    }
    let by_id = |id, epoch| parts(&table, vec![event(id, Moves::ToId, epoch)]).remove(0);
    let (old, new) = (by_id("10", Some("a")), by_id("1", Some("b")));
    assert!(table.supersedes(&cursor(&new), &cursor(&old)));
}

#[test]
fn equal_bytes_of_another_kind_are_another_frame() {
    let kinds = [
        Kind::Text,
        Kind::Binary,
        block("message", None, true),
        block("message", Some(""), true),
        block("message", Some("1"), true),
        block("1", None, true),
        block("message", None, false),
    ];
    let frames = kinds.iter().flat_map(|kind| {
        let frame = Frame {
            bytes: b"{}",
            kind: *kind,
        };
        [Carried::Nothing, Carried::Cursor].map(|carried| key(frame, carried))
    });
    let keys: std::collections::HashSet<_> = frames.collect();
    assert_eq!(keys.len(), 2 * kinds.len());
}

fn block<'a>(name: &'a str, id: Option<&'a str>, has_data: bool) -> Kind<'a> {
    Kind::Event { name, id, has_data }
}

#[test]
fn what_is_remembered_is_bounded_and_forgetting_changes_nothing() {
    let mut small = table(IdKind::Opaque);
    small.remembered = 4;
    let frame = |n: u32| format!(r#"{{"id":"{n}"}}"#);
    let mut guess = Guess::default();
    for n in (0..20).chain(0..20) {
        let parts = read(&small, &frame(n), &mut guess);
        assert!(matches!(parts[..], [Part::Event(k, _)] if k.event == EventIx(n)));
        let frames = small.frames.read().unwrap();
        assert!(frames.ring.len() <= 4 && frames.index.len() <= 4);
    }
}

proptest! {
    #[test]
    fn many_clients_with_small_memory_read_as_one_with_none(
        order in proptest::collection::vec((0usize..3, 0u32..12), 0..80),
        remembered in 1usize..6,
    ) {
        let mut small = table(IdKind::Opaque);
        small.remembered = remembered;
        let mut guesses = [Guess::default(); 3];
        for (client, n) in order {
            let text = format!(r#"{{"id":"{n}"}}"#);
            let parts = read(&small, &text, &mut guesses[client]);
            let [Part::Event(known, _)] = parts[..] else { panic!("{parts:?}") };
            let id = small.get(known.event).id.clone();
            prop_assert_eq!(id, Some(n.to_string().into()));
        }
    }

    #[test]
    fn threads_agree_on_places(numbers in proptest::collection::vec(0u32..30, 1..60)) {
        let table = table(IdKind::Opaque);
        let walk = || {
            let mut guess = Guess::default();
            numbers.iter().map(|n| read(&table, &format!(r#"{{"id":"{n}"}}"#), &mut guess)).collect::<Vec<_>>()
        };
        let (a, b) = std::thread::scope(|s| {
            let other = s.spawn(walk);
            (walk(), other.join().unwrap())
        });
        prop_assert_eq!(a, b);
    }
}
