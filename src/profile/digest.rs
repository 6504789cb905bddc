//! A digest of what must be equal wherever an event's id is. It knows no protocol.

use std::hash::Hasher;

use xxhash_rust::xxh3::Xxh3Default;

use super::extract::Pointer;
use super::json::Value;

/// The content is what herd sent, where that can be told: its number and the payload beside it. A server may add its own
/// to them, and a stamp or a mark of each delivery makes no other event. Else it is the part that the profile names;
/// without that, herd's own number is all that can be compared. 0 = nothing.
///
/// `own` is herd's number with the pointer at which it was found.
pub(super) fn digest(event: &Value, own: Option<(u64, &Pointer)>, part: Option<&Pointer>) -> u64 {
    let mut hasher = Xxh3Default::new();
    let payload = match own.and_then(|(_, at)| at.holder(event)) {
        Some(Value::Object(fields)) => fields.get("payload").filter(|p| p.as_text().is_some()),
        _ => None,
    };
    let part = part.and_then(|part| part.find(event));
    match (own, payload, part) {
        (Some((seq, _)), Some(payload), _) => {
            hasher.write_u64(seq);
            content(&mut hasher, payload);
        }
        (_, _, Some(part)) => content(&mut hasher, part),
        (Some((seq, _)), None, None) => hasher.write_u64(seq),
        (None, _, None) => return 0,
    }
    hasher.finish().max(1)
}

/// Feeds a value so that neither the order of keys nor white space counts: stores rewrite both.
fn content(hasher: &mut Xxh3Default, value: &Value) {
    match value {
        Value::List(items) => {
            hasher.write(b"[");
            items.iter().for_each(|item| content(hasher, item));
            hasher.write(b"]");
        }
        Value::Object(fields) => {
            hasher.write(b"{");
            for (key, value) in fields {
                hasher.write(key.as_bytes());
                hasher.write(b":");
                content(hasher, value);
            }
            hasher.write(b"}");
        }
        Value::Text(text) => {
            hasher.write(b"\"");
            hasher.write(text.as_bytes());
            hasher.write(b"\"");
        }
        Value::Number(text) => {
            hasher.write(text.as_bytes());
            hasher.write(b",");
        }
        Value::Bool(true) => hasher.write(b"true,"),
        Value::Bool(false) => hasher.write(b"false,"),
        Value::Null => hasher.write(b"null,"),
    }
}
