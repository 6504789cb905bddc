//! Cuts under other ways to a server than a plain WebSocket: event streams, TLS, a user's proxy, redirects.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::scenario;
use crate::run::peers::Serve;
use crate::run::{Ended, Stage, outcome, together, unless_busy};
use crate::secure::authority::{Asks, Authority, Shows, in_front};

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// An event stream.
    Stream,
    /// A WebSocket inside TLS.
    Secure,
    /// An event stream inside TLS.
    SecureStream,
    /// A WebSocket through the user's HTTP proxy.
    Proxied,
    /// An event stream that another server redirects to.
    Redirected,
}

const CLIENTS: u32 = 16;

const FIN: (&str, &str) = ("", "cut = \"fin\"\ndown = \"300ms\"");
const RST: (&str, &str) = ("", "cut = \"rst\"\ndown = \"300ms\"");
const BLACKHOLE: (&str, &str) = (
    "heartbeat = \"500ms/500ms\"",
    "cut = \"blackhole\"\ndown = \"500ms\"",
);

/// Every way with every cut that ends it in a manner of its own.
const CASES: [(Path, (&str, &str)); 11] = [
    (Path::Stream, FIN),
    (Path::Stream, RST),
    (Path::Stream, BLACKHOLE),
    (Path::Secure, FIN),
    (Path::Secure, BLACKHOLE),
    (Path::SecureStream, RST),
    (Path::SecureStream, BLACKHOLE),
    (Path::Proxied, RST),
    (Path::Proxied, BLACKHOLE),
    (Path::Redirected, FIN),
    (Path::Redirected, BLACKHOLE),
];

/// One run against a server of its own, with a defect or none.
fn run(path: Path, (client, outage): (&str, &str), defect: Option<&str>) -> (Stage, Ended) {
    let stage = Stage::new();
    let ended = {
        let flags: Vec<&str> = defect.iter().flat_map(|d| ["--defect", d]).collect();
        let server = Serve::start(&stage, &flags);
        let upstream = SocketAddr::from(([127, 0, 0, 1], server.port()));
        let live = "v1/live?after={after}&client={client}";
        let authority = Authority::new();
        let secure = || {
            in_front(
                authority.server(Shows::Good, Asks::Nobody, &["http/1.1"]),
                upstream,
            )
        };
        let mut args = vec!["--publish-url".to_owned(), server.publish()];
        let target = match path {
            Path::Stream => format!("http://{upstream}/v1/events"),
            Path::Secure => format!("wss://{}/{live}", secure()),
            Path::SecureStream => format!("https://{}/v1/events", secure()),
            Path::Redirected => format!("http://{}/v1/events", between(upstream)),
            Path::Proxied => {
                args.extend(["--proxy".into(), format!("http://{}", between(upstream))]);
                format!("ws://target.test:{}/{live}", upstream.port())
            }
        };
        if matches!(path, Path::Secure | Path::SecureStream) {
            args.extend(["--cacert".into(), authority.ca()]);
        }
        args.extend(["--target".into(), target]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        stage.run(&scenario(CLIENTS, client, outage), &args).end()
    };
    (stage, ended)
}

/// As a proxy it leads to the server whatever it is asked for; as a server it redirects there.
fn between(upstream: SocketAddr) -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever is cut off in the middle needs no answer.
                tokio::spawn(async move { drop(lead(stream, upstream).await) });
            }
        });
    });
    told.recv().unwrap()
}

async fn lead(mut stream: TcpStream, upstream: SocketAddr) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let asked = head.split(' ').nth(1).unwrap_or_default();
    if head.starts_with("CONNECT ") {
        let mut server = TcpStream::connect(upstream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        copy_bidirectional(&mut stream, &mut server).await?;
        return Ok(());
    }
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{upstream}{asked}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await
}

/// About 40 s: 16 runs, four at a time.
#[test]
fn every_way_to_a_server_can_be_cut_and_what_it_does_wrong_is_found() {
    let passing = CASES.map(|(path, cut)| (path, cut, None));
    let failing = [
        (Path::Stream, RST, Some("lose-on-resume")),
        (Path::Secure, FIN, Some("duplicate-on-resume")),
        (Path::SecureStream, RST, Some("lose-on-resume")),
        (Path::Proxied, RST, Some("duplicate-on-resume")),
        (Path::Redirected, FIN, Some("lose-on-resume")),
    ];
    let all: Vec<_> = passing.into_iter().chain(failing).collect();
    for some in all.chunks(4) {
        together(some.iter().map(|(path, cut, defect)| {
            move || {
                let (stage, ended) = unless_busy(|| run(*path, *cut, *defect));
                let case = format!("{path:?} {cut:?} {defect:?}");
                let wanted = i32::from(defect.is_some());
                assert_eq!(ended.code, Some(wanted), "{case}\n{}", ended.stdout);
                let summary = stage.summary();
                let once = if defect.is_some() { "fail" } else { "pass" };
                assert_eq!(outcome(&summary, "exactly-once"), once, "{case}");
                let outage = &summary["outages"][0];
                assert_eq!(outage["dropped"], CLIENTS, "{case}");
                assert_eq!(outage["reconnected"], CLIENTS, "{case}");
                stage.assert_empty();
            }
        }));
    }
}
