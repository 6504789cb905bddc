//! Each preset against the formula that its library's source gives: bounds, exact sequences, means and quantiles.

use std::collections::HashSet;

use super::*;
use crate::backoff::{Ending, Next, Passed, Retries, Says, retries};

/// The delays in ms of one client that is refused at once, until it gives up or `most` are there.
fn sequence(name: &str, client: u32, most: usize) -> Vec<f64> {
    drawn(name, client, 7, most)
}

fn drawn(name: &str, client: u32, seed: u64, most: usize) -> Vec<f64> {
    let policy = (find(name).unwrap().policy)();
    let mut retries = Retries::new(seed, client);
    retries.dropped();
    let (mut away, mut ending) = (Duration::ZERO, Ending::Lost);
    let mut delays = Vec::new();
    while delays.len() < most {
        let passed = Passed {
            away,
            since_dial: Duration::ZERO,
        };
        let Next::Wait { delay, .. } = retries.next(&policy, ending, passed) else {
            break;
        };
        delays.push(delay.as_micros() as f64 / 1e3);
        away += delay;
        ending = Ending::Unconnected;
    }
    delays
}

/// The sorted delays of 10,000 clients before retry n, in ms.
fn sample(name: &str, n: usize) -> Vec<f64> {
    let mut all: Vec<f64> = (1..=10_000)
        .map(|client| sequence(name, client, n + 1)[n])
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// A sample of a uniform distribution in `[least, most)`: its bounds, its mean and its quartiles within five standard errors.
fn assert_uniform(name: &str, n: usize, least: f64, most: f64) {
    let sample = sample(name, n);
    let (count, width) = (sample.len() as f64, most - least);
    assert!(
        sample[0] >= least - 0.002 && sample[sample.len() - 1] <= most,
        "{name} {n}: {} {}",
        sample[0],
        sample[sample.len() - 1]
    );
    let error = width / 12f64.sqrt() / count.sqrt();
    assert!(
        (mean(&sample) - (least + most) / 2.0).abs() < 5.0 * error,
        "{name} {n}: mean {}",
        mean(&sample)
    );
    for quarter in [0.25, 0.5, 0.75, 0.95] {
        let error = width * (quarter * (1.0 - quarter) / count).sqrt();
        let measured = sample[(quarter * count) as usize];
        assert!(
            (measured - least - quarter * width).abs() < 5.0 * error,
            "{name} {n}: quantile {quarter} {measured}"
        );
    }
}

#[test]
fn names_and_aliases_are_unique_and_found_in_any_case() {
    let mut seen = HashSet::new();
    for preset in all() {
        for name in std::iter::once(&preset.name).chain(preset.aliases) {
            assert!(seen.insert(name.to_lowercase()), "{name} twice");
            assert_eq!(find(&name.to_uppercase()).unwrap().name, preset.name);
        }
        assert!(
            !preset.library.is_empty() && !preset.version.is_empty() && !preset.source.is_empty()
        );
    }
    assert!(find("zigzag").is_none());
    let promised = "full-jitter exponential-25 socketio engineio reconnecting-websocket partysocket phoenix \
        phoenix-liveview actioncable actioncable-6 anycable signalr signalr-stateful graphql-ws graphql-ws-retry-all \
        graphql-sse subscriptions-transport-ws centrifuge pusher ably supabase nats mqttjs paho eventsource-chromium \
        eventsource-firefox eventsource-npm fetch-event-source launchdarkly eventsource-client-rs reqwest-eventsource \
        python-websockets python-socketio discordjs slack kafka kafkajs grpc aws-full aws-equal aws-decorrelated retry-after";
    for name in promised.split_whitespace() {
        assert_eq!(find(name).map(|preset| preset.name), Some(name));
    }
}

/// Where there is no randomness, the sequence is exact.
#[test]
fn policies_without_randomness_wait_exactly_so() {
    let cases: &[(&str, &[f64])] = &[
        (
            "partysocket",
            &[3000.0, 3900.0, 5070.0, 6591.0, 8568.3, 10000.0, 10000.0],
        ),
        (
            "phoenix",
            &[
                10.0, 50.0, 100.0, 150.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0, 5000.0,
            ],
        ),
        (
            "phoenix-liveview",
            &[
                10.0, 0.0, 10.0, 50.0, 100.0, 150.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0,
            ],
        ),
        ("supabase", &[1000.0, 2000.0, 5000.0, 10000.0, 10000.0]),
        ("pusher", &[1000.0, 0.0, 15000.0, 30000.0, 60000.0, 60000.0]),
        ("mqttjs", &[1000.0, 1000.0, 1000.0]),
        (
            "paho",
            &[
                1000.0, 2000.0, 4000.0, 8000.0, 16000.0, 32000.0, 64000.0, 120000.0, 120000.0,
            ],
        ),
        ("eventsource-chromium", &[3000.0, 3000.0]),
        ("eventsource-firefox", &[5000.0, 5000.0]),
        ("eventsource-npm", &[3000.0, 3000.0]),
        ("eventsource-npm-2", &[1000.0, 1000.0]),
        ("fetch-event-source", &[1000.0, 1000.0]),
        (
            "reqwest-eventsource",
            &[300.0, 600.0, 1200.0, 2400.0, 4800.0, 5000.0],
        ),
        ("discordjs", &[500.0, 500.0]),
        ("slack", &[5000.0, 1000.0, 1300.0, 1690.0]),
        ("fixed", &[1000.0, 1000.0]),
        (
            "exponential",
            &[1000.0, 2000.0, 4000.0, 8000.0, 16000.0, 30000.0],
        ),
        ("immediate", &[0.0, 10.0, 10.0]),
    ];
    for (name, expected) in cases {
        assert_eq!(sequence(name, 3, expected.len()), *expected, "{name}");
    }
    // These give up behind their list.
    let ends: &[(&str, &[f64])] = &[
        ("signalr", &[0.0, 2000.0, 10000.0, 30000.0]),
        ("signalr-stateful", &[0.0, 0.0, 2000.0, 10000.0, 30000.0]),
        ("engineio", &[]),
    ];
    for (name, expected) in ends {
        assert_eq!(sequence(name, 3, 100), *expected, "{name}");
    }
}

#[test]
fn uniform_delays_lie_in_their_windows() {
    let cases: &[(&str, usize, f64, f64)] = &[
        ("full-jitter", 0, 0.0, 5000.0),
        ("full-jitter", 5, 0.0, 60000.0),
        ("retry-after", 1, 0.0, 10000.0),
        ("exponential-25", 0, 750.0, 1250.0),
        ("exponential-25", 7, 22500.0, 37500.0),
        ("graphql-ws-retry-all", 0, 1300.0, 4000.0),
        ("graphql-sse", 4, 16300.0, 19000.0),
        ("centrifuge", 0, 500.0, 1000.0),
        ("centrifuge", 3, 500.0, 4500.0),
        ("ably", 1, 16000.0, 20000.0),
        ("ably", 2, 20000.0, 25000.0),
        ("ably", 3, 24000.0, 30000.0),
        ("python-websockets", 1, 0.0, 5000.0),
        ("python-socketio", 0, 500.0, 1500.0),
        ("python-socketio", 5, 4500.0, 5500.0),
        ("launchdarkly", 0, 500.0, 1000.0),
        ("launchdarkly", 9, 15000.0, 30000.0),
        ("eventsource-client-rs", 0, 500.0, 1000.0),
        ("eventsource-client-rs", 8, 30000.0, 60000.0),
        ("kafka", 0, 40.0, 60.0),
        ("kafkajs", 1, 240.0, 360.0),
        ("grpc", 2, 1280.0, 1920.0),
        ("aws-full", 2, 0.0, 4000.0),
        ("aws-equal", 2, 2000.0, 4000.0),
        ("aws-decorrelated", 0, 1000.0, 3000.0),
    ];
    for (name, n, least, most) in cases {
        assert_uniform(name, *n, *least, *most);
    }
}

/// Ten bands, and the share that stands at the cap: 30 % before retry 2, 90 % before retry 3, then all.
#[test]
fn socketio_draws_a_comb_that_dies_out() {
    let first = sample("socketio", 0);
    let band = |v: f64| {
        let below = (550.0..=1000.0).contains(&v);
        let above = (1050.0..1500.0).contains(&v);
        below || above
    };
    assert!(first.iter().all(|v| band(*v) && v.fract() == 0.0));
    // floor(10 r) = 9 adds between 45 and 50 %, 8 takes between 40 and 45 %: nothing lies between 55 % and 60 %.
    assert!(
        first.iter().all(|v| !(601.0..649.0).contains(v)),
        "the comb has no gap"
    );
    for (n, share) in [(2, 0.3), (3, 0.9), (4, 1.0)] {
        let capped = sample("socketio", n)
            .iter()
            .filter(|v| **v == 5000.0)
            .count();
        assert!((capped as f64 / 1e4 - share).abs() < 0.025, "{n}: {capped}");
    }
    let other = sample("subscriptions-transport-ws", 0);
    assert!(other[0] >= 55.0 && other[9_999] < 150.0);
    assert!(
        sample("subscriptions-transport-ws", 8)
            .iter()
            .all(|v| *v == 10000.0)
    );
}

#[test]
fn reconnecting_websocket_draws_its_base_once_for_all_drops() {
    assert_uniform("reconnecting-websocket", 0, 1000.0, 5000.0);
    for client in 1..200 {
        let delays = sequence("reconnecting-websocket", client, 4);
        for (n, delay) in delays.iter().enumerate() {
            let expected = (delays[0] * 1.3f64.powi(n as i32)).min(10000.0);
            assert!(
                (delay - expected).abs() < 0.01,
                "{client} {n}: {delay} {expected}"
            );
        }
    }
}

/// The first attempt at 6 s at the earliest and 18 s at the latest, 10.5 s in the middle; then a growing poll.
#[test]
fn actioncable_polls() {
    let mut first: Vec<f64> = (1..=10_000)
        .map(|client| drawn("actioncable", client, u64::from(client), 1)[0])
        .collect();
    first.sort_by(f64::total_cmp);
    assert!(
        first[0] >= 6000.0 && first[9_999] <= 18000.0,
        "{} {}",
        first[0],
        first[9_999]
    );
    assert!(
        (10_100.0..11_000.0).contains(&first[5_000]),
        "{}",
        first[5_000]
    );
    let legacy = sample("actioncable-6", 0);
    assert!(
        legacy[0] >= 6000.0 && legacy[9_999] <= 9466.0,
        "{} {}",
        legacy[0],
        legacy[9_999]
    );
    for client in 1..100 {
        let delays = sequence("actioncable", client, 14);
        for (n, delay) in delays.iter().enumerate().skip(1) {
            let of = |n: i32| 6000.0 * 1.15f64.powi(n.min(10));
            let (least, most) = (of(n as i32), of(n as i32 + 1) * 1.15);
            assert!((least - 0.01..=most).contains(delay), "{n}: {delay}");
        }
        let legacy = sequence("actioncable-6", client, 3);
        let of = |n: f64| 5000.0 * (n + 1.0).ln();
        let near = |v: f64, n: f64| (v - of(n)).abs() < 0.01;
        assert!(
            near(legacy[1], 1.0) || near(legacy[1], 2.0),
            "{}",
            legacy[1]
        );
    }
}

/// `(left + U left) x U[0.5, 1.5)`, left = 3 s x 2^n.
#[test]
fn anycable_doubles_for_ever() {
    for (n, left) in [(0, 3000.0), (5, 96000.0)] {
        let sample = sample("anycable", n);
        assert!(sample[0] >= left * 0.5 && sample[9_999] < left * 3.0);
        // The product of two independent draws with means 1.5 and 1.
        assert!(
            (mean(&sample) / left - 1.5).abs() < 0.03,
            "{}",
            mean(&sample) / left
        );
    }
}

/// The final draw X of "again while the next is greater" has the distribution function `(x - 1) e^x + 1`.
#[test]
fn nats_leans_to_the_end_of_its_jitter() {
    let delays = sequence("nats", 1, 100);
    assert_eq!((delays.len(), delays[0]), (10, 0.0));
    let sample = sample("nats", 1);
    assert!(sample[0] >= 2000.0 && sample[9_999] < 2100.0);
    for quantile in [0.25f64, 0.5, 0.75] {
        let x = (sample[(quantile * 1e4) as usize] - 2000.0) / 100.0;
        let reached = (x - 1.0) * x.exp() + 1.0;
        assert!((reached - quantile).abs() < 0.025, "{quantile}: {reached}");
    }
}

#[test]
fn kafka_and_its_namesake_keep_to_their_caps() {
    assert!(
        sample("kafka", 6)
            .iter()
            .all(|v| (800.0..=1000.0).contains(v))
    );
    let all = sequence("kafkajs", 5, 100);
    assert_eq!(all.len(), 6);
    for pair in all[1..].windows(2) {
        let ratio = pair[1] / pair[0];
        assert!(
            (1.6 - 1e-6..=2.4).contains(&ratio) || pair[1] == 30000.0,
            "{ratio}"
        );
    }
    for client in 1..300 {
        for pair in sequence("aws-decorrelated", client, 9).windows(2) {
            assert!(pair[1] >= 1000.0 && pair[1] <= (pair[0] * 3.0).min(60000.0));
        }
    }
    for client in 1..50 {
        let delays = sequence("python-websockets", client, 12);
        assert_eq!(delays[0], 0.0);
        assert!((delays[2] - 3100.0).abs() < 0.01 && (delays[3] - 5015.8).abs() < 0.01);
        assert_eq!(delays[11], 90000.0);
    }
    // Ably: suspended after two minutes, and then without jitter.
    let ably = sequence("ably", 9, 12);
    assert_eq!((ably[0], ably[9], ably[11]), (0.0, 30000.0, 30000.0));
}

#[test]
fn what_ends_a_client_and_what_brings_it_back_at_once() {
    let next = |name: &str, ending| {
        let policy = (find(name).unwrap().policy)();
        Retries::new(7, 1).next(
            &policy,
            ending,
            Passed {
                away: secs(1),
                since_dial: secs(60),
            },
        )
    };
    let close = |code, says| Ending::Close { code, says };
    let fatal = [
        ("graphql-ws", Ending::Unconnected),
        ("graphql-ws", close(1011, Says::Nothing)),
        ("graphql-ws", close(4429, Says::Nothing)),
        ("graphql-ws-retry-all", close(4400, Says::Text)),
        ("centrifuge", close(3500, Says::Text)),
        ("centrifuge", close(1009, Says::Nothing)),
        ("centrifuge", close(3000, Says::Reconnect(false))),
        ("pusher", close(4001, Says::Nothing)),
        ("pusher", close(4300, Says::Nothing)),
        ("eventsource-npm", Ending::Status(503)),
        ("eventsource-chromium", Ending::Status(204)),
        ("fetch-event-source", Ending::Eof),
        ("launchdarkly", Ending::Status(404)),
        ("python-websockets", Ending::Status(404)),
        ("socketio", Ending::Declined),
        ("discordjs", close(4004, Says::Nothing)),
    ];
    for (name, ending) in fatal {
        assert_eq!(next(name, ending), Next::Fatal, "{name} {ending}");
    }
    let back = [
        ("graphql-ws", close(1006, Says::Nothing)),
        ("graphql-ws", close(1012, Says::Nothing)),
        ("graphql-ws-retry-all", Ending::Unconnected),
        ("centrifuge", close(3500, Says::Nothing)),
        ("centrifuge", close(3500, Says::Reconnect(true))),
        ("eventsource-npm-2", Ending::Status(503)),
        ("fetch-event-source", Ending::Status(503)),
        ("full-jitter", Ending::Status(404)),
        ("signalr", Ending::Status(404)),
        ("phoenix", close(1000, Says::Nothing)),
    ];
    for (name, ending) in back {
        assert!(
            matches!(next(name, ending), Next::Wait { .. }),
            "{name} {ending}"
        );
    }
    for (name, code) in [("graphql-ws", 1000), ("pusher", 4000), ("pusher", 4200)] {
        let at_once = Next::Wait {
            delay: secs(0),
            attempt: 0,
        };
        assert_eq!(
            next(name, close(code, Says::Nothing)),
            at_once,
            "{name} {code}"
        );
    }
}

#[test]
fn what_is_told_of_refused_clients_holds_for_each() {
    for preset in all() {
        let windows = retries::refused(&(preset.policy)(), 12);
        for client in 1..=200 {
            let delays = sequence(preset.name, client, 12);
            assert_eq!(delays.len(), windows.len(), "{}", preset.name);
            for (delay, window) in delays.iter().zip(&windows) {
                let ms = |bound: Duration| bound.as_micros() as f64 / 1e3;
                assert!(
                    (ms(window.least)..=ms(window.most)).contains(delay),
                    "{} {client}: {delay} {window:?}",
                    preset.name
                );
            }
        }
    }
}

#[test]
fn hints_are_obeyed_by_those_who_do() {
    let first = |name: &str, hint: fn(&mut Retries, &Backoff)| {
        let policy = (find(name).unwrap().policy)();
        let mut retries = Retries::new(7, 1);
        hint(&mut retries, &policy);
        match retries.next(&policy, Ending::Lost, Passed::default()) {
            Next::Wait { delay, .. } => delay,
            other => panic!("{other:?}"),
        }
    };
    let retry: fn(&mut Retries, &Backoff) = |retries, policy| retries.retry(policy, millis(200));
    let later: fn(&mut Retries, &Backoff) = |retries, policy| retries.retry_after(policy, secs(90));
    assert_eq!(first("eventsource-chromium", retry), millis(200));
    assert_eq!(first("eventsource-firefox", retry), millis(500));
    assert_eq!(first("reqwest-eventsource", retry), millis(200));
    assert_eq!(first("partysocket", retry), secs(3));
    assert_eq!(first("full-jitter", retry), first("full-jitter", |_, _| {}));
    assert!(first("full-jitter", later) < secs(5));
    assert!((secs(90)..secs(95)).contains(&first("retry-after", later)));
}
