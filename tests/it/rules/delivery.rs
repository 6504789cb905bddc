//! Rules 9 to 20: what became of every (client, publication) pair.
//!
//! The base is one run in which everything is right: two clients, ten events, the server away between 1,005 and 2,000 ms,
//! events 4 to 6 answered meanwhile. Each test changes what its rule is about and nothing else.

mod epochs;
mod faithful;
mod newcomer;
mod observed;
mod ordered;
mod redelivered;
mod refused;
mod rule_10;
mod rule_11;
mod rule_12;
mod rule_13;
mod rule_14;
mod rule_15;
mod rule_16;
mod rule_17;
mod rule_18;
mod rule_9;
mod unread;

use herd::check::delivery::{Assessment, assess};
use herd::check::timeline::Timeline;
use herd::check::{Check, DeliveryFacts, Finding, Outcome, ResumeOutcome, Wrong};
use herd::history::build::{Builder, SEQ_BASE, Story};
use herd::history::{
    AttemptOutcome, Cause, ClientId, DeliveryMode, Elapsed, End, Event, Fate, History, IdKind,
    Mark, Publication, PublicationKind, Quit, Seq, Shard, TriggerKind,
};

fn judged(history: &History) -> Assessment {
    let assessment = assess(history, &Timeline::new(history));
    let facts = &assessment.facts;
    assert_eq!(
        facts.expected,
        facts.delivered + facts.late + facts.lost + facts.reset + facts.absent,
        "pairs add up"
    );
    assert_eq!(
        assessment
            .findings
            .iter()
            .map(|f| f.check)
            .collect::<Vec<_>>(),
        [Check::ExactlyOnce, Check::Order, Check::Resets]
    );
    assessment
}

fn finding(assessment: &Assessment, check: Check) -> &Finding {
    assessment
        .findings
        .iter()
        .find(|f| f.check == check)
        .expect("each check has its finding")
}

/// The outcomes of exactly-once, order and resets.
fn outcomes(assessment: &Assessment) -> [Outcome; 3] {
    [Check::ExactlyOnce, Check::Order, Check::Resets].map(|c| finding(assessment, c).outcome)
}

fn why(assessment: &Assessment) -> &str {
    &finding(assessment, Check::ExactlyOnce).why
}

const PASS: [Outcome; 3] = [Outcome::Pass; 3];
const LOSES: [Outcome; 3] = [Outcome::Fail, Outcome::Pass, Outcome::Pass];
const UNSURE: [Outcome; 3] = [Outcome::Unknown, Outcome::Pass, Outcome::Pass];

fn ms(ms: u64) -> Elapsed {
    Elapsed::from_millis(ms)
}

/// The events of the base: three before the outage, three while everybody is away, four after it.
fn published(builder: Builder) -> Builder {
    builder
        .outage(1, 1_000, 2_000)
        .acked_every(1..=3, 100, 100)
        .acked_every(4..=6, 1_100, 100)
        .acked_every(7..=10, 5_000, 100)
}

/// Up to the loss of the connection.
fn before(s: &mut Story<'_>) {
    s.open(10).got_every(102, 100, 1..=3).dropped(1_005);
}

/// From the return on.
fn after(s: &mut Story<'_>) {
    s.resume(3_000, 3)
        .got_all(3_010, 4..=6)
        .got_every(5_002, 100, 7..=10);
}

fn right(s: &mut Story<'_>) {
    before(s);
    after(s);
}

/// Client 1 has this story, client 2 none but the right one.
fn one(story: impl FnOnce(&mut Story<'_>)) -> Builder {
    published(Builder::new(2)).client(1, story).client(2, right)
}

const END: u64 = 60_000;

#[test]
fn the_base_passes() {
    let a = judged(&one(right).end(END));
    assert_eq!(outcomes(&a), PASS);
    assert_eq!(
        a.facts,
        DeliveryFacts {
            expected: 20,
            delivered: 20,
            ..DeliveryFacts::default()
        }
    );
    assert_eq!(a.exposed, [2]);
    assert_eq!(a.resumes, [[None, Some(ResumeOutcome::Resumed)]; 2]);
    assert_eq!(a.caught_up, [[Some(ms(11)), Some(ms(3_010))]; 2]);
    assert_eq!(
        finding(&a, Check::ExactlyOnce).measured,
        "0 of 20 pairs wrong"
    );
    assert!(a.offenders.is_empty());
}
