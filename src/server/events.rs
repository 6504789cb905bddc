//! `GET /v1/events`: an event stream (WHATWG HTML 9.2) whose cursor stands in `Last-Event-ID`. It reads the request and
//! decides when something is sent; what is sent comes from the subscriber's feed.
//!
//! The stream is pulled by whoever writes to the socket, so a slow reader costs nothing but its place: what it hasn't
//! taken stays in the log.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use serde::Deserialize;
use tokio::time::{Interval, sleep};

use super::App;
use super::dialect::{Dialect, Item};
use super::feed::Feed;
use super::guest::{Guest, number, stopped};
use super::listen::Peer;
use super::problem::Problem;
use super::socket::{HOLD, beats};

/// What comes first: how long clients should wait before they come again, in milliseconds.
const RETRY: &str = "retry: 3000\n\n";
/// A comment; it shows both sides, and what is between them, that the connection lives.
const BEAT: &str = ": beat\n\n";

#[derive(Deserialize)]
pub(super) struct Asked {
    after: Option<String>,
    client: Option<String>,
}

pub(super) async fn events(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(asked) = asked.map_err(|e| Problem::bad_request(e.body_text()))?;
    let guest = Guest::admit(&app, number(asked.client.as_deref(), &peer)).await?;
    let body = if guest.flaps() {
        Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
    } else {
        guest.hold(&peer);
        // A client's own header is newer than the URL that it was given once. What is no UTF-8 is an id never given.
        let told = headers.get("last-event-id").map(|id| id.as_bytes());
        let told = told.map(String::from_utf8_lossy);
        let told = told.as_deref().filter(|id| !id.is_empty());
        Body::from_stream(Subscriber::new(guest, told.or(asked.after.as_deref())).stream())
    };
    let head = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((head, body).into_response())
}

struct Subscriber {
    guest: Guest,
    feed: Feed,
    beat: Interval,
    opening: Option<Bytes>,
}

impl Subscriber {
    fn new(guest: Guest, after: Option<&str>) -> Self {
        Self {
            feed: guest.feed(Dialect::Events, after),
            guest,
            beat: beats(),
            opening: Some(Bytes::from_static(RETRY.as_bytes())),
        }
    }

    fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut subscriber| async {
            let part = subscriber.next().await?;
            Some((Ok(part), subscriber))
        })
    }

    /// What to send next; none = the stream is over, because the server stops or the subscriber can't be served any more.
    /// There is no way to say why: coming again tells.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        loop {
            if *self.guest.stop.borrow() {
                return None;
            }
            let items = self.feed.pull().ok()?;
            if !items.is_empty() {
                return Some(blocks(&items));
            }
            let guest = &mut self.guest;
            tokio::select! {
                biased;
                () = stopped(&mut guest.stop) => return None,
                changed = guest.changes.changed() => changed.ok()?,
                _ = self.beat.tick() => return Some(Bytes::from_static(BEAT.as_bytes())),
                () = sleep(HOLD), if self.feed.is_holding() => {
                    if let Some(item) = self.feed.release() {
                        return Some(blocks(&[item]));
                    }
                }
            }
        }
    }
}

fn blocks(items: &[Item]) -> Bytes {
    let mut blocks = String::new();
    for item in items {
        blocks.push_str(&Dialect::Events.form(item));
    }
    blocks.into()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::server::{Config, open};

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_beats_until_the_server_stops() {
        let (stop, stopped) = watch::channel(false);
        let app = Arc::new(open(&Config::default(), stopped).unwrap());
        let guest = Guest::admit(&app, 1).await.unwrap();
        let mut subscriber = Subscriber::new(guest, None);
        assert_eq!(subscriber.next().await.as_deref(), Some(RETRY.as_bytes()));
        for _ in 0..3 {
            assert_eq!(subscriber.next().await.as_deref(), Some(BEAT.as_bytes()));
        }
        stop.send_replace(true);
        assert_eq!(subscriber.next().await, None);
    }
}
