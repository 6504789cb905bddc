//! The units that users write, in a file or after a flag: `"500ms"`, `"10k"`, `"75%/1s"`, `"20/s"`.
//!
//! One parser for both places. A number whose unit is missing is refused, never guessed. This file knows no key, no flag
//! and no default.

mod forms;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use crate::backoff::Reset;
use crate::history::Shard;

pub(crate) use forms::Staleness;

/// A scalar as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Text(String),
    Integer(i128),
    Float(f64),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
        }
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            type Value = Word;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }
            fn visit_str<E>(self, text: &str) -> Result<Word, E> {
                Ok(Word::Text(text.to_owned()))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Word, E> {
                Ok(Word::Integer(n.into()))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Word, E> {
                Ok(Word::Integer(n.into()))
            }
            fn visit_f64<E>(self, x: f64) -> Result<Word, E> {
                Ok(Word::Float(x))
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}

/// Reads a flag's text as one of the types below.
pub(crate) fn word<T: TryFrom<Word, Error = String>>(text: &str) -> Result<T, String> {
    T::try_from(Word::Text(text.to_owned()))
}

/// The longest duration: far more than a run can last, and no sum or product of a few of them overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Time(pub(crate) Duration);

impl TryFrom<Word> for Time {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let right = "write a duration with its unit, such as \"500ms\", \"5s\" or \"10m\"";
        let Word::Text(text) = &word else {
            return Err(format!("{word} has no unit; {right}"));
        };
        match humantime::parse_duration(text) {
            Ok(time) if time <= LONGEST => Ok(Self(time)),
            Ok(_) => Err(format!("{word} is over a year; {right}")),
            Err(_) => Err(format!("{word} is not a duration; {right}")),
        }
    }
}

/// A whole number; `1k` is a thousand and `10m` ten million.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Count(pub(crate) u64);

impl TryFrom<Word> for Count {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let refused = || {
            format!("{word} is not a count; write a whole number such as 1000, \"1k\" or \"10m\"")
        };
        let count = match &word {
            Word::Integer(n) => u64::try_from(*n).ok(),
            Word::Float(_) => None,
            Word::Text(text) => {
                let (digits, unit) = match text.as_bytes().last() {
                    Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
                    Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
                    _ => (text.as_str(), 1),
                };
                let plain = digits.bytes().all(|b| b.is_ascii_digit());
                let number = digits.parse::<u64>().ok().filter(|_| plain);
                number.and_then(|n| n.checked_mul(unit))
            }
        };
        count.map(Self).ok_or_else(refused)
    }
}

/// A part of a whole, `"75%"` or `0.75`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Share(pub(crate) f64);

impl TryFrom<Word> for Share {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let share = match &word {
            Word::Text(text) => fraction(text),
            Word::Integer(n) => Some(*n as f64),
            Word::Float(x) => Some(*x),
        };
        let inside = share.filter(|x| (0.0..=1.0).contains(x));
        inside.map(Self).ok_or_else(|| {
            format!("{word} is not a share; write \"0%\" to \"100%\", or 0 to 1 such as 0.75")
        })
    }
}

fn fraction(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok().map(|x| x / 100.0),
        None => text.parse().ok(),
    }
}

/// A share of the clients, and the window that it may come in: `"75%/1s"`. The window may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Peak {
    pub(crate) share: f64,
    pub(crate) window: Option<Duration>,
}

impl TryFrom<Word> for Peak {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let refused = |why: &str| {
            format!("{word}: {why}; write a share above 0 and its window, such as \"75%/1s\"")
        };
        let (share, window) = match &word {
            Word::Text(text) => match text.split_once('/') {
                Some((share, window)) => (Word::Text(share.into()), Some(window)),
                None => (word.clone(), None),
            },
            _ => (word.clone(), None),
        };
        let Share(share) = Share::try_from(share).map_err(|_| refused("not a share"))?;
        if share <= 0.0 {
            return Err(refused("no attempt at all could pass"));
        }
        let window = match window.map(word_time) {
            None => None,
            Some(Some(window)) if !window.is_zero() => Some(window),
            Some(_) => return Err(refused("not a window")),
        };
        Ok(Self { share, window })
    }
}

fn word_time(text: &str) -> Option<Duration> {
    word::<Time>(text).ok().map(|Time(time)| time)
}

/// Events a second, above 0: `"20/s"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Rate(pub(crate) f64);

impl TryFrom<Word> for Rate {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let rate = match &word {
            Word::Text(text) => text.strip_suffix("/s").and_then(|n| n.parse::<f64>().ok()),
            _ => None,
        };
        match rate {
            Some(rate) if (SLOWEST..=FASTEST).contains(&rate) => Ok(Self(rate)),
            _ => Err(format!(
                "{word} is not a rate; write events a second, from 0.001 to a million, such as \"20/s\""
            )),
        }
    }
}

/// The slowest rate: an event in a quarter of an hour. A run waits for ten of them.
const SLOWEST: f64 = 0.001;
/// The fastest rate: one event a microsecond, the finest instant that a history holds.
const FASTEST: f64 = 1e6;

/// How many attempts in a row may fail: a number from 1, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Attempts(pub(crate) Option<u32>);

impl TryFrom<Word> for Attempts {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        if word == Word::Text("unlimited".into()) {
            return Ok(Self(None));
        }
        let refused =
            format!("{word} is not a number of attempts; write 1 or more, or \"unlimited\"");
        match Count::try_from(word).map(|Count(n)| u32::try_from(n)) {
            Ok(Ok(n)) if n > 0 => Ok(Self(Some(n))),
            _ => Err(refused),
        }
    }
}

/// A form of the policies' own, by its text; a plain number is read as its text is.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word", bound = "T: FromStr<Err = String>")]
pub(crate) struct Form<T>(pub(crate) T);

impl<T: FromStr<Err = String>> TryFrom<Word> for Form<T> {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let text = match word {
            Word::Text(text) => text,
            other => other.to_string(),
        };
        text.parse().map(Self)
    }
}

/// What sets the attempt count back: `"open"`, `"ack"`, `"quiet 1m"`, or a connection that stayed open this long.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct ResetOn(pub(crate) Reset);

impl TryFrom<Word> for ResetOn {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let refused = format!(
            "{word}: write \"open\", \"ack\", a minimum uptime such as \"5s\", or \"quiet 1m\""
        );
        let reset = match &word {
            Word::Text(text) if text == "open" => Some(Reset::OnOpen),
            Word::Text(text) if text == "ack" => Some(Reset::OnAck),
            Word::Text(text) => match text.strip_prefix("quiet ") {
                Some(quiet) => word_time(quiet).map(Reset::AfterQuiet),
                None => word_time(text).map(Reset::AfterUptime),
            },
            _ => None,
        };
        reset.map(Self).ok_or(refused)
    }
}

/// A local address: `"127.0.0.2"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct Ip(pub(crate) IpAddr);

impl TryFrom<Word> for Ip {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let parsed = match &word {
            Word::Text(text) => text.parse().ok(),
            _ => None,
        };
        parsed
            .map(Self)
            .ok_or_else(|| format!("{word} is not an IP address; write for example \"127.0.0.2\""))
    }
}

/// A shard: `"2/4"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Word")]
pub(crate) struct ShardOf(pub(crate) Shard);

impl TryFrom<Word> for ShardOf {
    type Error = String;
    fn try_from(word: Word) -> Result<Self, String> {
        let parsed = match &word {
            Word::Text(text) => text.split_once('/').and_then(|(index, of)| {
                let (index, of) = (index.parse().ok()?, of.parse().ok()?);
                (1..=of).contains(&index).then_some(Shard { index, of })
            }),
            _ => None,
        };
        parsed.map(Self).ok_or_else(|| {
            format!("{word} is not a shard; write i/N with i from 1 to N, such as \"1/4\"")
        })
    }
}

#[cfg(test)]
mod tests;
