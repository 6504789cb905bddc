//! What each defect is declared to do: its argument, the checks that it trips, and the number that its ledger counts.

use serde::{Deserialize, Serialize};

use super::Defect;
use crate::check::Check;

impl Defect {
    /// Its argument; none where it takes none.
    #[must_use]
    pub fn argument(self) -> Option<Argument> {
        let (default, meaning) = match self {
            Self::LoseLive | Self::DuplicateLive | Self::Conflict | Self::CorruptFrame => {
                (100, "one in so many (subscriber, event) pairs")
            }
            Self::Reorder => (50, "one in so many (subscriber, event) pairs"),
            Self::AckThenLose => (50, "one in so many publications"),
            Self::SkipEvicted | Self::SilentOldest | Self::PartialWithFlag => {
                (40, "how many events are kept, instead of --keep")
            }
            Self::GapAtHandoff => (2, "so many events fall into the gap"),
            Self::LegalRedelivery => (3, "so many events come again"),
            Self::RefuseSome => (20, "one in so many clients"),
            Self::HalfOpen => (10, "one in so many clients"),
            Self::AcceptThenClose => (60_000, "for so many milliseconds after the start"),
            Self::SlowAccept => (100, "so many handshakes a second"),
            Self::DieAgain => (20, "when so many handshakes have arrived"),
            Self::LoseOnResume
            | Self::DuplicateOnResume
            | Self::IdsRestart
            | Self::ForgetLog
            | Self::ResetAlways
            | Self::NeverCatchUp
            | Self::LiveNotResubscribed
            | Self::UnknownIsNow
            | Self::LiveOvertakes
            | Self::LyingSession
            | Self::Zombie
            | Self::DataBeforeAck => return None,
        };
        Some(Argument { default, meaning })
    }

    /// Whether it acts only in a server that found its own log of before.
    #[must_use]
    pub fn needs_a_restart(self) -> bool {
        match self {
            Self::IdsRestart
            | Self::ForgetLog
            | Self::RefuseSome
            | Self::AcceptThenClose
            | Self::SlowAccept
            | Self::DieAgain
            | Self::HalfOpen
            | Self::UnknownIsNow
            | Self::Zombie => true,
            Self::LoseLive
            | Self::LoseOnResume
            | Self::DuplicateLive
            | Self::DuplicateOnResume
            | Self::Reorder
            | Self::ResetAlways
            | Self::SkipEvicted
            | Self::AckThenLose
            | Self::NeverCatchUp
            | Self::LiveNotResubscribed
            | Self::Conflict
            | Self::CorruptFrame
            | Self::GapAtHandoff
            | Self::SilentOldest
            | Self::LiveOvertakes
            | Self::LyingSession
            | Self::PartialWithFlag
            | Self::LegalRedelivery
            | Self::DataBeforeAck => false,
        }
    }

    /// Whether it begins the ids anew, which a log that several servers share can't.
    #[must_use]
    pub fn begins_ids_anew(self) -> bool {
        matches!(self, Self::IdsRestart | Self::UnknownIsNow)
    }

    /// The checks that it must make fail under the default policy, no others. Where there are none, herd must not be
    /// misled by it: `slow-accept` must not hide a stampede, `half-open` sockets must be noticed and left, what comes
    /// again marked is legal under a profile with `duplicates = "marked"`, and what comes before an answer counts.
    #[must_use]
    pub fn trips(self) -> &'static [Check] {
        match self {
            Self::LoseLive
            | Self::LoseOnResume
            | Self::DuplicateLive
            | Self::DuplicateOnResume
            | Self::IdsRestart
            | Self::ForgetLog
            | Self::SkipEvicted
            | Self::AckThenLose
            | Self::NeverCatchUp
            | Self::LiveNotResubscribed
            | Self::Conflict
            | Self::CorruptFrame
            | Self::GapAtHandoff
            | Self::SilentOldest
            | Self::UnknownIsNow
            | Self::LyingSession
            | Self::Zombie => &[Check::ExactlyOnce],
            Self::LiveOvertakes => &[Check::ExactlyOnce, Check::Order],
            Self::Reorder => &[Check::Order],
            Self::ResetAlways | Self::PartialWithFlag => &[Check::Resets],
            Self::RefuseSome | Self::AcceptThenClose => &[Check::AllReconnected],
            Self::DieAgain => &[Check::Relapse],
            Self::SlowAccept | Self::HalfOpen | Self::LegalRedelivery | Self::DataBeforeAck => &[],
        }
    }

    /// What one line of its ledger stands for.
    #[must_use]
    pub fn ledger(self) -> Ledger {
        match self {
            Self::LoseLive
            | Self::LoseOnResume
            | Self::IdsRestart
            | Self::ForgetLog
            | Self::SkipEvicted
            | Self::NeverCatchUp
            | Self::LiveNotResubscribed
            | Self::CorruptFrame
            | Self::GapAtHandoff
            | Self::SilentOldest
            | Self::UnknownIsNow
            | Self::LyingSession
            | Self::Zombie => Ledger::Lost,
            Self::AckThenLose => Ledger::LostEverywhere,
            Self::DuplicateLive | Self::DuplicateOnResume => Ledger::Duplicated,
            Self::Reorder => Ledger::Reordered,
            Self::Conflict => Ledger::Conflict,
            Self::LiveOvertakes => Ledger::Overtaken,
            Self::LegalRedelivery => Ledger::Redelivered,
            Self::ResetAlways | Self::PartialWithFlag => Ledger::Resets,
            Self::RefuseSome => Ledger::NeverBack,
            Self::AcceptThenClose => Ledger::Flapped,
            Self::HalfOpen => Ledger::HalfOpen,
            Self::SlowAccept | Self::DieAgain | Self::DataBeforeAck => Ledger::Uncounted,
        }
    }
}

/// What a defect's argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Taken where the user gives none; at least 1.
    pub default: u64,
    /// What the number counts.
    pub meaning: &'static str,
}

/// Which number of `summary.json` must equal the number of a defect's ledger lines, in a run with one outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ledger {
    /// `delivery.lost`.
    Lost,
    /// `delivery.lost` is this many times the number of clients: a line is a publication that nobody gets.
    LostEverywhere,
    /// `delivery.duplicated`.
    Duplicated,
    /// `delivery.reordered`.
    Reordered,
    /// `delivery.conflict`.
    Conflict,
    /// `delivery.redelivered`.
    Redelivered,
    /// `delivery.duplicated` and `delivery.reordered`, each.
    Overtaken,
    /// Sessions that were reset.
    Resets,
    /// Dropped clients that never came back.
    NeverBack,
    /// Flapped sessions, and dials that the end of the run cut off: at most one a client.
    Flapped,
    /// Sessions that herd closed as half-open: one for each client that is named, which has a line for every connection
    /// before the restart, that of herd's first look too.
    HalfOpen,
    /// No number: a line says that it acted.
    Uncounted,
}
