//! The reference server over real sockets, in this process: what it promises to clients and publishers.

#![expect(
    clippy::unwrap_used,
    reason = "the lint's exception for tests doesn't reach their helpers"
)]

mod events;
mod process;
mod resume;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use herd::server::{Config, Limits, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Long enough for a busy machine; nothing waits for it in the usual case.
const LIMIT: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A server in this process.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), herd::error::Error>>,
}

impl Server {
    async fn start(config: Config) -> Self {
        let (ready, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(
            config,
            move |address| ready.send(address).unwrap(),
            async move {
                let _ = stopped.await;
            },
        ));
        let address = timeout(LIMIT, address).await.unwrap().unwrap();
        Self {
            address,
            stop,
            task,
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(LIMIT, self.task).await.unwrap().unwrap().unwrap();
    }

    async fn publish(&self, body: &str) -> Value {
        let answer = request(self.address, "POST /v1/publish", "", body)
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

/// Publishes so many events over four connections at a time.
async fn publish_many(to: SocketAddr, events: u64) {
    let publishers = (0..4).map(|first| {
        tokio::spawn(async move {
            for n in (first..events).step_by(4) {
                let answer = request(to, "POST /v1/publish", "", &n.to_string()).await;
                assert_eq!(answer.unwrap().status, 200);
            }
        })
    });
    for publisher in publishers.collect::<Vec<_>>() {
        publisher.await.unwrap();
    }
}

fn kept_in(dir: &Path) -> Config {
    Config {
        data: Some(dir.join("data")),
        ..Config::default()
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// One request on a connection of its own; an error where the answer was lost.
async fn request(to: SocketAddr, line: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(to).await?;
    let request = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(LIMIT, stream.read_to_string(&mut answer)).await??;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok(Answer {
        status: status.ok_or(std::io::ErrorKind::InvalidData)?,
        head: head.to_ascii_lowercase(),
        body: body.into(),
    })
}

async fn subscribe(to: SocketAddr, query: &str) -> Socket {
    connect_async(format!("ws://{to}/v1/live{query}"))
        .await
        .unwrap()
        .0
}

async fn next(socket: &mut Socket) -> Value {
    let text = async {
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    // Over all of it: pings alone must not keep a test alive.
    timeout(LIMIT, text).await.unwrap()
}

fn event(id: u64, data: &Value) -> Value {
    json!({ "id": id.to_string(), "type": "event", "data": data })
}

#[tokio::test]
async fn a_subscriber_gets_replay_then_live_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(kept_in(dir.path())).await;
    let mut live = subscribe(server.address, "?after=").await;
    for n in 1..=3 {
        assert_eq!(
            server.publish(&format!(r#"{{"seq":{n}}}"#)).await,
            json!({"id": n.to_string()})
        );
        assert_eq!(next(&mut live).await, event(n, &json!({"seq": n})));
    }
    server.stop().await;

    let server = Server::start(kept_in(dir.path())).await;
    server.publish(r#"{"seq":4}"#).await;
    let mut resumed = subscribe(server.address, "?after=2&client=9").await;
    server.publish(r#"{"seq":5}"#).await;
    for n in 3..=5 {
        assert_eq!(next(&mut resumed).await, event(n, &json!({"seq": n})));
    }
    let state = request(server.address, "GET /v1/state", "", "")
        .await
        .unwrap();
    assert_eq!(
        state.json(),
        json!({"newest": "5", "oldest": "1", "count": 5})
    );
    assert_eq!(
        request(server.address, "GET /healthz", "", "")
            .await
            .unwrap()
            .status,
        200
    );
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_key_stores_nothing_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let batch = "content-type: application/x-ndjson\r\nidempotency-key: a\r\n";
    let publish = async |to, headers, body| {
        request(to, "POST /v1/publish", headers, body)
            .await
            .unwrap()
    };
    let server = Server::start(kept_in(dir.path())).await;
    let first = publish(server.address, batch, "{\"a\":1}\n{\"a\":2}\n").await;
    assert_eq!(first.json(), json!({"ids": ["1", "2"]}));
    server.stop().await;

    let server = Server::start(kept_in(dir.path())).await;
    let again = publish(server.address, batch, "{\"a\":1}\n{\"a\":2}\n").await;
    assert_eq!(again.json(), first.json());
    let other = publish(server.address, "idempotency-key: a\r\n", "7").await;
    assert_eq!(other.status, 422);
    assert_eq!(server.publish("8").await, json!({"id": "3"}));
    server.stop().await;
}

#[tokio::test]
async fn who_is_behind_what_is_kept_is_told_to_reload() {
    let server = Server::start(Config {
        keep: 2,
        ..Config::default()
    })
    .await;
    for n in 1..=5 {
        server.publish(&n.to_string()).await;
    }
    for after in ["2", "6", "never-given"] {
        let mut socket = subscribe(server.address, &format!("?after={after}")).await;
        assert_eq!(next(&mut socket).await, json!({"type": "reset", "id": "5"}));
    }
    let mut kept = subscribe(server.address, "?after=3").await;
    assert_eq!(next(&mut kept).await, event(4, &json!(4)));
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_closes_with_1012_and_frees_its_port() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(kept_in(dir.path())).await;
    let listen = server.address;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        sockets.push(subscribe(listen, "").await);
    }
    let stopping = tokio::spawn(server.stop());
    for socket in &mut sockets {
        match timeout(LIMIT, socket.next()).await.unwrap() {
            Some(Ok(Message::Close(Some(frame)))) => assert_eq!(u16::from(frame.code), 1012),
            other => panic!("{other:?}"),
        }
        // Answers the close.
        let _ = timeout(LIMIT, socket.next()).await.unwrap();
    }
    stopping.await.unwrap();
    let again = Config {
        listen,
        ..kept_in(dir.path())
    };
    Server::start(again).await.stop().await;
}

#[tokio::test]
async fn errors_are_problems() {
    let limits = Limits {
        body: 100,
        ..Limits::default()
    };
    let server = Server::start(Config {
        limits,
        ..Config::default()
    })
    .await;
    let long = format!("{:?}", "x".repeat(100));
    let ndjson = "content-type: application/x-ndjson\r\n";
    for (line, headers, body, status) in [
        ("GET /", "", "", 404),
        ("GET /v1/publish", "", "", 405),
        ("GET /v1/live", "", "", 426),
        ("GET /v1/live?after=1&after=2", "", "", 400),
        ("GET /v1/events?after=1&after=2", "", "", 400),
        ("POST /v1/events", "", "", 405),
        ("GET /v1/resume", "", "", 426),
        ("POST /v1/publish", "", "{", 400),
        ("POST /v1/publish", "", "", 400),
        ("POST /v1/publish", ndjson, "1\n{\n", 400),
        ("POST /v1/publish", ndjson, "\n", 400),
        ("POST /v1/publish", "content-type: text/plain\r\n", "1", 415),
        ("POST /v1/publish", "idempotency-key: \r\n", "1", 400),
        ("POST /v1/publish", "", &long, 413),
    ] {
        let answer = request(server.address, line, headers, body).await.unwrap();
        assert_eq!(answer.status, status, "{line} {body} {answer:?}");
        assert!(
            answer
                .head
                .contains("content-type: application/problem+json"),
            "{answer:?}"
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty())
        );
    }
    let state = request(server.address, "GET /v1/state", "", "")
        .await
        .unwrap();
    assert_eq!(
        state.json(),
        json!({"newest": "0", "oldest": null, "count": 0})
    );
    server.stop().await;
}

#[tokio::test]
async fn limits_hold_for_frames_and_connections() {
    let limits = Limits {
        frame: 100,
        connections: 2,
        ..Limits::default()
    };
    let server = Server::start(Config {
        limits,
        ..Config::default()
    })
    .await;
    let mut one = subscribe(server.address, "").await;
    let mut two = subscribe(server.address, "").await;
    match connect_async(format!("ws://{}/v1/live", server.address)).await {
        Err(WsError::Http(answer)) => assert_eq!(answer.status(), 503),
        other => panic!("{other:?}"),
    }
    two.send(Message::text("x".repeat(100))).await.unwrap();
    server.publish("1").await;
    assert_eq!(next(&mut two).await, event(1, &json!(1)));
    one.send(Message::text("x".repeat(101))).await.unwrap();
    while let Some(Ok(message)) = timeout(LIMIT, one.next()).await.unwrap() {
        assert!(!message.is_binary());
    }
    // Its place is free again as soon as the server has let go of it.
    let again = async {
        while connect_async(format!("ws://{}/v1/live", server.address))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, again).await.unwrap();
    server.stop().await;
}

/// A slow subscriber is served from the log: more is published than any buffer between the two holds.
#[tokio::test]
async fn a_slow_subscriber_misses_nothing() {
    let server = Server::start(Config::default()).await;
    let mut slow = subscribe(server.address, "").await;
    let line = json!({ "text": "x".repeat(10_000) }).to_string() + "\n";
    let batch = line.repeat(50);
    for _ in 0..40 {
        let headers = "content-type: application/x-ndjson\r\n";
        let answer = request(server.address, "POST /v1/publish", headers, &batch)
            .await
            .unwrap();
        assert_eq!(answer.status, 200);
    }
    for n in 1..=2000 {
        assert_eq!(next(&mut slow).await["id"], n.to_string());
    }
    server.stop().await;
}
