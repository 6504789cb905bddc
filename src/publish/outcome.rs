//! What an answer to a publication means, whether it is sent again, and when the next one is due.
//!
//! Pure: no socket, no clock. Rule 11 of judgement is decided here and nowhere else.

use serde_json::Value;

use crate::history::{Elapsed, Fate, Publication};

/// What came of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A success; what it told of the event.
    Accepted(Receipted),
    /// Not one byte was written: no connection.
    Unsent(String),
    /// An HTTP status that is no success.
    Status(u16),
    /// The other side says that it does not have it, and may have it later (a publish command's `"ok": false`).
    Declined,
    /// Bytes were written and no answer came.
    Lost(String),
}

/// What a success told of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipted {
    /// The id, digit for digit.
    pub id: Option<Box<str>>,
    /// The position in the server's own order.
    pub position: Option<u64>,
}

impl Receipted {
    /// Reads the id and the position from an answer's body by JSON Pointers. What isn't there is none.
    #[must_use]
    pub fn read(body: &[u8], id: &str, position: Option<&str>) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Self::default();
        };
        Self {
            id: value.pointer(id).and_then(lexeme),
            position: position
                .and_then(|p| value.pointer(p))
                .and_then(lexeme)
                .and_then(|p| p.parse().ok()),
        }
    }
}

/// A string's content or a number as it was written.
fn lexeme(value: &Value) -> Option<Box<str>> {
    match value {
        Value::String(s) => Some(s.as_str().into()),
        Value::Number(n) => Some(n.as_str().into()),
        _ => None,
    }
}

/// Whether a publication whose answer was lost may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The server stores a repeated one once.
    Idempotent,
    /// It might store it twice.
    Never,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: its fate is final.
    Done,
    /// It is sent again.
    Again,
}

/// What a status that is no success says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// It is not accepted.
    No,
    /// Nothing certain: it may have been accepted.
    Nothing,
}

fn status_says(status: u16) -> Says {
    match status {
        408 | 409 | 425 | 429 => Says::Nothing,
        400..=499 => Says::No,
        _ => Says::Nothing,
    }
}

/// Notes the answer of the latest try and says whether there is to be another.
///
/// A definite "no" decides only where no earlier try's answer was lost: that one may have been accepted.
pub fn note(publication: &mut Publication, answer: Answer, at: Elapsed, repeat: Repeat) -> Next {
    let p = publication;
    let failed = if p.lost_answers == 0 {
        Fate::Failed
    } else {
        Fate::Unknown
    };
    let (fate, next) = match answer {
        Answer::Accepted(told) => {
            p.id = told.id;
            p.position = told.position;
            (Fate::Acked, Next::Done)
        }
        Answer::Unsent(_) | Answer::Declined => (failed, Next::Again),
        Answer::Status(status) if status_says(status) == Says::No => (failed, Next::Done),
        Answer::Status(_) | Answer::Lost(_) => {
            p.lost_answers += 1;
            let next = match repeat {
                Repeat::Idempotent => Next::Again,
                Repeat::Never => Next::Done,
            };
            (Fate::Unknown, next)
        }
    };
    p.fate = fate;
    p.answered = (fate != Fate::Unknown).then_some(at);
    next
}

/// Due times: `start + n / rate`, from n = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    start: Elapsed,
    rate: f64,
    made: u64,
}

impl Schedule {
    /// `rate` events a second, above 0.
    #[must_use]
    pub fn new(start: Elapsed, rate: f64) -> Self {
        Self {
            start,
            rate,
            made: 0,
        }
    }

    /// When the next one is due. It doesn't depend on when the others were sent or answered.
    #[must_use]
    pub fn due(&self) -> Elapsed {
        let after = (self.made as f64 * 1e6 / self.rate).round() as u64;
        Elapsed(self.start.0.saturating_add(after))
    }

    /// Goes on to the one after.
    pub fn advance(&mut self) {
        self.made += 1;
    }
}

/// 64 printable characters that differ from number to number; nothing in them needs escaping in JSON, XML or a shell.
#[must_use]
pub fn payload(seq: u64) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..8)
        .flat_map(|block: u64| {
            let bits = xxhash_rust::xxh3::xxh3_64_with_seed(&seq.to_le_bytes(), block);
            (0..8).map(move |i| char::from(ALPHABET[(bits >> (6 * i)) as usize & 63]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{PublicationKind, Seq};

    fn sent() -> Publication {
        Publication {
            seq: Seq(1),
            kind: PublicationKind::Expected,
            due: Elapsed::ZERO,
            first_sent: Elapsed::ZERO,
            sent: Elapsed::ZERO,
            answered: None,
            fate: Fate::Unknown,
            id: None,
            position: None,
            tries: 1,
            lost_answers: 0,
        }
    }

    fn after(answers: &[Answer], repeat: Repeat) -> (Fate, Next, Option<u64>) {
        let mut p = sent();
        let mut next = Next::Again;
        for (i, answer) in answers.iter().enumerate() {
            assert_eq!(next, Next::Again);
            let at = Elapsed(i as u64 + 1);
            next = note(&mut p, answer.clone(), at, repeat);
        }
        (p.fate, next, p.answered.map(|a| a.0))
    }

    #[test]
    fn what_one_answer_means() {
        use Answer::{Accepted, Declined, Lost, Status, Unsent};
        let cases = [
            (Accepted(Receipted::default()), Fate::Acked, Next::Done),
            (Unsent("refused".into()), Fate::Failed, Next::Again),
            (Declined, Fate::Failed, Next::Again),
            (Lost("reset".into()), Fate::Unknown, Next::Done),
            (Status(302), Fate::Unknown, Next::Done),
            (Status(400), Fate::Failed, Next::Done),
            (Status(404), Fate::Failed, Next::Done),
            (Status(408), Fate::Unknown, Next::Done),
            (Status(409), Fate::Unknown, Next::Done),
            (Status(425), Fate::Unknown, Next::Done),
            (Status(429), Fate::Unknown, Next::Done),
            (Status(499), Fate::Failed, Next::Done),
            (Status(500), Fate::Unknown, Next::Done),
            (Status(503), Fate::Unknown, Next::Done),
        ];
        for (answer, fate, next) in cases {
            let answered = (fate != Fate::Unknown).then_some(1);
            assert_eq!(
                after(std::slice::from_ref(&answer), Repeat::Never),
                (fate, next, answered),
                "{answer:?}"
            );
            // An idempotent server gets those again whose answer was lost, and no others.
            let next = if fate == Fate::Unknown {
                Next::Again
            } else {
                next
            };
            assert_eq!(
                after(std::slice::from_ref(&answer), Repeat::Idempotent).1,
                next,
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_no_after_a_lost_answer_decides_nothing() {
        let lost = Answer::Lost("reset".into());
        let unsent = Answer::Unsent("refused".into());
        let ok = Answer::Accepted(Receipted::default());
        let after = |answers: &[Answer]| after(answers, Repeat::Idempotent);
        assert_eq!(
            after(&[lost.clone(), Answer::Status(400)]),
            (Fate::Unknown, Next::Done, None)
        );
        assert_eq!(
            after(&[lost.clone(), unsent.clone()]),
            (Fate::Unknown, Next::Again, None)
        );
        assert_eq!(
            after(&[unsent.clone(), unsent]),
            (Fate::Failed, Next::Again, Some(2))
        );
        assert_eq!(after(&[lost, ok]), (Fate::Acked, Next::Done, Some(2)));
    }

    #[test]
    fn ids_are_kept_digit_for_digit() {
        let id = |body: &str| Receipted::read(body.as_bytes(), "/id", None).id;
        assert_eq!(
            id(r#"{"id":123456789012345678901234567890}"#).as_deref(),
            Some("123456789012345678901234567890")
        );
        assert_eq!(
            id(r#"{"id":9007199254740993}"#).as_deref(),
            Some("9007199254740993")
        );
        assert_eq!(id(r#"{"id":1.50}"#).as_deref(), Some("1.50"));
        assert_eq!(id(r#"{"id":"007"}"#).as_deref(), Some("007"));
        assert_eq!(id(r#"{"id":null}"#), None);
        assert_eq!(id("created"), None);
        let told = Receipted::read(br#"{"r":[{"o":"17"}],"at":8}"#, "/r/0/o", Some("/at"));
        assert_eq!((told.id.as_deref(), told.position), (Some("17"), Some(8)));
    }

    #[test]
    fn due_times_do_not_drift() {
        let mut schedule = Schedule::new(Elapsed(500), 3.0);
        let mut due = Vec::new();
        for _ in 0..7 {
            due.push(schedule.due().0);
            schedule.advance();
        }
        assert_eq!(
            due,
            [
                500, 333_833, 667_167, 1_000_500, 1_333_833, 1_667_167, 2_000_500
            ]
        );
    }

    #[test]
    fn payloads_are_plain_and_differ() {
        let all: std::collections::HashSet<String> = (0..1_000).map(payload).collect();
        assert_eq!(all.len(), 1_000);
        for text in &all {
            assert_eq!(text.len(), 64);
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            );
        }
        assert_eq!(payload(1), payload(1));
    }
}
