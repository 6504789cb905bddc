//! Frames that went over the wire of real servers, or stand in their protocol's description (the facts' sections 2 to 6).

use super::*;

#[test]
fn sse_starlette_and_nestjs_streams() {
    let sse = builtin(ProfileName::Sse);
    let read = |name, id, data| sse.decode(block(name, id, data), Carried::Nothing);
    let tick = read("tick", Some("2"), "line2\nsecond");
    assert_eq!(reading(&tick).id.as_deref(), Some("2"));
    assert_ne!(
        reading(&tick).digest,
        reading(&read("tick", Some("2"), "line2")).digest
    );
    let nest = read("tick", Some("2"), r#"{"v":"b"}"#);
    let spaced = read("tick", Some("2"), r#"{ "v": "b" }"#);
    assert_eq!(nest, spaced);
    let own = read("message", Some("9"), r#"{"seq":7340033,"payload":"x"}"#);
    assert_eq!(reading(&own).seq, Some(7340033));
    // An answer that marks what it sends again is the same event.
    let again = read(
        "message",
        Some("9"),
        r#"{"redelivered":true,"seq":7340033,"payload":"x"}"#,
    );
    assert!(reading(&again).redelivered && !reading(&own).redelivered);
    assert_eq!(reading(&again).digest, reading(&own).digest);
}

#[test]
fn an_event_streams_id_moves_the_cursor_wherever_it_stands() {
    let sse = builtin(ProfileName::Sse);
    let bare = |id| Frame {
        bytes: b"",
        kind: Kind::Event {
            name: "message",
            id,
            has_data: false,
        },
    };
    let moved = |to: Option<&str>| Decoded::Cursor(to.map(Into::into));
    let read = |frame| sse.decode(frame, Carried::Cursor);
    assert_eq!(read(bare(Some("7"))), [moved(Some("7"))]);
    assert_eq!(read(bare(Some(""))), [moved(None)]);
    assert_eq!(read(bare(None)), [Decoded::Ignored]);
    assert_eq!(
        read(block("ping", Some("8"), "x")),
        [moved(Some("8")), Decoded::Ignored]
    );
    assert_eq!(read(block("ping", None, "x")), [Decoded::Ignored]);
    // An event without an id of its own leaves the cursor where it was; an empty one clears it.
    let idless = read(block("message", None, r#"{"seq":5}"#));
    assert_eq!(
        (reading(&idless).seq, cursor(reading(&idless))),
        (Some(5), None)
    );
    let cleared = read(block("message", Some(""), r#"{"seq":5}"#));
    assert_eq!(cleared[0], moved(None));
    assert_eq!(cursor(reading(&cleared[1..])), None);
    assert!(matches!(
        read(block("message", None, "text"))[..],
        [Decoded::Unread(_)]
    ));
}

#[test]
fn an_event_streams_resets_as_seen_in_the_wild() {
    let sse = builtin(ProfileName::Sse);
    let read = |name, id| sse.decode(block(name, id, "{}"), Carried::Cursor);
    for name in ["reset", "resync", "gap", "stream_gap", "resync_required"] {
        assert_eq!(read(name, None), [reset(None)], "{name}");
        assert_eq!(read(name, Some("812")), [reset(Some("812"))], "{name}");
    }
    assert_eq!(read("caught-up", None), [Decoded::CaughtUp]);
}

#[test]
fn a_plain_cursor_in_the_query() {
    let after = builtin(ProfileName::After);
    let read = first(&after, r#"{"id": 2, "data": "..."}"#);
    assert_eq!(reading(&read).id.as_deref(), Some("2"));
    // Jetstream: another pointer is all it takes.
    let jetstream = profile("base = \"after\"\nevent = { id = \"/time_us\" }\nids = \"integer\"");
    let read = first(
        &jetstream,
        r#"{"did":"did:plc:x","time_us":1725911162329308,"kind":"commit"}"#,
    );
    assert_eq!(reading(&read).id.as_deref(), Some("1725911162329308"));
}

#[test]
fn a_resume_frame_and_its_answers() {
    let resume = builtin(ProfileName::Resume);
    let read = |text| resumed(&resume, text);
    let event = read(r#"{"type":"event","id":"42","data":{"seq":9}}"#);
    assert_eq!(
        (reading(&event).id.as_deref(), reading(&event).seq),
        (Some("42"), Some(9))
    );
    assert_eq!(
        read(r#"{"type":"caught-up","lastEventId":"42"}"#),
        [Decoded::CaughtUp]
    );
    assert_eq!(
        read(r#"{"type":"resume-error","reason":"unknown-id"}"#),
        [Decoded::ResumeRefused("unknown-id".into())]
    );
    for text in [
        r#"{"type":"resume_gap"}"#,
        r#"{"type":"gap_resync"}"#,
        r#"{"type":"resync-required"}"#,
        r#"{"type":"resync_required"}"#,
        r#"{"type":"reset"}"#,
    ] {
        assert_eq!(read(text), [reset(None)], "{text}");
    }
    assert_eq!(
        read(r#"{"type":"caught-up","lastEventId":"42","truncated":true}"#),
        [reset(Some("42")), Decoded::CaughtUp]
    );
    for text in [r#"{"type":"ready"}"#, r#"{"type":"hello","epoch":"e1"}"#] {
        assert_eq!(read(text), [Decoded::Ignored], "{text}");
    }
}

#[test]
fn a_nestjs_gateway() {
    let nest = builtin(ProfileName::NestjsWs);
    let tick = resumed(&nest, r#"{"event":"tick","data":{"id":2,"v":"b"}}"#);
    assert_eq!(reading(&tick).id.as_deref(), Some("2"));
    assert_eq!(
        resumed(&nest, r#"{"event":"caught-up","data":{"lastEventId":3}}"#),
        [Decoded::CaughtUp]
    );
    let own = resumed(
        &nest,
        r#"{"event":"event","data":{"id":"2","seq":5,"payload":"x"}}"#,
    );
    assert_eq!(reading(&own).seq, Some(5));
    assert_eq!(
        resumed(
            &nest,
            r#"{"event":"resume-error","data":{"reason":"too old"}}"#
        ),
        [Decoded::ResumeRefused("too old".into())]
    );
    assert!(matches!(
        resumed(&nest, r#"{"event":"exception"}"#)[..],
        [Decoded::Unread(_)]
    ));
}

#[test]
fn socket_io_with_recovery() {
    let socketio = builtin(ProfileName::Socketio);
    let open = r#"0{"sid":"oUFD","upgrades":[],"pingInterval":3000,"pingTimeout":2000,"maxPayload":1000000}"#;
    assert_eq!(first(&socketio, open), [Decoded::Ignored]);
    let connect = r#"40{"sid":"Vmps","pid":"UurQ"}"#;
    assert_eq!(first(&socketio, connect), [Decoded::CaughtUp]);
    assert_eq!(resumed(&socketio, connect), [Decoded::CaughtUp]);
    let event = first(
        &socketio,
        r#"42["event",{"id":"1","data":"hello"},"Q8hz_kk"]"#,
    );
    assert_eq!(reading(&event).id.as_deref(), Some("1"));
    assert_eq!(cursor(reading(&event)), Some("Q8hz_kk"));
    // A namespace, an acknowledgement's number, several arguments.
    let event = first(
        &socketio,
        r#"42/ns,17["event",{"id":"2","seq":5},7,"Q8h-0gF"]"#,
    );
    assert_eq!(
        (reading(&event).id.as_deref(), reading(&event).seq),
        (Some("2"), Some(5))
    );
    assert_eq!(cursor(reading(&event)), Some("Q8h-0gF"));
    for (text, meaning) in [
        ("2", Decoded::Ignored),
        ("3", Decoded::Ignored),
        ("6", Decoded::Ignored),
        ("430[]", Decoded::Ignored),
        ("41", Decoded::Fatal("41".into())),
        ("1", Decoded::Fatal("1".into())),
        (r#"44{"message":"no"}"#, Decoded::Fatal("no".into())),
        (
            "44\"Unable to connect\"",
            Decoded::Fatal("44\"Unable to connect\"".into()),
        ),
    ] {
        assert_eq!(first(&socketio, text), [meaning], "{text}");
    }
    let binary = r#"451-["event",{"_placeholder":true,"num":0}]"#;
    assert!(matches!(first(&socketio, binary)[..], [Decoded::Unread(_)]));
}

#[test]
fn socket_io_without_recovery() {
    let socketio = builtin(ProfileName::Socketio);
    let connect = r#"40{"sid":"uxaB"}"#;
    assert_eq!(first(&socketio, connect), [Decoded::CaughtUp]);
    assert_eq!(
        resumed(&socketio, connect),
        [reset(None), Decoded::CaughtUp]
    );
    let event = first(&socketio, r#"42["event",{"id":"1","data":"hello"}]"#);
    assert_eq!(cursor(reading(&event)), Some("1"), "the id stands for it");
    // A number is no offset, whatever it looks like.
    let event = first(&socketio, r#"42["event",{"id":"1"},17]"#);
    assert_eq!(cursor(reading(&event)), Some("1"));
}

#[test]
fn centrifugo_is_toml_alone() {
    let centrifugo = centrifugo();
    let connect = r#"{"id":1,"connect":{"client":"u","version":"6","ping":25,"pong":true}}"#;
    assert_eq!(first(&centrifugo, connect), [Decoded::Ignored]);
    let subscribed =
        r#"{"id":2,"subscribe":{"recoverable":true,"positioned":true,"epoch":"tLtt","offset":3}}"#;
    assert_eq!(
        first(&centrifugo, subscribed),
        [Decoded::Cursor(Some("3".into())), Decoded::CaughtUp]
    );
    let push = first(
        &centrifugo,
        r#"{"push":{"channel":"ev","pub":{"data":{"id":4},"offset":4}}}"#,
    );
    assert_eq!(reading(&push).id.as_deref(), Some("4"));
    assert_eq!(reading(&push).order.as_deref(), Some("4"));
    // Several objects in a message.
    let both = format!("{connect}\n{subscribed}\n{{}}\n");
    assert_eq!(first(&centrifugo, &both).len(), 4);
    assert_eq!(first(&centrifugo, "{}"), [Decoded::Ignored]);
    for (text, why) in [
        (
            r#"{"push":{"channel":"ev","unsubscribe":{"code":2500,"reason":"insufficient state"}}}"#,
            "insufficient state",
        ),
        (
            r#"{"push":{"disconnect":{"code":3005,"reason":"shutdown","reconnect":true}}}"#,
            "shutdown",
        ),
    ] {
        assert_eq!(first(&centrifugo, text), [Decoded::Fatal(why.into())]);
    }
    assert_eq!(
        resumed(
            &centrifugo,
            r#"{"id":2,"error":{"code":112,"message":"unrecoverable position"}}"#
        ),
        [
            Decoded::ResumeRefused("unrecoverable position".into()),
            Decoded::Fatal("unrecoverable position".into())
        ]
    );
}

#[test]
fn centrifugo_says_that_it_recovered_or_nothing() {
    let centrifugo = centrifugo();
    let recovered = r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"tLtt","publications":[{"data":{"id":5},"offset":5}],"recovered":true,"was_recovering":true,"positioned":true,"offset":4}}"#;
    let read = resumed(&centrifugo, recovered);
    assert_eq!(read[0], Decoded::Cursor(Some("4".into())));
    assert_eq!(
        cursor(reading(&read[1..2])),
        Some("5"),
        "the greater one comes later"
    );
    assert_eq!(read[2], Decoded::CaughtUp);
    for recovered in [r#""recovered":false,"#, ""] {
        let text = format!(
            r#"{{"id":2,"subscribe":{{"epoch":"new",{recovered}"publications":[{{"data":{{"id":5}},"offset":5}}],"offset":5}}}}"#
        );
        let read = resumed(&centrifugo, &text);
        assert_eq!(read[0], reset(Some("5")));
        assert_eq!(
            reading(&read[1..2]).id.as_deref(),
            Some("5"),
            "what is left still comes"
        );
        assert_eq!(read[2], Decoded::CaughtUp);
        assert!(
            !first(&centrifugo, &text).contains(&reset(Some("5"))),
            "nothing was asked"
        );
    }
    let nothing = resumed(&centrifugo, r#"{"id":2,"subscribe":{}}"#);
    assert_eq!(nothing, [reset(None), Decoded::CaughtUp]);
}

#[test]
fn json_in_a_string_and_several_parts_in_a_cursor() {
    // Pusher's data, and AnyCable's place in a stream.
    let pusher = profile(
        "[decoding]\nreparse = \"/data\"\n[[frame]]\nis = \"event\"\nat = \"/data\"\n[event]\nid = \"/id\"\ncursor = \"{/offset}/{/stream_id}/{/epoch}\"\nepoch = \"/epoch\"",
    );
    let read = first(
        &pusher,
        r#"{"event":"tick","data":"{\"id\":7,\"offset\":32,\"stream_id\":\"chat_42\",\"epoch\":\"x123\"}"}"#,
    );
    assert_eq!(reading(&read).id.as_deref(), Some("7"));
    assert_eq!(reading(&read).epoch.as_deref(), Some("x123"));
    assert_eq!(cursor(reading(&read)), Some("32/chat_42/x123"));
    // Nchan's head of a message, by groups.
    let nchan = profile(
        r#"
        [decoding]
        json = "maybe"
        [[frame]]
        is = "event"
        when = { raw = '^id: (?<id>[^\n]+)\n' }
        [event]
        id = "group:id"
        "#,
    );
    let read = first(&nchan, "id: 1796033310:1\ncontent-type: text/plain\n\nm5");
    assert_eq!(reading(&read).id.as_deref(), Some("1796033310:1"));
}
