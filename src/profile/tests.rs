//! Profiles against frames that real servers sent, and against mistakes that users make.

mod after;
mod captured;
mod guide;
mod ids;
mod properties;
mod refused;
mod talk;

use std::time::Duration;

use super::*;
use crate::transport::{Frame, Kind};

/// The time of most turns.
const NOW: Duration = Duration::from_secs(5);

fn builtin(name: ProfileName) -> Profile {
    Profile::compile(&Spec::builtin(name), &Pointers::default()).unwrap()
}

fn profile(toml: &str) -> Profile {
    Profile::compile(&Spec::parse(toml).unwrap(), &Pointers::default()).unwrap()
}

fn centrifugo() -> Profile {
    profile(&include_str!("tests/centrifugo.toml").replace("{env:CENTRIFUGO_API_KEY}", "secret"))
}

fn block<'a>(name: &'a str, id: Option<&'a str>, data: &'a str) -> Frame<'a> {
    Frame {
        bytes: data.as_bytes(),
        kind: Kind::Event {
            name,
            id,
            has_data: true,
        },
    }
}

/// What a text frame means on a first session.
fn first(profile: &Profile, text: &str) -> Vec<Decoded> {
    profile.decode(Frame::text(text), Carried::Nothing)
}

/// What a text frame means on a session that resumes.
fn resumed(profile: &Profile, text: &str) -> Vec<Decoded> {
    profile.decode(Frame::text(text), Carried::Cursor)
}

fn reading(decoded: &[Decoded]) -> &Reading {
    match decoded {
        [Decoded::Event(reading)] => reading,
        other => panic!("{other:?} is not one event"),
    }
}

/// Where an event moves the cursor.
fn cursor(reading: &Reading) -> Option<&str> {
    match &reading.cursor {
        Moves::ToId => reading.id.as_deref(),
        Moves::To(cursor) => Some(cursor),
        Moves::Nowhere => None,
    }
}

fn reset(id: Option<&str>) -> Decoded {
    Decoded::Reset {
        id: id.map(Into::into),
    }
}

fn values(cursor: Option<&str>) -> Values<'_> {
    Values {
        cursor,
        client: 1,
        ..Values::default()
    }
}

#[test]
fn every_builtin_profile_compiles_and_comes_back_from_its_own_text() {
    for name in ProfileName::ALL {
        let spec = Spec::builtin(name);
        assert_eq!(spec.name, name.name());
        assert!(
            !spec.summary.is_empty() && !spec.tested.is_empty(),
            "{name:?}"
        );
        let again = toml::to_string(&spec).unwrap();
        assert_eq!(Spec::parse(&again).unwrap(), spec, "{again}");
        builtin(name);
    }
}

#[test]
fn a_profile_can_start_from_a_builtin_one() {
    let spec = Spec::parse(
        "base = \"socketio\"\npath = \"/rt/\"\nquery = { token = \"{env:T}\" }\nevent = { id = \"/1/uid\" }",
    )
    .unwrap();
    let base = Spec::builtin(ProfileName::Socketio);
    assert_eq!(spec.path.as_deref(), Some("/rt/"));
    assert_eq!(spec.query["EIO"], "4");
    assert_eq!(spec.query["token"], "{env:T}");
    assert_eq!(spec.event.id.as_deref(), Some("/1/uid"));
    assert_eq!(spec.event.cursor, base.event.cursor);
    assert_eq!(spec.frame, base.frame);
    let wrong = Spec::parse("base = \"sockets\"").unwrap_err().to_string();
    assert!(
        wrong.contains("base") && wrong.contains("socketio"),
        "{wrong}"
    );
}

#[test]
fn pointers_of_the_user_replace_the_profiles_own() {
    let pointers = Pointers {
        id: Some("/meta/uid".into()),
        seq: Some("/n".into()),
    };
    let profile = Profile::compile(&Spec::builtin(ProfileName::Sse), &pointers).unwrap();
    let read = profile.decode(
        block(
            "message",
            Some("17"),
            r#"{"meta":{"uid":"u1"},"n":5,"seq":6}"#,
        ),
        Carried::Nothing,
    );
    let read = reading(&read);
    assert_eq!((read.id.as_deref(), read.seq), (Some("u1"), Some(5)));
    assert_eq!(cursor(read), Some("17"), "what the stream resumes from");
}

#[test]
fn a_dials_query_and_headers_leave_out_what_is_unset() {
    let after = builtin(ProfileName::After);
    assert_eq!(
        after.query(&values(Some("a/b"))),
        [("after", "a%2Fb".into())]
    );
    assert_eq!(after.query(&values(None)), []);
    let sse = builtin(ProfileName::Sse);
    assert_eq!(
        sse.headers(&values(Some("[{\"t\":1}]"))),
        [("Last-Event-ID", "[{\"t\":1}]".into())]
    );
    assert_eq!(sse.headers(&values(None)), []);
    let socketio = builtin(ProfileName::Socketio);
    assert_eq!(
        socketio.query(&values(None)),
        [("EIO", "4".into()), ("transport", "websocket".into())]
    );
    assert_eq!(
        socketio.names().collect::<Vec<_>>(),
        ["ping", "pong", "pid"]
    );
}

#[test]
fn statuses_and_close_codes_decide_whether_a_client_comes_back() {
    let sse = builtin(ProfileName::Sse);
    for (status, fate) in [
        (204, Fate::Stop),
        (410, Fate::Reset),
        (503, Fate::Reconnect),
        (404, Fate::Reconnect),
    ] {
        assert_eq!(sse.after_status(status), fate, "{status}");
    }
    let after = builtin(ProfileName::After);
    let centrifugo = centrifugo();
    for code in [1000, 1001, 1005, 1006, 1011, 1012, 1013, 4404] {
        assert_eq!(after.after_close(Some(code)), Fate::Reconnect, "{code}");
    }
    assert_eq!(centrifugo.after_close(Some(3005)), Fate::Reconnect);
    assert_eq!(centrifugo.after_close(Some(3500)), Fate::Stop);
    assert_eq!(centrifugo.after_close(Some(3999)), Fate::Stop);
    assert_eq!(centrifugo.after_close(None), Fate::Reconnect);
}
