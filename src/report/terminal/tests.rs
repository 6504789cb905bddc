//! The page as it is read: three snapshots, and what must hold of every page.

use super::*;
use crate::check::{Check, Verdict};
use crate::error::Exit;
use crate::history::Cause;
use crate::report::{Summary, fixture};

fn shown((history, verdict): &(History, Verdict), exit: Exit, colour: Colour) -> String {
    let input = Input {
        history,
        verdict,
        summary: &Summary::new(history, verdict, exit),
    };
    let names = ["history.herd", "summary.json", "attempts.csv"];
    let files = names.map(|name| Path::new("reports/1200-default").join(name));
    render(&input, &files, colour)
}

fn plain(case: &(History, Verdict), exit: Exit) -> String {
    shown(case, exit, Colour::Never)
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(plain(&fixture::pass(), Exit::Pass), @"PASS");
}

#[test]
fn a_fail_with_offenders() {
    insta::assert_snapshot!(plain(&fixture::fail(), Exit::Fail), @"FAIL");
}

/// What would decide stands under each check that could not be judged.
#[test]
fn an_unknown() {
    insta::assert_snapshot!(plain(&fixture::unknown(), Exit::Unknown), @"UNKNOWN");
}

#[test]
fn whoever_was_not_primed_shows_its_unread_frames() {
    let text = plain(&fixture::unprimed(), Exit::Unknown);
    assert!(text.contains("0 of 3 clients received a priming event; nothing was restarted"));
    assert!(text.contains(r#"{"event":"\u{1b}]0;pwned\u{7}","data":"\u{202e}txt"}"#));
}

#[test]
fn colours_change_nothing_but_the_colour() {
    let case = fixture::fail();
    let coloured = shown(&case, Exit::Fail, Colour::Always);
    assert!(coloured.contains("\u{1b}[31m  fail"));
    let mut rest = String::new();
    for part in coloured.split('\u{1b}') {
        match part.strip_prefix('[').and_then(|p| p.split_once('m')) {
            Some((_, text)) => rest.push_str(text),
            None => rest.push_str(part),
        }
    }
    let trimmed: Vec<_> = rest.lines().map(str::trim_end).collect();
    assert_eq!(trimmed.join("\n"), plain(&case, Exit::Fail).trim_end());
}

/// Whatever is not herd's own text may hold anything.
#[test]
fn hostile_text_neither_acts_nor_breaks_the_page() {
    let evil = "\u{1b}[2J\r\n\u{202e}東京\u{0}".repeat(40);
    let (mut history, mut verdict) = fixture::fail();
    let header = &mut history.header;
    header.terms.policy_name = evil.clone();
    header.terms.profile = evil.clone();
    header.terms.target = evil.clone();
    for event in &mut history.events {
        event.id = Some(evil.clone().into());
    }
    for client in &mut history.clients {
        let (at, _) = client.sessions[0].closed.clone().unwrap();
        let close = Cause::Close {
            code: Some(4_000),
            reason: evil.clone().into(),
        };
        client.sessions[0].closed = Some((at, close));
        client.unread.push((at, evil.clone().into()));
        client.attempts[0].outcome = AttemptOutcome::Handshake {
            status: None,
            why: evil.clone().into(),
        };
    }
    for mark in [
        Mark::Note {
            text: evil.clone().into(),
        },
        Mark::Died {
            status: evil.clone().into(),
        },
    ] {
        history.marks.push((history.horizon, mark));
    }
    for finding in &mut verdict.findings {
        (finding.measured, finding.limit) = (evil.clone(), evil.clone());
        finding.why = evil.clone();
    }
    for offender in &mut verdict.offenders {
        offender.id = Some(evil.clone());
    }
    verdict.outages[0].trigger = evil.clone();
    let text = plain(&(history, verdict), Exit::Fail);
    for line in text.lines() {
        assert!(!line.chars().any(char::is_control) && !line.contains('\u{202e}'));
        assert!(width(line) <= COLUMNS, "{line}");
    }
}

#[test]
fn an_end_that_is_no_verdict_is_named_first() {
    let (mut history, verdict) = fixture::pass();
    let last = history.marks.len() - 1;
    history.marks[last].1 = Mark::End(End::Broken {
        why: "the restart command failed: exit status 7".into(),
    });
    let text = plain(&(history, verdict), Exit::Broken);
    assert!(text.starts_with("\n  BROKEN     the restart command failed: exit status 7\n"));
}

#[test]
fn many_outages_share_one_chart_and_passes_are_counted() {
    let (history, mut verdict) = fixture::pass();
    verdict.outages = (1..=4)
        .map(|n| OutageFacts {
            outage: n,
            first_drop_ms: Some(f64::from(n) * 4_000.0),
            ..verdict.outages[0].clone()
        })
        .collect();
    verdict.findings = (1..=4)
        .flat_map(|n| {
            verdict.findings.iter().map(move |f| Finding {
                outage: Some(n),
                ..f.clone()
            })
        })
        .collect();
    fixture::find(&mut verdict, Check::Peak, Outcome::Fail, "96 % in 1 s", "");
    let text = plain(&(history, verdict), Exit::Fail);
    assert!(text.contains("▼ 1"), "{text}");
    assert!(text.contains("▼ 4"), "{text}");
    assert_eq!(text.matches("  opened ").count(), 1);
    assert!(text.contains("  fail       peak 4 "), "{text}");
    assert!(text.contains("and 32 passed"), "{text}");
}
