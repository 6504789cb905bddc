//! The rules on reconnects (1 to 8), on the device (21, 23) and those of the house on what was not observed.

use std::time::Duration;

use herd::check::{Check, Finding, Outcome, judge};
use herd::history::build::{Builder, Story};
use herd::history::{
    Attempt, AttemptOutcome, Cause, Elapsed, End, History, Mark, PolicySource, Quit, TriggerKind,
};

use Outcome::{Fail, Pass, Unknown};

/// The trigger, and when the server is ready again, in milliseconds; everybody drops 5 ms after the trigger.
const TRIGGER: u64 = 10_000;
const READY: u64 = 11_000;
const DROP: u64 = TRIGGER + 5;

/// A run of `clients` with one outage: connected, fed, dropped.
fn run(clients: u32) -> Builder {
    Builder::new(clients)
        .outage(1, TRIGGER, READY)
        .acked(1, 9_000)
        .acked(2, 10_500)
        .each(|_, s| {
            s.open(100).got(9_001, 1).dropped(DROP);
        })
}

fn back(s: &mut Story<'_>, ms: u64) {
    s.resume(ms, 1).got(ms + 2, 2);
}

/// Everybody back evenly within `span` milliseconds.
fn spread(clients: u32, span: u64) -> Builder {
    let step = move |k: u32| u64::from(k - 1) * span / u64::from(clients - 1);
    run(clients).each(move |k, s| back(s, READY + 100 + step(k)))
}

fn found(history: &History, check: Check) -> Finding {
    let verdict = judge(history);
    assert_eq!(
        verdict.outcome,
        verdict.findings.iter().map(|f| f.outcome).max().unwrap()
    );
    let mut of_check = verdict.findings.into_iter().filter(|f| f.check == check);
    let finding = of_check.next().unwrap();
    assert!(of_check.next().is_none(), "two findings of {check}");
    finding
}

fn outcome(history: &History, check: Check) -> Outcome {
    found(history, check).outcome
}

#[test]
fn an_honest_run_passes_every_timing_check() {
    let history = spread(100, 9_000).end(60_000);
    for check in [
        Check::ReconnectSpread,
        Check::Peak,
        Check::AllReconnected,
        Check::Relapse,
        Check::Recovery,
        Check::Generator,
    ] {
        let finding = found(&history, check);
        assert_eq!(finding.outcome, Pass, "{finding:?}");
    }
}

#[test]
fn rule_1_a_server_that_accepts_and_closes_at_once_has_not_been_reconnected_to() {
    let flap = |lasted: u64| {
        spread(10, 9_000)
            .client(1, move |s| {
                s.dropped(30_000).open(31_000).dropped(31_001 + lasted);
            })
            .end(120_000)
    };
    let finding = found(&flap(999), Check::AllReconnected);
    assert_eq!(finding.outcome, Fail);
    assert!(finding.why.contains("client 1"), "{finding:?}");
    // A second is long enough: that client came back, and was lost once more.
    let verdict = judge(&flap(1_000));
    assert_eq!(
        verdict.returns.iter().filter(|r| r.client.0 == 1).count(),
        3
    );
}

#[test]
fn rule_1_a_short_session_that_delivered_is_a_reconnect() {
    let history = run(2)
        .client(1, |s| back(s, READY))
        .client(2, |s| {
            s.resume(READY, 1).got(READY + 2, 2).dropped(READY + 3);
            s.open(17_000);
        })
        .end(60_000);
    let verdict = judge(&history);
    assert_eq!(verdict.returns.len(), 3);
    assert!(verdict.sessions[1].iter().all(|s| !s.flapped));
}

#[test]
fn rule_2_a_slow_accept_loop_does_not_hide_a_stampede() {
    let history = run(100)
        .each(|k, s| {
            let dialled = READY + u64::from(k) / 2;
            s.opened(dialled, dialled, READY + 60 * u64::from(k), Some(1));
            s.got(READY + 60 * u64::from(k) + 1, 2);
        })
        .end(60_000);
    assert_eq!(outcome(&history, Check::ReconnectSpread), Fail);
    assert_eq!(outcome(&history, Check::Peak), Fail);
}

#[test]
fn rule_2_a_flush_of_the_accept_queue_is_a_stampede_too() {
    let history = run(100)
        .each(|k, s| {
            s.opened(
                DROP + 60 * u64::from(k),
                DROP + 60 * u64::from(k),
                17_000,
                Some(1),
            );
            s.got(17_001, 2);
        })
        .end(60_000);
    assert_eq!(outcome(&history, Check::ReconnectSpread), Fail);
}

#[test]
fn rule_2_refused_handshakes_load_the_server_too() {
    let refused = |outcome: AttemptOutcome| {
        let clients = run(40).each(move |k, s| {
            s.failed(READY + u64::from(k), outcome.clone());
            back(s, READY + 1_500 + 250 * u64::from(k));
        });
        clients.end(60_000)
    };
    let handshake = AttemptOutcome::Handshake {
        status: Some(503),
        why: "busy".into(),
    };
    assert_eq!(outcome(&refused(handshake), Check::Peak), Fail);
    assert_eq!(
        outcome(&refused(AttemptOutcome::Refused), Check::Peak),
        Pass
    );
}

#[test]
fn rule_2_the_peak_is_judged_from_twenty_clients_up() {
    for (clients, expected) in [(19, Pass), (20, Fail)] {
        let history = spread(clients, 500).end(60_000);
        assert_eq!(outcome(&history, Check::Peak), expected, "{clients}");
    }
}

/// Five pods rolled 30 s apart: the whole takes 120 s, each of them stampedes.
#[test]
fn rule_3_each_wave_is_judged_by_itself() {
    let pods = |within: u64| {
        let history = Builder::new(100)
            .terms(|t| t.trigger = TriggerKind::Command)
            .mark(TRIGGER, Mark::Trigger { outage: 1 })
            .each(move |k, s| {
                let pod = TRIGGER + 10 + 30_000 * u64::from(k % 5);
                let spread = 100 + u64::from(k / 5) * within / 19;
                s.open(1).dropped(pod).open(pod + spread);
            });
        history.end(300_000)
    };
    let finding = found(&pods(300), Check::ReconnectSpread);
    assert_eq!(finding.outcome, Fail);
    assert!(finding.why.contains("wave "), "{finding:?}");
    assert_eq!(outcome(&pods(6_000), Check::ReconnectSpread), Pass);
    // And no pod is a relapse, since each client's first drop is the trigger's.
    assert_eq!(outcome(&pods(6_000), Check::Relapse), Pass);
}

#[test]
fn rule_3_a_wave_that_no_trigger_caused_is_a_relapse() {
    let again = |kind: TriggerKind, dropped: u32, ms: u64| {
        let clients = spread(100, 9_000).terms(|t| t.trigger = kind);
        let clients = clients.each(move |k, s| {
            if k <= dropped {
                s.dropped(ms).resume(ms + 60 * u64::from(k), 1);
            }
        });
        clients.end(90_000)
    };
    for kind in [TriggerKind::Child, TriggerKind::Command] {
        assert_eq!(outcome(&again(kind, 5, 30_000), Check::Relapse), Fail);
        assert_eq!(outcome(&again(kind, 4, 30_000), Check::Relapse), Pass);
    }
    let finding = found(&again(TriggerKind::Child, 60, 30_000), Check::Relapse);
    assert_eq!(finding.measured, "1");
}

#[test]
fn rule_3_waiting_an_outage_begins_with_the_first_wave_that_counts() {
    let history = |again: u32| {
        let clients = Builder::new(100)
            .terms(|t| t.trigger = TriggerKind::Wait)
            .mark(1_000, Mark::Trigger { outage: 1 })
            .each(move |k, s| {
                s.open(10);
                if k <= 3 {
                    s.dropped(5_000).open(6_000);
                }
                s.dropped(20_000).open(21_000 + 80 * u64::from(k));
                if k <= again {
                    s.dropped(60_000).open(61_000 + 80 * u64::from(k));
                }
            });
        clients.end(120_000)
    };
    let verdict = judge(&history(0));
    let shape: Vec<_> = verdict
        .outages
        .iter()
        .map(|o| (o.outage, o.dropped))
        .collect();
    assert_eq!(shape, [(0, 3), (1, 100)]);
    let relapse = |h: &History| {
        judge(h)
            .findings
            .iter()
            .find(|f| f.check == Check::Relapse)
            .unwrap()
            .outcome
    };
    assert_eq!(relapse(&history(0)), Pass);
    assert_eq!(relapse(&history(100)), Fail);
}

#[test]
fn rule_3_a_death_of_the_server_is_a_relapse_however_few_it_hits() {
    let died = |ms| {
        let status = "signal 11".into();
        spread(100, 9_000)
            .mark(ms, Mark::Died { status })
            .end(90_000)
    };
    assert_eq!(found(&died(30_000), Check::Relapse).measured, "1");
    assert_eq!(outcome(&died(30_000), Check::Relapse), Fail);
    // Where a wave shows it, it is counted once.
    let shown = spread(100, 9_000)
        .mark(
            29_900,
            Mark::Died {
                status: "exit 1".into(),
            },
        )
        .each(|k, s| {
            s.dropped(30_000).resume(31_000 + 80 * u64::from(k), 2);
        })
        .end(90_000);
    assert_eq!(found(&shown, Check::Relapse).measured, "1");
}

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
    let hit = |dropped: u32, share: f64| {
        let clients = Builder::new(100)
            .terms(|t| t.share = share)
            .outage(1, TRIGGER, READY)
            .each(move |k, s| {
                s.open(100);
                if k <= dropped {
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
    let finding = |story: fn(&mut Story<'_>)| {
        let clients = run(10).each(|k, s| match k {
            10 => story(s),
            _ => back(s, READY + 700 * u64::from(k)),
        });
        found(&clients.end(300_000), Check::AllReconnected)
    };
    let cases: [(fn(&mut Story<'_>), &str); 3] = [
        (|_| (), "never came back"),
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
            "never retries",
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
        history.header.terms.trigger = TriggerKind::Wait;
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
    let one = spread(100, 9_000).terms(|t| t.outages = 2).end(60_000);
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
