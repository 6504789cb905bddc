//! A TCP port that stays herd's for a whole run (rule 22 of judgement). It knows nothing of who will listen on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use rand::TryRng;
use rand::rngs::SysRng;
use tokio::net::TcpSocket;

use crate::error::Error;

/// How many ports are tried before herd gives up.
const TRIES: u32 = 200;
/// The lowest port that is tried: below it lie the well-known ones and most registered ones.
const LOWEST: u16 = 10_000;
/// The beginning of Linux's ephemeral range where it can't be read.
const USUAL_EPHEMERAL: u16 = 32_768;

/// A port below the ephemeral range, held by a socket that never listens.
///
/// The socket was bound exclusively, so two herds never share a port; then it was marked as sharable, so that a server
/// that sets `SO_REUSEADDR` (nearly all do) can bind the port while it is held. Being below the ephemeral range, the
/// port is never the local end of somebody's outgoing connection, so a dial can't meet itself either.
#[derive(Debug)]
pub struct Held {
    port: u16,
    _socket: TcpSocket,
}

impl Held {
    /// Picks a free port and holds it until dropped.
    ///
    /// # Errors
    ///
    /// Broken where the system has no randomness or no port of the range is free.
    pub fn pick() -> Result<Self, Error> {
        let range = candidates(ephemeral_start());
        for _ in 0..TRIES {
            let drawn = SysRng
                .try_next_u32()
                .map_err(|e| Error::Broken(format!("the system gives no random numbers: {e}")))?;
            let port = range.start
                + u16::try_from(drawn % u32::from(range.end - range.start)).unwrap_or(0);
            if let Ok(held) = Self::hold(port) {
                return Ok(held);
            }
        }
        Err(Error::Broken(format!(
            "none of {TRIES} ports tried between {} and {} is free; end what holds them, or give the server a fixed port",
            range.start,
            range.end - 1
        )))
    }

    /// Holds this port.
    fn hold(port: u16) -> std::io::Result<Self> {
        // The wildcard of both families: nobody can be listening on it, on whatever address.
        let socket = wildcard6(port).or_else(|e| {
            if e.kind() == std::io::ErrorKind::AddrInUse {
                return Err(e);
            }
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))?;
            Ok(socket)
        })?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        Ok(Self {
            port,
            _socket: socket,
        })
    }

    /// The port, 10000 or more.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn wildcard6(port: u16) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v6()?;
    rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
    socket.bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))?;
    Ok(socket)
}

fn ephemeral_start() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(USUAL_EPHEMERAL)
}

/// The ports to draw from. Where somebody's ephemeral range begins low, what little is below it, else (nothing is
/// below it) the usual range: a held port is still herd's own.
fn candidates(ephemeral: u16) -> Range<u16> {
    match ephemeral {
        e if e >= LOWEST + 1_000 => LOWEST..e,
        e if e >= 3_000 => 1_024..e,
        _ => LOWEST..USUAL_EPHEMERAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn ports_lie_below_the_ephemeral_range() {
        assert_eq!(candidates(32_768), 10_000..32_768);
        assert_eq!(candidates(10_240), 1_024..10_240);
        assert_eq!(candidates(1_024), 10_000..32_768);
        let held = Held::pick().unwrap();
        assert!(held.port() < ephemeral_start() || ephemeral_start() < 3_000);
    }

    #[test]
    fn a_held_port_lets_a_server_in_and_no_second_herd() {
        let held = Held::pick().unwrap();
        assert!(Held::hold(held.port()).is_err());
        for address in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
            let address: IpAddr = address.parse().unwrap();
            // The standard library sets SO_REUSEADDR, as Node, Python, Go and tokio do.
            match TcpListener::bind((address, held.port())) {
                Ok(listener) => {
                    assert!(Held::hold(held.port()).is_err());
                    drop(listener);
                }
                Err(e) => assert!(
                    address.is_ipv6() && e.kind() != std::io::ErrorKind::AddrInUse,
                    "{address}: {e}"
                ),
            }
        }
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(Held::hold(port).is_err());
    }

    #[test]
    fn a_dropped_port_can_be_held_again() {
        let port = Held::pick().unwrap().port();
        assert!(Held::hold(port).is_ok());
    }
}
