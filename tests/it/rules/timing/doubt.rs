//! The rules that say what can't be known: chance (4), partial outages (5), limits (6), herd's own lag (7), the policy
//! assumed (8), the device (21, 23), and those of the house on what was not observed.

use std::time::Duration;

use herd::check::{Check, Outcome, judge};
use herd::history::build::Builder;
use herd::history::{
    Attempt, AttemptOutcome, Cause, ClientId, Elapsed, End, Mark, PolicySource, Quit, TriggerKind,
    chosen,
};

use Outcome::{Fail, Pass, Unknown};

use super::{DROP, READY, TRIGGER, Tale, back, found, outcome, run, spread};

#[test]
fn rule_4_what_luck_explains_is_unknown_and_names_what_would_decide() {
    let few = found(&spread(10, 4_200).end(60_000), Check::ReconnectSpread);
    assert_eq!(few.outcome, Unknown);
    assert!(few.why.contains("--clients"), "{few:?}");
    assert_eq!(
        outcome(&spread(300, 4_200).end(60_000), Check::ReconnectSpread),
        Fail
    );
}

#[test]
fn rule_4_a_server_that_is_back_at_once_leaves_the_limit_out_of_reach() {
    let at_once = |span: u64| {
        let clients = Builder::new(100)
            .outage(1, TRIGGER, DROP)
            .each(move |k, s| {
                s.open(100).dropped(DROP);
                s.open(DROP + 10 + u64::from(k - 1) * span / 99);
            });
        found(&clients.end(60_000), Check::ReconnectSpread)
    };
    let finding = at_once(4_960);
    assert_eq!(finding.outcome, Unknown);
    assert!(finding.why.contains("--min-spread"), "{finding:?}");
    // No luck explains this.
    assert_eq!(at_once(1_000).outcome, Fail);
}

#[test]
fn rule_5_an_outage_that_hits_too_few_proves_nothing() {
    // First those that it was for.
    let hit = |dropped: usize, share: f64| {
        let mut order: Vec<u32> = (1..=100).collect();
        order.sort_by_key(|k| !chosen(ClientId(*k), 100, share));
        order.truncate(dropped);
        let clients = Builder::new(100)
            .terms(|t| t.outages[0].share = share)
            .outage(1, TRIGGER, READY)
            .each(move |k, s| {
                s.open(100);
                if order.contains(&k) {
                    s.dropped(DROP).open(READY + 3 * u64::from(k));
                }
            });
        found(&clients.end(60_000), Check::ReconnectSpread)
    };
    assert_eq!(hit(95, 1.0).outcome, Fail);
    let few = hit(94, 1.0);
    assert_eq!(few.outcome, Unknown);
    assert!(few.why.contains("94 of 100 dropped"), "{few:?}");
    assert_eq!(hit(94, 0.9).outcome, Fail);
}

#[test]
fn rule_5_a_half_open_session_counts_as_down_since_the_cut() {
    let noticed_as = |cause: Cause| {
        let clients = Builder::new(20)
            .terms(|t| t.max_recovery = Some(Duration::from_secs(15)))
            .outage(1, TRIGGER, READY)
            .each(move |k, s| {
                s.open(100);
                match k {
                    1..=10 => s.closed(20_000, cause.clone()).open(26_000).got(26_002, 1),
                    _ => {
                        let at = READY + 300 * u64::from(k);
                        s.dropped(DROP).open(at).got(at + 2, 1)
                    }
                };
            });
        clients.end(60_000)
    };
    let history = noticed_as(Cause::HalfOpen);
    assert_eq!(judge(&history).outages[0].waves.len(), 1);
    assert_eq!(
        judge(&history).returns[0].dropped,
        Elapsed::from_millis(DROP)
    );
    // 16 s since the cut, though only 6 s since it was noticed.
    assert_eq!(outcome(&history, Check::Recovery), Fail);
    assert_eq!(outcome(&noticed_as(Cause::Eof), Check::Recovery), Pass);
}

#[test]
fn rule_6_the_limit_of_coming_back_follows_from_the_policy() {
    let last = |ms: u64, limit: Option<Duration>| {
        let clients = run(10)
            .terms(|t| t.reconnect_limit = limit)
            .each(move |k, s| {
                back(
                    s,
                    if k == 10 {
                        ms
                    } else {
                        READY + 700 * u64::from(k)
                    },
                )
            });
        found(&clients.end(300_000), Check::AllReconnected)
    };
    assert_eq!(last(DROP + 15_000, None).outcome, Pass);
    let late = last(DROP + 60_000, None);
    assert_eq!(late.outcome, Fail);
    assert!(late.why.contains("client 10"), "{late:?}");
    assert_eq!(
        last(DROP + 60_000, Some(Duration::from_secs(90))).outcome,
        Pass
    );
}

#[test]
fn rule_6_who_gave_up_or_must_not_come_back_is_told_apart() {
    let finding = |story: Tale| {
        let clients = run(10).each(|k, s| match k {
            10 => story(s),
            _ => back(s, READY + 700 * u64::from(k)),
        });
        found(&clients.end(300_000), Check::AllReconnected)
    };
    let cases: [(Tale, &str); 4] = [
        (|_| (), "never came back"),
        (
            |s| {
                let (status, why) = (Some(400), "".into());
                s.failed(19_000, AttemptOutcome::Refused)
                    .failed(20_000, AttemptOutcome::Handshake { status, why });
            },
            "never came back: client 10; their last attempts: 1 answered with status 400",
        ),
        (
            |s| {
                s.quit(20_000, Quit::GaveUp);
            },
            "gave up",
        ),
        (
            |s| {
                s.quit(20_000, Quit::Fatal("4401".into()));
            },
            "1 met an end that the policy never retries (1 4401): client 10",
        ),
    ];
    for (story, said) in cases {
        let finding = finding(story);
        assert_eq!(finding.outcome, Fail);
        assert!(finding.why.contains(said), "{finding:?}");
    }
}

#[test]
fn rule_7_while_herd_was_late_only_what_fails_by_the_due_instants_fails() {
    // All dialled at once, two seconds after the last was due.
    let late = |due_step: u64| {
        let clients = run(100).each(move |k, s| {
            let due = READY + due_step * u64::from(k);
            s.opened(due, READY + 9_500, READY + 9_501, Some(1));
        });
        clients.end(60_000)
    };
    let excused = late(75);
    assert_eq!(outcome(&excused, Check::Generator), Unknown);
    assert_eq!(outcome(&excused, Check::ReconnectSpread), Unknown);
    assert_eq!(outcome(&excused, Check::Peak), Unknown);
    let guilty = late(1);
    assert_eq!(outcome(&guilty, Check::ReconnectSpread), Fail);
    assert_eq!(outcome(&guilty, Check::Peak), Fail);
}

#[test]
fn rule_7_a_client_that_herd_could_not_dial_is_herds_own_loss() {
    let absent = |outcome: AttemptOutcome| {
        let clients = run(10).each(move |k, s| match k {
            10 => {
                s.failed(READY, outcome.clone());
            }
            _ => back(s, READY + 700 * u64::from(k)),
        });
        clients.end(300_000)
    };
    let local = absent(AttemptOutcome::Local("no free descriptor".into()));
    assert_eq!(outcome(&local, Check::AllReconnected), Unknown);
    let generator = found(&local, Check::Generator);
    assert_eq!(generator.outcome, Unknown);
    assert!(generator.why.contains("descriptor"), "{generator:?}");
    let refused = absent(AttemptOutcome::Refused);
    assert_eq!(outcome(&refused, Check::AllReconnected), Fail);
}

#[test]
fn rule_7_the_limits_of_herds_own_lag() {
    let lagging = |clients: u32, lag: u64| {
        let history = spread(100, 9_000)
            .each(move |k, s| {
                if k <= clients {
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
            })
            .end(60_000);
        outcome(&history, Check::Generator)
    };
    assert_eq!(lagging(1, 500), Pass);
    assert_eq!(lagging(1, 501), Unknown);
    assert_eq!(lagging(3, 50), Pass);
    assert_eq!(lagging(3, 51), Unknown);
}

#[test]
fn rule_8_an_assumed_policy_is_said_to_be_one() {
    let why = |source| {
        let history = spread(100, 9_000).terms(|t| t.policy_source = source);
        found(&history.end(60_000), Check::ReconnectSpread).why
    };
    assert_eq!(
        why(PolicySource::Assumed),
        "assumes full-jitter; the policy of your real clients is not known, use --backoff"
    );
    assert_eq!(why(PolicySource::Named), "");
}

#[test]
fn rule_21_each_clients_recovery_runs_from_its_own_drop() {
    // A drain of 20 s: the last dropped 20 s after the first, and is caught up 4 s later.
    let history = Builder::new(21)
        .terms(|t| t.max_recovery = Some(Duration::from_secs(5)))
        .outage(1, TRIGGER, READY + 20_000)
        .each(|k, s| {
            let dropped = DROP + 1_000 * u64::from(k - 1);
            s.open(100).dropped(dropped);
            s.open(dropped + 4_000).got(dropped + 4_002, 1);
        })
        .acked(1, 9_000)
        .end(90_000);
    let finding = found(&history, Check::Recovery);
    assert_eq!(finding.outcome, Pass, "{finding:?}");
    let outage = &judge(&history).outages[0];
    assert_eq!(outage.trigger_ms, Some(10_000.0));
    assert_eq!(outage.first_drop_ms, Some(10_005.0));
    assert_eq!(outage.last_drop_ms, Some(30_005.0));
    assert_eq!(outage.ready_ms, Some(31_000.0));
}

#[test]
fn a_trigger_that_nobody_felt_is_unknown_and_says_where_to_look() {
    for (trigger, said) in [
        (
            TriggerKind::Child,
            "server-cmd leave another process behind",
        ),
        (
            TriggerKind::Command,
            "restart the server that the target names",
        ),
        (TriggerKind::Wait, "while herd waited"),
    ] {
        let mut history = Builder::new(3)
            .outage(1, 10_000, 11_000)
            .each(|_, s| {
                s.open(100);
            })
            .end(60_000);
        history.header.terms.outages[0].trigger = trigger;
        let finding = found(&history, Check::ReconnectSpread);
        assert_eq!(finding.outcome, Unknown, "{finding:?}");
        assert!(finding.why.contains(said), "{finding:?}");
    }
}

#[test]
fn rule_23_before_the_first_trigger_nothing_is_judged() {
    let ends = [
        (
            End::NotConnected { connected: 2 },
            "only 2 of 3 clients could connect",
        ),
        (End::NotPrimed { primed: 1 }, "only 1 of 3 clients received"),
        (End::NoRestart, "nobody restarted the server"),
    ];
    for (end, said) in ends {
        let mut history = Builder::new(3)
            .each(|_, s| {
                s.open(100);
            })
            .mark(30_000, Mark::End(end))
            .cut(30_000);
        history.header.terms.outages[0].trigger = TriggerKind::Wait;
        for check in [
            Check::ReconnectSpread,
            Check::Peak,
            Check::AllReconnected,
            Check::Relapse,
            Check::Recovery,
        ] {
            let finding = found(&history, check);
            assert_eq!(finding.outcome, Unknown, "{finding:?}");
            assert!(finding.why.contains(said), "{finding:?}");
        }
    }
}

#[test]
fn house_rule_4_an_outage_that_nobody_noticed_is_unknown() {
    let history = Builder::new(3)
        .outage(1, TRIGGER, READY)
        .each(|_, s| {
            s.open(100);
        })
        .end(30_000);
    assert_eq!(outcome(&history, Check::ReconnectSpread), Unknown);
    assert_eq!(outcome(&history, Check::Relapse), Unknown);
    // Of two outages asked for, only one came.
    let one = spread(100, 9_000)
        .terms(|t| t.outages = vec![t.outage(1); 2])
        .end(60_000);
    let spreads: Vec<_> = judge(&one)
        .findings
        .into_iter()
        .filter(|f| f.check == Check::ReconnectSpread)
        .map(|f| (f.outage, f.outcome))
        .collect();
    assert_eq!(spreads, [(Some(1), Pass), (Some(2), Unknown)]);
}

#[test]
fn house_rule_4_a_truncated_history_passes_nothing_and_still_fails_what_is_certain() {
    let honest = spread(100, 9_000).cut(60_000);
    for finding in judge(&honest).findings {
        assert_eq!(finding.outcome, Unknown, "{finding:?}");
    }
    assert_eq!(
        outcome(&spread(100, 500).cut(60_000), Check::ReconnectSpread),
        Fail
    );
    // Somebody may yet come back and widen it.
    let away = run(100).each(|k, s| {
        if k > 1 {
            back(s, READY + u64::from(k));
        }
    });
    assert_eq!(outcome(&away.cut(12_000), Check::ReconnectSpread), Unknown);
    // A shard is missing.
    let shard = spread(100, 9_000).header(|h| h.shard.of = 2).end(60_000);
    assert_eq!(outcome(&shard, Check::ReconnectSpread), Unknown);
}
