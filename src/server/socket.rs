//! One subscriber's WebSocket once it is known what it asks for: when something is sent and why the connection ends.
//! What is sent comes from its feed, in the form of its dialect.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use futures::SinkExt;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use super::Limits;
use super::dialect::{Dialect, Gone, Item};
use super::feed::{Broken, Feed};
use super::guest::{Guest, stopped};
use super::resume::Hello;

/// A subscriber is pinged so often, and given up when it was silent through [`SILENT`] of them.
pub(super) const PING: Duration = Duration::from_secs(15);
const SILENT: u32 = 3;
/// How long one part of what is sent may take.
const SEND: Duration = Duration::from_secs(30);
/// How long the closing handshake may take.
const CLOSE: Duration = Duration::from_secs(1);
/// How long a defect that holds an event back waits for the next one.
pub(super) const HOLD: Duration = Duration::from_secs(1);

/// Subscribers send next to nothing and are sent short frames: the library's 128 KiB for each would be the server's
/// whole memory.
const READ_BUFFER: usize = 1 << 10;
const WRITE_BUFFER: usize = 4 << 10;

/// The code of a close because of the cursor.
const REFUSED: u16 = 4404;

/// Why a connection ends.
pub(super) enum End {
    /// The client closed it, or is gone.
    Gone,
    /// The server is stopping.
    Restart,
    /// It doesn't take what it is sent.
    Stuck,
    /// The feed can't go on.
    Feed(Broken),
    /// The cursor can't be honoured, and the dialect has no other way to say so.
    Refused(Gone),
    /// It asked for its cursor when it had been taken for a new one.
    TooLate,
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

/// The upgrade within this server's limits.
pub(super) fn limited(upgrade: WebSocketUpgrade, limits: Limits) -> WebSocketUpgrade {
    upgrade
        .max_message_size(limits.frame)
        .max_frame_size(limits.frame)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
}

/// The first tick of a new interval is at once; the first beat is due a whole one later.
pub(super) fn beats() -> Interval {
    let mut beat = interval(PING);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    beat
}

pub(super) struct Subscriber {
    socket: WebSocket,
    guest: Guest,
    dialect: Dialect,
    feed: Feed,
    ping: Interval,
    /// Pings since it was last heard.
    silent: u32,
}

impl Subscriber {
    /// Takes over a socket whose client asked for what comes after this cursor.
    pub(super) fn new(
        socket: WebSocket,
        guest: Guest,
        dialect: Dialect,
        after: Option<&str>,
    ) -> Self {
        Self {
            feed: guest.feed(dialect, after),
            socket,
            guest,
            dialect,
            ping: beats(),
            silent: 0,
        }
    }

    /// Serves it to its end.
    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn().await {
                break end;
            }
        };
        close(&mut self.socket, end).await;
    }

    async fn turn(&mut self) -> Result<(), End> {
        self.deliver().await?;
        match self.wait().await? {
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
            Wake::Release => {
                let item = self.feed.release();
                self.tell(item.as_slice()).await
            }
        }
    }

    /// Sends whatever there is.
    async fn deliver(&mut self) -> Result<(), End> {
        loop {
            let items = self.feed.pull().map_err(End::Feed)?;
            if items.is_empty() {
                return Ok(());
            }
            self.tell(&items).await?;
            let refused = items.iter().find_map(|item| self.dialect.ends_with(item));
            if let Some(why) = refused {
                return Err(End::Refused(why));
            }
        }
    }

    async fn tell(&mut self, items: &[Item]) -> Result<(), End> {
        let form = |item| Message::Text(self.dialect.form(item));
        self.send(items.iter().map(form).collect()).await
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
            () = stopped(&mut self.guest.stop) => Err(End::Restart),
        }
    }

    /// Waits until there may be something to do, and listens to the client meanwhile.
    async fn wait(&mut self) -> Result<Wake, End> {
        let guest = &mut self.guest;
        tokio::select! {
            biased;
            () = stopped(&mut guest.stop) => Err(End::Restart),
            heard = self.socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => Err(End::Gone),
                Some(Ok(Message::Text(text)))
                    if self.dialect == Dialect::Resume && Hello::read(&text).is_some() =>
                {
                    Err(End::TooLate)
                }
                // What else clients say is no business of this server; that they say it shows that they live.
                Some(Ok(_)) => Ok(Wake::Heard),
            },
            changed = guest.changes.changed() => {
                changed.map(|()| Wake::More).map_err(|_| End::Restart)
            }
            _ = self.ping.tick() => Ok(Wake::Ping),
            () = sleep(HOLD), if self.feed.is_holding() => Ok(Wake::Release),
        }
    }
}

/// Says goodbye; a client that doesn't answer is cut off.
pub(super) async fn close(socket: &mut WebSocket, end: End) {
    let _ = timeout(CLOSE, closing(socket, end)).await;
}

async fn closing(socket: &mut WebSocket, end: End) {
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
        End::Refused(why) => (REFUSED, why.reason().to_string()),
        End::TooLate => (
            close_code::POLICY,
            "resume must be the first frame, and soon".to_string(),
        ),
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
