//! The reference server: a durable event log behind `GET /v1/live` and `GET /v1/resume` (WebSocket), `GET /v1/events` (an
//! event stream), `POST /v1/publish`, `GET /v1/state` and `GET /healthz`. It is what herd restarts by default, and the
//! measure of what a server should do.
//!
//! It never sees herd's client: the oracle must not share what it judges. It prints nothing and ends no process; when
//! it listens it says so once, and when it is told to stop it closes every WebSocket with 1012 and ends every stream.

pub mod defect;
mod dialect;
mod events;
mod faults;
mod feed;
mod guest;
mod holder;
mod listen;
mod live;
mod log;
mod problem;
mod publish;
mod resume;
pub mod slow;
mod socket;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use crate::error::Error;
use defect::{Defect, Planted};
use faults::Faults;
use listen::{Door, Peer};
use log::{Log, Place};
use problem::Problem;
use slow::{Slow, SlowStart};

pub use holder::{HOLD, hold};

/// How long open requests and WebSockets have when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// What the server is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The directory of its log; none = in memory, gone with the process.
    pub data: Option<PathBuf>,
    /// Whether other servers keep their log there too.
    pub sharing: Sharing,
    /// How many events are kept, at least 1.
    pub keep: u64,
    /// Whether it serves nobody at first.
    pub slow_start: Option<SlowStart>,
    /// Planted bugs.
    pub defects: Vec<Planted>,
    /// Where they write a line before they act; none = nowhere.
    pub ledger: Option<PathBuf>,
    /// Decides where they act.
    pub seed: u64,
    /// What it refuses.
    pub limits: Limits,
    /// This executable, for the process that `half-open` needs (started with [`HOLD`]); none = that defect is refused.
    pub executable: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            data: None,
            sharing: Sharing::Alone,
            keep: 1_000_000,
            slow_start: None,
            defects: Vec::new(),
            ledger: None,
            seed: 0,
            limits: Limits::default(),
            executable: None,
        }
    }
}

/// Whether a log is one server's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// It is.
    #[default]
    Alone,
    /// Several servers append to it and follow it, so that each has every event under the same id.
    Shared,
}

/// What the server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest WebSocket message of a client, bytes; beyond it the connection is closed.
    pub frame: usize,
    /// The most subscribers at a time; the next one is answered 503.
    pub connections: u32,
    /// The largest body of a publication, bytes; beyond it the answer is 413.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 64 << 10,
            connections: 200_000,
            body: 1 << 20,
        }
    }
}

/// What the endpoints share.
struct App {
    log: Arc<Log>,
    faults: Arc<Faults>,
    limits: Limits,
    /// One permit for each subscriber that may still come.
    subscribers: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
    holder: Option<holder::Holder>,
    /// Its slow start, and whether it is over.
    warming: Option<(SlowStart, watch::Receiver<bool>)>,
}

impl App {
    /// Lets a handshake wait, or refuses it, while the server is still starting.
    async fn warm(&self) -> Result<(), Problem> {
        let Some((slow, over)) = &self.warming else {
            return Ok(());
        };
        let mut over = over.clone();
        if slow.how == Slow::Busy && !*over.borrow() {
            return Err(Problem::starting(slow.retry_after()));
        }
        let mut stop = self.stop.clone();
        // Of either an error means that its sender is gone, and with it the server's owner.
        tokio::select! {
            biased;
            _ = over.wait_for(|over| *over) => Ok(()),
            _ = stop.wait_for(|stop| *stop) => Err(Problem::unavailable("the server is stopping")),
        }
    }
}

/// Runs the server until `shutdown` resolves. `on_ready` is called once, with the address, when it listens. Then every
/// WebSocket is closed with 1012, every stream ends, open requests are answered, and the log is closed.
///
/// # Errors
/// Usage where the configuration makes no sense; broken where the address can't be listened on or the log not opened.
pub async fn serve(
    config: Config,
    on_ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    check(&config)?;
    listen::raise_descriptor_limit();
    let (stop, stopped) = watch::channel(false);
    let (warm, warming) = watch::channel(false);
    let mut app = open(&config, stopped.clone())?;
    app.warming = config.slow_start.map(|slow| (slow, warming));
    let app = Arc::new(app);
    let door = Door::open(config.listen, config.limits.connections, &app.faults)
        .map_err(|e| broken(&format!("can't listen on {}", config.listen), &e))?;
    let address = door.address();
    app.faults.start();
    if let Some(slow) = config.slow_start {
        tokio::spawn(async move {
            tokio::time::sleep(slow.lasts).await;
            warm.send_replace(true);
        });
    }
    on_ready(address);

    let service = router(Arc::clone(&app)).into_make_service_with_connect_info::<Peer>();
    let mut stopped = stopped;
    let server = axum::serve(door, service).with_graceful_shutdown(async move {
        // An error means that the sender is gone, and with it the server's owner.
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    let mut server = pin!(server.into_future());
    tokio::select! {
        biased;
        () = shutdown => {}
        ended = &mut server => return ended.map_err(|e| broken("the server ended", &e)),
    }
    stop.send_replace(true);
    let gone = async {
        let _ = server.await;
        let _ = app
            .subscribers
            .acquire_many(config.limits.connections)
            .await;
    };
    // Who doesn't let go within the grace is cut off when the runtime ends.
    let _ = tokio::time::timeout(GRACE, gone).await;
    let log = Arc::clone(&app.log);
    let _ = tokio::task::spawn_blocking(move || log.close()).await;
    Ok(())
}

fn check(config: &Config) -> Result<(), Error> {
    if config.keep == 0 {
        return Err(Error::Usage(
            "nothing would be kept; give --keep at least 1".into(),
        ));
    }
    if config.sharing == Sharing::Shared && config.data.is_none() {
        return Err(Error::Usage(
            "a log in memory can't be shared; give --data".into(),
        ));
    }
    for Planted { defect, .. } in &config.defects {
        if config.sharing == Sharing::Shared && defect.begins_ids_anew() {
            return Err(Error::Usage(format!(
                "{defect} begins the ids anew, and other servers share them; plant it where there is one server"
            )));
        }
        if defect.needs_a_restart() && config.data.is_none() {
            return Err(Error::Usage(format!(
                "{defect} acts after a restart, and a log in memory has none; give --data"
            )));
        }
        if *defect == Defect::HalfOpen && config.executable.is_none() {
            return Err(Error::Usage(format!(
                "{defect} needs this program's own file to keep the sockets; run it as herd serve"
            )));
        }
    }
    Ok(())
}

fn open(config: &Config, stop: watch::Receiver<bool>) -> Result<App, Error> {
    let own = match config.sharing {
        Sharing::Alone => String::new(),
        Sharing::Shared => format!("-{}", config.listen.port()),
    };
    let faults = Faults::new(
        config.defects.clone(),
        config.seed,
        config.ledger.as_deref(),
        config
            .data
            .as_ref()
            .map(|data| data.join(faults::DIED.to_owned() + &own)),
    )
    .map_err(|source| Error::File {
        action: "write",
        path: config.ledger.clone().unwrap_or_default(),
        source,
    })?;
    let faults = Arc::new(faults);
    let keep = faults.keep(config.keep);
    let place = match (config.data.clone(), config.sharing) {
        (None, _) => Place::Memory,
        (Some(dir), Sharing::Alone) => Place::Dir(dir),
        (Some(dir), Sharing::Shared) => Place::Shared(dir),
    };
    let log = Log::open(&place, keep, Arc::clone(&faults)).map_err(|source| Error::File {
        action: "open the log in",
        path: config.data.clone().unwrap_or_default(),
        source,
    })?;
    let holder = match (faults.planted(Defect::HalfOpen), &config.executable) {
        (Some(_), Some(executable)) => Some(
            holder::Holder::start(executable)
                .map_err(|e| broken("can't start the process that holds sockets", &e))?,
        ),
        _ => None,
    };
    Ok(App {
        log: Arc::new(log),
        faults,
        limits: config.limits,
        subscribers: Arc::new(Semaphore::new(config.limits.connections as usize)),
        stop,
        holder,
        warming: None,
    })
}

fn broken(what: &str, e: &io::Error) -> Error {
    Error::Broken(format!("{what}: {e}"))
}

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/live", get(live::live))
        .route("/v1/events", get(events::events))
        .route("/v1/resume", get(resume::resume))
        .route("/v1/publish", post(publish::publish))
        .route("/v1/state", get(state))
        .route(
            "/healthz",
            get(|| async { Json(json!({ "status": "ok" })) }),
        )
        .fallback(async || Problem::not_found())
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(DefaultBodyLimit::max(app.limits.body))
        .with_state(app)
}

/// What a client reloads after a reset: here only where the log stands.
async fn state(State(app): State<Arc<App>>) -> Json<Value> {
    let state = app.log.state();
    let count = state.newest - state.evicted;
    let oldest = (count > 0).then(|| (state.evicted + 1).to_string());
    Json(json!({ "newest": state.newest.to_string(), "oldest": oldest, "count": count }))
}
