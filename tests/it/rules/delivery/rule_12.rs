//! Rule 12: publications whose fate is unknown.

use super::*;

fn unknown(p: &mut Publication) {
    (p.fate, p.answered, p.id, p.lost_answers) = (Fate::Unknown, None, None, 1);
}

#[test]
fn an_unknown_publication_that_nobody_has_is_not_expected() {
    let a = judged(&one(right).publication(11, 6_000, unknown).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!((a.facts.expected, a.publications.unknown), (20, 1));
}

#[test]
fn as_soon_as_one_client_has_it_everybody_must() {
    let history = one(|s| {
        right(s);
        s.got(6_001, 11);
    });
    let a = judged(&history.publication(11, 6_000, unknown).end(END));
    assert_eq!(outcomes(&a), LOSES);
    assert_eq!(
        (a.facts.recovered, a.facts.lost, a.facts.expected),
        (1, 1, 22)
    );
    assert_eq!(a.offenders[0].client, ClientId(2));
}

/// A cursor or a reset names an id; that is no receipt.
#[test]
fn an_id_in_the_table_is_no_receipt() {
    let history = one(|s| {
        before(s);
        s.resume(3_000, 11)
            .got_all(3_010, 4..=6)
            .got_every(5_002, 100, 7..=10);
    });
    let a = judged(&history.publication(11, 6_000, unknown).end(END));
    assert_eq!(a.facts.expected, 20);
}
