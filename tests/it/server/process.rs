//! The reference server as a process: what SIGKILL takes back (nothing), and the defects that need a restart.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error as WsError;

use super::{LIMIT, next, request, subscribe};

/// The server as its own process, killed when this is dropped.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(dir: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_herd"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir.join("data"))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["listening"].as_str().unwrap().parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sigkill_takes_back_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<(u64, u64)> = Vec::new();
    let mut seq = 0;
    for round in 0..50u64 {
        let server = Process::start(dir.path(), &[]);
        let (acks, answers) = mpsc::channel();
        let publishers: Vec<_> = (0..4)
            .map(|_| {
                seq += 1_000_000;
                tokio::spawn(publish_until_lost(server.address, seq, acks.clone()))
            })
            .collect();
        drop(acks);
        // A different point of its work each time; the pause is what varies, nothing waits for it to be long enough.
        let least = answers.recv_timeout(LIMIT).unwrap();
        tokio::time::sleep(Duration::from_micros(round * 7919 % 40_000)).await;
        drop(server);
        for publisher in publishers {
            publisher.await.unwrap();
        }
        acknowledged.push(least);
        acknowledged.extend(answers.iter());
    }

    let server = Process::start(dir.path(), &[]);
    let newest = acknowledged.iter().map(|(id, _)| *id).max().unwrap();
    let state = request(server.address, "GET /v1/state", "", "")
        .await
        .unwrap()
        .json();
    let kept: u64 = state["newest"].as_str().unwrap().parse().unwrap();
    assert!(
        kept >= newest,
        "acknowledged up to {newest}, kept up to {kept}"
    );
    let mut socket = subscribe(server.address, "?after=0").await;
    let mut stored = HashSet::new();
    let mut last = 0;
    while last < newest {
        let event = next(&mut socket).await;
        let id = event["id"].as_str().unwrap().parse().unwrap();
        assert!(id > last, "{id} after {last}");
        stored.insert((id, event["data"]["seq"].as_u64().unwrap()));
        last = id;
    }
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|ack| !stored.contains(ack))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert!(acknowledged.len() >= 50);
}

async fn publish_until_lost(to: SocketAddr, from: u64, acks: mpsc::Sender<(u64, u64)>) {
    for seq in from.. {
        let body = json!({ "seq": seq }).to_string();
        let Ok(answer) = request(to, "POST /v1/publish", "", &body).await else {
            return;
        };
        let id = answer.json()["id"].as_str().unwrap().parse().unwrap();
        acks.send((id, seq)).unwrap();
    }
}

#[tokio::test]
async fn half_open_sockets_outlive_the_server_and_their_holder_ends_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    let more = [
        "--defect",
        "half-open=2",
        "--ledger",
        ledger.to_str().unwrap(),
    ];
    let server = Process::start(dir.path(), &more);
    let mut sockets = Vec::new();
    for client in 1..=4 {
        sockets.push(subscribe(server.address, &format!("?client={client}")).await);
    }
    let body = r#"{"seq":1}"#;
    request(server.address, "POST /v1/publish", "", body)
        .await
        .unwrap();
    for socket in &mut sockets {
        next(socket).await;
    }
    let holders = children(server.child.id());
    assert_eq!(holders.len(), 1, "one holder");
    drop(server);
    let mut open = Vec::new();
    for mut socket in sockets {
        match timeout(Duration::from_millis(500), socket.next()).await {
            Err(_) => open.push(socket),
            Ok(gone) => assert!(!matches!(gone, Some(Ok(_))), "{gone:?}"),
        }
    }
    assert_eq!(open.len(), 2);
    assert_eq!(std::fs::read_to_string(&ledger).unwrap().lines().count(), 2);
    let again = Process::start(dir.path(), &more);
    drop(open);
    let gone = async {
        while Path::new(&format!("/proc/{}", holders[0])).exists() && !is_zombie(holders[0]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, gone).await.unwrap();
    drop(again);
}

fn children(of: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
    let more = std::fs::read_dir(format!("/proc/{of}/task"))
        .unwrap()
        .map(|task| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        });
    let all: HashSet<u32> = std::iter::once(list)
        .chain(more)
        .flat_map(|list| {
            list.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    all.into_iter().collect()
}

/// Its parent is gone, and what adopted it may be slow to bury it.
fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

#[tokio::test]
async fn restart_defects_act_after_a_restart_only() {
    for (defect, opens) in [("refuse-some=1", false), ("accept-then-close", true)] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger");
        let more = ["--defect", defect, "--ledger", ledger.to_str().unwrap()];
        let server = Process::start(dir.path(), &more);
        let mut socket = subscribe(server.address, "?client=1").await;
        request(server.address, "POST /v1/publish", "", "1")
            .await
            .unwrap();
        next(&mut socket).await;
        drop(server);
        let server = Process::start(dir.path(), &more);
        for path in ["live?after=1&client=1", "resume?client=1"] {
            match connect_async(format!("ws://{}/v1/{path}", server.address)).await {
                Ok((mut socket, _)) => {
                    assert!(opens, "{defect}");
                    let end = timeout(LIMIT, socket.next()).await.unwrap();
                    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
                }
                Err(WsError::Http(answer)) => {
                    assert_eq!((answer.status().as_u16(), opens), (503, false))
                }
                Err(e) => panic!("{e}"),
            }
        }
        let stream = request(server.address, "GET /v1/events?client=1", "", "");
        let stream = stream.await.unwrap();
        if opens {
            assert_eq!((stream.status, stream.body.as_str()), (200, "0\r\n\r\n"));
        } else {
            assert_eq!(stream.status, 503);
        }
        let lines = std::fs::read_to_string(&ledger).unwrap().lines().count();
        assert_eq!(lines, if opens { 3 } else { 1 }, "{defect}");
    }
}

#[tokio::test]
async fn it_dies_again_once_only() {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--defect", "die-again=2"];
    let server = Process::start(dir.path(), &more);
    request(server.address, "POST /v1/publish", "", "1")
        .await
        .unwrap();
    drop(server);
    let mut server = Process::start(dir.path(), &more);
    let url = |server: &Process| format!("ws://{}/v1/live", server.address);
    let _one = connect_async(url(&server)).await.unwrap();
    assert!(connect_async(url(&server)).await.is_err());
    assert!(!server.child.wait().unwrap().success());
    let server = Process::start(dir.path(), &more);
    for _ in 0..3 {
        connect_async(url(&server)).await.unwrap();
    }
}
