//! What a client makes of the way in which a dial or a connection ended, and of what the server said about coming back.
//!
//! These are the policies' rules: transport and profile only report how something ended.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a dial or a connection ended, as far as policies tell ends apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No answer at all: refused, unreachable, timed out, reset during the handshake.
    Unconnected,
    /// An HTTP status other than the wanted one, or a wrong content type under the right one.
    Status(u16),
    /// A close frame; 1005 where it held no code (RFC 6455, 7.4.1).
    Close {
        /// The code.
        code: u16,
        /// What its reason says.
        says: Says,
    },
    /// The stream ended in order.
    Eof,
    /// The connection broke, or was silent for too long.
    Lost,
    /// A frame by which the protocol ends the connection for good.
    Declined,
}

/// What the reason of a close frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It is empty.
    Nothing,
    /// Some text.
    Text,
    /// A JSON object whose `reconnect` is this.
    Reconnect(bool),
}

impl Says {
    /// Reads a reason.
    #[must_use]
    pub fn of(reason: &str) -> Self {
        let flag = || {
            let object: serde_json::Value = serde_json::from_str(reason).ok()?;
            object.get("reconnect")?.as_bool()
        };
        match flag() {
            Some(reconnect) => Self::Reconnect(reconnect),
            None if reason.is_empty() => Self::Nothing,
            None => Self::Text,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconnected => f.write_str("no connection"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Close { code, .. } => write!(f, "close {code}"),
            Self::Eof => f.write_str("end of stream"),
            Self::Lost => f.write_str("lost connection"),
            Self::Declined => f.write_str("the server's last word"),
        }
    }
}

/// What follows from an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// From which.
    pub when: When,
    /// What.
    pub then: Then,
}

impl Rule {
    /// A rule.
    #[must_use]
    pub const fn new(when: When, then: Then) -> Self {
        Self { when, then }
    }

    /// The client stops for good.
    #[must_use]
    pub const fn stop(when: When) -> Self {
        Self::new(when, Then::Stop)
    }
}

/// A set of ends. Ranges include both numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// [`Ending::Unconnected`].
    Unconnected,
    /// Statuses.
    Status(u16, u16),
    /// Close codes.
    Close(u16, u16),
    /// Close codes with a reason.
    CloseWithReason(u16, u16),
    /// A close frame whose reason says so.
    CloseSays(bool),
    /// [`Ending::Eof`].
    Eof,
    /// [`Ending::Declined`].
    Declined,
}

impl When {
    /// One status.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::Status(status, status)
    }

    /// One close code.
    #[must_use]
    pub const fn close(code: u16) -> Self {
        Self::Close(code, code)
    }

    fn holds(self, ending: Ending) -> bool {
        match (self, ending) {
            (Self::Unconnected, Ending::Unconnected)
            | (Self::Eof, Ending::Eof)
            | (Self::Declined, Ending::Declined) => true,
            (Self::Status(from, to), Ending::Status(status)) => (from..=to).contains(&status),
            (Self::Close(from, to), Ending::Close { code, .. }) => (from..=to).contains(&code),
            (Self::CloseWithReason(from, to), Ending::Close { code, says }) => {
                says != Says::Nothing && (from..=to).contains(&code)
            }
            (Self::CloseSays(wanted), Ending::Close { says, .. }) => {
                says == Says::Reconnect(wanted)
            }
            _ => false,
        }
    }
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// Stop for good.
    Stop,
    /// Dial again by the policy's delays.
    Retry,
    /// Dial again after so long, whatever the delays say.
    After(Duration),
}

/// What the rules say of an end; none = nothing, so that somebody else's mind counts.
#[must_use]
pub fn ruling(rules: &[Rule], ending: Ending) -> Option<Then> {
    let rule = rules.iter().find(|rule| rule.when.holds(ending))?;
    Some(rule.then)
}

/// What a policy obeys of what a server says about when to come back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// The `retry:` of an event stream becomes the base, but no less than this; none = it is ignored.
    pub retry: Option<Duration>,
    /// Whether nobody comes back before the `Retry-After` of a refusal.
    pub retry_after: RetryAfter,
}

/// What `Retry-After` means to a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryAfter {
    /// Nothing. No library in the list reads it on its reconnect path.
    #[default]
    Ignored,
    /// The delay counts from then on.
    Added,
}
