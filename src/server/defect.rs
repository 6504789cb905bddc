//! The planted bugs of the reference server: what a user can name. Which checks each must trip, and what its ledger
//! counts, is in `defect/declared.rs`.
//!
//! Names and declarations only; where each one bites is the server's business, and the simulator's model
//! server's. The rule that keeps priming out of every count: what is done to a subscriber is done only to one that
//! resumed, because a client that carries a cursor has been primed.

mod declared;
mod planted;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use declared::{Argument, Ledger};
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
    /// The log is read, then live events are subscribed to: what is published in between is in neither.
    GapAtHandoff,
    /// Whoever can't be resumed gets everything from the oldest kept event on, and no reset.
    SilentOldest,
    /// The server loses its ids in a restart, and an id that it doesn't know is taken for "from now".
    UnknownIsNow,
    /// A live event is sent while the replay is going on, and then again in it.
    LiveOvertakes,
    /// A resumed subscriber is told that it has caught up, and gets nothing of what it missed.
    LyingSession,
    /// After a restart resumed subscribers get pings and nothing else.
    Zombie,
    /// A cursor that is too old is answered by a reset, and by what is left.
    PartialWithFlag,
    /// A resumed subscriber gets some events again, marked as such.
    LegalRedelivery,
    /// A resumed subscriber gets events before it is told that it is resumed.
    DataBeforeAck,
}

impl Defect {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 28] = [
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
        Self::GapAtHandoff,
        Self::SilentOldest,
        Self::UnknownIsNow,
        Self::LiveOvertakes,
        Self::LyingSession,
        Self::Zombie,
        Self::PartialWithFlag,
        Self::LegalRedelivery,
        Self::DataBeforeAck,
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
            Self::GapAtHandoff => "gap-at-handoff",
            Self::SilentOldest => "silent-oldest",
            Self::UnknownIsNow => "unknown-is-now",
            Self::LiveOvertakes => "live-overtakes",
            Self::LyingSession => "lying-session",
            Self::Zombie => "zombie",
            Self::PartialWithFlag => "partial-with-flag",
            Self::LegalRedelivery => "legal-redelivery",
            Self::DataBeforeAck => "data-before-ack",
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
            Self::GapAtHandoff => {
                "what is published between a resumed subscriber's replay and its live events is in neither"
            }
            Self::SilentOldest => {
                "any cursor that can't be honoured gets all from the oldest kept event on and no reset \
                 (skip-evicted still resets one that was never given)"
            }
            Self::UnknownIsNow => {
                "after a restart all ids are new ones, and an id of before means from now, silently"
            }
            Self::LiveOvertakes => {
                "a live event is sent before the replay's last one, and again behind it"
            }
            Self::LyingSession => {
                "a resumed subscriber is told that it has caught up, and gets nothing of what it missed"
            }
            Self::Zombie => "after a restart resumed subscribers get pings and nothing else",
            Self::PartialWithFlag => {
                "a cursor older than what is kept gets a reset and then what is left"
            }
            Self::LegalRedelivery => {
                "a resumed subscriber gets its last events again, marked as redelivered; \
                 legal where the profile says so"
            }
            Self::DataBeforeAck => {
                "a resumed subscriber is told that it has caught up only after a live event"
            }
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
