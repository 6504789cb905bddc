//! Outages of several falls: crash loops and rolling restarts, honest ones and those with a stampede in one part.

use herd::check::{Check, Finding, Outcome, judge};
use herd::history::build::Builder;
use herd::history::{Cause, Elapsed, History, Mark, Quit, TriggerKind};

use Outcome::{Fail, Pass};

use super::found;

/// Clients, and how they come back from a fall: after so many milliseconds from its readiness, client and fall told.
type After = fn(u32, u32) -> u64;

const CLIENTS: u32 = 100;
/// From one fall to the next.
const EVERY: u64 = 8_000;
/// How long each lasts.
const DOWN: u64 = 1_000;

/// Three falls of all servers: everybody who is connected loses the connection.
fn crash_loop(after: After) -> History {
    let mut run = Builder::new(CLIENTS)
        .terms(|t| t.outages[0].falls = 3)
        .mark(10_000, Mark::Trigger { outage: 1 });
    for fall in 1..=3 {
        let at = 10_000 + u64::from(fall - 1) * EVERY;
        run = run
            .mark(
                at,
                Mark::Fall {
                    outage: 1,
                    fall,
                    target: None,
                },
            )
            .mark(at + 1, Mark::Gone { outage: 1 })
            .mark(at + DOWN, Mark::Ready { outage: 1 });
    }
    run.each(move |k, s| {
        s.open(100);
        let mut open = true;
        for fall in 1..=3 {
            let at = 10_000 + u64::from(fall - 1) * EVERY;
            if open {
                s.dropped(at + 5);
            }
            let back = after(k, fall);
            open = fall == 3 || DOWN + back < EVERY;
            if open {
                s.open(at + DOWN + back);
            }
        }
    })
    .end(90_000)
}

/// Evenly over 9 s, another order each time.
fn honest(k: u32, fall: u32) -> u64 {
    let mixed = (k * 37 + fall * 11) % CLIENTS;
    100 + u64::from(mixed) * 90
}

fn outcomes(history: &History) -> [Outcome; 2] {
    [Check::ReconnectSpread, Check::Peak].map(|check| found(history, check).outcome)
}

#[test]
fn an_honest_crash_loop_passes() {
    let history = crash_loop(honest);
    for check in [
        Check::ReconnectSpread,
        Check::Peak,
        Check::AllReconnected,
        Check::Relapse,
    ] {
        let finding = found(&history, check);
        assert_eq!(finding.outcome, Pass, "{finding:?}");
    }
    assert_eq!(judge(&history).outages[0].waves.len(), 3);
}

#[test]
fn a_stampede_after_the_last_fall_fails_and_is_named() {
    let history = crash_loop(|k, fall| {
        if fall == 3 {
            u64::from(k)
        } else {
            honest(k, fall)
        }
    });
    let finding = found(&history, Check::ReconnectSpread);
    assert_eq!(finding.outcome, Fail, "{finding:?}");
    assert!(
        ["fall 3", "final recovery"]
            .iter()
            .any(|part| finding.why.contains(part)),
        "{finding:?}"
    );
    assert_eq!(outcomes(&history), [Fail, Fail]);
}

#[test]
fn a_stampede_in_a_middle_part_fails_the_peak_though_stragglers_widen_its_spread() {
    let history = crash_loop(|k, fall| match fall {
        2 if k > 8 => u64::from(k),
        _ => honest(k, fall),
    });
    let finding = found(&history, Check::Peak);
    assert_eq!(finding.outcome, Fail, "{finding:?}");
    assert!(finding.why.contains("fall 2"), "{finding:?}");
}

#[test]
fn whoever_is_away_through_all_falls_is_not_late() {
    let history = crash_loop(|k, fall| {
        if k == 1 && fall < 3 {
            100_000
        } else {
            honest(k, fall)
        }
    });
    let finding = found(&history, Check::AllReconnected);
    assert_eq!(finding.outcome, Pass, "{finding:?}");
}

/// Three targets, one after another; a third of the clients on each, and each goes on to the next.
fn rolling(after: After) -> History {
    let mut run = Builder::new(CLIENTS)
        .terms(|t| {
            t.outages[0].trigger = TriggerKind::Rolling;
            (t.outages[0].falls, t.targets) = (3, 3);
        })
        .mark(10_000, Mark::Trigger { outage: 1 });
    for fall in 1..=3 {
        let at = 10_000 + u64::from(fall - 1) * 20_000;
        let target = Some(fall as u16 - 1);
        run = run
            .mark(
                at,
                Mark::Fall {
                    outage: 1,
                    fall,
                    target,
                },
            )
            .mark(at + 1, Mark::Gone { outage: 1 })
            .mark(at + DOWN, Mark::Ready { outage: 1 });
    }
    run.each(move |k, s| {
        s.open(100);
        for fall in 1..=3 {
            let at = 10_000 + u64::from(fall - 1) * 20_000;
            // On its first target until that falls, then on each next one.
            if k % 3 < fall {
                s.dropped(at + 5).open(at + 5 + after(k, fall));
            }
        }
    })
    .end(120_000)
}

#[test]
fn an_honest_rolling_restart_passes_though_clients_drop_up_to_three_times() {
    let history = rolling(honest);
    for check in [
        Check::ReconnectSpread,
        Check::Peak,
        Check::AllReconnected,
        Check::Relapse,
    ] {
        let finding = found(&history, check);
        assert_eq!(finding.outcome, Pass, "{finding:?}");
    }
    assert_eq!(judge(&history).returns.len(), 33 + 67 + 100);
}

#[test]
fn one_stampede_in_a_rolling_restart_fails() {
    let history = rolling(|k, fall| {
        if fall == 2 {
            u64::from(k)
        } else {
            honest(k, fall)
        }
    });
    assert_eq!(outcomes(&history), [Fail, Fail]);
    let finding = found(&history, Check::ReconnectSpread);
    assert!(finding.why.contains("fall 2"), "{finding:?}");
}

/// A connection that brought events until the last fall was not lost in the first one.
#[test]
fn rule_5_a_half_open_session_counts_as_down_since_the_fall_that_it_did_not_outlive() {
    let third = 50_000;
    let mut history = rolling(honest);
    // It stands on the third target all the time, and nobody tells it that that one is gone.
    let quiet = &mut history.clients[31];
    assert_eq!((quiet.id.0, quiet.sessions.len()), (32, 2));
    quiet.sessions[0].silent_since = Some(Elapsed::from_millis(third - 30));
    let noticed = Elapsed::from_millis(third + 90);
    quiet.sessions[0].closed = Some((noticed, Cause::HalfOpen));
    let returns = judge(&history).returns;
    let of_client = returns.iter().filter(|r| r.client.0 == 32);
    let dropped: Vec<_> = of_client.map(|r| (r.wave, r.dropped.millis())).collect();
    assert_eq!(dropped, [(3, 50_005.0)]);
}

/// Whoever came back from one fall and not from the next has not come back: each client is counted once.
#[test]
fn a_client_that_is_away_at_last_is_none_that_came_back() {
    let mut history = crash_loop(honest);
    let gone = &mut history.clients[..3];
    for client in gone {
        client.attempts.pop();
        client.sessions.pop();
        let at = Elapsed::from_millis(60_000);
        client.quit = Some((at, Quit::GaveUp));
    }
    let facts = &judge(&history).outages[0];
    let counts = (facts.dropped, facts.reconnected, facts.gave_up);
    assert_eq!(counts, (100, 97, 3));
    assert_eq!(found(&history, Check::AllReconnected).outcome, Fail);
}

/// Two falls of which each one's own dials keep to the limit; together they are more than all clients.
fn across(second: u64) -> Finding {
    let fall = |at: u64, fall: u32| {
        let target = None;
        let begun = Mark::Fall {
            outage: 1,
            fall,
            target,
        };
        [
            (at, begun),
            (at + 1, Mark::Gone { outage: 1 }),
            (at + 100, Mark::Ready { outage: 1 }),
        ]
    };
    let run = Builder::new(CLIENTS)
        .terms(|t| t.outages[0].falls = 2)
        .mark(10_000, Mark::Trigger { outage: 1 });
    let marks = [fall(10_000, 1), fall(second, 2)].into_iter().flatten();
    let run = marks.fold(run, |run, (at, mark)| run.mark(at, mark));
    let history = run
        .each(|k, s| {
            let (k, late) = (u64::from(k), 12_600 + 90 * u64::from(k));
            s.open(100).dropped(10_005);
            if k <= 70 {
                s.open(10_700 + 4 * k).got(10_985, 1).dropped(second + 5);
            }
            s.open(if k <= 50 { 11_300 + 4 * k } else { late });
        })
        .end(90_000);
    found(&history, Check::Peak)
}

#[test]
fn what_lies_across_two_falls_is_found_in_the_whole() {
    let finding = across(11_100);
    assert_eq!(finding.outcome, Fail, "{finding:?}");
    assert!(finding.why.contains("all falls together"), "{finding:?}");
    // Whoever falls twice within the window dials twice in it, whatever the policy.
    let finding = across(10_990);
    assert_eq!(finding.outcome, Outcome::Unknown, "{finding:?}");
    assert!(finding.why.contains("2 falls lie within"), "{finding:?}");
}
