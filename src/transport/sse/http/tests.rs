//! What is asked and how an answer is judged; what needs a socket is in the integration tests.

use super::*;

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
