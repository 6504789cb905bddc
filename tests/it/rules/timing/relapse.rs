//! Rule 3 where relapses are hard to tell from restarts: pods rolled one by one, and a server that is never ready again.

use std::time::Duration;

use herd::check::{Check, Outcome, judge};
use herd::history::build::{self, Builder};
use herd::history::{Cause, CutKind, Elapsed, History, Mark, TriggerKind};

use Outcome::{Fail, Pass};

use super::{READY, TRIGGER, back, found, outcome, run, spread};

/// Five pods rolled 30 s apart under fifty clients. Whoever is dropped lands on any other pod, so on one whose turn is yet
/// to come more often than not.
fn rolled(kind: TriggerKind, luck: u64) -> History {
    let draw = |k: u32, turn: u64| {
        let mixed = (u64::from(k) * 1_000 + turn * 10 + luck).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    };
    Builder::new(50)
        .terms(|t| t.outages[0].trigger = kind)
        .mark(TRIGGER, Mark::Trigger { outage: 1 })
        .each(|k, s| {
            s.open(1);
            let mut on = draw(k, 9) % 5;
            for turn in 0..5 {
                if on == turn {
                    let at = TRIGGER + 10 + 30_000 * turn;
                    s.dropped(at).open(at + 100 + 300 * u64::from(k % 25));
                    on = (on + 1 + draw(k, turn) % 4) % 5;
                }
            }
        })
        .end(300_000)
}

#[test]
fn rule_3_pods_rolled_one_by_one_are_no_relapse_though_clients_drop_twice() {
    for kind in [TriggerKind::Command, TriggerKind::Wait] {
        for luck in 0..20 {
            let finding = found(&rolled(kind, luck), Check::Relapse);
            assert_eq!(finding.outcome, Pass, "{finding:?}");
        }
    }
}

#[test]
fn rule_3_a_whole_server_that_falls_over_again_is_a_relapse_whoever_restarts_it() {
    for kind in [TriggerKind::Command, TriggerKind::Wait] {
        let again = spread(50, 9_000)
            .terms(|t| t.outages[0].trigger = kind)
            .each(|k, s| {
                s.dropped(40_000).resume(41_000 + 150 * u64::from(k), 2);
            })
            .end(90_000);
        assert_eq!(outcome(&again, Check::Relapse), Fail, "{kind:?}");
    }
}

#[test]
fn rule_23_a_server_that_is_never_ready_again_fails_even_if_everybody_is_back() {
    let mut history = spread(20, 9_000)
        .mark(50_000, Mark::NeverReady { outage: 1 })
        .end(60_000);
    history
        .marks
        .retain(|(_, mark)| !matches!(mark, Mark::Ready { .. }));
    let finding = found(&history, Check::AllReconnected);
    assert_eq!(finding.outcome, Fail);
    assert!(
        finding.why.contains("the target was never ready again"),
        "{finding:?}"
    );
}

#[test]
fn rule_3_without_a_ready_server_only_what_drops_as_it_goes_is_the_triggers() {
    let again = |ms: u64| {
        let clients = run(20).each(move |k, s| {
            back(s, READY + 400 * u64::from(k));
            s.dropped(ms).resume(ms + 1_000 + 400 * u64::from(k), 2);
        });
        let mut history = clients
            .mark(70_000, Mark::NeverReady { outage: 1 })
            .end(80_000);
        history
            .marks
            .retain(|(_, mark)| !matches!(mark, Mark::Ready { .. }));
        history
    };
    let history = again(40_000);
    assert_eq!(outcome(&history, Check::Relapse), Fail);
    let waves = |h: &History| judge(h).returns.iter().map(|r| r.dropped).max();
    assert_eq!(waves(&history), Some(Elapsed::from_millis(40_000)));
}

#[test]
fn rule_6_who_dropped_just_before_the_end_may_still_come_back() {
    let away = |end: u64| {
        let clients = spread(20, 9_000).client(1, |s| {
            s.dropped(50_000);
        });
        let verdict = judge(&clients.end(end));
        let mut of_check = verdict
            .findings
            .into_iter()
            .filter(|f| f.check == Check::AllReconnected);
        of_check.next().expect("no such finding")
    };
    let pending = away(51_000);
    assert_eq!(pending.outcome, Outcome::Unknown, "{pending:?}");
    assert!(pending.why.contains("1 were still away"), "{pending:?}");
    assert_eq!(away(300_000).outcome, Fail);
}

#[test]
fn a_waves_peak_in_a_second_is_that_whatever_window_is_judged() {
    let history = spread(20, 1_900)
        .terms(|t| t.peak_window = Duration::from_secs(30))
        .end(60_000);
    assert_eq!(judge(&history).outages[0].waves[0].peak_1s, 10);
}

#[test]
fn a_policy_that_cannot_be_decides_nothing_and_brings_nothing_down() {
    for jitter in ["-2.0", "1e300"] {
        let policy = build::FULL_JITTER.replace("\"full\",", &format!(r#"{{"ratio":{jitter}}},"#));
        assert_ne!(policy, build::FULL_JITTER);
        let history = spread(20, 900).terms(|t| t.policy = policy).end(60_000);
        let finding = found(&history, Check::ReconnectSpread);
        assert_eq!(finding.outcome, Outcome::Unknown, "{finding:?}");
    }
}

/// A profile has a limit of silence of its own, which may be far longer than the cut: whoever finds out late lost the
/// connection in the cut. A server that ends connections then does so by itself.
#[test]
fn rule_3_a_cut_that_is_noticed_late_is_no_relapse() {
    let noticed = |last_sign: Option<u64>| {
        let clients = Builder::new(50)
            .terms(|t| {
                t.outages[0].trigger = TriggerKind::Cut;
                t.outages[0].cut = Some(CutKind::Blackhole);
            })
            .outage(1, TRIGGER, READY)
            .each(|k, s| {
                let at = READY + 45_000 + 20 * u64::from(k);
                s.open(1);
                match last_sign {
                    Some(sign) => s.silent(sign).closed(at, Cause::Heartbeat),
                    None => s.closed(at, Cause::Reset),
                };
                s.open(at + 200 * u64::from(k));
            });
        outcome(&clients.end(120_000), Check::Relapse)
    };
    assert_eq!(noticed(Some(TRIGGER - 20)), Pass);
    assert_eq!(noticed(Some(READY + 20_000)), Fail, "silent long after it");
    assert_eq!(noticed(None), Fail);
}

/// How long silence may go unnoticed says nothing of a server that ends connections by itself.
#[test]
fn rule_3_a_server_that_falls_while_silence_might_still_be_noticed_is_a_relapse() {
    let silence = Duration::from_secs(45);
    for cut in [CutKind::Fin, CutKind::Rst, CutKind::Refuse] {
        let again = spread(50, 9_000).terms(|t| {
            t.outages[0].trigger = TriggerKind::Cut;
            (t.outages[0].cut, t.silence) = (Some(cut), Some(silence));
        });
        let again = again.each(|k, s| {
            s.dropped(READY + 30_000);
            s.resume(READY + 31_000 + 150 * u64::from(k), 2);
        });
        assert_eq!(outcome(&again.end(90_000), Check::Relapse), Fail, "{cut:?}");
    }
}

/// In a slow network what ended in the cut is heard of later, whoever ended it.
#[test]
fn rule_3_an_end_that_comes_late_out_of_a_slow_network_is_no_relapse() {
    let ended = |ms: u64| {
        let clients = Builder::new(50)
            .terms(|t| {
                t.outages[0].trigger = TriggerKind::Cut;
                t.outages[0].cut = Some(CutKind::Latency);
                t.silence = Some(Duration::from_secs(10));
            })
            .outage(1, TRIGGER, READY)
            .each(|k, s| {
                s.open(1).dropped(ms).open(ms + 1_000 + 200 * u64::from(k));
            });
        outcome(&clients.end(120_000), Check::Relapse)
    };
    assert_eq!(ended(READY + 12_000), Pass);
    assert_eq!(ended(READY + 12_001), Fail);
}

/// A run that was broken off within a cut: the network was still away.
#[test]
fn rule_3_a_cut_goes_on_until_the_network_is_back() {
    for silent in [false, true] {
        let clients = Builder::new(50)
            .terms(|t| {
                t.outages[0].trigger = TriggerKind::Cut;
                t.outages[0].cut = Some(CutKind::Latency);
            })
            .mark(TRIGGER, Mark::Trigger { outage: 1 })
            .mark(TRIGGER, Mark::Gone { outage: 1 })
            .each(|_, s| {
                s.open(1);
                match silent {
                    true => s.silent(15_000).closed(20_000, Cause::Heartbeat),
                    false => s.closed(20_000, Cause::Reset),
                };
            });
        let history = clients.cut(21_000);
        assert_eq!(outcome(&history, Check::Relapse), Outcome::Unknown);
    }
}

/// Clients find a blackhole one after the other. Some that the server ends meanwhile are a wave of its own making, a stray one
/// is none.
#[test]
fn rule_3_what_the_server_ends_among_silent_ones_is_a_relapse() {
    let ended = |by_server: u32| {
        let clients = Builder::new(50)
            .terms(|t| {
                t.outages[0].trigger = TriggerKind::Cut;
                t.outages[0].cut = Some(CutKind::Blackhole);
                t.silence = Some(Duration::from_secs(10));
            })
            .outage(1, TRIGGER, READY)
            .each(|k, s| {
                let at = READY + 100 * u64::from(k);
                s.open(1);
                match k > 20 && k <= 20 + by_server {
                    false => s.silent(TRIGGER - 20).closed(at, Cause::Heartbeat),
                    true => s.closed(at, Cause::Reset),
                };
                s.open(at + 200 * u64::from(k));
            });
        outcome(&clients.end(120_000), Check::Relapse)
    };
    assert_eq!(ended(0), Pass);
    assert_eq!(ended(2), Pass);
    assert_eq!(ended(20), Fail);
}

/// One client that comes and goes between two falls must not make the second one look like another pod's turn.
#[test]
fn rule_3_a_stray_drop_hides_no_relapse() {
    for kind in [TriggerKind::Command, TriggerKind::Wait] {
        let again = |stray: bool| {
            let clients = spread(50, 9_000).terms(|t| t.outages[0].trigger = kind);
            let clients = clients.each(|k, s| {
                if k == 1 && stray {
                    s.dropped(30_000).resume(30_500, 2);
                }
                if k <= 30 {
                    s.dropped(40_000).resume(41_000 + 150 * u64::from(k), 2);
                }
            });
            outcome(&clients.end(90_000), Check::Relapse)
        };
        assert_eq!((again(false), again(true)), (Fail, Fail), "{kind:?}");
    }
}
