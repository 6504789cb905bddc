//! Rule 19: the server's own order, known in three ways.

use super::*;

/// Client 1 gets the live events in this order, client 2 in the right one.
fn live(numbers: [u64; 4]) -> Builder {
    one(|s| {
        before(s);
        s.resume(3_000, 3).got_all(3_010, 4..=6);
        for n in numbers {
            s.got(6_000, n);
        }
    })
}

fn opaque(builder: Builder) -> Builder {
    builder.terms(|t| t.ids = IdKind::Opaque)
}

/// Events 7 to 10 as the publisher sees them: sent together, answered together, so that nothing is certain.
fn overlapping(mut builder: Builder) -> Builder {
    for n in 7..=10 {
        builder = builder.publication(n, 5_000, |p| p.answered = Some(ms(5_500 + n)));
    }
    opaque(builder)
}

const DISORDERED: [Outcome; 3] = [Outcome::Pass, Outcome::Fail, Outcome::Pass];

#[test]
fn by_declared_ids_a_receipt_after_a_later_one_counts() {
    for (numbers, reordered) in [
        ([7, 8, 9, 10], 0),
        ([8, 7, 9, 10], 1),
        ([10, 7, 8, 9], 3),
        ([8, 9, 10, 7], 1),
        ([10, 9, 8, 7], 3),
    ] {
        let a = judged(&live(numbers).end(END));
        assert_eq!(a.facts.reordered, reordered, "{numbers:?}");
        let outcome = if reordered == 0 { PASS } else { DISORDERED };
        assert_eq!(outcomes(&a), outcome);
    }
    let a = judged(&live([8, 7, 9, 10]).end(END));
    let order = finding(&a, Check::Order);
    assert_eq!(
        (order.measured.as_str(), order.limit.as_str()),
        ("1 reordered", "0")
    );
    assert_eq!(
        order.why,
        "client 1 got event 7 at 6.000 s, after one that comes later"
    );
    assert_eq!(a.offenders[0].wrong, Wrong::Reordered);
}

#[test]
fn declared_ids_decide_even_against_the_order_of_answers() {
    let history = published(Builder::new(2))
        .publication(7, 5_000, |p| p.answered = Some(ms(5_900)))
        .each(|_, s| right(s));
    assert_eq!(outcomes(&judged(&history.end(END))), PASS);
}

#[test]
fn a_duplicate_is_not_reordered_too() {
    let history = one(|s| {
        right(s);
        s.got(6_000, 8);
    });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.duplicated, a.facts.reordered), (1, 0));
}

#[test]
fn by_positions_where_ids_have_no_order() {
    let positioned = |numbers, swapped: bool| {
        let mut history = overlapping(live(numbers)).end(END);
        for p in history.publications.values_mut() {
            p.position = Some(p.seq.0);
        }
        if swapped {
            for (n, position) in [(7, 8), (8, 7)] {
                let p = history.publications.get_mut(&Seq(SEQ_BASE + n)).unwrap();
                p.position = Some(SEQ_BASE + position);
            }
        }
        judged(&history).facts.reordered
    };
    assert_eq!(positioned([7, 8, 9, 10], false), 0);
    assert_eq!(positioned([8, 7, 9, 10], false), 1);
    assert_eq!(positioned([8, 7, 9, 10], true), 1, "now client 2 is wrong");
}

#[test]
fn what_was_answered_before_the_other_was_sent_comes_first() {
    let a = judged(&opaque(live([8, 7, 9, 10])).end(END));
    assert_eq!((outcomes(&a), a.facts.reordered), (DISORDERED, 1));
    assert_eq!(
        outcomes(&judged(&opaque(live([7, 8, 9, 10])).end(END))),
        PASS
    );
}

#[test]
fn overlapping_ones_may_have_any_order_but_the_same_for_all() {
    let clients = |odd: Option<u32>| {
        published(Builder::new(3)).each(move |k, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            for n in if odd == Some(k) {
                [7, 8, 9, 10]
            } else {
                [8, 7, 9, 10]
            } {
                s.got(6_000, n);
            }
        })
    };
    assert_eq!(
        outcomes(&judged(&overlapping(clients(None)).end(END))),
        PASS
    );

    let a = judged(&overlapping(clients(Some(2))).end(END));
    assert_eq!((outcomes(&a), a.facts.reordered), (DISORDERED, 1));
    assert_eq!(a.offenders.len(), 1);
    assert_eq!(
        (a.offenders[0].client, a.offenders[0].seq),
        (ClientId(2), Some(Seq(SEQ_BASE + 8)))
    );
    assert!(
        finding(&a, Check::Order)
            .why
            .contains("client 2 got event 8 after one that most")
    );
}

/// A refused publication that was sent again counts from the try that was accepted; one with a lost answer may be
/// stored any time after it was first sent.
#[test]
fn a_publication_that_was_sent_again_may_be_stored_after_a_later_one() {
    let again = |lost_answers| {
        let history = published(Builder::new(2))
            .publication(7, 5_000, |p| {
                (p.tries, p.lost_answers) = (2, lost_answers);
                (p.sent, p.answered) = (ms(5_050), Some(ms(5_060)));
            })
            .each(|_, s| {
                before(s);
                s.resume(3_000, 3).got_all(3_010, 4..=6);
                for n in [8, 9, 7, 10] {
                    s.got(6_000, n);
                }
            });
        judged(&opaque(history).end(END)).facts.reordered
    };
    assert_eq!(again(1), 0);
    assert_eq!(
        again(0),
        2,
        "at both clients: 7 was stored before 8 was sent"
    );
}

#[test]
fn the_order_starts_anew_after_a_reset() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .reset(3_005, "6")
            .got(3_010, 1)
            .got_every(5_002, 100, 7..=10);
    });
    assert_eq!(judged(&history.end(END)).facts.reordered, 0);
}

#[test]
fn live_before_replay_is_reordered() {
    let history = one(|s| {
        before(s);
        s.resume(4_950, 3)
            .got(5_002, 7)
            .got_all(5_010, 4..=6)
            .got_every(5_102, 100, 8..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!((outcomes(&a), a.facts.reordered), (DISORDERED, 3));
}
