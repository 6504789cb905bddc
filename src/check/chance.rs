//! The rule of chance (rule 4 of judgement): whether luck could have done what was measured.
//!
//! It knows the policy, how many clients there were and how long the server was down; not what happened to any of them.
//! A Fail here means that a repeated run would fail again.

use std::time::Duration;

use super::Outcome;
use super::words::{percent, text};
use crate::backoff::Mix;
use crate::backoff::forecast::{self, Forecast};

/// "Many clients": what a policy can do at all, luck aside.
const MANY: u32 = 100_000;
/// In how many of all runs honest clients pass what is proposed as deciding.
const SURE: f64 = 0.99;
/// A span that honest clients stay below more rarely than this was made by something else. "Honest clients pass in 99 %
/// of runs" would not do: one honest run in a hundred would then be called a failure.
const FREAK: f64 = 1e-4;
/// What honest clients reach in fewer runs than this is no question of luck.
const NEVER: f64 = 0.005;
/// Up to how many clients a run with more of them is proposed.
const MOST_CLIENTS: u32 = 1_000_000;
/// How many returns may be drawn for one ruling.
const DRAWN: u32 = 400_000;

/// What the rule says of a limit that was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Fail, or Unknown where it may have been luck.
    pub outcome: Outcome,
    /// Why, and what would decide.
    pub why: String,
}

impl Ruling {
    fn fail(why: String) -> Self {
        Self {
            outcome: Outcome::Fail,
            why,
        }
    }

    fn unknown(why: String) -> Self {
        Self {
            outcome: Outcome::Unknown,
            why,
        }
    }
}

/// The clients that an honest run is imagined with.
#[derive(Debug, Clone)]
pub struct Herd<'a> {
    /// The policy's name, for people.
    pub name: &'a str,
    /// The policy; none where the history's can't be read.
    pub policy: Option<Mix>,
    /// How many were dropped.
    pub clients: u32,
    /// How many of them came back.
    pub back: u32,
    /// How long the server was down for them.
    pub down: Duration,
}

impl Herd<'_> {
    fn forecast(&self) -> Result<(&Mix, Forecast), Ruling> {
        let Some(policy) = &self.policy else {
            return Err(Ruling::unknown(
                "the history's reconnect policy can't be read, so chance can't be ruled out; judge it with the herd \
                 that wrote it"
                    .into(),
            ));
        };
        match Forecast::new(policy, self.down) {
            Some(forecast) => Ok((policy, forecast)),
            None => Err(Ruling::fail(format!(
                "{} gives up within a down time of {}, so luck can't explain it",
                self.name,
                text(self.down)
            ))),
        }
    }

    fn at(&self) -> String {
        format!("at a down time of {}", text(self.down))
    }
}

/// What to make of reconnects that lay within `measured`, which is less than `limit`.
#[must_use]
pub fn span(herd: &Herd<'_>, limit: Duration, measured: Duration) -> Ruling {
    let (policy, forecast) = match herd.forecast() {
        Ok(both) => both,
        Err(ruling) => return ruling,
    };
    let (name, at, n) = (herd.name, herd.at(), herd.clients);
    if forecast.span_below(MANY, limit.mul_f64(0.99)) > 0.5 {
        let most = text(forecast.span_quantile(MANY, 0.5));
        return Ruling::fail(format!(
            "{name} can't spread further than {most} {at}, however many clients"
        ));
    }
    if herd.back < n {
        return first_back(herd, policy, measured);
    }
    if forecast.span_below(n, measured + Duration::from_micros(1)) < FREAK {
        return Ruling::fail(format!(
            "{n} honest clients of {name} lie that close together in fewer than 1 of 10,000 runs {at}"
        ));
    }
    let reached = 1.0 - forecast.span_below(n, limit);
    let luck = if reached < NEVER {
        "not this run's fault"
    } else {
        "may be luck"
    };
    Ruling::unknown(format!(
        "{luck}: {n} honest clients of {name} miss {} in {} of runs {at}; {}",
        text(limit),
        percent(1.0 - reached),
        decider(&forecast, n, limit)
    ))
}

/// The same where not everybody came back: those who did are the first of the herd, and lie closer together than all of
/// it would, for instance because the server died again under them.
fn first_back(herd: &Herd<'_>, policy: &Mix, measured: Duration) -> Ruling {
    let (name, at, n, back) = (herd.name, herd.at(), herd.clients, herd.back);
    let draws = draws(n);
    let as_close = (0..draws).filter(|draw| {
        let mut returns = forecast::returns(policy, n, herd.down, *draw);
        returns.sort_unstable();
        let last = (back as usize).min(returns.len()).saturating_sub(1);
        returns
            .first()
            .is_none_or(|first| returns[last] - *first <= measured)
    });
    match as_close.count() {
        0 => Ruling::fail(format!(
            "in no draw of {draws} did the first {back} of {n} honest clients of {name} lie that close together {at}"
        )),
        _ => Ruling::unknown(format!(
            "only {back} of {n} came back, and the first {back} honest clients may lie so {at}"
        )),
    }
}

/// How many draws of so many clients one ruling may take.
fn draws(clients: u32) -> u32 {
    (DRAWN / clients.max(1)).clamp(20, 1_000)
}

/// The number of clients, or else the limit, with which honest clients would pass nearly always.
fn decider(forecast: &Forecast, clients: u32, limit: Duration) -> String {
    let enough = |n: u32| 1.0 - forecast.span_below(n, limit) >= SURE;
    let reachable = forecast.span_quantile(clients, 1.0 - SURE);
    let lower = format!("--min-spread {} would decide", flag(reachable));
    let mut high = clients.max(2);
    while !enough(high) {
        high = high.saturating_mul(2);
        if high > MOST_CLIENTS {
            return format!("{lower}; more clients would not");
        }
    }
    let mut low = high / 2;
    while high - low > high / 20 + 1 {
        let middle = low.midpoint(high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    if reachable.is_zero() {
        format!("--clients {high} would decide")
    } else {
        format!("--clients {high} or {lower}")
    }
}

/// What to make of a `measured` share of the clients in one window, which is more than the `limit`.
#[must_use]
pub fn peak(herd: &Herd<'_>, window: Duration, limit: f64, measured: f64) -> Ruling {
    let (policy, forecast) = match herd.forecast() {
        Ok(both) => both,
        Err(ruling) => return ruling,
    };
    let (name, at, n) = (herd.name, herd.at(), herd.clients.max(1));
    let many = forecast.peak(window);
    if many * 0.99 > limit {
        return Ruling::fail(format!(
            "{name} brings {} back within {} {at}, however many clients",
            percent(many),
            text(window)
        ));
    }
    let draws = draws(n);
    let mut over = 0;
    let mut as_much = 0;
    for draw in 0..draws {
        let mut returns = forecast::returns(policy, n, herd.down, draw);
        returns.sort_unstable();
        let share = busiest(&returns, window) as f64 / f64::from(n);
        over += u32::from(share > limit);
        as_much += u32::from(share >= measured);
    }
    if as_much == 0 {
        return Ruling::fail(format!(
            "no draw of {draws} of {n} honest clients of {name} came to {} {at}",
            percent(measured)
        ));
    }
    let share = f64::from(over) / f64::from(draws);
    Ruling::unknown(format!(
        "may be luck: {n} honest clients of {name} exceed {} in {} of runs {at}; more clients or a higher --max-peak \
         would decide",
        percent(limit),
        percent(share)
    ))
}

/// The most of these sorted instants in any window of this length.
fn busiest(sorted: &[Duration], window: Duration) -> usize {
    let mut from = 0;
    let mut most = 0;
    for (to, at) in sorted.iter().enumerate() {
        while from < to && *at - sorted[from] >= window {
            from += 1;
        }
        most = most.max(to + 1 - from);
    }
    most
}

/// A duration as a user would type it.
fn flag(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::presets;

    fn secs(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }

    fn herd(preset: &'static str, clients: u32, down: f64) -> Herd<'static> {
        Herd {
            name: preset,
            policy: Some(presets::find(preset).unwrap().mix()),
            clients,
            back: clients,
            down: secs(down),
        }
    }

    fn ruled(preset: &'static str, clients: u32, down: f64, measured: f64) -> Outcome {
        span(&herd(preset, clients, down), secs(5.0), secs(measured)).outcome
    }

    #[test]
    fn a_span_that_luck_explains_is_unknown_and_one_that_it_does_not_is_a_fail() {
        let cases = [
            // Ten clients down for a second miss 5 s in 40 % of runs.
            ("full-jitter", 10, 1.0, 4.1, Outcome::Unknown),
            // A thousand never do.
            ("full-jitter", 1_000, 1.0, 4.9, Outcome::Fail),
            // Back at once they always miss it by a little, and that is the limit's fault.
            ("full-jitter", 1_000, 0.0, 4.99, Outcome::Unknown),
            ("full-jitter", 10, 0.0, 4.1, Outcome::Unknown),
            // But not by that much.
            ("full-jitter", 1_000, 0.0, 1.0, Outcome::Fail),
            ("full-jitter", 10, 1.0, 0.2, Outcome::Fail),
            // No number of clients helps a policy that can't.
            ("exponential-25", 3, 2.0, 1.2, Outcome::Fail),
            ("immediate", 1, 1.0, 0.0, Outcome::Fail),
            // One client has no span.
            ("full-jitter", 1, 1.0, 0.0, Outcome::Unknown),
        ];
        for (preset, clients, down, measured, expected) in cases {
            let ruling = ruled(preset, clients, down, measured);
            assert_eq!(ruling, expected, "{preset:?} {clients} {down} {measured}");
        }
    }

    /// 60 clients reach 5 s in 99.6 % of runs: the other 0.4 % are honest too.
    #[test]
    fn a_rare_honest_run_is_no_failure() {
        let herd = herd("full-jitter", 60, 1.0);
        assert_eq!(span(&herd, secs(5.0), secs(4.9)).outcome, Outcome::Unknown);
        assert_eq!(span(&herd, secs(5.0), secs(2.0)).outcome, Outcome::Fail);
    }

    #[test]
    fn the_first_to_be_back_of_a_herd_that_was_cut_again_are_not_the_whole_herd() {
        let half = Herd {
            back: 100,
            ..herd("full-jitter", 200, 1.0)
        };
        assert_eq!(span(&half, secs(5.0), secs(2.4)).outcome, Outcome::Unknown);
        assert_eq!(span(&half, secs(5.0), secs(0.2)).outcome, Outcome::Fail);
        let nearly_all = Herd { back: 196, ..half };
        assert_eq!(
            span(&nearly_all, secs(5.0), secs(0.5)).outcome,
            Outcome::Fail
        );
    }

    #[test]
    fn it_names_what_would_decide() {
        insta::assert_snapshot!(
            span(&herd("full-jitter", 10, 1.0), secs(5.0), secs(4.1)).why, @"may be luck: 10 honest clients of full-jitter miss 5.00 s in 39.5 % of runs at a down time of 1.00 s; --clients 47 or --min-spread 2313ms would decide");
        insta::assert_snapshot!(
            span(&herd("full-jitter", 1_000, 0.0), secs(5.0), secs(4.99)).why, @"not this run's fault: 1000 honest clients of full-jitter miss 5.00 s in 100 % of runs at a down time of 0 ms; --min-spread 4967ms would decide; more clients would not");
        insta::assert_snapshot!(
            span(&herd("exponential-25", 1_000, 2.0), secs(5.0), secs(1.49)).why, @"exponential-25 can't spread further than 1.49 s at a down time of 2.00 s, however many clients");
    }

    #[test]
    fn a_peak_over_the_limit_is_a_fail_unless_so_few_clients_may_be_unlucky() {
        let ruled = |preset, clients, down, limit, measured| {
            peak(&herd(preset, clients, down), secs(1.0), limit, measured).outcome
        };
        let cases = [
            ("exponential-25", 1_000, 2.0, 0.75, 0.88, Outcome::Fail),
            ("full-jitter", 1_000, 1.0, 0.75, 0.8, Outcome::Fail),
            ("full-jitter", 20, 1.0, 0.75, 0.8, Outcome::Fail),
            ("full-jitter", 20, 1.0, 0.4, 0.45, Outcome::Unknown),
            ("full-jitter", 20, 1.0, 0.4, 1.0, Outcome::Fail),
        ];
        for (preset, clients, down, limit, measured, expected) in cases {
            let ruling = ruled(preset, clients, down, limit, measured);
            assert_eq!(ruling, expected, "{preset:?} {clients} {limit} {measured}");
        }
    }

    #[test]
    fn an_unreadable_policy_decides_nothing() {
        let herd = Herd {
            policy: None,
            ..herd("full-jitter", 10, 1.0)
        };
        assert_eq!(span(&herd, secs(5.0), secs(0.1)).outcome, Outcome::Unknown);
    }
}
