//! `bystanders`: a cut that is for some of the clients, and what the others must not notice.

use std::time::Duration;

use herd::check::{Check, Outcome, judge};
use herd::history::build::{Builder, Story};
use herd::history::{
    Attempt, AttemptOutcome, Cause, ClientId, CutKind, Elapsed, Mark, Memory, OutageTerms,
    TriggerKind, chosen,
};

use Outcome::{Fail, Pass, Unknown};

use super::{DROP, READY, TRIGGER, back, found};

const CLIENTS: u32 = 10;

fn is_hit(k: u32) -> bool {
    chosen(ClientId(k), CLIENTS, 0.3)
}

/// A cut for 3 of 10 clients, before anybody was dropped.
fn region() -> Builder {
    Builder::new(CLIENTS)
        .terms(|t| {
            t.outages = vec![OutageTerms {
                cut: Some(CutKind::Rst),
                share: 0.3,
                ..OutageTerms::plain(TriggerKind::Cut)
            }];
        })
        .outage(1, TRIGGER, READY)
        .mark(30_000, Mark::Settled { outage: 1 })
        .acked(1, 9_000)
        .acked(2, 10_500)
        .each(|_, s| {
            s.open(100).got(9_001, 1);
        })
}

fn returned(builder: Builder, dropped: impl Fn(u32) -> bool) -> Builder {
    builder.each(|k, s| {
        if dropped(k) {
            s.dropped(DROP);
            back(s, READY + 700 * u64::from(k));
        } else {
            s.got(10_502, 2);
        }
    })
}

#[test]
fn a_cut_that_hits_whom_it_is_for_and_nobody_else_passes() {
    let history = returned(region(), is_hit).end(60_000);
    let finding = found(&history, Check::Bystanders);
    assert_eq!(finding.outcome, Pass, "{finding:?}");
    assert_eq!(finding.measured, "0 of 7 others dropped, 0 missed");
    let facts = &judge(&history).bystanders[0];
    assert_eq!((facts.chosen, facts.dropped, facts.others), (3, 3, 7));
    // No restart was for everybody: what there was is judged.
    assert_eq!(found(&history, Check::AllReconnected).outcome, Pass);
}

#[test]
fn a_bystander_that_drops_fails_it_and_is_named() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let history = returned(region(), |k| is_hit(k) || k == spared).end(60_000);
    let finding = found(&history, Check::Bystanders);
    assert_eq!(finding.outcome, Fail, "{finding:?}");
    assert!(
        finding.why.contains(&format!("client {spared}")),
        "{finding:?}"
    );
}

/// Later than the outage was over, it has nothing to do with it.
#[test]
fn what_happens_to_a_bystander_after_the_outage_is_not_its_doing() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let history = returned(region(), is_hit).client(spared, |s| {
        s.dropped(31_000);
        s.resume(33_000, 2);
    });
    let finding = found(&history.end(60_000), Check::Bystanders);
    assert_eq!(finding.outcome, Pass, "{finding:?}");
}

#[test]
fn a_bystander_that_misses_an_event_fails_it() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let history = region().each(|k, s| {
        if is_hit(k) {
            s.dropped(DROP);
            back(s, READY + 700 * u64::from(k));
        } else if k != spared {
            s.got(10_502, 2);
        }
    });
    let finding = found(&history.end(60_000), Check::Bystanders);
    assert_eq!(finding.outcome, Fail, "{finding:?}");
    assert!(finding.why.contains("missed events"), "{finding:?}");
}

#[test]
fn a_cut_that_hits_too_few_or_nobody_is_unknown() {
    let first = (1..=CLIENTS).find(|k| is_hit(*k)).unwrap();
    for dropped in [first, 0] {
        let history = returned(region(), |k| k == dropped).end(60_000);
        let finding = found(&history, Check::Bystanders);
        assert_eq!(finding.outcome, Unknown, "{finding:?}");
        assert!(!finding.why.is_empty());
    }
}

#[test]
fn where_nothing_was_cut_nobody_can_be_spared() {
    let mut history = returned(region(), |_| false).end(60_000);
    history.marks.retain(|(_, mark)| {
        !matches!(
            mark,
            Mark::Trigger { .. } | Mark::Gone { .. } | Mark::Ready { .. }
        )
    });
    let finding = found(&history, Check::Bystanders);
    assert_eq!(finding.outcome, Unknown, "{finding:?}");
    assert!(finding.why.contains("nothing was cut"), "{finding:?}");
}

/// A herd that is late may leave signs of life unread. Whom the server itself ended has that from the server.
#[test]
fn rule_7_while_herd_was_late_a_bystander_that_found_silence_proves_nothing() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let dropped = |lag: u64, cause: Cause| {
        let clients = region().each(|k, s| {
            if is_hit(k) || k == spared {
                let cause = if k == spared {
                    cause.clone()
                } else {
                    Cause::Reset
                };
                s.closed(DROP, cause);
                back(s, READY + 700 * u64::from(k));
            } else {
                s.got(10_502, 2);
            }
            if k == spared {
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
        found(&clients.end(60_000), Check::Bystanders).outcome
    };
    assert_eq!(dropped(2_000, Cause::Heartbeat), Unknown);
    assert_eq!(dropped(2_000, Cause::Reset), Fail);
    assert_eq!(dropped(0, Cause::Heartbeat), Fail);
}

#[test]
fn nobody_asks_where_a_cut_is_for_everybody() {
    let history = super::spread(100, 9_000).end(60_000);
    let findings = judge(&history).findings;
    assert!(findings.iter().all(|f| f.check != Check::Bystanders));
}

/// What was dialled in herd's own slow network opens together when it clears up: that is no stampede. One in the dials is.
#[test]
fn rule_2_in_a_slow_network_the_spread_is_that_of_the_dials() {
    let slow = |cut: CutKind, step: u64| {
        let history = super::run(100)
            .terms(|t| {
                t.outages = vec![OutageTerms {
                    cut: Some(cut),
                    ..OutageTerms::plain(TriggerKind::Cut)
                }];
            })
            .each(move |k, s| {
                let dialled = TRIGGER + 100 + u64::from(k) * step;
                let opened = (dialled + 3_000).max(17_000 + 20 * u64::from(k));
                s.opened(dialled, dialled, opened, Some(1));
                s.got(opened + 2, 2);
            });
        found(&history.end(60_000), Check::ReconnectSpread).outcome
    };
    for cut in [CutKind::Latency, CutKind::Bandwidth] {
        assert_eq!(slow(cut, 60), Pass, "{cut:?}");
        assert_eq!(slow(cut, 2), Fail, "{cut:?}");
    }
    assert_eq!(
        slow(CutKind::Rst, 60),
        Fail,
        "a server that holds them back"
    );
}

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
                s.resume(at, 1)
                    .got_all(at + 2, if k == spared { 1..=0 } else { 2..=3 });
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

/// herd closed that tab itself. Whoever it is, that is nothing that the cut did to it.
#[test]
fn a_bystander_that_starts_anew_has_noticed_nothing() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    for memory in [Memory::Kept, Memory::Lost] {
        let clients = region().each(|k, s| {
            if is_hit(k) {
                s.dropped(DROP);
                back(s, READY + 700 * u64::from(k));
            } else if k == spared {
                s.closed(DROP + 100, Cause::Refreshed)
                    .refreshed(DROP + 100, memory);
                s.resume(DROP + 101, 1).got(10_502, 2);
            } else {
                s.got(10_502, 2);
            }
        });
        let history = clients.end(60_000);
        let finding = found(&history, Check::Bystanders);
        assert_eq!(finding.outcome, Pass, "{memory:?}: {finding:?}");
        assert_eq!(judge(&history).bystanders[0].others_dropped, 0);
    }
}

/// Merged shards each say when it was over for them.
#[test]
fn a_cut_is_over_when_it_is_for_every_shard() {
    let spared = (1..=CLIENTS).find(|k| !is_hit(*k)).unwrap();
    let drops_at = |ms: u64| {
        let history = returned(region(), is_hit).mark(20_000, Mark::Settled { outage: 1 });
        let history = history.client(spared, move |s| {
            s.dropped(ms).resume(ms + 1_000, 2);
        });
        found(&history.end(60_000), Check::Bystanders).outcome
    };
    assert_eq!(drops_at(25_000), Fail);
    assert_eq!(drops_at(31_000), Pass);
}

/// Each shard cuts its own clients off, when its own are primed.
#[test]
fn rule_3_a_cut_of_a_later_shard_is_no_relapse() {
    let fall = Mark::Fall {
        outage: 1,
        fall: 1,
        target: None,
    };
    let again = |ready: u64| {
        super::run(40)
            .terms(|t| t.outages[0] = OutageTerms::plain(TriggerKind::Cut))
            .mark(TRIGGER, fall.clone())
            .mark(READY + 5_000, fall.clone())
            .mark(ready, Mark::Ready { outage: 1 })
            .each(|k, s| {
                back(s, READY + 20 * u64::from(k));
                if k % 2 == 0 {
                    s.dropped(READY + 5_005);
                    s.resume(READY + 6_100 + 200 * u64::from(k), 2);
                }
            })
            .end(60_000)
    };
    assert_eq!(found(&again(READY + 6_000), Check::Relapse).outcome, Pass);
    assert_eq!(found(&again(READY), Check::Relapse).outcome, Fail);
}

/// Others that drop don't make up for those that the cut was for and missed.
#[test]
fn rule_5_only_those_count_that_the_cut_was_for() {
    let few = |hit: usize| {
        let chosen: Vec<u32> = (1..=100)
            .filter(|k| chosen(ClientId(*k), 100, 0.3))
            .collect();
        let others = (1..=100).filter(|k| !chosen.contains(k)).take(10);
        let drops: Vec<u32> = chosen.iter().take(hit).copied().chain(others).collect();
        let history = Builder::new(100)
            .terms(|t| {
                t.outages[0] = OutageTerms {
                    cut: Some(CutKind::Rst),
                    share: 0.3,
                    ..OutageTerms::plain(TriggerKind::Cut)
                };
            })
            .outage(1, TRIGGER, READY)
            .each(move |k, s| {
                s.open(100);
                if drops.contains(&k) {
                    s.dropped(DROP).open(READY + 90 * u64::from(k));
                }
            });
        found(&history.end(60_000), Check::ReconnectSpread)
    };
    assert_eq!(few(30).outcome, Pass);
    let finding = few(20);
    assert_eq!(finding.outcome, Unknown, "{finding:?}");
    assert!(finding.why.contains("20 of the 30"), "{finding:?}");
}
