//! Where in a frame things stand: pointers into JSON, an event stream's id, a group of a regular expression. What is
//! found is text exactly as it was sent. It knows no meaning.

use regex::bytes::Captures;

use super::MAX_ID;
use super::json::Value;

/// A JSON Pointer (RFC 6901) in which `-1` is an array's last element.
#[derive(Debug, Clone)]
pub(super) struct Pointer {
    text: Box<str>,
    tokens: Box<[Box<str>]>,
}

impl Pointer {
    /// Reads one; the empty pointer is the whole.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let escapes = text.replace("~0", "").replace("~1", "");
        if (!text.is_empty() && !text.starts_with('/')) || escapes.contains('~') {
            return Err(format!(
                "{text:?} is no JSON Pointer (RFC 6901); write for example \"/id\", \"/data/id\" or \"/-1\""
            ));
        }
        let from_the_end = |token: &str| {
            let digits = token.strip_prefix('-').unwrap_or_default();
            token != "-1" && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        };
        if let Some(token) = text.split('/').skip(1).find(|token| from_the_end(token)) {
            return Err(format!(
                "{token} in {text:?} finds nothing: only -1, the last element, counts from the end; use that, or an index from 0"
            ));
        }
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~").into();
        Ok(Self {
            text: text.into(),
            tokens: text.split('/').skip(1).map(unescaped).collect(),
        })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What stands there.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.tokens.iter().try_fold(value, |value, token| {
            Some(match value {
                Value::Object(fields) => fields.get(&**token)?,
                Value::List(items) => items.get(index(token, items.len())?)?,
                _ => return None,
            })
        })
    }

    /// The object or array that holds what stands there.
    pub(super) fn holder<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let (_, above) = self.tokens.split_last()?;
        let above = Self {
            text: Box::default(),
            tokens: above.into(),
        };
        above.find(value)
    }

    /// What stands there, to be replaced.
    pub(super) fn find_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.tokens.iter().try_fold(value, |value, token| {
            Some(match value {
                Value::Object(fields) => fields.get_mut(&**token)?,
                Value::List(items) => {
                    let at = index(token, items.len())?;
                    items.get_mut(at)?
                }
                _ => return None,
            })
        })
    }
}

fn index(token: &str, len: usize) -> Option<usize> {
    match token {
        "-1" => len.checked_sub(1),
        token if token.len() > 1 && token.starts_with(['0', '+']) => None,
        token => token.parse().ok(),
    }
}

/// What things are extracted from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'a> {
    /// The JSON, where there is any.
    pub(super) value: Option<&'a Value>,
    /// The `id:` of the block.
    pub(super) sse_id: Option<&'a str>,
    /// What the rule's `raw` found.
    pub(super) groups: Option<&'a Captures<'a>>,
}

/// Where a thing stands.
#[derive(Debug, Clone)]
enum Source {
    /// At a pointer.
    At(Pointer),
    /// At a pointer, where it is a string and no number.
    TextAt(Pointer),
    /// In the block's `id:`.
    SseId,
    /// In a group of the rule's `raw`.
    Group(Box<str>),
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Box<str>),
    From(Source),
}

/// Where a thing stands, or several things joined.
#[derive(Debug, Clone)]
pub(super) struct Extractor {
    text: Box<str>,
    pieces: Box<[Piece]>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or an empty text.
    Nothing,
    /// This.
    Text(Box<str>),
    /// Something that can't be an id: why.
    Unfit(String),
}

impl Found {
    /// The text, if there is one.
    pub(super) fn text(self) -> Option<Box<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Unfit(_) => None,
        }
    }
}

impl Extractor {
    /// Reads where a thing stands.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        if text.contains('{') {
            let mut rest = text;
            while let Some(open) = rest.find('{') {
                let Some(len) = rest[open..].find('}') else {
                    return Err(format!("{text:?} lacks a closing brace"));
                };
                if open > 0 {
                    pieces.push(Piece::Text(rest[..open].into()));
                }
                pieces.push(Piece::From(source(&rest[open + 1..open + len])?));
                rest = &rest[open + len + 1..];
            }
            if !rest.is_empty() {
                pieces.push(Piece::Text(rest.into()));
            }
        } else {
            pieces.push(Piece::From(source(text)?));
        }
        Ok(Self {
            text: text.into(),
            pieces: pieces.into(),
        })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the block's `id:` and nothing else.
    pub(super) fn is_sse_id(&self) -> bool {
        matches!(*self.pieces, [Piece::From(Source::SseId)])
    }

    /// Whether it needs an event stream.
    pub(super) fn needs_sse(&self) -> bool {
        let is = |piece: &Piece| matches!(piece, Piece::From(Source::SseId));
        self.pieces.iter().any(is)
    }

    /// The groups that it takes from the rule's `raw`.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::From(Source::Group(name)) => Some(&**name),
            _ => None,
        })
    }

    /// What stands there. Of several joined ones all must be there.
    pub(super) fn find(&self, place: Place<'_>) -> Found {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::From(source) => match source.find(place) {
                    Found::Text(text) => whole.push_str(&text),
                    other => return other,
                },
            }
        }
        match whole.len() {
            0 => Found::Nothing,
            len if len > MAX_ID => Found::Unfit(format!("{} has over {MAX_ID} bytes", self.text)),
            _ => Found::Text(whole.into()),
        }
    }
}

impl Source {
    fn find(&self, place: Place<'_>) -> Found {
        let found: Option<Box<str>> = match self {
            Self::At(pointer) => match place.value.and_then(|value| pointer.find(value)) {
                None => None,
                Some(value) => match value.lexeme() {
                    Some(text) => Some(text.into()),
                    None => {
                        let text = pointer.text();
                        return Found::Unfit(format!("{text} is neither text nor a number"));
                    }
                },
            },
            Self::TextAt(pointer) => place
                .value
                .and_then(|value| pointer.find(value))
                .and_then(Value::as_text)
                .map(Into::into),
            Self::SseId => place.sse_id.map(Into::into),
            Self::Group(name) => place
                .groups
                .and_then(|groups| groups.name(name))
                .and_then(|group| std::str::from_utf8(group.as_bytes()).ok())
                .map(Into::into),
        };
        match found {
            Some(text) if !text.is_empty() => Found::Text(text),
            _ => Found::Nothing,
        }
    }
}

fn source(text: &str) -> Result<Source, String> {
    if text == "sse:id" {
        return Ok(Source::SseId);
    }
    if let Some(name) = text.strip_prefix("group:") {
        return Ok(Source::Group(name.into()));
    }
    match text.strip_prefix("text:") {
        Some(pointer) => Pointer::parse(pointer).map(Source::TextAt),
        None => Pointer::parse(text).map(Source::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::parse(text.as_bytes()).unwrap()
    }

    fn found(text: &str, value: &Value) -> Found {
        Extractor::parse(text).unwrap().find(Place {
            value: Some(value),
            sse_id: Some("17"),
            groups: None,
        })
    }

    #[test]
    fn a_pointer_finds_what_stands_there() {
        let value = json(r#"{"a": [1, {"b/c": "x", "~": "y"}], "": "z"}"#);
        for (text, expected) in [
            ("/a/0", Some("1")),
            ("/a/-1/b~1c", Some("x")),
            ("/a/1/~0", Some("y")),
            ("/", Some("z")),
            ("/a/01", None),
            ("/a/2", None),
            ("/b", None),
            ("sse:id", Some("17")),
            ("{/a/0}:{/a/1/~0}/x", Some("1:y/x")),
            ("{/a/0}:{/b}", None),
            ("text:/a/-1/~0", Some("y")),
            ("text:/a/0", None),
        ] {
            assert_eq!(found(text, &value).text().as_deref(), expected, "{text}");
        }
        assert!(matches!(found("/a", &value), Found::Unfit(_)));
        assert!(matches!(found("", &value), Found::Unfit(_)));
        assert_eq!(Pointer::parse("").unwrap().find(&value), Some(&value));
        assert_eq!(found("/a/-1", &json(r#"{"a": []}"#)), Found::Nothing);
        for wrong in ["/a/-2", "a", "/~2", "/a~", "{/a", "{a}"] {
            assert!(Extractor::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_longer_than_an_id_may_be_is_none() {
        let long = json(&format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID + 1)));
        assert!(matches!(found("/id", &long), Found::Unfit(_)));
    }
}
