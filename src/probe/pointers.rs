//! Where in a frame herd's number and the event's id stand, found by looking rather than by being told.
//!
//! It knows JSON and nothing of profiles or sockets: what it proposes still has to prove itself.

use serde_json::Value;

/// Keys under which servers usually send an event's id, the likeliest first.
const USUAL: [&str; 14] = [
    "id",
    "_id",
    "eventId",
    "event_id",
    "messageId",
    "message_id",
    "offset",
    "cursor",
    "sequence",
    "sequenceId",
    "position",
    "rev",
    "version",
    "ts",
];

/// JSON Pointers (RFC 6901) for `--id` and `--seq`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Where the id stands.
    pub(super) id: Option<String>,
    /// Where herd's number stands.
    pub(super) seq: Option<String>,
}

/// Looks into one frame for herd's number `seq` and for an id, which is surely the one that the publisher was answered
/// (`answered`) and else whatever bears a usual name or one that ends like an id's, the least deep first.
pub(super) fn find(frame: &str, seq: u64, answered: Option<&str>) -> Found {
    let Ok(frame) = serde_json::from_str::<Value>(frame) else {
        return Found::default();
    };
    let mut leaves = Vec::new();
    walk(&frame, &mut String::new(), &mut leaves);
    // The least deep first: what stands deeper is more likely the user's own.
    leaves.sort_by_key(|(pointer, _)| pointer.matches('/').count());
    let seq = seq.to_string();
    let is_seq = |(_, value): &&(String, String)| *value == seq;
    let seq_at = leaves.iter().find(is_seq).map(|(pointer, _)| pointer);
    let others = || leaves.iter().filter(|(p, _)| Some(p) != seq_at);
    let by_answer = answered.and_then(|id| others().find(|(_, value)| value == id));
    let by_name = || {
        USUAL.iter().find_map(|name| {
            others().find(|(p, value)| p.rsplit('/').next() == Some(name) && !value.is_empty())
        })
    };
    // Else what calls itself one: uid, uuid, guid, msgId, event-key.
    let by_ending = || {
        others().find(|(p, value)| {
            let name = p
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            let ends = ["id", "key", "seq"].iter().any(|end| name.ends_with(end));
            ends && !value.is_empty()
        })
    };
    Found {
        id: by_answer
            .or_else(by_name)
            .or_else(by_ending)
            .map(|(p, _)| p.clone()),
        seq: seq_at.cloned(),
    }
}

/// Every number and text with its pointer.
fn walk(value: &Value, pointer: &mut String, leaves: &mut Vec<(String, String)>) {
    let mut step = |token: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        walk(value, pointer, leaves);
        pointer.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| step(key, value)),
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                step(&place.to_string(), value);
            }
        }
        Value::Number(number) => leaves.push((pointer.clone(), number.to_string())),
        Value::String(text) => leaves.push((pointer.clone(), text.clone())),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(frame: &str, answered: Option<&str>) -> (Option<String>, Option<String>) {
        let found = find(frame, 77, answered);
        (found.id, found.seq)
    }

    #[test]
    fn the_number_and_the_id_are_found_wherever_they_stand() {
        for (frame, answered, id, seq) in [
            (
                r#"{"id":"a","data":{"seq":77}}"#,
                None,
                Some("/id"),
                Some("/data/seq"),
            ),
            (
                r#"{"meta":{"eventId":5},"body":{"n":"77"}}"#,
                None,
                Some("/meta/eventId"),
                Some("/body/n"),
            ),
            // The answer is better evidence than a name.
            (
                r#"{"id":1,"key":"x9","seq":77}"#,
                Some("x9"),
                Some("/key"),
                Some("/seq"),
            ),
            (
                r#"{"meta":{"uid":"e07"},"event":{"body":{"seq":77,"payload":"x"}}}"#,
                Some("7"),
                Some("/meta/uid"),
                Some("/event/body/seq"),
            ),
            (
                r#"{"msgKey":"k","data":{"id":4,"n":77}}"#,
                None,
                Some("/data/id"),
                Some("/data/n"),
            ),
            // The number itself is no id.
            (r#"{"id":77}"#, None, None, Some("/id")),
            (
                r#"{"a/b":{"~":77},"offset":3}"#,
                None,
                Some("/offset"),
                Some("/a~1b/~0"),
            ),
            (
                r#"["event",{"id":"4","n":77}]"#,
                None,
                Some("/1/id"),
                Some("/1/n"),
            ),
            (r#"{"data":{"id":1},"id":2}"#, None, Some("/id"), None),
            ("no json", None, None, None),
            ("{}", Some("x"), None, None),
        ] {
            let expected = (id.map(str::to_owned), seq.map(str::to_owned));
            assert_eq!(found(frame, answered), expected, "{frame}");
        }
    }

    #[test]
    fn digits_are_compared_as_written() {
        let frame = r#"{"id":9007199254740993}"#;
        assert_eq!(
            find(frame, 9_007_199_254_740_993, None).seq.as_deref(),
            Some("/id")
        );
        assert_eq!(find(frame, 9_007_199_254_740_992, None).seq, None);
    }
}
