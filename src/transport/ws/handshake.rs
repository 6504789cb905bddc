//! The opening handshake (RFC 6455, section 4.1), read as leniently as browsers read it and no more.
//!
//! Not tungstenite's own: that one refuses `Connection: keep-alive, Upgrade`, loses the status of an HTTP/1.0 answer, takes
//! a slow answer for an attack, and leaves its 4 KiB buffer with every client.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::{Response, generate_key};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse;
use tokio_tungstenite::tungstenite::http::HeaderMap;
use url::{Position, Url};

use super::Connection;
use crate::history::AttemptOutcome;
use crate::transport::tls::reason;
use crate::transport::wire::Wire;
use crate::transport::{Limits, is_reset, safe};

/// The longest answer, headers and all (bytes).
const LONGEST_HEAD: usize = 64 * 1024;
/// How much of an answer is told (bytes).
const TEXT: usize = 100;

/// Makes a TCP connection a WebSocket connection within `limit`. Header names must be tokens and values free of line
/// breaks.
///
/// # Errors
/// [`AttemptOutcome::Handshake`] with the HTTP status where one was answered: redirects are not followed.
pub async fn open(
    mut stream: Wire,
    url: &Url,
    headers: &[(String, String)],
    limits: Limits,
    limit: Duration,
) -> Result<(Connection, HeaderMap), AttemptOutcome> {
    let key = generate_key();
    let talk = async {
        stream
            .write_all(request(url, headers, &key).as_bytes())
            .await
            .map_err(|e| broken(&e))?;
        answer(&mut stream).await
    };
    let (head, rest) = timeout(limit, talk)
        .await
        .unwrap_or_else(|_| Err(failed(None, format!("no answer within {limit:?}"))))?;
    let answered = verify(&head, &key, asked_protocols(headers))?;
    Ok((Connection::new(stream, rest, limits).await, answered))
}

fn request(url: &Url, headers: &[(String, String)], key: &str) -> String {
    let mut text = format!(
        "GET {} HTTP/1.1\r\n",
        &url[Position::BeforePath..Position::AfterQuery]
    );
    let mut line = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            text.push_str(part);
        }
    };
    let given = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !given("host") {
        line("Host", &url[Position::BeforeHost..Position::AfterPort]);
    }
    line("Connection", "Upgrade");
    line("Upgrade", "websocket");
    line("Sec-WebSocket-Version", "13");
    line("Sec-WebSocket-Key", key);
    if !given("user-agent") {
        line("User-Agent", concat!("herd/", env!("CARGO_PKG_VERSION")));
    }
    for (name, value) in headers {
        line(name, value);
    }
    text.push_str("\r\n");
    text
}

/// Reads up to the end of the headers: the head, and what came behind it.
async fn answer(stream: &mut Wire) -> Result<(Vec<u8>, Vec<u8>), AttemptOutcome> {
    let mut head = Vec::with_capacity(512);
    loop {
        let before = head.len();
        if stream.read_buf(&mut head).await.map_err(|e| broken(&e))? == 0 {
            return Err(failed(
                None,
                match before {
                    0 => "closed without an answer".into(),
                    _ => format!("closed in mid-answer: {}", safe(&head, TEXT)),
                },
            ));
        }
        refuse(&head)?;
        let from = before.saturating_sub(3);
        if let Some(end) = head[from..].windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = head.split_off(from + end + 4);
            return Ok((head, rest));
        }
        if head.len() > LONGEST_HEAD {
            return Err(failed(
                Some(101),
                format!("headers of over {LONGEST_HEAD} bytes"),
            ));
        }
    }
}

/// Refuses as soon as it can be known that this will be no WebSocket: a server may send nothing more and hold the line.
fn refuse(head: &[u8]) -> Result<(), AttemptOutcome> {
    const START: &[u8] = b"HTTP/1.";
    let seen = head.len().min(START.len());
    if head[..seen] != START[..seen] {
        return Err(failed(None, format!("not HTTP/1: {}", safe(head, TEXT))));
    }
    let Some(end) = head.iter().position(|b| *b == b'\n') else {
        let too_long = head.len() > LONGEST_HEAD;
        return if too_long {
            Err(failed(None, "no end of line".into()))
        } else {
            Ok(())
        };
    };
    let line = head[..end].trim_ascii_end();
    let status = line
        .get(START.len() + 2..START.len() + 5)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
    match status {
        Some(101) => Ok(()),
        Some(status) => Err(failed(
            Some(status),
            format!("answered {}", safe(&line[START.len() + 2..], TEXT)),
        )),
        None => Err(failed(
            None,
            format!("no HTTP status: {}", safe(line, TEXT)),
        )),
    }
}

fn verify(head: &[u8], key: &str, asked: Vec<&str>) -> Result<HeaderMap, AttemptOutcome> {
    let wrong = |why: &str| Err(failed(Some(101), why.into()));
    let Ok(Some((_, response))) = Response::try_parse(head) else {
        return wrong("answered 101 with headers that can't be read");
    };
    let headers = response.headers();
    if !holds_token(headers, "upgrade", "websocket") {
        return wrong("answered 101 without `Upgrade: websocket`");
    }
    if !holds_token(headers, "connection", "upgrade") {
        return wrong("answered 101 without `Connection: Upgrade`");
    }
    let accept = headers.get("sec-websocket-accept").map(|v| v.as_bytes());
    if accept != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return wrong("answered 101 with a wrong Sec-WebSocket-Accept");
    }
    if headers.contains_key("sec-websocket-extensions") {
        return wrong("chose an extension that was not offered");
    }
    match headers.get("sec-websocket-protocol") {
        Some(chosen) if !asked.iter().any(|a| a.as_bytes() == chosen.as_bytes()) => {
            wrong("chose a subprotocol that was not offered")
        }
        None if !asked.is_empty() => wrong("chose none of the subprotocols offered"),
        _ => Ok(response.into_parts().0.headers),
    }
}

fn holds_token(headers: &HeaderMap, name: &str, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

fn asked_protocols(headers: &[(String, String)]) -> Vec<&str> {
    headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"))
        .flat_map(|(_, value)| value.split(',').map(str::trim))
        .collect()
}

fn broken(error: &io::Error) -> AttemptOutcome {
    failed(
        None,
        if is_reset(error) {
            "reset instead of an answer".into()
        } else {
            // A server may refuse a client's certificate as late as here.
            reason(error)
        },
    )
}

fn failed(status: Option<u16>, why: String) -> AttemptOutcome {
    AttemptOutcome::Handshake {
        status,
        why: safe(why.as_bytes(), 2 * TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn why<T: std::fmt::Debug>(result: Result<T, AttemptOutcome>) -> (Option<u16>, String) {
        match result {
            Err(AttemptOutcome::Handshake { status, why }) => (status, why.into()),
            other => panic!("{other:?}"),
        }
    }

    fn head(extra: &str) -> Vec<u8> {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n{extra}\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn the_request_says_what_the_rfc_wants() {
        let url = Url::parse("ws://example.com:80/a/b?after=1%2F2#x").unwrap();
        let text = request(&url, &[("Origin".into(), "http://o".into())], KEY);
        assert!(
            text.starts_with("GET /a/b?after=1%2F2 HTTP/1.1\r\nHost: example.com\r\n"),
            "{text}"
        );
        assert!(text.ends_with("Origin: http://o\r\n\r\n"), "{text}");
        let url = Url::parse("ws://[::1]:8080").unwrap();
        let text = request(&url, &[("host".into(), "front".into())], KEY);
        assert!(text.starts_with("GET / HTTP/1.1\r\nConnection"), "{text}");
        assert!(text.contains("\r\nhost: front\r\n"));
        assert!(request(&url, &[], KEY).contains("\r\nHost: [::1]:8080\r\n"));
    }

    #[test]
    fn a_good_answer_is_one_however_it_is_written() {
        assert_eq!(refuse(&head("")), Ok(()));
        assert!(verify(&head(""), KEY, vec![]).is_ok());
        let chosen = head("Sec-WebSocket-Protocol: b\r\n");
        assert!(verify(&chosen, KEY, vec!["a", "b"]).is_ok());
    }

    #[test]
    fn a_wrong_101_is_refused_with_the_reason() {
        for (answer, asked, word) in [
            (
                head("Sec-WebSocket-Extensions: permessage-deflate\r\n"),
                vec![],
                "extension",
            ),
            (
                head("Sec-WebSocket-Protocol: x\r\n"),
                vec!["a"],
                "not offered",
            ),
            (head(""), vec!["a"], "none of the subprotocols"),
            (
                b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n".to_vec(),
                vec![],
                "Connection",
            ),
            (
                b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\n\r\n".to_vec(),
                vec![],
                "Upgrade",
            ),
            (
                b"HTTP/1.1 101 x\r\nbad header\r\n\r\n".to_vec(),
                vec![],
                "can't be read",
            ),
        ] {
            let (status, text) = why(verify(&answer, KEY, asked));
            assert_eq!(status, Some(101));
            assert!(text.contains(word), "{text}");
        }
        assert!(
            why(verify(&head(""), "another", vec![]))
                .1
                .contains("Accept")
        );
    }

    #[test]
    fn it_is_refused_as_soon_as_it_is_known() {
        for (start, status) in [
            (&b"HTTP/1.1 401 Unauthorized\r\n"[..], Some(401)),
            (b"HTTP/1.0 503\r\n", Some(503)),
            (b"HTTP/1.1 200 OK\n", Some(200)),
            (b"HTTP/1.1 \r\n", None),
            (b"HTTP/1.1\r\n", None),
            (b"HTTP/2 200\r\n", None),
            (b"SSH-2.0-x", None),
            (b"\0", None),
        ] {
            assert_eq!(why(refuse(start)).0, status, "{start:?}");
        }
        for undecided in [&b"H"[..], b"HTTP/1.1 4", b"HTTP/1.1 404 Not Found\r"] {
            assert_eq!(refuse(undecided), Ok(()), "{undecided:?}");
        }
    }
}
