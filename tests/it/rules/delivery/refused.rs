//! Rule 17 where the server says that it can't resume: what the client missed until it begins anew, without a cursor, is
//! covered as by a reset, because it was announced.

use super::*;

/// The server refuses to resume client 1, which then tells the rest.
fn refused(rest: impl FnOnce(&mut Story<'_>)) -> Builder {
    one(|s| {
        before(s);
        s.resume(3_000, 3).refused(3_005, "unknown-id");
        s.closed(3_006, Cause::Declined("unknown-id".into()));
        rest(s);
    })
}

fn reset_and_lost(builder: Builder) -> (u64, u64) {
    let facts = judged(&builder.end(END)).facts;
    (facts.reset, facts.lost)
}

#[test]
fn what_was_missed_until_a_beginning_without_a_cursor_is_reset() {
    let live = |s: &mut Story<'_>| _ = s.open(3_100).got_every(5_002, 100, 7..=10);
    let a = judged(&refused(live).end(END));
    assert_eq!(outcomes(&a), [Outcome::Pass, Outcome::Pass, Outcome::Fail]);
    assert_eq!((a.facts.reset, a.facts.lost, a.facts.delivered), (3, 0, 17));
    assert_eq!(a.resumes[0], [None, Some(ResumeOutcome::Refused), None]);
    assert_eq!(a.caught_up[0][2], Some(ms(5_002)));
    let resets = finding(&a, Check::Resets);
    assert_eq!(resets.measured, "1 told to reload, 1 by a refused resume");
    assert!(resets.why.ends_with("keep at least 3"), "{}", resets.why);
    let allowed = refused(live).terms(|t| t.max_resets = 1);
    assert_eq!(outcomes(&judged(&allowed.end(END))), PASS);
}

/// A server that says nothing is given nothing.
#[test]
fn without_a_refusal_it_is_lost() {
    let silent = one(|s| {
        before(s);
        s.resume(3_000, 3).dropped(3_006);
        s.open(3_100).got_every(5_002, 100, 7..=10);
    });
    assert_eq!(reset_and_lost(silent), (0, 3));
}

#[test]
fn a_refusal_in_the_answer_to_the_handshake_is_one_too() {
    let gone = AttemptOutcome::Handshake {
        status: Some(410),
        why: "Gone".into(),
    };
    let history = one(|s| {
        before(s);
        s.failed(3_000, gone).refused(3_001, "410");
        s.open(3_100).got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.reset, a.facts.lost), (3, 0));
    assert_eq!(a.resumes[0], [None, None], "no session was refused");
    assert_eq!(finding(&a, Check::Resets).outcome, Outcome::Fail);
}

/// Open is not subscribed: what was sent before the first event, or the marker, can't be owed; what came later is.
#[test]
fn what_is_sent_once_the_client_is_served_is_expected() {
    let live = |marker: Option<u64>, numbers: &'static [u64]| {
        reset_and_lost(refused(move |s| {
            s.open(3_100);
            if let Some(at) = marker {
                s.marker(at);
            }
            for n in numbers {
                s.got(5_002 + (n - 7) * 100, *n);
            }
        }))
    };
    assert_eq!(live(None, &[8, 9, 10]), (4, 0));
    assert_eq!(live(Some(3_105), &[8, 9, 10]), (3, 1));
    assert_eq!(live(None, &[7, 8, 10]), (3, 1));
    assert_eq!(live(None, &[]), (3, 4), "it is never served");
    assert_eq!(live(Some(5_150), &[]), (5, 2), "nor here, but said to be");
}

#[test]
fn the_client_holds_nothing_any_more() {
    let recent = refused(|s| {
        s.open(3_100)
            .got_all(3_105, 1..=6)
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&recent.end(END));
    assert_eq!(
        (a.facts.duplicated, a.facts.reordered, a.facts.delivered),
        (0, 0, 20)
    );
    let twice = refused(|s| {
        s.open(3_100).got_all(3_105, 1..=6).got(3_106, 6);
        s.got_every(5_002, 100, 7..=10);
    });
    assert_eq!(judged(&twice.end(END)).facts.duplicated, 1);
}

#[test]
fn a_server_that_goes_on_in_the_session_that_it_refused_has_begun_anew_there() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 3).refused(3_005, "too old");
        s.got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.reset, a.facts.lost), (3, 0));
    assert_eq!(a.resumes[0][1], Some(ResumeOutcome::Refused));
    assert_eq!(finding(&a, Check::Resets).outcome, Outcome::Fail);
    let lossy = one(|s| {
        before(s);
        s.resume(3_000, 3).refused(3_005, "too old");
        s.got(5_002, 7).got(5_202, 9).got(5_302, 10);
    });
    assert_eq!(reset_and_lost(lossy), (3, 1));
}

#[test]
fn a_resume_that_is_served_after_all_makes_a_refusal_void() {
    let history = refused(|s| {
        s.resume(3_100, 3).got_all(3_110, 4..=6);
        s.got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), PASS);
    // So a later beginning without a cursor is nothing that was announced.
    let forgotten = refused(|s| {
        s.resume(3_100, 3)
            .got_all(3_110, 4..=6)
            .got(5_002, 7)
            .dropped(5_050);
        s.open(5_250).got_every(5_302, 100, 10..=10);
    });
    assert_eq!(reset_and_lost(forgotten), (0, 2));
}

#[test]
fn what_was_overdue_when_the_server_refused_stays_lost() {
    let history = published(Builder::new(2))
        .outage(2, 50_000, 51_000)
        .client(1, |s| {
            before(s);
            s.resume(3_000, 3)
                .got_every(5_002, 100, 7..=10)
                .dropped(50_000);
            s.resume(52_000, 10).refused(52_001, "gone");
            s.closed(52_002, Cause::Declined("gone".into()));
            s.open(52_100);
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

/// As Socket.IO does it: missed packets come before the answer that names another session, which is the reset, without id.
#[test]
fn a_reset_without_an_id_covers_what_was_sent_until_it_whatever_came_before_it() {
    let told = |early: std::ops::RangeInclusive<u64>, live: std::ops::RangeInclusive<u64>| {
        let history = one(|s| {
            before(s);
            s.resume_cursor(3_000, "pid:off").got_all(3_002, early);
            s.reset_to(3_005, Event::default());
            s.got_every(5_002 + (live.start() - 7) * 100, 100, live);
        });
        let a = judged(&history.end(END));
        assert_eq!(a.resumes[0][1], Some(ResumeOutcome::Reset));
        assert_eq!(finding(&a, Check::Resets).outcome, Outcome::Fail);
        (a.facts.reset, a.facts.lost, a.facts.delivered)
    };
    assert_eq!(told(4..=4, 7..=10), (2, 0, 18));
    assert_eq!(told(4..=6, 8..=10), (0, 1, 19));
}

/// Event 11 is sent after the client was told to reload and before it is back. It has no cursor then: nobody can bring it.
#[test]
fn a_reset_that_leaves_no_cursor_reaches_to_where_the_client_begins_anew() {
    let gone = || AttemptOutcome::Handshake {
        status: Some(410),
        why: "Gone".into(),
    };
    let close = || Cause::Close {
        code: Some(4410),
        reason: "".into(),
    };
    type Tale = Box<dyn Fn(&mut Story<'_>)>;
    let told: [Tale; 3] = [
        Box::new(move |s| {
            s.failed(3_000, gone()).reset_to(3_001, Event::default());
        }),
        Box::new(move |s| {
            s.resume(3_000, 3).reset_to(3_004, Event::default());
            s.closed(3_004, close());
        }),
        Box::new(|s| {
            s.resume(3_000, 3)
                .reset_to(3_005, Event::default())
                .dropped(3_040);
        }),
    ];
    for (n, told) in told.iter().enumerate() {
        let history = published(Builder::new(2)).acked(11, 3_050).each(|_, s| {
            before(s);
            told(s);
            s.open(3_100).got_every(5_002, 100, 7..=10);
        });
        let a = judged(&history.end(END));
        assert_eq!((a.facts.reset, a.facts.lost), (8, 0), "{n}");
        let resets = finding(&a, Check::Resets);
        assert_eq!(
            (resets.outcome, &*resets.measured),
            (Outcome::Fail, "2 told to reload")
        );
        // What is sent once it is back is expected.
        let history = published(Builder::new(2)).acked(11, 3_050).each(|_, s| {
            before(s);
            told(s);
            s.open(3_100).got(5_002, 7).got(5_202, 9).got(5_302, 10);
        });
        assert_eq!(judged(&history.end(END)).facts.lost, 2);
    }
}

#[test]
fn a_bare_cursor_is_told_as_text_and_never_taken_for_an_event() {
    let history = one(|s| {
        before(s);
        s.resume_cursor(3_000, "7\u{1b}")
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.end(END));
    assert_eq!((a.facts.lost, a.facts.foreign, a.facts.conflict), (3, 0, 0));
    let says = r#"client 1 resumed from cursor "7\u{1b}" and got nothing of 4..6"#;
    assert!(why(&a).starts_with(says), "{}", why(&a));
    let same = one(|s| {
        before(s);
        s.resume_cursor(3_000, "3")
            .got(3_005, 3)
            .got_all(3_010, 4..=6);
        s.got_every(5_002, 100, 7..=10);
    });
    let a = judged(&same.end(END));
    assert_eq!((a.facts.duplicated, a.facts.lost), (1, 0));
}

/// What can't be read can't be told from what never came.
#[test]
fn where_something_is_lost_the_unread_frames_are_told() {
    let mut history = one(|s| {
        before(s);
        s.resume(3_000, 3).got_every(5_002, 100, 7..=10);
    })
    .end(END);
    let frame = (ms(3_010), "\u{fffd}garbled".into());
    history.clients[0].unread.push(frame);
    let a = judged(&history);
    let says = "client 1 could not read \"\u{fffd}garbled\"";
    assert!(why(&a).contains(says), "{}", why(&a));
}
