//! One client's first look at the target, before the herd is let loose.
//!
//! It records nothing and judges nothing: it only finds out whether the target can be spoken to at all, and with which
//! words it declines.

use std::sync::Arc;
use std::time::Duration;

use super::dial::{Dialler, Due, Stamps, Way};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{AttemptOutcome, Cause, ClientId};
use crate::plan::Plan;
use crate::profile::guess::{self, Asked};
use crate::profile::{Carried, Decoded, Talk, Transport, Turn};
use crate::scenario::Scenario;
use crate::transport::Connection;
use crate::transport::network::Network;

/// How long a connection must stay open to be one; a server that closes at once does so within this.
const STAYS: Duration = Duration::from_millis(300);
/// How long the server may take to answer the goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Dials each target once.
///
/// # Errors
/// [`Error::Broken`] with what a target answered instead of an open connection.
pub async fn first_look(
    scenario: &Scenario,
    plan: &Plan,
    network: Arc<Network>,
    clock: Clock,
) -> Result<(), Error> {
    for target in 0..plan.targets() {
        look_at(target, scenario, plan, network.clone(), clock).await?;
    }
    Ok(())
}

async fn look_at(
    target: u16,
    scenario: &Scenario,
    plan: &Plan,
    network: Arc<Network>,
    clock: Clock,
) -> Result<(), Error> {
    let dialler = Dialler::new(scenario, network.clone(), clock);
    let first = ClientId(scenario.shard.index);
    let mut talk = Talk::new(plan.profile());
    let call = plan.call(first, target, None, talk.named());
    if let Ok(call) = &call {
        network.find(&call.url).await?;
    }
    let mut stamps = Stamps::default();
    let dial = dialler
        .dial(
            Due::at(clock.now()),
            call,
            Way::straight(plan.source(first)),
            &mut stamps,
        )
        .await;
    let masked = scenario.masked().target;
    // All servers of herd's own have one URL, each with its own port.
    let further = usize::from(target).checked_sub(1);
    let further = further.and_then(|place| masked.more_urls.get(place));
    let url = further.unwrap_or(&masked.url);
    let opened = dial.map_err(|outcome| declined(url, &outcome, plan.profile().transport()))?;
    let mut connection = opened.connection;
    let values = plan.values(first, target);
    let header = |name: &str| {
        let value = opened.headers.get(name)?;
        Some(value.to_str().ok()?.to_owned())
    };
    let now = || clock.now().duration();
    let turn = talk.open(plan.profile(), now(), &values, &header);
    let mut ended = speak(&mut connection, turn).map(|why| said_no(&why));
    let closed = async {
        while ended.is_none() {
            let next = std::future::poll_fn(|cx| connection.poll_next(cx)).await;
            ended = match next {
                Ok(payload) => {
                    let frame = payload.frame();
                    let turn = talk.hear(plan.profile(), now(), frame, &values);
                    let fatal = plan.profile().decode(frame, Carried::Nothing);
                    let fatal = fatal.into_iter().find_map(|part| match part {
                        Decoded::Fatal(why) => Some(why),
                        _ => None,
                    });
                    let ended = speak(&mut connection, turn);
                    fatal.or(ended).map(|why| said_no(&why))
                }
                Err(cause) => Some(format!(
                    "accepts connections and ends them at once ({}); see why in the server's log",
                    ending(&cause)
                )),
            };
        }
    };
    let _ = tokio::time::timeout(STAYS, closed).await;
    match ended {
        Some(why) => Err(Error::Broken(format!("{url} {why}"))),
        None => {
            connection.leave(clock.instant(clock.now() + GOODBYE)).await;
            Ok(())
        }
    }
}

/// Sends what the profile says; why the session is to be ended, if it is.
fn speak(connection: &mut Connection, turn: Turn) -> Option<Box<str>> {
    for text in &turn.say {
        connection.send(text);
    }
    turn.end.map(|end| end.to_string().into())
}

fn said_no(why: &str) -> String {
    format!(
        "accepts connections and then declines the client ({why}); check the profile and the credentials"
    )
}

fn declined(target: &str, outcome: &AttemptOutcome, transport: Transport) -> Error {
    let (asked, question, other) = match transport {
        Transport::Ws => (
            Asked::WebSocket,
            "the WebSocket handshake",
            "speak WebSocket",
        ),
        Transport::Sse => (
            Asked::EventStream,
            "the request for an event stream",
            "answer with an event stream",
        ),
    };
    let why = match outcome {
        AttemptOutcome::Refused => "refuses connections; is the server running there?".to_owned(),
        AttemptOutcome::Timeout => "doesn't answer a TCP connect; is the address right?".to_owned(),
        AttemptOutcome::Handshake {
            status: Some(status),
            why,
        } => {
            let hint = guess::from_answer(asked, *status, None);
            let hint = hint.unwrap_or("check path, headers and credentials");
            format!("answers {status} to {question} ({why}); {hint}")
        }
        // A proxy's and TLS's reasons say themselves what to do.
        AttemptOutcome::Handshake { status: None, why } if why.contains("; ") => {
            format!("can't be spoken to: {why}")
        }
        AttemptOutcome::Handshake { status: None, why } => {
            format!("doesn't {other} ({why}); check port and path")
        }
        AttemptOutcome::Local(why) => format!("can't be dialled: {why}"),
        AttemptOutcome::Opened | AttemptOutcome::Aborted => "can't be dialled".to_owned(),
    };
    Error::Broken(format!("{target} {why}"))
}

fn ending(cause: &Cause) -> String {
    match cause {
        Cause::Close {
            code: Some(code),
            reason,
        } if reason.is_empty() => format!("close {code}"),
        Cause::Close {
            code: Some(code),
            reason,
        } => format!("close {code}, \"{reason}\""),
        other => other.name().to_owned(),
    }
}
