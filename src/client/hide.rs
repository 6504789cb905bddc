//! What a server says of a client, without the secrets that the client told it.
//!
//! Only failures pass through here: an event's frame is read, not written down. What one client is told may be another
//! one's secret.

use crate::history::{AttemptOutcome, Cause, ClientId};
use crate::plan::Plan;
use crate::secrets::Secrets;

/// The texts that a client's server may repeat: those of the run, and this client's own words.
pub(crate) fn secrets(run: &Secrets, plan: &Plan, client: ClientId) -> Secrets {
    let mut all = run.clone();
    // Without a cursor: an id is no secret, and a refusal that names it is worth reading.
    let calls = (0..plan.targets()).map(|target| plan.call(client, target, None, &[]));
    let Ok(calls) = calls.collect::<Result<Vec<_>, _>>() else {
        return all;
    };
    for (name, value) in calls.iter().flat_map(|call| &call.headers) {
        all.add_header(name, value);
    }
    for value in plan.values(client, 0).row.values.iter().flatten() {
        all.add(value);
    }
    let number = client.0.to_string();
    for (_, value) in calls.iter().flat_map(|call| call.url.query_pairs()) {
        if value != number {
            all.add(&value);
        }
    }
    all
}

/// An outcome with its text made fit to be stored.
pub(super) fn outcome(
    outcome: AttemptOutcome,
    hide: impl FnOnce(&str) -> Box<str>,
) -> AttemptOutcome {
    match outcome {
        AttemptOutcome::Handshake { status, why } => AttemptOutcome::Handshake {
            status,
            why: hide(&why),
        },
        AttemptOutcome::Local(why) => AttemptOutcome::Local(hide(&why)),
        other => other,
    }
}

/// A cause with its text made fit to be stored.
pub(super) fn cause(cause: Cause, hide: impl FnOnce(&str) -> Box<str>) -> Cause {
    match cause {
        Cause::Close { code, reason } if !reason.is_empty() => Cause::Close {
            code,
            reason: hide(&reason),
        },
        Cause::Protocol(why) => Cause::Protocol(hide(&why)),
        Cause::Declined(why) => Cause::Declined(hide(&why)),
        Cause::Io(why) => Cause::Io(hide(&why)),
        other => other,
    }
}
