//! Loopback connections of this process to itself, both ends of each: as many at once as are asked for.
//!
//! Whoever asks connects and learns its own address; one task accepts, and each end finds the other by that address. Nobody
//! waits for anybody else's. It doesn't know what they are for.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::clock::Clock;
use crate::history::Elapsed;

/// How long herd may take to connect to itself, and how long what was accepted is kept for whoever connected.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked whether somebody came whom nobody knows.
const LOOK: Duration = Duration::from_secs(1);
/// How long to wait after an error of accepting: it would come again at once.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes them.
#[derive(Debug)]
pub(super) struct Pairs {
    address: SocketAddr,
    ends: Arc<Mutex<Ends>>,
    acceptor: AbortHandle,
}

/// Ends whose other end isn't known yet, by the address of the one that connected.
type Ends = HashMap<SocketAddr, Lone>;

#[derive(Debug)]
enum Lone {
    /// Connected; waits for what is accepted.
    Near(oneshot::Sender<io::Result<TcpStream>>),
    /// Accepted then; whoever connected doesn't know it yet, or is a stranger.
    Far(TcpStream, Elapsed),
}

impl Pairs {
    /// Listens on loopback.
    pub(super) async fn open(clock: Clock) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let ends = Arc::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&ends), clock));
        Ok(Self {
            address,
            ends,
            acceptor: accepting.abort_handle(),
        })
    }

    /// Two ends of one connection.
    pub(super) async fn make(&self) -> io::Result<(TcpStream, TcpStream)> {
        let pair = timeout(PATIENCE, self.connect()).await;
        pair.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn connect(&self) -> io::Result<(TcpStream, TcpStream)> {
        let near = TcpStream::connect(self.address).await?;
        let own = near.local_addr()?;
        let told = {
            let mut ends = lock(&self.ends);
            if let Some(Lone::Far(far, _)) = ends.remove(&own) {
                return both(near, far);
            }
            let (tell, told) = oneshot::channel();
            ends.insert(own, Lone::Near(tell));
            told
        };
        let gone = |_| Err(io::ErrorKind::ConnectionAborted.into());
        both(near, told.await.unwrap_or_else(gone)?)
    }

    /// Where it listens.
    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

fn both(near: TcpStream, far: TcpStream) -> io::Result<(TcpStream, TcpStream)> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

async fn accept(listener: TcpListener, ends: Arc<Mutex<Ends>>, clock: Clock) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let accepted = tokio::select! {
            biased;
            _ = look.tick() => {
                forget(&mut lock(&ends), clock.now());
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((far, from)) => arrived(&mut lock(&ends), far, from, clock.now()),
            Err(e) => {
                refuse(&mut lock(&ends), &e);
                sleep(PAUSE).await;
            }
        }
    }
}

fn arrived(ends: &mut Ends, far: TcpStream, from: SocketAddr, now: Elapsed) {
    match ends.remove(&from) {
        // Whoever has given up needs it no more.
        Some(Lone::Near(tell)) => drop(tell.send(Ok(far))),
        _ => drop(ends.insert(from, Lone::Far(far, now))),
    }
}

/// Strangers are turned away, and whoever gave up is forgotten.
fn forget(ends: &mut Ends, now: Elapsed) {
    ends.retain(|_, lone| match lone {
        Lone::Near(tell) => !tell.is_closed(),
        Lone::Far(_, at) => now.since(*at) < PATIENCE,
    });
}

/// Everybody who waits is told why nothing comes.
fn refuse(ends: &mut Ends, why: &io::Error) {
    for (_, lone) in ends.extract_if(|_, lone| matches!(lone, Lone::Near(_))) {
        if let Lone::Near(tell) = lone {
            let _ = tell.send(Err(io::Error::new(why.kind(), why.to_string())));
        }
    }
}

fn lock(ends: &Mutex<Ends>) -> MutexGuard<'_, Ends> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_somebody_elses_connection() {
        let pairs = Pairs::open(Clock::start()).await.unwrap();
        // Begun and not gone on with, as where its task has no turn.
        let mut stuck = pin!(pairs.make());
        assert!(poll!(&mut stuck).is_pending());
        let (near, far) = pairs.make().await.unwrap();
        assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
        let (near, far) = stuck.await.unwrap();
        assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
    }

    #[tokio::test]
    async fn many_at_once_each_get_their_own() {
        let pairs = Pairs::open(Clock::start()).await.unwrap();
        let all = futures::future::join_all((0..300).map(|_| pairs.make())).await;
        for pair in all {
            let (near, far) = pair.unwrap();
            assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
            assert!(near.nodelay().unwrap() && far.nodelay().unwrap());
        }
        assert!(lock(&pairs.ends).is_empty());
    }

    #[tokio::test]
    async fn whoever_gave_up_and_strangers_are_forgotten() {
        let pairs = Pairs::open(Clock::start()).await.unwrap();
        let stranger = TcpStream::connect(pairs.address()).await.unwrap();
        let is_known = || lock(&pairs.ends).contains_key(&stranger.local_addr().unwrap());
        while !is_known() {
            tokio::task::yield_now().await;
        }
        let (tell, told) = oneshot::channel();
        lock(&pairs.ends).insert(pairs.address(), Lone::Near(tell));
        drop(told);
        let now = Elapsed::ZERO + 2 * PATIENCE;
        forget(&mut lock(&pairs.ends), now);
        assert!(lock(&pairs.ends).is_empty());
    }
}
