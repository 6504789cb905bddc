//! The full state, which a client asks for where the server tells it to reload or refuses to resume it.
//!
//! One GET beside its session, not instead of it, and one at a time: whoever is told again meanwhile gets the state that is on
//! its way. What the answer holds is none of herd's business; how long it took, and how large it is, is written down.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;
use tokio::time::timeout_at;

use super::crew::Crew;
use super::handle::Handle;
use super::{Client, hide};
use crate::history::{AttemptOutcome, Elapsed, Reload};
use crate::plan::Call;
use crate::scenario::Connect;
use crate::transport::safe;
use crate::transport::tls::Offer;

/// How much of what went wrong is kept (bytes).
const TEXT: usize = 120;

impl Client<'_> {
    /// Asks for the full state, where the scenario says from where.
    pub(super) fn reload(&self, at: Elapsed) {
        let Some(call) = self.crew.plan.reload(self.handle.id(), self.target) else {
            return;
        };
        let mut state = self.handle.lock();
        if std::mem::replace(&mut state.progress.reloading, true) {
            return;
        }
        drop(state);
        let (crew, handle) = (self.crew.clone(), self.handle.clone());
        tokio::spawn(async move {
            let mut reload = Reload {
                asked: at,
                ended: at,
                status: None,
                bytes: 0,
                why: "".into(),
            };
            let got = get(&crew, &handle, call, &mut reload).await;
            reload.ended = crew.dialler.clock.now();
            if let Err(why) = got {
                let own = hide::secrets(crew.secrets(), &crew.plan, handle.id());
                reload.why = crew.plan.hide(&own.redact(&why)).into();
            }
            let mut state = handle.lock();
            state.recorder.reloaded(reload);
            state.progress.reloading = false;
        });
    }
}

/// Ends what moves the bytes, whatever ends the request.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One request, its body read to the end, within the limit of one connect.
async fn get(
    crew: &Arc<Crew>,
    handle: &Handle,
    call: Result<Call, String>,
    reload: &mut Reload,
) -> Result<(), String> {
    let dialler = &crew.dialler;
    let limit = dialler.timeout.unwrap_or(Connect::USUAL_TIMEOUT);
    let until = dialler.clock.instant(reload.asked + limit);
    let asking = ask(crew, handle, call?, limit, reload);
    match timeout_at(until, asking).await {
        Ok(done) => done,
        Err(_) => Err(format!("no whole answer within {limit:?}")),
    }
}

async fn ask(
    crew: &Arc<Crew>,
    handle: &Handle,
    call: Call,
    limit: Duration,
    reload: &mut Reload,
) -> Result<(), String> {
    let (network, url) = (&crew.dialler.network, &call.url);
    let source = crew.plan.source(handle.id());
    let stream = network
        .reach(url, source, Some(reload.asked), Some(limit))
        .await;
    let stream = stream.map_err(|outcome| why(&outcome))?;
    let wire = network.secure(stream, url, Offer::Http1).await;
    let wire = wire.map_err(|outcome| why(&outcome))?;
    let spoken = |e: hyper::Error| text(&e.to_string());
    let (mut sender, driver) = http1::handshake(TokioIo::new(wire)).await.map_err(spoken)?;
    let _driver = Driver(tokio::spawn(driver).abort_handle());
    let request = request(&call).map_err(|e| text(&e.to_string()))?;
    let response = sender.send_request(request).await.map_err(spoken)?;
    let status = response.status();
    reload.status = Some(status.as_u16());
    count(response.into_body(), &mut reload.bytes).await?;
    match status {
        _ if status.is_success() => Ok(()),
        _ if status.is_redirection() => Err(format!(
            "status {}: redirects are not followed",
            status.as_u16()
        )),
        _ => Err(format!("status {}", status.as_u16())),
    }
}

fn request(call: &Call) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
    let url = &call.url;
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut request = Request::get(path);
    let given = |wanted: &str| {
        let mut names = call.headers.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case(wanted))
    };
    if !given(HOST.as_str()) {
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        request = request.header(HOST, format!("{host}{port}"));
    }
    let login = crate::transport::proxy::login(url);
    if let Some(login) = login.filter(|_| !given(AUTHORIZATION.as_str())) {
        request = request.header(AUTHORIZATION, crate::secrets::basic(&login));
    }
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    request.body(Empty::new())
}

/// Reads a body and keeps nothing of it.
async fn count(mut body: Incoming, bytes: &mut u64) -> Result<(), String> {
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|e| format!("the answer was cut short: {}", text(&e.to_string())))?;
        *bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(())
}

fn text(said: &str) -> String {
    safe(said.as_bytes(), TEXT).into()
}

/// Why there is no connection.
fn why(outcome: &AttemptOutcome) -> String {
    match outcome {
        AttemptOutcome::Refused => "connection refused".into(),
        AttemptOutcome::Timeout => "no answer to a TCP connect".into(),
        AttemptOutcome::Handshake { why, .. } | AttemptOutcome::Local(why) => why.to_string(),
        AttemptOutcome::Opened | AttemptOutcome::Aborted => "given up".into(),
    }
}
