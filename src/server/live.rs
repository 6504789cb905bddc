//! `GET /v1/live`: a WebSocket whose cursor stands in the URL. It reads the request; the rest is any subscriber's.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::App;
use super::dialect::Dialect;
use super::guest::{Guest, number};
use super::listen::Peer;
use super::problem::Problem;
use super::socket::{Subscriber, limited};

#[derive(Deserialize)]
pub(super) struct Asked {
    after: Option<String>,
    client: Option<String>,
}

pub(super) async fn live(
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
            let after = asked.after.as_deref();
            Subscriber::new(socket, guest, Dialect::Live, after)
                .run()
                .await;
        }),
    )
}
