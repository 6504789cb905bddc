//! Ids as servers send them (the facts' section G), through every profile that can carry them.

use super::*;

/// An event with this id (JSON) in each protocol, as (profile, its frame's meanings).
fn everywhere(id: &str) -> Vec<(&'static str, Vec<Decoded>)> {
    let text = |name: ProfileName, frame: String| (name.name(), first(&builtin(name), &frame));
    vec![
        text(ProfileName::After, format!(r#"{{"id":{id},"data":"x"}}"#)),
        text(
            ProfileName::Resume,
            format!(r#"{{"type":"event","id":{id},"data":{{}}}}"#),
        ),
        text(
            ProfileName::Socketio,
            format!(r#"42["event",{{"id":{id},"data":"x"}},"Q8hz_kk"]"#),
        ),
        text(
            ProfileName::NestjsWs,
            format!(r#"{{"event":"tick","data":{{"id":{id},"v":"b"}}}}"#),
        ),
        (
            "centrifugo",
            first(
                &centrifugo(),
                &format!(
                    r#"{{"push":{{"channel":"ev","pub":{{"data":{{"id":{id}}},"offset":4}}}}}}"#
                ),
            ),
        ),
    ]
}

#[test]
fn numbers_keep_every_digit() {
    for id in [
        "9007199254740993",
        "1796033310164893697",
        "9223372036854775808",
        "18446744073709551617",
        "123456789012345678901234567890",
        "0.10",
        "1e2",
        "-0",
        "1E+2",
    ] {
        for (name, read) in everywhere(id) {
            assert_eq!(reading(&read).id.as_deref(), Some(id), "{name}");
        }
    }
}

#[test]
fn a_text_and_a_number_of_the_same_digits_are_the_same_id() {
    let (texts, numbers) = (everywhere("\"7\""), everywhere("7"));
    for ((name, text), (_, number)) in texts.iter().zip(&numbers) {
        let (text, number) = (reading(text), reading(number));
        assert_eq!(
            (&text.id, &text.cursor),
            (&number.id, &number.cursor),
            "{name}"
        );
    }
}

#[test]
fn opaque_ids_are_kept_byte_for_byte() {
    for id in [
        "1796033310:1",
        "urn:uuid:7f9c3e0e-0000-4000-8000-000000000000",
        r#"[{"topic":"eqiad.x","partition":0,"offset":-1}]"#,
        "1/chat_42/y2023",
        "007",
        " 7 ",
        "é\u{202e}",
    ] {
        let json = serde_json::to_string(id).unwrap();
        for (name, read) in everywhere(&json) {
            assert_eq!(reading(&read).id.as_deref(), Some(id), "{name}");
        }
        let sse = builtin(ProfileName::Sse);
        let read = sse.decode(block("message", Some(id), "x"), Carried::Nothing);
        assert_eq!(reading(&read).id.as_deref(), Some(id));
        assert_eq!(cursor(reading(&read)), Some(id));
        // Verbatim in a header, encoded in a query.
        let header = sse.headers(&values(Some(id)));
        assert_eq!(header, [("Last-Event-ID", id.to_owned())]);
        let after = builtin(ProfileName::After);
        let query = after.query(&values(Some(id)));
        let encoded = percent_encoding::percent_decode_str(&query[0].1);
        assert_eq!(encoded.decode_utf8().unwrap(), id);
        assert!(!query[0].1.contains([':', '/', '"', ' ', '[']), "{query:?}");
    }
}

#[test]
fn holes_are_no_business_of_a_profile() {
    for name in ProfileName::ALL {
        assert!(!builtin(name).contiguous(), "{name:?}");
    }
}

#[test]
fn an_id_that_is_none_is_not_understood() {
    for id in ["{}", "[]", "true", "null"] {
        for (name, read) in everywhere(id) {
            assert!(
                matches!(read.last(), Some(Decoded::Unread(_))),
                "{name}: {id}: {read:?}"
            );
        }
    }
}
