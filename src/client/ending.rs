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
        // herd's own trouble is no refusal, and no library dies of it.
        AttemptOutcome::Local(_) => Ending::Lost,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::{Next, Passed, Retries, presets};

    #[test]
    fn nobody_dies_of_herds_own_trouble() {
        let policy = (presets::find("graphql-ws").unwrap().policy)();
        let next = |outcome: AttemptOutcome| {
            Retries::new(1, 1).next(&policy, of_dial(&outcome), Passed::default())
        };
        let no_port = AttemptOutcome::Local("no port".into());
        assert!(matches!(next(no_port), Next::Wait { .. }));
        assert_eq!(next(AttemptOutcome::Refused), Next::Fatal);
    }

    #[test]
    fn only_a_stream_ends_in_order_without_a_frame() {
        assert_eq!(of_session(&Cause::Eof, Transport::Sse), Ending::Eof);
        assert_eq!(of_session(&Cause::Eof, Transport::Ws), Ending::Lost);
        assert_eq!(of_session(&Cause::Cut, Transport::Sse), Ending::Lost);
    }
}
