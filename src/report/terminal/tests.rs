//! The page as it is read: three snapshots, and what must hold of every page.

use super::*;
use crate::check::{Check, Verdict, Wrong};
use crate::error::Exit;
use crate::history::{AttemptOutcome, Cause, ClientId, Mark};
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
    insta::assert_snapshot!(plain(&fixture::pass(), Exit::Pass), @r##"

    PASS       all 10 checks passed
               200 clients, 1 outage, 363 publications; backoff full-jitter,
               profile after, target embedded, seed 1

    Outage 1   child at 6.20 s, ready 1.04 s later, 200 dropped, 200 reconnected
               spread 8.79 s (dialled 8.79 s), 90 % in 7.03 s, at most 47 in 1 s
               244 dials: 200 opened, 44 refused

                         ▼ ready
    opened      16 │                   █
                   │     ▂ █▂█  ▂▆▆  ▆ █▆▆▂
                   │     █▄███▄▆██████▄████ █
                   │     ████████████████████▂▂   ▂▄▄ ▂      ▂▂▂▂▂▂▂ ▂
    failed      16 │█▄  ▁
                   │██▃▃█▁
    clients    200 │··················································██████████
                   │····················████████████████████████████████████████
                   │··············██████████████████████████████████████████████
                   │········████████████████████████████████████████████████████
                   └┴─────────┴─────────┴─────────┴─────────┴─────────┴─────────
    each bar 0.2 s  0         2 s       4 s       6 s       8 s       10 s
                    █ connected   · away

    outcome    check             measured                      limit
    pass       reconnect-spread  9.37 s opened, 9.37 s         at least 5 s
                                 dialled
    pass       peak              24 % in 1 s                   at most 75 % in 1 s
    pass       all-reconnected   200 of 200, the last after    within 34.1 s
                                 10.4 s
    pass       exactly-once      0 late, 0 lost, 0 duplicated  0
    pass       order             0 reordered                   0
    pass       resets            0 clients                     0
    pass       relapse           0 waves                       0
    pass       recovery          p99 9.42 s                    none
    pass       staleness         p99 9.42 s, longest 9.91 s    reported
    pass       generator         lag p99 1.20 ms               lag p99 50 ms

    Delivery   72,000 expected: 72,000 delivered, 0 late, 0 lost
               0 duplicated, 0 reordered, 0 unexpected, 0 conflict
    Published  363 sent: 363 acked, 0 failed, 0 unknown
    Recovery   p50 3.10 s, p90 6.22 s, p99 9.42 s, max 9.91 s, drop to caught up
    Status     connected 82.6 %, disconnected 16.8 %, reconnecting under 0.1 %,
               connecting at first 0.5 % of the time; fewest connected: 0 of 200,
               at 6.20 s
    Stale      p50 3.11 s, p90 6.22 s, p99 9.42 s, max 9.91 s, each client's
               longest; in all p99 9.42 s
    Resumes    200 resumed
    Drops      eof x 200
    Refusals   refused x 44
    herd's lag p50 0.06 ms, p99 1.20 ms, max 3.40 ms; 1.8 s CPU, 61 MB at most

    Files      reports/1200-default/
               history.herd summary.json attempts.csv
    Again      herd run scenarios/default.toml --seed 1
    "##);
}

#[test]
fn a_fail_with_offenders() {
    insta::assert_snapshot!(plain(&fixture::fail(), Exit::Fail), @r##"

    FAIL       exactly-once: 0 late, 1 lost, 1 duplicated
               200 clients, 1 outage, 363 publications; backoff full-jitter,
               profile after, target embedded, seed 1

    Outage 1   child at 6.20 s, ready 1.04 s later, 200 dropped, 200 reconnected
               spread 8.79 s (dialled 8.79 s), 90 % in 7.03 s, at most 47 in 1 s
               244 dials: 200 opened, 44 refused

                         ▼ ready
    opened      16 │                   █
                   │     ▂ █▂█  ▂▆▆  ▆ █▆▆▂
                   │     █▄███▄▆██████▄████ █
                   │     ████████████████████▂▂   ▂▄▄ ▂      ▂▂▂▂▂▂▂ ▂
    failed      16 │█▄  ▁
                   │██▃▃█▁
    clients    200 │··················································██████████
                   │····················████████████████████████████████████████
                   │··············██████████████████████████████████████████████
                   │········████████████████████████████████████████████████████
                   └┴─────────┴─────────┴─────────┴─────────┴─────────┴─────────
    each bar 0.2 s  0         2 s       4 s       6 s       8 s       10 s
                    █ connected   · away

    outcome    check             measured                      limit
    pass       reconnect-spread  9.37 s opened, 9.37 s         at least 5 s
                                 dialled
    pass       peak              24 % in 1 s                   at most 75 % in 1 s
    pass       all-reconnected   200 of 200, the last after    within 34.1 s
                                 10.4 s
    fail       exactly-once      0 late, 1 lost, 1 duplicated  0
                 both came with a resume: replay and live events overlap at one
                 end and leave a gap at the other
    pass       order             0 reordered                   0
    pass       resets            0 clients                     0
    pass       relapse           0 waves                       0
    pass       recovery          p99 9.42 s                    none
    pass       staleness         p99 9.42 s, longest 9.91 s    reported
    pass       generator         lag p99 1.20 ms               lag p99 50 ms

    Delivery   72,000 expected: 71,999 delivered, 0 late, 1 lost
               1 duplicated, 0 reordered, 0 unexpected, 0 conflict
    Published  363 sent: 363 acked, 0 failed, 0 unknown
    Recovery   p50 3.10 s, p90 6.22 s, p99 9.42 s, max 9.91 s, drop to caught up
    Status     connected 82.6 %, disconnected 16.8 %, reconnecting under 0.1 %,
               connecting at first 0.5 % of the time; fewest connected: 0 of 200,
               at 6.20 s
    Stale      p50 3.11 s, p90 6.22 s, p99 9.42 s, max 9.91 s, each client's
               longest; in all p99 9.42 s
    Resumes    200 resumed
    Drops      eof x 200
    Refusals   refused x 44
    herd's lag p50 0.06 ms, p99 1.20 ms, max 3.40 ms; 1.8 s CPU, 61 MB at most
    Note       the server wrote \u{1b}[31mred\u{1b}[0m text

    Offending pairs
     1  lost       client 17, event 130 (id 130)
        first published at 6.750 s, acked at 7.243 s with try 2
        the client was away then: eof at 6.200 s, back at 10.760 s in session 2,
        resumed from id 118
        it never arrived
     2  duplicated client 42, event 120 (id 120)
        first published at 6.250 s, acked at 7.243 s with try 2
        the client was away then: eof at 6.200 s, back at 10.273 s in session 2,
        resumed from id 118
        arrived at 10.275 s in session 2, resumed from id 118
        arrived at 10.276 s in session 2, resumed from id 118, this one

    Files      reports/1200-default/
               history.herd summary.json attempts.csv
    Again      herd run scenarios/default.toml --seed 1
    "##);
}

/// What would decide stands under each check that could not be judged.
#[test]
fn an_unknown() {
    insta::assert_snapshot!(plain(&fixture::unknown(), Exit::Unknown), @r##"

    UNKNOWN    reconnect-spread: chance alone would do this in 38 % of runs with
               10 clients
               exactly-once: resume not exercised: 31 of 200 returning clients had
               a publication answered while they were away
               200 clients, 1 outage, 363 publications; backoff full-jitter,
               profile after, target embedded, seed 1

    Outage 1   child at 6.20 s, ready 1.04 s later, 200 dropped, 200 reconnected
               spread 8.79 s (dialled 8.79 s), 90 % in 7.03 s, at most 47 in 1 s
               244 dials: 200 opened, 44 refused

                         ▼ ready
    opened      16 │                   █
                   │     ▂ █▂█  ▂▆▆  ▆ █▆▆▂
                   │     █▄███▄▆██████▄████ █
                   │     ████████████████████▂▂   ▂▄▄ ▂      ▂▂▂▂▂▂▂ ▂
    failed      16 │█▄  ▁
                   │██▃▃█▁
    clients    200 │··················································██████████
                   │····················████████████████████████████████████████
                   │··············██████████████████████████████████████████████
                   │········████████████████████████████████████████████████████
                   └┴─────────┴─────────┴─────────┴─────────┴─────────┴─────────
    each bar 0.2 s  0         2 s       4 s       6 s       8 s       10 s
                    █ connected   · away

    outcome    check             measured                      limit
    unknown    reconnect-spread  4.61 s opened, 4.60 s         at least 5 s
                                 dialled
                 chance alone would do this in 38 % of runs with 10 clients; 40
                 clients, or a limit of 3.1 s, would decide
    pass       peak              24 % in 1 s                   at most 75 % in 1 s
    pass       all-reconnected   200 of 200, the last after    within 34.1 s
                                 10.4 s
    unknown    exactly-once      0 late, 0 lost, 0 duplicated  0
                 resume not exercised: 31 of 200 returning clients had a
                 publication answered while they were away; a longer --down or a
                 higher --rate would decide
    pass       order             0 reordered                   0
    pass       resets            0 clients                     0
    pass       relapse           0 waves                       0
    pass       recovery          p99 9.42 s                    none
    pass       staleness         p99 9.42 s, longest 9.91 s    reported
    pass       generator         lag p99 1.20 ms               lag p99 50 ms

    Delivery   72,000 expected: 72,000 delivered, 0 late, 0 lost
               0 duplicated, 0 reordered, 0 unexpected, 0 conflict
    Published  363 sent: 363 acked, 0 failed, 0 unknown
    Recovery   p50 3.10 s, p90 6.22 s, p99 9.42 s, max 9.91 s, drop to caught up
    Status     connected 82.6 %, disconnected 16.8 %, reconnecting under 0.1 %,
               connecting at first 0.5 % of the time; fewest connected: 0 of 200,
               at 6.20 s
    Stale      p50 3.11 s, p90 6.22 s, p99 9.42 s, max 9.91 s, each client's
               longest; in all p99 9.42 s
    Resumes    200 resumed
    Drops      eof x 200
    Refusals   refused x 44
    herd's lag p50 0.06 ms, p99 1.20 ms, max 3.40 ms; 1.8 s CPU, 61 MB at most

    Files      reports/1200-default/
               history.herd summary.json attempts.csv
    Again      herd run scenarios/default.toml --seed 1
    "##);
}

#[test]
fn whoever_was_not_primed_shows_its_unread_frames() {
    let text = plain(&fixture::unprimed(), Exit::Unknown);
    assert!(text.contains("0 of 3 clients received a priming event; nothing was restarted"));
    assert!(text.contains(r#"{"event":"\u{1b}]0;pwned\u{7}","data":"\u{202e}txt"}"#));
}

/// What is told of a run in which nobody was primed, after this of it.
fn unprimed(change: impl FnOnce(&mut History)) -> String {
    let (mut history, verdict) = fixture::unprimed();
    history.clients.iter_mut().for_each(|c| c.unread.clear());
    change(&mut history);
    plain(&(history, verdict), Exit::Unknown)
}

#[test]
fn an_opening_that_nothing_fits_is_named_where_nobody_was_primed() {
    let text = unprimed(|history| {
        for client in &mut history.clients {
            client.sessions[0].unanswered = Some("open[1].expect: nothing came".into());
        }
    });
    assert!(
        text.contains("no client finished the profile's opening; nothing was restarted"),
        "{text}"
    );
    assert!(text.contains("open[1].expect: nothing came"), "{text}");
}

#[test]
fn whoever_received_something_else_is_not_counted_as_if_nothing_came() {
    let text = unprimed(|history| {
        let end = Mark::End(End::NotPrimed { primed: 3 });
        history.marks.last_mut().unwrap().1 = end;
    });
    assert!(
        text.contains("3 clients did not all receive one and the same priming event"),
        "{text}"
    );
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

#[test]
fn a_reordered_event_is_told_with_the_one_before_it() {
    let (history, mut verdict) = fixture::fail();
    verdict.offenders.truncate(1);
    verdict.offenders[0].wrong = Wrong::Reordered;
    verdict.offenders[0].client = ClientId(1);
    let text = plain(&(history, verdict), Exit::Fail);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("right after event 129 (id 129)"), "{text}");
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
    assert!(text.contains("and 36 passed"), "{text}");
}

/// What the server said of itself and of its clients, with every kind of outcome, once for each outage.
#[test]
fn what_came_of_resumes_and_what_the_server_said_is_told() {
    let (mut history, mut verdict) = fixture::pass();
    let close = |code| Cause::Close {
        code,
        reason: "".into(),
    };
    for (n, client) in history.clients.iter_mut().enumerate() {
        let (_, cause) = client.sessions[0].closed.as_mut().unwrap();
        *cause = close((n < 190).then_some(1012));
        if n < 3 {
            client.sessions[1].refused = Some((history.horizon, "unknown-id".into()));
            let delay = std::time::Duration::from_secs(n as u64 + 1);
            client.retry_after.push((history.horizon, delay));
        }
        if n < 12 {
            let last = client.attempts.len() - 1;
            client.attempts[last].outcome = AttemptOutcome::Handshake {
                status: Some(503),
                why: "Service Unavailable".into(),
            };
        }
    }
    verdict.outages[0].resumes = crate::check::ResumeFacts {
        resumed: 190,
        reset: 4,
        missed_reset: 3,
        refused: 2,
        never_resumed: 1,
    };
    let second = OutageFacts {
        outage: 2,
        ..verdict.outages[0].clone()
    };
    verdict.outages.push(second);
    let text = plain(&(history, verdict), Exit::Pass);
    let from = text.find("  Resumes").unwrap();
    let to = text.find("  herd's lag").unwrap();
    insta::assert_snapshot!(&text[from..to], @r#"
      Resumes 1  190 resumed, 4 reset, 3 missed reset, 2 refused, 1 never resumed
      Resumes 2  190 resumed, 4 reset, 3 missed reset, 2 refused, 1 never resumed
      Drops      1012 x 190, 1005 x 10
      Refusals   refused x 44, 503 x 12
      Declined   "unknown-id" x 3
      Asked to   come back after 2.00 s at the median (1.00 s to 3.00 s), 3 times:
                 told, obeyed only where the backoff preset does
    "#);
}

#[test]
fn a_region_is_told_with_whom_it_hit_and_whom_it_spared() {
    let (history, mut verdict) = fixture::pass();
    verdict.bystanders = vec![BystanderFacts {
        outage: 1,
        chosen: 60,
        dropped: 60,
        others: 140,
        others_dropped: 2,
        others_missed: 1,
    }];
    let told = plain(&(history, verdict), Exit::Pass);
    let lines = "             region: 60 of 200 clients, 60 dropped; outside: 140 clients,\n             2 dropped, 1 event missed\n";
    assert!(told.contains(lines), "{told}");
}

#[test]
fn a_reload_storm_is_drawn_where_there_was_one() {
    let (mut history, verdict) = fixture::pass();
    assert!(!plain(&(history.clone(), verdict.clone()), Exit::Pass).contains("  reload"));
    for client in &mut history.clients {
        let asked = client.sessions[1].opened;
        client.reloads.push(crate::history::Reload {
            asked,
            ended: asked,
            status: Some(200),
            bytes: 10,
            why: "".into(),
        });
    }
    let told = plain(&(history, verdict), Exit::Pass);
    let bars = |label: &str| {
        let mut lines = told.lines().skip_while(|line| !line.starts_with(label));
        lines.next().unwrap().split('│').nth(1).unwrap().to_owned()
    };
    // As many as came back, in half the height.
    let (opened, reload) = (bars("  opened"), bars("  reload"));
    let most = |line: &str| line.chars().position(|c| c == '█');
    assert_eq!(most(&opened), most(&reload), "{told}");
}
