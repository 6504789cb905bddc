//! The event stream, read byte by byte off the socket: its form, its cursor, its end.

use std::net::SocketAddr;

use herd::server::{Config, Limits};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{LIMIT, Server, kept_in, publish_many, request};

/// A stream that was answered.
struct Stream {
    head: String,
    reader: BufReader<TcpStream>,
    text: String,
}

impl Stream {
    async fn open(to: SocketAddr, query: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let request = format!("GET /v1/events{query} HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = timeout(LIMIT, reader.read_line(&mut head)).await.unwrap();
            assert_ne!(line.unwrap(), 0, "{head}");
        }
        Self {
            head: head.to_ascii_lowercase(),
            reader,
            text: String::new(),
        }
    }

    /// After its cursor, with what comes first out of the way.
    async fn after(to: SocketAddr, cursor: &str) -> Self {
        let mut stream = Self::open(to, "", &format!("Last-Event-ID: {cursor}\r\n")).await;
        assert_eq!(stream.block().await.unwrap(), "retry: 3000\n\n");
        stream
    }

    /// One chunk of the body; false = that was the last.
    async fn chunk(&mut self) -> bool {
        let mut size = String::new();
        self.reader.read_line(&mut size).await.unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).await.unwrap();
        self.text += std::str::from_utf8(&chunk[..size]).unwrap();
        size > 0
    }

    /// The next block with its blank line; none = the stream has ended, and no block is half there.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                return Some(std::mem::replace(&mut self.text, rest));
            }
            if !timeout(LIMIT, self.chunk()).await.unwrap() {
                assert_eq!(self.text, "");
                return None;
            }
        }
    }
}

fn event(id: u64, data: &str) -> Option<String> {
    Some(format!("id: {id}\nevent: event\ndata: {data}\n\n"))
}

#[tokio::test]
async fn a_stream_replays_then_goes_on_live_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(kept_in(dir.path())).await;
    let mut live = Stream::open(server.address, "?client=3", "").await;
    assert!(live.head.starts_with("http/1.1 200 "), "{}", live.head);
    for line in [
        "content-type: text/event-stream\r\n",
        "cache-control: no-store\r\n",
    ] {
        assert!(live.head.contains(line), "{}", live.head);
    }
    assert_eq!(live.block().await.unwrap(), "retry: 3000\n\n");
    for n in 1..=3 {
        server
            .publish(&format!("{{\"seq\":{n},\n \"a\": 1.0}}"))
            .await;
        let data = format!("{{\"seq\":{n},\ndata:  \"a\": 1.0}}");
        assert_eq!(live.block().await, event(n, &data));
    }
    server.stop().await;
    assert_eq!(live.block().await, None);

    let server = Server::start(kept_in(dir.path())).await;
    server.publish("4").await;
    let mut resumed = Stream::after(server.address, "3").await;
    server.publish("5").await;
    assert_eq!(resumed.block().await, event(4, "4"));
    assert_eq!(resumed.block().await, event(5, "5"));
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_that_can_not_be_honoured_gets_one_reset() {
    let server = Server::start(Config {
        keep: 2,
        ..Config::default()
    })
    .await;
    for n in 1..=5 {
        server.publish(&n.to_string()).await;
    }
    for cursor in ["2", "6", "never-given", "\u{e9}", "05"] {
        let mut stream = Stream::after(server.address, cursor).await;
        assert_eq!(
            stream.block().await.unwrap(),
            "id: 5\nevent: reset\ndata: 5\n\n"
        );
    }
    let mut kept = Stream::after(server.address, "3").await;
    assert_eq!(kept.block().await, event(4, "4"));
    // The header is newer than the URL; an empty one is none.
    for (query, headers, first) in [
        ("?after=4", "", 5),
        ("?after=4", "last-event-id: 3\r\n", 4),
        ("?after=4", "last-event-id: \r\n", 5),
    ] {
        let mut stream = Stream::open(server.address, query, headers).await;
        stream.block().await.unwrap();
        assert_eq!(stream.block().await, event(first, &first.to_string()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams_and_frees_its_port() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(kept_in(dir.path())).await;
    let listen = server.address;
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(Stream::after(listen, "").await);
    }
    server.stop().await;
    for stream in &mut streams {
        assert_eq!(stream.block().await, None);
    }
    let again = Config {
        listen,
        ..kept_in(dir.path())
    };
    Server::start(again).await.stop().await;
}

#[tokio::test]
async fn a_stream_counts_as_a_subscriber_until_it_is_closed() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let server = Server::start(Config {
        limits,
        ..Config::default()
    })
    .await;
    let one = Stream::after(server.address, "").await;
    let refused = request(server.address, "GET /v1/events", "", "")
        .await
        .unwrap();
    assert_eq!(refused.status, 503);
    drop(one);
    let again = async {
        while !Stream::open(server.address, "", "")
            .await
            .head
            .contains(" 200 ")
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, again).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_others_publish_has_no_gap_and_nothing_twice() {
    let server = Server::start(Config::default()).await;
    server.publish("1").await;
    let to = server.address;
    let publishing = tokio::spawn(publish_many(to, 300));
    let readers = (0..20).map(|_| {
        tokio::spawn(async move {
            let mut stream = Stream::after(to, "1").await;
            for id in 2..=301 {
                let block = stream.block().await.unwrap();
                assert!(
                    block.starts_with(&format!("id: {id}\n")),
                    "{block} for {id}"
                );
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    publishing.await.unwrap();
    server.stop().await;
}
