//! A history of a storm, so that it is judged and reported like any run.
//!
//! It records what is told and judges nothing. Nobody publishes in it, and its header says so.

use super::{CUT, Course, Dialled, Met, Storm, Told, TooMany};
use crate::history::{
    Attempt, AttemptOutcome, Cause, Client, ClientEvent, ClientId, Elapsed, End, Header, History,
    Mark,
};

/// How many dials a history of a storm may hold; each takes some 100 bytes until it is judged.
pub const MOST: u64 = 12_000_000;

/// Follows a storm and records it. The header's terms must be those of the storm.
///
/// # Errors
/// [`TooMany`] where the herd dials more than [`MOST`] times.
pub fn history(storm: &Storm, header: Header) -> Result<(History, Course), TooMany> {
    let mut record = Record {
        clients: (1..=storm.clients).map(client).collect(),
        marks: Vec::new(),
    };
    let course = super::run(storm, MOST, &mut |told| record.add(told))?;
    let mut history = History::new(header);
    history.clients = record.clients;
    history.marks = record.marks;
    history.marks.push((
        CUT,
        Mark::Note {
            text: noted(storm, &course),
        },
    ));
    history.horizon = course.horizon();
    history.marks.retain(|(at, _)| *at <= history.horizon);
    history
        .marks
        .push((history.horizon, Mark::End(End::Complete)));
    // Stable: within an instant a cut comes before what came of it.
    history.marks.sort_by_key(|(at, _)| *at);
    Ok((history, course))
}

struct Record {
    clients: Vec<Client>,
    marks: Vec<(Elapsed, Mark)>,
}

/// A client that is open since the beginning.
fn client(number: u32) -> Client {
    let mut client = Client::new(ClientId(number));
    client.attempts.reserve_exact(2);
    client.sessions.reserve_exact(2);
    push(
        &mut client,
        Dialled {
            client: number,
            due: Elapsed::ZERO,
            attempt: 0,
            connected: Some(Elapsed::ZERO),
            ended: Elapsed::ZERO,
            met: Met::Opened,
        },
    );
    client
}

fn push(client: &mut Client, dialled: Dialled) {
    let outcome = match dialled.met {
        Met::Opened => AttemptOutcome::Opened,
        Met::Refused => AttemptOutcome::Refused,
        Met::Unanswered => AttemptOutcome::Timeout,
        Met::Unserved => handshake("not served in time"),
        Met::Reset => handshake("connection reset"),
    };
    if outcome == AttemptOutcome::Opened {
        client.stream.session(dialled.ended);
    }
    client.push(ClientEvent::Attempt(Attempt {
        attempt: dialled.attempt,
        due: dialled.due,
        dialled: dialled.due,
        connected: dialled.connected,
        ended: dialled.ended,
        outcome,
        resumed_from: None,
        target: 0,
    }));
}

fn handshake(why: &str) -> AttemptOutcome {
    AttemptOutcome::Handshake {
        status: None,
        why: why.into(),
    }
}

impl Record {
    fn add(&mut self, told: Told) {
        match told {
            Told::Dialled(dialled) => {
                push(&mut self.clients[dialled.client as usize - 1], dialled);
            }
            Told::Lost { client, at } => {
                let cause = Cause::Reset;
                self.clients[client as usize - 1].push(ClientEvent::Closed { at, cause });
            }
            Told::Quit { client, at, why } => {
                self.clients[client as usize - 1].push(ClientEvent::Quit { at, why });
            }
            Told::Cut { outage, at, back } => {
                self.marks.push((at, Mark::Trigger { outage }));
                self.marks.push((at, Mark::Gone { outage }));
                self.marks.push((back, Mark::Ready { outage }));
            }
            Told::Fell { outage, at, back } => {
                let status = "too many handshakes waited".into();
                self.marks.push((at, Mark::Died { status }));
                self.marks.push((back, Mark::Ready { outage }));
            }
            Told::Settled { outage, at } => self.marks.push((at, Mark::Settled { outage })),
            Told::Stayed { .. } => {}
        }
    }
}

/// What the model server did, in one sentence.
fn noted(storm: &Storm, course: &Course) -> Box<str> {
    let after = |at: Elapsed| format!("{:.2} s after the cut", at.since(CUT).as_secs_f64());
    let mut text = String::from("simulated: no sockets, no latency, and nobody publishes");
    if storm.limits.collapse.is_some() {
        text += &match course.falls.len() {
            0 => "; the server never fell over".to_owned(),
            1 => format!("; the server fell over once, {}", after(course.falls[0])),
            n => format!("; the server fell over {n} times"),
        };
        text += &match course.recovered {
            Some(at) => format!(", and everybody was back {}", after(at)),
            None => format!(", and had not recovered {}", after(course.end)),
        };
    }
    text.into()
}
