//! The profile `after`: JSON events with an id.

use super::*;

fn read(frame: &str) -> Vec<Decoded> {
    first(&builtin(ProfileName::After), frame)
}

fn one(frame: &str) -> Decoded {
    read(frame).remove(0)
}

fn event(frame: &str) -> (Option<Box<str>>, Option<u64>, u64) {
    match one(frame) {
        Decoded::Event(read) => (read.id, read.seq, read.digest),
        other => panic!("{other:?} is no event"),
    }
}

#[test]
fn ids_are_kept_digit_for_digit() {
    for id in [
        "9007199254740993",
        "1796033310164893697",
        "123456789012345678901234567890",
        "0.10",
        "1e2",
    ] {
        assert_eq!(event(&format!(r#"{{"id":{id}}}"#)).0.as_deref(), Some(id));
        assert_eq!(event(&format!(r#"{{"id":"{id}"}}"#)).0.as_deref(), Some(id));
    }
    assert_eq!(event(r#"{"id":"a\u002fb é"}"#).0.as_deref(), Some("a/b é"));
}

#[test]
fn herds_number_is_found_under_data_or_beside_the_id() {
    assert_eq!(event(r#"{"id":"1","data":{"seq":5}}"#).1, Some(5));
    assert_eq!(event(r#"{"id":"1","data":{"seq":"5"}}"#).1, Some(5));
    assert_eq!(event(r#"{"id":"1","seq":5}"#).1, Some(5));
    assert_eq!(event(r#"{"id":"1","data":"x"}"#).1, None);
    let pointers = Pointers {
        seq: Some("/data/body/n".into()),
        ..Pointers::default()
    };
    let elsewhere = Profile::compile(&Spec::builtin(ProfileName::After), &pointers).unwrap();
    let frame = Frame {
        bytes: br#"{"id":"1","seq":9,"data":{"body":{"n":7}}}"#,
        kind: Kind::Text,
    };
    assert!(matches!(
        elsewhere.decode(frame, Carried::Nothing)[0],
        Decoded::Event(Reading { seq: Some(7), .. })
    ));
}

#[test]
fn the_same_content_has_the_same_digest_however_it_is_written() {
    let a = event(r#"{"id":"1","data":{"seq":5,"payload":["x",1]}}"#).2;
    let b = event(r#"{ "data": {"payload": ["x", 1], "seq": 5}, "id": 1, "replayed": true }"#).2;
    let c = event(r#"{"id":"1","data":{"seq":5,"payload":["x",2]}}"#).2;
    assert_eq!(a, b);
    assert_ne!(a, c);
    assert_eq!(event(r#"{"id":"1","text":"x"}"#).2, 0);
}

#[test]
fn what_a_server_adds_to_herds_object_is_no_other_content() {
    let sent = event(r#"{"id":"1","data":{"seq":5,"payload":"x"}}"#).2;
    let stamped = event(r#"{"id":"1","data":{"seq":5,"payload":"x","deliveredAt":17.5}}"#).2;
    let merged = event(r#"{"id":"1","seq":5,"payload":"x","replayed":true}"#).2;
    assert_eq!((stamped, merged), (sent, sent));
    for other in [
        r#"{"id":"1","data":{"seq":5,"payload":"y"}}"#,
        r#"{"id":"1","data":{"seq":6,"payload":"x"}}"#,
        r#"{"id":"1","seq":5,"payload":"y"}"#,
        r#"{"id":"1","data":{"conflict":true}}"#,
    ] {
        assert_ne!(event(other).2, sent, "{other}");
    }
    // Where others publish, all of it counts.
    let a = event(r#"{"id":"1","data":{"payload":"x","text":"a"}}"#).2;
    let b = event(r#"{"id":"1","data":{"payload":"x","text":"b"}}"#).2;
    assert_ne!(a, b);
}

#[test]
fn talk_about_the_connection_is_no_event_though_it_has_an_id() {
    for name in [
        "ping",
        "pong",
        "heartbeat",
        "keepalive",
        "hello",
        "welcome",
        "connected",
        "subscribed",
    ] {
        let frame = format!(r#"{{"type":"{name}","id":"7"}}"#);
        assert_eq!(one(&frame), Decoded::Ignored, "{name}");
    }
    assert_eq!(one(r#"{"type":"PING"}"#), Decoded::Ignored);
    assert_eq!(
        event(r#"{"type":"message","id":"7"}"#).0.as_deref(),
        Some("7")
    );
    assert_eq!(
        event(r#"{"type":"ping","id":"7","data":{"seq":5}}"#).1,
        Some(5)
    );
}

#[test]
fn every_other_frame_has_a_meaning_too() {
    assert_eq!(
        one(r#"{"type":"reset","id":"9"}"#),
        Decoded::Reset {
            id: Some("9".into())
        }
    );
    assert_eq!(one(r#"{"type":"reset"}"#), Decoded::Reset { id: None });
    assert_eq!(one(r#"{"type":"caught-up"}"#), Decoded::CaughtUp);
    assert_eq!(read(r#"[{"id":1},{"id":2}]"#).len(), 2);
    for unread in [
        "",
        "{",
        "7",
        r#""x""#,
        "{}",
        r#"{"id":null}"#,
        r#"{"id":{}}"#,
        r#"{"id":""}"#,
        "[1]",
    ] {
        assert!(matches!(one(unread), Decoded::Unread(_)), "{unread}");
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID + 1));
    assert!(matches!(one(&long), Decoded::Unread(_)));
}
