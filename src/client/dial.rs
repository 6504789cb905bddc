//! One dial: waits until it is due, connects, shakes hands, and notes each instant.
//!
//! It stands apart from the client so that something with better timers than the runtime's can take its place. It knows
//! no policy: when a dial is due was decided elsewhere.

use std::net::IpAddr;
use std::time::Duration;

use crate::clock::Clock;
use crate::history::{AttemptOutcome, Elapsed};
use crate::plan::Call;
use crate::transport::names::Names;
use crate::transport::wire::Wire;
use crate::transport::{Connection, Limits, Opened, safe, tcp, ws};

/// What is the same for every dial of a process.
#[derive(Debug)]
pub(super) struct Dialler {
    pub(super) clock: Clock,
    pub(super) names: Names,
    pub(super) limits: Limits,
    /// Of one TCP connect, and of one handshake.
    pub(super) timeout: Duration,
}

/// When a dial's steps happened, as far as it came; they outlive a dial that is given up midway.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    pub(super) dialled: Option<Elapsed>,
    pub(super) connected: Option<Elapsed>,
    /// The delay that the server's refusal named (`Retry-After`).
    pub(super) retry_after: Option<Duration>,
}

impl Dialler {
    /// Dials at `due`; words that could not be found are an outcome of the dial like any other.
    ///
    /// # Errors
    /// Every outcome but [`AttemptOutcome::Opened`].
    pub(super) async fn dial(
        &self,
        due: Elapsed,
        call: Result<Call, String>,
        source: Option<IpAddr>,
        stamps: &mut Stamps,
    ) -> Result<Opened, AttemptOutcome> {
        tokio::time::sleep_until(self.clock.instant(due)).await;
        let now = self.clock.now();
        stamps.dialled = Some(now);
        let call = call.map_err(|why| AttemptOutcome::Local(why.into()))?;
        let addresses = self.names.addresses(&call.url, now).await.map_err(|e| {
            let text = format!("the target's name can't be resolved: {e}");
            AttemptOutcome::Local(safe(text.as_bytes(), 200))
        })?;
        let stream = tcp::connect(&addresses, source, self.timeout).await?;
        stamps.connected = Some(self.clock.now());
        let wire = Wire::Plain(stream);
        let (ws, headers) =
            ws::open(wire, &call.url, &call.headers, self.limits, self.timeout).await?;
        Ok(Opened {
            connection: Connection::Ws(ws),
            headers,
        })
    }
}
