//! Single values of a profile: what each may be, and what is said against it otherwise.

use std::fmt;

use regex::bytes::Regex as BytesRegex;

use super::super::extract::Pointer;
use super::super::json::Value;
use super::super::{Fate, Refusal, spec};

/// The holes that every template knows.
pub(super) const KNOWN: [&str; 5] = ["after", "cursor", "client", "n", "port"];

pub(super) type Refused<T> = Result<T, Refusal>;

pub(super) fn refuse<T>(key: impl fmt::Display, why: impl fmt::Display) -> Refused<T> {
    Err(Refusal {
        key: key.to_string(),
        why: why.to_string(),
    })
}

pub(super) fn pointer(key: &str, text: &str) -> Refused<Pointer> {
    Pointer::parse(text).or_else(|e| refuse(key, e))
}

pub(super) fn bytes_regex(key: &str, text: &Option<String>) -> Refused<Option<BytesRegex>> {
    let text = text.as_ref();
    text.map(|text| BytesRegex::new(text).or_else(|e| refuse(key, no_regex(&e))))
        .transpose()
}

/// The last line of a regular expression's error says what is wrong; those before it draw the place.
pub(super) fn no_regex(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!(
        "not a regular expression: {}; see docs.rs/regex for the syntax",
        last.trim_start_matches("error: ")
    )
}

pub(super) fn scalar(key: &str, value: &toml::Value) -> Refused<Value> {
    Ok(match value {
        toml::Value::String(text) => Value::Text(text.as_str().into()),
        toml::Value::Integer(number) => Value::Number(number.to_string().into()),
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        _ => refuse(
            key,
            "it can be compared with text, a whole number, true or false only; use matches for more",
        )?,
    })
}

/// The ranges of codes: those that stop a client, and those that make it reload.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Codes {
    stop: Vec<std::ops::RangeInclusive<u16>>,
    reset: Vec<std::ops::RangeInclusive<u16>>,
}

impl Codes {
    pub(in super::super) fn fate(&self, code: u16) -> Fate {
        let among = |ranges: &[std::ops::RangeInclusive<u16>]| {
            ranges.iter().any(|range| range.contains(&code))
        };
        match () {
            () if among(&self.stop) => Fate::Stop,
            () if among(&self.reset) => Fate::Reset,
            () => Fate::Reconnect,
        }
    }
}

/// Reads ranges of codes, all of which must be `possible`.
pub(super) fn codes(
    key: &str,
    given: &spec::Codes,
    possible: &std::ops::RangeInclusive<u16>,
) -> Refused<Codes> {
    let ranges = |name: &str, list: &[String]| {
        let range = |text: &String| {
            let (from, to) = text.split_once('-').unwrap_or((text, text));
            match (from.trim().parse::<u16>(), to.trim().parse::<u16>()) {
                (Ok(from), Ok(to))
                    if from <= to && possible.contains(&from) && possible.contains(&to) =>
                {
                    Ok(from..=to)
                }
                (Ok(from), Ok(to)) if from <= to => refuse(
                    format!("{key}.{name}"),
                    format!(
                        "there is no code {text}; they go from {} to {}",
                        possible.start(),
                        possible.end()
                    ),
                ),
                _ => refuse(
                    format!("{key}.{name}"),
                    format!("{text:?} is no code; write \"204\" or \"3500-3999\""),
                ),
            }
        };
        list.iter().map(range).collect::<Refused<Vec<_>>>()
    };
    Ok(Codes {
        stop: ranges("stop", &given.stop)?,
        reset: ranges("reset", &given.reset)?,
    })
}

pub(super) fn is_name(text: &str) -> bool {
    let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(rest)
}

pub(super) fn is_token(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

/// A query's names may hold more than a token, such as `filter[id]`, but nothing that ends them.
pub(super) fn is_query_name(name: &str) -> bool {
    let ends = |c: char| c.is_control() || c.is_whitespace() || "&=#+%{}".contains(c);
    !name.is_empty() && !name.contains(ends)
}

/// The first thing in braces that looks like a hole and is none. JSON never does: its keys stand in quotes.
pub(super) fn stranger<'t>(text: &'t str, names: &[String]) -> Option<&'t str> {
    text.match_indices('{').find_map(|(open, _)| {
        let len = text[open..].find('}')?;
        let (name, form) = match text[open + 1..open + len].split_once('|') {
            Some((name, form)) => (name, Some(form)),
            None => (&text[open + 1..open + len], None),
        };
        let known = KNOWN.contains(&name) || names.iter().any(|known| known == name);
        let fit = matches!(form, None | Some("json" | "url"));
        (is_name(name) && !(known && fit)).then_some(&text[open..=open + len])
    })
}

/// Whether a template holds the cursor.
pub(in super::super) fn holds_cursor(text: &str) -> bool {
    let holes = ["{cursor}", "{cursor|", "{after}", "{after|"];
    holes.iter().any(|hole| text.contains(hole))
}
