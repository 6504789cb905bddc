//! `herd probe`: the first five minutes with a server of one's own. One client, a few events, no restart: what is said,
//! which profile fits, what is missing, and the line for `herd run`.
//!
//! Each profile that could fit is tried as a client would use it: connect, receive one event, leave, miss one, come back.
//! `probe/trial.rs` does that, `probe/pointers.rs` finds ids that stand elsewhere, `probe/advice.rs` says what follows. It
//! judges no delivery: a few events prove that resume works at all, not that it always does.

mod advice;
mod events;
mod pointers;
mod trial;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::error::{Error, Exit};
use crate::profile::{ProfileName, Spec, Transport};
use crate::run::start::{self, Expand};
use crate::run::{network, prepare};
use crate::scenario::{Scenario, Server};
use crate::secrets::Secrets;
use crate::target::Supervised;
use crate::target::port::Held;
use crate::transport::network::Network;
use advice::{Candidate, Live, Proof};
use events::Events;
use trial::Trial;

/// Which profiles are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profiles {
    /// The one that the user named.
    Named,
    /// All that could fit.
    Any,
}

/// What to probe.
#[derive(Debug)]
pub struct Probe {
    /// The target and how to publish to it; the number of clients counts for nothing.
    pub scenario: Scenario,
    /// Which profiles are tried.
    pub profiles: Profiles,
    /// The `herd run` line as it was typed, secrets masked, without target, profile and pointers.
    pub line: String,
}

/// Query keys that servers read a cursor from, the likeliest first.
const KEYS: [&str; 5] = ["cursor", "since", "last_event_id", "lastEventId", "from"];

/// Probes and tells what it finds as it goes. [`Exit::Pass`]: a profile fits and resume works; [`Exit::Unknown`]: not so.
///
/// # Errors
/// [`Error::Broken`] and its like where the server can't be started or spoken to at all, usage where the scenario can't
/// be used.
pub fn probe(probe: &Probe, out: &mut dyn Write) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::Broken(format!("the runtime can't be started: {e}")))?;
    let scratch = Scratch::new()?;
    let ended = runtime.block_on(look(probe, &scratch.0, out));
    runtime.shutdown_background();
    ended
}

async fn look(probe: &Probe, dir: &Path, out: &mut dyn Write) -> Result<Exit, Error> {
    let (scenario, clock) = (&probe.scenario, Clock::start());
    let port = match scenario.target.server {
        Server::Remote => None,
        Server::Embedded { .. } | Server::Command(_) => Some(Held::pick()?),
    };
    let expand = Expand {
        port: port.as_ref().map(Held::port),
    };
    let network = network::load(scenario)?;
    let header = prepare::header(scenario, "", 0)?;
    let publishing = start::publishing(
        scenario,
        dir,
        &header,
        std::slice::from_ref(&expand),
        &network,
    )?;
    let ready = start::probe(scenario, &scenario.target.url, &expand, &network)?;
    let server = match start::server(scenario, dir, 1, &expand, ready) {
        // What the server does besides serving shows in what its client sees.
        Some(server) => Some(Supervised::start(server, clock).await?.0),
        None => None,
    };
    let mut look = Look {
        probe,
        port: expand.port,
        clock,
        network: network.clone(),
        events: Events::new(publishing, clock),
        paper: Paper {
            out,
            secrets: network.secrets().clone(),
        },
    };
    let tried = look.all().await;
    let published = look.events.answered().cloned();
    look.events.end().await;
    if let Some(server) = server {
        server.end().await;
    }
    let best = tried?;
    look.paper.write(&advice::text(
        &best,
        scenario,
        &probe.line,
        published.as_ref(),
    ))?;
    Ok(match best.proof {
        Proof::Resumed { live: Live::Yes } => Exit::Pass,
        Proof::NotOpened(_) => Exit::Broken,
        _ => Exit::Unknown,
    })
}

/// Everything that a probe needs while it lasts.
struct Look<'a> {
    probe: &'a Probe,
    port: Option<u16>,
    clock: Clock,
    network: Arc<Network>,
    events: Events,
    paper: Paper<'a>,
}

impl Look<'_> {
    /// The candidate that got furthest; of equals the first.
    async fn all(&mut self) -> Result<Candidate, Error> {
        let mut waiting = first_candidates(self.probe);
        waiting.reverse();
        let mut best: Option<Candidate> = None;
        while let Some(mut candidate) = waiting.pop() {
            self.paper
                .write(&format!("\nTrying {}\n", candidate.title()))?;
            candidate.proof = Trial::run(self, &mut candidate).await?;
            self.paper.write(&format!("  {}\n", candidate.proof))?;
            let resumed = matches!(candidate.proof, Proof::Resumed { live: Live::Yes });
            // It reads the events: the cursor may only have to go elsewhere.
            let unheeded = matches!(
                candidate.proof,
                Proof::Missed { .. } | Proof::Repeated { .. }
            );
            if self.probe.profiles == Profiles::Any && unheeded && candidate.takes_keys() {
                waiting.splice(0..0, KEYS.iter().rev().map(|key| candidate.with_key(key)));
            }
            if best
                .as_ref()
                .is_none_or(|best| best.proof.rank() < candidate.proof.rank())
            {
                best = Some(candidate);
            }
            if resumed {
                break;
            }
        }
        best.ok_or_else(|| {
            Error::Usage("no profile is left to try; name one with --profile".into())
        })
    }
}

fn first_candidates(probe: &Probe) -> Vec<Candidate> {
    let named = &probe.scenario.connect.profile;
    if probe.profiles == Profiles::Named {
        return vec![Candidate::new(named.clone())];
    }
    let fits = |name: &ProfileName| Spec::builtin(*name).transport == named.transport;
    let order = match named.transport {
        Transport::Sse => vec![ProfileName::Sse],
        Transport::Ws => vec![
            ProfileName::After,
            ProfileName::Resume,
            ProfileName::NestjsWs,
            ProfileName::Socketio,
        ],
    };
    let rest = ProfileName::ALL
        .into_iter()
        .filter(|name| !order.contains(name))
        .filter(fits);
    let all = order.iter().copied().chain(rest.collect::<Vec<_>>());
    all.map(|name| Candidate::new(Spec::builtin(name)))
        .collect()
}

/// Where the report goes. What a server says may hold a secret that it was sent.
struct Paper<'a> {
    out: &'a mut dyn Write,
    secrets: Secrets,
}

impl Paper<'_> {
    fn write(&mut self, text: &str) -> Result<(), Error> {
        let text = self.secrets.redact(text);
        match self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
        {
            // Who closed stdout has read enough.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| Error::Broken(format!("can't write what was found: {e}"))),
        }
    }
}

/// A directory for the logs of the server and of the publish command, gone when the probe is over.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Self, Error> {
        let dir = std::env::temp_dir().join(format!("herd-probe-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|source| Error::File {
            action: "create",
            path: dir.clone(),
            source,
        })?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is the temporary directory's business.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
