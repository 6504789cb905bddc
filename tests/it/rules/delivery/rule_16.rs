//! Rule 16: caught up, and what came of a resume.

use super::*;

#[test]
fn caught_up_is_the_receipt_of_the_last_one_answered_before_the_dial() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .marker(3_005)
            .got(3_010, 4)
            .got(3_020, 5)
            .got(3_500, 6);
        s.got_every(5_002, 100, 7..=10);
    });
    assert_eq!(judged(&history.end(END)).caught_up[0][1], Some(ms(3_500)));
}

#[test]
fn it_is_the_opening_where_nothing_is_missing() {
    let history = one(|s| {
        before(s);
        s.resume(1_050, 3)
            .got_every(1_102, 100, 4..=6)
            .got_every(5_002, 100, 7..=10);
    });
    assert_eq!(judged(&history.end(END)).caught_up[0][1], Some(ms(1_051)));
}

#[test]
fn a_servers_claim_is_not_believed() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .marker(3_005)
            .got_every(5_002, 100, 7..=10);
    });
    assert_eq!(judged(&history.end(END)).caught_up[0][1], None);
}

#[test]
fn a_resume_is_named_by_what_came() {
    let outcome = |story: &dyn Fn(&mut Story<'_>)| {
        let history = one(|s| {
            before(s);
            story(s);
        });
        judged(&history.end(END)).resumes[0][1]
    };
    let never = |s: &mut Story<'_>| {
        s.resume(3_000, 3);
    };
    assert_eq!(outcome(&never), Some(ResumeOutcome::NeverResumed));
    let replay_then_silence = |s: &mut Story<'_>| {
        s.resume(3_000, 3).got_all(3_010, 4..=6);
    };
    assert_eq!(
        outcome(&replay_then_silence),
        Some(ResumeOutcome::NeverResumed)
    );
    let refused = |s: &mut Story<'_>| {
        let cause = Cause::Close {
            code: Some(4_001),
            reason: "unknown cursor".into(),
        };
        s.resume(3_000, 3).closed(3_100, cause).open(3_200);
    };
    assert_eq!(outcome(&refused), Some(ResumeOutcome::Refused));
    let flapped = |s: &mut Story<'_>| {
        s.resume(3_000, 3).dropped(3_100);
        s.resume(3_200, 3)
            .got_all(3_210, 4..=6)
            .got_every(5_002, 100, 7..=10);
    };
    assert_eq!(outcome(&flapped), None);
    let fresh = |s: &mut Story<'_>| {
        s.open(3_000)
            .got_all(3_010, 4..=6)
            .got_every(5_002, 100, 7..=10);
    };
    assert_eq!(outcome(&fresh), None);
}
