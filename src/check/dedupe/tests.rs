//! Handlers against a naive model of them, over whole histories.

use super::*;
use crate::check::delivery::assess;
use crate::check::timeline::Timeline;
use crate::history::build::{Builder, Story};
use crate::history::{Duplicates, Event, History};
use proptest::prelude::*;

/// Somebody else's event.
const FOREIGN: u64 = 0;

/// Events (numbers from 1) that arrive at one client, each so many milliseconds after the one before it.
type Receipts = Vec<(u64, u64)>;

fn history(clients: &[Receipts], dedupe: &[Remembers]) -> History {
    let story = |s: &mut Story<'_>, receipts: &Receipts| {
        s.open(100);
        let mut at = 200;
        for (gap, n) in receipts {
            at += gap;
            match *n {
                FOREIGN => s.got_event(
                    at,
                    Event {
                        id: Some("presence".into()),
                        ..Event::default()
                    },
                ),
                n => s.got(at, n),
            };
        }
    };
    Builder::new(clients.len() as u32)
        .terms(|t| t.dedupe = dedupe.to_vec())
        .acked_every(1..=6, 1, 1)
        .each(|k, s| story(s, &clients[k as usize - 1]))
        .end(100_000)
}

fn facts(history: &History) -> DedupeFacts {
    assess(history, &Timeline::new(history)).dedupe.unwrap()
}

/// How many repeats a handler applies that looks through a plain list of what it applied.
fn naive(receipts: &Receipts, remembers: Remembers) -> u64 {
    let mut applied: Vec<(u64, u64)> = Vec::new();
    let (mut seen, mut at, mut twice) = (Vec::new(), 0, 0);
    for (gap, n) in receipts {
        at += gap;
        let known = match remembers {
            Remembers::Everything => &applied[..],
            Remembers::Last(last) => &applied[applied.len().saturating_sub(last as usize)..],
            Remembers::For(time) => {
                let young = |(_, then): &(u64, u64)| u128::from(at - then) <= time.as_millis();
                &applied[applied.iter().position(young).unwrap_or(applied.len())..]
            }
        };
        let repeat = *n != FOREIGN && seen.contains(n);
        if repeat && known.iter().any(|(id, _)| id == n) {
            continue;
        }
        twice += u64::from(repeat);
        seen.push(*n);
        applied.push((*n, at));
    }
    twice
}

fn handler() -> impl Strategy<Value = Remembers> {
    prop_oneof![
        Just(Remembers::Everything),
        (0u32..9).prop_map(Remembers::Last),
        (0u64..60).prop_map(|ms| Remembers::For(Duration::from_millis(ms))),
    ]
}

proptest! {
    #[test]
    fn handlers_do_what_a_naive_one_does(
        clients in proptest::collection::vec(
            proptest::collection::vec((0u64..30, 0u64..=6), 0..25), 1..4),
        dedupe in proptest::collection::vec(handler(), 1..5),
    ) {
        let facts = facts(&history(&clients, &dedupe));
        for (remembers, told) in dedupe.iter().zip(&facts.handlers) {
            let each = clients.iter().map(|receipts| naive(receipts, *remembers));
            let each: Vec<u64> = each.collect();
            prop_assert_eq!(told.applied_twice, each.iter().sum::<u64>(), "{:?}", remembers);
            prop_assert_eq!(told.clients, each.iter().filter(|n| **n > 0).count() as u64);
            prop_assert_eq!(told.redelivered, 0);
        }
        let repeats = |receipts: &Receipts| naive(receipts, Remembers::Last(0));
        prop_assert_eq!(facts.duplicated, clients.iter().map(repeats).sum::<u64>());
    }

    /// What is told to be enough is, and a little less is not.
    #[test]
    fn enough_is_enough_and_no_more(
        receipts in proptest::collection::vec((0u64..30, 0u64..=6), 0..40),
    ) {
        let facts = facts(&history(std::slice::from_ref(&receipts), &[Remembers::Everything]));
        let last = u32::try_from(facts.enough_last).unwrap();
        let time = Duration::from_millis(facts.enough_for_ms as u64);
        prop_assert_eq!(naive(&receipts, Remembers::Last(last)), 0);
        prop_assert_eq!(naive(&receipts, Remembers::For(time)), 0);
        prop_assert_eq!(facts.duplicated == 0, last == 0);
        if let Some(less) = last.checked_sub(1) {
            prop_assert!(naive(&receipts, Remembers::Last(less)) > 0);
        }
        if let Some(less) = time.checked_sub(Duration::from_millis(1)) {
            prop_assert!(naive(&receipts, Remembers::For(less)) > 0);
        }
    }
}

#[test]
fn what_the_protocol_allows_is_told_apart() {
    let mut history = history(&[vec![]], &[Remembers::Last(1)]);
    history.header.terms.duplicates = Duplicates::Marked;
    let history = Builder::new(1)
        .terms(|t| *t = history.header.terms.clone())
        .acked_every(1..=3, 1, 1)
        .client(1, |s| {
            s.open(100).got_all(200, 1..=3);
            s.got_marked(300, 1).got(301, 2);
        })
        .end(1_000);
    let facts = facts(&history);
    assert_eq!((facts.duplicated, facts.redelivered), (1, 1));
    assert_eq!((facts.enough_last, facts.enough_for_ms), (3, 101.0));
    let told = HandlerFacts {
        remembers: "last 1".into(),
        applied_twice: 2,
        redelivered: 1,
        clients: 1,
    };
    assert_eq!(facts.handlers, [told]);
}

/// After a reload a client lacks what it had: that it comes again is no repeat.
#[test]
fn a_reload_makes_no_repeats() {
    let history = Builder::new(1)
        .terms(|t| t.dedupe = vec![Remembers::Last(1)])
        .acked_every(1..=3, 1, 1)
        .client(1, |s| {
            s.open(100).got_all(200, 1..=3).reset(300, "0");
            s.got_all(400, 1..=3);
        })
        .end(1_000);
    assert_eq!(facts(&history).handlers[0].applied_twice, 0);
}

#[test]
fn usual_handlers_are_asked_about_where_repeats_are_accepted() {
    let mut terms = crate::history::build::terms();
    assert_eq!(handlers(&terms), []);
    terms.delivery = DeliveryMode::AtLeastOnce;
    let told: Vec<_> = handlers(&terms).into_iter().map(words).collect();
    assert_eq!(told, ["everything", "last 1000", "for 10m"]);
    terms.dedupe = vec![Remembers::Last(5)];
    assert_eq!(handlers(&terms), [Remembers::Last(5)]);
}
