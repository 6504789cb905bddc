//! The delays behind the first ones: `base x factor^n`, capped before or after a jitter.
//!
//! It knows neither what a client is nor how many retries it may make.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Address, Ask, LONGEST, Window};

/// `min(ceiling, plus + jitter(min(cap, base x factor^n)))` for n = 0, 1, 2, ...
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The first delay. Where it is a window, each client draws its own once, for all of its drops.
    pub base: Window,
    /// What becomes of it from retry to retry.
    pub grows: Grows,
    /// The largest delay before jitter.
    pub cap: Option<Duration>,
    /// What randomness makes of it.
    pub jitter: Jitter,
    /// What is added to all that.
    pub plus: Duration,
    /// The largest delay at last.
    pub ceiling: Option<Duration>,
}

/// How a delay grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grows {
    /// `x factor^n`, the factor at least 1.
    Times(f64),
    /// `x ln(n + 1)`.
    Log,
}

/// What randomness makes of a delay v. Numbers are uniform; shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// v.
    None,
    /// `U[0, v)`: "full jitter" of M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    Full,
    /// `v/2 + U[0, v/2)`: "equal jitter" of the same article.
    Equal,
    /// `U[base, previous x factor)`, "decorrelated jitter" of the same article; the first previous delay is the base.
    Decorrelated,
    /// `v x (1 +- share)`.
    Ratio(f64),
    /// The same, from the previous delay: what one draw brought stays in all later ones.
    Compounding(f64),
    /// `v x (1 - U[0, share))`.
    Less(f64),
    /// `v x (1 + U[0, share))`.
    More(f64),
    /// `v +- d`.
    PlusMinus(Duration),
    /// `v + U[least, most)`.
    Plus(Window),
    /// `v + U[0, d)`, drawn again as long as the next draw is greater: nats.js draws anew after each sleep.
    Climbing(Duration),
    /// `(v + U[0, v)) x (1 +- share)`.
    Doubled(f64),
    /// `v - or + floor(share x r x v)` in ms, minus where `floor(10 r)` is even: one number gives size and sign (backo2).
    Comb(f64),
}

impl Growth {
    /// `base x factor^n` up to a cap.
    #[must_use]
    pub const fn new(base: Duration, factor: f64, cap: Duration, jitter: Jitter) -> Self {
        Self {
            base: Window::exactly(base),
            grows: Grows::Times(factor),
            cap: Some(cap),
            jitter,
            plus: Duration::ZERO,
            ceiling: None,
        }
    }

    /// Always the same.
    #[must_use]
    pub const fn fixed(delay: Duration) -> Self {
        Self::new(delay, 1.0, delay, Jitter::None)
    }

    /// The same with a server's `retry:` for its base; a cap below that is raised.
    #[must_use]
    pub fn rebased(&self, base: Duration) -> Self {
        let raise = |cap: Duration| cap.max(base);
        Self {
            base: Window::exactly(base),
            cap: self.cap.map(raise),
            ceiling: self.ceiling.map(raise),
            ..self.clone()
        }
    }

    /// The delay of retry `n` of this form, n from 0.
    #[must_use]
    pub fn delay(&self, n: u32, ask: &Ask) -> Duration {
        let base = self.base(ask.address);
        let mut draws = ask.address.generator();
        let previous = ask.previous.filter(|before| n > 0 && !before.is_zero());
        let v = self.curve(base, n).as_micros() as u64 as f64;
        let micros = match (self.jitter, previous) {
            (Jitter::Decorrelated, previous) => {
                let (base, previous) = (base.as_micros() as u64 as f64, previous.unwrap_or(base));
                let most = previous.as_micros() as u64 as f64 * self.factor();
                self.capped(base + (most.max(base) - base) * draws.unit())
            }
            (Jitter::Compounding(share), Some(previous)) => {
                let grown = previous.as_micros() as u64 as f64 * self.factor();
                self.capped(grown * (1.0 - share + 2.0 * share * draws.unit()))
            }
            (jitter, _) => jitter.of(v, &mut draws),
        };
        let delay = Duration::from_micros(micros as u64).saturating_add(self.plus);
        self.ceiling.map_or(delay, |ceiling| delay.min(ceiling))
    }

    /// Within what bounds the delay of retry `n` lies, n from 0.
    #[must_use]
    pub fn bounds(&self, n: u32) -> Window {
        let (least, most) = (
            self.curve(self.base.least, n),
            self.curve(self.base.most, n),
        );
        let cap = self.cap.unwrap_or(LONGEST);
        let window = match self.jitter {
            Jitter::Decorrelated => Window {
                least: self.base.least.min(cap),
                most: exponential(self.base.most, self.factor(), self.cap, n.saturating_add(1)),
            },
            Jitter::Compounding(share) => {
                let all = |one: f64| one.powf(f64::from(n) + 1.0);
                Window {
                    least: times(least, all(1.0 - share)).min(cap),
                    most: times(most, all(1.0 + share)).min(cap),
                }
            }
            jitter => Window {
                least: jitter.bounds(least).least,
                most: jitter.bounds(most).most,
            },
        };
        let last = |delay: Duration| {
            let delay = delay.saturating_add(self.plus);
            self.ceiling.map_or(delay, |ceiling| delay.min(ceiling))
        };
        Window {
            least: last(window.least),
            most: last(window.most),
        }
    }

    pub(super) fn is_uniform(&self) -> bool {
        let one_draw = !matches!(
            self.jitter,
            Jitter::Decorrelated
                | Jitter::Compounding(_)
                | Jitter::Climbing(_)
                | Jitter::Doubled(_)
                | Jitter::Comb(_)
        );
        one_draw && self.base.least == self.base.most && self.ceiling.is_none()
    }

    pub(super) fn is_sound(&self) -> bool {
        let lasts = |delay: Duration| (Duration::from_millis(1)..=LONGEST).contains(&delay);
        let grows = match self.grows {
            Grows::Times(factor) => factor.is_finite() && factor >= 1.0,
            Grows::Log => true,
        };
        self.base.is_sound()
            && lasts(self.base.least)
            && grows
            && self.cap.is_none_or(lasts)
            && self.ceiling.is_none_or(lasts)
            && self.plus <= LONGEST
            && self.jitter.is_sound()
    }

    fn base(&self, address: Address) -> Duration {
        if self.base.least == self.base.most {
            self.base.least
        } else {
            self.base.at(address.once())
        }
    }

    fn curve(&self, base: Duration, n: u32) -> Duration {
        match self.grows {
            Grows::Times(factor) => exponential(base, factor, self.cap, n),
            Grows::Log => times(base, (f64::from(n) + 1.0).ln()).min(self.cap.unwrap_or(LONGEST)),
        }
    }

    fn factor(&self) -> f64 {
        match self.grows {
            Grows::Times(factor) => factor,
            Grows::Log => 1.0,
        }
    }

    fn capped(&self, micros: f64) -> f64 {
        micros.min(self.cap.unwrap_or(LONGEST).as_micros() as u64 as f64)
    }
}

impl Jitter {
    /// What becomes of a delay of `v` microseconds.
    fn of(self, v: f64, draws: &mut super::Draws) -> f64 {
        match self {
            Self::None => v,
            Self::Comb(share) => comb(v / 1e3, share, draws.unit()) * 1e3,
            Self::Climbing(most) => {
                let mut drawn = draws.unit();
                loop {
                    let next = draws.unit();
                    if next <= drawn {
                        return v + most.as_micros() as u64 as f64 * drawn;
                    }
                    drawn = next;
                }
            }
            Self::Doubled(share) => {
                let left = v + v * draws.unit();
                left * (1.0 - share + 2.0 * share * draws.unit())
            }
            Self::Compounding(share) => Self::Ratio(share).of(v, draws),
            _ => {
                let window = self.bounds(Duration::from_micros(v as u64));
                window.at(draws.unit()).as_micros() as u64 as f64
            }
        }
    }

    /// The bounds of what becomes of a delay.
    fn bounds(self, v: Duration) -> Window {
        let (least, most) = match self {
            Self::None => (v, v),
            Self::Full => (Duration::ZERO, v),
            Self::Equal => (v / 2, v),
            Self::Ratio(share) | Self::Compounding(share) | Self::Comb(share) => {
                (times(v, 1.0 - share), times(v, 1.0 + share))
            }
            Self::Less(share) => (times(v, 1.0 - share), v),
            Self::More(share) => (v, times(v, 1.0 + share)),
            Self::PlusMinus(by) => (v.saturating_sub(by), v.saturating_add(by)),
            Self::Plus(by) => (v.saturating_add(by.least), v.saturating_add(by.most)),
            Self::Climbing(by) => (v, v.saturating_add(by)),
            Self::Doubled(share) => (times(v, 1.0 - share), times(v, 2.0 + 2.0 * share)),
            // Of the previous delay, not of this one: the growth knows its bounds.
            Self::Decorrelated => (v, v),
        };
        Window { least, most }
    }

    fn is_sound(self) -> bool {
        match self {
            Self::None | Self::Full | Self::Equal | Self::Decorrelated => true,
            Self::Ratio(share)
            | Self::Compounding(share)
            | Self::Less(share)
            | Self::More(share)
            | Self::Doubled(share)
            | Self::Comb(share) => (0.0..=1.0).contains(&share),
            Self::PlusMinus(by) | Self::Climbing(by) => by <= LONGEST,
            Self::Plus(by) => by.is_sound(),
        }
    }
}

/// `min(cap, base x factor^n)`.
pub(super) fn exponential(base: Duration, factor: f64, cap: Option<Duration>, n: u32) -> Duration {
    times(base, factor.powf(f64::from(n))).min(cap.unwrap_or(LONGEST))
}

/// What an overflow comes to is capped anyway.
fn times(delay: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(delay.as_secs_f64() * by).unwrap_or(LONGEST)
}

/// backo2's jitter of `v` ms: ten bands, since the first decimal of the number decides the sign and all of it the size.
fn comb(v: f64, share: f64, random: f64) -> f64 {
    let deviation = (random * share * v).floor();
    let signed = if ((random * 10.0).floor() as u32).is_multiple_of(2) {
        v - deviation
    } else {
        v + deviation
    };
    signed.trunc()
}
