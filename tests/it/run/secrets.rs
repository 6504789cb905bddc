//! Secrets given in every way, to a server and a proxy that repeat them in every way: none may be found afterwards.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Running, Stage, together};
use crate::secure::authority::{Asks, Authority, Shows};

/// Six clients, one restart, a few seconds.
const SHORT: &str = r#"
clients = 6
seed = 3
[connect]
ramp = "100ms"
[client.backoff]
preset = "fixed"
delay = "150ms"
[outage]
steady = "300ms"
quiet-period = "300ms"
command-limit = "2s"
[publish]
rate = "40/s"
headers = ["X-Publish-Key: pub-secret-1", "X-From-File: {file:FILE}"]
[checks]
settle = "2s"
"#;

/// Every secret that is given, as it is given or comes from somewhere.
const SECRETS: [&str; 14] = [
    "pub-secret-1",
    "file-secret-2",
    "env-secret-3",
    "header-secret-4",
    "query-secret-5",
    "info-secret-6",
    "info-user-6",
    "bearer-secret-7",
    "user-secret-8",
    "proxy-secret-9",
    "proxyuser-9",
    "cookie-secret-10",
    "ready-secret-11",
    "pubinfo-secret-12",
];

/// Logins that travel in base64.
const LOGINS: [&str; 4] = [
    "info-user-6:info-secret-6",
    "someone:user-secret-8",
    "proxyuser-9:proxy-secret-9",
    "pubinfo:pubinfo-secret-12",
];

/// A server that remembers every secret that it is told, and says them to whoever calls.
#[derive(Clone)]
struct Parrot {
    acceptor: TlsAcceptor,
    /// Those of the secrets that herd was given.
    given: Vec<&'static str>,
    heard: Arc<Mutex<Vec<String>>>,
    log: Arc<Mutex<Vec<String>>>,
    news: broadcast::Sender<usize>,
    /// Exists while the server is down.
    down: PathBuf,
    /// How often it repeated something, so that each secret has its turn.
    turns: Arc<Mutex<usize>>,
}

impl Parrot {
    /// Starts it behind a proxy; returns the proxy's port.
    fn start(authority: &Authority, down: &Path, given: Vec<&'static str>) -> u16 {
        let parrot = Self {
            acceptor: authority.server(Shows::Good, Asks::Nobody, &["http/1.1"]),
            given,
            heard: Arc::default(),
            log: Arc::default(),
            news: broadcast::channel(1024).0,
            down: down.into(),
            turns: Arc::default(),
        };
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap().port()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(parrot.clone().proxy(stream).map(|_| ()));
                }
            });
        });
        told.recv().unwrap()
    }

    /// Listens for secrets in a head.
    fn hear(&self, head: &str) {
        let mut heard = self.heard.lock().unwrap();
        for word in head.split([' ', '\r', '\n', '&', '=', ';', '?']) {
            if word.len() > 10 && !heard.iter().any(|known| known == word) {
                heard.push(word.to_owned());
            }
        }
    }

    /// What it says next: another secret each time, with as much before it that some texts are cut in its midst.
    fn say(&self) -> String {
        let heard = self.heard.lock().unwrap();
        let mut turns = self.turns.lock().unwrap();
        *turns += 1;
        let word = &heard[*turns % heard.len()];
        let decoded = self.given[*turns % self.given.len()];
        let before = "x".repeat(*turns * 7 % 90);
        format!("{before} {decoded} {word}")
    }

    async fn proxy(self, mut stream: TcpStream) -> std::io::Result<()> {
        let head = head(&mut stream).await?;
        if !head.starts_with("CONNECT target.test:443 ") {
            return Ok(());
        }
        self.hear(&head);
        let even = self.turns.lock().unwrap().is_multiple_of(2);
        if self.down.exists() && even {
            let answer = format!("HTTP/1.1 502 {}\r\n\r\n", self.say());
            return stream.write_all(answer.as_bytes()).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let stream = self.acceptor.clone().accept(stream).await?;
        self.serve(stream).await
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(self, mut stream: S) -> std::io::Result<()> {
        loop {
            let request = head(&mut stream).await?;
            self.hear(&request);
            if request.starts_with("GET /live") {
                return self.live(stream, &request).await;
            }
            if request.starts_with("GET /ready") {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .await?;
                continue;
            }
            let length = value(&request, "content-length").unwrap().parse().unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            let id = {
                let mut log = self.log.lock().unwrap();
                log.push(String::from_utf8(body).unwrap());
                log.len()
            };
            // Nobody may listen yet.
            let _ = self.news.send(id);
            let answer = format!(r#"{{"id":{id},"echo":"{}"}}"#, self.say());
            let length = answer.len();
            let answer =
                format!("HTTP/1.1 201 Created\r\ncontent-length: {length}\r\n\r\n{answer}");
            stream.write_all(answer.as_bytes()).await?;
        }
    }

    async fn live<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        mut stream: S,
        request: &str,
    ) -> std::io::Result<()> {
        if self.down.exists() {
            let answer = format!("HTTP/1.1 401 {}\r\n\r\n", self.say());
            stream.write_all(answer.as_bytes()).await?;
            return stream.shutdown().await;
        }
        let mut news = self.news.subscribe();
        let key = derive_accept_key(value(request, "sec-websocket-key").unwrap().as_bytes());
        let answer = format!(
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {key}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await?;
        for _ in 0..2 {
            stream
                .write_all(&text(&format!(r#"{{"echo":"{}"}}"#, self.say())))
                .await?;
        }
        let after = request.split_once("after=").unwrap().1;
        let digits = after
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>();
        let mut next = digits
            .parse()
            .unwrap_or_else(|_| self.log.lock().unwrap().len())
            + 1;
        loop {
            let event = self.log.lock().unwrap().get(next - 1).cloned();
            if let Some(event) = event {
                stream
                    .write_all(&text(&format!(r#"{{"id":{next},"data":{event}}}"#)))
                    .await?;
                next += 1;
                continue;
            }
            stream.flush().await?;
            if self.down.exists() {
                let mut reason = self.say();
                reason.truncate(100);
                let payload = [&4001u16.to_be_bytes()[..], reason.as_bytes()].concat();
                let close = [&[0x88, payload.len() as u8][..], &payload].concat();
                stream.write_all(&close).await?;
                return stream.shutdown().await;
            }
            // The channel never ends; whoever is behind looks into the log.
            let _ = news.recv().await;
        }
    }
}

async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (n, value) = line.split_once(": ")?;
        n.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn text(payload: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 126];
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend(payload.as_bytes());
    frame
}

/// How the secrets of one run are given.
struct Given {
    target: &'static str,
    publish: &'static str,
    args: &'static [&'static str],
    proxy: Through,
}

enum Through {
    Flag,
    Environment,
}

fn run(given: &Given) {
    let authority = Authority::new();
    let stage = Stage::new();
    let down = stage.path("down");
    let words = format!("{SHORT}{}{}{:?}", given.target, given.publish, given.args);
    let is_given = |secret: &&str| match *secret {
        "file-secret-2" | "ready-secret-11" => true,
        "env-secret-3" => words.contains("HERD_TEST_SECRET"),
        secret => words.contains(secret) || secret.starts_with("proxy"),
    };
    let known = SECRETS.into_iter().filter(is_given).collect();
    let port = Parrot::start(&authority, &down, known);
    let secret = stage.file("secret", "file-secret-2\n");
    let restart = format!("touch {0}; sleep 0.6; rm {0}", down.display());
    let (ca, proxy) = (
        authority.ca(),
        format!("http://proxyuser-9:proxy-secret-9@127.0.0.1:{port}"),
    );
    let scenario = SHORT.replace("FILE", &secret);
    let ready = "https://target.test/ready?key=ready-secret-11";
    let mut args = vec![
        "--target",
        given.target,
        "--publish-url",
        given.publish,
        "--ready",
        ready,
    ];
    args.extend(["--cacert", &ca, "--restart-cmd", &restart, "--json"]);
    args.extend(given.args);
    if matches!(given.proxy, Through::Flag) {
        args.extend(["--proxy", &proxy]);
    }
    let mut command = stage.run_command(&scenario, &args);
    command.env("HERD_TEST_SECRET", "env-secret-3");
    // Whatever this machine's own environment says.
    for name in ["https_proxy", "no_proxy", "NO_PROXY"] {
        command.env_remove(name);
    }
    if matches!(given.proxy, Through::Environment) {
        command.env("HTTPS_PROXY", &proxy);
    }
    let ended = Running::start(&mut command).end();
    assert!(
        [0, 1, 3].map(Some).contains(&ended.code),
        "{}",
        ended.stderr
    );
    let checked = stage.check(&[]);
    let history = herd::history::file::read_all(&[stage.path("out/history.herd")]).unwrap();
    let mut places = vec![
        ("stdout".to_owned(), ended.stdout),
        ("stderr".to_owned(), ended.stderr),
        ("check".to_owned(), checked.stdout + &checked.stderr),
        ("history".to_owned(), format!("{history:?}")),
    ];
    for entry in std::fs::read_dir(stage.path("out")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        places.push((
            entry.path().display().to_string(),
            String::from_utf8_lossy(&bytes).into(),
        ));
    }
    // The server did say them, and it was written down.
    let recorded = &places[3].1;
    for (what, words) in [
        ("unread", "echo"),
        ("close reason", "4001"),
        ("status", "answered 401"),
    ] {
        assert!(
            recorded.contains(words),
            "no {what} was recorded: {recorded}"
        );
    }
    assert!(recorded.matches("***").count() > 6, "{recorded}");
    let encoded = LOGINS.map(herd::secrets::basic);
    let encoded = encoded.iter().map(|login| &login["Basic ".len()..]);
    for secret in encoded.chain(SECRETS) {
        // Also where a text was cut within the secret.
        let part = &secret[..secret.len() - 4];
        for (place, text) in &places {
            assert!(!text.contains(part), "{part} is in {place}:\n{text}");
        }
    }
}

#[test]
fn no_secret_is_written_anywhere_whatever_the_server_repeats() {
    let publish = "https://target.test/publish";
    together([
        Given {
            target: "wss://info-user-6:info-secret-6@target.test/live?after={after}&token=query-secret-5",
            publish: "https://pubinfo:pubinfo-secret-12@target.test/publish",
            args: &["-H", "X-Api-Key: header-secret-4", "-H", "Cookie: a=b; sid=cookie-secret-10"],
            proxy: Through::Flag,
        },
        Given {
            target: "wss://target.test/live?token={env:HERD_TEST_SECRET}&after={after}&c={client}",
            publish,
            args: &["--bearer", "bearer-secret-7"],
            proxy: Through::Environment,
        },
        Given {
            target: "wss://target.test/live?after={after}",
            publish,
            args: &["--user", "someone:user-secret-8", "-H", "X-Env: key={env:HERD_TEST_SECRET}"],
            proxy: Through::Flag,
        },
    ]
    .map(|given| move || run(&given)));
}
