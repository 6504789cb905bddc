//! The presets against the published simulation of the libraries: 1,000 clients cut at 0, refused at once until the server
//! is back at 2 s, no latency; means of 20 runs.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

use std::time::Duration;

use herd::backoff::{Backoff, Growth, Jitter, Mix};
use herd::simulate::compare::{self, Row};
use herd::simulate::storm::Storm;

const COLUMNS: [&str; 10] = [
    "first s",
    "p50 s",
    "p95 s",
    "span s",
    "p5-p95 s",
    "peak/100 ms",
    "peak/1 s",
    "attempts",
    "peak attempts/100 ms",
    "never back",
];

/// The numbers as they were published, in the order of [`COLUMNS`].
#[rustfmt::skip]
#[expect(clippy::approx_constant, reason = "3.14 s is what was measured")]
const ROWS: &[(&str, [f64; 10])] = &[
    ("full-jitter", [2.00, 4.04, 10.32, 25.26, 8.12, 38., 264., 1436., 38., 0.]),
    ("exponential-25", [2.27, 3.00, 3.53, 1.45, 1.05, 121., 880., 2000., 229., 0.]),
    ("socketio", [2.00, 3.15, 4.39, 4.99, 2.20, 70., 517., 2046., 122., 0.]),
    ("reconnecting-websocket", [2.01, 3.49, 4.79, 2.99, 2.59, 53., 383., 1247., 53., 0.]),
    ("partysocket", [3.00, 3.00, 3.00, 0.00, 0.00, 1000., 1000., 1000., 1000., 0.]),
    ("phoenix", [2.26, 2.26, 2.26, 0.00, 0.00, 1000., 1000., 8000., 2000., 0.]),
    ("phoenix-liveview", [2.27, 2.27, 2.27, 0.00, 0.00, 1000., 1000., 10000., 4000., 0.]),
    ("actioncable", [6.01, 10.54, 14.25, 10.27, 7.82, 28., 177., 1000., 28., 0.]),
    ("actioncable-6", [6.00, 7.66, 9.29, 3.46, 3.14, 49., 357., 1000., 49., 0.]),
    ("anycable", [2.01, 4.43, 7.76, 14.92, 5.38, 36., 246., 1024., 36., 0.]),
    ("signalr", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("signalr-stateful", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 3000., 2000., 0.]),
    ("graphql-ws", [2.00, 3.00, 3.90, 2.00, 1.79, 54., 393., 1000., 54., 256.]),
    ("graphql-ws-retry-all", [2.00, 3.33, 6.11, 4.87, 3.97, 54., 399., 1254., 54., 0.]),
    ("graphql-sse", [2.00, 3.33, 6.11, 4.87, 3.97, 54., 399., 1254., 54., 0.]),
    ("subscriptions-transport-ws", [2.00, 3.13, 4.01, 4.33, 1.84, 77., 596., 4968., 1000., 0.]),
    ("centrifuge", [2.00, 2.82, 4.09, 4.23, 2.05, 109., 566., 2772., 226., 0.]),
    ("pusher", [16.00, 16.00, 16.00, 0.00, 0.00, 1000., 1000., 3000., 2000., 0.]),
    ("ably", [16.00, 17.99, 19.80, 3.99, 3.59, 40., 277., 2000., 1000., 0.]),
    ("supabase", [3.00, 3.00, 3.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("nats", [2.00, 2.08, 2.10, 0.10, 0.07, 1000., 1000., 2000., 1000., 0.]),
    ("mqttjs", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("paho", [3.00, 3.00, 3.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("eventsource-chromium", [3.00, 3.00, 3.00, 0.00, 0.00, 1000., 1000., 1000., 1000., 0.]),
    ("eventsource-npm", [3.00, 3.00, 3.00, 0.00, 0.00, 1000., 1000., 1000., 1000., 0.]),
    ("eventsource-firefox", [5.00, 5.00, 5.00, 0.00, 0.00, 1000., 1000., 1000., 1000., 0.]),
    ("fetch-event-source", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("eventsource-npm-2", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 2000., 1000., 0.]),
    ("launchdarkly", [2.00, 2.50, 5.41, 3.94, 3.36, 120., 753., 2247., 225., 0.]),
    ("eventsource-client-rs", [2.00, 2.50, 5.41, 3.92, 3.36, 120., 752., 2248., 226., 0.]),
    ("reqwest-eventsource", [2.10, 2.10, 2.10, 0.00, 0.00, 1000., 1000., 3000., 1000., 0.]),
    ("python-websockets", [2.00, 3.78, 4.92, 3.09, 2.67, 56., 420., 2392., 1019., 0.]),
    ("python-socketio", [2.03, 3.00, 3.68, 1.93, 1.37, 112., 756., 2000., 123., 0.]),
    ("discordjs", [2.00, 2.00, 2.00, 0.00, 0.00, 1000., 1000., 4000., 1000., 0.]),
    ("slack", [5.00, 5.00, 5.00, 0.00, 0.00, 1000., 1000., 1000., 1000., 0.]),
    ("kafka", [2.13, 2.50, 2.70, 0.67, 0.41, 303., 1000., 6000., 1262., 0.]),
    ("kafkajs", [2.00, 2.61, 4.27, 2.77, 2.22, 119., 602., 4412., 1000., 0.]),
    ("grpc", [2.28, 2.60, 2.89, 0.64, 0.57, 181., 1000., 3000., 1000., 0.]),
    ("aws-full", [2.00, 3.20, 7.01, 15.30, 4.93, 76., 455., 2907., 167., 0.]),
    ("aws-equal", [2.00, 2.50, 5.41, 3.92, 3.36, 120., 752., 2248., 226., 0.]),
    ("aws-decorrelated", [2.00, 2.86, 6.10, 5.72, 4.00, 76., 589., 1498., 76., 0.]),
];

fn seeds(mix: &Mix) -> Vec<Row> {
    let down = Duration::from_secs(2);
    (1..=20)
        .map(|seed| {
            let storm = Storm::new(1_000, seed, mix.clone(), down);
            let table = compare::table(&storm, std::slice::from_ref(mix)).unwrap();
            table.presets[0].clone()
        })
        .collect()
}

fn numbers(row: &Row) -> [f64; 10] {
    let s = |ms: Option<f64>| ms.unwrap() / 1e3;
    [
        s(row.first_ms),
        s(row.p50_ms),
        s(row.p95_ms),
        s(row.span_ms),
        s(row.p5_p95_ms),
        row.peak_100ms as f64,
        row.peak_1s as f64,
        row.attempts as f64,
        row.peak_attempts_100ms as f64,
        row.never_back as f64,
    ]
}

/// Where a published mean lies outside what 20 seeds show: beyond the least and the greatest, and half of what its last
/// digit is worth.
fn differences(name: &str, mix: &Mix, published: &[f64; 10]) -> Vec<String> {
    let seeds: Vec<_> = seeds(mix).iter().map(numbers).collect();
    let mut found = Vec::new();
    for (column, mean) in published.iter().enumerate() {
        let digit = if column < 5 { 0.005_001 } else { 0.5 };
        let least = seeds.iter().map(|row| row[column]).fold(f64::MAX, f64::min);
        let most = seeds.iter().map(|row| row[column]).fold(f64::MIN, f64::max);
        if !(least - digit..=most + digit).contains(mean) {
            let what = COLUMNS[column];
            found.push(format!(
                "{name}: {what} is {mean}, here {least:.3} to {most:.3}"
            ));
        }
    }
    found
}

#[test]
fn every_preset_agrees_with_its_published_row() {
    let differ = |(name, row): &(&str, [f64; 10])| differences(name, &super::mix(name), row);
    let found: Vec<_> = ROWS.iter().flat_map(differ).collect();
    assert_eq!(found, Vec::<String>::new());
}

/// The test above can fail: each of these is a little off.
#[test]
fn a_policy_that_is_a_little_off_differs_from_the_row() {
    let full = |base: u64, cap: u64, jitter| {
        let then = Growth::new(
            Duration::from_millis(base),
            2.0,
            Duration::from_secs(cap),
            jitter,
        );
        Mix::one("off", Backoff::new(Vec::new(), then))
    };
    let row = |wanted: &str| ROWS.iter().find(|(name, _)| *name == wanted).unwrap().1;
    let cases = [
        ("full-jitter", full(4_500, 60, Jitter::Full)),
        ("full-jitter", full(5_000, 60, Jitter::Ratio(1.0))),
        ("exponential-25", full(1_000, 30, Jitter::Ratio(0.2))),
        ("aws-equal", full(1_000, 60, Jitter::Ratio(0.5))),
    ];
    for (name, mix) in cases {
        assert_ne!(
            differences(name, &mix, &row(name)),
            Vec::<String>::new(),
            "{name}"
        );
    }
}
