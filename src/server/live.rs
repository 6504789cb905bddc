//! `GET /v1/live`: one subscriber's WebSocket. It decides when something is sent and why the connection ends; what is
//! sent comes from its feed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{ConnectInfo, Query, State};
use axum::response::Response;
use futures::SinkExt;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};
use xxhash_rust::xxh3::xxh3_64;

use super::App;
use super::defect::Defect;
use super::feed::{Broken, Feed};
use super::listen::Peer;
use super::problem::Problem;

/// A subscriber is pinged so often, and given up when it was silent through [`SILENT`] of them.
const PING: Duration = Duration::from_secs(15);
const SILENT: u32 = 3;
/// How long one part of what is sent may take.
const SEND: Duration = Duration::from_secs(30);
/// How long the closing handshake may take.
const CLOSE: Duration = Duration::from_secs(1);
/// How long `reorder` waits for the next event.
const HOLD: Duration = Duration::from_secs(1);

/// Subscribers send next to nothing and are sent short frames: the library's 128 KiB for each would be the server's
/// whole memory.
const READ_BUFFER: usize = 1 << 10;
const WRITE_BUFFER: usize = 4 << 10;

#[derive(Deserialize)]
pub(super) struct Asked {
    after: Option<String>,
    client: Option<String>,
}

/// Why a connection ends.
enum End {
    /// The client closed it, or is gone.
    Gone,
    /// The server is stopping.
    Restart,
    /// It doesn't take what it is sent.
    Stuck,
    /// The feed can't go on.
    Feed(Broken),
}

/// What a subscriber was waiting for.
enum Wake {
    /// The log has grown.
    More,
    /// The client said something.
    Heard,
    /// A ping is due.
    Ping,
    /// No neighbour came for the event that a defect holds back.
    Release,
}

pub(super) async fn live(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    asked: Result<Query<Asked>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = asked.map_err(|e| Problem::bad_request(e.body_text()))?;
    let upgrade = upgrade.map_err(|e| Problem::upgrade_required(e.body_text()))?;
    let client = match &asked.client {
        Some(client) => client
            .parse()
            .unwrap_or_else(|_| xxh3_64(client.as_bytes())),
        None => u64::from(peer.port()),
    };
    app.faults.on_handshake().await;
    if app.faults.refuses(client) {
        return Err(Problem::unavailable("this client is refused"));
    }
    let permit = Arc::clone(&app.subscribers)
        .try_acquire_owned()
        .map_err(|_| Problem::unavailable("too many subscribers; come back later"))?;
    // Subscribed before the 101 is answered: whatever is published once the client knows that it is open, it gets.
    let changes = app.log.changes();
    let feed = Feed::open(&app.log, asked.after.as_deref(), client, &app.faults);
    let upgrade = upgrade
        .max_message_size(app.limits.frame)
        .max_frame_size(app.limits.frame)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER);
    Ok(upgrade.on_upgrade(move |socket| async move {
        if app.faults.flaps(client) {
            return;
        }
        if let Some(holder) = &app.holder
            && app.faults.holds(client)
            && app.faults.note(Defect::HalfOpen, Some(client), None)
        {
            holder.take(&peer);
        }
        drop(peer);
        let subscriber = Subscriber {
            socket,
            feed,
            stop: app.stop.clone(),
            ping: pings(),
            silent: 0,
        };
        subscriber.run(changes, permit).await;
    }))
}

/// The first tick of a new interval is at once; the first ping is due a whole one later.
fn pings() -> Interval {
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    ping
}

struct Subscriber {
    socket: WebSocket,
    feed: Feed,
    stop: watch::Receiver<bool>,
    ping: Interval,
    /// Pings since it was last heard.
    silent: u32,
}

impl Subscriber {
    /// Serves it to its end. The permit counts it as long as this runs.
    async fn run(mut self, mut changes: watch::Receiver<u64>, permit: OwnedSemaphorePermit) {
        let end = loop {
            if let Err(end) = self.turn(&mut changes).await {
                break end;
            }
        };
        // A client that doesn't answer the close is cut off.
        let _ = timeout(CLOSE, close(&mut self.socket, end)).await;
        drop(permit);
    }

    async fn turn(&mut self, changes: &mut watch::Receiver<u64>) -> Result<(), End> {
        self.deliver().await?;
        match self.wait(changes).await? {
            Wake::More => Ok(()),
            Wake::Heard => {
                self.silent = 0;
                Ok(())
            }
            Wake::Ping if self.silent == SILENT => Err(End::Stuck),
            Wake::Ping => {
                self.silent += 1;
                self.send(vec![Message::Ping(Bytes::new())]).await
            }
            Wake::Release => match self.feed.release() {
                Some(frame) => self.send(vec![Message::Text(frame)]).await,
                None => Ok(()),
            },
        }
    }

    /// Sends whatever there is.
    async fn deliver(&mut self) -> Result<(), End> {
        loop {
            let frames = self.feed.pull().map_err(End::Feed)?;
            if frames.is_empty() {
                return Ok(());
            }
            let frames = frames.into_iter().map(Message::Text).collect();
            self.send(frames).await?;
        }
    }

    async fn send(&mut self, messages: Vec<Message>) -> Result<(), End> {
        let socket = &mut self.socket;
        let send = timeout(SEND, async {
            for message in messages {
                socket.feed(message).await?;
            }
            socket.flush().await
        });
        tokio::select! {
            biased;
            sent = send => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(End::Gone),
                Err(_) => Err(End::Stuck),
            },
            () = stopped(&mut self.stop) => Err(End::Restart),
        }
    }

    /// Waits until there may be something to do, and listens to the client meanwhile.
    async fn wait(&mut self, changes: &mut watch::Receiver<u64>) -> Result<Wake, End> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(End::Restart),
            heard = self.socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => Err(End::Gone),
                // What clients say is no business of this server; that they say it shows that they live.
                Some(Ok(_)) => Ok(Wake::Heard),
            },
            changed = changes.changed() => changed.map(|()| Wake::More).map_err(|_| End::Restart),
            _ = self.ping.tick() => Ok(Wake::Ping),
            () = sleep(HOLD), if self.feed.is_holding() => Ok(Wake::Release),
        }
    }
}

/// Resolves when the server stops, or its owner is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn close(socket: &mut WebSocket, end: End) {
    let (code, reason) = match end {
        End::Gone => {
            // Answers the client's close where it sent one.
            let _ = socket.close().await;
            return;
        }
        End::Restart => (close_code::RESTART, "restarting".to_string()),
        End::Stuck => (
            close_code::AGAIN,
            "too slow; resume from the last id".to_string(),
        ),
        End::Feed(e @ Broken::FellBehind) => (close_code::AGAIN, e.to_string()),
        End::Feed(e @ Broken::Log(_)) => (close_code::ERROR, short(e.to_string())),
    };
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    if socket.send(Message::Close(Some(frame))).await.is_ok() {
        // Until the client has answered: a socket closed with something unread would take back what it was sent.
        while let Some(Ok(_)) = socket.recv().await {}
    }
}

/// A close frame has room for 123 bytes of reason.
fn short(mut reason: String) -> String {
    let end = (0..=reason.len().min(120)).rfind(|&i| reason.is_char_boundary(i));
    reason.truncate(end.unwrap_or(0));
    reason
}
