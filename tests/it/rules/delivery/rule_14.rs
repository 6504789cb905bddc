//! Rule 14: the settle limit.

use super::*;

/// Event 7, answered at 5,001, comes to client 1 at this instant.
fn seventh_at(at: u64) -> Assessment {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .got_all(3_010, 4..=6)
            .got_every(5_102, 100, 8..=10)
            .got(at, 7);
    });
    judged(&history.terms(|t| t.ids = IdKind::Opaque).end(END))
}

#[test]
fn the_limit_runs_from_the_answer_where_the_client_was_there() {
    assert_eq!(seventh_at(35_001).facts.late, 0);
    let a = seventh_at(35_002);
    assert_eq!((a.facts.late, a.facts.delivered), (1, 19));
    assert_eq!(finding(&a, Check::ExactlyOnce).outcome, Outcome::Fail);
    assert_eq!(finding(&a, Check::ExactlyOnce).measured, "1 late");
    assert!(why(&a).contains("past the settle limit of 30s"));
}

/// Events 4 to 6 come at this instant to a client that was away from 1,005 to 40,001.
fn back_late(at: u64) -> Assessment {
    let history = one(|s| {
        before(s);
        s.resume(40_000, 3).got_all(at, 4..=10);
    });
    judged(&history.end(90_000))
}

#[test]
fn the_limit_runs_from_the_opening_where_the_client_was_away() {
    assert_eq!(outcomes(&back_late(70_001)), PASS);
    assert_eq!(back_late(70_002).facts.late, 7);
}

/// Answered just before the drop: the session was too short to prove anything, so the return's clock counts.
#[test]
fn a_drop_within_the_limit_starts_the_clock_anew() {
    let history = one(|s| {
        s.open(10).got_every(102, 100, 1..=2).dropped(1_005);
        s.resume(40_000, 2).got_all(40_010, 3..=10);
    });
    assert_eq!(outcomes(&judged(&history.end(END))), PASS);
}

#[test]
fn a_half_open_session_ends_where_the_cut_was() {
    let history = one(|s| {
        s.open(10)
            .got_every(102, 100, 1..=3)
            .closed(40_000, Cause::HalfOpen);
        s.resume(40_001, 3).got_all(40_010, 4..=10);
    })
    .end(90_000);
    let mut timeline = Timeline::new(&history);
    timeline.returns[0].dropped = ms(1_005);
    assert_eq!(assess(&history, &timeline).facts.late, 0);
    timeline.returns[0].dropped = ms(40_000);
    assert_eq!(assess(&history, &timeline).facts.late, 7);
}

#[test]
fn a_pair_within_its_limit_at_the_end_is_neither_lost_nor_passed() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3)
            .got_all(3_010, 4..=6)
            .got_every(5_002, 100, 7..=9);
    });
    let a = judged(&history.clone().end(35_300));
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!((a.facts.expected, a.facts.lost), (19, 0));
    assert!(why(&a).contains("1 pairs were still within the settle limit"));
    assert_eq!(judged(&history.end(35_301)).facts.lost, 1);
}

#[test]
fn a_killed_run_invents_no_losses_and_forgives_none() {
    let cut = |history: Builder, at| {
        let a = judged(&history.cut(at));
        (
            finding(&a, Check::ExactlyOnce).outcome,
            a.facts.lost,
            a.facts.expected,
        )
    };
    let gone = || one(before);
    assert_eq!(cut(gone(), 4_900), (Outcome::Unknown, 0, 13));
    let skipped = || {
        one(|s| {
            before(s);
            s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
        })
    };
    assert_eq!(cut(skipped(), 33_000), (Outcome::Unknown, 0, 17));
    assert_eq!(cut(skipped(), 33_001), (Outcome::Fail, 3, 20));
    let a = judged(
        &one(right)
            .mark(END, Mark::End(End::Interrupted { terminated: false }))
            .cut(END),
    );
    assert_eq!(outcomes(&a), [Outcome::Unknown; 3]);
}

/// A connection that a cut left in silence was dead since then, though its client noticed only after the settle limit. One that
/// fell silent by itself was the server's to serve.
#[test]
fn a_session_that_a_cut_silenced_ends_with_its_last_sign_of_life() {
    let noticed = |kind: TriggerKind, last_sign: u64| {
        let history = one(|s| {
            s.open(10).got_every(102, 100, 1..=3);
            s.silent(last_sign).closed(40_000, Cause::Heartbeat);
            s.resume(40_001, 3).got_all(40_010, 4..=10);
        });
        judged(&history.terms(|t| t.outages[0].trigger = kind).end(90_000))
    };
    let a = noticed(TriggerKind::Cut, 302);
    assert_eq!((outcomes(&a), a.facts.late), (PASS, 0));
    // Before the cut it was there to be served, silent or not.
    let long = one(|s| {
        s.open(10).got_every(102, 100, 1..=2);
        s.silent(302).closed(40_000, Cause::Heartbeat);
        s.resume(40_001, 2).got_all(40_010, 3..=10);
    });
    let cut = |t: &mut herd::history::Terms| {
        t.outages[0].trigger = TriggerKind::Cut;
        t.settle = std::time::Duration::from_millis(600);
    };
    let a = judged(&long.terms(cut).end(90_000));
    assert_eq!(a.facts.late, 1, "event 3, due at 901");
    // The server's own silence: after the network was back, or where there was no cut.
    for (kind, last_sign) in [(TriggerKind::Cut, 5_350), (TriggerKind::Child, 302)] {
        let a = noticed(kind, last_sign);
        assert_eq!((outcomes(&a), a.facts.late), (LOSES, 7), "{kind:?}");
    }
}
