//! The matrix over real sockets: the binary restarts its own reference server, which misbehaves and says so in its
//! ledger, and the summary must say the same.
//!
//! These tests take real time and no clock can be paused for them: they are about processes, sockets and a server that
//! is killed. Everything is scaled down to seconds and up to eight runs go on at once. A run in which herd itself was
//! late proves less, and says so; it is made again, but what it does say must be true as well.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

use std::thread;

use herd::check::{Check, Finding, Outcome};
use herd::server::defect::{Defect, Ledger, Planted};
use serde_json::Value;

use super::blinds;
use super::rig::{self, Dialect, Plan, Ran, run};

/// So many clients reach the spread in all but a few of a million runs.
const CLIENTS: u32 = 40;
/// How often a run is made until herd itself is in time.
const TRIES: u32 = 4;

/// One row: what is planted, and the scenario.
#[derive(Debug, Clone, Copy)]
struct Row {
    planted: Planted,
    plan: Plan,
}

/// A defect in a measure, and a scenario, in which it is sure to act.
fn row(defect: Defect, dialect: Dialect) -> Row {
    let plan = Plan {
        dialect,
        ..Plan::new(CLIENTS, 1 + defect as u64)
    };
    let with = |arg, plan| Row {
        planted: Planted { defect, arg },
        plan,
    };
    match defect {
        Defect::LoseLive | Defect::DuplicateLive | Defect::Conflict | Defect::CorruptFrame => {
            with(50, plan)
        }
        Defect::Reorder | Defect::AckThenLose | Defect::RefuseSome => with(20, plan),
        // More than are published while the server is down and come in one piece when it is up again: who is connected
        // then must not fall behind what is kept.
        Defect::SkipEvicted | Defect::SilentOldest | Defect::PartialWithFlag => with(
            30,
            Plan {
                down: 1_000,
                ..plan
            },
        ),
        // Each client dials every 1.5 s: fewer than the peak's limit at a time.
        Defect::AcceptThenClose => with(
            60_000,
            Plan {
                policy: "preset = 'full-jitter'\nbase = '3s'\ncap = '3s'",
                ..plan
            },
        ),
        // Some wait: at most 40 at once come to this server, at 40 a second.
        Defect::SlowAccept => with(40, plan),
        // Down for longer than the second that makes a wave one of its own, with enough clients in that wave, and a limit
        // for who is away through both.
        Defect::DieAgain => with(
            30,
            Plan {
                clients: 60,
                down: 1_200,
                min_spread: 500,
                reconnect_limit: 12,
                ..plan
            },
        ),
        // Half-open clients count as away from the cut on, and are noticed after 5 s, also where they received something
        // while the kill was under way.
        Defect::HalfOpen => with(
            10,
            Plan {
                rate: 100,
                reconnect_limit: 12,
                ..plan
            },
        ),
        _ => Row {
            planted: Planted::new(defect),
            plan,
        },
    }
}

/// What `herd list defects --json` declares of a defect: the checks that must fail, and what its ledger counts.
fn declared(list: &[Value], defect: Defect) -> (Vec<Check>, Ledger) {
    let entry = list.iter().find(|entry| entry["name"] == defect.name());
    let entry = entry.unwrap_or_else(|| panic!("{defect} is not in the list"));
    let checks = serde_json::from_value(entry["trips"].clone()).unwrap();
    (
        checks,
        serde_json::from_value(entry["counts"].clone()).unwrap(),
    )
}

/// How often the defect acted, and the number of the summary or the files that must be the same; the larger one where
/// the end of the run may have cut some off.
fn counted(counts: Ledger, clients: u32, ran: &Ran) -> (u64, u64, u64) {
    let (facts, outage) = (&ran.told.delivery, &ran.told.outages[0]);
    let exactly = |acted, judged| (acted, judged, judged);
    match counts {
        Ledger::Lost => exactly(ran.distinct(), facts.lost),
        Ledger::LostEverywhere => exactly(ran.distinct() * u64::from(clients), facts.lost),
        Ledger::Duplicated => exactly(ran.lines(), facts.duplicated),
        Ledger::Reordered => exactly(ran.lines(), facts.reordered),
        Ledger::Redelivered => exactly(ran.lines(), facts.redelivered),
        Ledger::Overtaken => (
            ran.lines(),
            facts.reordered.max(facts.duplicated),
            facts.reordered.min(facts.duplicated),
        ),
        Ledger::Conflict => exactly(ran.lines(), facts.conflict),
        // Where a reset is said by ending the session it is a refusal.
        Ledger::Resets => exactly(
            ran.lines(),
            ran.rows("sessions.csv", "resume_outcome", "reset")
                + ran.rows("sessions.csv", "resume_outcome", "refused"),
        ),
        Ledger::NeverBack => exactly(ran.lines(), u64::from(outage.dropped - outage.reconnected)),
        Ledger::Flapped => {
            let flapped = ran.rows("attempts.csv", "outcome", "flapped");
            let cut = ran.rows("attempts.csv", "outcome", "aborted");
            (ran.lines(), flapped, flapped + cut)
        }
        Ledger::HalfOpen => exactly(
            ran.distinct(),
            ran.rows("sessions.csv", "cause", "half-open"),
        ),
        Ledger::Uncounted => exactly(ran.lines(), ran.lines()),
    }
}

/// What the summary says other than that the first checks failed and all others passed. The second may be unknown, and
/// where herd was late so may everything else.
fn beside(ran: &Ran, trips: &[Check], blinds: &[Check]) -> Vec<String> {
    let excused = |f: &Finding| {
        f.outcome == Outcome::Unknown && (blinds.contains(&f.check) || !ran.told.in_time())
    };
    let expected = |f: &Finding| match trips.contains(&f.check) {
        true => f.outcome == Outcome::Fail,
        false => f.outcome == Outcome::Pass,
    };
    let findings = ran.told.checks.iter();
    findings
        .filter(|f| !expected(f) && !excused(f))
        .map(|f| format!("{} {}: {}: {}", f.check, f.outcome, f.measured, f.why))
        .collect()
}

/// Everything that is wrong with a row; runs until herd is in time.
fn wrong(row: &Row, trips: &[Check], counts: Ledger) -> Vec<String> {
    let Row { planted, plan } = row;
    let said = |what: String| format!("{planted} over {:?}: {what}", plan.dialect);
    for _ in 0..TRIES {
        let ran = run(plan, Some(&planted.to_string()));
        let mut wrong = beside(&ran, trips, blinds(planted.defect));
        let (acted, least, most) = counted(counts, plan.clients, &ran);
        if acted == 0 || !(least..=most).contains(&acted) {
            wrong.push(format!("acted {acted}, judged {least} to {most}"));
        }
        if ran
            .acts
            .iter()
            .any(|act| act.defect != planted.defect.name())
        {
            wrong.push(format!("the ledger has other acts: {:?}", ran.acts));
        }
        if !wrong.is_empty() {
            return wrong.into_iter().map(said).collect();
        }
        if ran.told.in_time() {
            return Vec::new();
        }
    }
    vec![said(format!(
        "herd was late in {TRIES} runs; give the machine less other work"
    ))]
}

/// All that is wrong with many things, each looked at by its own thread; who runs when is the rig's business.
fn each<T: Send>(things: Vec<T>, look: impl Fn(T) -> Vec<String> + Sync) -> Vec<String> {
    thread::scope(|scope| {
        let look = &look;
        let threads: Vec<_> = things
            .into_iter()
            .map(|thing| scope.spawn(move || look(thing)))
            .collect();
        let said = threads.into_iter().map(|t| t.join());
        said.flat_map(|said| said.unwrap_or_else(|_| vec!["a run panicked, see above".into()]))
            .collect()
    })
}

/// All of the matrix before it complains, so that one look shows what a change did.
#[test]
fn each_defect_trips_its_set_with_the_exact_count() {
    let list = rig::declared();
    assert_eq!(list.len(), Defect::ALL.len());
    let all = |dialect| Defect::ALL.map(|defect| (defect, dialect));
    let rows: Vec<_> = Dialect::ALL.into_iter().flat_map(all).collect();
    let wrong = each(rows, |(defect, dialect)| {
        let (trips, counts) = declared(&list, defect);
        wrong(&row(defect, dialect), &trips, counts)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Clients that all come back in the same instant, to a server that makes them queue: opened looks spread out over more
/// than the limit, dialled does not.
#[test]
fn a_stampede_is_seen_through_a_slow_accept_loop() {
    let stampede = Row {
        planted: "slow-accept=20".parse().unwrap(),
        plan: Plan {
            policy: "preset = 'fixed'\ndelay = '1s'",
            ..Plan::new(CLIENTS, 1)
        },
    };
    let trips = [Check::ReconnectSpread, Check::Peak];
    let wrong = wrong(&stampede, &trips, Ledger::Uncounted);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The clean run of this number: sizes, rates and down times in every combination that the three cycles come to, seven
/// runs in each dialect.
fn clean(number: u32) -> Plan {
    let pick = |from: &[u32]| from[number as usize % from.len()];
    Plan {
        dialect: Dialect::ALL[number as usize / 7 % Dialect::ALL.len()],
        down: pick(&[400, 700, 1_100]),
        rate: pick(&[10, 20, 35, 50]),
        ..Plan::new(pick(&[6, 32, 40, 60, 80]), 100 + u64::from(number))
    }
}

/// So few clients may be as close together by luck (rule 4): then the spread is unknown, and nothing else is.
const FEW: u32 = 6;

#[test]
fn clean_runs_trip_nothing() {
    let wrong = each((0..21).map(clean).collect(), |plan| {
        let luck: &[Check] = match plan.clients {
            FEW => &[Check::ReconnectSpread],
            _ => &[],
        };
        for _ in 0..TRIES {
            let ran = run(&plan, None);
            let wrong = beside(&ran, &[], luck);
            let told = |what: String| format!("{plan:?}: {what}");
            if !wrong.is_empty() || !ran.acts.is_empty() {
                return wrong.into_iter().map(told).collect();
            }
            if ran.told.in_time() {
                return Vec::new();
            }
        }
        vec![format!("{plan:?}: herd was late in {TRIES} runs")]
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
