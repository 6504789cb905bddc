//! Who is let in, whatever it speaks: the limits and the planted refusals come before any dialect.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};
use xxhash_rust::xxh3::xxh3_64;

use super::App;
use super::defect::Defect;
use super::dialect::Dialect;
use super::feed::{Asked, Feed};
use super::listen::Peer;
use super::problem::Problem;

/// A subscriber that was let in; it counts as one until this is dropped.
pub(super) struct Guest {
    app: Arc<App>,
    client: u64,
    /// The newest id when it came.
    since: u64,
    /// Resolves whenever the log has grown. Subscribed before the client is answered: whatever is published once it
    /// knows that it is in, it gets.
    pub(super) changes: watch::Receiver<u64>,
    /// Turns true when the server stops.
    pub(super) stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Guest {
    /// Lets a client in, or says why not.
    pub(super) async fn admit(app: &Arc<App>, client: u64) -> Result<Self, Problem> {
        app.warm().await?;
        app.faults.on_handshake().await;
        if app.faults.refuses(client) {
            return Err(Problem::unavailable("this client is refused"));
        }
        let permit = Arc::clone(&app.subscribers)
            .try_acquire_owned()
            .map_err(|_| Problem::unavailable("too many subscribers; come back later"))?;
        let changes = app.log.changes();
        Ok(Self {
            since: app.log.state().newest,
            app: Arc::clone(app),
            client,
            changes,
            stop: app.stop.clone(),
            _permit: permit,
        })
    }

    /// It says itself who it is.
    pub(super) fn is(&mut self, client: u64) {
        self.client = client;
    }

    /// `accept-then-close`: whether its connection ends as soon as it is open.
    pub(super) fn flaps(&self) -> bool {
        self.app.faults.flaps(self.client)
    }

    /// `half-open`: has its socket kept by somebody who outlives this server.
    pub(super) fn hold(&self, peer: &Peer) {
        if let Some(holder) = &self.app.holder
            && self.app.faults.holds(self.client)
            && self
                .app
                .faults
                .note(Defect::HalfOpen, Some(self.client), None)
        {
            holder.take(peer);
        }
    }

    /// What it is told.
    pub(super) fn feed(&self, dialect: Dialect, after: Option<&str>) -> Feed {
        let asked = Asked {
            dialect,
            after,
            client: self.client,
            since: self.since,
        };
        Feed::open(&self.app.log, asked, &self.app.faults)
    }
}

/// A client's number: as it was told, else one that is made of what it was told, else of where it came from.
pub(super) fn number(told: Option<&str>, peer: &Peer) -> u64 {
    told.map_or(u64::from(peer.port()), named)
}

/// A client's number by its name.
pub(super) fn named(name: &str) -> u64 {
    name.parse().unwrap_or_else(|_| xxh3_64(name.as_bytes()))
}

/// Resolves when the server stops, or its owner is gone.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
