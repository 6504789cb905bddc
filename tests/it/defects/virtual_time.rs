//! The matrix in virtual time: the model server misbehaves, its ledger says how often, and the verdict must say the same.

use std::collections::BTreeSet;
use std::time::Duration;

use herd::backoff::{Mix, presets};
use herd::check::{self, Check, DeliveryFacts, Finding, Outcome, ResumeOutcome, Verdict};
use herd::history::{Cause, Duplicates, History};
use herd::server::defect::Defect;
use herd::simulate::{self, Fault, Ledger, Setup};

use super::blinds;

/// Enough clients for the rule of chance to decide every time.
const CLIENTS: u32 = 200;

/// Checks that no defect of a server can trip, and who can.
const NOT_A_DEFECTS: [(Check, &str); 6] = [
    (
        Check::ReconnectSpread,
        "the clients' policy decides it: see the stampedes below",
    ),
    (
        Check::Peak,
        "the clients' policy decides it: see the stampedes below",
    ),
    (
        Check::Bystanders,
        "only a cut for a part of the clients has any: the rules' tests trip it",
    ),
    (
        Check::Recovery,
        "only reported, until somebody sets a limit: see below",
    ),
    (
        Check::Staleness,
        "only reported, until somebody sets a limit: see below",
    ),
    (
        Check::Generator,
        "herd's own fault, never the server's; the rules' tests trip it",
    ),
];

struct Case {
    history: History,
    ledger: Ledger,
    verdict: Verdict,
}

fn case(setup: &Setup) -> Case {
    let (history, ledger) = simulate::run_with_ledger(setup);
    let verdict = check::judge(&history);
    Case {
        history,
        ledger,
        verdict,
    }
}

fn with(defect: Defect) -> Setup {
    let mut setup = Setup {
        fault: Some(Fault::new(defect)),
        ..Setup::new(CLIENTS, 1)
    };
    setup.terms.settle = Duration::from_secs(5);
    setup.terms.reconnect_limit = Some(Duration::from_secs(30));
    if defect == Defect::DieAgain {
        // Who is away through both deaths waits longer.
        setup.terms.reconnect_limit = Some(Duration::from_secs(90));
    }
    match defect {
        Defect::SkipEvicted | Defect::SilentOldest | Defect::PartialWithFlag => setup.keep = 40,
        Defect::LegalRedelivery => setup.terms.duplicates = Duplicates::Marked,
        _ => {}
    }
    setup
}

/// What the verdict says other than that the first failed, the second could not be judged and all others passed.
fn beside(verdict: &Verdict, trips: &[Check], blinds: &[Check]) -> Vec<String> {
    let told = |f: &Finding| {
        let Finding {
            check,
            outcome,
            measured,
            why,
            ..
        } = f;
        format!("{check} {outcome}: {measured}: {why}")
    };
    let surprising = |f: &&Finding| {
        let expected = if trips.contains(&f.check) {
            Outcome::Fail
        } else if blinds.contains(&f.check) {
            Outcome::Unknown
        } else {
            Outcome::Pass
        };
        f.outcome != expected
    };
    verdict
        .findings
        .iter()
        .filter(surprising)
        .map(told)
        .collect()
}

fn assert_trips(case: &Case, what: &str, trips: &[Check]) {
    assert_eq!(beside(&case.verdict, trips, &[]), [""; 0], "{what}");
}

/// The verdict's numbers that are not zero for a clean run, as the ledger has them.
fn counts(ledger: &Ledger, verdict: &Verdict) -> DeliveryFacts {
    let facts = &verdict.delivery;
    DeliveryFacts {
        lost: ledger.lost(),
        duplicated: ledger.duplicated,
        reordered: ledger.reordered,
        conflict: ledger.conflict,
        redelivered: ledger.redelivered,
        reset: ledger.covered,
        // What a server that stays away or refuses leaves undelivered is the absent clients', not the ledger's.
        expected: facts.expected,
        delivered: facts.expected - ledger.lost() - ledger.covered - facts.absent,
        absent: facts.absent,
        ..DeliveryFacts::default()
    }
}

/// How often the defect acted, and the number of the verdict or the history that must be the same.
fn acts(defect: Defect, case: &Case) -> (u64, u64) {
    let (ledger, facts) = (&case.ledger, &case.verdict.delivery);
    match defect {
        Defect::LoseLive
        | Defect::LoseOnResume
        | Defect::IdsRestart
        | Defect::ForgetLog
        | Defect::SkipEvicted
        | Defect::NeverCatchUp
        | Defect::LiveNotResubscribed
        | Defect::CorruptFrame
        | Defect::GapAtHandoff
        | Defect::SilentOldest
        | Defect::UnknownIsNow
        | Defect::LyingSession
        | Defect::Zombie => (ledger.lost(), facts.lost),
        Defect::LegalRedelivery => (ledger.redelivered, facts.redelivered),
        // Once too early and once again; that the two are as many is among the counts.
        Defect::LiveOvertakes => (ledger.reordered, facts.duplicated),
        Defect::DataBeforeAck => (ledger.late_acks, markers(&case.history)),
        Defect::AckThenLose => (ledger.acked_not_stored * u64::from(CLIENTS), facts.lost),
        Defect::DuplicateLive | Defect::DuplicateOnResume => (ledger.duplicated, facts.duplicated),
        Defect::Reorder => (ledger.reordered, facts.reordered),
        Defect::Conflict => (ledger.conflict, facts.conflict),
        Defect::ResetAlways | Defect::PartialWithFlag => {
            (ledger.resets, resumes(&case.verdict, ResumeOutcome::Reset))
        }
        Defect::RefuseSome => (ledger.refused.len() as u64, never_back(&case.verdict)),
        Defect::AcceptThenClose => (ledger.flapped, flapped(&case.verdict)),
        Defect::HalfOpen => (ledger.half_open, closed_half_open(&case.history)),
        // These acts leave no number of their own; that they happened is all there is to say.
        Defect::SlowAccept => (ledger.queued.min(1), 1),
        Defect::DieAgain => (ledger.died, 1),
    }
}

fn resumes(verdict: &Verdict, wanted: ResumeOutcome) -> u64 {
    let sessions = verdict.sessions.iter().flatten();
    sessions.filter(|s| s.resume == Some(wanted)).count() as u64
}

fn never_back(verdict: &Verdict) -> u64 {
    let returns = verdict.returns.iter();
    returns.filter(|r| r.session.is_none()).count() as u64
}

fn flapped(verdict: &Verdict) -> u64 {
    verdict.outages.iter().map(|o| u64::from(o.flapped)).sum()
}

fn markers(history: &History) -> u64 {
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    sessions.filter(|s| s.marker.is_some()).count() as u64
}

fn closed_half_open(history: &History) -> u64 {
    let sessions = history.clients.iter().flat_map(|c| &c.sessions);
    sessions
        .filter(|s| matches!(s.closed, Some((_, Cause::HalfOpen))))
        .count() as u64
}

/// All of the matrix before it complains, so that one look shows what a change did.
#[test]
fn each_defect_trips_its_set_with_the_exact_count() {
    let mut wrong = Vec::new();
    for defect in Defect::ALL {
        let case = case(&with(defect));
        for beside in beside(&case.verdict, defect.trips(), blinds(defect)) {
            wrong.push(format!("{defect}: {beside}"));
        }
        let (acted, judged) = acts(defect, &case);
        if acted == 0 || acted != judged {
            wrong.push(format!("{defect}: acted {acted}, judged {judged}"));
        }
        let (told, facts) = (counts(&case.ledger, &case.verdict), &case.verdict.delivery);
        if told != *facts {
            wrong.push(format!(
                "{defect}: the ledger tells {told:?}, the judge {facts:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_check_is_tripped_by_a_defect_or_named_here() {
    let tripped: BTreeSet<Check> = Defect::ALL
        .iter()
        .flat_map(|d| d.trips())
        .copied()
        .collect();
    let named: BTreeSet<Check> = NOT_A_DEFECTS.iter().map(|(check, _)| *check).collect();
    assert_eq!(tripped.intersection(&named).count(), 0);
    assert_eq!(
        tripped.union(&named).copied().collect::<Vec<_>>(),
        Check::ALL
    );
}

/// Policies that stampede, with an honest accept loop and with one that makes opened look spread out.
#[test]
fn a_stampede_is_seen_through_a_slow_accept_loop() {
    for preset in ["immediate", "fixed", "exponential-25"] {
        for fault in [None, Some(Fault::new(Defect::SlowAccept))] {
            let case = case(&Setup {
                mix: presets::find(preset).unwrap().mix(),
                down: Duration::from_secs(2),
                fault,
                ..Setup::new(CLIENTS, 1)
            });
            let what = format!("{preset} {fault:?}");
            assert_trips(&case, &what, &[Check::ReconnectSpread, Check::Peak]);
            assert_eq!(fault.is_some(), case.ledger.queued > 0);
        }
    }
}

/// An honest server that keeps too little says so, and what a reset covers isn't lost.
#[test]
fn too_small_a_history_trips_resets_only() {
    let case = case(&Setup {
        keep: 40,
        ..Setup::new(CLIENTS, 1)
    });
    assert_trips(&case, "keep 40", &[Check::Resets]);
    assert!(case.ledger.resets > 0);
    assert_eq!(
        case.ledger.resets,
        resumes(&case.verdict, ResumeOutcome::Reset)
    );
    assert_eq!(case.verdict.delivery, counts(&case.ledger, &case.verdict));
}

/// A server that falls over again and stays down: half of the herd never comes back, of the second wave nobody.
#[test]
fn dying_again_for_good_trips_all_reconnected_too() {
    let mut setup = with(Defect::DieAgain);
    if let Some(fault) = &mut setup.fault {
        fault.lasting = Duration::from_secs(86_400);
    }
    let case = case(&setup);
    let trips = [Check::AllReconnected, Check::Relapse];
    let blinds = [Check::ReconnectSpread, Check::Peak];
    assert_eq!(beside(&case.verdict, &trips, &blinds), [""; 0]);
    assert_eq!(case.ledger.died, 1);
}

#[test]
fn a_limit_on_recovery_can_be_missed() {
    let mut setup = Setup::new(CLIENTS, 1);
    setup.terms.max_recovery = Some(Duration::from_secs(2));
    assert_trips(&case(&setup), "recovery", &[Check::Recovery]);
}

#[test]
fn a_limit_on_staleness_can_be_missed() {
    let mut setup = Setup::new(CLIENTS, 1);
    setup.terms.max_staleness = Some((99.0, Duration::from_secs(2)));
    assert_trips(&case(&setup), "staleness", &[Check::Staleness]);
}

/// The policy allows no further attempt before the server is back.
#[test]
fn clients_that_give_up_trip_all_reconnected() {
    let mut setup = Setup::new(CLIENTS, 1);
    let mut policy = setup.mix.of(1).clone();
    policy.limits.attempts = Some(2);
    setup.mix = Mix::one("twice", policy);
    let case = case(&setup);
    assert_trips(&case, "giving up", &[Check::AllReconnected]);
    let gave_up = case.history.clients.iter().filter(|c| c.quit.is_some());
    assert_eq!(gave_up.count() as u32, case.verdict.outages[0].gave_up);
}
