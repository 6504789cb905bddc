//! What came in frames that herd could not read is not lost, and what is lost stays so whatever else could not be read.

use std::time::Duration;

use herd::check::judge;

use super::*;

const FRAME: &str = r#"{"type":"replay","event":{"id":"4"}}"#;

/// Comes back, reads what is live, and of the replay only what this story tells.
fn returns(s: &mut Story<'_>, replay: impl FnOnce(&mut Story<'_>)) {
    before(s);
    s.resume(3_000, 3);
    replay(s);
    s.got_every(5_002, 100, 7..=10);
}

/// Another content under an event's id, and no number of herd's.
fn numberless(id: &str) -> Event {
    Event {
        id: Some(id.into()),
        digest: 99,
        ..Event::default()
    }
}

#[test]
fn a_replay_that_could_not_be_read_is_not_lost() {
    let history = one(|s| {
        returns(s, |s| {
            s.unread(3_001, "hello").unread(3_010, FRAME);
            s.traced(3_010, 4).traced(3_011, 6).traced(3_012, 5);
        });
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!((a.facts.lost, a.facts.expected, a.unread), (0, 17, 3));
    assert!(a.offenders.is_empty());
    let escaped = FRAME.escape_debug().to_string();
    for said in [
        "3 pairs",
        "client 1",
        "event 4",
        &escaped,
        "herd profile check",
    ] {
        assert!(why(&a).contains(said), "{said}: {}", why(&a));
    }
    assert_eq!(a.resumes[0][1], None, "nobody can tell");
}

#[test]
fn what_left_no_trace_is_lost_beside_what_could_not_be_read() {
    let history = one(|s| {
        returns(s, |s| {
            s.unread(3_010, FRAME).traced(3_010, 5);
        });
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.lost, a.facts.expected), (2, 19));
    let offenders: Vec<_> = a.offenders.iter().map(|o| o.seq).collect();
    assert_eq!(offenders, [4, 6].map(|n| Some(Seq(SEQ_BASE + n))));
    assert!(why(&a).contains("1 pairs came in frames"), "{}", why(&a));
}

#[test]
fn chatter_and_other_numbers_leave_no_trace() {
    let history = one(|s| {
        returns(s, |s| {
            s.unread(3_001, "hello").unread(3_010, "presence");
            s.traced(3_011, 3).traced(3_012, 9).traced(3_013, 500);
        });
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.lost, a.facts.expected), (3, 20));
}

#[test]
fn another_clients_trace_is_not_ones_own() {
    let other = |s: &mut Story<'_>| {
        right(s);
        s.traced(6_000, 5);
    };
    let history = published(Builder::new(2)).client(2, other).client(1, |s| {
        returns(s, |s| {
            s.got(3_010, 4).got(3_010, 6);
        });
    });
    let a = judged(&history.end(END));
    assert_eq!((outcomes(&a), a.facts.lost), (LOSES, 1));
}

#[test]
fn an_id_with_its_number_elsewhere_is_no_conflict() {
    let again = |traced: bool| {
        one(move |s| {
            returns(s, |s| {
                s.got_event(3_010, numberless("4"));
                if traced {
                    s.traced(3_010, 4);
                }
                s.got_all(3_011, 5..=6);
            });
        })
        .end(END)
    };
    let a = judged(&again(true));
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!((a.facts.lost, a.facts.conflict), (0, 0));
    let a = judged(&again(false));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!((a.facts.lost, a.facts.conflict), (1, 1));
}

/// Whoever had the event all the same is not judged by such a frame either, but a pass it isn't.
#[test]
fn a_number_elsewhere_under_a_known_id_is_no_pass() {
    let history = one(|s| {
        right(s);
        s.got_event(6_000, numberless("10")).traced(6_000, 10);
    });
    let a = judged(&history.end(END));
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!((a.facts.conflict, a.facts.expected), (0, 20));
    assert!(
        why(&a).contains("1 events came under their ids"),
        "{}",
        why(&a)
    );
}

#[test]
fn whoever_waits_for_such_a_frame_is_not_late_for_ever() {
    let history = one(|s| {
        returns(s, |s| {
            s.got_all(3_010, 4..=5)
                .unread(3_011, FRAME)
                .traced(3_011, 6);
        });
    });
    let limited = history.terms(|t| t.max_recovery = Some(Duration::from_secs(9)));
    let verdict = judge(&limited.end(END));
    let of = |check| {
        let finding = verdict.findings.iter().find(|f| f.check == check);
        finding.expect("each check has its finding").outcome
    };
    assert_eq!(of(Check::Recovery), Outcome::Unknown);
    assert_eq!(verdict.outcome, Outcome::Unknown);
}
