//! The planted bugs of the reference server: what a user can name, which checks each must trip, and what its ledger
//! counts.
//!
//! Names and declarations only; where each one bites is the server's business, and the simulator's model
//! server's. The rule that keeps priming out of every count: what is done to a subscriber is done only to one that
//! resumed, because a client that carries a cursor has been primed.

mod planted;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::Check;

pub use planted::{PlantError, Planted};

/// A planted misbehaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// Now and then a live event isn't sent to a subscriber.
    LoseLive,
    /// A replay leaves out one event.
    LoseOnResume,
    /// Now and then a live event is sent twice.
    DuplicateLive,
    /// The classic off by one: a replay includes the cursor's own event.
    DuplicateOnResume,
    /// Now and then two neighbours are sent in the wrong order.
    Reorder,
    /// Numbering starts again after a restart, and `id > after` stays silent until it has caught up.
    IdsRestart,
    /// The history is gone after a restart, and nothing says so.
    ForgetLog,
    /// Every resume is answered by a reset.
    ResetAlways,
    /// A cursor older than what is kept gets the oldest kept events and no reset.
    SkipEvicted,
    /// Now and then a publication is acknowledged and never stored.
    AckThenLose,
    /// A resumed subscriber gets live events, but never what it missed.
    NeverCatchUp,
    /// A resumed subscriber gets the right replay, then silence.
    LiveNotResubscribed,
    /// Some subscribers are refused with 503 for ever after the restart.
    RefuseSome,
    /// After a restart connections are accepted and closed at once, for a while.
    AcceptThenClose,
    /// The accept loop takes its time, so that opened looks spread out though dialled is not.
    SlowAccept,
    /// The server dies again while it recovers.
    DieAgain,
    /// An id comes again with another content.
    Conflict,
    /// Now and then a frame is cut short.
    CorruptFrame,
    /// After a restart some old sockets stay open with nobody behind them.
    HalfOpen,
}

impl Defect {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 19] = [
        Self::LoseLive,
        Self::LoseOnResume,
        Self::DuplicateLive,
        Self::DuplicateOnResume,
        Self::Reorder,
        Self::IdsRestart,
        Self::ForgetLog,
        Self::ResetAlways,
        Self::SkipEvicted,
        Self::AckThenLose,
        Self::NeverCatchUp,
        Self::LiveNotResubscribed,
        Self::RefuseSome,
        Self::AcceptThenClose,
        Self::SlowAccept,
        Self::DieAgain,
        Self::Conflict,
        Self::CorruptFrame,
        Self::HalfOpen,
    ];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LoseLive => "lose-live",
            Self::LoseOnResume => "lose-on-resume",
            Self::DuplicateLive => "duplicate-live",
            Self::DuplicateOnResume => "duplicate-on-resume",
            Self::Reorder => "reorder",
            Self::IdsRestart => "ids-restart",
            Self::ForgetLog => "forget-log",
            Self::ResetAlways => "reset-always",
            Self::SkipEvicted => "skip-evicted",
            Self::AckThenLose => "ack-then-lose",
            Self::NeverCatchUp => "never-catch-up",
            Self::LiveNotResubscribed => "live-not-resubscribed",
            Self::RefuseSome => "refuse-some",
            Self::AcceptThenClose => "accept-then-close",
            Self::SlowAccept => "slow-accept",
            Self::DieAgain => "die-again",
            Self::Conflict => "conflict",
            Self::CorruptFrame => "corrupt-frame",
            Self::HalfOpen => "half-open",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::LoseLive => "now and then a live event isn't sent to a resumed subscriber",
            Self::LoseOnResume => "a replay leaves out one event",
            Self::DuplicateLive => {
                "now and then a live event is sent twice to a resumed subscriber"
            }
            Self::DuplicateOnResume => "a replay includes the cursor's own event",
            Self::Reorder => {
                "now and then two neighbouring live events are sent in the wrong order"
            }
            Self::IdsRestart => {
                "after a restart ids begin at 1 again, and a cursor of before hides all up to its number"
            }
            Self::ForgetLog => "after a restart a cursor of before it means from now, silently",
            Self::ResetAlways => "every resume is answered by a reset",
            Self::SkipEvicted => {
                "a cursor older than what is kept gets the oldest kept events and no reset"
            }
            Self::AckThenLose => {
                "now and then a publication is acknowledged, never stored and never sent"
            }
            Self::NeverCatchUp => "a resumed subscriber gets live events, never what it missed",
            Self::LiveNotResubscribed => {
                "a resumed subscriber gets the right replay, then silence; pings go on"
            }
            Self::RefuseSome => "after a restart some clients are refused with 503, for ever",
            Self::AcceptThenClose => {
                "after a restart connections are accepted and closed at once, for a while"
            }
            Self::SlowAccept => {
                "after a restart handshakes are answered at a limited rate, so that opened looks spread out"
            }
            Self::DieAgain => "the server dies once more while its clients come back",
            Self::Conflict => "now and then a live event's id is sent again with another content",
            Self::CorruptFrame => "now and then a live event's frame is cut short",
            Self::HalfOpen => "some sockets outlive the killed server, with nobody behind them",
        }
    }

    /// Its argument; none where it takes none.
    #[must_use]
    pub fn argument(self) -> Option<Argument> {
        let (default, meaning) = match self {
            Self::LoseLive | Self::DuplicateLive | Self::Conflict | Self::CorruptFrame => {
                (100, "one in so many (subscriber, event) pairs")
            }
            Self::Reorder => (50, "one in so many (subscriber, event) pairs"),
            Self::AckThenLose => (50, "one in so many publications"),
            Self::SkipEvicted => (40, "how many events are kept, instead of --keep"),
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
            | Self::LiveNotResubscribed => return None,
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
            | Self::HalfOpen => true,
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
            | Self::CorruptFrame => false,
        }
    }

    /// The checks that it must make fail under the default policy, no others. Where there are none, herd must not be
    /// misled by it: `slow-accept` must not hide a stampede, and `half-open` sockets must be noticed and left.
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
            | Self::CorruptFrame => &[Check::ExactlyOnce],
            Self::Reorder => &[Check::Order],
            Self::ResetAlways => &[Check::Resets],
            Self::RefuseSome | Self::AcceptThenClose => &[Check::AllReconnected],
            Self::DieAgain => &[Check::Relapse],
            Self::SlowAccept | Self::HalfOpen => &[],
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
            | Self::CorruptFrame => Ledger::Lost,
            Self::AckThenLose => Ledger::LostEverywhere,
            Self::DuplicateLive | Self::DuplicateOnResume => Ledger::Duplicated,
            Self::Reorder => Ledger::Reordered,
            Self::Conflict => Ledger::Conflict,
            Self::ResetAlways => Ledger::Resets,
            Self::RefuseSome => Ledger::NeverBack,
            Self::AcceptThenClose => Ledger::Flapped,
            Self::HalfOpen => Ledger::HalfOpen,
            Self::SlowAccept | Self::DieAgain => Ledger::Uncounted,
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
