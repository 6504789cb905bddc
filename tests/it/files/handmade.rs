//! A run that was made by hand, so that every number of its files is known beforehand.

use herd::check::staleness::StalenessFacts;
use herd::check::status::StatusFacts;
use herd::check::{
    AttemptFacts, DeliveryFacts, GeneratorFacts, Offender, OutageFacts, Outcome, PublicationFacts,
    ReconnectFacts, ResumeFacts, ResumeOutcome, Return, SessionFacts, Verdict, Wrong,
};
use herd::history::build::{Builder, SEQ_BASE};
use herd::history::{AttemptOutcome, Cause, ClientId, Elapsed, History, PublicationKind, Seq};

/// Three clients, ten events, one restart at 1 s. Client 1 gets everything, at its second try; 2 loses event 6 and gets
/// 5 twice; 3 flaps, then gets 8 before 7.
pub(super) fn history() -> History {
    Builder::new(3)
        .outage(1, 1_000, 2_000)
        .publication(1, 100, |p| p.kind = PublicationKind::Priming)
        .acked_every(2..=5, 200, 100)
        .acked_every(6..=10, 2_050, 100)
        .client(1, |c| {
            c.open(10).got_every(101, 100, 1..=5).dropped(1_001);
            c.failed(1_500, AttemptOutcome::Refused);
            c.resume(2_000, 5).got_every(2_052, 100, 6..=10);
            c.closed(9_000, Cause::Herd);
        })
        .client(2, |c| {
            c.open(20).got_every(101, 100, 1..=5).dropped(1_002);
            c.resume(2_100, 5)
                .got(2_102, 5)
                .got_every(2_152, 100, 7..=10);
            c.closed(9_000, Cause::Herd);
        })
        .client(3, |c| {
            c.open(30).got_every(101, 100, 1..=5).dropped(1_003);
            c.resume(2_010, 5).dropped(2_012);
            c.opened(2_200, 2_201, 2_260, Some(5));
            c.got(2_262, 6).got(2_263, 8).got(2_264, 7);
            c.got_every(2_362, 100, 9..=10).closed(9_000, Cause::Herd);
        })
        .end(9_000)
}

/// What a judge would say of it, as far as the files are concerned.
pub(super) fn verdict() -> Verdict {
    let facts = |outage, flapped| SessionFacts {
        outage,
        wave: outage,
        flapped,
        resume: (outage > 0).then_some(ResumeOutcome::Resumed),
        caught_up: None,
    };
    let twice = vec![facts(0, false), facts(1, false)];
    let absence = |client, session, attempts| Return {
        outage: 1,
        wave: 1,
        client: ClientId(client),
        dropped: Elapsed::from_millis(1_000 + u64::from(client)),
        session: Some(session),
        attempts,
    };
    let outage = OutageFacts {
        outage: 1,
        trigger: "child".into(),
        trigger_ms: Some(1_000.0),
        first_drop_ms: Some(1_001.0),
        last_drop_ms: Some(1_003.0),
        ready_ms: Some(2_000.0),
        dropped: 3,
        reconnected: 3,
        gave_up: 0,
        flapped: 1,
        reconnect: ReconnectFacts {
            first_ms: Some(2_001.0),
            last_ms: Some(2_260.0),
            span_ms: Some(259.0),
            dialled_span_ms: Some(201.0),
            p5_p95_ms: None,
            peak_100ms: 1,
            peak_1s: 3,
        },
        attempts: AttemptFacts {
            total: 5,
            opened: 3,
            refused: 1,
            flapped: 1,
            peak_1s: 4,
            ..AttemptFacts::default()
        },
        resumes: ResumeFacts {
            resumed: 4,
            ..ResumeFacts::default()
        },
        causes: [("eof".into(), 4)].into(),
        statuses: [("refused".into(), 1)].into(),
        recovery_ms: None,
        exposed_clients: 0,
        waves: Vec::new(),
        refresh: None,
        reload: None,
    };
    Verdict {
        health: Vec::new(),
        deaths: Vec::new(),
        outcome: Outcome::Fail,
        findings: Vec::new(),
        outages: vec![outage],
        delivery: DeliveryFacts {
            expected: 27,
            delivered: 26,
            lost: 1,
            duplicated: 1,
            reordered: 1,
            ..DeliveryFacts::default()
        },
        publications: PublicationFacts {
            sent: 10,
            acked: 10,
            ..PublicationFacts::default()
        },
        generator: GeneratorFacts::default(),
        status: StatusFacts::default(),
        staleness: StalenessFacts::default(),
        dedupe: None,
        bystanders: Vec::new(),
        offenders: vec![Offender {
            wrong: Wrong::Lost,
            client: ClientId(2),
            seq: Some(Seq(SEQ_BASE + 6)),
            id: Some("6".into()),
            at: None,
        }],
        returns: vec![absence(1, 1, 2), absence(2, 1, 1), absence(3, 2, 2)],
        sessions: vec![
            twice.clone(),
            twice,
            vec![facts(0, false), facts(1, true), facts(1, false)],
        ],
    }
}
