//! The smallest first window with which a herd comes back no faster than its server accepts.
//!
//! Found by trying, since the busiest second of many random returns has no closed form. It knows full jitter and nothing
//! else: no policy with the same window spreads further.

use std::time::Duration;

use serde::Serialize;

use super::storm::tally::Tally;
use super::storm::{CUT, Limits, Storm};
use crate::backoff::{Backoff, Growth, Jitter, Mix};
use crate::error::Error;

/// How a window is counted.
const STEP: Duration = Duration::from_millis(100);
/// No window under this is looked at: a herd that small needs no advice.
const LEAST: u64 = 10;
/// No window over this, a day.
const MOST: u64 = 864_000;
/// The cap, unless the window is longer.
const CAP: Duration = Duration::from_secs(60);
/// How many clients are drawn for one window, over all of its seeds, and for the check at last.
const DRAWN: (u64, u64) = (5_000_000, 20_000_000);
/// How many dials one draw may make.
const DIALS: u64 = 300_000_000;

/// The window, and what it rests on. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Clients of the herd.
    pub clients: u32,
    /// How long the server is down.
    pub down_ms: u64,
    /// What the server accepts in a second.
    pub accept_rate: f64,
    /// The first window: a client waits uniform(0, base), doubled from retry to retry.
    pub base_ms: u64,
    /// The longest window.
    pub cap_ms: u64,
    /// Most clients back in any second, over all seeds of the search.
    pub peak_1s: u64,
    /// How many seeds the search tried each window with; with this window all of them stayed within the rate.
    pub seeds: u64,
    /// How many other seeds it was then tried with.
    pub checked: u64,
    /// How many of those stayed within the rate.
    pub checked_within: u64,
    /// When the last client was back, the latest of all seeds of the search, from the cut.
    pub last_ms: u64,
    /// From the server's return: no policy brings all of them back sooner at this rate.
    pub bound_ms: u64,
    /// The table of a scenario that says so.
    pub backoff: String,
}

/// What one window came to over several seeds.
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    within: u64,
    peak: u64,
    last: Duration,
}

/// Looks for the smallest window for a storm against a server that accepts `rate` connections a second, at least 1. The
/// storm's own policy and limits don't matter.
///
/// # Errors
/// [`Error::Usage`] where no window up to a day does, or where the rate is under one a second.
pub fn advise(storm: &Storm, rate: f64) -> Result<Advice, Error> {
    if rate < 1.0 {
        return Err(Error::Usage(format!(
            "--accept-rate: {rate}/s can't be told by counting seconds; advice needs 1/s or more"
        )));
    }
    let seeds = |drawn: u64, most| (drawn / u64::from(storm.clients)).clamp(3, most);
    let (tried, checked) = (seeds(DRAWN.0, 20), seeds(DRAWN.1, 100));
    let all = |steps: u64| -> Result<bool, Error> {
        let trial = trial(storm, rate, steps, 0..tried, Whole::UntilOneFails)?;
        Ok(trial.within == tried)
    };
    // Clients over the rate are seconds: half of that is surely too little.
    let guess = f64::from(storm.clients) / rate / 2.0 / STEP.as_secs_f64();
    let mut high = (guess as u64).clamp(LEAST, MOST);
    let mut low = LEAST - 1;
    while !all(high)? {
        if high >= MOST {
            return Err(Error::Usage(format!(
                "no first window up to a day brings {} clients back within {rate}/s; raise --accept-rate",
                storm.clients
            )));
        }
        (low, high) = (high, (high * 2).min(MOST));
    }
    while high - low > (high / 200).max(1) {
        let middle = low.midpoint(high);
        if all(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    let found = trial(storm, rate, high, 0..tried, Whole::All)?;
    let others = trial(storm, rate, high, tried..tried + checked, Whole::All)?;
    let (base, cap) = window(high);
    Ok(Advice {
        clients: storm.clients,
        down_ms: storm.down.as_millis() as u64,
        accept_rate: rate,
        base_ms: base.as_millis() as u64,
        cap_ms: cap.as_millis() as u64,
        peak_1s: found.peak,
        seeds: tried,
        checked,
        checked_within: others.within,
        last_ms: found.last.as_millis() as u64,
        bound_ms: (f64::from(storm.clients) / rate * 1e3) as u64,
        backoff: toml(base, cap),
    })
}

fn window(steps: u64) -> (Duration, Duration) {
    let base = STEP * steps as u32;
    (base, base.max(CAP))
}

fn toml(base: Duration, cap: Duration) -> String {
    let time = humantime::format_duration;
    format!(
        "[client.backoff]\npreset = \"full-jitter\"\nbase = \"{}\"\ncap = \"{}\"\n",
        time(base),
        time(cap)
    )
}

/// Whether a trial goes on when one seed has exceeded the rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    All,
    UntilOneFails,
}

fn trial(
    storm: &Storm,
    rate: f64,
    steps: u64,
    seeds: std::ops::Range<u64>,
    whole: Whole,
) -> Result<Trial, Error> {
    let (base, cap) = window(steps);
    let policy = Backoff::new(Vec::new(), Growth::new(base, 2.0, cap, Jitter::Full));
    let mut storm = Storm {
        mix: Mix::one("full-jitter", policy),
        outages: 1,
        limits: Limits::NONE,
        // Who is given up would not be counted.
        until: None,
        ..storm.clone()
    };
    let first = storm.seed;
    let mut trial = Trial::default();
    for seed in seeds {
        storm.seed = first.wrapping_add(seed);
        let (tally, course) =
            Tally::of(&storm, DIALS).map_err(|error| Error::Usage(error.to_string()))?;
        let peak = tally.back().peak(Duration::from_secs(1));
        trial.peak = trial.peak.max(peak);
        trial.last = trial.last.max(course.end.since(CUT));
        if peak as f64 <= rate {
            trial.within += 1;
        } else if whole == Whole::UntilOneFails {
            break;
        }
    }
    Ok(trial)
}

impl Advice {
    /// For people, with the table to paste at its end.
    #[must_use]
    pub fn text(&self) -> String {
        let time = |ms| humantime::format_duration(Duration::from_millis(ms)).to_string();
        let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1e3);
        format!(
            "first window {base}, cap {cap}: full jitter, so the first wait is uniform from 0 to {base}\n\n\
             {clients} clients, server down for {down}, at most {rate} connections in any second\n\
             with this window: at most {peak} in any second of {seeds} seeds, the last client back {last} after the cut\n\
             with {checked} other seeds: {within} of them stayed within the rate\n\
             {found}\n\
             lower bound: no policy brings {clients} clients back in less than {bound} after the server's return, which is {latest} \
             after the cut\n\n\
             {toml}",
            base = time(self.base_ms),
            cap = time(self.cap_ms),
            clients = self.clients,
            down = time(self.down_ms),
            rate = self.accept_rate,
            peak = self.peak_1s,
            seeds = self.seeds,
            last = seconds(self.last_ms),
            checked = self.checked,
            within = self.checked_within,
            bound = seconds(self.bound_ms),
            latest = seconds(self.bound_ms + self.down_ms),
            found = match self.base_ms == LEAST * STEP.as_millis() as u64 {
                true => "it is the shortest window that is looked at".to_owned(),
                false => format!(
                    "found by halving: half a percent less, and at least one of the {} seeds exceeds the rate",
                    self.seeds
                ),
            },
            toml = self.backoff,
        )
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> String {
        // Numbers and text are always JSON.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
