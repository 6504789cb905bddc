//! Cursors, records, and the conductor's view.

use futures::{SinkExt, StreamExt};
use herd::backoff::presets;
use herd::client::Status;
use herd::history::{AttemptOutcome, Cause, Client, ClientEvent, Elapsed, IdKind, Seq};
use herd::scenario::{Scenario, Via};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};

use super::rig::{
    PATIENCE, accept, crew, listen, recorded, request, retries, run, scenario, tungstenite,
};

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

async fn resumed(
    ids_are: IdKind,
    sessions: &'static [&'static [&'static str]],
) -> (Client, Vec<String>) {
    resumed_by(Via::Observe, ids_are, sessions).await
}

/// Serves `sessions` in turn, each a list of messages, and tells the request lines.
async fn resumed_by(
    via: Via,
    ids_are: IdKind,
    sessions: &'static [&'static [&'static str]],
) -> (Client, Vec<String>) {
    let (sent, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let turn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let retry = move |s: &mut Scenario| {
        s.connect.ids = ids_are;
        s.publish.via = via;
        s.policy.mix = retries(sessions.len() as u32 - 1);
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

#[tokio::test]
async fn where_herd_publishes_only_its_own_events_become_the_cursor() {
    const SESSIONS: &[&[&str]] = &[
        &[
            r#"{"id":"1","data":{"seq":5}}"#,
            r#"{"type":"presence","id":"user7"}"#,
            r#"{"id":"2","data":{"seq":999999}}"#,
        ],
        &[
            r#"{"type":"reset","id":"r"}"#,
            r#"{"type":"presence","id":"user7"}"#,
        ],
        &[],
    ];
    let via = Via::Command("true".into());
    let (client, lines) = resumed_by(via, IdKind::Opaque, SESSIONS).await;
    assert_eq!(lines[1], "GET /live?after=1 HTTP/1.1");
    assert_eq!(lines[2], "GET /live?after=r HTTP/1.1");
    assert_eq!(client.sessions.len(), 3);
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
    scenario.policy.mix = retries(3);
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
    scenario.policy.mix = presets::find(presets::DEFAULT).unwrap().mix();
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
