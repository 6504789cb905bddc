//! `half-open`'s helper: a process that keeps sockets open after the server behind them was killed.
//!
//! The server passes it descriptors over a socket pair. It runs in a session of its own, so that what kills the
//! server's process group spares it, and it ends by itself: at once where it holds nothing when the server is gone,
//! else when the last peer has closed, and at latest after two minutes. It reads and writes none of what it holds.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::listen::{Peer, raise_descriptor_limit};
use crate::error::Error;

/// The hidden subcommand that runs [`hold`].
pub const HOLD: &str = "hold-sockets";

/// How many idle seconds it holds on for after the server is gone.
const SECONDS: u32 = 120;
/// Descriptors taken in one message.
const PART: usize = 8;

/// The server's end.
pub(super) struct Holder {
    socket: OwnedFd,
}

impl Holder {
    /// Starts the process and waits until it is in its own session.
    pub(super) fn start(executable: &Path) -> std::io::Result<Self> {
        let (socket, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // Nobody waits for it: it is meant to outlive this process.
        Command::new(executable)
            .arg(HOLD)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        match read(&socket, &mut [0])? {
            0 => Err(std::io::Error::other("it ended at once")),
            _ => Ok(Self { socket }),
        }
    }

    /// Has a connection's socket kept. Where that fails the socket just dies with the server, which a test sees.
    pub(super) fn take(&self, peer: &Peer) {
        let Some(socket) = peer.socket() else {
            return;
        };
        let fds = [socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let _ = sendmsg(
            &self.socket,
            &[IoSlice::new(b"s")],
            &mut control,
            SendFlags::NOSIGNAL,
        );
    }
}

/// Holds the sockets that the server passes on this process's standard input, until their peers have closed. For
/// `main`'s hidden subcommand [`HOLD`] only.
///
/// # Errors
/// Broken where standard input is no socket of a server.
pub fn hold() -> Result<(), Error> {
    raise_descriptor_limit();
    // Refused only to a group's leader, and then nobody kills this group by the server's.
    let _ = rustix::process::setsid();
    let broken =
        |e: Errno| Error::Broken(format!("can't hold sockets: {e}; run herd serve instead"));
    let stdin = std::io::stdin();
    let server = stdin.as_fd();
    write(server, b"r").map_err(broken)?;
    keep(server).map_err(broken)
}

fn keep(server: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut alone = false;
    let mut seconds = 0;
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    while !alone || (!held.is_empty() && seconds < SECONDS) {
        let mut polled: Vec<_> = held
            .iter()
            .map(|fd| PollFd::new(fd, PollFlags::RDHUP))
            .collect();
        if !alone {
            polled.push(PollFd::from_borrowed_fd(server, PollFlags::IN));
        }
        match poll(&mut polled, alone.then_some(&second)) {
            Ok(0) => seconds += 1,
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
        let mut open = polled.iter().map(|fd| fd.revents().is_empty());
        let open: Vec<_> = open.by_ref().collect();
        let called = !alone && open.last() == Some(&false);
        let mut i = 0;
        held.retain(|_| {
            i += 1;
            open[i - 1]
        });
        if called {
            alone = !take(server, &mut held)?;
        }
    }
    Ok(())
}

/// Takes what was passed; false = the server is gone.
fn take(server: BorrowedFd<'_>, held: &mut Vec<OwnedFd>) -> Result<bool, Errno> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(PART))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        server,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    );
    let bytes = match received {
        Ok(message) => message.bytes,
        Err(Errno::CONNRESET) => 0,
        Err(Errno::INTR) => return Ok(true),
        Err(e) => return Err(e),
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            held.extend(fds);
        }
    }
    Ok(bytes > 0)
}
