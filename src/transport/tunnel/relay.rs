//! One tunnel at work: passes on what comes from either side, and what befalls it.
//!
//! In fair weather nobody can tell it from the connection itself: bytes in order, then the end as it came. It knows neither
//! whose tunnel it is nor why something befalls it.

use std::future::pending;
use std::io;
use std::time::Duration;

use futures::FutureExt;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout};

use super::flow::{End, Flow, Weather};
use crate::clock::Clock;
use crate::history::Elapsed;

/// How much is read at once (bytes).
const READ: usize = 8 * 1024;
/// So many reads in a row, then others have their turn.
const TURNS: usize = 16;
/// How long a connection of which one side has ended may go on, as systems themselves limit it.
const HALF: Duration = Duration::from_secs(60);
/// How long two sides that were told to end are listened to: closing at once would turn the end into a reset.
const GOODBYE: Duration = Duration::from_secs(5);
/// How often a tunnel whose bytes vanish is asked whether somebody has left it.
const LOOK: Duration = Duration::from_secs(1);

/// What befalls an open tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// Both sides are told of an end, at once: what is on its way is lost.
    End(End),
    /// From now on bytes and ends vanish, and no side is told anything, for ever.
    Vanish,
    /// The weather changes.
    Weather(Weather),
}

/// A tunnel.
pub(super) struct Relay {
    /// Towards the client.
    pub(super) client: TcpStream,
    /// Towards the server.
    pub(super) server: TcpStream,
    /// What befalls it; without anybody who could tell, the tunnel ends.
    pub(super) blows: mpsc::UnboundedReceiver<Blow>,
    pub(super) clock: Clock,
    pub(super) weather: Weather,
}

/// Whether the end of a direction was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

/// What is left to do once nothing is carried any more.
enum Last {
    /// Both ends were passed on, or time is up: nothing.
    Nothing,
    End(End),
    Vanish,
}

impl Relay {
    pub(super) async fn run(mut self) {
        match self.carry().await {
            Last::Nothing => {}
            Last::End(End::Rst) => {
                // Dropped, a socket without linger resets its connection.
                let _ = self.client.set_zero_linger();
                let _ = self.server.set_zero_linger();
            }
            Last::End(End::Fin) => {
                let _ = self.client.shutdown().now_or_never();
                let _ = self.server.shutdown().now_or_never();
                let both = async { tokio::join!(ignore(&self.client), ignore(&self.server)) };
                let _ = timeout(GOODBYE, both).await;
            }
            Last::Vanish => self.vanish().await,
        }
    }

    async fn carry(&mut self) -> Last {
        let Self {
            client,
            server,
            blows,
            clock,
            weather,
        } = self;
        let (mut up, mut down) = (Flow::new(*weather), Flow::new(*weather));
        let (mut up_told, mut down_told) = (Told::No, Told::No);
        let mut until = None;
        loop {
            // Before anything more is carried: what has befallen the tunnel comes first.
            match blows.try_recv() {
                Ok(blow) => {
                    if let Some(last) = struck(blow, [&mut up, &mut down], clock.now()) {
                        return last;
                    }
                }
                Err(mpsc::error::TryRecvError::Disconnected) => return Last::Nothing,
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            let now = clock.now();
            let moved = pass((client, &down), server, &mut up, now)
                | pass((server, &up), client, &mut down, now);
            let ends = [
                tell(&up, server, &mut up_told, now),
                tell(&down, client, &mut down_told, now),
            ];
            if ends.contains(&Some(End::Rst)) {
                return Last::End(End::Rst);
            }
            if (up_told, down_told) == (Told::Yes, Told::Yes) {
                return Last::Nothing;
            }
            if up_told == Told::Yes || down_told == Told::Yes {
                until.get_or_insert(now + HALF);
            }
            if until.is_some_and(|until| now >= until) {
                return Last::Nothing;
            }
            if moved {
                tokio::task::yield_now().await;
            }
            let wakes = [due(&up, up_told, now), due(&down, down_told, now), until];
            let wake = wakes.into_iter().flatten().min();
            tokio::select! {
                biased;
                blow = blows.recv() => {
                    let Some(blow) = blow else {
                        return Last::Nothing;
                    };
                    if let Some(last) = struck(blow, [&mut up, &mut down], clock.now()) {
                        return last;
                    }
                }
                () = ready(client, interest(&up, &down, now)) => {}
                () = ready(server, interest(&down, &up, now)) => {}
                () = wait(clock, wake) => {}
            }
        }
    }

    /// Nobody learns anything. Whoever leaves is let go, and the other side isn't told.
    async fn vanish(self) {
        let mut blows = self.blows;
        let mut sides = [Some(self.client), Some(self.server)];
        while sides.iter().any(Option::is_some) {
            tokio::select! {
                biased;
                blow = blows.recv() => if blow.is_none() {
                    return;
                },
                () = sleep(LOOK) => {}
            }
            for side in &mut sides {
                if side.as_ref().is_some_and(has_left) {
                    *side = None;
                }
            }
        }
    }
}

/// What a blow leaves to do; none where the tunnel goes on.
fn struck(blow: Blow, flows: [&mut Flow; 2], now: Elapsed) -> Option<Last> {
    match blow {
        Blow::End(end) => Some(Last::End(end)),
        Blow::Vanish => Some(Last::Vanish),
        Blow::Weather(weather) => {
            flows.into_iter().for_each(|flow| flow.set(now, weather));
            None
        }
    }
}

/// Moves what can be moved now; whether there may be more at once. `back` is the other direction.
fn pass((from, back): (&TcpStream, &Flow), to: &TcpStream, flow: &mut Flow, now: Elapsed) -> bool {
    for _ in 0..TURNS {
        let mut moved = false;
        loop {
            let piece = flow.ready(now);
            if piece.is_empty() {
                break;
            }
            match to.try_write(piece) {
                Ok(count) => flow.passed(now, count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // Whoever can't be written to has reset the connection; what it sent before is still to be read.
                Err(_) => flow.abandon(),
            }
            moved = true;
        }
        if flow.has_room() {
            let mut bytes = [0; READ];
            match from.try_read(&mut bytes) {
                // The system tells a reset once, and writing heard of it.
                Ok(0) if back.is_abandoned() => flow.close(now, End::Rst),
                Ok(0) => flow.close(now, End::Fin),
                Ok(count) => {
                    flow.push(now, &bytes[..count]);
                    moved = true;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => flow.close(now, End::Rst),
            }
        }
        if !moved {
            return false;
        }
    }
    true
}

/// Passes on a direction's end, once it is time.
fn tell(flow: &Flow, to: &mut TcpStream, told: &mut Told, now: Elapsed) -> Option<End> {
    let end = flow.over(now).filter(|_| *told == Told::No)?;
    if end == End::Fin {
        *told = Told::Yes;
        let _ = to.shutdown().now_or_never();
    }
    Some(end)
}

/// When to look at a direction again, if nothing else happens: what is due already waits for room on the other side.
fn due(flow: &Flow, told: Told, now: Elapsed) -> Option<Elapsed> {
    flow.due().filter(|at| told == Told::No && *at > now)
}

/// What is waited for at a socket: what comes from it, and room for what goes to it.
fn interest(from: &Flow, to: &Flow, now: Elapsed) -> Option<Interest> {
    let read = from.has_room().then_some(Interest::READABLE);
    let write = (!to.ready(now).is_empty()).then_some(Interest::WRITABLE);
    match (read, write) {
        (Some(read), Some(write)) => Some(read | write),
        (one, other) => one.or(other),
    }
}

async fn ready(stream: &TcpStream, interest: Option<Interest>) {
    match interest {
        // An error shows in what is read.
        Some(interest) => drop(stream.ready(interest).await),
        None => pending().await,
    }
}

async fn wait(clock: &Clock, at: Option<Elapsed>) {
    match at {
        Some(at) => sleep_until(clock.instant(at)).await,
        None => pending().await,
    }
}

/// Reads on to the end and forgets what is read.
async fn ignore(stream: &TcpStream) {
    let mut bytes = [0; 1024];
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Whether the other side has ended the connection, without reading what stands before the end.
fn has_left(stream: &TcpStream) -> bool {
    match stream.ready(Interest::READABLE).now_or_never() {
        Some(Ok(ready)) => ready.is_read_closed(),
        Some(Err(_)) => true,
        None => false,
    }
}
