//! One dial: waits until it is due, connects, shakes hands, and notes each instant.
//!
//! It stands apart from the client so that something with better timers than the runtime's can take its place. It knows
//! no policy: when a dial is due was decided elsewhere.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::history::{AttemptOutcome, Elapsed};
use crate::plan::Call;
use crate::transport::network::{Network, is_secure};
use crate::transport::tls::Offer;
use crate::transport::wire::Wire;
use crate::transport::{Connection, Limits, Opened, ws};

/// What is the same for every dial of a process.
#[derive(Debug)]
pub(super) struct Dialler {
    pub(super) clock: Clock,
    pub(super) network: Arc<Network>,
    pub(super) limits: Limits,
    /// Of one TCP connect, and of one handshake, TLS and all.
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
        let stream = self.network.reach(&call.url, source, Some(now)).await?;
        let connected = self.clock.now();
        stamps.connected = Some(connected);
        let offer = match call.url.scheme() {
            "https" => Offer::Http2,
            _ => Offer::Http1,
        };
        let (wire, left) = self.secure(stream, &call, offer, connected).await?;
        let (ws, headers) = ws::open(wire, &call.url, &call.headers, self.limits, left).await?;
        Ok(Opened {
            connection: Connection::Ws(ws),
            headers,
        })
    }

    /// TLS, where the URL wants it, and how much of the limit it leaves for the rest of the handshake.
    async fn secure(
        &self,
        stream: TcpStream,
        call: &Call,
        offer: Offer,
        connected: Elapsed,
    ) -> Result<(Wire, Duration), AttemptOutcome> {
        if !is_secure(&call.url) {
            return Ok((Wire::Plain(stream), self.timeout));
        }
        let shaking = self.network.secure(stream, &call.url, offer);
        let wire = timeout(self.timeout, shaking).await.unwrap_or_else(|_| {
            let why = format!("the TLS handshake had no end within {:?}", self.timeout);
            Err(AttemptOutcome::Handshake {
                status: None,
                why: why.into(),
            })
        })?;
        let left = self
            .timeout
            .saturating_sub(self.clock.now().since(connected));
        Ok((wire, Duration::from_millis(left.as_millis() as u64)))
    }
}
