//! Whatever a server sends: nothing panics, and the same bytes mean the same.

use proptest::prelude::*;

use super::*;

fn all() -> Vec<Profile> {
    let mut all: Vec<_> = ProfileName::ALL.into_iter().map(builtin).collect();
    all.push(centrifugo());
    all
}

/// Frames near to what servers send, and mangled ones.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let near = prop::sample::select(vec![
        r#"{"id":"7","type":"event","data":{"seq":5,"payload":"x"}}"#,
        r#"[{"id":1},{"type":"reset"},[],7]"#,
        r#"42/ns,3["event",{"id":"1","data":"hello"},"Q8hz_kk"]"#,
        r#"40{"sid":"a","pid":"b"}"#,
        r#"{"id":2,"subscribe":{"publications":[{"data":{"id":5},"offset":5},7,null],"offset":4}}"#,
        "{}\n\n{\"push\":{\"pub\":{}}}\n2",
        r#"{"event":"tick","data":{"id":2}}"#,
        r#"{"$serde_json::private::Number":"x","id":{"$serde_json::private::RawValue":"{"}}"#,
    ]);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        (near, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(text, at, byte)| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
        "[{}\\[\\]\",:a-z0-9\n]{0,40}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn the_same_bytes_mean_the_same_and_nothing_panics(
        bytes in frame(),
        name in "[a-z-]{0,9}",
        id in proptest::option::of("[ -~]{0,9}"),
        has_data: bool,
    ) {
        for profile in all() {
            for kind in [
                Kind::Text,
                Kind::Binary,
                Kind::Event { name: &name, id: id.as_deref(), has_data },
            ] {
                let frame = Frame { bytes: &bytes, kind };
                for carried in [Carried::Nothing, Carried::Cursor] {
                    prop_assert_eq!(profile.decode(frame, carried), profile.decode(frame, carried));
                }
                let mut talk = Talk::new(&profile);
                talk.open(&profile, NOW, &values(Some("7")), &|_| None);
                for _ in 0..3 {
                    let _ = talk.wants(&profile, frame);
                    talk.hear(&profile, NOW, frame, &values(Some("7")));
                }
                talk.tick(&profile, Duration::MAX, &values(None));
                prop_assert!(talk.due().is_none_or(|due| due >= NOW));
            }
        }
    }

    #[test]
    fn what_captures_say_is_never_too_long(ping in any::<u64>(), pong in any::<u64>()) {
        let profile = builtin(ProfileName::Socketio);
        let mut talk = Talk::new(&profile);
        talk.open(&profile, NOW, &values(None), &|_| None);
        let open = format!(r#"0{{"pingInterval":{ping},"pingTimeout":{pong}}}"#);
        talk.hear(&profile, NOW, Frame::text(&open), &values(None));
        talk.hear(&profile, NOW, Frame::text("40{}"), &values(None));
        let most = Duration::from_secs(2 * 24 * 60 * 60);
        prop_assert!(talk.due().is_none_or(|due| due <= NOW + most));
    }

    #[test]
    fn numbers_are_kept_as_they_are_written(id in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?") {
        let read = first(&builtin(ProfileName::After), &format!("{{\"id\":{id}}}"));
        prop_assert_eq!(reading(&read).id.as_deref(), Some(id.as_str()));
    }
}
