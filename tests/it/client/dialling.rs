//! Dials that fail, each in its own way.

use herd::client::Status;
use herd::history::{AttemptOutcome, Elapsed};
use herd::scenario::Scenario;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::rig::{PATIENCE, crew, listen, only_failure, recorded, request, run, scenario};

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
    scenario.connect.timeout = Some(Duration::from_millis(100));
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
        let short = |s: &mut Scenario| s.connect.timeout = Some(Duration::from_millis(100));
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
