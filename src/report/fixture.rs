//! Histories and verdicts made by hand, for the tests of the reports: they show what a judge found, they don't judge.

use crate::check::staleness::StalenessFacts;
use crate::check::status::Statuses;
use crate::check::{
    AttemptFacts, Check, DeliveryFacts, Finding, GeneratorFacts, LagFacts, Offender, OutageFacts,
    Outcome, Percentiles, PublicationFacts, ReconnectFacts, ResumeFacts, ResumeOutcome, Return,
    SessionFacts, Verdict, WaveFacts, Wrong,
};
use crate::history::build::{Builder, SEQ_BASE, Story};
use crate::history::{AttemptOutcome, Cause, ClientId, Elapsed, End, Fate, History, Mark, Seq};

const CLIENTS: u32 = 200;
/// Everybody is dropped then.
const DROP: u64 = 6_200;
const READY: u64 = 7_240;
const END: u64 = 20_000;
/// Publications 1 to 3 are primings; the last is due at 18.3 s.
const LAST: u64 = 363;

/// A number in [0, 1) that looks random.
fn random(client: u32, n: u32) -> f64 {
    let mut z = u64::from(client) << 32 | u64::from(n);
    for _ in 0..3 {
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (z >> 11) as f64 / (1u64 << 53) as f64
}

fn due(n: u64) -> u64 {
    250 + n * 50
}

fn builder() -> Builder {
    let builder = Builder::new(CLIENTS)
        .header(|h| h.repeat = "herd run scenarios/default.toml --seed 1".into())
        .outage(1, DROP - 2, READY);
    (1..=LAST).fold(builder, |builder, n| {
        builder.publication(n, due(n), |p| {
            if n <= 3 {
                p.kind = crate::history::PublicationKind::Priming;
            }
            if due(n) + 1 >= DROP && due(n) < READY {
                p.answered = Some(Elapsed::from_millis(READY + 3));
                (p.tries, p.sent) = (2, Elapsed::from_millis(READY + 2));
            }
        })
    })
}

/// A client with full jitter that misses nothing; `skip` is an event that it doesn't get, `again` one that it gets twice.
fn faithful(k: u32, story: &mut Story<'_>, skip: u64, again: u64) {
    let live = |n: u64| due(n) + 2;
    let last = (1..=LAST).rfind(|n| live(*n) < DROP).unwrap_or(0);
    story.open(u64::from(k));
    for n in (1..=last).filter(|n| *n != skip) {
        story.got(live(n), n);
    }
    story.closed(DROP, Cause::Eof);
    let mut at = DROP + (random(k, 0) * 5_000.0) as u64;
    if at < READY {
        story.failed(at, AttemptOutcome::Refused);
        at = (READY + 1).max(at + (random(k, 1) * 10_000.0) as u64);
    }
    story.resume(at, last);
    for n in (last + 1..=LAST).filter(|n| *n != skip) {
        let arrives = live(n).max(at + 3);
        story.got(arrives, n);
        if n == again {
            story.got(arrives + 1, n);
        }
    }
    story.closed(END, Cause::Herd);
}

/// The facts of a history in which everybody drops once, in one wave, and comes back at once or never.
pub(super) fn verdict(history: &History, resume: ResumeOutcome) -> Verdict {
    let mut returns = Vec::new();
    let mut sessions = Vec::new();
    for client in &history.clients {
        let dropped = client.sessions.first().and_then(|s| s.dropped());
        if let Some(dropped) = dropped {
            returns.push(Return {
                outage: 1,
                wave: 1,
                client: client.id,
                dropped,
                session: (client.sessions.len() > 1).then_some(1),
                attempts: client.attempts.len() as u32 - 1,
            });
        }
        let facts = |n: usize| SessionFacts {
            outage: n as u32,
            wave: n as u32,
            flapped: false,
            resume: (n > 0).then_some(resume),
            caught_up: Some(client.sessions[n].opened + std::time::Duration::from_millis(2)),
        };
        sessions.push((0..client.sessions.len()).map(facts).collect());
    }
    let status = Statuses::new(history, &returns).survey().facts();
    Verdict {
        health: Vec::new(),
        deaths: Vec::new(),
        outcome: Outcome::Pass,
        status,
        staleness: staleness(history),
        dedupe: None,
        findings: findings(),
        outages: vec![outage(history, &returns, resume)],
        delivery: delivery(history),
        publications: PublicationFacts {
            sent: history.publications.len() as u64,
            acked: history.publications.len() as u64,
            ..PublicationFacts::default()
        },
        generator: GeneratorFacts {
            lag_ms: LagFacts {
                p50: 0.06,
                p99: 1.2,
                max: 3.4,
            },
            cpu_s: 1.84,
            rss_peak_bytes: 61_000_000,
        },
        bystanders: Vec::new(),
        offenders: Vec::new(),
        returns,
        sessions,
    }
}

fn staleness(history: &History) -> StalenessFacts {
    let percentiles = Percentiles {
        p50: 3_106.0,
        p90: 6_222.0,
        p99: 9_420.0,
        max: 9_913.0,
    };
    StalenessFacts {
        clients: history.header.clients,
        longest_ms: Some(percentiles.clone()),
        total_ms: Some(percentiles),
        at_end: 0,
    }
}

fn delivery(history: &History) -> DeliveryFacts {
    let expected = u64::from(history.header.clients) * (LAST - 3);
    DeliveryFacts {
        expected,
        delivered: expected,
        ..DeliveryFacts::default()
    }
}

fn outage(history: &History, returns: &[Return], resume: ResumeOutcome) -> OutageFacts {
    let back: Vec<_> = returns
        .iter()
        .filter_map(|r| {
            let client = &history.clients[r.client.0 as usize - 1];
            client.sessions.get(r.session?)
        })
        .collect();
    let opened: Vec<_> = back.iter().map(|s| s.opened.millis()).collect();
    let dialled: Vec<_> = back.iter().map(|s| s.dialled.millis()).collect();
    let least = |v: &[f64]| v.iter().copied().reduce(f64::min);
    let most = |v: &[f64]| v.iter().copied().reduce(f64::max);
    let span = |v: &[f64]| Some(most(v)? - least(v)?);
    let all: u64 = returns.iter().map(|r| u64::from(r.attempts)).sum();
    let drop = returns.first().map(|r| r.dropped.millis());
    let (dropped, reconnected) = (returns.len() as u32, back.len() as u32);
    OutageFacts {
        outage: 1,
        trigger: "child".into(),
        trigger_ms: Some((DROP - 2) as f64),
        first_drop_ms: drop,
        last_drop_ms: drop,
        ready_ms: Some(READY as f64),
        dropped,
        reconnected,
        gave_up: 0,
        flapped: 0,
        reconnect: ReconnectFacts {
            first_ms: least(&opened),
            last_ms: most(&opened),
            span_ms: span(&opened),
            dialled_span_ms: span(&dialled),
            p5_p95_ms: span(&opened).map(|s| s * 0.8),
            peak_100ms: 9,
            peak_1s: 47,
        },
        attempts: AttemptFacts {
            total: all,
            opened: u64::from(reconnected),
            refused: all - u64::from(reconnected),
            peak_1s: 47,
            ..AttemptFacts::default()
        },
        resumes: resumes(u64::from(reconnected), resume),
        causes: [("eof".into(), u64::from(dropped))].into(),
        statuses: [("refused".into(), all - u64::from(reconnected))].into(),
        recovery_ms: Some(Percentiles {
            p50: 3_104.0,
            p90: 6_220.0,
            p99: 9_418.0,
            max: 9_911.0,
        }),
        exposed_clients: dropped,
        waves: vec![WaveFacts {
            wave: 1,
            dropped,
            reconnected,
            span_ms: span(&opened),
            dialled_span_ms: span(&dialled),
            peak_1s: 47,
        }],
        refresh: None,
        reload: None,
    }
}

fn resumes(n: u64, outcome: ResumeOutcome) -> ResumeFacts {
    let mut facts = ResumeFacts::default();
    *match outcome {
        ResumeOutcome::Resumed => &mut facts.resumed,
        ResumeOutcome::Reset => &mut facts.reset,
        ResumeOutcome::MissedReset => &mut facts.missed_reset,
        ResumeOutcome::Refused => &mut facts.refused,
        ResumeOutcome::NeverResumed => &mut facts.never_resumed,
    } = n;
    facts
}

fn findings() -> Vec<Finding> {
    let told = [
        ("9.37 s opened, 9.37 s dialled", "at least 5 s"),
        ("24 % in 1 s", "at most 75 % in 1 s"),
        ("200 of 200, the last after 10.4 s", "within 34.1 s"),
        ("0 late, 0 lost, 0 duplicated", "0"),
        ("0 reordered", "0"),
        ("0 clients", "0"),
        ("0 waves", "0"),
        ("p99 9.42 s", "none"),
        ("p99 9.42 s, longest 9.91 s", "reported"),
        ("lag p99 1.20 ms", "lag p99 50 ms"),
    ];
    // None of its outages was for a part of the clients.
    Check::ALL
        .into_iter()
        .filter(|check| *check != Check::Bystanders)
        .zip(told)
        .map(|(check, (measured, limit))| Finding {
            check,
            outage: match check {
                Check::ReconnectSpread | Check::Peak | Check::AllReconnected | Check::Recovery => {
                    Some(1)
                }
                _ => None,
            },
            outcome: Outcome::Pass,
            measured: measured.into(),
            limit: limit.into(),
            why: String::new(),
        })
        .collect()
}

/// Sets one finding, and the verdict's outcome to the worst.
pub(super) fn find(
    verdict: &mut Verdict,
    check: Check,
    outcome: Outcome,
    measured: &str,
    why: &str,
) {
    for finding in verdict.findings.iter_mut().filter(|f| f.check == check) {
        finding.outcome = outcome;
        finding.measured = measured.into();
        finding.why = why.into();
    }
    verdict.outcome = verdict.outcome.max(outcome);
}

/// Everybody comes back spread out and gets everything once.
pub(super) fn pass() -> (History, Verdict) {
    let history = builder().each(|k, story| faithful(k, story, 0, 0)).end(END);
    let verdict = verdict(&history, ResumeOutcome::Resumed);
    (history, verdict)
}

/// One client loses an event that was published while it was away, one gets an event twice, both on resume.
pub(super) fn fail() -> (History, Verdict) {
    let history = builder()
        .each(|k, story| match k {
            17 => faithful(k, story, 130, 0),
            42 => faithful(k, story, 0, 120),
            _ => faithful(k, story, 0, 0),
        })
        .mark(
            21_000,
            Mark::Note {
                text: "the server wrote \u{1b}[31mred\u{1b}[0m text".into(),
            },
        )
        .end(END);
    let mut verdict = verdict(&history, ResumeOutcome::Resumed);
    verdict.delivery.delivered -= 1;
    verdict.delivery.lost = 1;
    verdict.delivery.duplicated = 1;
    let twice = history.clients[41].sessions[1].opened + std::time::Duration::from_millis(3);
    let offender = |wrong, client, n: u64, at| Offender {
        wrong,
        client: ClientId(client),
        seq: Some(Seq(SEQ_BASE + n)),
        id: Some(n.to_string()),
        at,
    };
    verdict.offenders = vec![
        offender(Wrong::Lost, 17, 130, None),
        offender(Wrong::Duplicated, 42, 120, Some(twice)),
    ];
    let why = "both came with a resume: replay and live events overlap at one end and leave a gap at the other";
    let measured = "0 late, 1 lost, 1 duplicated";
    find(
        &mut verdict,
        Check::ExactlyOnce,
        Outcome::Fail,
        measured,
        why,
    );
    (history, verdict)
}

/// Ten clients are too few to tell.
pub(super) fn unknown() -> (History, Verdict) {
    let (history, mut verdict) = pass();
    find(
        &mut verdict,
        Check::ReconnectSpread,
        Outcome::Unknown,
        "4.61 s opened, 4.60 s dialled",
        "chance alone would do this in 38 % of runs with 10 clients; 40 clients, or a limit of 3.1 s, would decide",
    );
    find(
        &mut verdict,
        Check::ExactlyOnce,
        Outcome::Unknown,
        "0 late, 0 lost, 0 duplicated",
        "resume not exercised: 31 of 200 returning clients had a publication answered while they were away; a longer --down or a higher --rate would decide",
    );
    (history, verdict)
}

/// Nobody was primed: frames came that could not be read.
pub(super) fn unprimed() -> (History, Verdict) {
    let mut history = Builder::new(3)
        .publication(1, 300, |p| p.fate = Fate::Acked)
        .each(|k, story| {
            story.open(u64::from(k));
        })
        .mark(30_000, Mark::End(End::NotPrimed { primed: 0 }))
        .cut(30_000);
    for client in &mut history.clients {
        let text = "{\"event\":\"\u{1b}]0;pwned\u{7}\",\"data\":\"\u{202e}txt\"}";
        client.unread.push((Elapsed::from_millis(400), text.into()));
    }
    let mut verdict = verdict(&history, ResumeOutcome::Resumed);
    verdict.outages.clear();
    verdict.delivery = DeliveryFacts::default();
    for finding in &mut verdict.findings {
        finding.outcome = Outcome::Unknown;
        finding.measured = "nothing".into();
    }
    verdict.outcome = Outcome::Unknown;
    (history, verdict)
}
