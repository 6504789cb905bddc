//! `bystanders`: a cut that is for some of the clients, and what the others must not notice.

use herd::check::{Check, Outcome, judge};
use herd::history::build::Builder;
use herd::history::{Cause, ClientId, CutKind, Mark, Memory, OutageTerms, TriggerKind, chosen};

use Outcome::{Fail, Pass, Unknown};

use super::{DROP, READY, TRIGGER, back, found};

pub(super) const CLIENTS: u32 = 10;

pub(super) fn is_hit(k: u32) -> bool {
    chosen(ClientId(k), CLIENTS, 0.3)
}

/// A cut for 3 of 10 clients, before anybody was dropped.
pub(super) fn region() -> Builder {
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

pub(super) fn returned(builder: Builder, dropped: impl Fn(u32) -> bool) -> Builder {
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
