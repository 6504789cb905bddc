//! `staleness`: told, unless a limit is set; then each of its answers.

use std::time::Duration;

use herd::check::{Check, Finding, Outcome, judge};
use herd::history::build::Builder;
use herd::history::{End, Mark, Shard};

use Outcome::{Fail, Pass, Unknown};

use super::{READY, TRIGGER, back, found, outcome, run, spread};

fn limited(builder: Builder, percentile: f64, limit: u64) -> Builder {
    builder.terms(|t| t.max_staleness = Some((percentile, Duration::from_secs(limit))))
}

/// A hundred clients, back evenly within 9 s of a second's outage: stale for 1 to 10 s.
fn judged(percentile: f64, limit: u64) -> Finding {
    let history = limited(spread(100, 9_000), percentile, limit).end(60_000);
    found(&history, Check::Staleness)
}

#[test]
fn staleness_is_only_told_without_a_limit() {
    let told = found(&spread(100, 9_000).end(60_000), Check::Staleness);
    assert_eq!((told.outcome, &*told.limit), (Pass, "reported"));
    assert_eq!(told.measured, "p99 10.00 s, longest 10.09 s");
}

#[test]
fn staleness_passes_and_fails_at_its_percentile() {
    assert_eq!(judged(100.0, 11).outcome, Pass);
    assert_eq!(judged(50.0, 6).outcome, Pass);
    let fail = judged(99.0, 9);
    assert_eq!(fail.outcome, Fail, "{fail:?}");
    assert!(fail.why.contains("client 100"), "{fail:?}");
}

#[test]
fn whoever_never_comes_back_is_stale_to_the_end() {
    let clients = run(100).each(|k, s| {
        if k > 5 {
            back(s, READY + 90 * u64::from(k));
        }
    });
    let finding = found(&limited(clients, 99.0, 30).end(60_000), Check::Staleness);
    assert_eq!(finding.outcome, Fail);
    assert!(
        finding.why.contains("to the end of the record"),
        "{finding:?}"
    );
}

#[test]
fn a_stale_record_with_nothing_to_see_is_unknown() {
    let quiet = limited(Builder::new(2), 99.0, 30).each(|_, s| {
        s.open(100);
    });
    assert_eq!(outcome(&quiet.end(60_000), Check::Staleness), Unknown);
    let early = limited(Builder::new(2), 99.0, 30)
        .mark(900, Mark::End(End::NotPrimed { primed: 0 }))
        .cut(900);
    assert_eq!(outcome(&early, Check::Staleness), Unknown);
}

#[test]
fn in_a_cut_record_staleness_fails_by_what_was_seen_and_never_passes() {
    let cut = |limit| {
        outcome(
            &limited(spread(100, 9_000), 99.0, limit).cut(60_000),
            Check::Staleness,
        )
    };
    assert_eq!((cut(9), cut(30)), (Fail, Unknown));
    // Half of the clients are in the other shard: they may decide p40, but not p99.
    let half = |percentile| {
        let shard = Shard { index: 1, of: 2 };
        let builder = limited(spread(100, 9_000), percentile, 2).header(|h| h.clients = 200);
        let mut history = builder.end(60_000);
        (history.header.shard, history.shards) = (shard, vec![shard]);
        outcome(&history, Check::Staleness)
    };
    assert_eq!((half(40.0), half(99.0)), (Unknown, Fail));
}

/// Rule 7: by the instants at which herd should have dialled nobody would have been stale for so long.
#[test]
fn rule_7_staleness_by_herds_own_lag_is_unknown() {
    let late = |lag: u64| {
        let clients = run(100).each(move |k, s| {
            let due = READY + 90 * u64::from(k);
            s.opened(due, due + lag, due + lag + 1, Some(1))
                .got(due + lag + 2, 2);
        });
        outcome(&limited(clients, 99.0, 15).end(100_000), Check::Staleness)
    };
    assert_eq!(
        (late(0), late(8_000), late(60_000)),
        (Pass, Unknown, Unknown)
    );
}

#[test]
fn what_a_user_saw_adds_up() {
    let verdict = judge(&spread(100, 9_000).end(60_000));
    let times = &verdict.status.client_seconds;
    assert!((times.total() - 6_000.0).abs() < 1e-6, "{times:?}");
    assert!((times.connecting - 10.1).abs() < 1e-6, "{times:?}");
    let fewest = verdict.status.series.iter().filter(|r| r.connected == 0);
    assert!(fewest.map(|r| r.at_ms).any(|at| at >= TRIGGER as f64));
    assert_eq!(verdict.staleness.clients, 100);
    assert_eq!(verdict.staleness.at_end, 0);
}
