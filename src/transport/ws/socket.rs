//! The socket beneath the framing, which sees to it that nothing that arrived is lost.
//!
//! A server that is being killed may answer a pong with a reset while events that it sent before still stand unread in
//! the system. So a failed write is never the connection's end: reading goes on, and reading tells how it ended. The
//! socket also remembers the last bytes read, because the framing hides close codes that it finds forbidden.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::is_reset;
use crate::transport::wire::Wire;

/// The longest control frame a server may send: two bytes of header and 125 of payload.
const LONGEST_CONTROL: usize = 127;

#[derive(Debug)]
pub(super) struct Socket {
    stream: Wire,
    reset: bool,
    signs: u64,
    tail: [u8; LONGEST_CONTROL],
}

impl Socket {
    /// Takes over a connection of which `read` was already read.
    pub(super) fn new(stream: Wire, read: &[u8]) -> Self {
        let mut tail = [0; LONGEST_CONTROL];
        remember(&mut tail, read);
        Self {
            stream,
            reset: false,
            signs: 0,
            tail,
        }
    }

    /// How often something was read.
    pub(super) fn signs(&self) -> u64 {
        self.signs
    }

    /// Whether a write found the connection reset.
    pub(super) fn was_reset(&self) -> bool {
        self.reset
    }

    /// The code and reason of a close frame that stands at the end of what was read.
    pub(super) fn close_frame(&self) -> Option<(u16, &[u8])> {
        close_frame(&self.tail)
    }

    /// A write's result as the framing shall see it.
    fn swallow(&mut self, result: io::Result<usize>, length: usize) -> io::Result<usize> {
        match result {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => {
                self.reset |= is_reset(&e);
                Ok(length)
            }
            other => other,
        }
    }
}

fn remember(tail: &mut [u8; LONGEST_CONTROL], read: &[u8]) {
    let kept = read.len().min(LONGEST_CONTROL);
    tail.copy_within(kept.., 0);
    tail[LONGEST_CONTROL - kept..].copy_from_slice(&read[read.len() - kept..]);
}

fn close_frame(tail: &[u8]) -> Option<(u16, &[u8])> {
    (2..=LONGEST_CONTROL - 2).find_map(|length| {
        let frame = &tail[tail.len() - length - 2..];
        let reason = frame.get(4..)?;
        let is_close = frame[0] == 0x88 && usize::from(frame[1]) == length;
        (is_close && std::str::from_utf8(reason).is_ok())
            .then(|| (u16::from_be_bytes([frame[2], frame[3]]), reason))
    })
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        remember(&mut self.tail, &buf.filled()[before..]);
        self.signs += u64::from(buf.filled().len() > before);
        Poll::Ready(result)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        Poll::Ready(self.swallow(result, buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS writes here what it had to keep back.
        let result = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(self.swallow(result.map(|()| 0), 0).map(|_| ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_is_found_at_the_end_of_what_was_read() {
        let mut tail = [0; LONGEST_CONTROL];
        remember(&mut tail, b"\x81\x02hi\x88\x05\x03\xf6bye");
        assert_eq!(close_frame(&tail), Some((1014, &b"bye"[..])));
        remember(&mut tail, b"\x88\x02\x03\xf6");
        assert_eq!(close_frame(&tail), Some((1014, &b""[..])));
        remember(&mut tail, b"x");
        assert_eq!(close_frame(&tail), None, "something came behind it");
        let longest = [&[0x88, 125, 0x03, 0xf6][..], &[b'x'; 123]].concat();
        for byte in &longest {
            remember(&mut tail, &[*byte]);
        }
        assert_eq!(close_frame(&tail), Some((1014, &[b'x'; 123][..])));
        remember(&mut tail, &[0; 4096]);
        assert_eq!(tail, [0; LONGEST_CONTROL]);
    }
}
