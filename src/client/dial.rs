//! One dial: waits until it is due, connects, shakes hands, and notes each instant.
//!
//! It stands apart from the client so that something with better timers than the runtime's can take its place. It knows
//! no policy: when a dial is due was decided elsewhere.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;
use url::Url;

use crate::clock::Clock;
use crate::history::{AttemptOutcome, Elapsed};
use crate::plan::Call;
use crate::transport::names::Names;
use crate::transport::wire::Wire;
use crate::transport::{Connection, Limits, Opened, safe, sse, tcp, ws};

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
        let wire = self.wire(&call.url, source).await?;
        stamps.connected = Some(self.clock.now());
        if matches!(call.url.scheme(), "http" | "https") {
            return timeout(self.timeout, self.stream(wire, call, source, stamps))
                .await
                .unwrap_or_else(|_| {
                    Err(failed(
                        None,
                        &format!("no answer within {:?}", self.timeout),
                    ))
                });
        }
        let (ws, headers) =
            ws::open(wire, &call.url, &call.headers, self.limits, self.timeout).await?;
        Ok(Opened {
            connection: Connection::Ws(ws),
            headers,
        })
    }

    /// Connects to where a URL points.
    async fn wire(&self, url: &Url, source: Option<IpAddr>) -> Result<Wire, AttemptOutcome> {
        let addresses = self
            .names
            .addresses(url, self.clock.now())
            .await
            .map_err(|e| {
                let text = format!("the target's name can't be resolved: {e}");
                AttemptOutcome::Local(safe(text.as_bytes(), 200))
            })?;
        let stream = tcp::connect(&addresses, source, self.timeout).await?;
        Ok(Wire::Plain(stream))
    }

    /// Asks for an event stream and follows redirects. The dial is past its connect, so whatever fails behind a redirect
    /// fails the handshake.
    async fn stream(
        &self,
        mut wire: Wire,
        mut call: Call,
        source: Option<IpAddr>,
        stamps: &mut Stamps,
    ) -> Result<Opened, AttemptOutcome> {
        for _ in 0..=sse::redirect::MOST {
            let version = sse::Version::Http1;
            let reply = sse::open(wire, version, &call.url, &call.headers, self.limits).await?;
            stamps.retry_after = reply.retry_after;
            match reply.answer {
                sse::Answer::Stream(connection, headers) => {
                    return Ok(Opened {
                        connection: Connection::Sse(connection),
                        headers,
                    });
                }
                sse::Answer::Declined(outcome) => return Err(outcome),
                sse::Answer::Moved { status, to } => {
                    wire = self
                        .wire(&to, source)
                        .await
                        .map_err(|outcome| match outcome {
                            AttemptOutcome::Refused => {
                                failed(Some(status), "redirects to where nobody listens")
                            }
                            AttemptOutcome::Timeout => {
                                failed(Some(status), "redirects to where nobody answers")
                            }
                            other => other,
                        })?;
                    sse::redirect::retain(&mut call.headers, &call.url, &to);
                    call.url = to;
                }
            }
        }
        Err(failed(
            None,
            &format!("over {} redirects", sse::redirect::MOST),
        ))
    }
}

fn failed(status: Option<u16>, why: &str) -> AttemptOutcome {
    AttemptOutcome::Handshake {
        status,
        why: why.into(),
    }
}
