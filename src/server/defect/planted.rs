//! A defect with its argument: how a user names it, and the draw that decides where it acts. The draw depends on the seed
//! and on what it is asked about, never on when it is asked.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use super::{Argument, Defect};

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
