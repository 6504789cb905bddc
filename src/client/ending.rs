//! Ends of dials and sessions as policies see them: the record's many ways, cut down to those that a client tells apart.

use crate::backoff::{Ending, Says};
use crate::history::{AttemptOutcome, Cause};
use crate::profile::Transport;

/// Of a dial that did not open.
#[must_use]
pub(crate) fn of_dial(outcome: &AttemptOutcome) -> Ending {
    match outcome {
        AttemptOutcome::Handshake {
            status: Some(status),
            ..
        } => Ending::Status(*status),
        _ => Ending::Unconnected,
    }
}

/// Of a session.
#[must_use]
pub(crate) fn of_session(cause: &Cause, transport: Transport) -> Ending {
    match cause {
        Cause::Close { code, reason } => Ending::Close {
            // RFC 6455 calls a close frame without a code 1005.
            code: code.unwrap_or(1005),
            says: Says::of(reason),
        },
        Cause::Eof if transport == Transport::Sse => Ending::Eof,
        Cause::Declined(_) => Ending::Declined,
        _ => Ending::Lost,
    }
}
