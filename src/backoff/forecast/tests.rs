//! What a herd will do, against closed forms and against drawing.

use super::*;
use crate::backoff::{Growth, presets};
use proptest::prelude::*;

fn secs(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

fn mix(preset: &str) -> Mix {
    presets::find(preset).unwrap().mix()
}

fn forecast(preset: &str, down: f64) -> Forecast {
    Forecast::new(&mix(preset), secs(down)).unwrap()
}

fn span(returns: &[Duration]) -> Duration {
    *returns.iter().max().unwrap() - *returns.iter().min().unwrap()
}

#[test]
fn full_jitter_from_a_server_that_is_back_at_once_never_reaches_its_own_window() {
    let f = forecast("full-jitter", 0.0);
    for clients in [10, 1_000, 100_000] {
        assert_eq!(f.span_below(clients, secs(5.0)), 1.0);
        let n = f64::from(clients);
        let expected = 5.0 * (n - 1.0) / (n + 1.0);
        let median = f.span_quantile(clients, 0.5).as_secs_f64();
        assert!(
            (median - expected).abs() < 0.15,
            "{clients}: {median} {expected}"
        );
    }
}

/// The number of rule 4: it is that of a server down for a second.
#[test]
fn ten_clients_with_full_jitter_miss_five_seconds_in_about_forty_of_a_hundred_runs() {
    let missed = forecast("full-jitter", 1.0).span_below(10, secs(5.0));
    assert!((0.3..0.5).contains(&missed), "{missed}");
    assert!(forecast("full-jitter", 1.0).span_below(1_000, secs(5.0)) < 1e-9);
}

#[test]
fn exponential_25_after_two_seconds_comes_back_within_one_and_a_half_88_percent_in_one() {
    let f = forecast("exponential-25", 2.0);
    let span = f.span_quantile(1_000, 0.5).as_secs_f64();
    assert!((1.3..1.51).contains(&span), "{span}");
    let peak = f.peak(secs(1.0));
    assert!((0.83..0.93).contains(&peak), "{peak}");
}

#[test]
fn full_jitter_peaks_below_a_third() {
    let peak = forecast("full-jitter", 1.0).peak(secs(1.0));
    assert!((0.2..0.33).contains(&peak), "{peak}");
}

/// A wait that all share moves the herd and doesn't draw it together, however long it is.
#[test]
fn a_long_wait_that_all_share_changes_no_span() {
    for hours in [0, 1, 24, 1_000] {
        let mut policy = mix("full-jitter").of(1).clone();
        policy.then.plus = Duration::from_secs(hours * 3_600 + 2);
        let f = Forecast::new(&Mix::one("later", policy), secs(1.0)).unwrap();
        let span = f.span_quantile(200, 0.5).as_secs_f64();
        assert!(
            (span - 5.0 * 199.0 / 201.0).abs() < 0.05,
            "{hours} h: {span}"
        );
        let last = f.last_return(200, 0.5).as_secs_f64() - hours as f64 * 3_600.0;
        assert!((6.9..7.01).contains(&last), "{hours} h: {last}");
    }
}

#[test]
fn clients_without_jitter_all_come_back_at_once() {
    for (preset, down, at) in [
        ("immediate", 0.0, 0.0),
        ("immediate", 1.0, 1.0),
        ("fixed", 2.5, 3.0),
        ("exponential", 2.5, 3.0),
    ] {
        let f = forecast(preset, down);
        assert_eq!(f.span_quantile(1_000, 1.0), Duration::ZERO, "{preset:?}");
        assert_eq!(f.peak(secs(1.0)), 1.0);
        let last = f.last_return(1_000, 0.9999).as_secs_f64();
        assert!((last - at).abs() < 0.05, "{preset:?} {last}");
    }
}

#[test]
fn nobody_comes_back_once_all_have_given_up() {
    let policy = mix("exponential-25");
    assert_eq!(last_return(&policy, 10, secs(3_600.0), 0.9999), None);
    let mut never_waits = Backoff::new(Vec::new(), Growth::fixed(Duration::ZERO));
    never_waits.limits.attempts = Some(5);
    let never_waits = Mix::one("never waits", never_waits);
    assert_eq!(last_return(&never_waits, 10, secs(1.0), 0.9999), None);
}

/// Conditional on coming back: after 5 minutes some of exponential-25's twelve tries are spent.
#[test]
fn those_who_give_up_do_not_count() {
    let policy = mix("exponential-25");
    let down = secs(265.0);
    let drawn = returns(&policy, 20_000, down, 1);
    assert!((1..20_000).contains(&drawn.len()), "{}", drawn.len());
    let last = last_return(&policy, 1, down, 0.5).unwrap().as_secs_f64();
    let mut sorted = drawn;
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2].as_secs_f64();
    assert!((last - median).abs() < 1.0, "{last} {median}");
}

#[test]
fn the_last_of_very_many_lies_where_no_sample_reaches() {
    let f = forecast("full-jitter", 1.0);
    let (few, many) = (f.last_return(10, 0.9999), f.last_return(100_000, 0.9999));
    assert!(few < many && many < secs(61.0), "{few:?} {many:?}");
    assert!(many > secs(20.0));
}

#[test]
fn the_same_draw_gives_the_same_instants() {
    let policy = mix("full-jitter");
    let draw = |k| returns(&policy, 50, secs(1.0), k);
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Where a sample does reach, it agrees: the median of the last, and of the span, over 400 draws.
    #[test]
    fn the_grid_agrees_with_drawing(
        preset in proptest::sample::select(vec!["full-jitter", "exponential-25"]),
        clients in 2u32..60,
        down in 0.0f64..4.0,
    ) {
        let (policy, down) = (mix(preset), secs(down));
        let f = Forecast::new(&policy, down).unwrap();
        let draws: Vec<_> = (0..400).map(|k| returns(&policy, clients, down, k)).collect();
        let below = |at: Duration, of: &dyn Fn(&[Duration]) -> Duration| {
            draws.iter().filter(|d| of(d) <= at).count() as f64 / 400.0
        };
        // The grid is a few milliseconds wide, and near an edge many clients lie within those: the drawn median must
        // lie between one such step below and one above.
        let slack = Duration::from_millis(3);
        let agrees = |at: Duration, of: &dyn Fn(&[Duration]) -> Duration| {
            below(at.saturating_sub(slack), of) < 0.62 && below(at + slack, of) > 0.38
        };
        let last = |d: &[Duration]| *d.iter().max().unwrap();
        prop_assert!(agrees(f.last_return(clients, 0.5), &last), "last");
        prop_assert!(agrees(f.span_quantile(clients, 0.5), &span), "span");
    }
}
