//! Bytes that WebSocket clients are known to have read wrongly, each in one write and one byte at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use herd::history::{Cause, Elapsed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::rig::{crew, frame, ids, only_cause, raw, recorded, run, scenario};

/// Bytes a write.
#[derive(Debug, Clone, Copy)]
enum Pace {
    AtOnce,
    OneByOne,
}

/// What a client makes of these bytes: the ids, how many pongs it sent, and how the connection ended for it.
async fn read(bytes: Vec<u8>, pace: Pace, limit: usize) -> (Vec<String>, u32, Cause) {
    let pongs = Arc::new(AtomicU32::new(0));
    let count = pongs.clone();
    let limited = move |s: &mut herd::scenario::Scenario| s.connect.max_message = limit;
    let (history, client) = run(limited, move |stream: TcpStream| {
        let (bytes, count) = (bytes.clone(), count.clone());
        async move {
            let mut stream = raw(stream).await;
            stream.set_nodelay(true).unwrap();
            let chunk = match pace {
                Pace::AtOnce => bytes.len(),
                Pace::OneByOne => 1,
            };
            for part in bytes.chunks(chunk) {
                // Who found an error has left.
                let _ = stream.write_all(part).await;
                tokio::task::yield_now().await;
            }
            let _ = stream.write_all(&frame(0x88, b"\x03\xe8")).await;
            // Up to the client's close frame: whoever waits longer waits for the client, which waits for the server.
            let mut answers = Vec::new();
            while let Ok(1..) = stream.read_buf(&mut answers).await {
                let kinds = kinds(&answers);
                count.store(kinds.iter().filter(|k| **k == 0x8a).count() as u32, Relaxed);
                if kinds.contains(&0x88) {
                    break;
                }
            }
        }
    })
    .await;
    (
        ids(&history, &client),
        pongs.load(Relaxed),
        only_cause(&client),
    )
}

/// The first bytes of a client's short frames: two bytes of header, four of mask, the payload.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [first, length, ..] = bytes
        && let Some(rest) = bytes.get(6 + usize::from(length & 0x7f)..)
    {
        kinds.push(*first);
        bytes = rest;
    }
    kinds
}

fn normal() -> Cause {
    Cause::Close {
        code: Some(1000),
        reason: "".into(),
    }
}

#[tokio::test]
async fn a_message_is_whole_however_it_is_cut() {
    let event = br#"{"id":"helloworld"}"#;
    let (first, second) = event.split_at(9);
    let interrupted = [frame(0x01, first), frame(0x89, b""), frame(0x80, second)].concat();
    let mut crumbs = frame(0x01, b"");
    for byte in event {
        crumbs.extend(frame(0x00, &[*byte]));
    }
    crumbs.extend(frame(0x80, b""));
    let pongs_between = [
        frame(0x01, first),
        frame(0x8a, b"nobody asked"),
        frame(0x89, &[b'p'; 125]),
        frame(0x80, second),
    ]
    .concat();
    let long = format!(r#"{{"id":"helloworld","data":"{}"}}"#, "é".repeat(500));
    for (bytes, pongs) in [
        (interrupted, 1),
        (crumbs, 0),
        (pongs_between, 1),
        (frame(0x81, event), 0),
        (frame(0x82, event), 0),
        (frame(0x81, long.as_bytes()), 0),
    ] {
        for pace in [Pace::AtOnce, Pace::OneByOne] {
            let (ids, answered, cause) = read(bytes.clone(), pace, 1 << 20).await;
            assert_eq!(ids, ["helloworld"], "{pace:?}");
            assert_eq!((answered, cause), (pongs, normal()), "{pace:?}");
        }
    }
}

/// A compressed frame that nobody offered: an error of the protocol, and what came before it stays.
#[tokio::test]
async fn compression_that_was_not_offered_is_an_error_and_no_loss() {
    let deflated = [
        frame(0x81, br#"{"id":"a"}"#),
        frame(0xc1, b"\xaa\x56\x4a\x02\x00"),
    ]
    .concat();
    for pace in [Pace::AtOnce, Pace::OneByOne] {
        let (ids, _, cause) = read(deflated.clone(), pace, 1 << 20).await;
        assert_eq!(
            (ids, cause.name()),
            (vec!["a".to_owned()], "protocol"),
            "{pace:?}"
        );
    }
}

#[tokio::test]
async fn large_messages_are_read_up_to_the_limit_and_named_beyond_it() {
    for size in [1 << 20, 5 << 20] {
        let text = format!(r#"{{"id":"big","data":"{}"}}"#, "x".repeat(size));
        let mut bytes = vec![0x81, 127];
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
        let (ids, _, cause) = read(bytes.clone(), Pace::AtOnce, text.len()).await;
        assert_eq!((ids, cause), (vec!["big".to_owned()], normal()), "{size}");
        let (ids, _, cause) = read(bytes, Pace::AtOnce, text.len() - 1).await;
        assert_eq!((ids.len(), cause), (0, Cause::Oversize), "{size}");
    }
}

/// A listener on each of these addresses, all on one port; none where this machine has no IPv6.
async fn listen_on(hosts: &[&str]) -> Option<Vec<TcpListener>> {
    'port: for _ in 0..50 {
        let mut all: Vec<TcpListener> = Vec::new();
        for host in hosts {
            let port = all.first().map_or(0, |l| l.local_addr().unwrap().port());
            let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
            match TcpListener::bind(address).await {
                Ok(listener) => all.push(listener),
                // The other family's port is taken.
                Err(_) if port != 0 => continue 'port,
                Err(_) => return None,
            }
        }
        return Some(all);
    }
    None
}

#[tokio::test]
async fn localhost_is_found_in_either_family_with_one_socket_a_client() {
    for (hosts, name) in [
        (&["127.0.0.1"][..], "localhost"),
        (&["[::1]"], "localhost"),
        (&["[::1]"], "[::1]"),
        (&["[::1]", "127.0.0.1"], "localhost"),
    ] {
        let Some(listeners) = listen_on(hosts).await else {
            continue;
        };
        let port = listeners[0].local_addr().unwrap().port();
        let accepted = Arc::new(AtomicU32::new(0));
        for listener in listeners {
            let accepted = accepted.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    accepted.fetch_add(1, Relaxed);
                    tokio::spawn(async move {
                        let mut stream = raw(stream).await;
                        let _ = stream.write_all(&frame(0x88, b"\x03\xe8")).await;
                        let _ = stream.read(&mut [0; 64]).await;
                    });
                }
            });
        }
        let mut scenario = scenario(([127, 0, 0, 1], port).into());
        scenario.target.url = format!("ws://{name}:{port}/?after={{after}}");
        scenario.clients = 20;
        let crew = crew(&scenario);
        crew.launch(Elapsed::ZERO).join_all().await;
        let (_, client) = recorded(&crew);
        assert_eq!(only_cause(&client), normal(), "{hosts:?}");
        let attempt = &client.attempts[0];
        let connected = attempt.connected.unwrap();
        assert!(attempt.due <= attempt.dialled && attempt.dialled <= connected);
        assert_eq!(accepted.load(Relaxed), 20, "{hosts:?} by {name}");
    }
}
