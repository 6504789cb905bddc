//! Starts what a run needs besides its clients: the server, the publisher, the trigger; and looks first.
//!
//! Before the herd is let loose, one client dials: a target that can't be spoken to is named at once and with its answer,
//! not after a thousand clients have met it.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use url::Url;

use crate::client::first_look;
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Elapsed, Header, Seq, TriggerKind};
use crate::plan::Plan;
use crate::publish::outcome::Repeat;
use crate::publish::{self, Publisher};
use crate::scenario::{self, Scenario, Server, Via};
use crate::target::guarded::{Place, Program};
use crate::target::port::Held;
use crate::target::probe::Probe;
use crate::target::{self, Restart, Supervised};
use crate::template::{self, Template, Values};
use crate::transport::network::Network;
use crate::transport::tunnel::{Part, Tunnels};
use crate::trigger::cut::Severance;
use crate::trigger::{By, Pull, Remote, Trigger};

/// Where the embedded server keeps its log while the run lasts, in the run's directory.
pub(super) const DATA: &str = "server-data";

/// A run's surroundings, running.
pub(super) struct Started {
    pub(super) plan: Plan,
    pub(super) trigger: Trigger,
    pub(super) publisher: Option<Publisher>,
    /// What the clients dial through, where the network is to be cut.
    pub(super) tunnels: Option<Arc<Tunnels>>,
    pub(super) mostly_dropped: watch::Sender<Option<Elapsed>>,
    /// The server's port, held for the whole run (rule 22 of judgement).
    pub(super) port: Option<Held>,
}

/// Starts the server (or finds the remote one ready), looks at it with one client, and begins to publish.
pub(super) async fn start(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    network: &Arc<Network>,
    clock: Clock,
) -> Result<Started, Error> {
    let port = match scenario.target.server {
        Server::Remote => None,
        Server::Embedded { .. } | Server::Command(_) => Some(Held::pick()?),
    };
    let expand = Expand {
        port: port.as_ref().map(Held::port),
    };
    let plan = Plan::new(scenario, expand.port)?;
    let (mostly_dropped, dropped) = watch::channel(None);
    let probe = probe(scenario, &expand, network)?;
    let publishing = publishing(scenario, dir, header, &expand, network)?;
    let trigger = match server(scenario, dir, &expand, probe.clone()) {
        Some(server) => supervised(server, clock).await?,
        None => remote(scenario, probe, dropped, clock),
    };
    let tunnels = tunnels(scenario, network, clock).await?;
    let trigger = trigger.with_tunnels(tunnels.clone());
    first_look(scenario, &plan, network.clone(), clock).await?;
    if let Some(publish::Way::Http { url, .. }) = publishing.as_ref().map(|config| &config.way)
        && let Ok(url) = Url::parse(url)
    {
        network.find(&url).await?;
    }
    let publisher = publishing
        .map(|config| Publisher::start(config, clock))
        .transpose()?;
    Ok(Started {
        plan,
        trigger,
        publisher,
        tunnels,
        mostly_dropped,
        port,
    })
}

/// Fills in templates.
pub(crate) struct Expand {
    pub(crate) port: Option<u16>,
}

impl Expand {
    fn url(&self, text: &str) -> Result<String, Error> {
        let values = Values {
            port: self.port,
            ..Values::default()
        };
        Ok(Template::parse(text)?.expand(&values, template::Place::Url))
    }

    fn lines(&self, lines: &[String]) -> Result<Vec<String>, Error> {
        let values = Values {
            port: self.port,
            ..Values::default()
        };
        lines
            .iter()
            .map(|line| Ok(Template::parse(line)?.expand(&values, template::Place::Header)))
            .collect()
    }

    /// A command line is the shell's: only the port is filled in.
    fn command(&self, line: &str) -> String {
        self.port.map_or_else(
            || line.to_owned(),
            |port| line.replace("{port}", &port.to_string()),
        )
    }
}

pub(crate) fn probe(
    scenario: &Scenario,
    expand: &Expand,
    network: &Arc<Network>,
) -> Result<Probe, Error> {
    match &scenario.target.ready {
        Some(url) => Probe::get(&expand.url(url)?, network.clone()),
        None => Probe::connect(&expand.url(&scenario.target.url)?, network.clone()),
    }
}

/// The server that herd runs; none where somebody else does.
pub(crate) fn server(
    scenario: &Scenario,
    dir: &Path,
    expand: &Expand,
    probe: Probe,
) -> Option<target::Server> {
    let port = expand.port?;
    let program = match &scenario.target.server {
        Server::Remote => return None,
        Server::Command(line) => Program::Shell(expand.command(line)),
        Server::Embedded { args } => {
            let data = dir.join(DATA);
            let mut all = vec![
                "serve".into(),
                "--listen".into(),
                format!("127.0.0.1:{port}"),
            ];
            all.extend(["--data".into(), data.display().to_string()]);
            all.extend(["--seed".into(), scenario.seed.to_string()]);
            if !args.is_empty() {
                all.extend([
                    "--ledger".into(),
                    dir.join("ledger.jsonl").display().to_string(),
                ]);
            }
            all.extend(args.iter().cloned());
            Program::Own(all)
        }
    };
    Some(target::Server {
        program,
        env: vec![("PORT".into(), port.to_string())],
        place: Place::own(dir.join("server.log")),
        probe,
        ready_limit: scenario.target.ready_limit,
    })
}

async fn supervised(server: target::Server, clock: Clock) -> Result<Trigger, Error> {
    let (server, events) = Supervised::start(server, clock).await?;
    Ok(Trigger::child(server, events, clock))
}

fn remote(
    scenario: &Scenario,
    probe: Probe,
    mostly_dropped: watch::Receiver<Option<Elapsed>>,
    clock: Clock,
) -> Trigger {
    let remote = Remote {
        probe,
        ready_limit: scenario.target.ready_limit,
        mostly_dropped,
    };
    Trigger::remote(remote, clock)
}

/// A way through herd itself for every client's connection, from the first on, where an outage is to cut the network.
async fn tunnels(
    scenario: &Scenario,
    network: &Arc<Network>,
    clock: Clock,
) -> Result<Option<Arc<Tunnels>>, Error> {
    let cut = |outage: &scenario::Outage| outage.trigger.kind() == TriggerKind::Cut;
    if !scenario.outages.iter().any(cut) {
        return Ok(None);
    }
    let tunnels = Tunnels::open(network.clone(), clock).await;
    let tunnels = tunnels.map_err(|e| {
        Error::Broken(format!(
            "herd can't listen on loopback, which a cut of the network needs: {e}"
        ))
    })?;
    Ok(Some(Arc::new(tunnels)))
}

/// How an outage that was asked for is caused.
pub(super) fn pull(
    scenario: &Scenario,
    outage: &scenario::Outage,
    dir: &Path,
) -> Result<Pull, Error> {
    Ok(match outage.trigger {
        scenario::Trigger::Child { signal, grace } => Pull::Restart(Restart {
            signal,
            grace,
            down: outage.down,
        }),
        scenario::Trigger::Command { ref command, limit } => Pull::Others(By::Command {
            line: command.clone(),
            limit,
            place: Place::own(dir.join("restart.log")),
        }),
        scenario::Trigger::Wait { limit } => Pull::Others(By::Others { limit }),
        scenario::Trigger::Cut(cut) => Pull::Cut(Severance {
            cut,
            part: Part {
                clients: scenario.clients,
                share: outage.share,
            },
            down: outage.down,
        }),
        scenario::Trigger::Rolling { .. } => {
            return Err(Error::Usage("this trigger isn't there yet".into()));
        }
    })
}

pub(crate) fn publishing(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    expand: &Expand,
    network: &Arc<Network>,
) -> Result<Option<publish::Config>, Error> {
    let publish = &scenario.publish;
    let way = match &publish.via {
        Via::Observe => return Ok(None),
        Via::Http { url, headers } => publish::Way::Http {
            url: expand.url(url)?,
            headers: expand.lines(headers)?,
        },
        Via::Command(line) => publish::Way::Command {
            line: expand.command(line),
            place: Place::own(dir.join("publish.log")),
        },
    };
    // Of several shards the first one publishes.
    if header.shard.index != 1 {
        return Ok(None);
    }
    Ok(Some(publish::Config {
        way,
        network: network.clone(),
        rate: publish.rate,
        body: publish.body.clone(),
        first: Seq(header.seq_base + 1),
        run: format!("{:x}", header.seq_base),
        answer_id: publish.answer_id.clone(),
        answer_position: publish.answer_position.clone(),
        repeat: if publish.idempotent {
            Repeat::Idempotent
        } else {
            Repeat::Never
        },
    }))
}
