//! The planted bugs of the reference server: what a user can name, and which checks each must trip.
//!
//! Names and declarations only; where each one bites is the server's business, and the simulator's model server's.

use serde::{Deserialize, Serialize};

use crate::check::Check;

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

    /// The checks that it trips, no others.
    #[must_use]
    pub fn trips(self) -> &'static [Check] {
        &[Check::ExactlyOnce]
    }
}
