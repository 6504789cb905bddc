//! Loopback connections of this process to itself, both ends of each.
//!
//! A thread of its own makes them, one after the other: the kernel completes such a connect at once, so that one takes some
//! ten microseconds however busy the runtime is. Asked for side by side they would overflow the listener's queue, and a
//! connect that the kernel then drops is tried again only after seconds. It doesn't know what they are for.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long herd may take to connect to itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection's two ends.
type Pair = (TcpStream, TcpStream);

/// Makes them.
#[derive(Debug)]
pub(super) struct Pairs {
    #[cfg(test)]
    address: SocketAddr,
    asked: mpsc::Sender<oneshot::Sender<io::Result<Pair>>>,
}

impl Pairs {
    /// Listens on loopback; the thread ends when this is dropped.
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (asked, requests) = mpsc::channel::<oneshot::Sender<_>>();
        std::thread::Builder::new()
            .name("tunnel-pairs".into())
            .spawn(move || {
                for reply in requests {
                    // Whoever has given up needs none.
                    if !reply.is_closed() {
                        let _ = reply.send(make(&listener, address));
                    }
                }
            })?;
        Ok(Self {
            #[cfg(test)]
            address,
            asked,
        })
    }

    /// Two ends of one connection.
    pub(super) async fn make(&self) -> io::Result<(tokio::net::TcpStream, tokio::net::TcpStream)> {
        let (reply, made) = oneshot::channel();
        let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
        self.asked.send(reply).map_err(|_| gone())?;
        let made = timeout(PATIENCE, made).await;
        let made = made.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let (near, far) = made.map_err(|_| gone())??;
        let stream = tokio::net::TcpStream::from_std;
        Ok((stream(near)?, stream(far)?))
    }

    /// Where it listens.
    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn make(listener: &TcpListener, address: SocketAddr) -> io::Result<Pair> {
    let near = TcpStream::connect(address)?;
    let own = near.local_addr()?;
    let far = loop {
        let (far, from) = listener.accept()?;
        // Strangers are turned away.
        if from == own {
            break far;
        }
    };
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    Ok((near, far))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::pin::pin;

    use futures::poll;

    use super::*;

    fn are_one((near, far): &(tokio::net::TcpStream, tokio::net::TcpStream)) -> bool {
        near.local_addr().unwrap() == far.peer_addr().unwrap()
            && near.nodelay().unwrap()
            && far.nodelay().unwrap()
    }

    #[tokio::test]
    async fn nobody_waits_for_somebody_elses_connection() {
        let pairs = Pairs::open().unwrap();
        // Begun and not gone on with, as where its task has no turn.
        let mut stuck = pin!(pairs.make());
        assert!(poll!(&mut stuck).is_pending());
        assert!(are_one(&pairs.make().await.unwrap()));
        assert!(are_one(&stuck.await.unwrap()));
    }

    /// More than a listener's queue holds.
    #[tokio::test]
    async fn many_at_once_each_get_their_own() {
        let pairs = Pairs::open().unwrap();
        for _ in 0..4 {
            let all = futures::future::join_all((0..300).map(|_| pairs.make())).await;
            assert!(all.iter().all(|pair| are_one(pair.as_ref().unwrap())));
        }
    }

    #[tokio::test]
    async fn strangers_are_turned_away() {
        let pairs = Pairs::open().unwrap();
        let mut stranger = TcpStream::connect(pairs.address()).unwrap();
        assert!(are_one(&pairs.make().await.unwrap()));
        assert_eq!(stranger.read(&mut [0]).unwrap(), 0);
    }
}
