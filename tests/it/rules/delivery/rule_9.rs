//! Rule 9: priming.

use super::*;

#[test]
fn priming_counts_for_nothing_not_even_twice_or_never() {
    let history = one(|s| {
        s.open(10)
            .got(50, 20)
            .got(51, 20)
            .got_every(102, 100, 1..=3);
        s.dropped(1_005);
        after(s);
    })
    .publication(20, 40, |p| p.kind = PublicationKind::Priming)
    .end(END);
    let a = judged(&history);
    assert_eq!(outcomes(&a), PASS);
    assert_eq!((a.facts.expected, a.facts.duplicated), (20, 0));
    assert_eq!(a.publications.sent, 11);
}

#[test]
fn whoever_is_not_primed_leaves_everything_unknown_and_shows_what_came() {
    let mut history = Builder::new(2)
        .each(|_, s| {
            s.open(10);
        })
        .mark(9_000, Mark::End(End::NotPrimed { primed: 1 }))
        .cut(9_000);
    history.clients[1]
        .unread
        .push((ms(20), "hello\u{1b}[2J".into()));
    let a = judged(&history);
    assert_eq!(outcomes(&a), [Outcome::Unknown; 3]);
    assert!(why(&a).contains("only 1 of 2 clients received a priming event"));
    assert!(why(&a).contains(r#"client 2 could not read "hello\u{1b}[2J""#));
}

/// Nobody was primed; what the finding says to do about it.
fn hint(of: impl FnOnce(Builder) -> Builder) -> String {
    let history = of(Builder::new(2)).mark(9_000, Mark::End(End::NotPrimed { primed: 0 }));
    why(&judged(&history.cut(9_000))).to_owned()
}

#[test]
fn whoever_is_not_primed_is_told_what_to_look_at() {
    let numberless = Event {
        id: Some("a\u{1b}7".into()),
        seq: None,
        digest: 1,
        ..Event::default()
    };
    let received = |seq: Option<u64>| {
        let event = Event {
            seq: seq.map(Seq),
            ..numberless.clone()
        };
        hint(|b| {
            b.acked_every(1..=3, 100, 100).each(|_, s| {
                s.open(10).got_event(102, event.clone());
            })
        })
    };
    for seq in [None, Some(7)] {
        let why = received(seq);
        assert!(
            why.contains(r"id a\u{1b}7 arrived without herd's number; point --seq at it"),
            "{why}"
        );
    }
    assert!(hint(|b| b.acked_every(1..=3, 100, 100)).contains("see whether --id and --seq"));
    assert!(hint(|b| b).contains("no publication was accepted"));
    let others = hint(|b| b.terms(|t| t.source = herd::history::Source::Others));
    assert!(others.contains("does anybody publish"), "{others}");
}

#[test]
fn nobody_connected_or_nobody_restarted_is_unknown() {
    for (end, says) in [
        (
            End::NotConnected { connected: 1 },
            "only 1 of 2 clients could connect",
        ),
        (End::NoRestart, "nobody restarted the server"),
        (
            End::Broken {
                why: "no kill".into(),
            },
            "broken off: no kill",
        ),
    ] {
        let history = one(right).mark(END, Mark::End(end)).cut(END);
        let a = judged(&history);
        assert_eq!(outcomes(&a), [Outcome::Unknown; 3], "{says}");
        assert!(why(&a).contains(says));
    }
}

#[test]
fn all_may_receive_something_and_not_the_same() {
    let history = Builder::new(2).mark(9_000, Mark::End(End::NotPrimed { primed: 2 }));
    let a = judged(&history.cut(9_000));
    let said = "each of 2 clients received a priming event, but not all of them one and the same";
    assert!(why(&a).contains(said), "{}", why(&a));
}

#[test]
fn what_lacks_a_number_or_an_id_is_shown() {
    let frame = r#"{"id":"7","body":{}}"#;
    let escaped = frame.escape_debug().to_string();
    for id in [Some("7"), None] {
        let said = hint(|b| {
            b.acked(1, 100).each(|_, s| {
                let event = Event {
                    id: id.map(Into::into),
                    seq: id.map_or(Some(Seq(SEQ_BASE + 1)), |_| None),
                    ..Event::default()
                };
                s.open(10).got_event(200, event).lacking(200, frame);
            })
        });
        assert!(said.contains(&escaped), "{said}");
    }
}
