//! The request for an event stream and the answer to it, over HTTP/1.1 or HTTP/2. It follows no redirect itself and
//! knows no policy: what to do after a refusal was decided elsewhere.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName,
    HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::timeout;
use url::{Position, Url};

use super::socket::Socket;
use super::{Connection, fault, redirect};
use crate::history::AttemptOutcome;
use crate::transport::wire::Wire;
use crate::transport::{Limits, safe};

/// The longest head of an answer, and the most that HTTP/1.1 reads at once (bytes). Buffers begin at 8 KiB.
const LONGEST_HEAD: usize = 64 * 1024;
/// How far a server may run ahead of what is read of an HTTP/2 stream (bytes).
const WINDOW: u32 = 256 * 1024;
/// How much of an answer is told (bytes).
const TEXT: usize = 100;
/// How long the beginning of a refusal's body is waited for.
const PEEK: Duration = Duration::from_millis(200);

/// Which HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

impl Version {
    /// HTTP/2 only where it was agreed on, which takes TLS.
    fn of(wire: &Wire) -> Self {
        match wire.alpn() {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// What a server answered.
#[derive(Debug)]
pub struct Reply {
    /// Whether that is a stream.
    pub answer: Answer,
    /// The delay that it named (`Retry-After`). A date is told by the server's own clock, the answer's `Date`.
    pub retry_after: Option<Duration>,
}

/// The kinds of answers.
#[derive(Debug)]
pub enum Answer {
    /// A stream, with the headers of the answer.
    Stream(Connection, HeaderMap),
    /// It is at another address.
    Moved {
        /// The status that said so.
        status: u16,
        /// Where; the scheme is http or https.
        to: Url,
    },
    /// No stream, as an [`AttemptOutcome::Handshake`].
    Declined(AttemptOutcome),
}

/// Asks for the stream at `url`, over HTTP/2 where TLS agreed on it. The user's headers stand in for herd's own of the same name.
///
/// # Errors
/// [`AttemptOutcome::Handshake`] where there is no answer, [`AttemptOutcome::Local`] where a header can't be sent. It
/// sets no time limit.
pub async fn open(
    wire: Wire,
    url: &Url,
    headers: &[(String, String)],
    limits: Limits,
) -> Result<Reply, AttemptOutcome> {
    let version = Version::of(&wire);
    ask(wire, version, url, headers, limits).await
}

async fn ask(
    wire: Wire,
    version: Version,
    url: &Url,
    headers: &[(String, String)],
    limits: Limits,
) -> Result<Reply, AttemptOutcome> {
    let request = request(version, url, headers)?;
    let response = send(wire, version, request)
        .await
        .map_err(|e| fault::outcome(&e))?;
    let (head, mut body) = response.into_parts();
    let retry_after = retry_after(&head.headers);
    let answer = match judge(head.status, &head.headers, url) {
        Verdict::Stream => Answer::Stream(Connection::new(body, limits), head.headers),
        Verdict::Moved(to) => Answer::Moved {
            status: head.status.as_u16(),
            to,
        },
        Verdict::Declined(why) => {
            let said = beginning(&mut body).await;
            Answer::Declined(failed(head.status, &why, &said))
        }
    };
    Ok(Reply {
        answer,
        retry_after,
    })
}

fn request(
    version: Version,
    url: &Url,
    headers: &[(String, String)],
) -> Result<Request<Empty<Bytes>>, AttemptOutcome> {
    // The value may be a secret: it isn't quoted.
    let local =
        |name: &str| AttemptOutcome::Local(format!("the header {name} can't be sent").into());
    let mut own = HeaderMap::new();
    for (name, value) in headers {
        let key = HeaderName::try_from(name).map_err(|_| local(name))?;
        own.append(
            key,
            HeaderValue::try_from(value.as_bytes()).map_err(|_| local(name))?,
        );
    }
    let host = match own.remove(HOST) {
        Some(host) => host,
        None => HeaderValue::try_from(&url[Position::BeforeHost..Position::AfterPort])
            .map_err(|_| local("Host"))?,
    };
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri(version, url, &host)
        .ok_or_else(|| AttemptOutcome::Local("the target's path can't be sent".into()))?;
    let all = request.headers_mut();
    if version == Version::Http1 {
        all.insert(HOST, host);
    }
    all.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    all.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let agent = HeaderValue::from_static(concat!("herd/", env!("CARGO_PKG_VERSION")));
    all.insert(USER_AGENT, agent);
    // The first of a name replaces, the next are added.
    all.extend(own);
    Ok(request)
}

fn uri(version: Version, url: &Url, host: &HeaderValue) -> Option<Uri> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    match version {
        Version::Http1 => path.parse().ok(),
        Version::Http2 => Uri::builder()
            .scheme(url.scheme())
            .authority(host.as_bytes())
            .path_and_query(path)
            .build()
            .ok(),
    }
}

/// Sends the request; the connection lives on in the body of the answer.
async fn send(
    wire: Wire,
    version: Version,
    request: Request<Empty<Bytes>>,
) -> hyper::Result<Response<Body>> {
    let io = TokioIo::new(Socket::new(wire));
    match version {
        Version::Http1 => {
            let (mut sender, connection) = http1::Builder::new()
                .max_buf_size(LONGEST_HEAD)
                .handshake(io)
                .await?;
            let answer = sender.send_request(request);
            answered(answer, Driver::new(connection, sender)).await
        }
        Version::Http2 => {
            let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_header_list_size(LONGEST_HEAD as u32)
                .handshake(io)
                .await?;
            let answer = sender.send_request(request);
            answered(answer, Driver::new(connection, sender)).await
        }
    }
}

async fn answered(
    answer: impl Future<Output = hyper::Result<Response<Incoming>>>,
    mut driver: Driver,
) -> hyper::Result<Response<Body>> {
    let mut answer = pin!(answer);
    let response = poll_fn(|cx| driver.pull(cx, |cx| answer.as_mut().poll(cx))).await?;
    Ok(response.map(|incoming| Body { incoming, driver }))
}

/// What moves a connection's bytes. It has no task of its own: whoever reads drives it, so that a client is one task and
/// nothing that arrived is ahead of what was read by more than a buffer.
struct Driver(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Driver {
    /// How the connection ends is told to whoever waits for an answer or a body, so its own result says nothing more.
    /// The sender is kept because without one HTTP/2 ends the connection.
    fn new<C, S>(connection: C, sender: S) -> Self
    where
        C: Future<Output = hyper::Result<()>> + Send + 'static,
        S: Send + 'static,
    {
        Self(Some(Box::pin(async move {
            let _ = connection.await;
            drop(sender);
        })))
    }

    /// Asks, and where there is nothing yet, moves what can be moved and asks again.
    fn pull<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut ask: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let first = ask(cx);
        if first.is_ready() {
            return first;
        }
        if let Some(connection) = &mut self.0
            && connection.as_mut().poll(cx).is_ready()
        {
            self.0 = None;
        }
        ask(cx)
    }
}

/// The body of an answer together with the connection that brings it.
pub(super) struct Body {
    incoming: Incoming,
    driver: Driver,
}

impl Body {
    /// The next bytes; none = the body is over.
    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Bytes>>> {
        let Self { incoming, driver } = self;
        driver.pull(cx, |cx| {
            loop {
                let frame = match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
                    Some(Ok(frame)) => frame,
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => return Poll::Ready(None),
                };
                // Trailers say nothing.
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
        })
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

enum Verdict {
    Stream,
    Moved(Url),
    Declined(String),
}

/// What an answer is by its head.
fn judge(status: StatusCode, headers: &HeaderMap, url: &Url) -> Verdict {
    let declined = |why: String| Verdict::Declined(why);
    match status.as_u16() {
        200 => match (content_type(headers), coding(headers)) {
            (Err(other), _) => declined(format!("answered {other}, not text/event-stream")),
            (_, Some(coding)) => declined(format!(
                "answered in content-encoding {coding}, which was not asked for; turn compression off for event streams"
            )),
            (Ok(()), None) => Verdict::Stream,
        },
        301 | 302 | 303 | 307 | 308 => match headers.get(LOCATION) {
            None => declined(format!("answered {status} without a Location")),
            Some(location) => {
                match redirect::target(url, &String::from_utf8_lossy(location.as_bytes())) {
                    Ok(to) => Verdict::Moved(to),
                    Err(why) => declined(format!("answered {status} and {why}")),
                }
            }
        },
        _ => declined(format!("answered {status}")),
    }
}

/// Whether it is an event stream; else what it is.
fn content_type(headers: &HeaderMap) -> Result<(), String> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Err("no content type".into());
    };
    let essence = value
        .as_bytes()
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default();
    if essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
    {
        return Ok(());
    }
    Err(safe(essence.trim_ascii(), TEXT).into())
}

/// The first coding that would have to be undone. "none" is no registered name, but servers use it to keep proxies from
/// compressing.
fn coding(headers: &HeaderMap) -> Option<Box<str>> {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|b| *b == b','))
        .map(<[u8]>::trim_ascii)
        .find(|name| !matches!(&*name.to_ascii_lowercase(), b"" | b"none" | b"identity"))
        .map(|name| safe(name, TEXT))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let value = text(RETRY_AFTER)?.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(text(DATE)?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// The beginning of what a refusal says, as far as it is there.
async fn beginning(body: &mut Body) -> Vec<u8> {
    let mut said = Vec::new();
    let read = async {
        while said.len() <= TEXT {
            match poll_fn(|cx| body.poll_chunk(cx)).await {
                Some(Ok(bytes)) => said.extend_from_slice(&bytes),
                _ => break,
            }
        }
    };
    let _ = timeout(PEEK, read).await;
    said
}

fn failed(status: StatusCode, why: &str, said: &[u8]) -> AttemptOutcome {
    let said = safe(said.trim_ascii(), TEXT);
    AttemptOutcome::Handshake {
        status: Some(status.as_u16()),
        why: match &*said {
            "" => why.into(),
            said => format!("{why}: {said}").into(),
        },
    }
}

#[cfg(test)]
mod tests;
