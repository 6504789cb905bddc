//! What a whole herd of clients with one policy will do after an outage: when they are back, how far spread, how many
//! at once.
//!
//! It knows the policy and the time that the server was down, nothing of what happened. The distribution of one
//! client's return is propagated on a grid rather than drawn, because what is asked of it lies where no sample reaches:
//! the 99.99 % quantile of the last of 100,000 clients is one client's at 1e-9. Drawing is kept for what has no closed
//! form: policies whose delays depend on each other. The server is taken to refuse every dial at once while it is down, and
//! to open every one after.

use std::time::Duration;

use super::{Backoff, Ending, Mix, Next, Passed, Retries, Window, patience};

/// The finest cell of the grid.
const FINEST: f64 = 1e-3;
/// About how many cells the grid may have.
const CELLS: f64 = 250_000.0;
/// How much work the propagation may do, in cells, before it settles for an upper bound.
const WORK: usize = 60_000_000;
/// What is so improbable that it is left out; far below 1e-4 / 1e5.
const NEVER: f64 = 1e-15;
/// How many clients are drawn where the distribution has no closed form, and how many retries of theirs at most.
const DRAWN: (u32, u64) = (50_000, 4_000_000);
/// A client that has retried so often will do so for ever.
const RETRIES: u32 = 1_000_000;
/// The seed of every draw here: a forecast must not depend on the run.
const SEED: u64 = 0x6865_7264;

/// When one client is back after an outage, counted from its drop, given that it comes back at all.
#[derive(Debug, Clone)]
pub struct Forecast {
    /// Seconds in a cell.
    cell: f64,
    /// Where cell 0 begins: nobody is back before. Without it a long wait that all share would make the cells too wide to
    /// show how they differ.
    origin: Duration,
    /// The first cell that holds anything.
    first: usize,
    /// The probability of each cell from there on; they add up to 1.
    mass: Vec<f64>,
    /// What lies before each cell; one longer than `mass`.
    before: Vec<f64>,
    /// Below which probability draws show nothing, and when everybody who comes back is back for certain.
    blind: Option<(f64, Duration)>,
}

/// One policy's part of a forecast.
enum Law<'a> {
    /// To be propagated on the grid.
    Exact(&'a Backoff),
    /// The first retry comes when the server is back, and is uniform in this window.
    First(Window),
    /// As it was drawn.
    Drawn {
        returns: Vec<Duration>,
        latest: Duration,
    },
}

impl<'a> Law<'a> {
    fn of(policy: &'a Backoff, down: Duration) -> Self {
        if policy.is_uniform() {
            let first = policy.bounds(0);
            let retries = policy.limits.attempts != Some(0);
            return if first.least >= down && !first.most.is_zero() && retries {
                Self::First(first)
            } else {
                Self::Exact(policy)
            };
        }
        let (clients, most) = DRAWN;
        let (mut returns, mut retries) = (Vec::new(), 0);
        for client in 1..=clients {
            // Each in a world of its own: what clients share at a drop must not be shared by all draws.
            let (at, made) = back(policy, client, down, client);
            returns.push(at);
            retries += u64::from(made);
            if retries > most && client >= 1_000 {
                break;
            }
        }
        // Whoever gave up keeps its place, or those who did not would weigh too much in a mix.
        let returns = returns
            .into_iter()
            .map(|at| at.unwrap_or(Duration::MAX))
            .collect();
        Self::Drawn {
            returns,
            latest: patience::latest(policy, down),
        }
    }

    /// Between what instants the grid must reach, counted from the drop.
    fn reach(&self, down: Duration) -> (Duration, Duration) {
        match self {
            Self::Exact(policy) => {
                let attempts =
                    (0..16).filter(|n| policy.limits.attempts.is_none_or(|most| *n < most));
                let longest = attempts.map(|n| policy.bounds(n).most).max();
                (
                    Duration::ZERO,
                    down.saturating_add(longest.unwrap_or_default()),
                )
            }
            Self::First(window) => (window.least, window.most),
            Self::Drawn { returns, .. } => {
                let back = returns.iter().copied().filter(|at| *at < Duration::MAX);
                let first = back.clone().min().unwrap_or_default();
                (first, back.max().unwrap_or_default())
            }
        }
    }

    /// Adds its share to a grid whose cell 0 begins at `origin`.
    fn land(
        &self,
        down: Duration,
        (origin, cell): (Duration, f64),
        share: f64,
        landed: &mut Vec<f64>,
    ) {
        let place =
            |at: Duration| (at.saturating_sub(origin).as_secs_f64() / cell).round() as usize;
        match self {
            Self::Exact(policy) => {
                let cells = (down.as_secs_f64() / cell).ceil() as usize;
                for (at, mass) in propagate(policy, cells, cell).into_iter().enumerate() {
                    add(landed, at, share * mass);
                }
            }
            Self::First(window) => {
                let from = place(window.least);
                let to = place(window.most).max(from + 1);
                for at in from..to {
                    add(landed, at, share / (to - from) as f64);
                }
            }
            Self::Drawn { returns, .. } => {
                let mass = share / returns.len().max(1) as f64;
                for at in returns.iter().filter(|at| **at < Duration::MAX) {
                    add(landed, place(*at), mass);
                }
            }
        }
    }
}

impl Forecast {
    /// The return of a client that dropped at 0, from a server that is down until `down`. None where the policies give
    /// up (or never wait) so that nobody comes back.
    #[must_use]
    pub fn new(mix: &Mix, down: Duration) -> Option<Self> {
        let laws: Vec<_> = mix
            .parts()
            .iter()
            .map(|part| (part.share, Law::of(&part.backoff, down)))
            .collect();
        let reaches: Vec<_> = laws.iter().map(|(_, law)| law.reach(down)).collect();
        let origin = reaches.iter().map(|(from, _)| *from).min()?;
        let latest = reaches.iter().map(|(_, to)| *to).max()?;
        let cell = FINEST.max(latest.saturating_sub(origin).as_secs_f64() / CELLS);
        let mut landed = Vec::new();
        for (share, law) in &laws {
            law.land(down, (origin, cell), *share, &mut landed);
        }
        let total: f64 = landed.iter().sum();
        if total < 1e-12 {
            return None;
        }
        let first = landed.iter().position(|p| *p > 0.0)?;
        let mass: Vec<f64> = landed[first..].iter().map(|p| p / total).collect();
        let mut sum = 0.0;
        let mut before = vec![0.0];
        before.extend(mass.iter().map(|p| {
            sum += p;
            sum
        }));
        let drawn = |law: &Law<'_>| match law {
            Law::Exact(_) | Law::First(_) => None,
            Law::Drawn { returns, latest } => Some((1.0 / returns.len().max(1) as f64, *latest)),
        };
        let blind = laws.iter().filter_map(|(share, law)| {
            let (one, latest) = drawn(law)?;
            Some((share * one, latest))
        });
        Some(Self {
            cell,
            origin,
            first,
            mass,
            before,
            blind: blind.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))),
        })
    }

    /// Within what time the last of `clients` is back with this probability (0 to 1).
    #[must_use]
    pub fn last_return(&self, clients: u32, quantile: f64) -> Duration {
        // The last is back when all are, F(x)^n = q: look for the tail 1 - q^(1/n) from the far end, where it is exact.
        let tail = -(quantile.ln() / f64::from(clients.max(1))).exp_m1();
        if let Some((least, latest)) = self.blind
            && tail < least
        {
            return latest;
        }
        let mut sum = 0.0;
        let beyond = self.mass.iter().rev().take_while(|p| {
            sum += **p;
            sum <= tail
        });
        let cells = self.mass.len() - beyond.count();
        self.origin + self.seconds(self.first + cells)
    }

    /// The probability that `clients` come back within less than `span` of each other.
    #[must_use]
    pub fn span_below(&self, clients: u32, span: Duration) -> f64 {
        match (span.as_secs_f64() / self.cell - 1e-6).ceil() as usize {
            0 => 0.0,
            cells => self.span_within(clients, cells - 1),
        }
    }

    /// The span that `clients` stay below with this probability (0 to 1), and no more.
    #[must_use]
    pub fn span_quantile(&self, clients: u32, quantile: f64) -> Duration {
        let (mut low, mut high) = (0, self.mass.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.span_within(clients, middle) >= quantile {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.seconds(low)
    }

    /// The share of very many clients that come back in the busiest window of this length.
    #[must_use]
    pub fn peak(&self, window: Duration) -> f64 {
        let cells = ((window.as_secs_f64() / self.cell).round() as usize).max(1);
        (0..self.mass.len())
            .map(|i| self.before[(i + cells).min(self.mass.len())] - self.before[i])
            .fold(0.0, f64::max)
    }

    /// Whoever is first, all others lie within `cells` after it: summed over where the first may be, which is exact for
    /// a discrete distribution, ties included.
    fn span_within(&self, clients: u32, cells: usize) -> f64 {
        let n = f64::from(clients);
        let sum: f64 = (0..self.mass.len())
            .filter(|i| self.mass[*i] > 0.0)
            .map(|i| {
                let end = self.before[(i + cells + 1).min(self.mass.len())];
                let (with, without) = (end - self.before[i], end - self.before[i + 1]);
                with.max(0.0).powf(n) - without.max(0.0).powf(n)
            })
            .sum();
        sum.clamp(0.0, 1.0)
    }

    fn seconds(&self, cells: usize) -> Duration {
        Duration::from_secs_f64(cells as f64 * self.cell)
    }
}

/// Within what time after the drop the last of `clients` is back with probability `quantile` (0 to 1), given that they
/// come back at all; none where nobody does.
#[must_use]
pub fn last_return(mix: &Mix, clients: u32, down: Duration, quantile: f64) -> Option<Duration> {
    Forecast::new(mix, down).map(|f| f.last_return(clients, quantile))
}

/// One draw of when each of `clients` is back, in the order of the clients; those that give up are left out. The same
/// `draw` gives the same instants.
#[must_use]
pub fn returns(mix: &Mix, clients: u32, down: Duration, draw: u32) -> Vec<Duration> {
    (1..=clients)
        .filter_map(|client| back(mix.of(client), client, down, draw).0)
        .collect()
}

/// When a client is back, none = never, and how many retries that took.
fn back(policy: &Backoff, client: u32, down: Duration, draw: u32) -> (Option<Duration>, u32) {
    let mut retries = Retries::new(SEED ^ u64::from(draw) << 32, client);
    retries.dropped();
    let (mut at, mut ending) = (Duration::ZERO, Ending::Lost);
    for made in 1..RETRIES {
        let passed = Passed {
            away: at,
            since_dial: Duration::ZERO,
        };
        let Next::Wait { delay, .. } = retries.next(policy, ending, passed) else {
            return (None, made);
        };
        at = at.saturating_add(delay);
        ending = Ending::Unconnected;
        if at >= down {
            return (Some(at), made);
        }
    }
    (None, RETRIES)
}

/// The distribution of the first dial at or after cell `down`, in cells from the drop.
fn propagate(policy: &Backoff, down: usize, cell: f64) -> Vec<f64> {
    let mut landed = Vec::new();
    let (mut from, mut away) = (0, vec![1.0]);
    let mut work = 0;
    for attempt in 0.. {
        if policy.limits.attempts.is_some_and(|most| attempt >= most) {
            break;
        }
        let window = policy.bounds(attempt);
        let cells = |delay: Duration| (delay.as_secs_f64() / cell).round() as usize;
        let mut least = cells(window.least);
        if cells(window.most) <= 1 && !window.most.is_zero() {
            // A delay shorter than a cell must still get on.
            least = 1;
        }
        let most = cells(window.most).max(least + 1);
        work += away.len() + most - least;
        if work > WORK || attempt > RETRIES {
            // Nothing here is later than this, so that a limit made of it errs on the lenient side.
            add(&mut landed, down + most, away.iter().sum());
            break;
        }
        let next = spread(&away, least, most);
        (from, away) = land(next, from + least, down, &mut landed);
        if away.iter().sum::<f64>() < NEVER {
            break;
        }
    }
    landed
}

/// Delays every cell's mass by `least..most` cells, each as probable; the result begins `least` cells later.
fn spread(away: &[f64], least: usize, most: usize) -> Vec<f64> {
    let width = most - least;
    let mut sums = Vec::with_capacity(away.len() + 1);
    sums.push(0.0);
    for p in away {
        sums.push(sums[sums.len() - 1] + p);
    }
    (0..away.len() + width - 1)
        .map(|k| {
            let upper = sums[(k + 1).min(away.len())];
            let lower = sums[(k + 1).saturating_sub(width).min(away.len())];
            (upper - lower).max(0.0) / width as f64
        })
        .collect()
}

/// Splits what begins at cell `from` at the cell `down`: what lies behind has come back. Returns the rest, trimmed.
fn land(mut next: Vec<f64>, from: usize, down: usize, landed: &mut Vec<f64>) -> (usize, Vec<f64>) {
    let split = down.saturating_sub(from).min(next.len());
    for (i, p) in next[split..].iter().enumerate() {
        add(landed, from + split + i, *p);
    }
    next.truncate(split);
    let trim = next
        .iter()
        .position(|p| *p > NEVER * NEVER)
        .unwrap_or(next.len());
    next.drain(..trim);
    (from + trim, next)
}

fn add(cells: &mut Vec<f64>, at: usize, mass: f64) {
    if mass > 0.0 {
        if cells.len() <= at {
            cells.resize(at + 1, 0.0);
        }
        cells[at] += mass;
    }
}

#[cfg(test)]
mod tests;
