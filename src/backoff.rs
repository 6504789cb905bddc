//! When to dial again: a pure function of the attempt, the policy and one random number.
//!
//! No clock, no sockets, nothing of herd's other parts. Randomness is addressed, not streamed: the number for a given
//! (seed, client, drop, attempt) is the same in every process, shard and simulation. `backoff/presets.rs` holds the
//! named policies as data, `backoff/forecast.rs` what a whole herd of them will do, `backoff/patience.rs` how long to wait
//! for one.

pub mod forecast;
pub mod patience;
pub mod presets;

use std::time::Duration;

use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

pub use presets::Preset;

/// A reconnect policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// How long to wait before retry n.
    pub delay: Delay,
    /// How many attempts in a row may fail before the client gives up; none = it never does.
    pub max_attempts: Option<u32>,
    /// What sets n back to 0.
    pub reset: Reset,
}

/// How long to wait before retry n = 0, 1, 2, ...
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// `uniform(0, min(cap, base x factor^n))`: "full jitter" of M. Brooker, "Exponential Backoff And Jitter", AWS
    /// Architecture Blog, 2015.
    FullJitter {
        /// The first window.
        base: Duration,
        /// What each failure multiplies it by, at least 1.
        factor: f64,
        /// The largest window.
        cap: Duration,
    },
    /// `min(cap, base x factor^n) x (1 +- jitter)`, uniform; the cap comes before the jitter.
    Exponential {
        /// The first delay.
        base: Duration,
        /// What each failure multiplies it by, at least 1.
        factor: f64,
        /// The largest delay, before jitter.
        cap: Duration,
        /// The relative half-width of the jitter, 0 to 1.
        jitter: f64,
    },
    /// Always the same, `x (1 +- jitter)`.
    Fixed {
        /// The delay.
        delay: Duration,
        /// The relative half-width of the jitter, 0 to 1.
        jitter: f64,
    },
    /// At once after a drop, then every [`IMMEDIATE_FLOOR`].
    Immediate,
}

/// What an immediate client waits between two failed attempts. Without a floor a refused connect on loopback comes back
/// in microseconds and herd would measure its own CPU; a client over a real network is slower than this anyway.
pub const IMMEDIATE_FLOOR: Duration = Duration::from_millis(10);

/// The longest delay of a sound policy: a year.
pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What sets the attempt count back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// An open connection.
    OnOpen,
    /// A connection that stayed open this long.
    AfterUptime(Duration),
}

/// The bounds of a delay: it is uniform in `[least, most]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The shortest delay.
    pub least: Duration,
    /// The longest delay.
    pub most: Duration,
}

impl Backoff {
    /// The window that the delay before retry `attempt` (from 0) is drawn from; none = give up.
    #[must_use]
    pub fn window(&self, attempt: u32) -> Option<Window> {
        if self.max_attempts.is_some_and(|max| attempt >= max) {
            return None;
        }
        Some(match &self.delay {
            Delay::FullJitter { base, factor, cap } => Window {
                least: Duration::ZERO,
                most: exponential(*base, *factor, *cap, attempt),
            },
            Delay::Exponential {
                base,
                factor,
                cap,
                jitter,
            } => around(exponential(*base, *factor, *cap, attempt), *jitter),
            Delay::Fixed { delay, jitter } => around(*delay, *jitter),
            Delay::Immediate => {
                let delay = if attempt == 0 {
                    Duration::ZERO
                } else {
                    IMMEDIATE_FLOOR
                };
                Window {
                    least: delay,
                    most: delay,
                }
            }
        })
    }

    /// Whether it is a policy at all: delays between 1 ms and [`LONGEST`], which a jitter of 0 to 1 and a factor of at least
    /// 1 keep so. A policy read from a file may be anything, and the other functions here hold only for one that is sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let lasts = |delay: &Duration| (Duration::from_millis(1)..=LONGEST).contains(delay);
        let share = |jitter: &f64| (0.0..=1.0).contains(jitter);
        let grows = |factor: &f64| factor.is_finite() && *factor >= 1.0;
        match &self.delay {
            Delay::FullJitter { base, factor, cap } => lasts(base) && lasts(cap) && grows(factor),
            Delay::Exponential {
                base,
                factor,
                cap,
                jitter,
            } => lasts(base) && lasts(cap) && grows(factor) && share(jitter),
            Delay::Fixed { delay, jitter } => lasts(delay) && share(jitter),
            Delay::Immediate => true,
        }
    }

    /// The delay before retry `attempt` (from 0) for a random number in `[0, 1)`; none = give up.
    #[must_use]
    pub fn delay(&self, attempt: u32, random: f64) -> Option<Duration> {
        self.window(attempt).map(|w| w.at(random))
    }
}

impl Window {
    /// The delay at a fraction of the window, to the microsecond.
    #[must_use]
    pub fn at(self, fraction: f64) -> Duration {
        let (least, most) = (self.least.as_micros() as f64, self.most.as_micros() as f64);
        Duration::from_micros((least + (most - least) * fraction) as u64)
    }
}

fn exponential(base: Duration, factor: f64, cap: Duration, attempt: u32) -> Duration {
    let grown = base.as_secs_f64() * factor.powf(f64::from(attempt));
    Duration::try_from_secs_f64(grown)
        .unwrap_or(Duration::MAX)
        .min(cap)
}

fn around(delay: Duration, jitter: f64) -> Window {
    Window {
        least: delay.mul_f64(1.0 - jitter),
        most: delay.mul_f64(1.0 + jitter),
    }
}

/// Where a random number stands: the same address gives the same number everywhere and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The run's seed.
    pub seed: u64,
    /// The client, from 1.
    pub client: u32,
    /// Which loss of connection, from 1; 0 = the first connect.
    pub drop: u32,
    /// Which retry since the count was reset, from 0.
    pub attempt: u32,
}

impl Address {
    /// The number at this address, in `[0, 1)` with 53 bits.
    #[must_use]
    pub fn random(self) -> f64 {
        let key = [
            u64::from(self.client),
            u64::from(self.drop) << 32 | u64::from(self.attempt),
        ]
        .into_iter()
        .fold(self.seed, |state, word| mix(state ^ mix(word)));
        (rand_pcg::Pcg64Mcg::seed_from_u64(key).next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) with its
/// increment, so that neighbouring addresses give unrelated seeds.
fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secs(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }

    #[test]
    fn full_jitter_doubles_its_window_up_to_the_cap() {
        let policy = Preset::FullJitter.backoff();
        let most: Vec<_> = (0..6)
            .map(|n| policy.window(n).unwrap().most.as_secs())
            .collect();
        assert_eq!(most, [5, 10, 20, 40, 60, 60]);
        assert_eq!(policy.window(4_000_000).unwrap().most, secs(60.0));
        assert_eq!(policy.window(3).unwrap().least, Duration::ZERO);
    }

    #[test]
    fn exponential_25_grows_by_two_and_gives_up_after_twelve() {
        let policy = Preset::Exponential25.backoff();
        assert_eq!(
            policy.window(0),
            Some(Window {
                least: secs(0.75),
                most: secs(1.25)
            })
        );
        assert_eq!(
            policy.window(5),
            Some(Window {
                least: secs(22.5),
                most: secs(37.5)
            })
        );
        assert!(policy.window(11).is_some());
        assert_eq!(policy.window(12), None);
    }

    #[test]
    fn a_policy_that_would_never_wait_or_wait_less_than_nothing_is_none() {
        for preset in Preset::ALL {
            assert!(preset.backoff().is_sound(), "{}", preset.name());
        }
        let fixed = |delay, jitter| Backoff {
            delay: Delay::Fixed { delay, jitter },
            max_attempts: None,
            reset: Reset::OnOpen,
        };
        for jitter in [-0.1, 1.1, f64::NAN] {
            assert!(!fixed(secs(1.0), jitter).is_sound(), "{jitter}");
        }
        assert!(!fixed(Duration::ZERO, 0.0).is_sound() && !fixed(Duration::MAX, 0.5).is_sound());
        for factor in [0.9, f64::NAN, f64::INFINITY] {
            let (base, cap) = (secs(1.0), secs(9.0));
            let delay = Delay::FullJitter { base, factor, cap };
            let policy = Backoff {
                delay,
                ..fixed(base, 0.0)
            };
            assert!(!policy.is_sound(), "{factor}");
        }
    }

    #[test]
    fn a_jitter_of_zero_means_zero() {
        let policy = Backoff {
            delay: Delay::Fixed {
                delay: secs(2.0),
                jitter: 0.0,
            },
            max_attempts: None,
            reset: Reset::OnOpen,
        };
        assert_eq!(policy.delay(7, 0.999), Some(secs(2.0)));
    }

    /// The numbers themselves are a contract: a stored seed must replay on every machine and with every later herd.
    #[test]
    fn the_generator_is_portable() {
        let draw = |client, drop, attempt| {
            (Address {
                seed: 42,
                client,
                drop,
                attempt,
            }
            .random()
                * 1e6) as u64
        };
        let drawn = [
            draw(1, 0, 0),
            draw(1, 1, 0),
            draw(2, 1, 0),
            draw(1, 1, 1),
            draw(1000, 3, 12),
        ];
        assert_eq!(drawn, FINGERPRINT);
    }

    const FINGERPRINT: [u64; 5] = [96_457, 371_996, 707_934, 343_512, 373_006];

    proptest! {
        #[test]
        fn a_delay_lies_in_its_window(n in 0u32..40, client in 1u32..100_000, seed: u64) {
            for preset in Preset::ALL {
                let policy = preset.backoff();
                let random = Address { seed, client, drop: 1, attempt: n }.random();
                prop_assert!((0.0..1.0).contains(&random));
                if let (Some(w), Some(d)) = (policy.window(n), policy.delay(n, random)) {
                    prop_assert!(w.least <= d + Duration::from_micros(1) && d <= w.most);
                }
            }
        }
    }
}
