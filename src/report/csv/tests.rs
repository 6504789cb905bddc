use super::*;
use crate::check::{ResumeOutcome, Return, SessionFacts};
use crate::history::Event;
use crate::history::build::Builder;
use crate::report::fixture;

fn case() -> (History, crate::check::Verdict) {
    let close = Cause::Close {
        code: Some(1012),
        reason: "restart".into(),
    };
    let handshake = AttemptOutcome::Handshake {
        status: Some(503),
        why: "".into(),
    };
    let history = Builder::new(2)
        .outage(1, 1_000, 2_000)
        .acked(1, 500)
        .publication(2, 1_500, |p| {
            p.fate = Fate::Unknown;
            (p.answered, p.id) = (None, None);
        })
        .client(1, |c| {
            c.open(10).got(502, 1).closed(1_000, close);
            c.failed(1_100, AttemptOutcome::Refused);
            c.failed(1_900, handshake).open(2_100).dropped(2_102);
            c.opened(2_200, 2_201, 2_203, Some(1));
            c.got_event(
                2_300,
                Event {
                    id: Some("=1+1,\"x\"\n".into()),
                    seq: None,
                    digest: 0,
                    ..Event::default()
                },
            );
        })
        .client(2, |c| {
            c.open(20).dropped(1_001);
            c.failed(1_200, AttemptOutcome::Local("no port".into()));
        })
        .end(9_000);
    let facts = |outage, flapped| SessionFacts {
        outage,
        wave: outage,
        flapped,
        resume: None,
        caught_up: None,
    };
    let mut verdict = fixture::verdict(&history, ResumeOutcome::Resumed);
    let back = SessionFacts {
        resume: Some(ResumeOutcome::Resumed),
        caught_up: Some(Elapsed(2_300_000)),
        ..facts(1, false)
    };
    verdict.sessions = vec![
        vec![facts(0, false), facts(1, true), back],
        vec![facts(0, false)],
    ];
    let absence = |client, dropped, session, attempts| Return {
        outage: 1,
        wave: 1,
        client: ClientId(client),
        dropped: Elapsed(dropped),
        session,
        attempts,
    };
    verdict.returns = vec![
        absence(1, 1_000_000, Some(2), 4),
        absence(2, 1_001_000, None, 1),
    ];
    (history, verdict)
}

fn written(name: &str) -> String {
    let (history, verdict) = case();
    let summary = super::super::Summary::new(&history, &verdict, crate::error::Exit::Pass);
    let input = Input {
        history: &history,
        verdict: &verdict,
        summary: &summary,
    };
    let (_, render) = FILES.iter().find(|(file, _)| *file == name).unwrap();
    let mut out = Vec::new();
    render(&mut out, &input).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn attempts_stand_in_the_absence_that_they_ended_or_not() {
    insta::assert_snapshot!(written("attempts.csv"), @r##"
outage,wave,client,attempt,due_us,dialled_us,ended_us,outcome,target
0,0,1,1,10000,10000,11000,opened,1
1,1,1,1,1100000,1100000,1101000,refused,1
1,1,1,2,1900000,1900000,1901000,handshake,1
1,1,1,3,2100000,2100000,2101000,flapped,1
1,1,1,4,2200000,2201000,2203000,opened,1
0,0,2,1,20000,20000,21000,opened,1
1,1,2,1,1200000,1200000,1201000,local,1
"##);
}

#[test]
fn sessions_tell_cause_and_resume() {
    insta::assert_snapshot!(written("sessions.csv"), @r##"
client,session,outage,wave,opened_us,ended_us,cause,close_code,resumed_from,resume_outcome,caught_up_us,target,caught_up_by
1,1,0,0,11000,1000000,close,1012,,,,1,
1,2,1,1,2101000,2102000,eof,,,,,1,
1,3,1,1,2203000,,,,1,resumed,2300000,1,inferred
2,1,0,0,21000,1001000,eof,,,,,1,
"##);
}

#[test]
fn a_client_that_never_came_back_has_a_row_too() {
    insta::assert_snapshot!(written("reconnects.csv"), @r##"
outage,wave,client,dropped_us,reconnected_us,attempts,resumed_from,caught_up_us
1,1,1,1000000,2203000,4,1,2300000
1,1,2,1001000,,1,,
"##);
}

#[test]
fn ids_are_quoted_and_otherwise_as_sent() {
    insta::assert_snapshot!(written("receipts.csv"), @r##"
client,session,at_us,id,seq
1,1,502000,1,7340033
1,3,2300000,"=1+1,""x""
",
"##);
}

#[test]
fn publications_without_an_answer_leave_it_empty() {
    insta::assert_snapshot!(written("publications.csv"), @r##"
seq,kind,due_us,sent_us,answered_us,outcome,id
7340033,expected,500000,500000,501000,acked,1
7340034,expected,1500000,1500000,,unknown,
"##);
}
