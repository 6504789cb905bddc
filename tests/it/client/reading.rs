//! What an open connection may bring, and how it may end.

use futures::{SinkExt, StreamExt};
use herd::history::{Cause, Seq};
use herd::scenario::{Scenario, Via};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::rig::{accept, client_frame, frame, ids, only_cause, raw, request, run, tungstenite};

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

/// herd's numbers in these tests are 1 to 1,000.
#[tokio::test]
async fn the_numbers_of_what_could_not_be_read_are_recorded_once_and_with_the_frame() {
    const FRAMES: &[&str] = &[
        "hello",
        r#"{"id":"a","data":{"seq":1}}"#,
        r#"{"type":"replay","event":{"id":"b","data":{"seq":2}}}"#,
        r#"{"type":"replay","event":{"id":"c","data":{"seq":3}}}"#,
        // Read as an event, and without its number.
        r#"{"id":"d","data":"{\"seq\":5}"}"#,
        r#"{"id":"e","events":[{"seq":3},{"seq":4},{"seq":1001}]}"#,
        // Cut short.
        r#"{"id":"f","data":{"seq":9}"#,
        r#"{"type":"replay","event":{"id":"b","data":{"seq":2}}}"#,
    ];
    let by_herd = |s: &mut Scenario| s.publish.via = Via::Command("true".into());
    let (history, client) = run(by_herd, async |stream: TcpStream| {
        let mut ws = tungstenite(stream).await;
        for text in FRAMES {
            ws.send(Message::text(*text)).await.unwrap();
        }
        ws.close(None).await.unwrap();
        while let Some(Ok(_)) = ws.next().await {}
    })
    .await;
    assert_eq!(ids(&history, &client), ["a", "d", "e"]);
    let traced: Vec<_> = client
        .traced
        .iter()
        .map(|t| (t.first.0, t.last.0))
        .collect();
    assert_eq!(traced, [(2, 2), (3, 3), (5, 5), (4, 4)]);
    let kept = |at| client.unread.iter().find(|(kept, _)| *kept == at);
    assert!(kept(client.traced[0].at).unwrap().1.contains(r#""seq":2"#));
    // Three of those with numbers, and the two others.
    assert_eq!(client.unread.len(), 5);
}

#[tokio::test]
async fn the_first_event_that_lacks_its_number_or_a_cursor_is_kept() {
    async fn say(stream: TcpStream, frames: &[&str]) {
        let mut ws = tungstenite(stream).await;
        for text in frames {
            ws.send(Message::text(*text)).await.unwrap();
        }
        ws.close(None).await.unwrap();
        while let Some(Ok(_)) = ws.next().await {}
    }
    let by_herd = |s: &mut Scenario| s.publish.via = Via::Command("true".into());
    let kept = |client: &herd::history::Client| {
        let kept = client.lacking.as_ref();
        (kept.map(|(_, text)| text.to_string()), client.unread.len())
    };
    let (_, client) = run(by_herd, async |stream| {
        say(
            stream,
            &[
                r#"{"id":"a","data":{"seq":1}}"#,
                r#"{"id":"b","n":5000}"#,
                r#"{"id":"c"}"#,
            ],
        )
        .await;
    })
    .await;
    assert_eq!(kept(&client), (Some(r#"{"id":"b","n":5000}"#.into()), 0));
    let (_, client) = run(by_herd, async |stream| {
        say(
            stream,
            &[r#"{"data":{"seq":1}}"#, r#"{"id":"b","data":{"seq":2}}"#],
        )
        .await;
    })
    .await;
    assert_eq!(kept(&client), (Some(r#"{"data":{"seq":1}}"#.into()), 0));
    // Where others publish an event has no number.
    let (_, client) = run(|_| {}, async |stream| say(stream, &[r#"{"id":"b"}"#]).await).await;
    assert_eq!(kept(&client), (None, 0));
}
