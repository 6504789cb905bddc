//! What is asked and how an answer is judged; what needs a socket is in the integration tests.

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::history::Cause;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The request line's target and the header lines.
fn asked(version: Version, address: &str, headers: &[(&str, &str)]) -> (String, Vec<String>) {
    let request = request(version, &url(address), &owned(headers)).unwrap();
    let lines = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    (request.uri().to_string(), lines.collect())
}

#[test]
fn the_request_says_what_the_standard_wants() {
    let (target, lines) = asked(
        Version::Http1,
        "http://h:80/a/b?x=1%2F2#part",
        &[("Last-Event-ID", "é 1")],
    );
    assert_eq!(target, "/a/b?x=1%2F2");
    assert_eq!(
        lines,
        [
            "host: h",
            "accept: text/event-stream",
            "cache-control: no-store",
            concat!("user-agent: herd/", env!("CARGO_PKG_VERSION")),
            "last-event-id: é 1",
        ]
    );
    let (target, lines) = asked(Version::Http1, "http://[::1]:8080", &[]);
    assert_eq!((&*target, &*lines[0]), ("/", "host: [::1]:8080"));
}

#[test]
fn the_users_headers_stand_in_for_herds_own() {
    let own = [
        ("ACCEPT", "application/json"),
        ("host", "front"),
        ("X-Twice", "1"),
        ("x-twice", "2"),
        ("Accept-Encoding", "gzip"),
    ];
    let (_, lines) = asked(Version::Http1, "http://h/", &own);
    assert_eq!(
        lines,
        [
            "host: front",
            "accept: application/json",
            "cache-control: no-store",
            concat!("user-agent: herd/", env!("CARGO_PKG_VERSION")),
            "accept-encoding: gzip",
            "x-twice: 1",
            "x-twice: 2",
        ]
    );
}

#[test]
fn http_2_has_its_host_in_the_target() {
    let (target, lines) = asked(Version::Http2, "https://h:8443/a?b", &[]);
    assert_eq!(target, "https://h:8443/a?b");
    assert!(!lines.iter().any(|line| line.starts_with("host")));
    assert_eq!(
        asked(Version::Http2, "https://h/a", &[("Host", "front")]).0,
        "https://front/a"
    );
}

#[test]
fn a_header_that_cant_be_sent_is_named_without_its_value() {
    for (name, value) in [("X", "hunter2\n"), ("X Y", "hunter2")] {
        let outcome =
            request(Version::Http1, &url("http://h/"), &owned(&[(name, value)])).unwrap_err();
        assert_eq!(
            outcome,
            AttemptOutcome::Local(format!("the header {name} can't be sent").into())
        );
    }
}

fn head(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let lines = lines.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(name, value);
    }
    map
}

fn said(status: u16, lines: &[(&'static str, &'static str)]) -> Result<Option<String>, String> {
    match judge(
        StatusCode::from_u16(status).unwrap(),
        &head(lines),
        &url("http://h/v1"),
    ) {
        Verdict::Stream => Ok(None),
        Verdict::Moved(to) => Ok(Some(to.into())),
        Verdict::Declined(why) => Err(why),
    }
}

#[test]
fn a_stream_is_200_with_its_content_type() {
    for lines in [
        &[("content-type", "text/event-stream")][..],
        &[("content-type", "Text/Event-Stream; charset=utf-8")],
        &[("content-type", " text/event-stream ;x")],
        &[
            ("content-type", "text/event-stream"),
            ("content-encoding", "none"),
        ],
        &[
            ("content-type", "text/event-stream"),
            ("content-encoding", "Identity, NONE"),
        ],
        &[
            ("content-type", "text/event-stream"),
            ("content-encoding", ""),
        ],
    ] {
        assert_eq!(said(200, lines), Ok(None), "{lines:?}");
    }
}

#[test]
fn everything_else_is_declined_with_the_reason() {
    for (status, lines, why) in [
        (
            200,
            &[][..],
            "answered no content type, not text/event-stream",
        ),
        (
            200,
            &[("content-type", "text/html; charset=x")],
            "answered text/html, not text/event-stream",
        ),
        (
            200,
            &[("content-type", "text/event-streams")],
            "answered text/event-streams, not text/event-stream",
        ),
        (
            200,
            &[
                ("content-type", "text/event-stream"),
                ("content-encoding", "gzip"),
            ],
            "answered in content-encoding gzip, which was not asked for; turn compression off for event streams",
        ),
        (204, &[], "answered 204 No Content"),
        (
            206,
            &[("content-type", "text/event-stream")],
            "answered 206 Partial Content",
        ),
        (304, &[("location", "/v2")], "answered 304 Not Modified"),
        (503, &[], "answered 503 Service Unavailable"),
        (599, &[], "answered 599 <unknown status code>"),
        (
            307,
            &[],
            "answered 307 Temporary Redirect without a Location",
        ),
        (
            302,
            &[("location", "ws://h/")],
            "answered 302 Found and redirects to ws://, not to http",
        ),
    ] {
        assert_eq!(
            said(status, lines),
            Err(why.to_owned()),
            "{status} {lines:?}"
        );
    }
}

#[test]
fn five_statuses_redirect() {
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(
            said(status, &[("location", "/v2")]),
            Ok(Some("http://h/v2".into())),
            "{status}"
        );
    }
}

#[test]
fn retry_after_is_seconds_or_a_date_by_the_servers_own_clock() {
    let date = ("date", "Mon, 30 Nov 2026 15:00:00 GMT");
    for (lines, seconds) in [
        (vec![("retry-after", "120")], Some(120)),
        (vec![("retry-after", " 0 ")], Some(0)),
        (
            vec![("retry-after", "99999999999999999999")],
            Some(u64::MAX),
        ),
        (
            vec![("retry-after", "Mon, 30 Nov 2026 15:01:30 GMT"), date],
            Some(90),
        ),
        (
            vec![("retry-after", "Mon, 30 Nov 2026 14:00:00 GMT"), date],
            Some(0),
        ),
        (vec![("retry-after", "Mon, 30 Nov 2026 15:01:30 GMT")], None),
        (vec![("retry-after", "soon"), date], None),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "")], None),
        (vec![date], None),
    ] {
        assert_eq!(
            retry_after(&head(&lines)),
            seconds.map(Duration::from_secs),
            "{lines:?}"
        );
    }
}

/// What a client is told that asks over HTTP/2 with prior knowledge: the data of the blocks, and the cause of the end.
async fn over_http_2<F: Future<Output = ()> + Send + 'static>(
    serve: impl FnOnce(h2::server::SendResponse<Bytes>, h2::server::Connection<TcpStream, Bytes>) -> F
    + Send
    + 'static,
) -> Result<(Vec<String>, Cause), AttemptOutcome> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (request, respond) = connection.accept().await.unwrap().unwrap();
        assert_eq!(*request.uri(), *format!("http://{address}/v1?x"));
        assert_eq!(request.headers()["last-event-id"], "7");
        serve(respond, connection).await;
    });
    let wire = Wire::Plain(TcpStream::connect(address).await.unwrap());
    let target = url(&format!("http://{address}/v1?x"));
    let headers = owned(&[("Last-Event-ID", "7")]);
    let reply = ask(wire, Version::Http2, &target, &headers, Limits::default()).await?;
    let mut connection = match reply.answer {
        Answer::Stream(connection, _) => connection,
        Answer::Declined(outcome) => return Err(outcome),
        Answer::Moved { .. } => panic!("{reply:?}"),
    };
    let mut data = Vec::new();
    let cause = loop {
        match poll_fn(|cx| connection.poll_next(cx)).await {
            Ok(block) => data.push(block.data),
            Err(cause) => break cause,
        }
    };
    // The server waits for that.
    drop(connection);
    server.await.unwrap();
    Ok((data, cause))
}

fn stream_head() -> Response<()> {
    let mut head = Response::new(());
    let value = HeaderValue::from_static("text/event-stream");
    head.headers_mut().insert(CONTENT_TYPE, value);
    head
}

/// What an HTTP/2 server does after some data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    /// GOAWAY without an error lets the stream go on.
    GoAway,
    Reset,
    Gone,
}

async fn some_data_and(
    end: End,
    mut respond: h2::server::SendResponse<Bytes>,
    mut connection: h2::server::Connection<TcpStream, Bytes>,
) {
    let mut body = respond.send_response(stream_head(), false).unwrap();
    for data in ["id: 8\nda", "ta: x\n\ndata: y\n\ndata: half"] {
        let data = Bytes::from_static(data.as_bytes());
        body.send_data(data, false).unwrap();
    }
    // Written before anything else happens.
    let is_open = poll_fn(|cx| Poll::Ready(connection.poll_closed(cx).is_pending())).await;
    assert!(is_open);
    match end {
        End::Clean => body.send_data(Bytes::new(), true).unwrap(),
        End::GoAway => {
            connection.graceful_shutdown();
            let data = Bytes::from_static(b"\n\n");
            body.send_data(data, true).unwrap();
        }
        End::Reset => body.send_reset(h2::Reason::INTERNAL_ERROR),
        End::Gone => return,
    }
    let _ = poll_fn(|cx| connection.poll_closed(cx)).await;
}

#[tokio::test]
async fn http_2_streams_are_read_and_their_ends_named() {
    for end in [End::Clean, End::GoAway, End::Reset, End::Gone] {
        let serve = move |respond, connection| some_data_and(end, respond, connection);
        let (data, cause) = over_http_2(serve).await.unwrap();
        let whole = ["x", "y", "half"];
        assert_eq!(data, whole[..if end == End::GoAway { 3 } else { 2 }]);
        match end {
            End::Clean | End::GoAway => assert_eq!(cause, Cause::Eof),
            // Whether the system says one or the other depends on what it held unread.
            End::Gone => assert!(matches!(cause, Cause::Eof | Cause::Reset), "{cause:?}"),
            End::Reset => {
                let why = "HTTP/2: stream error received: unexpected internal error encountered";
                assert_eq!(cause, Cause::Protocol(why.into()));
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_over_http_2_is_one() {
    let told = over_http_2(|mut respond, mut connection| async move {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let mut body = respond.send_response(head, false).unwrap();
        body.send_data(Bytes::from_static(b"busy"), true).unwrap();
        let _ = poll_fn(|cx| connection.poll_closed(cx)).await;
    })
    .await;
    let why = "answered 503 Service Unavailable: busy".into();
    assert_eq!(
        told,
        Err(AttemptOutcome::Handshake {
            status: Some(503),
            why
        })
    );
}
