//! Whether the target answers: a TCP connect, or an HTTP GET that must answer 2xx.
//!
//! It knows nothing of who runs the target, nor of what an answer means for an outage.

use std::io;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use url::Url;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::Elapsed;

/// How long one try may take.
const TRY: Duration = Duration::from_secs(1);
/// The pause between two tries while readiness is waited for.
pub const PACE: Duration = Duration::from_millis(20);

/// A question to the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    host: String,
    port: u16,
    /// The path and query of a GET; none = a TCP connect is enough.
    path: Option<String>,
}

impl Probe {
    /// A TCP connect to a URL's host and port. The scheme may be `ws`, `wss`, `http` or `https`.
    ///
    /// # Errors
    ///
    /// Usage where it is no URL with a host and a port.
    pub fn connect(url: &str) -> Result<Self, Error> {
        let (host, port, _) = address(url)?;
        Ok(Self {
            host,
            port,
            path: None,
        })
    }

    /// A GET of an `http://` URL, which must answer 2xx.
    ///
    /// # Errors
    ///
    /// Usage where it is no `http://` URL with a host.
    pub fn get(url: &str) -> Result<Self, Error> {
        let (host, port, parsed) = address(url)?;
        if parsed.scheme() != "http" {
            return Err(Error::Usage(format!(
                "readiness can't be asked over {}; use an http:// URL, or none for a TCP connect to the target",
                parsed.scheme()
            )));
        }
        Ok(Self {
            host,
            port,
            path: Some(parsed[url::Position::BeforePath..url::Position::AfterQuery].to_owned()),
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
        format!("{}:{}", self.host, self.port)
    }

    async fn ask(&self) -> Result<(), String> {
        let stream = dial(&self.host, self.port)
            .await
            .map_err(|e| format!("{} can't be connected to: {e}", self.peer()))?;
        match &self.path {
            None => Ok(()),
            Some(path) => self.ask_http(stream, path).await,
        }
    }

    async fn ask_http(&self, stream: TcpStream, path: &str) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| format!("{} answers no HTTP: {e}", self.peer());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| failed(&e))?;
        let request = hyper::Request::get(path)
            .header(HOST, self.peer())
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

fn address(url: &str) -> Result<(String, u16, Url), Error> {
    // The URL isn't quoted: what was filled in may be a secret.
    let wrong = |why: &str| {
        Error::Usage(format!(
            "the address to be asked for readiness {why}; use a URL such as ws://127.0.0.1:8080/live"
        ))
    };
    let parsed = Url::parse(url).map_err(|e| wrong(&format!("is no URL ({e})")))?;
    let host = parsed.host_str().ok_or_else(|| wrong("has no host"))?;
    let port = parsed
        .port_or_known_default()
        .ok_or_else(|| wrong("has no port"))?;
    // The brackets of an IPv6 address belong to URLs only.
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    Ok((host, port, parsed))
}

/// Connects. A connection that met itself counts as refused (rule 22 of judgement).
pub(crate) async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn urls_name_the_address() {
        let peer = |url| Probe::connect(url).map(|p| p.peer()).map_err(|_| ());
        assert_eq!(
            peer("ws://localhost/live?after="),
            Ok("localhost:80".into())
        );
        assert_eq!(peer("wss://example.org/x"), Ok("example.org:443".into()));
        assert_eq!(peer("http://[::1]:81"), Ok("::1:81".into()));
        assert_eq!(peer("localhost:80"), Err(()));
        assert_eq!(peer("nothing"), Err(()));
        assert!(matches!(Probe::get("https://a/"), Err(Error::Usage(_))));
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
        Probe::get(&url).unwrap()
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
        let probe = Probe::connect(&format!("ws://127.0.0.1:{}/", held.port())).unwrap();
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
