//! JSON as it was written: a number is its own text. A parser's number has already lost how a server wrote it (`1e2`, or
//! digits beyond a float's), and ids must go back as they came.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// How deep values may stand in each other, as in serde_json.
const DEEPEST: u32 = 128;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number as it was written.
    Number(Box<str>),
    /// A text.
    Text(Box<str>),
    /// An array.
    List(Vec<Value>),
    /// An object; of keys that come twice the last one counts.
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// Reads JSON, which is UTF-8.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        Self::from_raw(raw, DEEPEST)
    }

    /// Each level is read by itself, because only a raw value keeps a number's text.
    fn from_raw(raw: &RawValue, deeper: u32) -> Result<Self, String> {
        let text = raw.get();
        let deeper = deeper.checked_sub(1).ok_or("it is nested too deep")?;
        let wrong = |e: serde_json::Error| e.to_string();
        Ok(match text.as_bytes().first() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
                let items = items.into_iter().map(|item| Self::from_raw(item, deeper));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let fields: BTreeMap<String, &RawValue> =
                    serde_json::from_str(text).map_err(wrong)?;
                let fields = fields
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::from_raw(value, deeper)?)));
                Self::Object(fields.collect::<Result<_, String>>()?)
            }
            Some(b'"') => Self::Text(serde_json::from_str(text).map_err(wrong)?),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number(text.into()),
        })
    }

    /// The text, where it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number's digits exactly as sent, a string's text; `7` and `"7"` are the same.
    pub(super) fn lexeme(&self) -> Option<&str> {
        match self {
            Self::Number(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let text = |text: &str| Value::Text(text.into());
        let number = |text: &str| Value::Number(text.into());
        for (json, value) in [
            (" null ", Value::Null),
            ("true", Value::Bool(true)),
            ("1e2", number("1e2")),
            ("1E+2", number("1E+2")),
            ("-0.10", number("-0.10")),
            (r#""a\u002fb""#, text("a/b")),
            (
                r#"[1, "x", {}]"#,
                Value::List(vec![number("1"), text("x"), Value::Object(BTreeMap::new())]),
            ),
            (
                r#"{"a":1,"a":2}"#,
                Value::Object([("a".to_owned(), number("2"))].into()),
            ),
        ] {
            assert_eq!(Value::parse(json.as_bytes()), Ok(value), "{json}");
        }
        for wrong in ["", "{", "01", "1 2", r#""\ud800""#, "nul", "+1"] {
            assert!(Value::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Value::parse(b"\"\xff\"").is_err());
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Value::parse(deep(128).as_bytes()).is_ok());
        assert!(Value::parse(deep(129).as_bytes()).is_err());
        assert!(Value::parse(deep(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn whatever_serde_json_reads_is_read_alike(text in "[{}\\[\\]\",:0-9a-z\\-+.e ]{0,30}") {
            let ours = Value::parse(text.as_bytes());
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        }
    }
}
