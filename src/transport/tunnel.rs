//! Tunnels through herd itself: a TCP proxy in this process, so that the network between a client and its target can be taken
//! away without touching either.
//!
//! There is no proxy protocol: whoever dials asks for a tunnel and gets the near end of a loopback connection, of which the
//! far end is relayed (`tunnel/relay.rs`) to a connection that is made as any other. What befalls tunnels, whose, and when is
//! decided elsewhere; what the bytes mean isn't known here.

mod flow;
mod pairs;
mod relay;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout_at};
use url::Url;

use super::network::Network;
use super::safe;
use crate::clock::Clock;
use crate::history::{AttemptOutcome, ClientId, Elapsed, chosen};

use pairs::Pairs;
use relay::Relay;

pub use flow::{End, Weather};
pub use relay::Blow;

/// How much of an error is told (bytes).
const TEXT: usize = 200;
/// When a SYN that nobody answers is sent again, after the first (seconds): RFC 6298's first second, doubled each time.
const ASKED_AGAIN: [u64; 6] = [1, 3, 7, 15, 31, 63];

/// Some of the clients; see [`chosen`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// All clients, over all shards.
    pub clients: u32,
    /// The share of them, 0 to 1.
    pub share: f64,
}

impl Part {
    /// Whether a client is one of them.
    #[must_use]
    pub fn holds(self, client: ClientId) -> bool {
        chosen(client, self.clients, self.share)
    }
}

/// What new dials meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dials {
    /// What is there.
    #[default]
    Through,
    /// A refusal.
    Refused,
    /// No answer, until their limit.
    Unanswered,
}

/// All tunnels of this process.
#[derive(Debug)]
pub struct Tunnels {
    network: Arc<Network>,
    clock: Clock,
    pairs: Pairs,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whom the rest is about.
    part: Option<Part>,
    dials: Dials,
    weather: Weather,
    /// The last blow that left no tunnel working, and how many there were.
    last: Option<Blow>,
    blows: u32,
    /// The open tunnels, by number.
    open: HashMap<u64, (ClientId, mpsc::UnboundedSender<Blow>)>,
    number: u64,
}

impl State {
    fn hits(&self, client: ClientId) -> bool {
        self.part.is_some_and(|part| part.holds(client))
    }

    /// How much later than usual what this client sends arrives.
    fn late(&self, client: ClientId) -> Option<Duration> {
        match self.weather {
            Weather::Late(delay) if self.hits(client) => Some(delay),
            _ => None,
        }
    }

    /// What a dial of this client's meets.
    fn meets(&self, client: ClientId) -> Dials {
        match self.hits(client) {
            true => self.dials,
            false => Dials::Through,
        }
    }
}

/// Takes a tunnel off the list when it is over.
struct Listed {
    number: u64,
    state: Weak<Mutex<State>>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            lock(&state).open.remove(&self.number);
        }
    }
}

impl Tunnels {
    /// No tunnel yet, and nothing in their way. What is dialled is reached over `network`.
    ///
    /// # Errors
    /// Where herd can't listen on loopback.
    pub fn open(network: Arc<Network>, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            network,
            clock,
            pairs: Pairs::open()?,
            state: Arc::default(),
        })
    }

    /// A connection of a client's to a URL's host through a tunnel, as [`Network::reach`] makes one without. A server that is
    /// down is as refused, as silent, and as much herd's own shortage as it is without a tunnel.
    ///
    /// # Errors
    /// As of [`Network::reach`]; [`AttemptOutcome::Refused`] and [`AttemptOutcome::Timeout`] where the network is away.
    pub async fn reach(
        &self,
        client: ClientId,
        url: &Url,
        source: Option<IpAddr>,
        limit: Duration,
    ) -> Result<TcpStream, AttemptOutcome> {
        let begun = self.clock.now();
        let (meets, blows, late) = {
            let state = lock(&self.state);
            (state.meets(client), state.blows, state.late(client))
        };
        if meets == Dials::Unanswered {
            self.ask_again(client, begun, limit).await?;
        } else {
            self.past(meets, begun + limit).await?;
        }
        let server = self.connect(url, source, (begun, limit), late).await?;
        let (near, far) = self.pairs.make().await.map_err(|e| {
            let why = format!("herd can't connect to its own tunnel: {e}");
            AttemptOutcome::Local(safe(why.as_bytes(), TEXT))
        })?;
        let met = self.enter(client, blows, far, server);
        self.past(met, begun + limit).await?;
        Ok(near)
    }

    /// The way to the server, in a slow network: the question arrives late, and so does the answer, whatever it is.
    async fn connect(
        &self,
        url: &Url,
        source: Option<IpAddr>,
        (begun, limit): (Elapsed, Duration),
        late: Option<Duration>,
    ) -> Result<TcpStream, AttemptOutcome> {
        let reaching = self.network.reach(url, source, Some(begun), Some(limit));
        let Some(delay) = late else {
            return reaching.await;
        };
        let there_and_back = async {
            sleep_until(self.clock.instant(begun + delay)).await;
            let reached = reaching.await;
            sleep_until(self.clock.instant(self.clock.now() + delay)).await;
            reached
        };
        timeout_at(self.clock.instant(begun + limit), there_and_back)
            .await
            .unwrap_or(Err(AttemptOutcome::Timeout))
    }

    /// A dial that gets no answer asks again, as systems do, until the network is back or its time is up.
    async fn ask_again(
        &self,
        client: ClientId,
        begun: Elapsed,
        limit: Duration,
    ) -> Result<(), AttemptOutcome> {
        let again = ASKED_AGAIN.map(Duration::from_secs).into_iter();
        for after in again.take_while(|after| *after < limit) {
            sleep_until(self.clock.instant(begun + after)).await;
            let meets = lock(&self.state).meets(client);
            if meets != Dials::Unanswered {
                return self.past(meets, begun + limit).await;
            }
        }
        self.past(Dials::Unanswered, begun + limit).await
    }

    /// Waits where a dial gets no answer.
    async fn past(&self, meets: Dials, limit: Elapsed) -> Result<(), AttemptOutcome> {
        match meets {
            Dials::Through => Ok(()),
            Dials::Refused => Err(AttemptOutcome::Refused),
            Dials::Unanswered => {
                sleep_until(self.clock.instant(limit)).await;
                Err(AttemptOutcome::Timeout)
            }
        }
    }

    /// Puts a tunnel to work, unless a blow has fallen since its dial began: it would have hit this one too.
    fn enter(&self, client: ClientId, blows: u32, far: TcpStream, server: TcpStream) -> Dials {
        let mut state = lock(&self.state);
        let hit = state.hits(client);
        if hit && state.blows != blows {
            return match state.last {
                Some(Blow::Vanish) => Dials::Unanswered,
                _ => Dials::Refused,
            };
        }
        let (tell, told) = mpsc::unbounded_channel();
        state.number += 1;
        let number = state.number;
        state.open.insert(number, (client, tell));
        let relay = Relay {
            client: far,
            server,
            blows: told,
            clock: self.clock,
            weather: if hit { state.weather } else { Weather::Clear },
        };
        let listed = Listed {
            number,
            state: Arc::downgrade(&self.state),
        };
        drop(state);
        tokio::spawn(async move {
            relay.run().await;
            drop(listed);
        });
        Dials::Through
    }

    /// Something befalls the tunnels of some clients, and their new dials from now on. Other clients are left alone, and what
    /// befell any before no longer holds for new dials.
    pub fn befall(&self, part: Part, blow: Blow, dials: Dials) {
        let mut state = lock(&self.state);
        state.part = Some(part);
        state.dials = dials;
        state.weather = match blow {
            Blow::Weather(weather) => weather,
            Blow::End(_) | Blow::Vanish => {
                state.last = Some(blow);
                state.blows += 1;
                Weather::Clear
            }
        };
        for (client, tell) in state.open.values() {
            if part.holds(*client) {
                // One that is over needs no blow.
                let _ = tell.send(blow);
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
