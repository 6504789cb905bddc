//! The CSV files: one row for each attempt, session, reconnect, receipt, publication, reload and look at a server, and for
//! each change of how many clients are connected (`csv/status.rs`).
//!
//! Rows are streamed, never gathered. Ids are written byte for byte, quoted by the rules of CSV and nothing more, so
//! that a program reads back what the server sent; a spreadsheet may take one for a formula. Times are whole
//! microseconds since the run began, and what is unknown is empty. Clients, sessions, outages, waves and the attempts of
//! one absence count from 1; outage 0 is the ramp.

mod status;

use std::io::{self, Write};

use super::escape::safe;
use super::{Input, Render};
use crate::history::{
    Attempt, AttemptOutcome, Cause, ClientId, Elapsed, Entry, EventIx, Fate, History,
    PublicationKind, Session,
};

/// How much of a reason is written.
const WHY: usize = 200;

pub(super) const FILES: &[(&str, Render)] = &[
    ("attempts.csv", attempts),
    ("sessions.csv", sessions),
    ("reconnects.csv", reconnects),
    ("receipts.csv", receipts),
    ("publications.csv", publications),
    ("reloads.csv", reloads),
    ("health.csv", health),
    ("status.csv", status::write),
];

/// A CSV file with a row that is filled field by field and reused.
struct Table<'a> {
    writer: ::csv::Writer<&'a mut dyn Write>,
    row: ::csv::ByteRecord,
    digits: Vec<u8>,
}

impl<'a> Table<'a> {
    fn new(out: &'a mut dyn Write, header: &str) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(header.split(','))?;
        Ok(Self {
            writer,
            row: ::csv::ByteRecord::new(),
            digits: Vec::new(),
        })
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.row.push_field(text.as_bytes());
        self
    }

    fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.digits.clear();
        // Writing to a vector can't fail.
        let _ = write!(self.digits, "{}", number.into());
        self.row.push_field(&self.digits);
        self
    }

    fn instant(&mut self, at: Option<Elapsed>) -> &mut Self {
        match at {
            Some(at) => self.number(at.micros()),
            None => self.text(""),
        }
    }

    /// An event's id.
    fn id(&mut self, history: &History, event: Option<EventIx>) -> &mut Self {
        self.text(
            event
                .and_then(|ix| history.event(ix).id.as_deref())
                .unwrap_or(""),
        )
    }

    fn end(&mut self) -> io::Result<()> {
        self.writer.write_byte_record(&self.row)?;
        self.row.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn attempts(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(
        out,
        "outage,wave,client,attempt,due_us,dialled_us,ended_us,outcome,target",
    )?;
    let mut returns: Vec<_> = input.verdict.returns.iter().collect();
    returns.sort_by_key(|r| (r.client, r.dropped));
    for (client, facts) in input.history.clients.iter().zip(&input.verdict.sessions) {
        let from = returns.partition_point(|r| r.client < client.id);
        let absences = returns[from..].iter().take_while(|r| r.client == client.id);
        let mut absences = absences.peekable();
        let (mut outage, mut wave, mut count) = (0, 0, 0u32);
        let mut session = facts.iter();
        for attempt in &client.attempts {
            while let Some(absence) = absences.next_if(|r| r.dropped <= attempt.dialled) {
                (outage, wave, count) = (absence.outage, absence.wave, 0);
            }
            count += 1;
            let outcome = match &attempt.outcome {
                AttemptOutcome::Opened if session.next().is_some_and(|s| s.flapped) => "flapped",
                AttemptOutcome::Opened => "opened",
                AttemptOutcome::Refused => "refused",
                AttemptOutcome::Timeout => "timeout",
                AttemptOutcome::Handshake { .. } => "handshake",
                AttemptOutcome::Local(_) => "local",
                AttemptOutcome::Aborted => "aborted",
            };
            table.number(outage).number(wave).number(client.id.0);
            table.number(count).number(attempt.due.micros());
            table.number(attempt.dialled.micros());
            table.number(attempt.ended.micros()).text(outcome);
            table.number(target(attempt)).end()?;
        }
    }
    table.finish()
}

fn sessions(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(
        out,
        "client,session,outage,wave,opened_us,ended_us,cause,close_code,resumed_from,resume_outcome,caught_up_us,target,caught_up_by",
    )?;
    for (client, facts) in input.history.clients.iter().zip(&input.verdict.sessions) {
        for (n, (session, facts)) in client.sessions.iter().zip(facts).enumerate() {
            table.number(client.id.0).number(n as u64 + 1);
            table.number(facts.outage).number(facts.wave);
            table.number(session.opened.micros());
            ending(&mut table, session);
            table.id(input.history, session.resumed_from);
            table.text(facts.resume.map_or("", |resume| resume.name()));
            table.instant(facts.caught_up);
            match client.attempts.get(session.attempt) {
                Some(attempt) => table.number(target(attempt)),
                None => table.text(""),
            };
            // The server's word is written down; `caught_up_us` rests on what came.
            let said = session.marker.is_some();
            table.text(match facts.caught_up {
                None => "",
                Some(_) if said => "marker",
                Some(_) => "inferred",
            });
            table.end()?;
        }
    }
    table.finish()
}

/// Which of several targets was dialled, from 1.
fn target(attempt: &Attempt) -> u64 {
    u64::from(attempt.target) + 1
}

fn ending(table: &mut Table<'_>, session: &Session) {
    match &session.closed {
        None => table.text("").text("").text(""),
        Some((at, cause)) => {
            table.number(at.micros()).text(cause.name());
            match cause {
                // A close frame without a code is RFC 6455's 1005.
                Cause::Close { code, .. } => table.number(code.unwrap_or(1005)),
                _ => table.text(""),
            }
        }
    };
}

fn reconnects(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(
        out,
        "outage,wave,client,dropped_us,reconnected_us,attempts,resumed_from,caught_up_us",
    )?;
    for absence in &input.verdict.returns {
        let back = place(input.history, absence.client).and_then(|place| {
            let n = absence.session?;
            let session = input.history.clients[place].sessions.get(n)?;
            Some((session, input.verdict.sessions.get(place)?.get(n)?))
        });
        table.number(absence.outage).number(absence.wave);
        table
            .number(absence.client.0)
            .number(absence.dropped.micros());
        table.instant(back.map(|(session, _)| session.opened));
        table.number(absence.attempts);
        table.id(input.history, back.and_then(|(s, _)| s.resumed_from));
        table
            .instant(back.and_then(|(_, facts)| facts.caught_up))
            .end()?;
    }
    table.finish()
}

/// A client's place in the history (and in the verdict's list of sessions).
pub(super) fn place(history: &History, client: ClientId) -> Option<usize> {
    history.place(client)
}

fn receipts(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(out, "client,session,at_us,id,seq")?;
    for client in &input.history.clients {
        for entry in client.entries(input.history) {
            let Entry::Receipt(receipt) = entry else {
                continue;
            };
            table.number(client.id.0).number(receipt.session as u64 + 1);
            table.number(receipt.at.micros());
            table.id(input.history, Some(receipt.event));
            match input.history.event(receipt.event).seq {
                Some(seq) => table.number(seq.0),
                None => table.text(""),
            };
            table.end()?;
        }
    }
    table.finish()
}

/// `sent_us` is the first sending: since then the server may have the event.
fn publications(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(out, "seq,kind,due_us,sent_us,answered_us,outcome,id")?;
    for publication in input.history.publications.values() {
        let kind = match publication.kind {
            PublicationKind::Priming => "priming",
            PublicationKind::Expected => "expected",
        };
        table.number(publication.seq.0).text(kind);
        table.number(publication.due.micros());
        table.number(publication.first_sent.micros());
        table.instant(publication.answered);
        table.text(fate(publication.fate));
        table.text(publication.id.as_deref().unwrap_or("")).end()?;
    }
    table.finish()
}

fn reloads(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(out, "client,asked_us,ended_us,status,bytes,outcome,why")?;
    for client in &input.history.clients {
        for reload in &client.reloads {
            table.number(client.id.0);
            table.number(reload.asked.micros());
            table.number(reload.ended.micros());
            match reload.status {
                Some(status) => table.number(status),
                None => table.text(""),
            };
            let outcome = if reload.is_done() { "done" } else { "failed" };
            table.number(reload.bytes).text(outcome);
            table.text(&safe(&reload.why, WHY)).end()?;
        }
    }
    table.finish()
}

/// `cpu_us` begins anew with each process.
fn health(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(out, "target,at_us,pid,cpu_us,rss_bytes,threads,descriptors")?;
    for look in crate::check::health::looks(input.history) {
        let health = look.health;
        table.number(u64::from(health.target) + 1);
        table.number(look.at.micros()).number(health.pid);
        table.number(health.cpu.as_micros() as u64);
        table.number(health.rss).number(health.threads);
        table.number(health.descriptors).end()?;
    }
    table.finish()
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Acked => "acked",
        Fate::Failed => "failed",
        Fate::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests;
