//! Whether the target answers: a TCP connect, or an HTTP GET that must answer 2xx.
//!
//! It knows nothing of who runs the target, nor of what an answer means for an outage.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use crate::clock::Clock;
use crate::error::Error;
use crate::history::{AttemptOutcome, Elapsed};
use crate::secrets::basic;
use crate::transport::network::Network;
use crate::transport::proxy::login;
use crate::transport::tls::Offer;
use crate::transport::wire::Wire;

/// How long one try may take.
const TRY: Duration = Duration::from_secs(1);
/// The pause between two tries while readiness is waited for.
pub const PACE: Duration = Duration::from_millis(20);

/// A question to the target.
#[derive(Debug, Clone)]
pub struct Probe {
    url: Url,
    network: Arc<Network>,
    question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Connect,
    Get,
}

impl Probe {
    /// A TCP connect to a URL's host and port. The scheme may be `ws`, `wss`, `http` or `https`.
    ///
    /// # Errors
    ///
    /// Usage where it is no URL with a host and a port.
    pub fn connect(url: &str, network: Arc<Network>) -> Result<Self, Error> {
        Ok(Self {
            url: address(url)?,
            network,
            question: Question::Connect,
        })
    }

    /// A GET of an `http://` or `https://` URL, which must answer 2xx. A user in it becomes basic authentication.
    ///
    /// # Errors
    ///
    /// Usage where it is no such URL with a host.
    pub fn get(url: &str, network: Arc<Network>) -> Result<Self, Error> {
        let url = address(url)?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(Error::Usage(format!(
                "readiness can't be asked over {}; use an http:// or https:// URL, or none for a TCP connect to the target",
                url.scheme()
            )));
        }
        Ok(Self {
            url,
            network,
            question: Question::Get,
        })
    }

    /// Asks once, for a second at most. `Err` says why the target isn't ready.
    ///
    /// # Errors
    ///
    /// What happened instead of a success.
    pub async fn once(&self) -> Result<(), String> {
        match tokio::time::timeout(TRY, self.ask()).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("{} did not answer within {TRY:?}", self.peer())),
        }
    }

    /// Asks until it succeeds; returns when it did. `Err` is what the last try met at the limit.
    ///
    /// # Errors
    ///
    /// The last failure, where the limit passed first.
    pub async fn wait_ready(&self, clock: Clock, limit: Duration) -> Result<Elapsed, String> {
        let until = clock.instant(clock.now() + limit);
        let mut last = format!("{} was not asked", self.peer());
        loop {
            match tokio::time::timeout_at(until, self.once()).await {
                Ok(Ok(())) => return Ok(clock.now()),
                Ok(Err(why)) => last = why,
                Err(_) => return Err(last),
            }
            if tokio::time::timeout_at(until, tokio::time::sleep(PACE))
                .await
                .is_err()
            {
                return Err(last);
            }
        }
    }

    /// Asks until it fails; returns when it did. Never returns while the target answers.
    pub async fn wait_gone(&self, clock: Clock, pace: Duration) -> Elapsed {
        loop {
            if self.once().await.is_err() {
                return clock.now();
            }
            tokio::time::sleep(pace).await;
        }
    }

    /// The address that is asked.
    #[must_use]
    pub fn peer(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    async fn ask(&self) -> Result<(), String> {
        let failed = |outcome: AttemptOutcome| {
            let why = match &outcome {
                AttemptOutcome::Refused => "connection refused",
                AttemptOutcome::Timeout => "no answer",
                AttemptOutcome::Handshake { why, .. } | AttemptOutcome::Local(why) => why,
                AttemptOutcome::Opened | AttemptOutcome::Aborted => "given up",
            };
            format!("{} can't be connected to: {why}", self.peer())
        };
        // Asked afresh: a server that comes back may have moved.
        let stream = self
            .network
            .reach(&self.url, None, None, None)
            .await
            .map_err(failed)?;
        if self.question == Question::Connect {
            return Ok(());
        }
        let wire = self.network.secure(stream, &self.url, Offer::Http1);
        self.ask_http(wire.await.map_err(failed)?).await
    }

    async fn ask_http(&self, wire: Wire) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| format!("{} answers no HTTP: {e}", self.peer());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(wire))
            .await
            .map_err(|e| failed(&e))?;
        let url = &self.url;
        let mut request = hyper::Request::get(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort]);
        if let Some(login) = login(url) {
            request = request.header(AUTHORIZATION, basic(&login));
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|e| failed(&e))?;
        let exchange = async {
            let response = sender.send_request(request).await;
            response.map(|r| r.status())
        };
        // The connection makes progress only while it is polled; it ends with this function. It may end in the very step
        // in which it brought the answer.
        tokio::pin!(connection);
        tokio::pin!(exchange);
        let status = tokio::select! {
            biased;
            status = &mut exchange => status,
            _ = &mut connection => exchange.await,
        }
        .map_err(|e| failed(&e))?;
        if status.is_success() {
            Ok(())
        } else {
            // The path may hold a secret.
            Err(format!("{} answers {status}", self.peer()))
        }
    }
}

fn address(url: &str) -> Result<Url, Error> {
    // The URL isn't quoted: what was filled in may be a secret.
    let wrong = |why: &str| {
        Error::Usage(format!(
            "the address to be asked for readiness {why}; use a URL such as ws://127.0.0.1:8080/live"
        ))
    };
    let parsed = Url::parse(url).map_err(|e| wrong(&format!("is no URL ({e})")))?;
    if parsed.host().is_none() {
        return Err(wrong("has no host"));
    }
    if parsed.port_or_known_default().is_none() {
        return Err(wrong("has no port"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn network() -> Arc<Network> {
        Arc::new(Network::plain(TRY))
    }

    #[test]
    fn urls_name_the_address() {
        let peer = |url| {
            Probe::connect(url, network())
                .map(|p| p.peer())
                .map_err(|_| ())
        };
        assert_eq!(
            peer("ws://localhost/live?after="),
            Ok("localhost:80".into())
        );
        assert_eq!(peer("wss://example.org/x"), Ok("example.org:443".into()));
        assert_eq!(peer("http://[::1]:81"), Ok("[::1]:81".into()));
        assert_eq!(peer("localhost:80"), Err(()));
        assert_eq!(peer("nothing"), Err(()));
        let refused = Probe::get("wss://a/", network());
        assert!(matches!(refused, Err(Error::Usage(_))));
    }

    async fn answering(answer: &'static str) -> Probe {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/healthz?a=b", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let n = stream.read(&mut request).await.unwrap_or(0);
                assert!(n == 0 || request.starts_with(b"GET /healthz?a=b HTTP/1.1"));
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Probe::get(&url, network()).unwrap()
    }

    #[tokio::test]
    async fn only_a_2xx_is_ready() {
        let no_content = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(no_content.once().await, Ok(()));
        let starting = answering("HTTP/1.1 503 Starting\r\ncontent-length: 0\r\n\r\n").await;
        assert!(starting.once().await.unwrap_err().contains("503"));
        assert!(answering("").await.once().await.is_err());
        assert!(answering("SSH-2.0-x\r\n").await.once().await.is_err());
    }

    #[tokio::test]
    async fn ready_waits_for_the_server_and_tells_what_it_met() {
        let held = crate::target::port::Held::pick().unwrap();
        let clock = Clock::start();
        let url = format!("ws://127.0.0.1:{}/", held.port());
        let probe = Probe::connect(&url, network()).unwrap();
        let why = probe
            .wait_ready(clock, Duration::from_millis(60))
            .await
            .unwrap_err();
        assert!(why.contains("refused"), "{why}");
        let (ready, listener) = tokio::join!(
            probe.wait_ready(clock, Duration::from_secs(30)),
            TcpListener::bind(("127.0.0.1", held.port()))
        );
        assert!(ready.is_ok());
        let gone = probe.wait_gone(clock, PACE);
        drop(listener);
        assert!(gone.await > ready.unwrap());
    }
}
