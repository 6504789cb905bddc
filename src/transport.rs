//! How bytes move and why a connection ended; what the bytes mean is the profile's business.

pub mod names;
pub mod network;
pub mod proxy;
pub mod sse;
pub mod tcp;
pub mod tls;
pub mod tunnel;
pub mod wire;
pub mod ws;

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Bytes;
use tokio_tungstenite::tungstenite::http::HeaderMap;

use crate::history::Cause;

/// A whole message or event, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The payload; text was already found to be UTF-8.
    pub bytes: &'a [u8],
    /// What kind of frame it came in.
    pub kind: Kind<'a>,
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A WebSocket text message.
    Text,
    /// A WebSocket binary message.
    Binary,
    /// A block of an event stream.
    Event {
        /// Its `event:`; "message" where it named none.
        name: &'a str,
        /// The `id:` of this very block, empty where it clears the id; none where the block has no such line.
        id: Option<&'a str>,
        /// Whether there was data: a block without only moves the id.
        has_data: bool,
    },
}

impl<'a> Frame<'a> {
    /// A text message.
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            kind: Kind::Text,
        }
    }
}

/// A frame that owns its bytes.
#[derive(Debug, Clone)]
pub enum Payload {
    /// A WebSocket text message.
    Text(Bytes),
    /// A WebSocket binary message.
    Binary(Bytes),
    /// A block of an event stream.
    Event(sse::parser::Block),
}

impl Payload {
    /// As a frame to read.
    #[must_use]
    pub fn frame(&self) -> Frame<'_> {
        match self {
            Self::Text(bytes) => Frame {
                bytes,
                kind: Kind::Text,
            },
            Self::Binary(bytes) => Frame {
                bytes,
                kind: Kind::Binary,
            },
            Self::Event(block) => Frame {
                bytes: block.data.as_bytes(),
                kind: Kind::Event {
                    name: block.name(),
                    id: block.id.as_deref(),
                    has_data: block.has_data,
                },
            },
        }
    }
}

/// An open connection of either transport.
#[derive(Debug)]
pub enum Connection {
    /// A WebSocket.
    Ws(ws::Connection),
    /// An event stream.
    Sse(sse::Connection),
}

/// A connection that was just opened, with the headers of the server's answer.
#[derive(Debug)]
pub struct Opened {
    /// The connection.
    pub connection: Connection,
    /// The headers.
    pub headers: HeaderMap,
}

impl Connection {
    /// The next frame, or why there is none any more. What is still to be written is written in passing.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Payload, Cause>> {
        match self {
            Self::Ws(ws) => ws.poll_next(cx),
            Self::Sse(sse) => sse.poll_next(cx).map_ok(Payload::Event),
        }
    }

    /// The delay that the server told the client to wait before it comes back (`retry:`), once for each change. Ask
    /// after every [`Connection::poll_next`]: it may come without a frame.
    pub fn take_retry(&mut self) -> Option<Duration> {
        match self {
            Self::Ws(_) => None,
            Self::Sse(sse) => sse.take_retry(),
        }
    }

    /// How much has come so far, in pieces of any size: whoever finds it changed knows that there was a sign of life, frames
    /// that [`Connection::poll_next`] doesn't tell of and comments included.
    #[must_use]
    pub fn signs(&self) -> u64 {
        match self {
            Self::Ws(ws) => ws.signs(),
            Self::Sse(sse) => sse.signs(),
        }
    }

    /// Asks for a sign of life; it is on its way once [`Connection::poll_next`] was polled. Over an event stream there is
    /// nothing to ask with.
    pub fn ping(&mut self) {
        match self {
            Self::Ws(ws) => ws.ping(),
            Self::Sse(_) => debug_assert!(false, "nothing can be sent over an event stream"),
        }
    }

    /// Sends a text message; it is on its way once [`Connection::poll_next`] was polled. An event stream takes none: its
    /// profile has nothing to send.
    pub fn send(&mut self, text: &str) {
        match self {
            Self::Ws(ws) => ws.send(text),
            Self::Sse(_) => debug_assert!(false, "nothing can be sent over an event stream"),
        }
    }

    /// Says goodbye and waits until the server has closed, at most until `until`.
    pub async fn leave(self, until: Instant) {
        match self {
            Self::Ws(ws) => ws.leave(until).await,
            // There is no goodbye: the connection closes.
            Self::Sse(_) => {}
        }
    }

    /// Closes as a browser does whose tab is closed (1001, going away), and waits for nothing.
    pub fn go_away(self) {
        match self {
            Self::Ws(ws) => ws.go_away(),
            Self::Sse(_) => {}
        }
    }

    /// After a close frame of either side: waits until the server has closed, at most until `until`.
    pub async fn linger(self, until: Instant) {
        match self {
            Self::Ws(ws) => ws.linger(until).await,
            Self::Sse(_) => {}
        }
    }
}

/// Limits on what a server may send (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest message, fragments put together.
    pub message: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 1 << 20 }
    }
}

/// What a server (or the system) said, fit to be printed and stored: control and direction characters escaped, bytes
/// that are no UTF-8 replaced, cut after `most` bytes of the original.
#[must_use]
pub fn safe(bytes: &[u8], most: usize) -> Box<str> {
    let cut = &bytes[..bytes.len().min(most)];
    let mut text = String::with_capacity(cut.len());
    for chunk in whole(cut, bytes).utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_harmless(c) {
                text.push(c);
            } else {
                text.extend(c.escape_default());
            }
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    if cut.len() < bytes.len() {
        text.push_str("...");
    }
    text.into()
}

/// Without a last character that the cut itself went through.
fn whole<'a>(cut: &'a [u8], bytes: &[u8]) -> &'a [u8] {
    match std::str::from_utf8(cut) {
        Err(e) if e.error_len().is_none() && cut.len() < bytes.len() => &cut[..e.valid_up_to()],
        _ => cut,
    }
}

fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Whether an error says that herd's own side ran out of something, rather than what the server did.
fn is_local(error: &io::Error) -> bool {
    let Some(errno) = Errno::from_io_error(error) else {
        return false;
    };
    [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::ADDRINUSE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::ACCESS,
        Errno::PERM,
        Errno::AFNOSUPPORT,
        Errno::INVAL,
    ]
    .contains(&errno)
}

/// Whether an error says that the other side ended the connection the hard way.
fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_made_safe_and_cut() {
        assert_eq!(&*safe(b"plain \xc3\xa9", 200), "plain é");
        assert_eq!(&*safe(b"\x1b[31mred\r\n", 200), "\\u{1b}[31mred\\r\\n");
        assert_eq!(&*safe("a\u{202e}b".as_bytes(), 200), "a\\u{202e}b");
        assert_eq!(&*safe(b"\xff\xfeab", 200), "\u{fffd}\u{fffd}ab");
        assert_eq!(&*safe(b"abcdef", 3), "abc...");
        assert_eq!(&*safe("aé".as_bytes(), 2), "a...");
    }

    proptest! {
        #[test]
        fn nothing_that_moves_a_cursor_survives(bytes: Vec<u8>, most in 0usize..40) {
            let text = safe(&bytes, most);
            prop_assert!(text.chars().all(is_harmless));
        }
    }
}
