//! One client against servers that misbehave in every way that a socket allows.
//!
//! Real sockets never meet a paused clock: it jumps to the next timer whenever nothing is ready, so a limit of seconds
//! would pass while the system is still carrying the bytes. The limits here are real and short.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use herd::backoff::{Backoff, Delay, Preset, Reset};
use herd::client::{Crew, OwnNumbers, Status};
use herd::clock::Clock;
use herd::history::record::Growth;
use herd::history::{
    AttemptOutcome, Cause, Client, ClientEvent, DeliveryMode, Elapsed, Entry, History, IdKind,
    PolicySource, Quit, Seq, Shard, build,
};
use herd::plan::Plan;
use herd::profile::ProfileName;
use herd::scenario::{
    Checks, Connect, Outage, Output, Policy, Publish, Scenario, Server, Target, Trigger, Via,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};

/// Long enough for anything that must happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn scenario(address: SocketAddr) -> Scenario {
    Scenario {
        name: "test".into(),
        clients: 1,
        seed: 1,
        shard: Shard::WHOLE,
        target: Target {
            server: Server::Remote,
            url: format!("ws://{address}/live?after={{after}}"),
            ready: None,
            ready_limit: PATIENCE,
        },
        connect: Connect {
            profile: ProfileName::After,
            id: "/id".into(),
            seq: None,
            ids: IdKind::Opaque,
            contiguous: false,
            headers: vec![],
            source_ips: vec![],
            ramp: Duration::ZERO,
            timeout: PATIENCE,
            max_message: 1 << 16,
        },
        policy: Policy {
            name: "once".into(),
            backoff: retries(0),
            source: PolicySource::Named,
        },
        outage: Outage {
            trigger: Trigger::Wait { limit: PATIENCE },
            count: 1,
            down: Duration::ZERO,
            steady: Duration::ZERO,
            quiet_period: Duration::ZERO,
        },
        publish: Publish {
            via: Via::Observe,
            rate: 1.0,
            body: String::new(),
            answer_id: "/id".into(),
            answer_position: None,
            idempotent: false,
        },
        checks: Checks {
            min_spread: Duration::ZERO,
            max_peak: 1.0,
            peak_window: Duration::from_secs(1),
            delivery: DeliveryMode::ExactlyOnce,
            max_resets: 0,
            settle: Duration::from_secs(1),
            reconnect_limit: None,
            max_recovery: None,
        },
        output: Output {
            dir: None,
            formats: vec![],
        },
        implied: vec![],
    }
}

/// Gives up after this many retries that come at once.
fn retries(max: u32) -> Backoff {
    Backoff {
        delay: Delay::Fixed {
            delay: Duration::from_millis(1),
            jitter: 0.0,
        },
        max_attempts: Some(max),
        reset: Reset::AfterUptime(PATIENCE),
    }
}

fn crew(scenario: &Scenario) -> Arc<Crew> {
    let plan = Plan::new(scenario, None).unwrap();
    let own = OwnNumbers {
        base: 0,
        span: 1_000,
    };
    Arc::new(Crew::new(scenario, plan, Clock::start(), own))
}

/// What the only client of a crew recorded, as the judge would see it.
fn recorded(crew: &Crew) -> (History, Client) {
    let handle = &crew.handles()[0];
    let Growth { events, stream } = handle.take();
    let mut history = History::new(build::header(1));
    history.events = crew.table().take_new();
    let mut client = Client::new(handle.id());
    client.stream.extend(&stream);
    events.into_iter().for_each(|event| client.push(event));
    (history, client)
}

/// The ids that a client received, in order.
fn ids(history: &History, client: &Client) -> Vec<String> {
    let receipts = client.entries(history).filter_map(|entry| match entry {
        Entry::Receipt(receipt) => history.event(receipt.event).id.as_deref(),
        _ => None,
    });
    receipts.map(str::to_owned).collect()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Runs one client until it gives up, against a server that does this to each connection.
async fn run<F, S>(change: impl FnOnce(&mut Scenario), serve: S) -> (History, Client)
where
    F: Future<Output = ()> + Send + 'static,
    S: Fn(TcpStream) -> F + Send + 'static,
{
    let (listener, address) = listen().await;
    let mut scenario = scenario(address);
    change(&mut scenario);
    let crew = crew(&scenario);
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream).await;
        }
    });
    let clients = crew.launch(Elapsed::ZERO);
    tokio::time::timeout(PATIENCE, clients.join_all())
        .await
        .expect("the client ends by itself");
    server.abort();
    recorded(&crew)
}

/// Reads a request's head.
async fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap() == 0 {
            break;
        }
    }
    String::from_utf8(head).unwrap()
}

fn accept(request: &str) -> String {
    let key = request
        .lines()
        .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
        .unwrap();
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    )
}

/// Shakes hands; what follows is up to the test.
async fn raw(mut stream: TcpStream) -> TcpStream {
    let answer = accept(&request(&mut stream).await);
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}

async fn tungstenite(stream: TcpStream) -> WebSocketStream<TcpStream> {
    WebSocketStream::from_raw_socket(raw(stream).await, Role::Server, None).await
}

/// A frame as a server sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..126 => bytes.push(short as u8),
        long => {
            bytes.push(126);
            bytes.extend((long as u16).to_be_bytes());
        }
    }
    bytes.extend(payload);
    bytes
}

/// Reads a short masked frame of a client.
async fn client_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 6];
    stream.read_exact(&mut head).await.unwrap();
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut payload).await.unwrap();
    for (i, byte) in payload.iter_mut().enumerate() {
        *byte ^= head[2 + i % 4];
    }
    (head[0], payload)
}

/// How the client's only attempt failed.
fn only_failure(client: &Client) -> (Option<u16>, String) {
    assert_eq!(client.attempts.len(), 1, "{:?}", client.attempts);
    assert!(client.sessions.is_empty());
    assert!(matches!(client.quit, Some((_, Quit::GaveUp))));
    let attempt = &client.attempts[0];
    match &attempt.outcome {
        AttemptOutcome::Handshake { status, why } => {
            let connected = attempt.connected.expect("it got past the TCP connect");
            assert!(attempt.dialled <= connected && connected <= attempt.ended);
            (*status, why.to_string())
        }
        other => panic!("{other:?}"),
    }
}

/// Why the client's only session ended.
fn only_cause(client: &Client) -> Cause {
    assert_eq!(client.sessions.len(), 1, "{:?}", client.sessions);
    client.sessions[0].closed.clone().expect("it ended").1
}

#[tokio::test]
async fn nobody_listening_is_refused() {
    let (listener, address) = listen().await;
    drop(listener);
    let crew = crew(&scenario(address));
    crew.launch(Elapsed::ZERO).join_all().await;
    let (_, client) = recorded(&crew);
    assert_eq!(client.attempts[0].outcome, AttemptOutcome::Refused);
    assert_eq!(client.attempts[0].connected, None);
    assert!(client.attempts[0].due <= client.attempts[0].dialled);
    assert_eq!(crew.handles()[0].progress().status, Status::GaveUp);
    let counts = crew.counts();
    assert_eq!(
        (counts.gave_up, counts.connecting, counts.failed),
        (1, 0, 1)
    );
}

#[tokio::test]
async fn a_connect_without_an_answer_times_out() {
    // A full backlog swallows further connects.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) =
        tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        filling.push(stream.unwrap());
    }
    let mut scenario = scenario(address);
    scenario.connect.timeout = Duration::from_millis(100);
    let crew = crew(&scenario);
    crew.launch(Elapsed::ZERO).join_all().await;
    let attempt = recorded(&crew).1.attempts.remove(0);
    assert_eq!(attempt.outcome, AttemptOutcome::Timeout);
    assert!(attempt.ended.since(attempt.dialled) >= Duration::from_millis(100));
}

#[tokio::test]
async fn herds_own_shortage_is_not_the_servers() {
    let (_listener, address) = listen().await;
    let mut scenario = scenario(address);
    // Reserved for documentation (RFC 5737): no machine has it.
    scenario.connect.source_ips = vec!["203.0.113.7".parse().unwrap()];
    let crew = crew(&scenario);
    crew.launch(Elapsed::ZERO).join_all().await;
    let outcome = recorded(&crew).1.attempts.remove(0).outcome;
    assert!(matches!(outcome, AttemptOutcome::Local(_)), "{outcome:?}");
}

#[tokio::test]
async fn every_answer_that_is_no_websocket_fails_the_handshake() {
    for (answer, status, word) in [
        ("", None, "without an answer"),
        ("HTTP/1.1 20", None, "mid-answer"),
        ("\u{1b}[2Jgarbage", None, "not HTTP/1: \\u{1b}[2Jgarbage"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            Some(200),
            "200 OK",
        ),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", Some(401), "401"),
        ("HTTP/1.1 404 Not Found\r\n\r\n", Some(404), "404"),
        ("HTTP/1.0 503 Service Unavailable\r\n\r\n", Some(503), "503"),
        (
            "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n",
            Some(302),
            "302",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            Some(101),
            "Upgrade",
        ),
    ] {
        let (_, client) = run(
            |_| {},
            move |mut stream: TcpStream| async move {
                request(&mut stream).await;
                stream.write_all(answer.as_bytes()).await.unwrap();
            },
        )
        .await;
        let (told, why) = only_failure(&client);
        assert_eq!(told, status, "{answer:?}: {why}");
        assert!(why.contains(word), "{answer:?}: {why}");
    }
}

#[tokio::test]
async fn a_handshake_without_an_end_times_out() {
    for answer in ["", "HTTP/1.1 101 Switching Protocols\r\n"] {
        let short = |s: &mut Scenario| s.connect.timeout = Duration::from_millis(100);
        let (_, client) = run(short, move |mut stream: TcpStream| async move {
            stream.write_all(answer.as_bytes()).await.unwrap();
            tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                drop(stream);
            });
        })
        .await;
        let (status, why) = only_failure(&client);
        assert_eq!((status, why.contains("100ms")), (None, true), "{why}");
    }
}

#[tokio::test]
async fn accepting_and_closing_at_once_fails_the_handshake() {
    for linger in [None, Some(Duration::ZERO)] {
        let (_, client) = run(
            |_| {},
            move |stream: TcpStream| async move {
                if linger.is_some() {
                    stream.set_zero_linger().unwrap();
                }
            },
        )
        .await;
        // How soon the reset is there decides whether the connect itself still succeeded.
        if client.attempts[0].outcome != AttemptOutcome::Refused {
            assert_eq!(only_failure(&client).0, None);
        }
    }
}

#[tokio::test]
async fn fragments_pings_and_binary_frames_are_read_and_pings_answered() {
    let (history, client) = run(
        |_| {},
        async |stream: TcpStream| {
            let mut stream = raw(stream).await;
            let mut bytes = frame(0x01, br#"{"id""#);
            bytes.extend(frame(0x89, b"are you there"));
            bytes.extend(frame(0x00, br#":12345678901"#));
            bytes.extend(frame(0x80, br#"234567890}"#));
            bytes.extend(frame(0x82, br#"{"id":"b","data":{"seq":7}}"#));
            stream.write_all(&bytes).await.unwrap();
            // Nothing else is written by the client, so the pong must have been flushed for its own sake.
            let pong = client_frame(&mut stream).await;
            assert_eq!(pong, (0x8a, b"are you there".to_vec()));
            stream.write_all(&frame(0x88, b"\x03\xe8")).await.unwrap();
            assert_eq!(
                client_frame(&mut stream).await,
                (0x88, b"\x03\xe8".to_vec())
            );
        },
    )
    .await;
    assert_eq!(ids(&history, &client), ["12345678901234567890", "b"]);
    assert_eq!(history.events[1].seq, Some(Seq(7)));
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_understood() {
    let (history, client) = run(
        |_| {},
        async |mut stream: TcpStream| {
            stream.set_nodelay(true).unwrap();
            let mut bytes = accept(&request(&mut stream).await).into_bytes();
            bytes.extend(frame(0x81, br#"{"id":"slow"}"#));
            bytes.extend(frame(0x88, b"\x03\xf6later"));
            for byte in bytes {
                stream.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            let _ = stream.read(&mut [0; 64]).await;
        },
    )
    .await;
    assert_eq!(ids(&history, &client), ["slow"]);
    let reason = "later".into();
    assert_eq!(
        only_cause(&client),
        Cause::Close {
            code: Some(1014),
            reason
        }
    );
}

#[tokio::test]
async fn frames_behind_the_handshake_in_one_write_are_not_lost() {
    let (history, client) = run(
        |_| {},
        async |mut stream: TcpStream| {
            let mut bytes = accept(&request(&mut stream).await).into_bytes();
            bytes.extend(frame(0x81, br#"[{"id":1},{"id":2}]"#));
            stream.write_all(&bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read(&mut [0; 64]).await;
        },
    )
    .await;
    assert_eq!(ids(&history, &client), ["1", "2"]);
    assert_eq!(only_cause(&client), Cause::Eof);
}

#[tokio::test]
async fn every_close_code_is_told_as_it_was_sent() {
    for code in (1000..=1014).chain([2999, 3000, 4000, 4999, 5000, 999, 1]) {
        let (_, client) = run(
            |_| {},
            move |stream: TcpStream| async move {
                let mut stream = raw(stream).await;
                let payload = [&u16::to_be_bytes(code)[..], b"so \x1b[31mlong"].concat();
                stream.write_all(&frame(0x88, &payload)).await.unwrap();
                let _ = stream.read(&mut [0; 64]).await;
            },
        )
        .await;
        let cause = Cause::Close {
            code: Some(code),
            reason: "so \\u{1b}[31mlong".into(),
        };
        assert_eq!(only_cause(&client), cause);
    }
}

#[tokio::test]
async fn a_close_without_a_code_is_one() {
    let (_, client) = run(
        |_| {},
        async |stream: TcpStream| {
            let mut ws = tungstenite(stream).await;
            ws.close(None).await.unwrap();
            while let Some(Ok(_)) = ws.next().await {}
        },
    )
    .await;
    let reason = "".into();
    assert_eq!(only_cause(&client), Cause::Close { code: None, reason });
}

#[tokio::test]
async fn what_breaks_the_protocol_has_its_own_cause_and_close_code() {
    let oversize = frame(0x81, &[b'x'; 40_000]);
    let halves = [frame(0x01, &[b'x'; 40_000]), frame(0x80, &[b'x'; 40_000])].concat();
    let change = |s: &mut Scenario| s.connect.max_message = 60_000;
    for (bytes, max, expected, code) in [
        (frame(0x81, b"\xff\xfe"), 1 << 16, "utf8", 1007u16),
        (oversize, 30_000, "oversize", 1009),
        (halves, 60_000, "oversize", 1009),
        (frame(0x80, b"x"), 1 << 16, "protocol", 1002),
        (frame(0xc1, b"x"), 1 << 16, "protocol", 1002),
        (frame(0x83, b"x"), 1 << 16, "protocol", 1002),
        (frame(0x88, b"x"), 1 << 16, "protocol", 1002),
        (
            vec![0x81, 0x81, 0, 0, 0, 0, b'x'],
            1 << 16,
            "protocol",
            1002,
        ),
    ] {
        let (sent, mut received) = tokio::sync::mpsc::channel(1);
        let limit = move |s: &mut Scenario| {
            change(s);
            s.connect.max_message = max;
        };
        let (_, client) = run(limit, move |stream: TcpStream| {
            let (bytes, sent) = (bytes.clone(), sent.clone());
            async move {
                let mut stream = raw(stream).await;
                let _ = stream.write_all(&bytes).await;
                sent.send(client_frame(&mut stream).await).await.unwrap();
            }
        })
        .await;
        assert_eq!(only_cause(&client).name(), expected);
        let close = received.recv().await.unwrap();
        assert_eq!(close, (0x88, code.to_be_bytes().to_vec()), "{expected}");
    }
}

#[tokio::test]
async fn an_end_without_a_close_frame_is_an_end_of_stream_and_a_reset_a_reset() {
    let (_, client) = run(|_| {}, async |stream: TcpStream| drop(raw(stream).await)).await;
    assert_eq!(only_cause(&client), Cause::Eof);
    let (_, client) = run(
        |_| {},
        async |stream: TcpStream| {
            let mut stream = raw(stream).await;
            stream.set_zero_linger().unwrap();
            stream.write_all(&frame(0x89, b"")).await.unwrap();
            // Once the pong is in, the client is surely reading.
            client_frame(&mut stream).await;
        },
    )
    .await;
    assert_eq!(only_cause(&client), Cause::Reset);
}

/// A killed server answers the pongs to its last pings with a reset; what it had sent before must not be lost.
#[tokio::test]
async fn what_was_sent_before_a_reset_is_still_received() {
    let (history, client) = run(
        |_| {},
        async |stream: TcpStream| {
            let mut stream = raw(stream).await;
            let mut bytes = Vec::new();
            for n in 0..200 {
                bytes.extend(frame(0x89, b"?"));
                bytes.extend(frame(0x81, format!(r#"{{"id":{n}}}"#).as_bytes()));
            }
            bytes.extend(frame(0x88, b"\x03\xf4"));
            stream.write_all(&bytes).await.unwrap();
        },
    )
    .await;
    let expected: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(ids(&history, &client), expected);
    let reason = "".into();
    assert_eq!(
        only_cause(&client),
        Cause::Close {
            code: Some(1012),
            reason
        }
    );
}

#[tokio::test]
async fn what_can_not_be_read_is_kept_three_times_and_cut() {
    let (_, client) = run(
        |_| {},
        async |stream: TcpStream| {
            let mut ws = tungstenite(stream).await;
            for n in 0..5 {
                let text = format!("\u{1b}{n}{}", "x".repeat(500));
                ws.send(Message::text(text)).await.unwrap();
            }
            ws.close(None).await.unwrap();
            while let Some(Ok(_)) = ws.next().await {}
        },
    )
    .await;
    assert_eq!(client.unread.len(), 3);
    let text = &client.unread[0].1;
    assert!(
        text.starts_with("\\u{1b}0xxx") && text.ends_with("x..."),
        "{text}"
    );
    assert!(text.len() < 220);
}

/// Serves `sessions` in turn, each a list of messages, and tells the request lines.
async fn resumed(
    ids_are: IdKind,
    sessions: &'static [&'static [&'static str]],
) -> (Client, Vec<String>) {
    let (sent, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let turn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let retry = move |s: &mut Scenario| {
        s.connect.ids = ids_are;
        s.policy.backoff = retries(sessions.len() as u32 - 1);
    };
    let (_, client) = run(retry, move |mut stream: TcpStream| {
        let messages = sessions[turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst)];
        let sent = sent.clone();
        async move {
            let head = request(&mut stream).await;
            stream.write_all(accept(&head).as_bytes()).await.unwrap();
            sent.send(head.lines().next().unwrap().to_owned()).unwrap();
            let mut ws = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            for message in messages {
                ws.send(Message::text(*message)).await.unwrap();
            }
            let close = CloseFrame {
                code: CloseCode::Restart,
                reason: "".into(),
            };
            ws.close(Some(close)).await.unwrap();
            while let Some(Ok(_)) = ws.next().await {}
        }
    })
    .await;
    let mut told = Vec::new();
    while let Ok(line) = lines.try_recv() {
        told.push(line);
    }
    (client, told)
}

#[tokio::test]
async fn a_client_resumes_from_its_cursor() {
    let (client, lines) = resumed(
        IdKind::Opaque,
        &[
            &[r#"{"id":"1"}"#, r#"{"id":"a/b+é &%"}"#],
            &[r#"{"id":9007199254740993}"#],
            &[r#"{"type":"reset","id":"r"}"#, r#"{"type":"caught-up"}"#],
            &[],
        ],
    )
    .await;
    assert_eq!(
        lines,
        [
            "GET /live?after= HTTP/1.1",
            "GET /live?after=a%2Fb%2B%C3%A9%20%26%25 HTTP/1.1",
            "GET /live?after=9007199254740993 HTTP/1.1",
            "GET /live?after=r HTTP/1.1",
        ]
    );
    let from: Vec<_> = client
        .sessions
        .iter()
        .map(|s| s.resumed_from.map(|e| e.0))
        .collect();
    assert_eq!(from, [None, Some(1), Some(2), Some(3)]);
    assert!(client.sessions[2].marker.is_some());
    assert!(
        client
            .attempts
            .iter()
            .all(|a| a.due <= a.dialled && a.dialled <= a.ended)
    );
}

#[tokio::test]
async fn ordered_ids_keep_the_greatest_as_the_cursor() {
    const SESSIONS: &[&[&str]] = &[&[r#"{"id":10}"#, r#"{"id":9}"#], &[]];
    let (_, lines) = resumed(IdKind::Integer, SESSIONS).await;
    assert_eq!(lines[1], "GET /live?after=10 HTTP/1.1");
    let (_, lines) = resumed(IdKind::Opaque, SESSIONS).await;
    assert_eq!(lines[1], "GET /live?after=9 HTTP/1.1");
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect(what);
}

/// A server that sends one event to each connection and keeps it, until the client closes it; tells the last frame.
fn keep(listener: TcpListener) -> tokio::sync::mpsc::UnboundedReceiver<Option<Message>> {
    let (sent, closes) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sent = sent.clone();
            tokio::spawn(async move {
                let mut ws = tungstenite(stream).await;
                ws.send(Message::text(r#"{"id":"1","data":{"seq":3}}"#))
                    .await
                    .unwrap();
                let mut last = None;
                while let Some(Ok(message)) = ws.next().await {
                    last = Some(message);
                }
                let _ = sent.send(last);
            });
        }
    });
    closes
}

#[tokio::test]
async fn the_conductor_sees_progress_cuts_a_half_open_session_and_stops() {
    let (listener, address) = listen().await;
    let mut closes = keep(listener);
    let mut scenario = scenario(address);
    scenario.policy.backoff = retries(3);
    let crew = crew(&scenario);
    let clients = crew.launch(Elapsed::ZERO);
    let handle = crew.handles()[0].clone();
    until("the first event", || handle.has(Seq(3))).await;
    let progress = handle.progress();
    assert_eq!((progress.status, progress.sessions), (Status::Connected, 1));
    assert!(progress.has_cursor && progress.opened <= progress.last_receipt);
    assert_eq!(handle.missing(Seq(1), Seq(4)), [1..=2, 4..=4]);
    handle.close_half_open(7);
    handle.close_half_open(1);
    until("the second session", || handle.progress().sessions == 2).await;
    assert_eq!(
        closes.recv().await.unwrap(),
        None,
        "nobody is there to say goodbye to"
    );
    until("its event", || crew.counts().receipts == 2).await;
    crew.stop();
    tokio::time::timeout(PATIENCE, clients.join_all())
        .await
        .unwrap();
    let goodbye = closes.recv().await.unwrap();
    assert!(
        matches!(&goodbye, Some(Message::Close(Some(frame))) if frame.code == CloseCode::Normal),
        "{goodbye:?}"
    );
    let (_, client) = recorded(&crew);
    let causes: Vec<_> = client
        .sessions
        .iter()
        .map(|s| s.closed.clone().unwrap().1)
        .collect();
    assert_eq!(causes, [Cause::HalfOpen, Cause::Herd]);
    assert_eq!(client.quit, None);
}

#[tokio::test]
async fn a_client_stopped_in_mid_handshake_says_so() {
    let (listener, address) = listen().await;
    let crew = crew(&scenario(address));
    let clients = crew.launch(Elapsed::ZERO);
    let (mut stream, _) = listener.accept().await.unwrap();
    request(&mut stream).await;
    crew.stop();
    tokio::time::timeout(PATIENCE, clients.join_all())
        .await
        .unwrap();
    let growth = crew.handles()[0].take();
    let [ClientEvent::Attempt(attempt)] = &growth.events[..] else {
        panic!("{growth:?}");
    };
    assert_eq!(attempt.outcome, AttemptOutcome::Aborted);
    assert!(attempt.connected.is_some());
}

#[tokio::test]
async fn many_clients_share_one_table() {
    let (listener, address) = listen().await;
    let _closes = keep(listener);
    let mut scenario = scenario(address);
    scenario.clients = 50;
    scenario.policy.backoff = Preset::FullJitter.backoff();
    let crew = crew(&scenario);
    let clients = crew.launch(Elapsed::ZERO);
    until("all events", || crew.counts().receipts == 50).await;
    assert_eq!(crew.counts().connected, 50);
    assert_eq!(crew.table().take_new().len(), 1);
    crew.stop();
    tokio::time::timeout(PATIENCE, clients.join_all())
        .await
        .unwrap();
}
