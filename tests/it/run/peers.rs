//! What herd meets in these tests: `herd serve` as somebody else's server, and servers that know no better.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use herd::target::port::Held;

use super::{Stage, until};

/// `herd serve` on a port that stays its own over restarts.
pub(super) struct Serve<'a> {
    stage: &'a Stage,
    held: Held,
    args: Vec<String>,
    child: Option<std::process::Child>,
}

impl<'a> Serve<'a> {
    pub(super) fn start(stage: &'a Stage, args: &[&str]) -> Self {
        let mut serve = Self {
            stage,
            held: Held::pick().unwrap(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            child: None,
        };
        serve.begin();
        serve
    }

    pub(super) fn port(&self) -> u16 {
        self.held.port()
    }

    pub(super) fn target(&self) -> String {
        let port = self.port();
        format!("ws://127.0.0.1:{port}/v1/live?after={{after}}&client={{client}}")
    }

    pub(super) fn publish(&self) -> String {
        format!("http://127.0.0.1:{}/v1/publish", self.port())
    }

    pub(super) fn ready(&self) -> String {
        format!("http://127.0.0.1:{}/healthz", self.port())
    }

    /// The command line that starts it.
    pub(super) fn line(&self) -> String {
        format!(
            "{} serve --listen 127.0.0.1:{} --data {} {}",
            env!("CARGO_BIN_EXE_herd"),
            self.port(),
            self.stage.text("data"),
            self.args.join(" ")
        )
    }

    fn begin(&mut self) {
        let child = self
            .stage
            .command("sh")
            .args(["-c", &format!("exec {}", self.line())])
            .stdout(std::process::Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        until("the server's start", || {
            TcpStream::connect(("127.0.0.1", self.port())).ok()
        });
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, std::process::Child::id)
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may be gone already.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// As a deploy: SIGKILL, a pause, and the same again.
    pub(super) fn restart(&mut self, pause: Duration) {
        self.kill();
        std::thread::sleep(pause);
        self.begin();
    }
}

/// The process whose id is in this file, which ends with this: what a command started is the user's, so it outlives the run.
pub(super) struct Left<'a>(pub(super) &'a Stage, pub(super) &'a str);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.0.path(self.1)).unwrap_or_default();
        if let Some(pid) = pid
            .trim()
            .parse()
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            // It may be gone already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Somebody who does the same again and again until dropped.
pub(super) struct Others {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    /// Publishes to `herd serve`.
    pub(super) fn publish(port: u16) -> Self {
        Self::repeat(Duration::from_millis(40), move || {
            // While the server is down nobody publishes.
            let _ = post(port);
        })
    }

    /// Listens on a port and takes every connection, without a word.
    pub(super) fn hold_silently(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut held = Vec::new();
        Self::repeat(Duration::from_millis(10), move || {
            while let Ok((stream, _)) = listener.accept() {
                held.push(stream);
            }
        })
    }

    fn repeat(pause: Duration, mut act: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                act();
                std::thread::sleep(pause);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn post(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let body = r#"{"hello":1}"#;
    let length = body.len();
    write!(
        stream,
        "POST /v1/publish HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    stream.read_to_end(&mut Vec::new()).map(|_| ())
}

/// A server that gives every connection the same answer and ends it.
pub(super) struct Fake {
    port: u16,
}

impl Fake {
    /// Lives as long as the test binary; a thread that waits costs nothing.
    pub(super) fn answering(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // A client may leave first.
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                if !answer.is_empty() {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(answer);
                }
            }
        });
        Self { port }
    }

    /// Accepts every handshake, says this once, and then nothing more.
    pub(super) fn saying(frame: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                if let Ok(mut socket) = tokio_tungstenite::tungstenite::accept(stream) {
                    // A client may leave first.
                    let _ = socket.send(frame.into());
                    open.push(socket);
                }
            }
        });
        Self { port }
    }

    /// Accepts every handshake and ends the connection.
    pub(super) fn hanging_up() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            // `accept` returns once the handshake is done; who declined it was never let in.
            for stream in listener.incoming().flatten() {
                drop(tokio_tungstenite::tungstenite::accept(stream));
            }
        });
        Self { port }
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/live", self.port)
    }
}

/// Stands before a server and passes bytes on, until it cuts the connection that is the `nth` (from 1) to reach the server,
/// half a second after it was made: real time, because what the clients do meanwhile can't be seen from outside.
pub(super) fn relay_that_cuts(nth: usize, to: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut reached = 0;
        for client in listener.incoming().flatten() {
            // While the server is down its clients are hung up on.
            let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
                continue;
            };
            reached += 1;
            pass_on(&client, &server);
            pass_on(&server, &client);
            if reached == nth {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(500));
                    let _ = client.shutdown(Shutdown::Both);
                    let _ = server.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

fn pass_on(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        // Either side may end it; the other one is told.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
