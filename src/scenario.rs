//! What the user wrote, typed and validated: a TOML file overridden by flags.
//!
//! This file knows names, units, defaults and contradictions. It opens no socket, starts nothing and never expands
//! `{env:..}` or `{file:..}`, so that what is stored of it holds no secret. What was typed ([`Draft`]: the file with the
//! flags laid over it) and what it comes to ([`Scenario`]) are two types; `scenario/resolve.rs` goes from one to the other.

mod draft;
mod outage;
mod render;
mod resolve;
mod secrets;
mod template;
#[cfg(test)]
mod tests;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::Mix;
use crate::history::{DeliveryMode, IdKind, PolicySource, Remembers, Shard, Source};
use crate::profile::Spec;
use crate::server::defect::Planted;
use crate::server::slow::SlowStart;
use crate::transport::tls;

pub use draft::Draft;
pub(crate) use draft::{BackoffDraft, lay};
pub use outage::{Cut, Means, Outage, StopSignal, Then, Trigger};
pub(crate) use resolve::templates;
pub(crate) use template::{columns, hidden, masked, masked_header, resumes};
pub(crate) use words::{Count, Form, Ip, Peak, Rate, ShardOf, Share, Staleness, Time, word};

/// A scenario file with every key, its default and what it means; `herd init` writes it.
pub const INIT: &str = include_str!("scenario/init.toml");

/// A run as it was asked for, every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file's stem, or `default`.
    pub name: String,
    /// Clients over all shards.
    pub clients: u32,
    /// Drawn where the user gave none.
    pub seed: u64,
    /// This process's share.
    pub shard: Shard,
    /// The server under test.
    pub target: Target,
    /// How connections are made and read.
    pub connect: Connect,
    /// When clients come back.
    pub policy: Policy,
    /// What is restarted, in order; at least one. See [`Scenario::outage`].
    pub outages: Vec<Outage>,
    /// How clients find out that a connection is dead; none = as the profile says.
    pub heartbeat: Option<Heartbeat>,
    /// Where a client gets the full state after a reset, a URL and a template; none = nowhere.
    pub reload: Option<String>,
    /// Who publishes, how fast.
    pub publish: Publish,
    /// What must hold.
    pub checks: Checks,
    /// Where results go.
    pub output: Output,
    /// What was implied rather than said, one sentence each; printed before the run.
    pub implied: Vec<String>,
}

/// The server under test.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Who runs it.
    pub server: Server,
    /// The clients' URL, a template: `{after}`, `{client}`, `{n}`, `{port}`, `{env:NAME}`, `{file:PATH}`, `{col:NAME}` and
    /// what the profile captures.
    pub url: String,
    /// Further targets, templates like `url`: clients go to any.
    pub more_urls: Vec<String>,
    /// How many servers herd runs; 1 where it runs none. Each has a `{port}` of its own.
    pub servers: u16,
    /// How a client chooses among the targets.
    pub pick: Pick,
    /// Readiness probe: an `http://` or `https://` URL that must answer 2xx, or none = a TCP connect to the target.
    pub ready: Option<String>,
    /// How long the server may take to be ready at first.
    pub ready_limit: Duration,
    /// A process of this machine whose use is written down, where herd doesn't run the server.
    pub watch_pid: Option<u32>,
}

/// How a client chooses among several targets, at each dial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The next one, as many balancers do; first the one that its number falls on.
    #[default]
    RoundRobin,
    /// Any.
    Random,
    /// Always the one that its number falls on.
    Sticky,
}

impl Pick {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RoundRobin, Self::Random, Self::Sticky];

    /// The word in scenarios and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
            Self::Sticky => "sticky",
        }
    }
}

/// How a client finds out that its connection is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// From one sign of life asked for (a WebSocket ping) to the next. Over an event stream none can be asked for.
    pub interval: Duration,
    /// How long the answer, or anything else, may take. Over an event stream anything must come within both together.
    pub timeout: Duration,
}

impl Heartbeat {
    /// What holds where a scenario needs one and gives none.
    pub(crate) const USUAL: Self = Self {
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
    };

    /// How long a connection may be silent before it is taken for dead.
    #[must_use]
    pub fn limit(self) -> Duration {
        self.interval + self.timeout
    }
}

/// Who runs the server under test.
#[derive(Debug, Clone, PartialEq)]
pub enum Server {
    /// This binary's `serve`, as a child process.
    Embedded {
        /// Planted bugs.
        planted: Vec<Plant>,
        /// How many events it keeps for replay; none = its default.
        keep: Option<u64>,
        /// What handshakes meet at first, at each start but the first.
        slow_start: Option<SlowStart>,
    },
    /// A command that herd starts and supervises (by `sh -c`); `{port}` in it is a free port, `PORT` in its environment.
    Command(String),
    /// Somebody else.
    Remote,
}

/// A planted bug of herd's own server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plant {
    /// Which.
    pub defect: Planted,
    /// In which of several servers, from 1; none = in all.
    pub server: Option<u16>,
}

impl std::fmt::Display for Plant {
    /// As it is written: `NAME`, `NAME=ARG`, each perhaps with `@SERVER`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.defect.fmt(f)?;
        self.server.map_or(Ok(()), |server| write!(f, "@{server}"))
    }
}

/// How connections are made and read.
#[derive(Debug, Clone, PartialEq)]
pub struct Connect {
    /// What is said over the transport.
    pub profile: Spec,
    /// JSON Pointer of the id; none = as the profile says.
    pub id: Option<String>,
    /// JSON Pointer of herd's number; none = as the profile says.
    pub seq: Option<String>,
    /// How the target's ids are compared.
    pub ids: IdKind,
    /// Whether ids are declared to have no holes.
    pub contiguous: bool,
    /// Header lines `Name: value`, templates.
    pub headers: Vec<String>,
    /// A CSV file whose row k holds client k's own values, `{col:NAME}` in templates.
    pub clients_file: Option<PathBuf>,
    /// Subprotocols to offer, of which the server must choose one; none = it must choose none.
    pub subprotocols: Vec<String>,
    /// Who a client says it is.
    pub credentials: Option<Credentials>,
    /// Whom TLS believes and what herd shows of itself; for publisher and probe as well.
    pub tls: tls::Settings,
    /// Through which proxy; for publisher and probe as well.
    pub proxy: Proxy,
    /// Local addresses to dial from, used in turn.
    pub source_ips: Vec<std::net::IpAddr>,
    /// First connects are spread evenly over this.
    pub ramp: Duration,
    /// Limit of one TCP connect, and of one handshake; none = as the clients' policy says, or 10 s.
    pub timeout: Option<Duration>,
    /// The largest message, bytes.
    pub max_message: usize,
}

/// Who a client says it is, in an `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// `USER:PASSWORD`, a template.
    User(String),
    /// A bearer token, a template.
    Bearer(String),
}

/// Through which HTTP proxy connections go; to loopback they go through none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Proxy {
    /// The environment's: `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`.
    #[default]
    Env,
    /// None.
    Direct,
    /// This `http://` URL, a template.
    Url(String),
}

/// When clients come back.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The policy of each client.
    pub mix: Mix,
    /// Who chose it.
    pub source: PolicySource,
}

impl Scenario {
    /// Every outage in order, one that is asked for several times so many times.
    pub fn each_outage(&self) -> impl Iterator<Item = &Outage> {
        let times = |outage: &Outage| outage.count as usize;
        self.outages
            .iter()
            .flat_map(move |outage| std::iter::repeat_n(outage, times(outage)))
    }

    /// An outage by its number, from 1; the last one's likeness beyond.
    ///
    /// # Panics
    /// A scenario without an outage can't be made by [`Draft::resolve`].
    #[must_use]
    pub fn outage(&self, number: u32) -> &Outage {
        let place = number.max(1) as usize - 1;
        let found = self.each_outage().nth(place).or(self.outages.last());
        found.unwrap_or_else(|| unreachable!("a scenario has at least one outage"))
    }

    /// How many targets clients choose from.
    #[must_use]
    pub fn targets(&self) -> u16 {
        self.target
            .servers
            .max(1 + self.target.more_urls.len() as u16)
    }
}

/// Who publishes, how fast.
#[derive(Debug, Clone, PartialEq)]
pub struct Publish {
    /// The way.
    pub via: Via,
    /// Publications a second.
    pub rate: f64,
    /// The body, a template: `{seq}`, `{payload}`.
    pub body: String,
    /// JSON Pointer of the id in the answer.
    pub answer_id: String,
    /// JSON Pointer of the position in the answer, where there is one.
    pub answer_position: Option<String>,
    /// Whether an unknown publication may be sent again (rule 11 of judgement).
    pub idempotent: bool,
}

impl Connect {
    /// The limit of a TCP connect, and of a handshake, where neither the scenario nor the clients' policy has one.
    pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(10);

    /// The texts, besides the profile's, that are filled in for each client.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let who = self.credentials.as_ref().map(|who| match who {
            Credentials::User(text) | Credentials::Bearer(text) => text,
        });
        self.headers.iter().chain(who).map(String::as_str)
    }
}

impl Publish {
    /// Who publishes.
    #[must_use]
    pub fn source(&self) -> Source {
        if self.via == Via::Observe {
            Source::Others
        } else {
            Source::Herd
        }
    }
}

/// A way to publish.
#[derive(Debug, Clone, PartialEq)]
pub enum Via {
    /// POST to a URL (a template), one event a request.
    Http {
        /// The URL.
        url: String,
        /// Header lines `Name: value`, templates.
        headers: Vec<String>,
    },
    /// A long-lived process (by `sh -c`) that gets an event a line on stdin.
    Command(String),
    /// Others publish.
    Observe,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Checks {
    /// Limit of `reconnect-spread`.
    pub min_spread: Duration,
    /// Limit of `peak`, a share from 0 to 1.
    pub max_peak: f64,
    /// Window of `peak`.
    pub peak_window: Duration,
    /// Delivery that must hold.
    pub delivery: DeliveryMode,
    /// How many clients may be told to reload.
    pub max_resets: u32,
    /// The settle limit.
    pub settle: Duration,
    /// Limit of `all-reconnected`; none = derived from the policy.
    pub reconnect_limit: Option<Duration>,
    /// Limit of `recovery` at p99; none = only reported.
    pub max_recovery: Option<Duration>,
    /// Limit of `staleness` at a percentile of the clients, 0 to 100; none = only reported.
    pub max_staleness: Option<(f64, Duration)>,
    /// Idempotent handlers for which repeated events are counted.
    pub dedupe: Vec<Remembers>,
}

/// Where results go.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The directory; none = `reports/<time>-<scenario>`.
    pub dir: Option<PathBuf>,
    /// Files besides the history.
    pub formats: Vec<crate::report::Format>,
}
