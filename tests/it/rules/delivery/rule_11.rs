//! Rule 11: what failed means, and what a repeat may do.

use super::*;

fn failed(p: &mut Publication) {
    p.fate = Fate::Failed;
}

#[test]
fn a_failed_publication_is_not_expected_and_unexpected_where_it_comes() {
    let missing = one(right).publication(11, 6_000, failed).end(END);
    assert_eq!(outcomes(&judged(&missing)), PASS);
    let there = one(|s| {
        right(s);
        s.got(6_001, 11);
    });
    let a = judged(&there.publication(11, 6_000, failed).end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.unexpected, a.facts.expected), (1, 20));
    assert!(why(&a).contains("although its publication was definitely refused"));
}

#[test]
fn a_refusal_after_a_lost_answer_is_no_proof_that_nothing_was_stored() {
    let history = published(Builder::new(2))
        .publication(11, 6_000, |p| {
            failed(p);
            (p.tries, p.lost_answers) = (2, 1);
        })
        .each(|_, s| {
            right(s);
            s.got(6_001, 11);
        })
        .end(END);
    let a = judged(&history);
    assert_eq!(outcomes(&a), PASS);
    assert_eq!((a.facts.recovered, a.facts.expected), (2, 22));
}

fn copy(id: &str) -> Event {
    Event {
        id: Some(id.into()),
        seq: Some(Seq(SEQ_BASE + 7)),
        digest: 8,
        ..Event::default()
    }
}

/// Event 7 comes under id 7 and then under this one.
fn stored_again(id: &str, change: impl FnOnce(&mut Publication)) -> Assessment {
    let history = published(Builder::new(2))
        .publication(7, 5_000, change)
        .each(|_, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6).got(5_002, 7);
            s.got_event(5_003, copy(id)).got_every(5_102, 100, 8..=10);
        })
        .end(END);
    judged(&history)
}

#[test]
fn a_repeat_after_a_lost_answer_may_be_stored_under_two_ids() {
    let a = stored_again("7b", |p| (p.tries, p.lost_answers) = (2, 1));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!((a.publications.double_stored, a.facts.duplicated), (1, 0));
}

#[test]
fn the_same_id_twice_or_no_lost_answer_is_a_duplicate_all_the_same() {
    let same = stored_again("7", |p| (p.tries, p.lost_answers) = (2, 1));
    let refused = stored_again("7b", |p| p.tries = 2);
    for a in [same, refused] {
        assert_eq!(outcomes(&a), LOSES);
        assert_eq!((a.publications.double_stored, a.facts.duplicated), (0, 2));
    }
}

#[test]
fn more_copies_than_lost_answers_can_explain_are_duplicates() {
    let history = published(Builder::new(2))
        .publication(7, 5_000, |p| (p.tries, p.lost_answers) = (2, 1))
        .each(|k, s| {
            right(s);
            s.got_event(6_000, copy("7b"));
            if k == 1 {
                s.got_event(6_001, copy("7c"));
            }
        })
        .end(END);
    let a = judged(&history);
    assert_eq!((a.publications.double_stored, a.facts.duplicated), (1, 1));
}
