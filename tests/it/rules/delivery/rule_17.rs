//! Rule 17: what a reset covers.

use super::*;

fn told(id: &'static str, numbers: std::ops::RangeInclusive<u64>) -> Builder {
    one(|s| {
        before(s);
        s.resume(3_000, 3)
            .reset(3_005, id)
            .got_every(5_002, 100, numbers);
    })
}

#[test]
fn a_reset_covers_up_to_its_id_and_is_counted_itself() {
    let a = judged(&told("6", 7..=10).end(END));
    assert_eq!(outcomes(&a), [Outcome::Pass, Outcome::Pass, Outcome::Fail]);
    assert_eq!((a.facts.reset, a.facts.lost), (3, 0));
    assert_eq!(a.resumes[0][1], Some(ResumeOutcome::Reset));
    assert_eq!(a.caught_up[0][1], Some(ms(3_005)));
    let resets = finding(&a, Check::Resets);
    assert_eq!(resets.measured, "1 told to reload");
    assert!(resets.why.ends_with("keep at least 3"), "{}", resets.why);
}

#[test]
fn as_many_as_are_allowed_pass_and_still_say_what_to_keep() {
    let a = judged(&told("6", 7..=10).terms(|t| t.max_resets = 1).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(finding(&a, Check::Resets).limit, "1");
    assert!(finding(&a, Check::Resets).why.contains("keep at least 3"));
}

#[test]
fn what_comes_later_than_its_id_is_expected() {
    let a = judged(&told("5", 7..=10).end(END));
    assert_eq!((a.facts.reset, a.facts.lost), (2, 1));
    let a = judged(&told("6", 8..=10).end(END));
    assert_eq!((a.facts.reset, a.facts.lost), (3, 1));
}

#[test]
fn by_position_or_by_answer_where_ids_have_no_order() {
    for positions in [true, false] {
        let mut history = told("5", 7..=10).terms(|t| t.ids = IdKind::Opaque).end(END);
        for p in history.publications.values_mut().filter(|_| positions) {
            p.position = Some(p.seq.0);
        }
        let a = judged(&history);
        assert_eq!((a.facts.reset, a.facts.lost), (2, 1));
    }
}

#[test]
fn an_id_that_the_publisher_does_not_know_covers_what_was_sent_until_then() {
    // 7 is in flight when the frame comes: it may come or not.
    for numbers in [7..=10, 8..=10] {
        let history = told("epoch-2", numbers.clone()).publication(7, 3_002, |p| {
            p.answered = Some(ms(4_999));
        });
        let a = judged(&history.end(END));
        assert_eq!(a.facts.lost, 0);
        assert_eq!(a.facts.reset, 3 + u64::from(*numbers.start() == 8));
    }
    assert_eq!(judged(&told("epoch-2", 8..=10).end(END)).facts.lost, 1);
}

#[test]
fn the_held_set_and_the_order_start_anew() {
    let again = |reset: bool| {
        let history = one(|s| {
            before(s);
            s.resume(3_000, 3);
            if reset {
                s.reset(3_005, "6");
            }
            s.got_all(3_010, 1..=6).got_every(5_002, 100, 7..=10);
        });
        judged(&history.terms(|t| t.max_resets = 1).end(END))
    };
    assert_eq!(outcomes(&again(true)), PASS);
    assert_eq!(again(true).facts.delivered, 20);
    assert_eq!(again(false).facts.duplicated, 3);
}

#[test]
fn a_reload_does_not_undo_what_was_overdue() {
    let history = published(Builder::new(2))
        .outage(2, 50_000, 51_000)
        .client(1, |s| {
            before(s);
            s.resume(3_000, 3)
                .got_every(5_002, 100, 7..=10)
                .dropped(50_000);
            s.resume(52_000, 10).reset(52_002, "11");
        })
        .client(2, |s| {
            right(s);
            s.dropped(50_000).resume(52_000, 10).got(52_001, 11);
        })
        .acked(11, 51_000)
        .end(100_000);
    let a = judged(&history);
    assert_eq!((a.facts.lost, a.facts.reset), (3, 1));
}

/// Without this a server could hide every loss behind a reload that no resume asked for.
#[test]
fn a_reload_in_the_middle_of_the_first_session_counts_if_it_hides_anything() {
    let first = |id: &'static str, from: u64| {
        let history = one(|s| {
            s.open(10)
                .reset(150, id)
                .got_every(202, 100, from..=3)
                .dropped(1_005);
            after(s);
        });
        judged(&history.end(END)).findings[2].outcome
    };
    assert_eq!(first("1", 2), Outcome::Fail);
    let snapshot = one(|s| {
        s.open(10)
            .reset(20, "snapshot")
            .got_every(102, 100, 1..=3)
            .dropped(1_005);
        after(s);
    });
    assert_eq!(outcomes(&judged(&snapshot.end(END))), PASS);
}

#[test]
fn an_id_that_was_used_again_means_what_had_it_when_the_frame_came() {
    let history = told("2", 7..=10)
        .terms(|t| t.ids = IdKind::Opaque)
        .publication(8, 5_100, |p| p.id = Some("2".into()));
    let a = judged(&history.end(END));
    assert_eq!((a.facts.reset, a.facts.lost), (0, 3));
}

#[test]
fn a_reset_in_the_first_session_counts_once_the_client_has_something_to_reload() {
    let at = |ms: u64| {
        let first = |s: &mut Story<'_>| {
            s.open(10);
            if ms < 102 {
                s.reset(ms, "0");
            }
            s.got_every(102, 100, 1..=3);
            if ms > 302 {
                s.reset(ms, "3");
            }
            s.dropped(1_005);
            after(s);
        };
        finding(&judged(&one(first).end(END)), Check::Resets).outcome
    };
    assert_eq!(at(50), Outcome::Pass);
    assert_eq!(at(400), Outcome::Fail);
}

/// What a reload covers the client must have got by it. Whoever asked again and got it has it.
#[test]
fn a_reload_that_failed_covers_nothing_for_sure() {
    let told = |statuses: &[u16]| {
        let history = one(|s| {
            before(s);
            s.resume(3_000, 3).reset(3_005, "6");
            for (n, status) in (0..).zip(statuses) {
                s.reloaded(3_006 + 100 * n, 40, *status);
            }
            s.got_every(5_002, 100, 7..=10);
        });
        judged(&history.terms(|t| t.max_resets = 1).end(END))
    };
    for done in [&[][..], &[200], &[503, 200]] {
        assert_eq!(outcomes(&told(done)), PASS, "{done:?}");
    }
    for failed in [&[503][..], &[200, 503]] {
        let a = told(failed);
        let resets = finding(&a, Check::Resets);
        assert_eq!(resets.outcome, Outcome::Unknown, "{failed:?}: {resets:?}");
        assert!(resets.why.contains("status 503"), "{resets:?}");
    }
}
