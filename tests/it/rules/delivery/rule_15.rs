//! Rule 15: resume must have been exercised.

use super::*;

/// Of four clients so many were back before anything was published.
fn back_early(k: u32) -> Assessment {
    let history = published(Builder::new(4)).each(|c, s| {
        before(s);
        if c <= k {
            s.resume(1_010, 3)
                .got_every(1_102, 100, 4..=6)
                .got_every(5_002, 100, 7..=10);
        } else {
            after(s);
        }
    });
    judged(&history.end(END))
}

#[test]
fn fewer_than_half_exposed_is_unknown() {
    let a = back_early(2);
    assert_eq!((outcomes(&a), a.exposed), (PASS, vec![2]));
    let a = back_early(3);
    assert_eq!((outcomes(&a), a.exposed.clone()), (UNSURE, vec![1]));
    assert!(why(&a).contains("resume not exercised: in outage 1 only 1 of 4 returning clients"));
}

/// The base, in which the answers for these publications were lost.
fn unconfirmed(lost: impl Fn(u64) -> bool) -> Assessment {
    let mut history = one(right).end(END);
    for p in history.publications.values_mut() {
        if lost(p.seq.0 - SEQ_BASE) {
            p.fate = Fate::Unknown;
            p.lost_answers = 1;
        }
    }
    judged(&history)
}

/// Were event 4 left out of every replay, nobody would know that it ever was.
#[test]
fn a_publication_without_a_confirmation_exercises_nothing() {
    assert_eq!(outcomes(&unconfirmed(|n| n == 4 || n == 5)), PASS);
    let a = unconfirmed(|n| (4..=6).contains(&n));
    assert_eq!((outcomes(&a), a.exposed.clone()), (UNSURE, vec![0]));
    assert!(why(&a).contains("resume not exercised"), "{}", why(&a));
    let a = unconfirmed(|_| true);
    assert_eq!((outcomes(&a), a.facts.lost), (UNSURE, 0));
    assert!(
        why(&a).starts_with("no publication was confirmed"),
        "{}",
        why(&a)
    );
}

#[test]
fn a_certain_fail_stays_one() {
    let history = one(|s| {
        s.open(10).got_every(102, 100, 1..=3).dropped(1_005);
        s.resume(1_010, 3)
            .got_every(1_102, 100, 4..=6)
            .got_every(5_002, 100, 7..=9);
    })
    .client(2, |_| {});
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
}

#[test]
fn no_outage_nobody_back_or_nothing_published_is_unknown() {
    let stayed = published(Builder::new(1)).client(1, |s| {
        s.open(10).got_all(6_000, 1..=10);
    });
    let a = judged(&stayed.end(END));
    assert_eq!(outcomes(&a), [Outcome::Unknown; 3]);
    assert!(why(&a).contains("no outage was seen"));

    let gone = published(Builder::new(1)).client(1, before);
    let a = judged(&gone.end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!(a.facts.absent, 7);
    assert!(why(&a).contains("nobody came back in outage 1"));

    let silent = Builder::new(1).outage(1, 1_000, 2_000).client(1, |s| {
        s.open(10).dropped(1_200).open(3_000);
    });
    let a = judged(&silent.clone().end(END));
    assert_eq!(
        outcomes(&a),
        [Outcome::Unknown, Outcome::Unknown, Outcome::Pass]
    );
    assert_eq!(why(&a), "nothing was published");
    let refused = silent.publication(1, 50, |p| p.fate = Fate::Failed);
    assert_eq!(
        why(&judged(&refused.end(END))),
        "no publication was accepted"
    );
}

/// The first restart doesn't speak for the second.
#[test]
fn each_outage_must_exercise_resume() {
    let twice = |again: bool| {
        let history = published(Builder::new(2))
            .outage(2, 20_000, 21_000)
            .each(move |_, s| {
                right(s);
                if again {
                    s.dropped(20_001).resume(22_000, 10);
                }
            });
        judged(&history.end(END))
    };
    let a = twice(true);
    assert_eq!((outcomes(&a), a.exposed.clone()), (UNSURE, vec![2, 0]));
    assert!(why(&a).contains("in outage 2 only 0 of 2 returning clients"));
    let a = twice(false);
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!(why(&a), "no client lost its connection in outage 2");
}
