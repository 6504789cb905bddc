//! A server that takes connections at once and serves nobody for a time, as one that warms its caches does. It knows no
//! client and no frame.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What handshakes meet at first, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowStart {
    /// What they meet.
    pub how: Slow,
    /// For how long after the server listens, above 0.
    pub lasts: Duration,
}

/// What a handshake meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// No answer until the time is over.
    Hang,
    /// 503. Its `Retry-After` is the whole time, not what is left of it: who obeys it comes back as spread out as it came.
    Busy,
}

impl Slow {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Hang, Self::Busy];

    /// The word in scenarios and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Busy => "503",
        }
    }
}

impl SlowStart {
    /// What `Retry-After` says: whole seconds, rounded up.
    pub(super) fn retry_after(self) -> u64 {
        self.lasts.as_secs() + u64::from(self.lasts.subsec_nanos() > 0)
    }
}

impl FromStr for SlowStart {
    type Err = String;

    /// `"hang 2s"` or `"503 2s"`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once(' ').and_then(|(how, lasts)| {
            let how = Slow::ALL.into_iter().find(|known| known.name() == how)?;
            let lasts = humantime::parse_duration(lasts.trim()).ok()?;
            (!lasts.is_zero()).then_some(Self { how, lasts })
        });
        parsed.ok_or_else(|| {
            format!(
                "\"{}\" is not a slow start; write what handshakes meet and for how long, \"hang 2s\" or \"503 2s\"",
                text.escape_debug()
            )
        })
    }
}

impl fmt::Display for SlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasts = humantime::format_duration(self.lasts);
        write!(f, "{} {lasts}", self.how.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_what_it_is_shown_as() {
        for text in ["hang 2s", "503 1s 500ms", "503 300ms"] {
            let slow: SlowStart = text.parse().unwrap();
            assert_eq!(slow.to_string(), text);
        }
        for text in ["", "hang", "503", "500 2s", "hang 0s", "hang 2"] {
            let said = text.parse::<SlowStart>().unwrap_err();
            assert!(said.contains("\"hang 2s\""), "{said}");
        }
        let slow: SlowStart = "503 1500ms".parse().unwrap();
        assert_eq!(slow.retry_after(), 2);
    }
}
