//! Rule 13: every pair is exactly one thing.

use super::*;

#[test]
fn a_lost_pair_says_who_what_and_why() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.lost, a.facts.delivered), (3, 17));
    assert_eq!(finding(&a, Check::ExactlyOnce).measured, "3 lost");
    assert_eq!(finding(&a, Check::ExactlyOnce).limit, "0");
    assert_eq!(
        why(&a),
        "client 1 resumed from 3 and got nothing of 4..6: history gone or cursor not understood, no reset sent"
    );
    assert_eq!(a.resumes[0][1], Some(ResumeOutcome::MissedReset));
    let offender = &a.offenders[0];
    assert_eq!(
        (offender.wrong, offender.client, offender.at),
        (Wrong::Lost, ClientId(1), None)
    );
    assert_eq!(
        (offender.seq, offender.id.as_deref()),
        (Some(Seq(SEQ_BASE + 4)), Some("4"))
    );
}

/// A publication that was refused while the server was down became known after those that follow it.
#[test]
fn what_is_lost_is_named_by_its_numbers() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.acked(4, 1_900).end(END));
    assert_eq!(a.facts.lost, 3);
    assert_eq!(
        why(&a),
        "client 1 resumed from 3 and got nothing of 4..6: history gone or cursor not understood, no reset sent"
    );
}

#[test]
fn what_was_lost_before_the_cursor_is_not_blamed_on_the_replay() {
    let lacking_two = |s: &mut Story<'_>| {
        s.open(10).got(102, 1).got(302, 3).dropped(1_005);
        after(s);
    };
    let a = judged(&one(lacking_two).end(END));
    assert_eq!(a.facts.lost, 1);
    assert_eq!(
        why(&a),
        "client 1 never got event 2, known at 0.201 s while it was connected (session 1)"
    );
    // Acknowledged, and then dropped by the server for everybody.
    let nobody = published(Builder::new(2)).each(move |_, s| lacking_two(s));
    let a = judged(&nobody.end(END));
    assert_eq!(a.facts.lost, 2);
    assert_eq!(
        why(&a),
        "no client ever got event 2, known at 0.201 s while client 1 was connected (session 1)"
    );
}

#[test]
fn a_lost_range_goes_by_the_numbers_whichever_was_accepted_first() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
    })
    .publication(4, 1_500, |p| p.answered = Some(ms(1_500)));
    let a = judged(&history.end(END));
    assert_eq!(a.facts.lost, 3);
    assert!(why(&a).contains("got nothing of 4..6:"), "{}", why(&a));
}

#[test]
fn one_left_out_of_the_replay_is_lost() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .got(3_010, 4)
            .got(3_010, 6)
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!(a.facts.lost, 1);
    assert_eq!(
        why(&a),
        "client 1 resumed from 3 and got nothing of 5: one left out of the replay"
    );
}

#[test]
fn the_cursors_own_event_again_is_a_duplicate() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .got_all(3_010, 3..=6)
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!(
        (a.facts.duplicated, a.facts.reordered, a.facts.delivered),
        (1, 0, 20)
    );
    assert!(why(&a).contains("the replay includes the cursor's own event"));
}

#[test]
fn a_client_that_never_came_back_is_absent_but_what_was_lost_before_stays_lost() {
    let history = published(Builder::new(2))
        .acked(11, 100)
        .outage(2, 50_000, 51_000)
        .client(1, |s| {
            right(s);
            s.dropped(50_000).quit(50_001, Quit::GaveUp);
        })
        .client(2, |s| {
            s.open(10)
                .got_every(102, 100, 1..=3)
                .got(305, 11)
                .dropped(1_005);
            after(s);
            s.dropped(50_000).resume(52_000, 10).got(52_100, 12);
        })
        .acked(12, 51_000)
        .end(100_000);
    let a = judged(&history);
    assert_eq!(
        (a.facts.absent, a.facts.lost),
        (1, 1),
        "12 is absent, 11 was overdue"
    );
    assert_eq!(a.facts.expected, 24);
}

#[test]
fn what_gates_depends_on_the_delivery_that_was_promised() {
    let twice = |s: &mut Story<'_>| {
        right(s);
        s.got(6_000, 10);
    };
    let never = |s: &mut Story<'_>| {
        before(s);
        s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
    };
    use DeliveryMode::{AtLeastOnce, AtMostOnce, ExactlyOnce};
    for (mode, twice_is, never_is) in [
        (ExactlyOnce, Outcome::Fail, Outcome::Fail),
        (AtLeastOnce, Outcome::Pass, Outcome::Fail),
        (AtMostOnce, Outcome::Fail, Outcome::Pass),
    ] {
        let judge = |story: &dyn Fn(&mut Story<'_>)| {
            let a = judged(&one(story).terms(|t| t.delivery = mode).end(END));
            finding(&a, Check::ExactlyOnce).clone()
        };
        assert_eq!(judge(&twice).outcome, twice_is, "{mode:?}");
        assert_eq!(judge(&never).outcome, never_is, "{mode:?}");
        if mode == AtLeastOnce {
            assert_eq!(
                judge(&twice).measured,
                "0 of 20 pairs wrong; allowed: 1 duplicated"
            );
        }
    }
}
