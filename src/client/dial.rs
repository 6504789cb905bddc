//! One dial: waits until it is due, connects, shakes hands, and notes each instant.
//!
//! It stands apart from the client so that something with better timers than the runtime's can take its place. It knows
//! no policy: when a dial is due was decided elsewhere.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use crate::clock::Clock;
use crate::history::{AttemptOutcome, ClientId, Elapsed};
use crate::plan::Call;
use crate::scenario::{Connect, Scenario};
use crate::transport::network::{Network, is_secure};
use crate::transport::tls::Offer;
use crate::transport::tunnel::Tunnels;
use crate::transport::wire::Wire;
use crate::transport::{Connection, Limits, Opened, sse, ws};

/// What is the same for every dial of a process.
#[derive(Debug)]
pub struct Dialler {
    pub(super) clock: Clock,
    pub(super) network: Arc<Network>,
    pub(super) limits: Limits,
    /// Of one TCP connect, and of one handshake, TLS and all, where the scenario says it: then it stands above the policy's.
    pub(super) timeout: Option<Duration>,
}

/// When a dial is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// When.
    pub at: Elapsed,
    /// The limit of its TCP connect, and of its handshake; none = the run's.
    pub within: Option<Duration>,
}

impl Due {
    /// A dial with the run's limit.
    #[must_use]
    pub fn at(at: Elapsed) -> Self {
        Self { at, within: None }
    }
}

/// From where a dial goes out, and through what.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// The local address; none = the system's choice.
    pub source: Option<IpAddr>,
    /// The tunnels that a client's dials go through; none = straight to the target.
    pub tunnels: Option<(&'a Tunnels, ClientId)>,
}

impl Way<'_> {
    /// Straight to the target.
    #[must_use]
    pub fn straight(source: Option<IpAddr>) -> Self {
        Self {
            source,
            tunnels: None,
        }
    }

    async fn reach(
        self,
        network: &Network,
        url: &Url,
        now: Elapsed,
        limit: Duration,
    ) -> Result<TcpStream, AttemptOutcome> {
        match self.tunnels {
            Some((tunnels, client)) => tunnels.reach(client, url, self.source, limit).await,
            None => {
                let reaching = network.reach(url, self.source, Some(now), Some(limit));
                reaching.await
            }
        }
    }
}

/// When a dial's steps happened, as far as it came; they outlive a dial that is given up midway.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stamps {
    /// When it was begun.
    pub dialled: Option<Elapsed>,
    /// When the way to the target was there.
    pub connected: Option<Elapsed>,
    /// The delay that the server's refusal named (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl Dialler {
    /// Dials as a scenario wants it.
    #[must_use]
    pub fn new(scenario: &Scenario, network: Arc<Network>, clock: Clock) -> Self {
        Self {
            clock,
            network,
            limits: Limits {
                message: scenario.connect.max_message,
            },
            timeout: scenario.connect.timeout,
        }
    }

    /// Dials when it is due; words that could not be found are an outcome of the dial like any other.
    ///
    /// # Errors
    /// Every outcome but [`AttemptOutcome::Opened`].
    pub async fn dial(
        &self,
        due: Due,
        call: Result<Call, String>,
        way: Way<'_>,
        stamps: &mut Stamps,
    ) -> Result<Opened, AttemptOutcome> {
        tokio::time::sleep_until(self.clock.instant(due.at)).await;
        let limit = self.timeout.or(due.within);
        let limit = limit.unwrap_or(Connect::USUAL_TIMEOUT);
        let now = self.clock.now();
        stamps.dialled = Some(now);
        let call = call.map_err(|why| AttemptOutcome::Local(why.into()))?;
        let stream = way.reach(&self.network, &call.url, now, limit).await?;
        let connected = self.clock.now();
        stamps.connected = Some(connected);
        if is_stream(&call.url) {
            let asking = self.stream(stream, call, way, (limit, stamps));
            return timeout(limit, asking)
                .await
                .unwrap_or_else(|_| Err(failed(None, format!("no answer within {limit:?}"))));
        }
        let (wire, left) = self.secure(stream, &call, limit, connected).await?;
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
        limit: Duration,
        connected: Elapsed,
    ) -> Result<(Wire, Duration), AttemptOutcome> {
        if !is_secure(&call.url) {
            return Ok((Wire::Plain(stream), limit));
        }
        let shaking = self.network.secure(stream, &call.url, Offer::Http1);
        let wire = timeout(limit, shaking).await.unwrap_or_else(|_| {
            let why = format!("the TLS handshake had no end within {limit:?}");
            Err(failed(None, why))
        })?;
        let left = limit.saturating_sub(self.clock.now().since(connected));
        Ok((wire, Duration::from_millis(left.as_millis() as u64)))
    }

    /// Asks for an event stream and follows redirects. The dial is past its connect, so whatever fails behind a redirect
    /// fails the handshake.
    async fn stream(
        &self,
        mut stream: TcpStream,
        mut call: Call,
        way: Way<'_>,
        (limit, stamps): (Duration, &mut Stamps),
    ) -> Result<Opened, AttemptOutcome> {
        for _ in 0..=sse::redirect::MOST {
            let wire = self.network.secure(stream, &call.url, Offer::Http2).await?;
            let reply = sse::open(wire, &call.url, &call.headers, self.limits).await?;
            stamps.retry_after = reply.retry_after;
            let (status, to) = match reply.answer {
                sse::Answer::Stream(connection, headers) => {
                    return Ok(Opened {
                        connection: Connection::Sse(connection),
                        headers,
                    });
                }
                sse::Answer::Declined(outcome) => return Err(outcome),
                sse::Answer::Moved { status, to } => (Some(status), to),
            };
            let now = self.clock.now();
            let reached = way.reach(&self.network, &to, now, limit).await;
            stream = reached.map_err(|outcome| match outcome {
                AttemptOutcome::Refused => {
                    failed(status, "redirects to where nobody listens".into())
                }
                AttemptOutcome::Timeout => {
                    failed(status, "redirects to where nobody answers".into())
                }
                other => other,
            })?;
            sse::redirect::retain(&mut call.headers, &call.url, &to);
            call.url = to;
        }
        Err(failed(
            None,
            format!("over {} redirects", sse::redirect::MOST),
        ))
    }
}

fn is_stream(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn failed(status: Option<u16>, why: String) -> AttemptOutcome {
    AttemptOutcome::Handshake {
        status,
        why: why.into(),
    }
}
