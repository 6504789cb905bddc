//! One event a POST, over a few kept connections, knowing exactly whether a byte of a request was written.
//!
//! That knowledge is why the connections are kept here and not by a ready-made client: rule 11 of judgement turns on it.
//! Nothing is sent again here; that is the lane's business.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use url::Url;

use super::Config;
use super::outcome::{Answer, Receipted};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{AttemptOutcome, Elapsed, Seq};
use crate::secrets::basic;
use crate::transport::network::Network;
use crate::transport::proxy::login;
use crate::transport::tls::Offer;
use crate::transport::wire::Wire;

/// How long a connect may take, and how long an answer.
const LIMIT: Duration = Duration::from_secs(10);
/// How many requests may be under way, so that a server that hangs can't take all of herd's descriptors.
const UNDER_WAY: usize = 1024;
/// How many idle connections are kept.
const KEPT: usize = 64;
/// A connection idle for longer may be closed by the server at any moment, so it isn't used any more.
const FRESH: Duration = Duration::from_secs(1);
/// The largest answer that is read.
const MAX_ANSWER: usize = 1 << 20;

type Connection = SendRequest<Full<Bytes>>;

pub(super) struct Poster {
    /// At least one.
    doors: Vec<Door>,
    /// The one that is used: the first, until it fails.
    current: AtomicUsize,
    network: Arc<Network>,
    run: String,
    answer_id: String,
    answer_position: Option<String>,
    clock: Clock,
    under_way: Semaphore,
}

/// One server that takes publications.
struct Door {
    url: Url,
    path: String,
    headers: HeaderMap,
    idle: Mutex<Vec<(Elapsed, Connection)>>,
}

impl Door {
    fn new(url: &str, headers: &[String]) -> Result<Self, Error> {
        // The URL isn't quoted: what was filled in may be a secret.
        let wrong = |why: String| {
            Error::Usage(format!(
                "can't publish to the URL that was given: {why}; use one such as http://127.0.0.1:8080/publish"
            ))
        };
        let parsed = Url::parse(url).map_err(|e| wrong(format!("it is no URL ({e})")))?;
        if !["http", "https"].contains(&parsed.scheme()) {
            return Err(wrong(format!("{} isn't supported", parsed.scheme())));
        }
        let host = parsed
            .host_str()
            .ok_or_else(|| wrong("it has no host".into()))?;
        let authority = match parsed.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let authority = HeaderValue::try_from(authority)
            .map_err(|_| wrong("its host is no header value".into()))?;
        let login = login(&parsed).map(|login| basic(&login));
        let mut defaults = HeaderMap::new();
        defaults.insert(HOST, authority);
        if let Some(login) = login.and_then(|login| HeaderValue::try_from(login).ok()) {
            defaults.insert(AUTHORIZATION, login);
        }
        Ok(Self {
            path: parsed[url::Position::BeforePath..url::Position::AfterQuery].into(),
            url: parsed,
            headers: all_headers(defaults, headers)?,
            idle: Mutex::new(Vec::new()),
        })
    }

    fn peer(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Elapsed, Connection)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, now: Elapsed) -> Option<Connection> {
        let oldest = now - FRESH;
        let mut idle = self.idle();
        idle.retain(|(since, connection)| *since >= oldest && !connection.is_closed());
        idle.pop().map(|(_, connection)| connection)
    }

    fn keep(&self, now: Elapsed, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push((now, connection));
        }
    }
}

impl Poster {
    /// Posts to the first of these URLs, of which there is at least one, and after a failure to the next.
    pub(super) fn new(
        urls: &[String],
        headers: &[String],
        config: &Config,
        clock: Clock,
    ) -> Result<Self, Error> {
        let doors = urls.iter().map(|url| Door::new(url, headers));
        Ok(Self {
            doors: doors.collect::<Result<_, _>>()?,
            current: AtomicUsize::new(0),
            network: config.network.clone(),
            run: config.run.clone(),
            answer_id: config.answer_id.clone(),
            answer_position: config.answer_position.clone(),
            clock,
            under_way: Semaphore::new(UNDER_WAY),
        })
    }

    /// Sends one event once.
    pub(super) async fn post(&self, seq: Seq, body: String) -> Answer {
        let current = self.current.load(Relaxed);
        let door = &self.doors[current % self.doors.len()];
        let answer = self.post_to(door, seq, body).await;
        if !matches!(answer, Answer::Accepted(_)) {
            // Others that failed meanwhile mean the same server, so it is left once.
            let next = current.wrapping_add(1);
            let _ = self
                .current
                .compare_exchange(current, next, Relaxed, Relaxed);
        }
        answer
    }

    async fn post_to(&self, door: &Door, seq: Seq, body: String) -> Answer {
        let Ok(_permit) = self.under_way.try_acquire() else {
            return Answer::Unsent(format!("{UNDER_WAY} requests wait for an answer already"));
        };
        let mut request = match self.request(door, seq, body) {
            Ok(request) => request,
            Err(e) => return Answer::Unsent(e.to_string()),
        };
        loop {
            let (mut connection, kept) = match door.kept(self.clock.now()) {
                Some(connection) => (connection, Kept::Yes),
                None => match self.connect(door).await {
                    Ok(connection) => (connection, Kept::No),
                    Err(why) => return Answer::Unsent(why),
                },
            };
            match self.exchange(&mut connection, request).await {
                Exchange::Answered(answer) => {
                    door.keep(self.clock.now(), connection);
                    return answer;
                }
                Exchange::Over(answer) => return answer,
                // A kept connection that was closed meanwhile took nothing; there may be another, or a new one.
                Exchange::Untouched(back, _) if kept == Kept::Yes => request = *back,
                Exchange::Untouched(_, why) => return Answer::Unsent(why),
            }
        }
    }

    fn request(
        &self,
        door: &Door,
        seq: Seq,
        body: String,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::post(&door.path)
            .header("idempotency-key", format!("herd-{}-{}", self.run, seq.0))
            .body(Full::new(Bytes::from(body)))?;
        request.headers_mut().extend(door.headers.clone());
        Ok(request)
    }

    async fn connect(&self, door: &Door) -> Result<Connection, String> {
        let peer = door.peer();
        let wire = match tokio::time::timeout(LIMIT, self.wire(door)).await {
            Ok(Ok(wire)) => wire,
            Ok(Err(e)) => return Err(format!("can't connect to {peer}: {}", why(&e))),
            Err(_) => return Err(format!("{peer} took no connection within {LIMIT:?}")),
        };
        let (sender, driver) = http1::handshake(TokioIo::new(wire))
            .await
            .map_err(|e| format!("can't speak HTTP to {peer}: {e}"))?;
        // Ends with the connection: when the server closes it, or when the last handle is dropped.
        tokio::spawn(driver);
        Ok(sender)
    }

    async fn wire(&self, door: &Door) -> Result<Wire, AttemptOutcome> {
        let now = self.clock.now();
        let stream = self.network.reach(&door.url, None, Some(now), None).await?;
        self.network.secure(stream, &door.url, Offer::Http1).await
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
    ) -> Exchange {
        let until = self.clock.instant(self.clock.now() + LIMIT);
        let lost = |why: String| Exchange::Over(Answer::Lost(why));
        let sent = connection.try_send_request(request);
        let response = match tokio::time::timeout_at(until, sent).await {
            Err(_) => return lost(format!("no answer within {LIMIT:?}")),
            Ok(Ok(response)) => response,
            Ok(Err(mut e)) => {
                let message = e.take_message();
                let why = e.into_error().to_string();
                return match message {
                    Some(request) => Exchange::Untouched(Box::new(request), why),
                    None => lost(format!("the answer was lost: {why}")),
                };
            }
        };
        let status = response.status();
        let body = tokio::time::timeout_at(until, collect(response.into_body())).await;
        let body = body.ok().flatten();
        let kept = body.is_some();
        let answer = if status.is_success() {
            // The server said so, even where the rest of its answer is missing.
            Answer::Accepted(Receipted::read(
                &body.unwrap_or_default(),
                &self.answer_id,
                self.answer_position.as_deref(),
            ))
        } else {
            Answer::Status(status.as_u16())
        };
        if kept {
            Exchange::Answered(answer)
        } else {
            Exchange::Over(answer)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

enum Exchange {
    /// Answered to the end; the connection can be used again.
    Answered(Answer),
    /// The connection can't be used again.
    Over(Answer),
    /// Nothing of the request was written.
    Untouched(Box<Request<Full<Bytes>>>, String),
}

async fn collect(body: Incoming) -> Option<Bytes> {
    let all = Limited::new(body, MAX_ANSWER).collect().await.ok()?;
    Some(all.to_bytes())
}

/// Why there is no connection.
fn why(outcome: &AttemptOutcome) -> &str {
    match outcome {
        AttemptOutcome::Refused => "connection refused",
        AttemptOutcome::Timeout => "no answer to a TCP connect",
        AttemptOutcome::Handshake { why, .. } | AttemptOutcome::Local(why) => why,
        AttemptOutcome::Opened | AttemptOutcome::Aborted => "given up",
    }
}

/// The user's lines over herd's defaults.
fn all_headers(mut headers: HeaderMap, lines: &[String]) -> Result<HeaderMap, Error> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut own = HeaderMap::new();
    for line in lines {
        // The value may be a secret: it isn't quoted.
        let name = line.split(':').next().unwrap_or_default();
        let wrong = || {
            Error::Usage(format!(
                "the header {name:?} can't be sent; write it as \"Name: value\""
            ))
        };
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        let value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
        own.append(name, value);
    }
    for name in own.keys() {
        headers.remove(name);
    }
    headers.extend(own);
    Ok(headers)
}

impl std::fmt::Debug for Poster {
    /// Without the headers, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poster")
            .field("peer", &self.doors[0].peer())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> Result<Vec<(String, String)>, String> {
        let lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        let mut defaults = HeaderMap::new();
        defaults.insert(HOST, HeaderValue::from_static("h"));
        let all = all_headers(defaults, &lines).map_err(|e| e.to_string())?;
        let mut all: Vec<_> = all
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        Ok(all)
    }

    #[test]
    fn the_users_headers_replace_the_defaults_and_may_repeat() {
        let all = headers(&["Content-Type: text/plain", "X-A: 1", "x-a:2: 3"]).unwrap();
        let all: Vec<_> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            all,
            [
                ("content-type", "text/plain"),
                ("host", "h"),
                ("x-a", "1"),
                ("x-a", "2: 3")
            ]
        );
    }

    #[test]
    fn a_bad_header_is_named_without_its_value() {
        for line in ["no colon", "bad name: x", "X: a\nb"] {
            assert!(headers(&[line]).is_err(), "{line:?}");
        }
        let said = headers(&["X Token: hunter2"]).unwrap_err();
        assert!(
            said.contains("X Token") && !said.contains("hunter2"),
            "{said}"
        );
    }
}
