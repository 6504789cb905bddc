//! The listening socket: takes connections up to a limit and remembers where each came from. It knows nothing of HTTP.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::defect::Defect;
use super::faults::Faults;

/// Connections that wait to be accepted: a whole herd may knock within milliseconds.
const BACKLOG: u32 = 65_535;
/// Connections beyond the most subscribers: publishers, probes, and those that must be told that it is full.
const SPARE: usize = 256;
/// A wait before accepting again when the process or the system is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Where a connection came from.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    address: SocketAddr,
    /// A second handle of its socket; only where `half-open` is planted.
    socket: Option<Arc<OwnedFd>>,
}

impl Peer {
    /// The port that it was dialled from.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The second handle.
    pub(super) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_deref()
    }
}

impl Connected<IncomingStream<'_, Door>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.remote_addr().clone()
    }
}

/// The listening socket.
pub(super) struct Door {
    listener: TcpListener,
    address: SocketAddr,
    room: Arc<Semaphore>,
    faults: Arc<Faults>,
}

impl Door {
    /// Listens. The address may be taken again at once after a server died on it.
    pub(super) fn open(
        address: SocketAddr,
        connections: u32,
        faults: &Arc<Faults>,
    ) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            room: Arc::new(Semaphore::new(connections as usize + SPARE)),
            faults: Arc::clone(faults),
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    fn admit(&self, stream: TcpStream, address: SocketAddr) -> Option<(Conn, Peer)> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        stream.set_nodelay(true).ok()?;
        let socket = match self.faults.planted(Defect::HalfOpen) {
            Some(_) => Some(Arc::new(stream.as_fd().try_clone_to_owned().ok()?)),
            None => None,
        };
        let conn = Conn {
            stream,
            _room: room,
        };
        Some((conn, Peer { address, socket }))
    }
}

impl Listener for Door {
    type Io = Conn;
    type Addr = Peer;

    async fn accept(&mut self) -> (Conn, Peer) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // One too many is closed at once: a client that is kept waiting can't tell it from a slow server.
                    if let Some(admitted) = self.admit(stream, address) {
                        return admitted;
                    }
                }
                Err(e) if is_of_the_connection(&e) => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer {
            address: self.address,
            socket: None,
        })
    }
}

/// The client was gone before it was accepted; the next one may be fine.
fn is_of_the_connection(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        e.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Raises the soft limit of descriptors to the hard one; a shell's usual 1,024 would be a limit on subscribers.
pub(super) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where it isn't allowed, the old limit holds, and accepting pauses when it is reached.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// A connection; it makes room when it is dropped.
pub(super) struct Conn {
    stream: TcpStream,
    _room: OwnedSemaphorePermit,
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Conn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
