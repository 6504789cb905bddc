//! Rule 10: herd's numbers.

use super::*;

fn with(event: Event) -> Assessment {
    judged(
        &one(|s| {
            before(s);
            s.resume(3_000, 3)
                .got_event(3_001, event.clone())
                .got_event(3_002, event);
            s.got_all(3_010, 4..=6).got_every(5_002, 100, 7..=10);
        })
        .end(END),
    )
}

#[test]
fn a_number_out_of_the_runs_range_is_foreign_and_in_no_gate() {
    for seq in [
        Some(Seq(SEQ_BASE)),
        Some(Seq(SEQ_BASE + (1 << 20) + 1)),
        Some(Seq(3)),
        None,
    ] {
        let a = with(Event {
            id: Some("x".into()),
            seq,
            digest: 5,
            ..Event::default()
        });
        assert_eq!(outcomes(&a), PASS, "{seq:?}");
        assert_eq!((a.facts.foreign, a.facts.duplicated), (2, 0), "{seq:?}");
    }
}

#[test]
fn a_number_in_the_range_that_was_never_published_is_unexpected() {
    for seq in [SEQ_BASE + 1_000, SEQ_BASE + (1 << 20)] {
        let a = with(Event {
            id: Some("x".into()),
            seq: Some(Seq(seq)),
            digest: 5,
            ..Event::default()
        });
        assert_eq!(outcomes(&a), LOSES);
        assert_eq!((a.facts.unexpected, a.facts.foreign), (2, 0));
        assert!(why(&a).contains("never published"));
    }
}

#[test]
fn without_the_shard_that_published_a_number_proves_nothing() {
    let history = one(|s| {
        right(s);
        s.got(6_000, 11);
    })
    .header(|h| h.shard = Shard { index: 1, of: 2 })
    .end(END);
    let a = judged(&history);
    assert_eq!(a.facts.unexpected, 0);
    assert!(why(&a).contains("only 1 of 2 shards"));
}
