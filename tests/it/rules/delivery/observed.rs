//! Rule 20: others publish, herd observes.

use super::*;
use herd::history::Source;

fn observing() -> Builder {
    Builder::new(2)
        .terms(|t| {
            t.source = Source::Others;
            t.delivery = DeliveryMode::Agreement;
        })
        .outage(1, 1_000, 2_000)
}

/// The base without publications; client 2 is back before client 1.
fn watched(first: impl FnOnce(&mut Story<'_>)) -> Builder {
    observing().client(1, first).client(2, |s| {
        before(s);
        s.resume(2_000, 3)
            .got_all(2_010, 4..=6)
            .got_every(5_002, 100, 7..=10);
    })
}

fn strict(builder: Builder) -> Builder {
    builder.terms(|t| t.delivery = DeliveryMode::ExactlyOnce)
}

#[test]
fn agreement_is_enough_only_for_who_accepts_it() {
    let a = judged(&watched(right).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(
        finding(&a, Check::ExactlyOnce).measured,
        "agreement: 0 of 20 pairs wrong"
    );
    let a = judged(&strict(watched(right)).end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert!(why(&a).contains("--delivery agreement"));
}

#[test]
fn what_one_client_got_and_another_did_not_is_lost() {
    let history = watched(|s| {
        before(s);
        s.resume(3_000, 3)
            .got(3_010, 4)
            .got(3_011, 6)
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&strict(history).end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.lost, a.facts.expected), (1, 20));
    assert_eq!(a.offenders[0].id.as_deref(), Some("5"));
}

#[test]
fn duplicates_and_conflicts_fail_without_anybodys_help() {
    let history = watched(|s| {
        right(s);
        s.got(6_000, 10);
        let other = Event {
            id: Some("9".into()),
            seq: None,
            digest: 99,
            ..Event::default()
        };
        s.got_event(6_001, other);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!(
        (a.facts.duplicated, a.facts.conflict, a.facts.lost),
        (1, 1, 0)
    );
}

#[test]
fn a_window_runs_from_the_first_receipt_to_a_settle_limit_before_the_end() {
    // Client 1 came late and got nothing of 1 to 3, nor of 10 at the very end.
    let history = watched(|s| {
        s.open(900).dropped(1_905);
        s.resume(3_000, 3)
            .got_all(3_010, 4..=6)
            .got_every(5_002, 100, 7..=9);
    });
    let a = judged(&history.clone().end(35_301));
    assert_eq!((outcomes(&a), a.facts.lost), (PASS, 0));
    // 4 to 6 were first seen by client 2, before client 1's window began; 7 to 9 are in both windows, 10 in neither.
    assert_eq!(a.facts.expected, 9 + 3);
    assert_eq!(judged(&history.end(35_302)).facts.lost, 1);
}

#[test]
fn something_must_have_been_seen_while_somebody_was_away() {
    let history = observing().each(|k, s| {
        before(s);
        s.resume(3_000 + u64::from(k), 3)
            .got_every(5_002, 100, 4..=6);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert!(why(&a).contains("resume not exercised"));
    let a = judged(&watched(right).end(END));
    assert_eq!(
        a.exposed,
        [1],
        "client 2 was back and saw what client 1 missed"
    );
}

#[test]
fn no_event_at_all_is_unknown() {
    let history = observing().each(|_, s| {
        s.open(10).dropped(1_020).open(3_000);
    });
    let a = judged(&history.end(END));
    assert_eq!(finding(&a, Check::ExactlyOnce).outcome, Outcome::Unknown);
    assert!(why(&a).contains("no event was seen"));
}

#[test]
fn a_client_that_never_received_anything_is_unknown() {
    let history = watched(|s| {
        s.open(10).dropped(1_020).open(3_000);
    });
    let a = judged(&history.end(END));
    assert_eq!(finding(&a, Check::ExactlyOnce).outcome, Outcome::Unknown);
    assert!(why(&a).contains("1 clients never received an event"));
}

#[test]
fn contiguous_ids_show_what_no_client_got() {
    let without = |skip: u64| {
        let history = strict(observing()).terms(|t| t.contiguous = true);
        let history = history.each(move |k, s| {
            before(s);
            let back = if k == 1 { 4_000 } else { 2_000 };
            s.resume(back, 3);
            for n in (4..=10).filter(|n| *n != skip) {
                s.got(4_100 + 100 * n, n);
            }
            if k == 2 {
                s.got(6_000, 11);
            }
        });
        judged(&history.end(END))
    };
    assert_eq!(without(0).facts.lost, 1, "client 1 lacks 11");
    let a = without(5);
    assert_eq!(outcomes(&a), LOSES);
    let says = "client 1 and all others never got 1 events: ids that were declared contiguous";
    assert!(why(&a).starts_with(says), "{}", why(&a));
    assert_eq!(a.facts.lost, 1 + 2, "and both lack 5");
    assert_eq!(a.facts.expected, 22);
}

#[test]
fn contiguous_ids_can_prove_exactly_once() {
    let sure = strict(watched(right)).terms(|t| t.contiguous = true);
    let a = judged(&sure.end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(
        finding(&a, Check::ExactlyOnce).measured,
        "0 of 20 pairs wrong"
    );
    let wild = strict(watched(|s| {
        right(s);
        s.got(6_000, 1 << 40);
    }));
    let a = judged(&wild.terms(|t| t.contiguous = true).end(36_000 - 1));
    assert_eq!(outcomes(&a), UNSURE);
    assert!(why(&a).contains("ids were declared contiguous, but"));
}

#[test]
fn clients_must_agree_on_the_order_of_opaque_ids() {
    let history = watched(|s| {
        before(s);
        s.resume(3_000, 3).got_all(3_010, 4..=6);
        for n in [7, 9, 8, 10] {
            s.got(6_000, n);
        }
    });
    let a = judged(&history.terms(|t| t.ids = IdKind::Opaque).end(END));
    assert_eq!(outcomes(&a), [Outcome::Pass, Outcome::Fail, Outcome::Pass]);
    assert_eq!(a.facts.reordered, 1);
}

#[test]
fn events_without_an_id_can_not_be_judged() {
    let history = watched(|s| {
        right(s);
        let anonymous = Event {
            id: None,
            seq: Some(Seq(1)),
            digest: 4,
            ..Event::default()
        };
        s.got_event(6_000, anonymous);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert!(why(&a).contains("1 events carried no id"));
}

/// What was first seen before a client's own first receipt was never its to get: no hole in its resume.
#[test]
fn who_came_later_has_resumed_too() {
    let history = observing()
        .client(1, |s| {
            s.open(0).got_all(5, 1..=3).dropped(1_000);
            s.resume(2_000, 3).got_all(2_010, 4..=6);
        })
        .client(2, |s| {
            s.open(10).got(20, 3).dropped(1_000);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
        });
    let a = judged(&history.end(END));
    assert_eq!(a.resumes[1][1], Some(ResumeOutcome::Resumed));
}

/// The server named event 6 in its reset and only then sent it to those who were subscribed already.
#[test]
fn a_reset_may_be_faster_than_the_event_that_it_names() {
    let told = |ms: u64| {
        let history = observing().terms(|t| t.max_resets = 1).client(2, |s| {
            before(s);
            s.resume(2_000, 3)
                .got_all(2_010, 4..=5)
                .got(ms, 6)
                .got_every(5_002, 100, 7..=10);
        });
        let history = history.client(1, |s| {
            before(s);
            s.resume(3_000, 3)
                .reset(3_005, "6")
                .got_every(5_002, 100, 7..=10);
        });
        judged(&history.end(END))
    };
    let a = told(3_006);
    assert_eq!((outcomes(&a), a.facts.reset, a.facts.lost), (PASS, 3, 0));
    assert_eq!(told(4_500).facts.lost, 1);
}
