//! The forms of a policy as text, as scenarios write them: each reads back to the same.
//!
//! It knows no key and no default.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime::{format_duration, parse_duration};

use super::{ConnectTimeout, Jitter, LONGEST, Rule, Slow, Then, When, Window};

fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text.trim()) {
        Ok(time) if time <= LONGEST => Ok(time),
        Ok(_) => Err(format!("{text:?} is over a year; write a shorter time")),
        Err(_) => Err(format!(
            "{text:?} is not a duration; write it with its unit, such as \"500ms\" or \"5s\""
        )),
    }
}

fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    let share: f64 = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format_duration(self.least))?;
        if self.least < self.most {
            write!(f, "..{}", format_duration(self.most))?;
        }
        Ok(())
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let (least, most) = (duration(least)?, duration(most)?);
        if least > most {
            return Err(format!(
                "{text:?} ends before it begins; write the shorter time first"
            ));
        }
        Ok(Self { least, most })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Equal => f.write_str("equal"),
            Self::Decorrelated => f.write_str("decorrelated"),
            Self::Ratio(share) => write!(f, "+-{share}"),
            Self::Compounding(share) => write!(f, "compounding {share}"),
            Self::Less(share) => write!(f, "-{share}"),
            Self::More(share) => write!(f, "+{share}"),
            Self::PlusMinus(by) => write!(f, "+-{}", format_duration(*by)),
            Self::Plus(by) => write!(f, "+{by}"),
            Self::Climbing(by) => write!(f, "climbing {}", format_duration(*by)),
            Self::Doubled(share) => write!(f, "doubled {share}"),
            Self::Comb(share) => write!(f, "comb {share}"),
        }
    }
}

impl FromStr for Jitter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is no jitter; write none, full, equal, decorrelated, a share up to 100 % such as \"25%\" (+-), \
                 \"-50%\" or \"+15%\", a time such as \"+-500ms\" or \"+300ms..3s\", or \"comb 50%\", \"compounding 20%\", \
                 \"doubled 50%\" or \"climbing 100ms\""
            )
        };
        let either = |text: &str, ratio: fn(f64) -> Self, time: fn(Window) -> Self| {
            share(text)
                .map(ratio)
                .or_else(|| text.parse().ok().map(time))
                .ok_or_else(refused)
        };
        let plain = |text: &str, ratio: fn(f64) -> Self| share(text).map(ratio).ok_or_else(refused);
        match text.trim() {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            "equal" => Ok(Self::Equal),
            "decorrelated" => Ok(Self::Decorrelated),
            text => match text.split_once(' ') {
                Some(("comb", rest)) => plain(rest, Self::Comb),
                Some(("compounding", rest)) => plain(rest, Self::Compounding),
                Some(("doubled", rest)) => plain(rest, Self::Doubled),
                Some(("climbing", rest)) => Ok(Self::Climbing(duration(rest)?)),
                _ => match (
                    text.strip_prefix("+-"),
                    text.strip_prefix('+'),
                    text.strip_prefix('-'),
                ) {
                    (Some(rest), ..) => either(rest, Self::Ratio, |by| Self::PlusMinus(by.most)),
                    (_, Some(rest), _) => either(rest, Self::More, Self::Plus),
                    (_, _, Some(rest)) => plain(rest, Self::Less),
                    _ => plain(text, Self::Ratio),
                },
            },
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |f: &mut fmt::Formatter<'_>, what, from, to| match from == to {
            true => write!(f, "{what} {from}"),
            false => write!(f, "{what} {from}-{to}"),
        };
        match self {
            Self::Unconnected => f.write_str("no connection"),
            Self::Status(from, to) => range(f, "status", from, to),
            Self::Close(from, to) => range(f, "close", from, to),
            Self::CloseWithReason(from, to) => range(f, "close with reason", from, to),
            Self::CloseSays(reconnect) => write!(f, "close says reconnect {reconnect}"),
            Self::Eof => f.write_str("end of stream"),
            Self::Declined => f.write_str("last word"),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is no end; write \"no connection\", \"end of stream\", \"last word\", \"status 500-599\", \
                 \"close 4000\", \"close with reason 3500-3999\" or \"close says reconnect false\""
            )
        };
        let range = |numbers: &str, all: std::ops::RangeInclusive<u16>| {
            let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
            let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
            (from <= to && all.contains(&from) && all.contains(&to)).then_some((from, to))
        };
        match text.trim() {
            "no connection" => Ok(Self::Unconnected),
            "end of stream" => Ok(Self::Eof),
            "last word" => Ok(Self::Declined),
            "close says reconnect true" => Ok(Self::CloseSays(true)),
            "close says reconnect false" => Ok(Self::CloseSays(false)),
            text => {
                let codes = |word: &str| range(text.strip_prefix(word)?, 1_000..=4_999);
                let status = text.strip_prefix("status ");
                let status = status.and_then(|numbers| range(numbers, 100..=599));
                let status = status.map(|(from, to)| Self::Status(from, to));
                let reason = codes("close with reason ");
                let reason = reason.map(|(from, to)| Self::CloseWithReason(from, to));
                let close = codes("close ").map(|(from, to)| Self::Close(from, to));
                status.or(reason).or(close).ok_or_else(refused)
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.then {
            Then::Stop => write!(f, "{}: stop", self.when),
            Then::Retry => write!(f, "{}: retry", self.when),
            Then::After(delay) => write!(f, "{}: after {}", self.when, format_duration(delay)),
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is no rule; write an end and what follows, such as \"close 4000-4099: stop\""
            )
        };
        let (when, then) = text.split_once(':').ok_or_else(refused)?;
        let then = match then.trim() {
            "stop" => Then::Stop,
            "retry" => Then::Retry,
            "at once" => Then::After(Duration::ZERO),
            other => {
                let delay = other.strip_prefix("after ").ok_or_else(|| {
                    format!(
                        "{other:?} follows from nothing; write stop, retry, at once or \"after 1s\""
                    )
                })?;
                Then::After(duration(delay)?)
            }
        };
        Ok(Self::new(when.parse()?, then))
    }
}

impl fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format_duration(self.base))?;
        if self.base < self.cap {
            write!(f, " x {} up to {}", self.factor, format_duration(self.cap))?;
        }
        Ok(())
    }
}

impl FromStr for ConnectTimeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is no limit; write a time such as \"4s\", or one that grows such as \"1s x 1.2 up to 30s\""
            )
        };
        let limit = match text.split_once(" x ") {
            None => Self::fixed(duration(text)?),
            Some((base, grows)) => {
                let (factor, cap) = grows.split_once(" up to ").ok_or_else(refused)?;
                Self {
                    base: duration(base)?,
                    factor: factor.trim().parse().map_err(|_| refused())?,
                    cap: duration(cap)?,
                }
            }
        };
        let sound = limit.factor >= 1.0
            && limit.factor.is_finite()
            && !limit.base.is_zero()
            && limit.base <= limit.cap;
        sound.then_some(limit).ok_or_else(refused)
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (delay, after) = (format_duration(self.delay), format_duration(self.after));
        write!(f, "{delay} after {after}")
    }
}

impl FromStr for Slow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no slow delay; write it such as \"30s after 2m\"");
        let (delay, after) = text.split_once(" after ").ok_or_else(refused)?;
        Ok(Self {
            delay: duration(delay)?,
            after: duration(after)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::{First, presets};

    fn again<T>(of: &T)
    where
        T: fmt::Display + FromStr<Err = String> + PartialEq + fmt::Debug,
    {
        assert_eq!(of.to_string().parse::<T>().as_ref(), Ok(of), "{of}");
    }

    #[test]
    fn every_form_of_every_preset_reads_back_to_itself() {
        for preset in presets::all() {
            let policy = (preset.policy)();
            again(&policy.then.jitter);
            again(&policy.then.base);
            policy.rules.iter().for_each(again);
            policy.connect.iter().for_each(again);
            policy.limits.slow.iter().for_each(again);
            if let First::Steps(steps) = &policy.first {
                steps.iter().for_each(again);
            }
        }
    }

    #[test]
    fn nonsense_is_refused_and_the_short_forms_are_read() {
        for text in [
            "150%",
            "-2",
            "some",
            "",
            "+",
            "comb",
            "compounding 2",
            "+5s..1s",
            "full 5",
        ] {
            assert!(text.parse::<Jitter>().is_err(), "{text}");
        }
        assert_eq!("25%".parse(), Ok(Jitter::Ratio(0.25)));
        assert_eq!(
            "+-500ms".parse(),
            Ok(Jitter::PlusMinus(Duration::from_millis(500)))
        );
        for text in [
            "close",
            "close x",
            "close 5-1",
            "status 70000",
            "status 700",
            "close 99",
            "eof",
        ] {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
        for text in [
            "close 4000",
            "close 4000: perhaps",
            ": stop",
            "close 4000: after soon",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
        assert_eq!(
            "close 4000: at once".parse(),
            Ok(Rule::new(When::close(4000), Then::After(Duration::ZERO)))
        );
    }
}
