//! `GET /v1/resume`: a WebSocket whose client says in its first frame who it is and where it left off. It reads that
//! frame; the rest is any subscriber's.
//!
//! A client that has nothing to resume may say so (`"lastEventId": null`) or say nothing. Who says nothing is taken for a
//! new one after [`MOMENT`]; who says anything is answered at once, so in the usual case nobody waits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use super::App;
use super::dialect::Dialect;
use super::guest::{Guest, named, number, stopped};
use super::listen::Peer;
use super::problem::Problem;
use super::socket::{End, Subscriber, close, limited};

/// How long a client may be silent at first. A herd that comes back at once needs its time for a first frame.
const MOMENT: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
pub(super) struct Asked {
    client: Option<String>,
}

/// A client's first frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Its cursor, as text.
    pub(super) after: Option<String>,
    /// Who it is.
    pub(super) client: Option<String>,
}

impl Hello {
    /// Reads `{"type":"resume","lastEventId":..,"clientId":..}`; none where the text is anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Frame {
            r#type: String,
            last_event_id: Option<Value>,
            client_id: Option<Value>,
        }
        let frame: Frame = serde_json::from_str(text).ok()?;
        (frame.r#type == "resume").then(|| Self {
            after: frame.last_event_id.map(lexeme),
            client: frame.client_id.map(lexeme),
        })
    }
}

/// Text as it is, anything else as it was written: this server gave no such id, and will say so.
fn lexeme(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

pub(super) async fn resume(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    asked: Result<Query<Asked>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = asked.map_err(|e| Problem::bad_request(e.body_text()))?;
    let upgrade = upgrade.map_err(|e| Problem::upgrade_required(e.body_text()))?;
    let guest = Guest::admit(&app, number(asked.client.as_deref(), &peer)).await?;
    Ok(
        limited(upgrade, app.limits).on_upgrade(move |socket| async move {
            if guest.flaps() {
                return;
            }
            guest.hold(&peer);
            drop(peer);
            serve(socket, guest).await;
        }),
    )
}

async fn serve(mut socket: WebSocket, mut guest: Guest) {
    let hello = match hello(&mut socket, &mut guest).await {
        Ok(hello) => hello,
        Err(end) => return close(&mut socket, end).await,
    };
    if let Some(client) = hello.as_ref().and_then(|hello| hello.client.as_deref()) {
        guest.is(named(client));
    }
    let after = hello.as_ref().and_then(|hello| hello.after.as_deref());
    Subscriber::new(socket, guest, Dialect::Resume, after)
        .run()
        .await;
}

/// The first frame that asks for something; none where none came in time.
async fn hello(socket: &mut WebSocket, guest: &mut Guest) -> Result<Option<Hello>, End> {
    let mut moment = pin!(sleep(MOMENT));
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut guest.stop) => return Err(End::Restart),
            heard = socket.recv() => match heard {
                Some(Ok(Message::Text(text))) => {
                    if let Some(hello) = Hello::read(&text) {
                        return Ok(Some(hello));
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
                Some(Ok(_)) => {}
            },
            () = &mut moment => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_tells_cursor_and_client() {
        let hello = |after: Option<&str>, client: Option<&str>| {
            Some(Hello {
                after: after.map(Into::into),
                client: client.map(Into::into),
            })
        };
        for (text, read) in [
            (
                r#"{"type":"resume","lastEventId":"41","clientId":"c-7"}"#,
                hello(Some("41"), Some("c-7")),
            ),
            (
                r#"{"type":"resume","lastEventId":9007199254740993,"clientId":7}"#,
                hello(Some("9007199254740993"), Some("7")),
            ),
            (r#"{"type":"resume","lastEventId":null}"#, hello(None, None)),
            (r#"{"type":"resume","more":[1]}"#, hello(None, None)),
            (
                r#"{"type":"resume","lastEventId":[41]}"#,
                hello(Some("[41]"), None),
            ),
            (r#"{"type":"ping"}"#, None),
            (r#"{"lastEventId":"41"}"#, None),
            ("resume", None),
        ] {
            assert_eq!(Hello::read(text), read, "{text}");
        }
    }
}
