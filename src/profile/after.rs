//! JSON events with an id, one or an array of them a frame; the cursor goes into the URL as `after`.
//!
//! What it reads: `{"id": .., "type": "event", "data": ..}` as an event (any type, or none, will do where there is an
//! id), `{"type": "reset", "id": ..}`, `{"type": "caught-up"}`. Where id and herd's number stand can be told. Talk about
//! the connection itself, such as `{"type": "ping"}`, is passed over.

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::Xxh3Default;

use super::{Decoded, MAX_ID, Reading};
use crate::transport::Frame;

/// The profile with its pointers (JSON Pointers, RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// Where the id stands.
    pub id: String,
    /// Where herd's number stands; none = tried at the usual places.
    pub seq: Option<String>,
}

impl Default for After {
    fn default() -> Self {
        Self {
            id: "/id".into(),
            seq: None,
        }
    }
}

/// Where herd's number usually comes back: the published body under `data`, or merged into the event.
const USUAL_SEQ: [&str; 2] = ["/data/seq", "/seq"];

impl After {
    /// Reads a frame into its parts.
    #[must_use]
    pub fn decode(&self, frame: Frame<'_>) -> Vec<Decoded> {
        let parts = match serde_json::from_slice::<&RawValue>(frame.bytes) {
            Ok(whole) => {
                serde_json::from_str::<Vec<&RawValue>>(whole.get()).unwrap_or_else(|_| vec![whole])
            }
            Err(e) => return vec![Decoded::Unread(format!("not JSON: {e}"))],
        };
        parts.into_iter().map(|part| self.part(part)).collect()
    }

    fn part(&self, raw: &RawValue) -> Decoded {
        let part = match serde_json::from_str::<Value>(raw.get()) {
            Ok(part) if part.is_object() => part,
            _ => return Decoded::Unread("no JSON object".into()),
        };
        let id = match raw_at(raw, &self.id).map(lexeme) {
            Some(Some(id)) if id.len() > MAX_ID => {
                return Decoded::Unread(format!("the id at {} has over {MAX_ID} bytes", self.id));
            }
            Some(None) => {
                return Decoded::Unread(format!(
                    "the id at {} is neither text nor a number",
                    self.id
                ));
            }
            Some(id) => id.filter(|id| !id.is_empty()),
            None => None,
        };
        match part.get("type").and_then(Value::as_str) {
            Some("reset") => return Decoded::Reset { id },
            Some("caught-up" | "caught_up") => return Decoded::CaughtUp,
            _ => {}
        }
        let seq = self.seq(raw);
        if seq.is_none() && is_talk(&part) {
            return Decoded::Ignored;
        }
        if id.is_none() && seq.is_none() {
            return Decoded::Unread(format!("no id at {}", self.id));
        }
        Decoded::Event(Reading {
            id,
            seq,
            digest: digest(&part, seq),
            ..Reading::default()
        })
    }

    fn seq(&self, part: &RawValue) -> Option<u64> {
        let at = |pointer: &str| {
            raw_at(part, pointer)
                .and_then(lexeme)
                .and_then(|s| s.parse().ok())
        };
        match &self.seq {
            Some(pointer) => at(pointer),
            None => USUAL_SEQ.iter().find_map(|pointer| at(pointer)),
        }
    }
}

/// What stands at a JSON Pointer, as text: a parsed number has already lost how it was written.
fn raw_at<'a>(value: &'a RawValue, pointer: &str) -> Option<&'a RawValue> {
    pointer.split('/').skip(1).try_fold(value, |value, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        if value.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            items.get(token.parse::<usize>().ok()?).copied()
        } else {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            fields.get(&token).copied()
        }
    })
}

/// A number's digits exactly as sent, a string's text; `7` and `"7"` are the same id.
fn lexeme(value: &RawValue) -> Option<Box<str>> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'-' | b'0'..=b'9' => Some(value.get().into()),
        _ => None,
    }
}

/// Types of frames that servers send about the connection itself. Some carry an id, of the frame, the connection or the
/// beat: taken for an event it would be counted as one, and a client would resume from it.
const TALK: [&str; 8] = [
    "ping",
    "pong",
    "heartbeat",
    "keepalive",
    "hello",
    "welcome",
    "connected",
    "subscribed",
];

fn is_talk(part: &Value) -> bool {
    part.get("type")
        .and_then(Value::as_str)
        .is_some_and(|name| TALK.iter().any(|talk| talk.eq_ignore_ascii_case(name)))
}

/// The content is what herd sent, where its object can be told: a server may add its own to it, and a stamp or a mark of
/// each delivery makes no other event. Else it is what stands under `data`; without that, herd's own number is all that
/// can be compared.
fn digest(part: &Value, seq: Option<u64>) -> u64 {
    let mut hasher = Xxh3Default::new();
    match (seq, sent(part), part.get("data")) {
        (Some(seq), Some(payload), _) => {
            hasher.write_u64(seq);
            content(&mut hasher, payload);
        }
        (_, _, Some(data)) => content(&mut hasher, data),
        (Some(seq), None, None) => hasher.write_u64(seq),
        (None, _, None) => return 0,
    }
    hasher.finish().max(1)
}

/// The payload of herd's object, which stands under `data` or is merged into the event.
fn sent(part: &Value) -> Option<&Value> {
    [part.get("data"), Some(part)]
        .into_iter()
        .flatten()
        .filter(|object| object.get("seq").is_some())
        .find_map(|object| object.get("payload").filter(|p| p.is_string()))
}

/// Feeds a value so that neither the order of keys nor white space counts: stores rewrite both.
fn content(hasher: &mut Xxh3Default, value: &Value) {
    match value {
        Value::Array(items) => {
            hasher.write(b"[");
            items.iter().for_each(|item| content(hasher, item));
            hasher.write(b"]");
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            hasher.write(b"{");
            for (key, value) in fields {
                hasher.write(key.as_bytes());
                hasher.write(b":");
                content(hasher, value);
            }
            hasher.write(b"}");
        }
        Value::String(text) => {
            hasher.write(b"\"");
            hasher.write(text.as_bytes());
            hasher.write(b"\"");
        }
        other => {
            hasher.write(other.to_string().as_bytes());
            hasher.write(b",");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Kind;

    fn read(frame: &str) -> Vec<Decoded> {
        After::default().decode(Frame {
            bytes: frame.as_bytes(),
            kind: Kind::Text,
        })
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
        let elsewhere = After {
            seq: Some("/data/body/n".into()),
            ..After::default()
        };
        let frame = Frame {
            bytes: br#"{"id":"1","seq":9,"data":{"body":{"n":7}}}"#,
            kind: Kind::Text,
        };
        assert!(matches!(
            elsewhere.decode(frame)[0],
            Decoded::Event(Reading { seq: Some(7), .. })
        ));
    }

    #[test]
    fn the_same_content_has_the_same_digest_however_it_is_written() {
        let a = event(r#"{"id":"1","data":{"seq":5,"payload":["x",1]}}"#).2;
        let b =
            event(r#"{ "data": {"payload": ["x", 1], "seq": 5}, "id": 1, "replayed": true }"#).2;
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
        for name in TALK {
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
}
