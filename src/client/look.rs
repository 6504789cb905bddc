//! One client's first look at the target, before the herd is let loose.
//!
//! It records nothing and judges nothing: it only finds out whether the target can be spoken to at all, and with which
//! words it declines.

use std::sync::Arc;
use std::time::Duration;

use super::dial::{Dialler, Stamps};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{AttemptOutcome, Cause, ClientId};
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::transport::Limits;
use crate::transport::network::Network;

/// How long a connection must stay open to be one; a server that closes at once does so within this.
const STAYS: Duration = Duration::from_millis(300);
/// How long the server may take to answer the goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Dials once.
///
/// # Errors
/// [`Error::Broken`] with what the target answered instead of an open connection.
pub async fn first_look(
    scenario: &Scenario,
    plan: &Plan,
    network: Arc<Network>,
    clock: Clock,
) -> Result<(), Error> {
    let dialler = Dialler {
        clock,
        network: network.clone(),
        limits: Limits {
            message: scenario.connect.max_message,
        },
        timeout: scenario.connect.timeout,
    };
    let first = ClientId(scenario.shard.index);
    let call = plan.call(first, "");
    if let Ok(call) = &call {
        network.find(&call.url).await?;
    }
    let mut stamps = Stamps::default();
    let dial = dialler
        .dial(clock.now(), call, plan.source(first), &mut stamps)
        .await;
    let target = scenario.masked().target.url;
    let opened = dial.map_err(|outcome| declined(&target, &outcome))?;
    let mut connection = opened.connection;
    let closed = async {
        loop {
            if let Err(cause) = std::future::poll_fn(|cx| connection.poll_next(cx)).await {
                return cause;
            }
        }
    };
    match tokio::time::timeout(STAYS, closed).await {
        Ok(cause) => Err(Error::Broken(format!(
            "{target} accepts connections and ends them at once ({}); see why in the server's log",
            ending(&cause)
        ))),
        Err(_) => {
            connection.leave(clock.instant(clock.now() + GOODBYE)).await;
            Ok(())
        }
    }
}

fn declined(target: &str, outcome: &AttemptOutcome) -> Error {
    let why = match outcome {
        AttemptOutcome::Refused => "refuses connections; is the server running there?".to_owned(),
        AttemptOutcome::Timeout => "doesn't answer a TCP connect; is the address right?".to_owned(),
        AttemptOutcome::Handshake {
            status: Some(status),
            why,
        } => {
            format!(
                "answers {status} to the WebSocket handshake ({why}); check path, headers and credentials"
            )
        }
        // A proxy's and TLS's reasons say themselves what to do.
        AttemptOutcome::Handshake { status: None, why } if why.contains("; ") => {
            format!("can't be spoken to: {why}")
        }
        AttemptOutcome::Handshake { status: None, why } => {
            format!("doesn't speak WebSocket ({why}); check port and path")
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
