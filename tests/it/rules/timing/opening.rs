//! What herd's own profile did is not the server's doing: an opening that nothing fits makes no relapse, and no pass.

use herd::check::{Check, Outcome, judge};
use herd::history::build::{Builder, Story};
use herd::history::{Cause, End, History, Mark};

use Outcome::{Fail, Pass, Unknown};

use super::{TRIGGER, back, found, outcome, run, spread};

const STEP: &str = r#"open[2].expect: what came doesn't fit it: {"op":"sub-ok"}"#;

/// The session ends for this cause, its opening unfinished.
fn unanswered(s: &mut Story<'_>, ms: u64, cause: Cause) {
    s.unanswered(STEP).closed(ms, cause);
}

fn all_unknown(history: &History) {
    let verdict = judge(history);
    assert_eq!(verdict.outcome, Unknown, "{:?}", verdict.findings);
    for finding in &verdict.findings {
        let wanted = match finding.check {
            Check::Generator => Pass,
            _ => Unknown,
        };
        assert_eq!(finding.outcome, wanted, "{finding:?}");
    }
    let why = found(history, Check::ExactlyOnce).why;
    for said in [
        "open[2].expect",
        r#"{\"op\":\"sub-ok\"}"#,
        "herd profile check",
    ] {
        assert!(why.contains(said), "{said}: {why}");
    }
}

/// A short timeout: herd leaves again and again, and everything arrives all the same.
#[test]
fn an_opening_that_nothing_ever_fits_is_unknown_and_no_relapse() {
    let history = Builder::new(20)
        .outage(1, TRIGGER, TRIGGER + 1_000)
        .acked(1, 9_000)
        .acked(2, 10_500)
        .each(|_, s| {
            s.open(100);
            unanswered(s, 2_100, Cause::Unanswered);
            s.open(2_600).got(9_001, 1);
            unanswered(s, TRIGGER + 5, Cause::Eof);
            s.resume(11_500, 1).got(11_502, 2);
            unanswered(s, 13_500, Cause::Unanswered);
            s.resume(14_000, 2);
            unanswered(s, 60_000, Cause::Herd);
        });
    all_unknown(&history.end(60_000));
}

/// The default timeout and a short run: nothing ends, and nobody ever finished.
#[test]
fn an_opening_that_nothing_ever_fits_is_no_pass_though_nothing_ends() {
    let history = Builder::new(20)
        .outage(1, TRIGGER, TRIGGER + 1_000)
        .acked(1, 9_000)
        .acked(2, 10_500)
        .each(|k, s| {
            s.open(100).got(9_001, 1);
            unanswered(s, TRIGGER + 5, Cause::Eof);
            s.resume(11_000 + 400 * u64::from(k), 1);
            s.got(11_010 + 400 * u64::from(k), 2);
            unanswered(s, 60_000, Cause::Herd);
        });
    all_unknown(&history.end(60_000));
}

#[test]
fn nobody_is_primed_whose_opening_was_never_finished() {
    let history = Builder::new(2)
        .acked(1, 200)
        .each(|_, s| {
            s.open(100).got(201, 1);
            unanswered(s, 900, Cause::Herd);
        })
        .mark(899, Mark::End(End::NotPrimed { primed: 2 }))
        .cut(900);
    let why = found(&history, Check::ExactlyOnce).why;
    assert!(why.contains("no client finished the opening"), "{why}");
    assert!(why.contains(r#"open[2].expect"#), "{why}");
    assert!(!why.contains("--seq"), "{why}");
}

/// It fits what a server answers to a first connection, and not what it answers to a resume.
#[test]
fn an_opening_that_never_fits_a_resume_is_unknown_where_the_server_serves_it() {
    let history = run(20)
        .each(|k, s| {
            back(s, 11_000 + 400 * u64::from(k));
            unanswered(s, 40_000, Cause::Unanswered);
            s.resume(41_000, 2);
            unanswered(s, 60_000, Cause::Herd);
        })
        .end(60_000);
    all_unknown(&history);
}

/// A server that says something and serves nothing is no profile's fault.
#[test]
fn a_server_that_never_serves_a_resume_fails() {
    let history = run(20)
        .each(|_, s| {
            for turn in 0..4 {
                s.resume(11_000 + 11_000 * turn, 1);
                unanswered(s, 21_000 + 11_000 * turn, Cause::Unanswered);
            }
        })
        .end(60_000);
    assert_eq!(outcome(&history, Check::AllReconnected), Fail);
}

/// Where others finished it, herd's own ends are no relapse, and say that something could not be judged.
#[test]
fn sessions_that_herd_ended_are_no_relapse() {
    let cut = |last: u32| {
        move |k: u32, s: &mut Story<'_>| {
            if k <= last {
                unanswered(s, 40_000, Cause::Unanswered);
                s.resume(41_000 + 300 * u64::from(k), 2);
            }
        }
    };
    let history = spread(20, 9_000).each(cut(10)).end(90_000);
    let finding = found(&history, Check::Relapse);
    assert_eq!(finding.outcome, Unknown, "{finding:?}");
    assert!(
        finding.why.contains("herd itself ended 10 sessions"),
        "{}",
        finding.why
    );
    assert_eq!(outcome(&history, Check::ExactlyOnce), Pass);
    // The server's own ends among them still count.
    let both = spread(20, 9_000).each(cut(10)).each(|k, s| {
        if k > 10 {
            s.dropped(40_100).resume(41_000 + 300 * u64::from(k), 2);
        }
    });
    assert_eq!(outcome(&both.end(90_000), Check::Relapse), Fail);
}
