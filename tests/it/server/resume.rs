//! The dialect in which the cursor comes in the first frame: answers, mark, refusal, end.

use std::net::SocketAddr;

use futures::{SinkExt, StreamExt};
use herd::server::Config;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::{LIMIT, Server, Socket, event, kept_in, next, publish_many};

async fn connect(to: SocketAddr) -> Socket {
    let url = format!("ws://{to}/v1/resume?client=7");
    connect_async(url).await.unwrap().0
}

async fn resume(to: SocketAddr, last: Value) -> Socket {
    let mut socket = connect(to).await;
    let frame = json!({ "type": "resume", "lastEventId": last, "clientId": "c-7" });
    socket.send(Message::text(frame.to_string())).await.unwrap();
    socket
}

fn caught_up(last: Value) -> Value {
    json!({ "type": "caught-up", "lastEventId": last })
}

/// The code and reason with which the server closes.
async fn closed(socket: &mut Socket) -> (u16, String) {
    match timeout(LIMIT, socket.next()).await.unwrap() {
        Some(Ok(Message::Close(Some(frame)))) => (frame.code.into(), frame.reason.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_client_that_resumes_is_told_when_the_replay_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(kept_in(dir.path())).await;
    let mut new = resume(server.address, Value::Null).await;
    assert_eq!(next(&mut new).await, caught_up(Value::Null));
    for n in 1..=3 {
        server.publish(&n.to_string()).await;
        assert_eq!(next(&mut new).await, event(n, &json!(n)));
    }
    server.stop().await;

    let server = Server::start(kept_in(dir.path())).await;
    server.publish("4").await;
    let mut resumed = resume(server.address, json!("2")).await;
    for n in 3..=4 {
        assert_eq!(next(&mut resumed).await, event(n, &json!(n)));
    }
    assert_eq!(next(&mut resumed).await, caught_up(json!("4")));
    server.publish("5").await;
    assert_eq!(next(&mut resumed).await, event(5, &json!(5)));
    let mut nothing = resume(server.address, json!("5")).await;
    assert_eq!(next(&mut nothing).await, caught_up(json!("5")));
    server.stop().await;
}

#[tokio::test]
async fn who_has_no_cursor_gets_recent_events_whether_it_says_so_or_nothing() {
    let server = Server::start(Config::default()).await;
    for n in 1..=130 {
        server.publish(&n.to_string()).await;
    }
    let mut says = resume(server.address, Value::Null).await;
    let mut silent = connect(server.address).await;
    silent.send(Message::text("hello")).await.unwrap();
    for socket in [&mut says, &mut silent] {
        for n in 31..=130 {
            assert_eq!(next(socket).await, event(n, &json!(n)));
        }
        assert_eq!(next(socket).await, caught_up(json!("130")));
    }
    // Too late to ask for anything else.
    let frame = json!({ "type": "resume", "lastEventId": "3" });
    silent.send(Message::text(frame.to_string())).await.unwrap();
    assert_eq!(closed(&mut silent).await.0, 1008);
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_that_can_not_be_honoured_is_refused_with_its_reason() {
    let server = Server::start(Config {
        keep: 2,
        ..Config::default()
    })
    .await;
    for n in 1..=5 {
        server.publish(&n.to_string()).await;
    }
    for (last, reason) in [
        (json!("2"), "evicted"),
        (json!("6"), "unknown-id"),
        (json!("never-given"), "unknown-id"),
        (json!(["4"]), "unknown-id"),
    ] {
        let mut socket = resume(server.address, last).await;
        let error = json!({ "type": "resume-error", "reason": reason });
        assert_eq!(next(&mut socket).await, error);
        assert_eq!(closed(&mut socket).await, (4404, reason.into()));
    }
    let mut kept = resume(server.address, json!("3")).await;
    assert_eq!(next(&mut kept).await, event(4, &json!(4)));
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_closes_with_1012_whether_or_not_the_client_spoke() {
    let server = Server::start(Config::default()).await;
    let mut silent = connect(server.address).await;
    let mut spoke = resume(server.address, Value::Null).await;
    assert_eq!(next(&mut spoke).await, caught_up(Value::Null));
    let stopping = tokio::spawn(server.stop());
    for socket in [&mut silent, &mut spoke] {
        assert_eq!(closed(socket).await.0, 1012);
        // Answers the close.
        let _ = timeout(LIMIT, socket.next()).await.unwrap();
    }
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_others_publish_has_no_gap_and_nothing_twice() {
    let server = Server::start(Config::default()).await;
    server.publish("1").await;
    let to = server.address;
    let publishing = tokio::spawn(publish_many(to, 300));
    let readers = (0..20).map(|n| {
        tokio::spawn(async move {
            let last = if n % 2 == 0 { json!("1") } else { Value::Null };
            let mut socket = resume(to, last).await;
            let (mut expected, mut marks) = (None, 0);
            while expected != Some(302) {
                let frame = next(&mut socket).await;
                if frame["type"] == "caught-up" {
                    marks += 1;
                    continue;
                }
                let id: u64 = frame["id"].as_str().unwrap().parse().unwrap();
                let first = if n % 2 == 0 { 2 } else { id };
                assert_eq!(id, expected.unwrap_or(first));
                expected = Some(id + 1);
            }
            assert_eq!(marks, 1);
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    publishing.await.unwrap();
    server.stop().await;
}
