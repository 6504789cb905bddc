//! The planted bugs of the reference server: what a user can name, which checks each must trip, and what its ledger
//! counts.
//!
//! Names, declarations and the draw only; where each one bites is the server's business, and the simulator's model
//! server's. The rule that keeps priming out of every count: what is done to a subscriber is done only to one that
//! resumed, because a client that carries a cursor has been primed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

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

/// A defect with its argument, as `--defect NAME[=ARG]` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Planted {
    /// Which.
    pub defect: Defect,
    /// Its argument, at least 1; 1 where it takes none.
    pub arg: u64,
}

impl Planted {
    /// The defect with its default argument.
    #[must_use]
    pub fn new(defect: Defect) -> Self {
        let arg = defect.argument().map_or(1, |argument| argument.default);
        Self { defect, arg }
    }

    /// Whether it acts on this (client, event) pair: one in `arg`, drawn from the seed, so that every process draws
    /// the same. Meaningful for defects whose argument is "one in so many".
    #[must_use]
    pub fn hits(&self, seed: u64, client: u64, id: u64) -> bool {
        self.draw(seed, client, id).is_multiple_of(self.arg.max(1))
    }

    /// Whether it acts on this client: one in every `arg` consecutive numbers, which one the seed decides. Not a draw
    /// for each, so that 20 clients at one in 20 hold exactly one.
    #[must_use]
    pub fn picks(&self, seed: u64, client: u64) -> bool {
        let n = self.arg.max(1);
        client % n == self.draw(seed, 0, 0) % n
    }

    /// A number that depends on everything given, and on the defect.
    #[must_use]
    pub fn draw(&self, seed: u64, client: u64, id: u64) -> u64 {
        let mut key = [0; 32];
        let parts = [seed, self.defect as u64, client, id];
        for (to, part) in key.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&part.to_le_bytes());
        }
        xxh3_64(&key)
    }
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.defect.argument() {
            Some(_) => write!(f, "{}={}", self.defect, self.arg),
            None => write!(f, "{}", self.defect),
        }
    }
}

/// Why a text names no planted defect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlantError {
    /// There is no such defect.
    #[error("no defect is called {0:?}; herd list defects shows them")]
    Unknown(String),
    /// The argument is no whole number from 1.
    #[error("{defect}={given:?} is not a whole number from 1; give {meaning}, such as {default}")]
    Argument {
        /// Which defect.
        defect: Defect,
        /// What was given.
        given: String,
        /// What the argument counts.
        meaning: &'static str,
        /// Its default.
        default: u64,
    },
    /// The defect takes no argument.
    #[error("{0} takes no argument; leave out what follows the =")]
    NoArgument(Defect),
}

impl FromStr for Planted {
    type Err = PlantError;

    fn from_str(text: &str) -> Result<Self, PlantError> {
        let (name, arg) = match text.split_once('=') {
            Some((name, arg)) => (name, Some(arg)),
            None => (text, None),
        };
        let defect = Defect::ALL
            .into_iter()
            .find(|defect| defect.name() == name)
            .ok_or_else(|| PlantError::Unknown(name.into()))?;
        match (arg, defect.argument()) {
            (None, _) => Ok(Self::new(defect)),
            (Some(_), None) => Err(PlantError::NoArgument(defect)),
            (Some(given), Some(Argument { default, meaning })) => match given.parse() {
                Ok(arg) if arg > 0 => Ok(Self { defect, arg }),
                _ => Err(PlantError::Argument {
                    defect,
                    given: given.into(),
                    meaning,
                    default,
                }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_is_parsed_from_its_name_and_shown_by_it() {
        for defect in Defect::ALL {
            let planted: Planted = defect.name().parse().unwrap();
            assert_eq!(planted, Planted::new(defect));
            assert_eq!(planted.to_string().parse(), Ok(planted));
            let json = serde_json::to_string(&defect).unwrap();
            assert_eq!(json, format!("{:?}", defect.name()));
        }
    }

    #[test]
    fn a_wrong_text_is_refused_with_what_would_be_right() {
        let said = |text: &str| text.parse::<Planted>().unwrap_err().to_string();
        insta::assert_snapshot!(
            [said("lose"), said("lose-live=0"), said("slow-accept=x"), said("forget-log=3")].join("\n"),
            @r#"
        no defect is called "lose"; herd list defects shows them
        lose-live="0" is not a whole number from 1; give one in so many (subscriber, event) pairs, such as 100
        slow-accept="x" is not a whole number from 1; give so many handshakes a second, such as 100
        forget-log takes no argument; leave out what follows the =
        "#
        );
        let planted: Planted = "slow-accept=7".parse().unwrap();
        assert_eq!((planted.defect, planted.arg), (Defect::SlowAccept, 7));
    }

    #[test]
    fn one_in_so_many_is_hit_and_the_seed_decides_which() {
        let planted: Planted = "lose-live=50".parse().unwrap();
        let hits = |seed| (0..100).flat_map(move |c| (0..100).map(move |id| (seed, c, id)));
        let count = hits(1).filter(|&(s, c, id)| planted.hits(s, c, id)).count();
        assert!((140..=260).contains(&count), "{count} of 10,000");
        assert!(hits(1).any(|(_, c, id)| planted.hits(1, c, id) != planted.hits(2, c, id)));
        let some: Planted = "refuse-some=20".parse().unwrap();
        for seed in 0..10 {
            assert_eq!((1..=40).filter(|&c| some.picks(seed, c)).count(), 2);
        }
    }
}
