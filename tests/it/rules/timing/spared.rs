//! `bystanders` at its edges: which times, whose drops and which events count, and how often.

use std::time::Duration;

use herd::check::{Check, Outcome, judge};
use herd::history::build::Story;
use herd::history::{Attempt, AttemptOutcome, Cause, Elapsed, Mark};

use Outcome::{Fail, Pass, Unknown};

use super::region::{CLIENTS, is_hit, region, returned};
use super::{DROP, READY, back, found};

/// A run that was broken off never tells when the outage was over.
#[test]
fn where_nothing_says_that_it_was_over_it_goes_on_to_the_end() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let mut history = returned(region(), is_hit)
        .client(spared, |s| _ = s.dropped(31_000).resume(33_000, 2))
        .end(60_000);
    history
        .marks
        .retain(|(_, mark)| !matches!(mark, Mark::Settled { .. }));
    assert_eq!(found(&history, Check::Bystanders).outcome, Fail);
}

/// Lost before the cut, or after it, or by whom it was for: that is `exactly-once`'s alone.
#[test]
fn what_is_missed_at_another_time_or_by_others_is_not_the_cuts_doing() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let hit = (1..=CLIENTS).find(|k| is_hit(*k)).unwrap();
    for (at, client) in [(9_500, spared), (31_000, spared), (10_600, hit)] {
        let clients = returned(region(), is_hit).acked(3, at);
        let clients = clients.each(|k, s| {
            if k != client {
                s.got_event(59_000, Story::variant(3, |_| {}));
            }
        });
        let history = clients
            .terms(|t| t.settle = Duration::from_secs(50))
            .end(90_000);
        let finding = found(&history, Check::Bystanders);
        assert_eq!(finding.outcome, Pass, "{at} {client}: {finding:?}");
        assert_eq!(found(&history, Check::ExactlyOnce).outcome, Fail);
    }
}

/// Two cuts, each for some; the second one hits one more.
#[test]
fn each_outage_is_judged_by_what_happened_in_it() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let history = returned(region(), is_hit)
        .terms(|t| t.outages.push(t.outages[0]))
        .outage(2, 60_000, 61_000)
        .mark(80_000, Mark::Settled { outage: 2 })
        .acked(3, 60_500)
        .each(|k, s| {
            if is_hit(k) || k == spared {
                s.dropped(60_005);
                let at = 61_000 + 700 * u64::from(k);
                s.resume(at, 2);
                if k != spared {
                    s.got(at + 2, 3);
                }
            } else {
                s.got(60_502, 3);
            }
        })
        .end(120_000);
    let verdict = judge(&history);
    let of_check = verdict
        .findings
        .iter()
        .filter(|f| f.check == Check::Bystanders);
    let outcomes: Vec<_> = of_check.map(|f| f.outcome).collect();
    assert_eq!(outcomes, [Pass, Fail]);
    let others = verdict.bystanders.iter();
    let counts: Vec<_> = others
        .map(|b| (b.dropped, b.others_dropped, b.others_missed))
        .collect();
    assert_eq!(counts, [(3, 0, 0), (3, 1, 1)]);
}

/// Each client is counted and named once, and each event that it missed.
#[test]
fn a_bystander_that_drops_twice_is_one_client() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let history = region()
        .acked(3, 10_600)
        .each(|k, s| {
            if is_hit(k) || k == spared {
                s.dropped(DROP);
                let at = READY + 700 * u64::from(k);
                s.resume(at, 1);
                if k != spared {
                    s.got_all(at + 2, 2..=3);
                }
                s.dropped(25_000).resume(26_000, 3);
            } else {
                s.got(10_502, 2).got(10_602, 3);
            }
        })
        .end(90_000);
    let facts = &judge(&history).bystanders[0];
    assert_eq!((facts.dropped, facts.others_dropped), (3, 1));
    assert_eq!(facts.others_missed, 2);
    let why = found(&history, Check::Bystanders).why;
    assert!(why.starts_with(&format!("client {spared} lost")), "{why}");
    assert!(why.contains("2 of them"), "{why}");
}

/// A herd that is late may leave signs of life unread. Whom the server itself ended has that from the server.
#[test]
fn rule_7_while_herd_was_late_a_bystander_that_found_silence_proves_nothing() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let dropped = |lag: u64, cause: Cause, misses: bool| {
        let clients = region().each(|k, s| {
            if is_hit(k) || k == spared {
                let cause = if k == spared {
                    cause.clone()
                } else {
                    Cause::Reset
                };
                s.closed(DROP, cause);
                match misses && k == spared {
                    true => _ = s.resume(READY + 700 * u64::from(k), 1),
                    false => back(s, READY + 700 * u64::from(k)),
                }
            } else {
                s.got(10_502, 2);
            }
            if k == spared {
                // Another silence, of another time, excuses nothing.
                s.closed(39_000, Cause::Heartbeat);
                s.attempt(Attempt {
                    attempt: 0,
                    due: Elapsed::from_millis(40_000),
                    dialled: Elapsed::from_millis(40_000 + lag),
                    connected: None,
                    ended: Elapsed::from_millis(40_000 + lag),
                    outcome: AttemptOutcome::Aborted,
                    resumed_from: None,
                    target: 0,
                });
            }
        });
        let clients = clients.terms(|t| t.settle = Duration::from_secs(20));
        found(&clients.end(60_000), Check::Bystanders).outcome
    };
    assert_eq!(dropped(2_000, Cause::Heartbeat, false), Unknown);
    assert_eq!(dropped(2_000, Cause::Reset, false), Fail);
    assert_eq!(dropped(0, Cause::Heartbeat, false), Fail);
    assert_eq!(dropped(2_000, Cause::Heartbeat, true), Fail, "an event too");
}
