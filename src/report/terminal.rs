//! The report for people: 80 columns, the verdict first, then what it rests on.
//!
//! A pure function to text: whoever prints it decides where and whether in colour. Whatever a server sent, or a user
//! wrote, is escaped and cut before it stands here.

mod chart;
mod meanwhile;
mod numbers;
mod offenders;
mod renewal;
mod stack;
mod text;

use std::path::{Path, PathBuf};

use crate::check::words::no_restart;
use crate::check::{BystanderFacts, Finding, OutageFacts, Outcome, opening};
use crate::history::{End, Fate, History, Publication, TriggerKind};

use super::escape::{safe, width};
use super::{Input, Summary};
use numbers::{Zero, listed};
use text::{COLUMNS, Page, TIE, Tone, count, counted, ms, tied, wrap};

pub use text::Colour;

/// Columns before the text of an entry.
const INDENT: usize = 13;
/// More findings than this, and those that pass are only counted.
const ROWS: usize = 24;
/// The most lines of notes, frames and the like.
const SAMPLE: usize = 5;

/// The report of a run; `files` are those that were written, none for a report on its own.
#[must_use]
pub fn render(input: &Input<'_>, files: &[PathBuf], colour: Colour) -> String {
    let mut page = Page::new(colour);
    page.blank();
    verdict(&mut page, input);
    unread(&mut page, input.history);
    outages(&mut page, input);
    chart::draw(&mut page, input.history, input.verdict);
    checks(
        &mut page,
        &input.summary.checks,
        input.summary.outages.len(),
    );
    numbers::tell(&mut page, input);
    offenders::tell(&mut page, input.history, input.verdict);
    page.blank();
    places(&mut page, files);
    repeat(&mut page, input);
    page.finish()
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Pass => Tone::Good,
        Outcome::Unknown => Tone::Doubtful,
        Outcome::Fail => Tone::Bad,
    }
}

/// One line of what a server or a user wrote.
fn line(text: &str) -> String {
    safe(text, 3 * COLUMNS)
}

fn verdict(page: &mut Page, input: &Input<'_>) {
    let summary = input.summary;
    let label = summary.ending().to_uppercase();
    let tone = tone(summary.outcome);
    let mut say = |n: usize, text: &str| {
        let label = if n == 0 { label.as_str() } else { "" };
        page.entry((tone, label), INDENT, (Tone::Title, text));
    };
    let ending = ending(input.history);
    let mut lines: Vec<_> = ending.iter().cloned().collect();
    // Where nothing was judged because of how the run ended, that is the whole answer.
    if ending.is_none() || summary.outcome == Outcome::Fail {
        lines.extend(reasons(summary));
    }
    for (n, text) in lines.iter().enumerate() {
        say(n, text);
    }
    page.entry((Tone::Plain, ""), INDENT, (Tone::Quiet, &subject(input)));
}

/// The findings that make the outcome, worst first.
fn reasons(summary: &Summary) -> Vec<String> {
    if summary.outcome == Outcome::Pass {
        let checks = counted(summary.checks.len() as u64, "check");
        return vec![format!("all {checks} passed")];
    }
    let decisive: Vec<_> = summary
        .checks
        .iter()
        .filter(|f| f.outcome == summary.outcome)
        .collect();
    let mut lines: Vec<_> = decisive
        .iter()
        .take(SAMPLE)
        .map(|f| format!("{}: {}", name(f, summary.outages.len()), line(gist(f))))
        .collect();
    if decisive.len() > SAMPLE {
        lines.push(format!("and {} more", decisive.len() - SAMPLE));
    }
    lines
}

/// What was measured; of what could not be judged, why, as far as the first semicolon.
fn gist(finding: &Finding) -> &str {
    match finding.outcome {
        Outcome::Unknown if !finding.why.is_empty() => {
            finding.why.split(';').next().unwrap_or_default()
        }
        _ => &finding.measured,
    }
}

/// How the run ended, where that was not as planned.
fn ending(history: &History) -> Option<String> {
    let clients = counted(history.header.clients, "client");
    let shards = history.header.shard.of as usize;
    match history.end() {
        None => Some("the history has no end: herd was killed, or the file was cut".into()),
        Some(End::Interrupted { .. }) => Some("stopped early; what was recorded is kept".into()),
        Some(End::NotConnected { connected }) => Some(format!(
            "{} of {clients} connected; nothing was restarted",
            count(*connected)
        )),
        Some(End::NotPrimed { .. }) if opening::never(history) => {
            Some("no client finished the profile's opening; nothing was restarted".into())
        }
        Some(End::NotPrimed { primed }) if *primed == history.header.clients => Some(format!(
            "{clients} did not all receive one and the same priming event; nothing was restarted"
        )),
        Some(End::NotPrimed { primed }) => Some(format!(
            "{} of {clients} received a priming event; nothing was restarted",
            count(*primed)
        )),
        Some(End::NoRestart) => Some(no_restart(history)),
        Some(End::Broken { why }) => Some(line(why)),
        Some(End::Complete) if history.shards.len() < shards => Some(format!(
            "{} of {shards} shards are here; give herd check all of them",
            history.shards.len()
        )),
        Some(End::Complete) => None,
    }
}

fn subject(input: &Input<'_>) -> String {
    let summary = input.summary;
    format!(
        "{}, {}, {}; backoff {}, profile {}, target {}, seed {}",
        counted(summary.clients, "client"),
        counted(summary.outages.len() as u64, "outage"),
        counted(summary.publications.sent, "publication"),
        line(&summary.backoff),
        line(&summary.profile),
        line(&summary.target),
        summary.seed,
    )
}

/// Frames that could not be read: all that there is to go by where nobody was primed.
fn unread(page: &mut Page, history: &History) {
    let mut frames: Vec<_> = history
        .clients
        .iter()
        .flat_map(|c| c.unread.iter().map(move |(at, text)| (*at, c.id, text)))
        .collect();
    frames.sort_by_key(|(at, client, _)| (*at, *client));
    let unprimed = matches!(history.end(), Some(End::NotPrimed { .. }));
    if frames.is_empty() {
        // Where nothing could be published there was nothing to read, and a note says why.
        let acked = |p: &Publication| p.fate == Fate::Acked;
        let published = history.publications.values().any(acked);
        if unprimed && (published || history.publications.is_empty()) {
            page.blank();
            let (label, text) = misread(history);
            page.entry((Tone::Title, label), INDENT, (Tone::Plain, &text));
        }
        return;
    }
    let told = if unprimed { SAMPLE } else { 1 };
    page.blank();
    for (n, (at, client, text)) in frames.iter().take(told).enumerate() {
        let label = if n == 0 { "Unread" } else { "" };
        let when = ms(at.millis());
        let text = format!("client {} at {when}: {}", count(client.0), line(text));
        page.entry((Tone::Title, label), INDENT, (Tone::Plain, &text));
    }
    if frames.len() > told {
        let more = format!("and {} more", count((frames.len() - told) as u64));
        page.entry((Tone::Plain, ""), INDENT, (Tone::Quiet, &more));
    }
    if unprimed && history.clients.iter().any(|c| c.lacking.is_some()) {
        let (label, text) = misread(history);
        page.entry((Tone::Title, label), INDENT, (Tone::Plain, &text));
    }
}

/// What was read where nobody was primed: an event that lacks what a client needs.
fn misread(history: &History) -> (&'static str, String) {
    if let Some(hint) = opening::hint(history).filter(|_| opening::never(history)) {
        return ("Opening", hint);
    }
    let Some(event) = history.events.first() else {
        return (
            "Unread",
            "no event and no unread frame: the server sent nothing, or only what the profile passes over".into(),
        );
    };
    let id = event.id.as_deref().map(line);
    let id = id.map_or("no id".to_owned(), |id| format!("the id {id}"));
    let seq = event.seq.map(|seq| format!("the number {}", seq.0));
    let seq = seq.unwrap_or_else(|| "no number of herd's".to_owned());
    let events = counted(history.events.len() as u64, "event");
    let mut frames = history.clients.iter().filter_map(|c| c.lacking.as_ref());
    let frame = frames.next();
    let frame = frame.map_or(String::new(), |(_, text)| format!(": {}", line(text)));
    let text = format!(
        "{events}, the first with {id} and {seq}; see whether --id and --seq point at the right places{frame}"
    );
    ("Read", text)
}

fn outages(page: &mut Page, input: &Input<'_>) {
    let outages = &input.summary.outages;
    if outages.is_empty() {
        return;
    }
    page.blank();
    for outage in outages {
        let label = format!("Outage {}", outage.outage);
        page.entry(
            (Tone::Title, &label),
            INDENT,
            (Tone::Plain, &course(outage)),
        );
        let told = [spread(outage), dials(outage)].into_iter().flatten();
        let spared = input.summary.bystanders.iter();
        let spared = spared.filter(|facts| facts.outage == outage.outage);
        let told = told.chain(spared.map(region));
        for text in told.chain(renewal::of_outage(outage)) {
            page.entry((Tone::Plain, ""), INDENT, (Tone::Plain, &text));
        }
    }
}

fn course(outage: &OutageFacts) -> String {
    let mut parts = vec![line(&outage.trigger)];
    // Of a cut, herd knows when it began, and clients may find out later.
    let cut = outage.trigger == TriggerKind::Cut.name();
    let began = outage.trigger_ms.filter(|_| cut);
    if let Some(at) = began.or(outage.first_drop_ms).or(outage.trigger_ms) {
        parts[0] += &format!(" at {}", ms(at));
        if let Some(ready) = outage.ready_ms {
            parts[0] += &format!(", ready {} later", ms(ready - at));
        }
    }
    parts.push(tied(outage.dropped, "dropped"));
    parts.push(tied(outage.reconnected, "reconnected"));
    if outage.gave_up > 0 {
        parts.push(format!("{}{TIE}gave{TIE}up", count(outage.gave_up)));
    }
    if outage.waves.len() > 1 {
        parts.push(counted(outage.waves.len() as u64, "wave"));
    }
    parts.join(", ")
}

fn spread(outage: &OutageFacts) -> Option<String> {
    let r = &outage.reconnect;
    let mut text = format!("spread {}", ms(r.span_ms?));
    if let Some(span) = r.dialled_span_ms {
        text += &format!(" (dialled {})", ms(span));
    }
    if let Some(middle) = r.p5_p95_ms {
        text += &format!(", 90{TIE}% in {}", ms(middle));
    }
    Some(text + &format!(", at most {} in 1{TIE}s", count(r.peak_1s)))
}

fn dials(outage: &OutageFacts) -> Option<String> {
    let a = &outage.attempts;
    let parts = listed(&[
        (a.opened, "opened", Zero::Hidden),
        (a.refused, "refused", Zero::Hidden),
        (a.timeout, "timeout", Zero::Hidden),
        (a.handshake, "handshake", Zero::Hidden),
        (a.flapped, "flapped", Zero::Hidden),
    ]);
    (a.total > 0).then(|| format!("{}: {parts}", counted(a.total, "dial")))
}

/// What a cut that was for some did to these and to the others.
fn region(facts: &BystanderFacts) -> String {
    format!(
        "region: {} of {}, {}; outside: {}, {}, {} missed",
        count(facts.chosen),
        counted(facts.chosen + facts.others, "client"),
        tied(facts.dropped, "dropped"),
        counted(facts.others, "client"),
        tied(facts.others_dropped, "dropped"),
        counted(facts.others_missed, "event"),
    )
}

/// The check's name, with the outage where there are several.
fn name(finding: &Finding, outages: usize) -> String {
    match finding.outage {
        Some(outage) if outages > 1 => format!("{} {outage}", finding.check),
        _ => finding.check.to_string(),
    }
}

fn checks(page: &mut Page, findings: &[Finding], outages: usize) {
    if findings.is_empty() {
        return;
    }
    let (names, measured) = if outages > 1 { (20, 26) } else { (18, 28) };
    let limits = COLUMNS - INDENT - names - measured - 2;
    page.blank();
    page.line(&[(
        Tone::Quiet,
        &format!(
            "  {:<11}{:<names$}{:<measured$}  limit",
            "outcome", "check", "measured"
        ),
    )]);
    let terse = findings.len() > ROWS;
    let shown = |f: &&Finding| !terse || f.outcome != Outcome::Pass;
    for finding in findings.iter().filter(shown) {
        let value = wrap(&line(&finding.measured), measured);
        let limit = wrap(&line(&finding.limit), limits);
        for n in 0..value.len().max(limit.len()) {
            let (outcome, name) = if n == 0 {
                (finding.outcome.name(), name(finding, outages))
            } else {
                ("", String::new())
            };
            let value = value.get(n).map_or("", String::as_str);
            let pad = measured.saturating_sub(width(value)) + 2;
            page.line(&[
                (tone(finding.outcome), &format!("  {outcome:<11}")),
                (Tone::Plain, &format!("{name:<names$}{value}{:pad$}", "")),
                (Tone::Quiet, limit.get(n).map_or("", String::as_str)),
            ]);
        }
        if !finding.why.is_empty() {
            let why = safe(&finding.why, 8 * COLUMNS);
            page.entry((Tone::Plain, ""), INDENT + 2, (Tone::Plain, &why));
        }
    }
    let hidden = findings.len() - findings.iter().filter(shown).count();
    if hidden > 0 {
        let text = format!("and {} passed", count(hidden as u64));
        page.entry((Tone::Plain, ""), INDENT, (Tone::Quiet, &text));
    }
}

fn places(page: &mut Page, files: &[PathBuf]) {
    let Some(first) = files.first() else { return };
    let dir = first.parent().unwrap_or(Path::new(""));
    let names: Vec<_> = files
        .iter()
        .map(|file| {
            let name = file.strip_prefix(dir).unwrap_or(file);
            line(&name.to_string_lossy())
        })
        .collect();
    let dir = format!("{}/", line(&dir.to_string_lossy()));
    page.entry((Tone::Title, "Files"), INDENT, (Tone::Plain, &dir));
    page.entry((Tone::Plain, ""), INDENT, (Tone::Quiet, &names.join(" ")));
}

/// A command is neither cut nor wrapped, wider than the page or not: it must work when copied.
fn repeat(page: &mut Page, input: &Input<'_>) {
    let command = safe(&input.history.header.repeat, usize::MAX);
    let margin = format!("{:<INDENT$}", "  Again");
    page.line(&[(Tone::Title, &margin), (Tone::Plain, &command)]);
}

#[cfg(test)]
mod tests;
