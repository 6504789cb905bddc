//! A scenario of one client, its record, and what the misbehaving servers have in common.

use herd::backoff::{self, Backoff, Mix, Reset};
use herd::client::{Crew, OwnNumbers};
use herd::clock::Clock;
use herd::history::record::Growth;
use herd::history::{
    AttemptOutcome, Cause, Client, DeliveryMode, Elapsed, Entry, History, IdKind, PolicySource,
    Quit, Shard, build,
};
use herd::plan::Plan;
use herd::profile::{ProfileName, Spec};
use herd::scenario::{
    Checks, Connect, Outage, Output, Policy, Publish, Scenario, Server, Target, Trigger, Via,
};
use herd::transport::network::Network;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Long enough for anything that must happen on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn scenario(address: SocketAddr) -> Scenario {
    Scenario {
        name: "test".into(),
        clients: 1,
        seed: 1,
        shard: Shard::WHOLE,
        target: Target {
            server: Server::Remote,
            url: format!("ws://{address}/live?after={{after}}"),
            more_urls: vec![],
            servers: 1,
            pick: Default::default(),
            ready: None,
            ready_limit: PATIENCE,
            watch_pid: None,
        },
        connect: Connect {
            profile: Spec::builtin(ProfileName::After),
            id: None,
            seq: None,
            ids: IdKind::Opaque,
            contiguous: false,
            headers: vec![],
            clients_file: None,
            subprotocols: vec![],
            credentials: None,
            tls: Default::default(),
            proxy: Default::default(),
            source_ips: vec![],
            ramp: Duration::ZERO,
            timeout: Some(PATIENCE),
            max_message: 1 << 16,
        },
        policy: Policy {
            mix: retries(0),
            source: PolicySource::Named,
        },
        heartbeat: None,
        reload: None,
        outages: vec![Outage {
            trigger: Trigger::Wait { limit: PATIENCE },
            count: 1,
            down: Duration::ZERO,
            falls: 1,
            up: Duration::ZERO,
            share: 1.0,
            refresh: None,
            steady: Duration::ZERO,
            quiet_period: Duration::ZERO,
        }],
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
            max_staleness: None,
            dedupe: vec![],
        },
        output: Output {
            dir: None,
            formats: vec![],
        },
        implied: vec![],
    }
}

/// Gives up after this many retries that come at once.
pub(crate) fn retries(max: u32) -> Mix {
    let mut policy = Backoff::new(Vec::new(), backoff::Growth::fixed(Duration::from_millis(1)));
    policy.limits.attempts = Some(max);
    policy.reset = Reset::AfterUptime(PATIENCE);
    Mix::one("few", policy)
}

pub(crate) fn crew(scenario: &Scenario) -> Arc<Crew> {
    let plan = Plan::new(scenario, &[]).unwrap();
    let own = OwnNumbers {
        base: 0,
        span: 1_000,
    };
    let network = Arc::new(Network::plain(PATIENCE));
    Arc::new(Crew::new(scenario, plan, network, Clock::start(), own))
}

/// What the only client of a crew recorded, as the judge would see it.
pub(crate) fn recorded(crew: &Crew) -> (History, Client) {
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
pub(crate) fn ids(history: &History, client: &Client) -> Vec<String> {
    let receipts = client.entries(history).filter_map(|entry| match entry {
        Entry::Receipt(receipt) => history.event(receipt.event).id.as_deref(),
        _ => None,
    });
    receipts.map(str::to_owned).collect()
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Runs one client until it gives up, against a server that does this to each connection.
pub(crate) async fn run<F, S>(change: impl FnOnce(&mut Scenario), serve: S) -> (History, Client)
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
pub(crate) async fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap() == 0 {
            break;
        }
    }
    String::from_utf8(head).unwrap()
}

pub(crate) fn accept(request: &str) -> String {
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
pub(crate) async fn raw(mut stream: TcpStream) -> TcpStream {
    let answer = accept(&request(&mut stream).await);
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}

pub(crate) async fn tungstenite(stream: TcpStream) -> WebSocketStream<TcpStream> {
    WebSocketStream::from_raw_socket(raw(stream).await, Role::Server, None).await
}

/// A frame as a server sends it.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
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
pub(crate) async fn client_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
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
pub(crate) fn only_failure(client: &Client) -> (Option<u16>, String) {
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
pub(crate) fn only_cause(client: &Client) -> Cause {
    assert_eq!(client.sessions.len(), 1, "{:?}", client.sessions);
    client.sessions[0].closed.clone().expect("it ended").1
}
