//! A client that came back with its memory lost is a new one: what was published before it was served is no pair of the
//! count, what it gets again is no duplicate, and nobody told it to reload. One that kept its memory is judged like any.

use super::*;
use herd::check::judge;
use herd::history::Memory;

/// Client 1 started anew while the server was away, without its memory, and tells the rest.
fn lost(rest: impl FnOnce(&mut Story<'_>)) -> Builder {
    one(|s| {
        before(s);
        s.refreshed(1_500, Memory::Lost);
        rest(s);
    })
}

fn counts(a: &Assessment) -> (u64, u64, u64, u64) {
    let f = &a.facts;
    (f.expected, f.delivered, f.lost + f.late, f.reset + f.absent)
}

#[test]
fn what_was_published_before_it_was_served_is_not_expected_of_it() {
    let a = judged(&lost(|s| _ = s.open(3_000).got_every(5_002, 100, 7..=10)).end(END));
    assert_eq!(outcomes(&a), PASS);
    // Client 2 has all ten; client 1 had three as another one, and gets four.
    assert_eq!(counts(&a), (17, 17, 0, 0));
    assert_eq!(finding(&a, Check::Resets).measured, "0 told to reload");
    assert_eq!(a.resumes[0], [None, None]);
    assert_eq!(
        a.caught_up[0][1],
        Some(ms(3_001)),
        "there is nothing to catch up with"
    );
    assert_eq!(a.exposed, [1], "a new client exercises no resume");
}

#[test]
fn what_it_gets_again_of_the_past_is_no_duplicate() {
    for past in [1..=6, 2..=6, 5..=6] {
        let given = past.clone();
        let history = lost(|s| {
            s.open(3_000).got_all(3_010, given);
            s.got_every(5_002, 100, 7..=10);
        });
        let a = judged(&history.end(END));
        assert_eq!(outcomes(&a), PASS, "{past:?}");
        assert_eq!(counts(&a), (17, 17, 0, 0), "{past:?}");
        assert_eq!((a.facts.duplicated, a.facts.reordered), (0, 0), "{past:?}");
    }
    let twice = lost(|s| {
        s.open(3_000).got_all(3_010, 5..=6).got(3_020, 6);
        s.got_every(5_002, 100, 7..=10);
    });
    let a = judged(&twice.end(END));
    assert_eq!((outcomes(&a), a.facts.duplicated), (LOSES, 1));
}

#[test]
fn what_is_published_once_it_is_served_is_expected() {
    let a = judged(&lost(|s| _ = s.open(3_000).got_every(5_002, 100, 7..=9)).end(END));
    assert_eq!((outcomes(&a), a.facts.lost), (LOSES, 1));
    // Never served: open is enough for what comes after.
    let a = judged(&lost(|s| _ = s.open(3_000)).end(END));
    assert_eq!((outcomes(&a), a.facts.lost), (LOSES, 4));
}

/// Open is not subscribed, but the time for that is not without an end: it may have been, and missed what was sent.
#[test]
fn one_that_is_served_long_after_it_was_open_leaves_a_doubt() {
    // Event 11 is sent at 7,500 ms, one every 100 ms follows, and the connection is open since 3,000 ms.
    let served = |memory: bool, first: u64| {
        let rest = |s: &mut Story<'_>, first: u64| {
            s.got_every(7_502 + (first - 11) * 100, 100, first..=30);
        };
        let history = published(Builder::new(2)).acked_every(11..=30, 7_500, 100);
        let history = history.client(2, |s| {
            right(s);
            rest(s, 11);
        });
        judged(
            &history
                .client(1, |s| {
                    before(s);
                    if memory {
                        s.resume(2_500, 3).refused(2_501, "gone").dropped(2_502);
                    } else {
                        s.refreshed(1_500, Memory::Lost);
                    }
                    s.open(3_000);
                    rest(s, first);
                })
                .end(END),
        )
    };
    assert_eq!(outcomes(&served(false, 15)), PASS);
    let a = served(false, 20);
    assert_eq!(outcomes(&a), UNSURE);
    assert_eq!(counts(&a), (3 + 30 + 11, 3 + 30 + 11, 0, 0));
    assert!(
        why(&a).contains("up to 5.4 s after they were open, and 3 pairs"),
        "{}",
        why(&a)
    );
    // One whose resume was refused is told to reload, and begins anew likewise.
    assert_eq!(
        finding(&served(true, 15), Check::ExactlyOnce).outcome,
        Outcome::Pass
    );
    assert_eq!(
        finding(&served(true, 20), Check::ExactlyOnce).outcome,
        Outcome::Unknown
    );
}

#[test]
fn a_session_that_brought_nothing_leaves_it_new() {
    let again = |s: &mut Story<'_>| {
        s.open(2_100).dropped(4_900);
        s.open(5_050).got_every(5_102, 100, 8..=10);
    };
    let a = judged(&lost(again).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(counts(&a), (16, 16, 0, 0));
}

#[test]
fn what_was_overdue_before_stays_lost() {
    let overdue = |memory| {
        let history = one(|s| {
            s.open(10).got_every(102, 100, 1..=2).dropped(1_005);
            s.resume(1_006, 2).refreshed(1_900, memory);
            s.closed(1_900, Cause::Refreshed);
            s.open(3_000).got_every(5_002, 100, 7..=10);
        });
        let history = history.terms(|t| t.settle = std::time::Duration::from_millis(600));
        judged(&history.end(END)).facts.lost
    };
    // Event 3, from 300 ms on: due at 900 ms to whoever was there until 1,005 ms.
    assert_eq!(overdue(Memory::Lost), 1, "event 3");
}

/// A server may begin a new client's connection with a reset: it has nothing to reload.
#[test]
fn a_reset_before_its_first_event_is_not_counted() {
    let told = |s: &mut Story<'_>| {
        _ = s
            .open(3_000)
            .reset(3_002, "6")
            .got_every(5_002, 100, 7..=10)
    };
    let a = judged(&lost(told).end(END));
    assert_eq!((outcomes(&a), counts(&a)), (PASS, (17, 17, 0, 0)));
    let later = |s: &mut Story<'_>| {
        s.open(3_000).got_every(5_002, 100, 7..=8).reset(5_150, "8");
        s.got_every(5_202, 100, 9..=10);
    };
    let a = judged(&lost(later).end(END));
    assert_eq!(
        finding(&a, Check::Resets).outcome,
        Outcome::Fail,
        "this one is"
    );
}

#[test]
fn one_that_kept_its_memory_is_judged_like_any() {
    let kept = |rest: fn(&mut Story<'_>)| {
        judged(
            &one(|s| {
                before(s);
                s.refreshed(1_500, Memory::Kept);
                rest(s);
            })
            .end(END),
        )
    };
    assert_eq!(outcomes(&kept(after)), PASS);
    let a = kept(|s| _ = s.resume(3_000, 3).got_every(5_002, 100, 7..=10));
    assert_eq!((outcomes(&a), a.facts.lost), (LOSES, 3));
    let a = kept(|s| {
        s.resume(3_000, 3).got_all(3_010, 3..=6);
        s.got_every(5_002, 100, 7..=10);
    });
    assert_eq!((outcomes(&a), a.facts.duplicated), (LOSES, 1));
}

/// A refresh is herd's own doing: of the clients that it closed none was dropped by the server.
#[test]
fn a_refresh_is_no_relapse_and_goes_on_as_one_absence() {
    let herd = (1..=20).fold(published(Builder::new(20)), |builder, k| {
        builder.client(k, |s| {
            before(s);
            if k % 2 == 0 {
                s.refreshed(1_500, Memory::Kept);
            }
            s.resume(2_100 + u64::from(k) * 400, 3)
                .got_all(2_200 + u64::from(k) * 400, 4..=6);
            if k == 1 {
                // Long after the server was ready, and all the same no drop of its.
                s.refreshed(20_000, Memory::Kept)
                    .closed(20_000, Cause::Refreshed);
                s.resume(20_001, 6);
            }
        })
    });
    let verdict = judge(&herd.end(END));
    let relapse = verdict.findings.iter().find(|f| f.check == Check::Relapse);
    assert_eq!(relapse.unwrap().outcome, Outcome::Pass);
    let rows = |k| {
        verdict
            .returns
            .iter()
            .filter(move |r| r.client == ClientId(k))
    };
    assert_eq!(rows(2).count(), 1);
    assert_eq!(rows(2).next().unwrap().dropped, ms(1_005));
    assert_eq!(rows(1).count(), 2);
    let facts = &verdict.outages[0];
    assert_eq!((facts.dropped, facts.reconnected), (20, 20));
    let refresh = facts.refresh.as_ref().unwrap();
    assert_eq!((refresh.refreshed, refresh.kept, refresh.lost), (11, 11, 0));
}

/// herd chose the instants of those that started anew: they must not spread a stampede out.
#[test]
fn who_started_anew_spreads_no_stampede() {
    let spread = |refresh: bool| {
        let herd = (1..=40).fold(published(Builder::new(40)), |builder, k| {
            builder.client(k, |s| {
                before(s);
                let early = k <= 4;
                if early && refresh {
                    s.refreshed(1_500, Memory::Kept);
                }
                let at = if early { 2_010 } else { 9_000 + u64::from(k) };
                s.resume(at, 3)
                    .got_all(at + 10, 4..=6)
                    .got_every(9_500, 10, 7..=10);
            })
        });
        let verdict = judge(&herd.end(END));
        let spread = verdict
            .findings
            .into_iter()
            .find(|f| f.check == Check::ReconnectSpread);
        spread.unwrap().measured
    };
    assert_eq!(spread(false), "7.03 s");
    assert_eq!(spread(true), "35 ms");
}

#[test]
fn what_new_clients_were_given_is_counted() {
    type Given = Option<std::ops::RangeInclusive<u64>>;
    let given: [Given; 4] = [None, Some(5..=6), Some(2..=6), Some(1..=6)];
    let herd = given
        .iter()
        .zip(1..)
        .fold(published(Builder::new(5)), |builder, (given, k)| {
            builder.client(k, |s| {
                before(s);
                s.refreshed(1_500, Memory::Lost).open(3_000);
                if let Some(given) = given.clone() {
                    s.got_all(3_010, given);
                }
                s.got_every(5_002, 100, 7..=10);
            })
        });
    let herd = herd.client(5, |s| {
        before(s);
        s.refreshed(1_500, Memory::Lost);
    });
    let verdict = judge(&herd.end(END));
    let facts = verdict.outages[0].refresh.clone().unwrap();
    assert_eq!((facts.refreshed, facts.lost, facts.away), (5, 5, 1));
    assert_eq!(
        (
            facts.given_nothing,
            facts.given_some,
            facts.given_everything
        ),
        (1, 2, 1)
    );
    assert_eq!(
        (facts.some_least, facts.some_most, facts.some_from),
        (2, 5, Some(2))
    );
}

#[test]
fn reloads_are_timed_and_those_that_failed_are_stated() {
    let history = |status| {
        one(move |s| {
            before(s);
            s.resume(3_000, 3)
                .reset(3_010, "6")
                .reloaded(3_010, 40, status);
            s.got_every(5_002, 100, 7..=10);
        })
        .terms(|t| t.max_resets = 1)
        .end(END)
    };
    let verdict = judge(&history(200));
    let facts = verdict.outages[0].reload.clone().unwrap();
    assert_eq!(
        (facts.done, facts.failed, facts.peak_1s, facts.bytes),
        (1, 0, 1, 10)
    );
    assert_eq!(facts.latency_ms.unwrap().max, 40.0);
    let verdict = judge(&history(500));
    let facts = verdict.outages[0].reload.clone().unwrap();
    assert_eq!((facts.done, facts.failed, facts.latency_ms), (0, 1, None));
    let resets = verdict
        .findings
        .iter()
        .find(|f| f.check == Check::Resets)
        .unwrap();
    assert!(
        resets
            .why
            .contains("1 of 1 requests for the full state failed"),
        "{}",
        resets.why
    );
}

/// Nobody dialled by the policy: that isn't the same as nobody back.
#[test]
fn a_wave_of_refreshes_says_that_it_was_one() {
    let told = |memory| {
        let herd = published(Builder::new(40)).each(move |_, s| {
            before(s);
            s.refreshed(1_500, memory).open(3_000);
            s.got_every(5_002, 100, 7..=10);
        });
        let verdict = judge(&herd.end(END));
        let why = |check| {
            let mut of = verdict.findings.iter().filter(|f| f.check == check);
            of.next().unwrap().why.clone()
        };
        let checks = [Check::ReconnectSpread, Check::Peak, Check::ExactlyOnce];
        checks.map(why)
    };
    for (memory, words) in [
        (Memory::Kept, "40 clients started anew, with their cursor"),
        (
            Memory::Lost,
            "40 clients started anew, without their memory",
        ),
    ] {
        let [spread, peak, once] = told(memory);
        assert!(spread.starts_with(words), "{spread}");
        assert!(peak.starts_with(words), "{peak}");
        assert!(!once.contains("nobody came back"), "{once}");
    }
}
