//! A TCP connection, or why there is none. It speaks no protocol over it and decides nothing about when to try again.
//!
//! A name with several addresses is dialled as RFC 8305 wants it: the families in turn, the next address a moment after
//! the last one or at once where that failed, and the first connection wins.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rustix::io::Errno;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::{is_local, safe};
use crate::history::AttemptOutcome;

/// How long an address has before the next one is tried beside it (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Connects to one of the addresses within `limit`, from `source` where one is given (addresses of the other family are
/// then passed over). Every other connection that was begun is given up before this returns.
///
/// # Errors
/// Why none could be reached: [`AttemptOutcome::Local`] where herd itself ran out of something, else
/// [`AttemptOutcome::Timeout`] or [`AttemptOutcome::Refused`].
pub async fn connect(
    addresses: &[SocketAddr],
    source: Option<IpAddr>,
    limit: Duration,
) -> Result<TcpStream, AttemptOutcome> {
    let usable = |a: &&SocketAddr| source.is_none_or(|s| s.is_ipv4() == a.is_ipv4());
    let addresses: Vec<_> = addresses.iter().filter(usable).copied().collect();
    match addresses[..] {
        [] => Err(AttemptOutcome::Local(
            "the target has no address of the source address's family; give another source address"
                .into(),
        )),
        [address] => match timeout(limit, connect_one(address, source)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(outcome(&error, address)),
            Err(_) => Err(AttemptOutcome::Timeout),
        },
        _ => timeout(limit, race(interleaved(&addresses), source))
            .await
            .unwrap_or(Err(AttemptOutcome::Timeout)),
    }
}

/// The families in turn, beginning with that of the first; within a family the order stays.
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_first = |address: &&SocketAddr| address.is_ipv4() == addresses[0].is_ipv4();
    let (mut first, mut second): (Vec<SocketAddr>, Vec<_>) = addresses.iter().partition(is_first);
    first.reverse();
    second.reverse();
    let mut turns = Vec::with_capacity(addresses.len());
    while !(first.is_empty() && second.is_empty()) {
        turns.extend(first.pop());
        turns.extend(second.pop());
    }
    turns
}

async fn race(
    addresses: Vec<SocketAddr>,
    source: Option<IpAddr>,
) -> Result<TcpStream, AttemptOutcome> {
    let (mut waiting, mut racing) = (addresses.into_iter(), FuturesUnordered::new());
    let mut failures = Vec::new();
    loop {
        if let Some(address) = waiting.next() {
            racing.push(async move { (address, connect_one(address, source).await) });
        }
        let next_begins = async {
            match waiting.len() {
                0 => std::future::pending().await,
                _ => sleep(STAGGER).await,
            }
        };
        tokio::select! {
            biased;
            ended = racing.next() => match ended {
                Some((_, Ok(stream))) => return Ok(stream),
                Some((address, Err(error))) if is_exhausted(&error) => return Err(outcome(&error, address)),
                Some((address, Err(error))) => failures.push((address, error)),
                None => return Err(worst(&failures)),
            },
            () = next_begins => {}
        }
    }
}

/// What all the failures come to. A family that this machine doesn't have says nothing about the server, unless there is
/// no other.
fn worst(failures: &[(SocketAddr, io::Error)]) -> AttemptOutcome {
    let told: Vec<_> = failures
        .iter()
        .map(|(address, error)| {
            let outcome = outcome(error, *address);
            let weight = match outcome {
                AttemptOutcome::Local(_) if address.is_ipv6() => 0,
                AttemptOutcome::Local(_) => 3,
                AttemptOutcome::Timeout => 2,
                _ => 1,
            };
            (weight, outcome)
        })
        .collect();
    let worst = told.into_iter().max_by_key(|(weight, _)| *weight);
    worst.map_or(AttemptOutcome::Refused, |(_, outcome)| outcome)
}

/// Whether herd ran out of something that another address needs as well.
fn is_exhausted(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| {
        [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].contains(&errno)
    })
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

    #[test]
    fn families_take_turns_beginning_with_the_systems_first() {
        let parse = |list: &str| -> Vec<SocketAddr> {
            list.split(' ').map(|a| a.parse().unwrap()).collect()
        };
        let turns = |list| interleaved(&parse(list));
        assert_eq!(
            turns("[::1]:1 [::2]:1 [::3]:1 1.1.1.1:1 2.2.2.2:1"),
            parse("[::1]:1 1.1.1.1:1 [::2]:1 2.2.2.2:1 [::3]:1")
        );
        assert_eq!(turns("1.1.1.1:1 2.2.2.2:1"), parse("1.1.1.1:1 2.2.2.2:1"));
        assert_eq!(turns("1.1.1.1:1 [::1]:1"), parse("1.1.1.1:1 [::1]:1"));
    }

    #[test]
    fn a_family_that_is_not_there_says_nothing_of_the_server() {
        let failed = |list: &[(&str, Errno)]| {
            let failures: Vec<_> = list
                .iter()
                .map(|(address, errno)| (address.parse().unwrap(), (*errno).into()))
                .collect();
            worst(&failures)
        };
        let no_v6 = ("[::1]:1", Errno::ADDRNOTAVAIL);
        assert_eq!(
            failed(&[no_v6, ("127.0.0.1:1", Errno::CONNREFUSED)]),
            AttemptOutcome::Refused
        );
        assert_eq!(
            failed(&[no_v6, ("1.1.1.1:1", Errno::TIMEDOUT)]),
            AttemptOutcome::Timeout
        );
        assert!(matches!(failed(&[no_v6]), AttemptOutcome::Local(_)));
        let no_port = ("127.0.0.1:1", Errno::ADDRNOTAVAIL);
        let refused = ("[::1]:1", Errno::CONNREFUSED);
        assert!(matches!(
            failed(&[refused, no_port]),
            AttemptOutcome::Local(_)
        ));
    }

    /// A listener whose backlog is full, and what fills it: a further connect gets no answer.
    async fn silent() -> (tokio::net::TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut filling = Vec::new();
        while let Ok(stream) =
            timeout(Duration::from_millis(300), TcpStream::connect(address)).await
        {
            filling.push(stream.unwrap());
        }
        (listener, filling)
    }

    /// How many sockets the servers at these addresses hold, as the system counts them.
    fn open_to(addresses: &[SocketAddr]) -> usize {
        let ports: Vec<String> = addresses
            .iter()
            .map(|a| format!(":{:04X}", a.port()))
            .collect();
        let of = |file| std::fs::read_to_string(file).unwrap_or_default();
        let table = of("/proc/self/net/tcp") + &of("/proc/self/net/tcp6");
        let rows = table.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (remote, state) = (words.nth(2)?, words.next()?);
            // Established, or a connect without an answer, at the client's end.
            let counts = state == "01" || state == "02";
            ports
                .iter()
                .any(|port| remote.ends_with(port))
                .then_some(counts)
        });
        rows.filter(|counts| *counts).count()
    }

    #[tokio::test]
    async fn an_address_without_an_answer_is_overtaken_and_given_up() {
        let (dead, filling) = silent().await;
        let live = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [dead.local_addr().unwrap(), live.local_addr().unwrap()];
        let before = open_to(&addresses);
        let stream = connect(&addresses, None, LIMIT).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        assert_eq!(
            open_to(&addresses),
            before + 1,
            "one connection and no other"
        );
        drop(filling);
    }

    #[tokio::test]
    async fn an_answer_in_time_leaves_the_other_addresses_alone() {
        let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let second = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [first.local_addr().unwrap(), second.local_addr().unwrap()];
        let stream = connect(&addresses, None, LIMIT).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[0]);
        let other = timeout(2 * STAGGER, second.accept()).await;
        assert!(other.is_err(), "nobody else came: {other:?}");
    }

    #[tokio::test]
    async fn the_limit_is_for_all_addresses() {
        let (dead, filling) = silent().await;
        let address = dead.local_addr().unwrap();
        let limit = Duration::from_millis(300);
        let late = connect(&[address, address], None, limit).await;
        assert_eq!(late.unwrap_err(), AttemptOutcome::Timeout);
        drop(filling);
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
