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
