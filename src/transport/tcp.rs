//! A TCP connection, or why there is none. It speaks no protocol over it and decides nothing about when to try again.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{is_local, safe};
use crate::history::AttemptOutcome;

/// Tries every address in turn, each within `limit`, from `source` where one is given (addresses of the other family are
/// then passed over).
///
/// # Errors
/// Why the last address could not be reached: [`AttemptOutcome::Refused`], [`AttemptOutcome::Timeout`] or
/// [`AttemptOutcome::Local`], the last one at once, since another address can't help.
pub async fn connect(
    addresses: &[SocketAddr],
    source: Option<IpAddr>,
    limit: Duration,
) -> Result<TcpStream, AttemptOutcome> {
    let usable = |a: &&SocketAddr| source.is_none_or(|s| s.is_ipv4() == a.is_ipv4());
    let mut last = AttemptOutcome::Local(
        "the target has no address of the source address's family; give another source address"
            .into(),
    );
    for &address in addresses.iter().filter(usable) {
        last = match timeout(limit, connect_one(address, source)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => outcome(&error, address),
            Err(_) => AttemptOutcome::Timeout,
        };
        if matches!(last, AttemptOutcome::Local(_)) {
            break;
        }
    }
    Err(last)
}

async fn connect_one(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(address).await?;
    if meets_itself(&stream)? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// On loopback the system may give a dial to a dead server the very port that it dials, and the socket is then connected
/// to itself (rule 22 of judgement).
fn meets_itself(stream: &TcpStream) -> io::Result<bool> {
    Ok(stream.local_addr()? == stream.peer_addr()?)
}

fn outcome(error: &io::Error, address: SocketAddr) -> AttemptOutcome {
    match error.kind() {
        _ if is_local(error) => {
            AttemptOutcome::Local(safe(format!("dialling {address}: {error}").as_bytes(), 200))
        }
        io::ErrorKind::TimedOut => AttemptOutcome::Timeout,
        _ => AttemptOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// A port that nobody listens on, for as long as the socket lives.
    fn dead_port() -> (TcpSocket, SocketAddr) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[tokio::test]
    async fn every_address_is_tried_in_turn() {
        let (_hold, dead) = dead_port();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let live = listener.local_addr().unwrap();
        let stream = connect(&[dead, live], None, LIMIT).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), live);
        assert!(stream.nodelay().unwrap());
        let refused = connect(&[dead], None, LIMIT).await.unwrap_err();
        assert_eq!(refused, AttemptOutcome::Refused);
    }

    #[tokio::test]
    async fn the_source_address_is_used_and_must_fit() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let live = listener.local_addr().unwrap();
        let from = |ip: &str| Some(ip.parse::<IpAddr>().unwrap());
        let stream = connect(&[live], from("127.0.0.9"), LIMIT).await.unwrap();
        assert_eq!(
            stream.local_addr().unwrap().ip(),
            from("127.0.0.9").unwrap()
        );
        for source in ["::1", "203.0.113.1"] {
            let local = connect(&[live], from(source), LIMIT).await.unwrap_err();
            assert!(
                matches!(local, AttemptOutcome::Local(_)),
                "{source}: {local:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_socket_that_meets_itself_is_refused() {
        let (socket, address) = dead_port();
        let stream = socket.connect(address).await.unwrap();
        assert!(meets_itself(&stream).unwrap());
    }

    #[test]
    fn herds_own_shortages_are_not_the_servers_refusals() {
        let read = |errno: Errno| outcome(&errno.into(), ([127, 0, 0, 1], 1).into());
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::ADDRNOTAVAIL,
            Errno::NOBUFS,
        ] {
            assert!(matches!(read(errno), AttemptOutcome::Local(_)), "{errno:?}");
        }
        for errno in [
            Errno::CONNREFUSED,
            Errno::CONNRESET,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
        ] {
            assert_eq!(read(errno), AttemptOutcome::Refused, "{errno:?}");
        }
        assert_eq!(read(Errno::TIMEDOUT), AttemptOutcome::Timeout);
    }
}
