//! The rules on reconnects: what one is (1), where it is measured (2), wave by wave (3); the others stand in the module
//! below.

mod doubt;
mod falls;
mod opening;
mod region;
mod relapse;
mod spared;
mod stale;

use std::time::Duration;

use herd::check::{Check, Finding, Outcome, judge};
use herd::history::build::{Builder, Story};
use herd::history::{AttemptOutcome, Cause, History, Mark, TriggerKind};

use Outcome::{Fail, Pass};

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

/// One client's story from its drop on.
type Tale = fn(&mut Story<'_>);

fn found(history: &History, check: Check) -> Finding {
    let verdict = judge(history);
    assert_eq!(
        verdict.outcome,
        verdict
            .findings
            .iter()
            .map(|f| f.outcome)
            .max()
            .expect("a verdict without findings")
    );
    let mut of_check = verdict.findings.into_iter().filter(|f| f.check == check);
    let finding = of_check.next().expect("no such finding");
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
            .terms(|t| t.reconnect_limit = Some(Duration::from_secs(12)))
            .client(1, move |s| {
                s.dropped(30_000).open(41_500);
                s.closed(41_501 + lasted, Cause::Herd);
            })
            .end(41_501 + lasted)
    };
    let verdict = judge(&flap(999));
    let absent = |f: &&Finding| f.check == Check::AllReconnected && f.outcome == Fail;
    let finding = verdict.findings.iter().find(absent);
    assert!(
        finding.is_some_and(|f| f.why.contains("client 1")),
        "{finding:?}"
    );
    assert_eq!(verdict.outages[0].flapped, 1);
    // A second is long enough.
    assert_eq!(outcome(&flap(1_000), Check::AllReconnected), Pass);
}

/// Seen as reconnects, the short sessions would be a stampede.
#[test]
fn rule_1_the_spread_is_that_of_the_reconnects_and_not_of_the_flaps() {
    let lasting = |ms: u64| {
        let clients = run(100).each(move |k, s| {
            let opened = READY + u64::from(k);
            s.open(opened).dropped(opened + 1 + ms);
            s.open(READY + 2_000 + 90 * u64::from(k));
        });
        found(&clients.end(60_000), Check::ReconnectSpread).outcome
    };
    assert_eq!(lasting(10), Pass);
    assert_eq!(lasting(1_000), Fail);
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

/// Nothing observed is unknown, of however few clients.
#[test]
fn rule_2_a_peak_of_nobody_is_unknown() {
    for clients in [2, 5, 30] {
        let finding = found(&run(clients).end(60_000), Check::Peak);
        assert_eq!(finding.outcome, Outcome::Unknown, "{clients}: {finding:?}");
    }
}

/// Five pods rolled 30 s apart: the whole takes 120 s, each of them stampedes.
#[test]
fn rule_3_each_wave_is_judged_by_itself() {
    let pods = |within: u64| {
        let history = Builder::new(100)
            .terms(|t| t.outages[0].trigger = TriggerKind::Command)
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
        let clients = spread(100, 9_000).terms(|t| t.outages[0].trigger = kind);
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
            .terms(|t| t.outages[0].trigger = TriggerKind::Wait)
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
