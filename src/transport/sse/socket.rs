//! The socket beneath HTTP, which sees to it that nothing that arrived is lost.
//!
//! HTTP/2 answers pings and opens its window, and a server that is being killed answers that with a reset while events
//! that it sent before still stand unread in the system. So a failed write is never the connection's end: reading goes
//! on, and reading tells how it ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::is_reset;
use crate::transport::wire::Wire;

#[derive(Debug)]
pub(super) struct Socket {
    wire: Wire,
    /// A write found the connection reset; the system tells that once, and reading would find an end.
    reset: bool,
}

impl Socket {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, reset: false }
    }

    /// A write's result as HTTP shall see it.
    fn swallow<T>(&mut self, result: io::Result<T>, done: T) -> io::Result<T> {
        result.or_else(|e| {
            self.reset |= is_reset(&e);
            Ok(done)
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(cx, buf))?;
        if self.reset && buf.filled().len() == before {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.wire).poll_write(cx, buf));
        Poll::Ready(self.swallow(result, buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.wire).poll_flush(cx));
        Poll::Ready(self.swallow(result, ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.wire).poll_shutdown(cx));
        Poll::Ready(self.swallow(result, ()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_failed_write_hides_nothing_that_arrived_and_the_reset_is_still_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"event").await.unwrap();
        server.set_zero_linger().unwrap();
        drop(server);
        let mut socket = Socket::new(Wire::Plain(stream.unwrap()));
        for _ in 0..3 {
            socket.write_all(b"pong").await.unwrap();
            socket.flush().await.unwrap();
        }
        let mut read = Vec::new();
        let error = socket.read_to_end(&mut read).await.unwrap_err();
        assert_eq!(read, b"event");
        assert!(is_reset(&error), "{error:?}");
        socket.shutdown().await.unwrap();
    }
}
