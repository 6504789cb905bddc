//! The policies of one herd: one for all, or several in fixed shares.
//!
//! It knows which client has which policy, nothing of what a policy says.

use serde::{Deserialize, Serialize};

use super::Backoff;

/// The policies of a herd, at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    parts: Vec<Part>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name, for people.
    pub name: String,
    /// Which share of the clients has it, above 0 to 1.
    pub share: f64,
    /// The policy.
    pub backoff: Backoff,
}

/// The fraction of the golden ratio: multiples of it fill the unit interval most evenly (Weyl's sequence), so that any range
/// of client numbers, and any shard, holds the policies in their shares.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Mix {
    /// One policy for all.
    #[must_use]
    pub fn one(name: &str, backoff: Backoff) -> Self {
        Self {
            parts: vec![Part {
                name: name.to_owned(),
                share: 1.0,
                backoff,
            }],
        }
    }

    /// Several; none where there are none, where one is twice, or where the shares don't add up to 1 within a thousandth.
    #[must_use]
    pub fn new(parts: Vec<Part>) -> Option<Self> {
        let mix = Self { parts };
        mix.is_sound().then_some(mix)
    }

    /// The policy of a client, by its number from 1.
    #[must_use]
    pub fn of(&self, client: u32) -> &Backoff {
        &self.parts[self.part(client)].backoff
    }

    /// Which of [`Mix::parts`] a client has, by its number from 1.
    #[must_use]
    pub fn part(&self, client: u32) -> usize {
        let place = (f64::from(client) * GOLDEN).fract();
        let mut sum = 0.0;
        let shares = self.parts.iter().map(|part| {
            sum += part.share;
            sum
        });
        let below = shares.take_while(|sum| *sum <= place).count();
        below.min(self.parts.len() - 1)
    }

    /// All of them.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Its name: that of the policy, or each with its share.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.parts[..] {
            [one] => one.name.clone(),
            several => {
                let named = several
                    .iter()
                    .map(|part| format!("{} {:.0}%", part.name, part.share * 100.0));
                named.collect::<Vec<_>>().join(" + ")
            }
        }
    }

    /// Whether it is one at all; one that is read from a file may be anything.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let sum: f64 = self.parts.iter().map(|part| part.share).sum();
        let whole = |share: f64| share > 0.0 && share <= 1.0;
        !self.parts.is_empty()
            && (sum - 1.0).abs() < 1e-3
            && self
                .parts
                .iter()
                .all(|part| whole(part.share) && part.backoff.is_sound())
    }
}
