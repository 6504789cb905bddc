//! Duplicates that a protocol allows: marked as sent again, or brought by a resume. Each test is seen with the rule that
//! allows nothing, too.

use super::*;
use herd::history::Duplicates::{self, Forbidden, Marked, OnResume};

/// What duplicated, redelivered and reordered come to, and whether `exactly-once` and `order` pass.
fn counts(builder: Builder, allowed: Duplicates) -> ([u64; 3], [Outcome; 2]) {
    let a = judged(&builder.terms(|t| t.duplicates = allowed).end(END));
    assert_eq!((a.facts.lost, a.facts.conflict), (0, 0));
    let [exactly_once, order, _] = outcomes(&a);
    let facts = [a.facts.duplicated, a.facts.redelivered, a.facts.reordered];
    (facts, [exactly_once, order])
}

use Outcome::{Fail, Pass};

#[test]
fn a_marked_duplicate_is_redelivered_where_marks_are_allowed() {
    let marked = || {
        one(|s| {
            right(s);
            s.got_marked(6_000, 8);
        })
    };
    assert_eq!(counts(marked(), Marked), ([0, 1, 0], [Pass, Pass]));
    assert_eq!(counts(marked(), Forbidden), ([1, 0, 0], [Fail, Pass]));
    assert_eq!(counts(marked(), OnResume), ([1, 0, 0], [Fail, Pass]));
    let a = judged(&marked().terms(|t| t.duplicates = Marked).end(END));
    let measured = &finding(&a, Check::ExactlyOnce).measured;
    assert_eq!(measured, "0 of 20 pairs wrong; allowed: 1 redelivered");
    assert!(a.offenders.is_empty());
}

#[test]
fn a_duplicate_without_the_mark_is_none() {
    let plain = one(|s| {
        right(s);
        s.got(6_000, 8);
    });
    assert_eq!(counts(plain, Marked), ([1, 0, 0], [Fail, Pass]));
}

/// A redelivered event comes late by nature, even where its first delivery never reached the client.
#[test]
fn a_first_receipt_that_is_marked_is_delivered_and_has_no_place_in_the_order() {
    let late = |marked: bool| {
        one(move |s| {
            before(s);
            s.resume(3_000, 3).got(3_010, 4).got(3_010, 6);
            if marked {
                s.got_marked(3_011, 5);
            } else {
                s.got(3_011, 5);
            }
            s.got_every(5_002, 100, 7..=10);
        })
    };
    assert_eq!(counts(late(true), Marked), ([0, 0, 0], [Pass, Pass]));
    assert_eq!(counts(late(true), Forbidden), ([0, 0, 1], [Pass, Fail]));
    assert_eq!(counts(late(false), Marked), ([0, 0, 1], [Pass, Fail]));
    // What comes after it is not late because of it.
    let early = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .got_marked(3_010, 6)
            .got_all(3_011, 4..=5);
        s.got_every(5_002, 100, 7..=10);
    });
    assert_eq!(counts(early, Marked), ([0, 0, 0], [Pass, Pass]));
}

/// By answers and by agreement nothing is said of it either.
#[test]
fn nor_has_it_one_where_answers_or_clients_tell_the_order() {
    for answered in [None, Some(5_500)] {
        let mut builder = published(Builder::new(3)).terms(|t| t.ids = IdKind::Opaque);
        for n in 7..=8 {
            let at = answered.map_or(5_001 + (n - 7) * 100, |at| at + n);
            let sent = if answered.is_some() { 5_000 } else { at - 1 };
            builder = builder.publication(n, sent, |p| p.answered = Some(ms(at)));
        }
        let builder = builder.each(|k, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            if k == 1 {
                s.got(6_000, 8).got_marked(6_001, 7);
            } else {
                s.got(6_000, 7).got(6_001, 8);
            }
            s.got_all(6_002, 9..=10);
        });
        assert_eq!(counts(builder.clone(), Marked).0, [0, 0, 0]);
        assert_eq!(counts(builder, Forbidden).0, [0, 0, 1]);
    }
}

/// The publisher sent 7 twice, because an answer was lost: only another id is another copy.
#[test]
fn a_mark_makes_no_second_copy() {
    let twice = || {
        one(|s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6).got(5_002, 7);
            s.got_marked(5_003, 7).got_every(5_102, 100, 8..=10);
        })
        .publication(7, 5_000, |p| (p.tries, p.lost_answers) = (2, 1))
    };
    assert_eq!(counts(twice(), Marked), ([0, 1, 0], [Pass, Pass]));
    assert_eq!(counts(twice(), Forbidden), ([1, 0, 0], [Fail, Pass]));
    assert_eq!(judged(&twice().end(END)).publications.double_stored, 0);
}

/// Which content of an id is right is told by how often it came, marked or not.
#[test]
fn marked_and_unmarked_are_one_content() {
    let history = published(Builder::new(5))
        .publication(7, 5_000, |p| p.id = None)
        .each(|k, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            match k {
                1 | 2 => s.got_event(5_001, Story::variant(7, |e| e.digest = 99)),
                3 => s.got_marked(5_002, 7),
                _ => s.got(5_003, 7),
            };
            s.got_every(5_102, 100, 8..=10);
        });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.conflict, a.facts.lost), (2, 2));
    let of: Vec<_> = a.offenders.iter().map(|o| o.client.0).collect();
    assert!(of.iter().all(|k| *k < 3), "{of:?}");
}

/// The resumed session begins with these events.
fn resumed(again: &'static [u64]) -> Builder {
    one(|s| {
        before(s);
        s.resume(3_000, 3);
        again.iter().for_each(|n| _ = s.got(3_005, *n));
        s.got_all(3_010, 4..=6).got_every(5_002, 100, 7..=10);
    })
}

#[test]
fn a_resume_may_bring_again_what_an_earlier_session_brought() {
    assert_eq!(
        counts(resumed(&[2, 3]), OnResume),
        ([0, 2, 0], [Pass, Pass])
    );
    assert_eq!(
        counts(resumed(&[2, 3]), Forbidden),
        ([2, 0, 0], [Fail, Pass])
    );
    assert_eq!(counts(resumed(&[2, 3]), Marked), ([2, 0, 0], [Fail, Pass]));
}

#[test]
fn but_only_once() {
    let counted = counts(resumed(&[3, 3, 3]), OnResume);
    assert_eq!(counted, ([2, 1, 0], [Fail, Pass]));
}

#[test]
fn what_the_session_itself_brought_is_duplicated() {
    let same = one(|s| {
        right(s);
        s.got(6_000, 5);
    });
    assert_eq!(counts(same, OnResume), ([1, 0, 0], [Fail, Pass]));
}

#[test]
fn a_session_without_a_cursor_is_no_resume() {
    let fresh = one(|s| {
        before(s);
        s.open(3_000).got_all(3_005, 2..=3);
        s.got_all(3_010, 4..=6).got_every(5_002, 100, 7..=10);
    });
    assert_eq!(counts(fresh, OnResume), ([2, 0, 0], [Fail, Pass]));
}

/// The second resume may bring again what the first one brought.
#[test]
fn each_resume_has_its_own_overlap() {
    let second = one(|s| {
        right(s);
        s.dropped(50_000)
            .resume(51_000, 9)
            .got(51_001, 3)
            .got(51_002, 10);
    });
    assert_eq!(counts(second, OnResume), ([0, 2, 0], [Pass, Pass]));
}
