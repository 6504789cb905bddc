//! Real processes and sockets: guards, supervised servers, triggers, publishers.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what fails here fails the test"
)]

mod publisher;
mod supervised;
mod triggers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use herd::clock::Clock;
use herd::target::Server;
use herd::target::guarded::{Place, Program};
use herd::target::port::Held;
use herd::target::probe::Probe;
use herd::transport::network::Network;
use rustix::process::Pid;
use tokio::task::JoinHandle;

/// TCP alone.
fn network() -> Arc<Network> {
    Arc::new(Network::plain(Duration::from_secs(10)))
}

/// Waits until a condition holds, a minute at most.
async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(value) = condition() {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} never happened");
}

/// Whether a process exists and isn't a zombie.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|s| !s.starts_with(['Z', 'X']))
    })
}

fn kill(pid: i32) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
}

/// A number that a script wrote to a file, once it is there.
fn number(path: &Path) -> Option<i32> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// A directory, a port and a stand-in for a server's socket: a shell can't listen, so while the process whose id is in
/// the file `pid` lives, the test listens on the port.
struct Stage {
    dir: tempfile::TempDir,
    held: Held,
    beacon: JoinHandle<()>,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let held = Held::pick().unwrap();
        let (pid, port) = (dir.path().join("pid"), held.port());
        let beacon = tokio::spawn(async move {
            let mut listener = None;
            loop {
                if number(&pid).is_some_and(is_alive) {
                    if listener.is_none() {
                        listener = std::net::TcpListener::bind(("127.0.0.1", port)).ok();
                    }
                } else {
                    listener = None;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Self { dir, held, beacon }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn place(&self) -> Place {
        Place {
            herd: env!("CARGO_BIN_EXE_herd").into(),
            log: self.path("log"),
        }
    }

    fn probe(&self) -> Probe {
        Probe::connect(&format!("ws://127.0.0.1:{}/", self.held.port()), network()).unwrap()
    }

    /// A server of this script, run in the stage's directory.
    fn server(&self, script: &str) -> Server {
        Server {
            again: Vec::new(),
            program: Program::Shell(self.script(script)),
            env: vec![("PORT".into(), self.held.port().to_string())],
            place: self.place(),
            probe: self.probe(),
            ready_limit: Duration::from_secs(60),
        }
    }

    fn script(&self, script: &str) -> String {
        format!("cd '{}' || exit 9\n{script}", self.dir.path().display())
    }

    async fn pid(&self) -> i32 {
        until("the server's start", || number(&self.path("pid"))).await
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.beacon.abort();
    }
}

/// A script that says that it is up and stays so.
const UP: &str = "echo $$ > pid.new && mv pid.new pid && exec sleep 1000";

fn clock() -> Clock {
    Clock::start()
}
