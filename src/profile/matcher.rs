//! Conditions on a frame, compiled. It knows no meaning.

use regex::Regex;
use regex::bytes::Regex as BytesRegex;

use super::Carried;
use super::extract::Pointer;
use super::json::Value;
use super::spec::{FrameKind, When};
use crate::transport::Kind;

/// Conditions; all must hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Matcher {
    pub(super) event: Vec<String>,
    pub(super) kind: Option<FrameKind>,
    pub(super) raw: Option<BytesRegex>,
    pub(super) exists: Vec<Thing>,
    pub(super) absent: Vec<Thing>,
    pub(super) equals: Vec<(Pointer, Value)>,
    pub(super) differs: Vec<(Pointer, Value)>,
    pub(super) matches: Vec<(Pointer, Regex)>,
    pub(super) on: Option<When>,
}

/// What must be there, or not.
#[derive(Debug, Clone)]
pub(super) enum Thing {
    /// Anything but null at a pointer.
    At(Pointer),
    /// herd's number.
    Own,
}

/// A frame of its own, or a part of a message that is one.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The bytes; of a part of an array, the whole array's.
    pub(super) bytes: &'a [u8],
    /// What it came in.
    pub(super) kind: Kind<'a>,
    /// The JSON, or why there is none.
    pub(super) value: Result<Value, String>,
}

impl Matcher {
    /// Whether a frame fits; `own` says whether it holds herd's number.
    pub(super) fn fits(&self, part: &Part<'_>, carried: Carried, own: impl Fn() -> bool) -> bool {
        let value = part.value.as_ref().ok();
        let at = |pointer: &Pointer| value.and_then(|value| pointer.find(value));
        let there = |thing: &Thing| match thing {
            Thing::At(pointer) => at(pointer).is_some_and(|value| *value != Value::Null),
            Thing::Own => own(),
        };
        self.comes(part.kind)
            && self.on.is_none_or(|on| on == when(carried))
            && self.raw.as_ref().is_none_or(|raw| raw.is_match(part.bytes))
            && self
                .equals
                .iter()
                .all(|(p, v)| at(p).is_some_and(|x| x == v))
            && self
                .differs
                .iter()
                .all(|(p, v)| at(p).is_none_or(|x| x != v))
            && self.matches.iter().all(|(p, regex)| {
                let text = at(p).and_then(Value::lexeme);
                text.is_some_and(|text| regex.is_match(text))
            })
            && self.exists.iter().all(there)
            && !self.absent.iter().any(there)
    }

    fn comes(&self, kind: Kind<'_>) -> bool {
        let named = match kind {
            Kind::Event { name, .. } => self.event.iter().any(|event| event == name),
            Kind::Text | Kind::Binary => false,
        };
        let right = match self.kind {
            None => true,
            Some(FrameKind::Text) => kind == Kind::Text,
            Some(FrameKind::Binary) => kind == Kind::Binary,
        };
        right && (named || self.event.is_empty())
    }
}

fn when(carried: Carried) -> When {
    match carried {
        Carried::Nothing => When::First,
        Carried::Cursor => When::Resume,
    }
}
