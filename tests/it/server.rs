//! The reference server over real sockets: what it promises to clients, and that a SIGKILL takes nothing back.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
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
    loop {
        match timeout(LIMIT, socket.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
        {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
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

/// The server as its own process, killed when this is dropped.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(dir: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_herd"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir.join("data"))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["listening"].as_str().unwrap().parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sigkill_takes_back_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<(u64, u64)> = Vec::new();
    let mut seq = 0;
    for round in 0..50u64 {
        let server = Process::start(dir.path(), &[]);
        let (acks, answers) = mpsc::channel();
        let publishers: Vec<_> = (0..4)
            .map(|_| {
                seq += 1_000_000;
                tokio::spawn(publish_until_lost(server.address, seq, acks.clone()))
            })
            .collect();
        drop(acks);
        // A different point of its work each time; the pause is what varies, nothing waits for it to be long enough.
        let least = answers.recv_timeout(LIMIT).unwrap();
        tokio::time::sleep(Duration::from_micros(round * 7919 % 40_000)).await;
        drop(server);
        for publisher in publishers {
            publisher.await.unwrap();
        }
        acknowledged.push(least);
        acknowledged.extend(answers.iter());
    }

    let server = Process::start(dir.path(), &[]);
    let mut socket = subscribe(server.address, "?after=0").await;
    let newest = acknowledged.iter().map(|(id, _)| *id).max().unwrap();
    let mut stored = HashSet::new();
    let mut last = 0;
    while last < newest {
        let event = next(&mut socket).await;
        let id = event["id"].as_str().unwrap().parse().unwrap();
        assert!(id > last, "{id} after {last}");
        stored.insert((id, event["data"]["seq"].as_u64().unwrap()));
        last = id;
    }
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|ack| !stored.contains(ack))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert!(acknowledged.len() >= 50);
}

async fn publish_until_lost(to: SocketAddr, from: u64, acks: mpsc::Sender<(u64, u64)>) {
    for seq in from.. {
        let body = json!({ "seq": seq }).to_string();
        let Ok(answer) = request(to, "POST /v1/publish", "", &body).await else {
            return;
        };
        let id = answer.json()["id"].as_str().unwrap().parse().unwrap();
        acks.send((id, seq)).unwrap();
    }
}

#[tokio::test]
async fn half_open_sockets_outlive_the_server_and_their_holder_ends_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    let more = [
        "--defect",
        "half-open=2",
        "--ledger",
        ledger.to_str().unwrap(),
    ];
    let server = Process::start(dir.path(), &more);
    let mut sockets = Vec::new();
    for client in 1..=4 {
        sockets.push(subscribe(server.address, &format!("?client={client}")).await);
    }
    let body = r#"{"seq":1}"#;
    request(server.address, "POST /v1/publish", "", body)
        .await
        .unwrap();
    for socket in &mut sockets {
        next(socket).await;
    }
    let holders = children(server.child.id());
    assert_eq!(holders.len(), 1, "one holder");
    drop(server);
    let mut open = Vec::new();
    for mut socket in sockets {
        match timeout(Duration::from_millis(500), socket.next()).await {
            Err(_) => open.push(socket),
            Ok(gone) => assert!(!matches!(gone, Some(Ok(_))), "{gone:?}"),
        }
    }
    assert_eq!(open.len(), 2);
    assert_eq!(std::fs::read_to_string(&ledger).unwrap().lines().count(), 2);
    let again = Process::start(dir.path(), &more);
    drop(open);
    let gone = async {
        while Path::new(&format!("/proc/{}", holders[0])).exists() && !is_zombie(holders[0]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, gone).await.unwrap();
    drop(again);
}

fn children(of: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
    let more = std::fs::read_dir(format!("/proc/{of}/task"))
        .unwrap()
        .map(|task| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        });
    let all: HashSet<u32> = std::iter::once(list)
        .chain(more)
        .flat_map(|list| {
            list.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    all.into_iter().collect()
}

/// Its parent is gone, and what adopted it may be slow to bury it.
fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

#[tokio::test]
async fn restart_defects_act_after_a_restart_only() {
    for (defect, opens) in [("refuse-some=1", false), ("accept-then-close", true)] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger");
        let more = ["--defect", defect, "--ledger", ledger.to_str().unwrap()];
        let server = Process::start(dir.path(), &more);
        let mut socket = subscribe(server.address, "?client=1").await;
        request(server.address, "POST /v1/publish", "", "1")
            .await
            .unwrap();
        next(&mut socket).await;
        drop(server);
        let server = Process::start(dir.path(), &more);
        let url = format!("ws://{}/v1/live?client=1&after=1", server.address);
        for _ in 0..3 {
            match connect_async(&url).await {
                Ok((mut socket, _)) => {
                    assert!(opens, "{defect}");
                    let end = timeout(LIMIT, socket.next()).await.unwrap();
                    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
                }
                Err(WsError::Http(answer)) => {
                    assert_eq!((answer.status().as_u16(), opens), (503, false))
                }
                Err(e) => panic!("{e}"),
            }
        }
        let lines = std::fs::read_to_string(&ledger).unwrap().lines().count();
        assert_eq!(lines, if opens { 3 } else { 1 }, "{defect}");
    }
}

#[tokio::test]
async fn it_dies_again_once_only() {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--defect", "die-again=2"];
    let server = Process::start(dir.path(), &more);
    request(server.address, "POST /v1/publish", "", "1")
        .await
        .unwrap();
    drop(server);
    let mut server = Process::start(dir.path(), &more);
    let url = |server: &Process| format!("ws://{}/v1/live", server.address);
    let _one = connect_async(url(&server)).await.unwrap();
    assert!(connect_async(url(&server)).await.is_err());
    assert!(!server.child.wait().unwrap().success());
    let server = Process::start(dir.path(), &more);
    for _ in 0..3 {
        connect_async(url(&server)).await.unwrap();
    }
}
