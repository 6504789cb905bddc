//! The checks by name, in the order in which reports show them, and what each asks.
//!
//! Only words; how a check judges stands in its own file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A question that users can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Per wave: last minus first reconnect reaches the limit, on dialled and on opened.
    ReconnectSpread,
    /// Most attempts past TCP connect in any sliding window, as a share of the wave's clients.
    Peak,
    /// Every dropped client came back within the limit.
    AllReconnected,
    /// Every pair delivered once.
    ExactlyOnce,
    /// Events arrive in the server's own order at each client.
    Order,
    /// Clients that the server told to reload.
    Resets,
    /// Waves that no trigger caused.
    Relapse,
    /// Clients that a cut was not for notice nothing of it.
    Bystanders,
    /// From a client's drop until it is caught up.
    Recovery,
    /// How long a client's data was stale.
    Staleness,
    /// herd's own lag, drops, descriptors, ports.
    Generator,
}

impl Check {
    /// All of them, in the order of the reports.
    pub const ALL: [Self; 11] = [
        Self::ReconnectSpread,
        Self::Peak,
        Self::AllReconnected,
        Self::ExactlyOnce,
        Self::Order,
        Self::Resets,
        Self::Relapse,
        Self::Bystanders,
        Self::Recovery,
        Self::Staleness,
        Self::Generator,
    ];

    /// The name in every report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReconnectSpread => "reconnect-spread",
            Self::Peak => "peak",
            Self::AllReconnected => "all-reconnected",
            Self::ExactlyOnce => "exactly-once",
            Self::Order => "order",
            Self::Resets => "resets",
            Self::Relapse => "relapse",
            Self::Bystanders => "bystanders",
            Self::Recovery => "recovery",
            Self::Staleness => "staleness",
            Self::Generator => "generator",
        }
    }

    /// The question, in one sentence.
    #[must_use]
    pub fn question(self) -> &'static str {
        match self {
            Self::ReconnectSpread => {
                "per wave: last minus first reconnect reaches the limit, on dialled and on opened"
            }
            Self::Peak => {
                "most attempts past TCP connect in any sliding window, as a share of the wave's clients"
            }
            Self::AllReconnected => {
                "every dropped client came back within the limit; gave-up and fatal apart"
            }
            Self::ExactlyOnce => {
                "every pair delivered once: late, lost, duplicated, unexpected, conflict = 0, and resume was exercised"
            }
            Self::Order => "events arrive in the server's own order at each client",
            Self::Resets => "clients that the server told to reload",
            Self::Relapse => "waves that no trigger caused",
            Self::Bystanders => {
                "clients that a cut was not for keep their connections and miss nothing, and all others drop"
            }
            Self::Recovery => "from a client's drop until it is caught up, at p99",
            Self::Staleness => {
                "each client's longest time not connected, silent or not caught up, at a percentile"
            }
            Self::Generator => "herd's own lag, drops, descriptors, ports",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
