//! The first offending (client, event) pairs with what happened around them: when the event was published and
//! answered, whether the client was connected then, in which session, resumed from which id, and what arrived.

use crate::check::{Offender, Verdict, Wrong};
use crate::history::{
    Cause, Client, Elapsed, Entry, Event, EventIx, Fate, History, Publication, Receipt, Seq,
};
use crate::report::csv::place;
use crate::report::escape::safe;

use super::text::{COLUMNS, Page, TIE, Tone, count, wrap};

/// How many pairs are told.
const TOLD: usize = 10;
/// How many arrivals of one pair are told.
const ARRIVALS: usize = 3;
/// The columns that an id may take.
const ID: usize = 40;
const INDENT: usize = 6;

/// Tells the first offending pairs, if there are any.
pub(super) fn tell(page: &mut Page, history: &History, verdict: &Verdict) {
    let mode = history.header.terms.delivery;
    // What the delivery that was asked for allows offends nobody.
    let offends = |wrong: Wrong| wrong == Wrong::Reordered || wrong.gates(mode);
    let offenders = verdict.offenders.iter().filter(|o| offends(o.wrong));
    let told = offenders.clone().take(TOLD).count();
    if told == 0 {
        return;
    }
    let d = &verdict.delivery;
    let counts = [
        (Wrong::Lost, d.lost),
        (Wrong::Late, d.late),
        (Wrong::Duplicated, d.duplicated),
        (Wrong::Reordered, d.reordered),
        (Wrong::Unexpected, d.unexpected),
        (Wrong::Conflict, d.conflict),
    ];
    let all: u64 = counts
        .iter()
        .filter(|(w, _)| offends(*w))
        .map(|(_, n)| n)
        .sum();
    let title = if all > told as u64 {
        format!("  First {told} of {} offending pairs", count(all))
    } else {
        "  Offending pairs".to_owned()
    };
    page.blank();
    page.line(&[(Tone::Title, &title)]);
    for (n, offender) in offenders.take(TOLD).enumerate() {
        pair(page, history, n + 1, offender);
    }
}

fn pair(page: &mut Page, history: &History, n: usize, offender: &Offender) {
    let what = event(history, offender.seq, offender.id.as_deref());
    let who = format!("client{TIE}{}, {what}", count(offender.client.0));
    let mut label = (
        format!("  {n:>2}  "),
        format!("{:<11}", word(offender.wrong)),
    );
    for text in wrap(&who, COLUMNS - INDENT - 11) {
        page.line(&[
            (Tone::Quiet, &label.0),
            (Tone::Bad, &label.1),
            (Tone::Plain, &text),
        ]);
        label = (" ".repeat(INDENT), " ".repeat(11));
    }
    let mut tell = |text: &str| page.entry((Tone::Plain, ""), INDENT, (Tone::Plain, text));
    let publication = offender.seq.and_then(|seq| history.publications.get(&seq));
    let client = place(history, offender.client).map(|place| &history.clients[place]);
    match (publication, offender.seq) {
        (Some(publication), _) => tell(&published(publication)),
        (None, Some(_)) => tell("herd did not publish it"),
        (None, None) => {}
    }
    let Some(client) = client else { return };
    if let Some(publication) = publication {
        let at = publication.answered.unwrap_or(publication.first_sent);
        tell(&format!("the client {}", whereabouts(history, client, at)));
    }
    let arrivals = arrivals(history, client, offender);
    if arrivals.is_empty() {
        tell("it never arrived");
    }
    for (receipt, before) in arrivals.iter().take(ARRIVALS) {
        let from = resumed(history, client, receipt.session);
        let (at, session) = (instant(receipt.at), receipt.session + 1);
        let mut text = format!("arrived {at} in session {session}{from}");
        if let (Wrong::Reordered, Some(before)) = (offender.wrong, before) {
            let before = history.event(*before);
            let before = event(history, before.seq, before.id.as_deref());
            text += &format!(", right after {before}");
        }
        if offender.at == Some(receipt.at) {
            text += ", this one";
        }
        tell(&text);
    }
    if arrivals.len() > ARRIVALS {
        tell(&format!("and {} times more", arrivals.len() - ARRIVALS));
    }
}

fn event(history: &History, seq: Option<Seq>, id: Option<&str>) -> String {
    let seq = seq.map(|seq| history.header.shown(seq));
    match (seq, id) {
        (Some(seq), Some(id)) => format!("event{TIE}{seq} ({})", quoted(id)),
        (Some(seq), None) => format!("event{TIE}{seq}"),
        (None, Some(id)) => format!("event {}", quoted(id)),
        (None, None) => "an event without id".to_owned(),
    }
}

/// The word in every report.
fn word(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Lost => "lost",
        Wrong::Late => "late",
        Wrong::Duplicated => "duplicated",
        Wrong::Reordered => "reordered",
        Wrong::Unexpected => "unexpected",
        Wrong::Conflict => "conflict",
    }
}

fn published(publication: &Publication) -> String {
    let sent = instant(publication.first_sent);
    let fate = match (publication.fate, publication.answered) {
        (Fate::Acked, Some(at)) => format!("acked {}", instant(at)),
        (Fate::Acked, None) => "acked".to_owned(),
        (Fate::Failed, Some(at)) => format!("failed {}", instant(at)),
        (Fate::Failed, None) => "failed".to_owned(),
        (Fate::Unknown, _) => "its answer lost".to_owned(),
    };
    match publication.tries {
        0 | 1 => format!("published {sent}, {fate}"),
        tries => format!("first published {sent}, {fate} with try {tries}"),
    }
}

/// Where the client was at an instant.
fn whereabouts(history: &History, client: &Client, at: Elapsed) -> String {
    let after = client.sessions.partition_point(|s| s.opened <= at);
    let next = client.sessions.get(after);
    let before = after.checked_sub(1).and_then(|n| client.sessions.get(n));
    let left = before.and_then(|s| s.closed.as_ref());
    match left {
        None if before.is_some() => connected(history, client, after - 1),
        Some((closed, _)) if at < *closed => connected(history, client, after - 1),
        None => match next {
            Some(session) => format!("was not connected yet: open {}", instant(session.opened)),
            None => "never was connected".to_owned(),
        },
        Some((closed, cause)) => {
            let lost = format!("was away then: {} {}", self::cause(cause), instant(*closed));
            match next {
                Some(session) => {
                    let from = resumed(history, client, after);
                    format!(
                        "{lost}, back {} in session {}{from}",
                        instant(session.opened),
                        after + 1
                    )
                }
                None => format!("{lost}, never back"),
            }
        }
    }
}

fn connected(history: &History, client: &Client, session: usize) -> String {
    let until = match &client.sessions[session].closed {
        Some((_, Cause::Herd)) | None => String::new(),
        Some((at, cause)) => format!("; {} {}", self::cause(cause), instant(*at)),
    };
    let from = resumed(history, client, session);
    format!("was connected then: session {}{from}{until}", session + 1)
}

/// The cause of a session's end as every block of the report shows it.
pub(super) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Close {
            code: Some(code), ..
        } => format!("close {code}"),
        cause => cause.name().to_owned(),
    }
}

fn resumed(history: &History, client: &Client, session: usize) -> String {
    let from = client.sessions.get(session).and_then(|s| s.resumed_from);
    match from.and_then(|ix| history.event(ix).id.as_deref()) {
        Some(id) => format!(", resumed from {}", quoted(id)),
        None => String::new(),
    }
}

/// Every arrival of the pair's event, with the event that arrived before it.
fn arrivals(
    history: &History,
    client: &Client,
    offender: &Offender,
) -> Vec<(Receipt, Option<EventIx>)> {
    let same = |event: &Event| match (offender.wrong, offender.seq) {
        // The same id with another content may carry another number.
        (Wrong::Conflict, _) | (_, None) => event.id.as_deref() == offender.id.as_deref(),
        (_, seq) => event.seq == seq,
    };
    let same: std::collections::HashSet<_> = history
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| same(event))
        .map(|(ix, _)| EventIx(ix as u32))
        .collect();
    let mut before = None;
    let mut arrivals = Vec::new();
    for entry in client.entries(history) {
        let Entry::Receipt(receipt) = entry else {
            continue;
        };
        let previous = before.replace(receipt.event);
        if same.contains(&receipt.event) {
            arrivals.push((receipt, previous));
        }
    }
    arrivals
}

fn quoted(id: &str) -> String {
    format!("id{TIE}{}", safe(id, ID))
}

/// An instant to the millisecond, since the run began.
fn instant(at: Elapsed) -> String {
    format!("at {:.3}{TIE}s", at.micros() as f64 / 1e6)
}
