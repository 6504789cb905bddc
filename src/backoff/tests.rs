//! The form of a policy in isolation: bounds, soundness, and the numbers themselves.

use super::*;
use proptest::prelude::*;

fn secs(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

fn policy(name: &str) -> Backoff {
    (presets::find(name).unwrap().policy)()
}

fn address(seed: u64, client: u32, attempt: u32) -> Address {
    Address {
        seed,
        client,
        drop: 1,
        attempt,
    }
}

#[test]
fn full_jitter_doubles_its_window_up_to_the_cap() {
    let policy = policy("full-jitter");
    let most: Vec<_> = (0..6).map(|n| policy.bounds(n).most.as_secs()).collect();
    assert_eq!(most, [5, 10, 20, 40, 60, 60]);
    assert_eq!(policy.bounds(4_000_000).most, secs(60.0));
    assert_eq!(policy.bounds(3).least, Duration::ZERO);
}

#[test]
fn exponential_25_grows_by_two_and_gives_up_after_twelve() {
    let policy = policy("exponential-25");
    let window = |least, most| Window {
        least: secs(least),
        most: secs(most),
    };
    assert_eq!(policy.bounds(0), window(0.75, 1.25));
    assert_eq!(policy.bounds(5), window(22.5, 37.5));
    let mut retries = Retries::new(1, 1);
    let mut next = || retries.next(&policy, Ending::Unconnected, Passed::default());
    assert!((0..12).all(|_| matches!(next(), Next::Wait { .. })));
    assert_eq!(next(), Next::GiveUp);
}

#[test]
fn a_policy_that_would_never_wait_or_wait_less_than_nothing_is_none() {
    for preset in presets::all() {
        assert!((preset.policy)().is_sound(), "{}", preset.name);
    }
    let fixed = |delay, jitter| {
        let then = Growth {
            jitter,
            ..Growth::fixed(delay)
        };
        Backoff::new(Vec::new(), then)
    };
    for jitter in [-0.1, 1.1, f64::NAN] {
        assert!(
            !fixed(secs(1.0), Jitter::Ratio(jitter)).is_sound(),
            "{jitter}"
        );
    }
    assert!(!fixed(Duration::ZERO, Jitter::None).is_sound());
    assert!(!fixed(Duration::MAX, Jitter::Full).is_sound());
    for factor in [0.9, f64::NAN, f64::INFINITY] {
        let then = Growth::new(secs(1.0), factor, secs(9.0), Jitter::Full);
        assert!(!Backoff::new(Vec::new(), then).is_sound(), "{factor}");
    }
}

#[test]
fn a_jitter_of_zero_means_zero() {
    let then = Growth {
        jitter: Jitter::Ratio(0.0),
        ..Growth::fixed(secs(2.0))
    };
    let ask = Ask {
        attempt: 7,
        previous: None,
        base: None,
        address: address(3, 4, 7),
    };
    assert_eq!(Backoff::new(Vec::new(), then).delay(&ask), secs(2.0));
}

/// The numbers themselves are a contract: a stored seed must replay on every machine and with every later herd.
#[test]
fn the_generator_is_portable() {
    let draw = |client, drop, attempt| {
        let address = Address {
            seed: 42,
            client,
            drop,
            attempt,
        };
        (address.random() * 1e6) as u64
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

/// A dial that would come behind the limit is not waited for.
#[test]
fn who_may_be_away_so_long_dials_no_later() {
    let mut policy = Backoff::new(Vec::new(), Growth::fixed(secs(1.0)));
    policy.limits.elapsed = Some(secs(2.5));
    let mut retries = Retries::new(1, 1);
    let mut at = |away: f64| {
        let passed = Passed {
            away: secs(away),
            since_dial: Duration::ZERO,
        };
        matches!(
            retries.next(&policy, Ending::Unconnected, passed),
            Next::Wait { .. }
        )
    };
    assert_eq!([at(0.0), at(1.0), at(2.0)], [true, true, false]);
}

#[test]
fn a_mix_gives_every_range_of_clients_its_shares() {
    let part = |name: &str, share| Part {
        name: name.into(),
        share,
        backoff: policy(name),
    };
    let mix = Mix::new(vec![part("phoenix", 0.7), part("socketio", 0.3)]).unwrap();
    for from in [1, 333, 90_001] {
        let first = (from..from + 1_000).filter(|k| mix.part(*k) == 0).count();
        assert!((695..=705).contains(&first), "{first}");
    }
    assert_eq!(mix.name(), "phoenix 70% + socketio 30%");
    assert!(Mix::new(vec![part("phoenix", 0.7), part("socketio", 0.4)]).is_none());
    assert!(Mix::new(vec![part("phoenix", 1.1), part("socketio", -0.1)]).is_none());
    assert!(Mix::new(Vec::new()).is_none());
}

proptest! {
    #[test]
    fn a_delay_lies_in_its_bounds(n in 0u32..40, client in 1u32..100_000, seed: u64) {
        for preset in presets::all() {
            let policy = (preset.policy)();
            let mut previous = None;
            for attempt in 0..=n {
                let address = address(seed, client, attempt);
                let drawn = policy.delay(&Ask { attempt, previous, base: None, address });
                let bounds = policy.bounds(attempt);
                let slack = Duration::from_millis(1);
                prop_assert!(
                    bounds.least <= drawn + slack && drawn <= bounds.most + slack,
                    "{} {attempt}: {drawn:?} not in {bounds:?}", preset.name
                );
                previous = Some(drawn);
            }
        }
    }
}
