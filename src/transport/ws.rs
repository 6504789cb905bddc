//! A WebSocket connection (RFC 6455) seen by a client: whole messages, and one cause for its end.
//!
//! Framing is tungstenite's; the opening handshake (`ws/handshake.rs`) and the socket beneath (`ws/socket.rs`) are
//! herd's. What a message means is the profile's business.

mod handshake;
mod socket;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, error::ProtocolError};

use self::socket::Socket;
use super::wire::Wire;
use super::{Limits, Payload, is_reset, safe};
use crate::history::Cause;

pub use handshake::open;

/// tungstenite's default of 128 KiB is 138 KB of memory a client; this is 14 events of ordinary size a system call.
const READ_BUFFER: usize = 2 * 1024;
/// What a profile says at once may wait to be written; a limit, not an allocation.
const WRITE_BUFFER: usize = 64 * 1024;
/// The longest close reason that fits a frame, and how much of an error's text is kept (bytes).
const TEXT: usize = 200;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    // Boxed: every future that a connection passes through would otherwise have room for it.
    stream: Box<WebSocketStream<Socket>>,
    /// Something that was sent may not be written yet.
    unwritten: bool,
}

impl Connection {
    /// Goes on where the handshake left: `rest` are bytes that came behind the answer.
    async fn new(stream: Wire, rest: Vec<u8>, limits: Limits) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(limits.message))
            .max_frame_size(Some(limits.message));
        let socket = Socket::new(stream, &rest);
        let stream =
            WebSocketStream::from_partially_read(socket, rest, Role::Client, Some(config)).await;
        Self {
            stream: Box::new(stream),
            unwritten: false,
        }
    }

    /// The next message, or why there is none any more. Pings are answered in passing: the poll that finds nothing more
    /// to read has written the pong, or is woken when it can be.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Payload, Cause>> {
        loop {
            let next = self.stream.poll_next_unpin(cx);
            if self.unwritten && next.is_pending() {
                // A failed write is no end: reading tells how the connection ended.
                self.unwritten = self.stream.poll_flush_unpin(cx).is_pending();
            }
            return Poll::Ready(match ready!(next) {
                Some(Ok(Message::Text(text))) => Ok(Payload::Text(text.into())),
                Some(Ok(Message::Binary(bytes))) => Ok(Payload::Binary(bytes)),
                Some(Ok(Message::Close(frame))) => Err(self.closed(frame)),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Err(error)) => Err(self.failed(error)),
                None => Err(Cause::Eof),
            });
        }
    }

    /// How often something was read of the socket.
    pub fn signs(&self) -> u64 {
        self.stream.get_ref().signs()
    }

    /// Sends a ping; [`Connection::poll_next`] writes it.
    pub fn ping(&mut self) {
        self.unwritten = true;
        // As with a message.
        let _ = self.stream.start_send_unpin(Message::Ping(Bytes::new()));
    }

    /// Sends a text message; [`Connection::poll_next`] writes it.
    pub fn send(&mut self, text: &str) {
        self.unwritten = true;
        // It fails where the connection has ended, which reading tells.
        let _ = self.stream.start_send_unpin(Message::text(text));
    }

    /// Says goodbye with close code 1000 and waits until the server has closed, at most until `until`.
    pub async fn leave(mut self, until: Instant) {
        self.close_now(CloseCode::Normal);
        self.linger(until).await;
    }

    /// Says that its page is gone (close code 1001) and waits for nothing.
    pub fn go_away(mut self) {
        self.close_now(CloseCode::Away);
    }

    /// After a close frame of either side: waits until the server has closed, at most until `until`. The server closing
    /// first leaves TIME_WAIT there and not with herd's own ports; and closing a socket that holds unread bytes would
    /// reset the connection and destroy the close frame on its way.
    pub async fn linger(mut self, until: Instant) {
        // The answer to the server's close frame.
        let _ = self.stream.flush().now_or_never();
        let mut socket = self.stream.into_inner();
        let end = poll_fn(|cx| {
            let mut bytes = [0; 1024];
            loop {
                let mut unread = ReadBuf::new(&mut bytes);
                let read = ready!(Pin::new(&mut socket).poll_read(cx, &mut unread));
                if read.is_err() || unread.filled().is_empty() {
                    return Poll::Ready(());
                }
            }
        });
        // Elapsed or ended, the socket is dropped.
        let _ = timeout_at(until, end).await;
    }

    /// Best effort: written if the system takes it now.
    fn close_now(&mut self, code: CloseCode) {
        let frame = CloseFrame {
            code,
            reason: "".into(),
        };
        let _ = self.stream.send(Message::Close(Some(frame))).now_or_never();
    }

    fn closed(&self, frame: Option<CloseFrame>) -> Cause {
        match frame {
            None => Cause::Close {
                code: None,
                reason: "".into(),
            },
            Some(frame) if frame.code == CloseCode::Protocol => self.forbidden(&frame),
            Some(frame) => Cause::Close {
                code: Some(frame.code.into()),
                reason: safe(frame.reason.as_bytes(), TEXT),
            },
        }
    }

    /// tungstenite tells 1002 for every code that RFC 6455 doesn't allow, 1014 among them: the socket knows better.
    fn forbidden(&self, told: &CloseFrame) -> Cause {
        match self.stream.get_ref().close_frame() {
            Some((code, reason)) => Cause::Close {
                code: Some(code),
                reason: safe(reason, TEXT),
            },
            None => Cause::Close {
                code: Some(told.code.into()),
                reason: safe(told.reason.as_bytes(), TEXT),
            },
        }
    }

    fn failed(&mut self, error: Error) -> Cause {
        match error {
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                if self.stream.get_ref().was_reset() {
                    Cause::Reset
                } else {
                    Cause::Eof
                }
            }
            Error::Io(e) if is_reset(&e) => Cause::Reset,
            Error::Io(e) => Cause::Io(safe(e.to_string().as_bytes(), TEXT)),
            Error::Utf8(_) => {
                self.close_now(CloseCode::Invalid);
                Cause::Utf8
            }
            Error::Capacity(_) => {
                self.close_now(CloseCode::Size);
                Cause::Oversize
            }
            other => {
                self.close_now(CloseCode::Protocol);
                Cause::Protocol(safe(other.to_string().as_bytes(), TEXT))
            }
        }
    }
}
