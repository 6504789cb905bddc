//! Rule 18: the same id with another content.

use super::*;

fn event(id: &str, n: u64, digest: u64) -> Event {
    Event {
        id: Some(id.into()),
        seq: Some(Seq(SEQ_BASE + n)),
        digest,
        ..Event::default()
    }
}

#[test]
fn another_content_under_an_id_is_a_conflict_in_every_mode() {
    for mode in DeliveryMode::ALL {
        let history = one(|s| {
            right(s);
            s.got_event(6_000, event("10", 10, 99));
        });
        let a = judged(&history.terms(|t| t.delivery = mode).end(END));
        assert_eq!(outcomes(&a), LOSES, "{mode:?}");
        assert_eq!(
            (a.facts.conflict, a.facts.duplicated, a.facts.lost),
            (1, 0, 0)
        );
        assert_eq!(finding(&a, Check::ExactlyOnce).measured, "1 in conflict");
        assert!(why(&a).contains("another content under id 10"));
    }
}

#[test]
fn a_conflict_is_no_delivery_no_foreign_and_no_unexpected_event() {
    for wrong in [
        event("10", 10, 99),
        event("10", 500, 99),
        Event {
            id: Some("10".into()),
            seq: None,
            digest: 99,
            ..Event::default()
        },
        Event {
            id: Some("10".into()),
            seq: Some(Seq(1)),
            digest: 99,
            ..Event::default()
        },
    ] {
        let history = one(|s| {
            before(s);
            s.resume(3_000, 3)
                .got_all(3_010, 4..=6)
                .got_every(5_002, 100, 7..=9);
            s.got_event(5_302, wrong);
        });
        let a = judged(&history.end(END));
        let f = &a.facts;
        assert_eq!((f.conflict, f.lost, f.foreign, f.unexpected), (1, 1, 0, 0));
        let says = "got another content under id 10, and never the right one;";
        assert!(why(&a).contains(says), "{}", why(&a));
    }
}

#[test]
fn nothing_to_compare_is_no_conflict() {
    let history = one(|s| {
        right(s);
        s.got_event(
            6_000,
            Event {
                id: Some("10".into()),
                seq: None,
                digest: 0,
                ..Event::default()
            },
        );
    });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.conflict, a.facts.foreign), (0, 1));
}

#[test]
fn the_publishers_answer_says_which_content_is_right() {
    // Both clients got the wrong content first; the table has it first too.
    let history = published(Builder::new(2))
        .each(|_, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            s.got_event(4_000, event("7", 900, 1))
                .got_event(4_001, event("7", 900, 1));
            s.got_every(5_002, 100, 7..=10);
        })
        .end(END);
    let a = judged(&history);
    assert_eq!(
        (a.facts.conflict, a.facts.lost, a.facts.unexpected),
        (4, 0, 0)
    );
}

#[test]
fn a_heartbeat_with_a_constant_id_is_foreign() {
    let beat = |digest| Event {
        id: Some("0".into()),
        seq: None,
        digest,
        ..Event::default()
    };
    let history = one(|s| {
        right(s);
        s.got_event(6_000, beat(1)).got_event(6_001, beat(2));
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(a.facts.foreign, 2);
}

/// The server numbers from 1 again: the publisher was told ids 1 and 2 for events 7 and 8 too.
fn ids_used_again(reset: bool) -> Builder {
    published(Builder::new(2))
        .terms(|t| t.max_resets = 2)
        .publication(7, 5_000, |p| p.id = Some("1".into()))
        .publication(8, 5_100, |p| p.id = Some("2".into()))
        .each(move |_, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            if reset {
                s.reset(4_000, "6");
            }
            s.got_event(5_002, event("1", 7, 8))
                .got_event(5_102, event("2", 8, 9));
            s.got_every(5_202, 100, 9..=10);
        })
}

#[test]
fn an_id_that_the_server_used_again_is_a_conflict_for_who_has_both() {
    let a = judged(&ids_used_again(false).end(END));
    assert_eq!(finding(&a, Check::ExactlyOnce).outcome, Outcome::Fail);
    assert_eq!(
        (a.facts.conflict, a.facts.lost, a.facts.delivered),
        (4, 0, 20)
    );
}

#[test]
fn an_announced_reset_makes_room_for_the_ids_to_begin_again() {
    let a = judged(&ids_used_again(true).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(a.facts.conflict, 0);
}

/// A replay under other ids breaks whoever resumes from them, and is right where each reader has cursors of its own: it is
/// stated, and nobody is accused.
#[test]
fn one_event_under_several_ids_is_stated_and_gates_nothing() {
    let renamed = |epoch: Option<&'static str>| {
        let history = one(move |s| {
            before(s);
            s.resume(3_000, 3);
            let other = Story::variant(4, |e| {
                e.id = Some("other".into());
                e.epoch = epoch.map(Into::into);
            });
            s.got_event(3_010, other).got_all(3_010, 5..=6);
            s.got_every(5_002, 100, 7..=10);
        });
        judged(&history.terms(|t| t.ids = IdKind::Opaque).end(END))
    };
    let a = renamed(None);
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(
        finding(&a, Check::ExactlyOnce).measured,
        "0 of 20 pairs wrong; 1 under several ids"
    );
    assert!(why(&a).contains("published once"), "{}", why(&a));
    let a = renamed(Some("e2"));
    assert_eq!(
        finding(&a, Check::ExactlyOnce).measured,
        "0 of 20 pairs wrong",
        "another epoch"
    );
}
