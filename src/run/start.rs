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
use crate::scenario::{self, Means, Plant, Scenario, Server, Via};
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
    /// The servers' ports, held for the whole run (rule 22 of judgement).
    pub(super) ports: Vec<Held>,
}

/// Starts the servers (or finds the remote ones ready), looks at each with one client, and begins to publish.
pub(super) async fn start(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    network: &Arc<Network>,
    clock: Clock,
) -> Result<Started, Error> {
    let ports = match scenario.target.server {
        Server::Remote => Vec::new(),
        Server::Embedded { .. } | Server::Command(_) => (0..scenario.target.servers)
            .map(|_| Held::pick())
            .collect::<Result<_, _>>()?,
    };
    let numbers: Vec<u16> = ports.iter().map(Held::port).collect();
    let plan = Plan::new(scenario, &numbers)?;
    let (mostly_dropped, dropped) = watch::channel(None);
    let servers: Vec<Expand> = numbers
        .iter()
        .map(|port| Expand { port: Some(*port) })
        .collect();
    let publishing = publishing(scenario, dir, header, &servers, network)?;
    let trigger = if servers.is_empty() {
        remote(scenario, network, dropped, clock)?
    } else {
        supervised(scenario, dir, &servers, network, clock).await?
    };
    let tunnels = tunnels(scenario, network, clock).await?;
    let trigger = trigger.with_tunnels(tunnels.clone());
    first_look(scenario, &plan, network.clone(), clock).await?;
    if let Some(publish::Way::Http { urls, .. }) = publishing.as_ref().map(|config| &config.way) {
        for url in urls.iter().filter_map(|url| Url::parse(url).ok()) {
            network.find(&url).await?;
        }
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
        ports,
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

/// Whether a target is ready, whose clients' URL this is.
pub(crate) fn probe(
    scenario: &Scenario,
    url: &str,
    expand: &Expand,
    network: &Arc<Network>,
) -> Result<Probe, Error> {
    match &scenario.target.ready {
        Some(url) => Probe::get(&expand.url(url)?, network.clone()),
        None => Probe::connect(&expand.url(url)?, network.clone()),
    }
}

/// The server that herd runs, which is its `number`-th (from 1); none where somebody else does.
pub(crate) fn server(
    scenario: &Scenario,
    dir: &Path,
    number: u16,
    expand: &Expand,
    probe: Probe,
) -> Option<target::Server> {
    let port = expand.port?;
    let mut again = Vec::new();
    let program = match &scenario.target.server {
        Server::Remote => return None,
        Server::Command(line) => Program::Shell(expand.command(line)),
        Server::Embedded {
            planted,
            keep,
            slow_start,
        } => {
            if let Some(slow) = slow_start {
                again = vec!["--slow-start".into(), slow.to_string()];
            }
            let data = dir.join(DATA).display().to_string();
            let mut all: Vec<String> = vec!["serve".into()];
            all.extend(["--listen".into(), format!("127.0.0.1:{port}")]);
            all.extend(["--data".into(), data]);
            if scenario.target.servers > 1 {
                all.push("--shared".into());
            }
            all.extend(["--seed".into(), scenario.seed.to_string()]);
            if !planted.is_empty() || keep.is_some() {
                let ledger = dir.join("ledger.jsonl").display().to_string();
                all.extend(["--ledger".into(), ledger]);
            }
            let here = |plant: &&Plant| plant.server.is_none_or(|server| server == number);
            for plant in planted.iter().filter(here) {
                all.extend(["--defect".into(), plant.defect.to_string()]);
            }
            if let Some(keep) = keep {
                all.extend(["--keep".into(), keep.to_string()]);
            }
            Program::Own(all)
        }
    };
    let log = match scenario.target.servers {
        1 => "server.log".to_owned(),
        _ => format!("server-{number}.log"),
    };
    Some(target::Server {
        program,
        again,
        env: vec![("PORT".into(), port.to_string())],
        place: Place::own(dir.join(log)),
        probe,
        ready_limit: scenario.target.ready_limit,
    })
}

/// Starts herd's own servers, all at once.
async fn supervised(
    scenario: &Scenario,
    dir: &Path,
    servers: &[Expand],
    network: &Arc<Network>,
    clock: Clock,
) -> Result<Trigger, Error> {
    let mut starting = Vec::new();
    for (number, expand) in (1..).zip(servers) {
        let probe = probe(scenario, &scenario.target.url, expand, network)?;
        let server = server(scenario, dir, number, expand, probe);
        starting.extend(server.map(|server| Supervised::start(server, clock)));
    }
    let started = futures::future::try_join_all(starting).await?;
    Ok(Trigger::child(started, clock))
}

/// Finds out how each target that isn't herd's can be asked whether it is there.
fn remote(
    scenario: &Scenario,
    network: &Arc<Network>,
    mostly_dropped: watch::Receiver<Option<Elapsed>>,
    clock: Clock,
) -> Result<Trigger, Error> {
    let target = &scenario.target;
    let urls = std::iter::once(&target.url).chain(&target.more_urls);
    let expand = Expand { port: None };
    let probes = urls.map(|url| probe(scenario, url, &expand, network));
    let remote = Remote {
        probes: probes.collect::<Result<_, _>>()?,
        ready_limit: target.ready_limit,
        mostly_dropped,
    };
    Ok(Trigger::remote(remote, clock))
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
    let tunnels = Tunnels::open(network.clone(), clock);
    let tunnels = tunnels.map_err(|e| {
        Error::Broken(format!(
            "herd can't listen on loopback, which a cut of the network needs: {e}"
        ))
    })?;
    Ok(Some(Arc::new(tunnels)))
}

/// How an outage that was asked for is caused.
pub(super) fn pull(scenario: &Scenario, outage: &scenario::Outage, dir: &Path) -> Pull {
    let place = || Place::own(dir.join("restart.log"));
    let restart = |signal, grace| Restart {
        signal,
        grace,
        down: outage.down,
    };
    match &outage.trigger {
        scenario::Trigger::Child { signal, grace } => Pull::Crashes {
            restart: restart(*signal, *grace),
            falls: outage.falls,
            up: outage.up,
        },
        scenario::Trigger::Rolling {
            means: Means::Child { signal, grace },
            pause,
        } => Pull::Rolling {
            restart: restart(*signal, *grace),
            pause: *pause,
        },
        scenario::Trigger::Rolling {
            means: Means::Command { command, limit },
            pause,
        } => Pull::RollingBy {
            line: command.clone(),
            limit: *limit,
            place: place(),
            pause: *pause,
        },
        scenario::Trigger::Command { command, limit } => Pull::Others(By::Command {
            line: command.clone(),
            env: Vec::new(),
            limit: *limit,
            place: place(),
        }),
        scenario::Trigger::Wait { limit } => Pull::Others(By::Others { limit: *limit }),
        scenario::Trigger::Cut(cut) => Pull::Cut(Severance {
            cut: *cut,
            part: Part {
                clients: scenario.clients,
                share: outage.share,
            },
            down: outage.down,
        }),
    }
}

/// Where to publish: what names a server's port stands for each of them.
fn every_url(url: &str, servers: &[Expand]) -> Result<Vec<String>, Error> {
    let urls = servers.iter().map(|server| server.url(url));
    let mut urls = urls.collect::<Result<Vec<_>, _>>()?;
    urls.dedup();
    Ok(urls)
}

pub(crate) fn publishing(
    scenario: &Scenario,
    dir: &Path,
    header: &Header,
    servers: &[Expand],
    network: &Arc<Network>,
) -> Result<Option<publish::Config>, Error> {
    let publish = &scenario.publish;
    let elsewhere = [Expand { port: None }];
    let servers = if servers.is_empty() {
        &elsewhere
    } else {
        servers
    };
    let expand = &servers[0];
    let way = match &publish.via {
        Via::Observe => return Ok(None),
        Via::Http { url, headers } => publish::Way::Http {
            urls: every_url(url, servers)?,
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
