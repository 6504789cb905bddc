//! Which numbers stand whole in a frame, wherever in it: what tells an event that herd can't read from one that never came.
//! It knows no profile and no rule.
//!
//! Only what is whole counts. A frame that was cut short may still show the number of the event that it destroyed, and
//! that event is lost. So the numbers are those within complete JSON values, one after the other and with whatever a
//! protocol writes between them; what is behind the first value that doesn't end is not looked at, and nothing counts
//! where something ends that never began. A text that holds JSON is read alike.

use serde_json::value::RawValue;

use super::json::Value;

/// How deep texts that hold JSON may stand in each other.
const DEEPEST: u32 = 4;

/// The numbers that `holds` knows, ascending, each once.
#[must_use]
pub fn numbers(bytes: &[u8], holds: &dyn Fn(u64) -> bool) -> Vec<u64> {
    let mut found = Vec::new();
    look(bytes, holds, DEEPEST, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn look(bytes: &[u8], holds: &dyn Fn(u64) -> bool, deeper: u32, found: &mut Vec<u64>) {
    let before = found.len();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| b"{[}]".contains(b)) {
        if b"}]".contains(&rest[at]) {
            found.truncate(before);
            return;
        }
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let Some(Ok(raw)) = values.next() else {
            return;
        };
        if let Ok(value) = Value::parse(raw.get().as_bytes()) {
            walk(&value, holds, deeper, found);
        }
        rest = &rest[values.byte_offset()..];
    }
}

fn walk(value: &Value, holds: &dyn Fn(u64) -> bool, deeper: u32, found: &mut Vec<u64>) {
    let whole = |text: &str| text.parse().ok().filter(|n| holds(*n));
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(text) => found.extend(whole(text)),
        Value::Text(text) => match whole(text) {
            Some(number) => found.push(number),
            None if deeper > 0 => look(text.as_bytes(), holds, deeper - 1, found),
            None => {}
        },
        Value::List(items) => {
            for item in items {
                walk(item, holds, deeper, found);
            }
        }
        Value::Object(fields) => {
            for value in fields.values() {
                walk(value, holds, deeper, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 7 << 20;

    fn own(text: &str) -> Vec<u64> {
        let mut numbers = numbers(text.as_bytes(), &|n| (BASE..BASE + 1_000).contains(&n));
        numbers.iter_mut().for_each(|n| *n -= BASE);
        numbers
    }

    #[test]
    fn a_number_counts_where_it_stands_whole() {
        let (a, b) = (BASE + 1, BASE + 2);
        let inner = format!(r#"{{\"seq\":{a},\"payload\":\"x\"}}"#);
        for (frame, wanted) in [
            (
                format!(r#"{{"type":"replay","event":{{"seq":{a}}}}}"#),
                vec![1],
            ),
            (
                format!(r#"{{"events":[{{"seq":{b}}},{{"seq":"{a}"}}]}}"#),
                vec![1, 2],
            ),
            (format!("{{\"seq\":{a}}}\n{{\"seq\":{b}}}\n"), vec![1, 2]),
            (
                format!("{{\"seq\":{a}}}\u{1e}{{\"seq\":{b}}}\u{1e}"),
                vec![1, 2],
            ),
            (format!(r#"42["event",{{"seq":{a}}}]"#), vec![1]),
            (format!("MESSAGE\nlength:12\n\n{{\"seq\":{a}}}\0"), vec![1]),
            (format!(r#"{{"data":"{inner}"}}"#), vec![1]),
            // No number of its own, or none of herd's.
            (format!(r#"{{"id":"e{a}","at":"{a}.5","n":{a}0}}"#), vec![]),
            (r#"{"seq":7340,"type":"hello"}"#.into(), vec![]),
            // Cut short: whole is only what came before.
            (
                format!(r#"{{"id":"1","data":{{"seq":{a},"payload":"x"}}"#),
                vec![],
            ),
            (format!("{{\"seq\":{a}}}\n{{\"seq\":{b}"), vec![1]),
            (format!(r#"[{{"seq":{a}}},{{"seq":{b}"#), vec![]),
            (format!(r#"{{"data":"{{\"seq\":{a},\"payl"}}"#), vec![]),
            (format!(r#""data":{{"seq":{a}}}}}"#), vec![]),
            (format!("{a}"), vec![]),
        ] {
            assert_eq!(own(&frame), wanted, "{frame}");
        }
    }

    proptest! {
        /// However a frame is cut short at either end, what it held is not there any more.
        #[test]
        fn a_cut_object_shows_nothing(from in 0usize..40, to in 0usize..120) {
            let frame = format!(
                r#"{{"id":"1","type":"event","data":{{"seq":{BASE},"payload":"abc {{"}},"more":[1,{{"of":"it"}}]}}"#
            );
            let (from, to) = (from.min(frame.len()), to.min(frame.len() - 1));
            prop_assert_eq!(own(&frame), [0]);
            prop_assert_eq!(own(&frame[..to]), Vec::<u64>::new());
            if from > 0 {
                prop_assert_eq!(own(&frame[from..]), Vec::<u64>::new());
            }
        }

        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = numbers(&bytes, &|_| true);
        }
    }
}
