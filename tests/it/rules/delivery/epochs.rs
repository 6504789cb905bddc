//! Rules 17 to 20 where a server has order keys apart from its ids, and where ids and keys begin again with an epoch.

use super::*;
use herd::history::Source;

const DISORDERED: [Outcome; 3] = [Outcome::Pass, Outcome::Fail, Outcome::Pass];

/// Client 1 gets events 7 to 10 under these order keys, one after the other.
fn keyed(keys: [&str; 4]) -> Builder {
    let keys = keys.map(String::from);
    one(move |s| {
        before(s);
        s.resume(3_000, 3).got_all(3_010, 4..=6);
        for (n, key) in (7..).zip(keys) {
            s.got_ordered(5_002 + (n - 7) * 100, n, &key);
        }
    })
}

#[test]
fn the_order_key_must_rise_where_there_is_one_whatever_the_ids_do() {
    let right = judged(&keyed(["17", "18", "19", "100"]).end(END));
    assert_eq!((outcomes(&right), right.facts.reordered), (PASS, 0));
    let wrong = judged(&keyed(["18", "17", "19", "100"]).end(END));
    assert_eq!((outcomes(&wrong), wrong.facts.reordered), (DISORDERED, 1));
}

/// Where something else than the id must rise, ids say nothing of what a reset covers: here they fall.
#[test]
fn a_reset_goes_by_order_keys_where_there_are_any() {
    let told = |order: Option<&str>| {
        let falling = |n: u64| {
            Story::variant(n, |e| {
                e.id = Some((100 - n).to_string().into());
                e.order = Some(n.to_string().into());
            })
        };
        let mut builder = published(Builder::new(2));
        for n in 4..=6 {
            let id = (100 - n).to_string();
            builder = builder.publication(n, 1_100 + (n - 4) * 100, |p| p.id = Some(id.into()));
        }
        let history = builder
            .client(1, |s| {
                before(s);
                s.resume(3_000, 3).reset_to(
                    3_005,
                    Event {
                        id: Some("96".into()),
                        order: order.map(Into::into),
                        ..Event::default()
                    },
                );
                s.got_every(5_002, 100, 7..=10);
            })
            .client(2, |s| {
                before(s);
                s.resume(3_000, 3);
                for n in 4..=6 {
                    s.got_event(3_010, falling(n));
                }
                s.got_every(5_002, 100, 7..=10);
            });
        let facts = judged(&history.end(END)).facts;
        (facts.reset, facts.lost)
    };
    // Its id is the highest of the three, and its event the first.
    assert_eq!(told(Some("4")), (1, 2));
    assert_eq!(told(None), (1, 2), "by the answers, then");
}

/// The server is restarted without its memory: events 4 to 10 are ids 1 to 7 of another epoch.
fn restarted(epochs: [Option<&'static str>; 2]) -> Builder {
    restarted_with(epochs, [7, 8, 9, 10])
}

fn restarted_with(epochs: [Option<&'static str>; 2], live: [u64; 4]) -> Builder {
    let mut builder = published(Builder::new(2));
    for n in 4..=10 {
        let ms = if n < 7 {
            1_100 + (n - 4) * 100
        } else {
            5_000 + (n - 7) * 100
        };
        builder = builder.publication(n, ms, |p| p.id = Some((n - 3).to_string().into()));
    }
    builder.each(move |_, s| {
        let event = |n: u64, id: u64, epoch: Option<&str>| {
            Story::variant(n, |e| {
                e.id = Some(id.to_string().into());
                e.epoch = epoch.map(Into::into);
            })
        };
        s.open(10);
        for n in 1..=3 {
            s.got_event(2 + n * 100, event(n, n, epochs[0]));
        }
        s.dropped(1_005).resume(3_000, 3);
        for n in (4..=6).chain(live) {
            s.got_event(
                if n < 7 { 3_010 } else { 5_500 },
                event(n, n - 3, epochs[1]),
            );
        }
    })
}

#[test]
fn ids_and_order_begin_again_with_an_epoch() {
    let a = judged(&restarted([Some("a"), Some("b")]).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(
        (a.facts.conflict, a.facts.reordered, a.facts.delivered),
        (0, 0, 20)
    );
    for epochs in [[None, None], [Some("a"), Some("a")]] {
        let a = judged(&restarted(epochs).end(END));
        assert!(a.facts.conflict > 0 && a.facts.reordered > 0, "{epochs:?}");
    }
}

#[test]
fn within_an_epoch_the_order_is_judged_as_ever() {
    let a = judged(&restarted_with([Some("a"), Some("b")], [8, 7, 9, 10]).end(END));
    assert_eq!((outcomes(&a), a.facts.reordered), (DISORDERED, 2));
}

#[test]
fn a_server_that_goes_back_to_an_epoch_is_where_it_was_in_it() {
    let back = |last: u64| {
        let history = one(|s| {
            s.open(10).got_in_epoch(102, 1, "a", "1");
            s.got_in_epoch(302, 3, "a", "3").dropped(1_005);
            s.resume(3_000, 3).got_in_epoch(3_010, 4, "b", "4");
            s.got_in_epoch(3_011, last, "a", &last.to_string());
        });
        judged(&history.end(END)).facts.reordered
    };
    assert_eq!((back(2), back(5)), (1, 0));
}

#[test]
fn an_epoch_begins_the_order_of_answers_anew_too() {
    let across = |epoch: &'static str| {
        let history = one(|s| {
            before(s);
            s.resume(3_000, 3).got_in_epoch(3_010, 6, "b", "6");
            s.got_in_epoch(3_011, 4, epoch, "4")
                .got_in_epoch(3_012, 5, epoch, "5");
            s.got_every(5_002, 100, 7..=10);
        });
        let opaque = history.terms(|t| t.ids = IdKind::Opaque);
        judged(&opaque.end(END)).facts.reordered
    };
    assert_eq!((across("b"), across("a")), (2, 0));
}

#[test]
fn clients_need_not_agree_across_epochs() {
    let told = |epoch: &'static str| {
        let mut builder = published(Builder::new(3)).terms(|t| t.ids = IdKind::Opaque);
        for n in 7..=8 {
            builder = builder.publication(n, 5_000, |p| p.answered = Some(ms(5_500 + n)));
        }
        let history = builder.each(|k, s| {
            before(s);
            s.resume(3_000, 3).got_all(3_010, 4..=6);
            let live = [(7, "a"), (8, epoch)];
            let order = if k == 1 { [1, 0] } else { [0, 1] };
            for (n, epoch) in order.map(|i| live[i]) {
                s.got_in_epoch(6_000, n, epoch, &n.to_string());
            }
            s.got_all(6_001, 9..=10);
        });
        judged(&history.end(END)).facts.reordered
    };
    assert_eq!((told("a"), told("b")), (1, 0));
}

/// Nobody publishes; client 1 gets this, client 2 the same and nothing twice.
fn observed(contiguous: bool, first: impl Fn(&mut Story<'_>)) -> Assessment {
    let terms = |t: &mut herd::history::Terms| {
        t.source = Source::Others;
        t.delivery = DeliveryMode::Agreement;
        t.contiguous = contiguous;
    };
    let live = |s: &mut Story<'_>| {
        s.open(10)
            .got_in_epoch(102, 1, "a", "1")
            .got_in_epoch(103, 2, "a", "2");
        s.dropped(1_005).resume(2_500, 2);
        s.got_in_epoch(2_510, 3, "b", "1")
            .got_in_epoch(2_511, 4, "b", "2");
    };
    let history = Builder::new(2)
        .terms(terms)
        .outage(1, 1_000, 2_000)
        .client(1, |s| {
            live(s);
            first(s);
        })
        .client(2, live)
        .end(END);
    judged(&history)
}

#[test]
fn observing_an_event_is_its_epoch_and_its_id() {
    let a = observed(false, |_| ());
    assert_eq!(
        (a.facts.conflict, a.facts.duplicated, a.facts.lost),
        (0, 0, 0)
    );
    assert_eq!(a.facts.expected, 8);
    let again = observed(false, |s| {
        s.got_in_epoch(2_600, 3, "b", "1");
    });
    assert_eq!(again.facts.duplicated, 1);
    let garbled = observed(false, |s| {
        s.got_in_epoch(2_600, 4, "b", "1");
    });
    assert_eq!(garbled.facts.conflict, 1);
}

#[test]
fn holes_are_those_of_an_epoch() {
    assert_eq!(observed(true, |_| ()).facts.lost, 0);
    let hole = observed(true, |s| {
        s.got_in_epoch(2_600, 6, "b", "4");
    });
    // Number 3 of epoch b: both clients lost it, and client 2 number 4 too.
    assert_eq!(hole.facts.lost, 3);
}

#[test]
fn a_reset_into_another_epoch_covers_by_time_and_not_by_number() {
    let told = |epoch: Option<&str>| {
        let id = Event {
            id: Some("1".into()),
            epoch: epoch.map(Into::into),
            ..Event::default()
        };
        let history = published(Builder::new(1)).client(1, |s| {
            s.open(10);
            for n in 1..=3 {
                s.got_in_epoch(2 + n * 100, n, "a", &n.to_string());
            }
            s.dropped(1_005).resume(3_000, 3).reset_to(3_005, id);
            for n in 7..=10 {
                s.got_in_epoch(5_500, n, "b", &(n - 6).to_string());
            }
        });
        let facts = judged(&history.end(END)).facts;
        (facts.reset, facts.lost)
    };
    // Number 1 of epoch a is none of epoch b's: what had been sent when the frame came is covered.
    assert_eq!(told(Some("b")), (3, 0));
    assert_eq!(told(Some("a")), (0, 3));
}
