//! Where a value was written, and refusals that name the place: a flag, or the file's line and key.
//!
//! Knows no key and no rule: what is refused, and why, is said by whoever refuses it.

use std::ops::Range;

use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Draft;
use crate::error::Error;

/// A value and where it was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// The bytes of the file that hold it.
    File(Range<usize>),
    /// The flag.
    Flag(&'static str),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            origin: Origin::File(spanned.span()),
            value: spanned.into_inner(),
        })
    }
}

/// A key that may be left out.
pub(crate) type Slot<T> = Option<Given<T>>;

/// Lays a flag, where it was given, over a key.
pub(crate) fn lay<T>(slot: &mut Slot<T>, flag: &'static str, value: Option<T>) {
    if let Some(value) = value {
        let origin = Origin::Flag(flag);
        *slot = Some(Given { value, origin });
    }
}

impl Draft {
    /// Refuses a value: names its flag, or its line and key.
    pub(crate) fn refuse(&self, origin: &Origin, what: &str) -> Error {
        match origin {
            Origin::Flag(flag) => Error::Usage(format!("{flag}: {what}")),
            Origin::File(span) => Error::Scenario {
                file: self.file.clone(),
                line: line_of(&self.text, span.start),
                what: match key_at(&self.text, span) {
                    Some(key) => format!("{key}: {what}"),
                    None => what.to_owned(),
                },
            },
        }
    }

    /// Refuses a value by a key that the text names itself: its flag, or its line.
    pub(crate) fn refuse_as(&self, origin: &Origin, what: &str) -> Error {
        match origin {
            Origin::Flag(_) => self.refuse(origin, what),
            Origin::File(span) => Error::Scenario {
                file: self.file.clone(),
                line: line_of(&self.text, span.start),
                what: what.to_owned(),
            },
        }
    }

    /// Where the file gives a key, or what of its path there is: `profile.frame[2].when`, lists counting from 1.
    pub(crate) fn origin_of(&self, path: &str) -> Option<Origin> {
        let table = DeTable::parse(&self.text).ok()?;
        let mut place = None;
        let mut value: Option<&DeValue<'_>> = None;
        for name in path.split(['.', '[']) {
            let inside = match (value, name.strip_suffix(']')) {
                (None, _) => table.get_ref().get_key_value(name),
                (Some(DeValue::Table(table)), None) => table.get_key_value(name),
                (Some(DeValue::Array(list)), Some(n)) => {
                    let n = n.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                    let Some(item) = n.and_then(|n| list.get(n)) else {
                        break;
                    };
                    place = Some(item.span());
                    value = Some(item.get_ref());
                    continue;
                }
                _ => None,
            };
            let Some((key, item)) = inside else {
                break;
            };
            place = Some(key.span());
            value = Some(item.get_ref());
        }
        place.map(Origin::File)
    }

    /// How a refusal of something else mentions a value.
    pub(crate) fn place(&self, origin: &Origin) -> String {
        match origin {
            Origin::Flag(flag) => (*flag).to_owned(),
            Origin::File(span) => format!(
                "{} ({}:{})",
                key_at(&self.text, span).unwrap_or_default(),
                self.file.display(),
                line_of(&self.text, span.start)
            ),
        }
    }

    /// Refuses two values that can't both hold.
    pub(crate) fn contradiction(&self, one: &Origin, other: &Origin, why: &str) -> Error {
        let other = self.place(other);
        self.refuse(one, &format!("contradicts {other}: {why}"))
    }
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    before.iter().filter(|b| **b == b'\n').count() + 1
}

/// The dotted key whose name or value holds the span; none where the text isn't TOML.
pub(super) fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let mut path = Vec::new();
    find(table.get_ref(), span, &mut path).then(|| path.join("."))
}

fn find(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
    let holds = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        let inside = match value.get_ref() {
            DeValue::Table(inner) => find(inner, span, path),
            DeValue::Array(items) => items.iter().enumerate().any(|(place, item)| {
                let DeValue::Table(inner) = item.get_ref() else {
                    return false;
                };
                let name = path.pop().unwrap_or_default();
                path.push(format!("{name}[{}]", place + 1));
                let inside = find(inner, span, path);
                if !inside {
                    path.pop();
                    path.push(name);
                }
                inside
            }),
            _ => false,
        };
        if inside || holds(key.span()) || holds(value.span()) {
            return true;
        }
        path.pop();
    }
    false
}
