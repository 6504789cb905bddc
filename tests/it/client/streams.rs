//! Event streams: what may be answered, how the body may come, and how it may end.

use herd::backoff::{Growth, Mix, presets};
use herd::history::{AttemptOutcome, Cause, Client, History, Quit};
use herd::profile::{ProfileName, Spec};
use herd::scenario::Scenario;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::rig::{ids, listen, only_cause, only_failure, request, retries, run};

/// The head of an answer whose body ends with the connection.
const OPEN: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// An event as a server sends it: the id in its own line and in the data.
fn event(id: &str) -> String {
    format!("id: {id}\ndata: {{\"id\":\"{id}\"}}\n\n")
}

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// One client that asks for an event stream and never comes back.
async fn once<F, S>(serve: S) -> (History, Client)
where
    F: Future<Output = ()> + Send + 'static,
    S: Fn(TcpStream) -> F + Send + 'static,
{
    run(to_streams, serve).await
}

fn to_streams(scenario: &mut Scenario) {
    let url = scenario.target.url.replace("ws://", "http://");
    scenario.target.url = url.replace("?after={after}", "");
    scenario.connect.profile = Spec::builtin(ProfileName::Sse);
    scenario.connect.headers = vec!["Authorization: Bearer t0ps3cret".into()];
}

/// Answers every request alike and closes.
async fn answer(mut stream: TcpStream, bytes: impl AsRef<[u8]>) {
    request(&mut stream).await;
    // The client may have seen enough.
    let _ = stream.write_all(bytes.as_ref()).await;
}

/// Gives each request the next answer and keeps what was asked.
async fn script(
    change: impl FnOnce(&mut Scenario),
    answers: Vec<String>,
) -> (History, Client, Vec<String>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let serve = move |mut stream: TcpStream| {
        let (asked, answers) = (asked.clone(), answers.clone());
        async move {
            let head = request(&mut stream).await;
            asked.lock().unwrap().push(head);
            let next = answers.lock().unwrap().next();
            let _ = stream.write_all(next.unwrap_or_default().as_bytes()).await;
        }
    };
    let (history, client) = run(change, serve).await;
    let asked = std::mem::take(&mut *kept.lock().unwrap());
    (history, client, asked)
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[tokio::test]
async fn a_body_may_end_with_the_connection_or_tell_its_length_or_come_in_chunks() {
    let events = event("1") + &event("2");
    // Nchan says that the connection stays and closes it.
    let kept = OPEN.replace("\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n");
    let old = OPEN.replace("HTTP/1.1", "HTTP/1.0");
    let long = OPEN.replace(
        "\r\n\r\n",
        &format!("\r\nContent-Length: {}\r\n\r\n", events.len()),
    );
    let short = OPEN.replace("\r\n\r\n", "\r\nContent-Length: 9000\r\n\r\n");
    let chunks = CHUNKED.to_owned() + &chunk(&events[..7]) + &chunk(&events[7..]);
    for (bytes, end) in [
        (OPEN.to_owned() + &events, Cause::Eof),
        (kept + &events, Cause::Eof),
        (old + &events, Cause::Eof),
        (long + &events, Cause::Eof),
        (short + &events, Cause::Cut),
        (chunks.clone(), Cause::Cut),
        (chunks.clone() + "0\r\n\r\n", Cause::Eof),
        (chunks + "0\r\nX-Trailer: 1\r\n\r\n", Cause::Eof),
    ] {
        let (history, client) = once(move |stream| answer(stream, bytes.clone())).await;
        assert_eq!(ids(&history, &client), ["1", "2"]);
        assert_eq!(only_cause(&client), end);
    }
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_understood() {
    let whole = CHUNKED.to_owned()
        + &chunk("\u{feff}")
        + &chunk(&event("é€").replace('\n', "\r\n"))
        + "0\r\n\r\n";
    let (history, client) = once(move |mut stream: TcpStream| {
        let whole = whole.clone();
        async move {
            stream.set_nodelay(true).unwrap();
            request(&mut stream).await;
            for byte in whole.into_bytes() {
                stream.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    assert_eq!(ids(&history, &client), ["é€"]);
    assert_eq!(only_cause(&client), Cause::Eof);
}

#[tokio::test]
async fn one_byte_a_chunk_is_as_good_as_one_chunk() {
    let chunks: String = event("1")
        .replace('\n', "\r\n")
        .chars()
        .map(|c| chunk(&c.to_string()))
        .collect();
    let bytes = CHUNKED.to_owned() + &chunks;
    let (history, client) = once(move |stream| answer(stream, bytes.clone())).await;
    assert_eq!(ids(&history, &client), ["1"]);
}

#[tokio::test]
async fn a_reset_in_mid_block_loses_nothing_that_was_finished() {
    let (history, client) = once(async |mut stream: TcpStream| {
        request(&mut stream).await;
        let many: String = (0..200).map(|n| event(&n.to_string())).collect();
        stream
            .write_all((OPEN.to_owned() + &many + "id: 200\ndata: {\"id\":\"200\"}\n").as_bytes())
            .await
            .unwrap();
        stream.set_zero_linger().unwrap();
    })
    .await;
    let expected: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(ids(&history, &client), expected, "the half one has no end");
    assert_eq!(only_cause(&client), Cause::Reset);
}

#[tokio::test]
async fn what_breaks_the_rules_has_its_own_cause() {
    for (bytes, cause) in [
        (
            CHUNKED.to_owned() + &chunk(&event("1")) + "zz\r\n",
            "protocol",
        ),
        (
            CHUNKED.to_owned() + &chunk(&event("1")) + "5\r\ndatax\r\nxx",
            "protocol",
        ),
        (
            OPEN.to_owned() + &event("1") + ":" + &"x".repeat(1 << 16),
            "oversize",
        ),
        (
            OPEN.to_owned() + &event("1") + &format!("data: {}\n", "x".repeat(60_000)).repeat(2),
            "oversize",
        ),
    ] {
        let (history, client) = once(move |stream| answer(stream, bytes.clone())).await;
        assert_eq!(ids(&history, &client), ["1"], "{cause}");
        assert_eq!(only_cause(&client).name(), cause);
    }
}

#[tokio::test]
async fn every_answer_that_is_no_stream_fails_the_handshake_with_the_reason() {
    let gzip = OPEN.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n\u{1f}\u{8b}");
    for (bytes, status, words) in [
        (String::new(), None, &["without an answer"][..]),
        ("HTTP/1.1 20".into(), None, &["without an answer"]),
        ("SSH-2.0-x\r\n\r\n".into(), None, &["not HTTP"]),
        (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 16\r\n\r\n\x1b[31mbusy\nlater "
                .into(),
            Some(503),
            &["503 Service Unavailable: \\u{1b}[31mbusy\\nlater"],
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\n\r\nBearer t0ps3cret is wrong".into(),
            Some(401),
            &["401", "*** is wrong"],
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<h1>Log in</h1>"
                .into(),
            Some(200),
            &["text/html, not text/event-stream", "<h1>Log in</h1>"],
        ),
        (gzip, Some(200), &["gzip, which was not asked for"]),
        (
            "HTTP/1.1 307 x\r\nLocation: ftp://x/\r\n\r\n".into(),
            Some(307),
            &["redirects to ftp://"],
        ),
        (
            format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 17)),
            None,
            &["too large"],
        ),
    ] {
        let (_, client) = once(move |stream| answer(stream, bytes.clone())).await;
        let (told, why) = only_failure(&client);
        assert_eq!(told, status, "{why}");
        for word in words {
            assert!(why.contains(word), "{why:?} lacks {word:?}");
        }
    }
}

#[tokio::test]
async fn no_content_means_never_to_come_back() {
    let (_, client, asked) = script(
        |s| {
            to_streams(s);
            s.policy.mix = retries(3);
        },
        vec![
            OPEN.to_owned() + &event("1"),
            "HTTP/1.1 204 No Content\r\n\r\n".into(),
        ],
    )
    .await;
    assert_eq!(asked.len(), 2);
    let why = "answered 204 No Content".into();
    let outcome = AttemptOutcome::Handshake {
        status: Some(204),
        why,
    };
    assert_eq!(client.attempts[1].outcome, outcome);
    assert!(matches!(client.quit, Some((_, Quit::Fatal(_)))));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let (_, client) = run(
        |s| {
            to_streams(s);
            s.connect.timeout = Some(Duration::from_millis(100));
        },
        async |mut stream: TcpStream| {
            request(&mut stream).await;
            let _ = stream.read(&mut [0]).await;
        },
    )
    .await;
    assert_eq!(
        only_failure(&client),
        (None, "no answer within 100ms".into())
    );
}

#[tokio::test]
async fn the_cursor_is_sent_and_survives_a_redirect() {
    let moved = |to: &str| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
    };
    let (history, client, asked) = script(
        |s| {
            to_streams(s);
            s.policy.mix = retries(1);
        },
        vec![
            OPEN.to_owned() + &event("1796:1"),
            moved("/v2?x=1"),
            moved("v3"),
            OPEN.to_owned() + &event("1796:2"),
        ],
    )
    .await;
    assert_eq!(ids(&history, &client), ["1796:1", "1796:2"]);
    let paths: Vec<_> = asked
        .iter()
        .map(|head| head.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(paths, ["/live", "/live", "/v2?x=1", "/v3"]);
    let cursors = asked.iter().map(|head| header(head, "last-event-id"));
    let expected = [None, Some("1796:1"), Some("1796:1"), Some("1796:1")];
    assert_eq!(cursors.collect::<Vec<_>>(), expected);
    assert_eq!(header(&asked[3], "authorization"), Some("Bearer t0ps3cret"));
    assert_eq!(header(&asked[0], "accept"), Some("text/event-stream"));
    assert_eq!(header(&asked[0], "cache-control"), Some("no-store"));
    assert_eq!(header(&asked[0], "accept-encoding"), None);
    assert_eq!(client.attempts.len(), 2, "a redirect is a part of its dial");
}

#[tokio::test]
async fn credentials_dont_follow_to_another_origin_and_the_cursor_does() {
    let (listener, other) = listen().await;
    let elsewhere = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = request(&mut stream).await;
        stream
            .write_all((OPEN.to_owned() + &event("2")).as_bytes())
            .await
            .unwrap();
        head
    });
    let (history, client, _) = script(
        |s| {
            to_streams(s);
            s.connect.headers.push("Last-Event-ID: 1".into());
        },
        vec![format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{other}/v2\r\n\r\n"
        )],
    )
    .await;
    assert_eq!(ids(&history, &client), ["2"]);
    let head = elsewhere.await.unwrap();
    assert_eq!(header(&head, "authorization"), None);
    assert_eq!(header(&head, "host"), Some(&*other.to_string()));
    assert!(
        head.lines()
            .any(|line| line.eq_ignore_ascii_case("last-event-id: 1")),
        "{head}"
    );
}

#[tokio::test]
async fn redirects_end_somewhere() {
    let (_, client) =
        once(|stream| answer(stream, "HTTP/1.1 308 x\r\nLocation: /again\r\n\r\n")).await;
    assert_eq!(only_failure(&client), (None, "over 5 redirects".into()));
    let dead: SocketAddr = listen().await.1;
    let bytes = format!("HTTP/1.1 301 x\r\nLocation: http://{dead}/\r\n\r\n");
    let (_, client) = once(move |stream| answer(stream, bytes.clone())).await;
    assert_eq!(
        only_failure(&client),
        (Some(301), "redirects to where nobody listens".into())
    );
}

#[tokio::test]
async fn the_delays_that_a_server_asks_for_are_recorded() {
    let (_, client, _) = script(
        |s| {
            to_streams(s);
            s.policy.mix = retries(2);
        },
        vec![
            OPEN.to_owned() + "retry: 1500\n\nretry: 1500\n" + &event("1") + "retry: 0\n",
            "HTTP/1.1 503 x\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n".into(),
            OPEN.to_owned(),
        ],
    )
    .await;
    let delays: Vec<_> = client
        .retry_after
        .iter()
        .map(|(_, delay)| delay.as_millis())
        .collect();
    assert_eq!(delays, [1500, 0, 7000]);
    assert!(matches!(
        client.attempts[1].outcome,
        AttemptOutcome::Handshake {
            status: Some(503),
            ..
        }
    ));
}

/// What a library does with a status, a clean end and `retry:` is its policy's business, whatever the profile thinks.
#[tokio::test]
async fn statuses_ends_and_hints_are_the_policys_business() {
    let with = |preset: &'static str, base: u64| {
        move |s: &mut Scenario| {
            to_streams(s);
            let mut policy = (presets::find(preset).unwrap().policy)();
            policy.then = Growth::fixed(Duration::from_millis(base));
            policy.limits.attempts = Some(2);
            s.policy.mix = Mix::one(preset, policy);
        }
    };
    let open = OPEN.to_owned() + &event("1");
    let unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

    // A browser never comes back after a 503; full jitter does.
    let answers = || vec![open.clone(), unavailable.to_owned(), open.clone()];
    let (_, client, asked) = script(with("eventsource-npm", 1), answers()).await;
    assert_eq!((asked.len(), quit(&client)), (2, "status 503"));
    let (_, _, asked) = script(with("full-jitter", 1), answers()).await;
    assert!(asked.len() >= 3);

    // fetch-event-source resolves at a clean end, and retries a body that was cut short.
    let whole = CHUNKED.to_owned() + &chunk(&event("1")) + "0\r\n\r\n";
    let (_, client, _) = script(with("fetch-event-source", 1), vec![whole, open.clone()]).await;
    assert_eq!(quit(&client), "end of stream");
    let cut = CHUNKED.to_owned() + &chunk(&event("1"));
    let (_, client, asked) = script(with("fetch-event-source", 1), vec![cut, open.clone()]).await;
    assert_eq!(asked.len(), 2);
    assert_eq!(client.sessions[0].closed.as_ref().unwrap().1, Cause::Cut);

    // `retry:` becomes the delay of those who obey it, and nothing to the others.
    let told = format!("{OPEN}retry: 70\n\n{}", event("1"));
    for (preset, least) in [("eventsource-chromium", 70), ("partysocket", 1)] {
        let (_, client, _) = script(with(preset, 1), vec![told.clone(), open.clone()]).await;
        let dropped = client.sessions[0].closed.as_ref().unwrap().0;
        let delay = client.attempts[1].due.since(dropped);
        assert_eq!(delay, Duration::from_millis(least), "{preset}");
    }
}

fn quit(client: &Client) -> &str {
    match &client.quit {
        Some((_, Quit::Fatal(why))) => why,
        other => panic!("{other:?}"),
    }
}
