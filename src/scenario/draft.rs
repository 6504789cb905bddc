//! What was written, key by key, before anything is decided: the form of the TOML file, and of the flags laid over it.
//!
//! Every value remembers where it came from, so that a refusal can name the line and key, or the flag. No default and no
//! contradiction is known here (`scenario/resolve.rs`); what each key means stands in `scenario/init.toml`.

mod origin;
mod outages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub(crate) use origin::{Given, Origin, Slot, lay};
use origin::{key_at, line_of};
pub(crate) use outages::{OutageDraft, OutagesDraft};

use super::words::{
    Attempts, Count, Form, Ip, Peak, Rate, ResetOn, ShardOf, Share, Staleness, Time,
};
use super::{Heartbeat, Pick, StopSignal};
use crate::backoff::{ConnectTimeout, Counted, Jitter, Rule, Slow, Window};
use crate::error::Error;
use crate::history::{DeliveryMode, IdKind, Remembers};
use crate::profile::ProfileName;
use crate::report::Format;
use crate::server::slow::SlowStart;

/// A scenario as it was written: read with [`Draft::read`], laid over with flags, decided with [`Draft::resolve`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Draft {
    #[serde(skip)]
    pub(super) file: PathBuf,
    #[serde(skip)]
    pub(super) text: String,
    pub(crate) name: Slot<String>,
    pub(crate) clients: Slot<Count>,
    pub(crate) seed: Slot<Count>,
    pub(crate) shard: Slot<ShardOf>,
    pub(crate) target: TargetDraft,
    pub(crate) connect: ConnectDraft,
    pub(crate) profile: Slot<toml::Table>,
    pub(crate) client: ClientDraft,
    pub(crate) outage: OutagesDraft,
    pub(crate) publish: PublishDraft,
    pub(crate) checks: ChecksDraft,
    pub(crate) output: OutputDraft,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct TargetDraft {
    pub(crate) url: Slot<String>,
    pub(crate) urls: Slot<Vec<String>>,
    pub(crate) pick: Slot<Pick>,
    pub(crate) servers: Slot<Count>,
    pub(crate) server_cmd: Slot<String>,
    pub(crate) ready: Slot<String>,
    pub(crate) ready_limit: Slot<Time>,
    pub(crate) watch_pid: Slot<Count>,
    pub(crate) stop_signal: Slot<StopSignal>,
    pub(crate) grace: Slot<Time>,
    pub(crate) defects: Slot<Vec<String>>,
    pub(crate) keep: Slot<Count>,
    pub(crate) slow_start: Slot<Form<SlowStart>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct ConnectDraft {
    pub(crate) profile: Slot<ProfileName>,
    pub(crate) id: Slot<String>,
    pub(crate) seq: Slot<String>,
    pub(crate) ids: Slot<IdKind>,
    pub(crate) contiguous: Slot<bool>,
    pub(crate) headers: Slot<Vec<String>>,
    pub(crate) clients_file: Slot<PathBuf>,
    pub(crate) subprotocols: Slot<Vec<String>>,
    pub(crate) user: Slot<String>,
    pub(crate) bearer: Slot<String>,
    pub(crate) insecure: Slot<bool>,
    pub(crate) cacert: Slot<PathBuf>,
    pub(crate) cert: Slot<PathBuf>,
    pub(crate) key: Slot<PathBuf>,
    pub(crate) proxy: Slot<String>,
    pub(crate) source_ips: Slot<Vec<Ip>>,
    pub(crate) ramp: Slot<Time>,
    pub(crate) timeout: Slot<Time>,
    pub(crate) max_message: Slot<Count>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    rename_all = "kebab-case",
    expecting = "the table client"
)]
pub(crate) struct ClientDraft {
    pub(crate) backoff: BackoffDraft,
    pub(crate) heartbeat: Slot<Form<Heartbeat>>,
    pub(crate) reload: Slot<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    rename_all = "kebab-case",
    expecting = "the table client.backoff, such as preset = \"phoenix\" in it"
)]
pub(crate) struct BackoffDraft {
    pub(crate) preset: Slot<String>,
    pub(crate) mix: Slot<BTreeMap<String, Share>>,
    pub(crate) kind: Slot<Kind>,
    pub(crate) first: Slot<Vec<Form<Window>>>,
    pub(crate) base: Slot<Form<Window>>,
    pub(crate) factor: Slot<f64>,
    pub(crate) cap: Slot<Time>,
    pub(crate) delay: Slot<Time>,
    pub(crate) jitter: Slot<Form<Jitter>>,
    pub(crate) plus: Slot<Time>,
    pub(crate) ceiling: Slot<Time>,
    pub(crate) every: Slot<Form<Window>>,
    pub(crate) stale: Slot<Time>,
    pub(crate) beat: Slot<Time>,
    pub(crate) counted: Slot<Counted>,
    pub(crate) max_attempts: Slot<Attempts>,
    pub(crate) max_elapsed: Slot<Time>,
    pub(crate) slow: Slot<Form<Slow>>,
    pub(crate) reset: Slot<ResetOn>,
    pub(crate) connect_timeout: Slot<Form<ConnectTimeout>>,
    pub(crate) rules: Slot<Vec<Form<Rule>>>,
    pub(crate) retry: Slot<Time>,
    pub(crate) retry_after: Slot<bool>,
    pub(crate) fallback_within: Slot<Time>,
    pub(crate) requests: Slot<Count>,
}

/// The form of a policy of the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// `base x factor^n` up to the cap.
    Exponential,
    /// Always the same.
    Fixed,
    /// A list, then always the same.
    Table,
    /// `base x ln(n + 1)` up to the cap.
    Logarithmic,
    /// A free-running poll, then exponential.
    Poll,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct PublishDraft {
    pub(crate) url: Slot<String>,
    pub(crate) headers: Slot<Vec<String>>,
    pub(crate) cmd: Slot<String>,
    pub(crate) observe: Slot<bool>,
    pub(crate) rate: Slot<Rate>,
    pub(crate) body: Slot<String>,
    pub(crate) answer_id: Slot<String>,
    pub(crate) answer_position: Slot<String>,
    pub(crate) idempotent: Slot<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct ChecksDraft {
    pub(crate) min_spread: Slot<Time>,
    pub(crate) max_peak: Slot<Peak>,
    pub(crate) delivery: Slot<DeliveryMode>,
    pub(crate) max_resets: Slot<Count>,
    pub(crate) settle: Slot<Time>,
    pub(crate) reconnect_limit: Slot<Time>,
    pub(crate) max_recovery: Slot<Time>,
    pub(crate) max_staleness: Slot<Form<Staleness>>,
    pub(crate) dedupe: Slot<Vec<Form<Remembers>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct OutputDraft {
    pub(crate) dir: Slot<PathBuf>,
    pub(crate) formats: Slot<Vec<Format>>,
}

impl Draft {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where it can't be read, [`Error::Scenario`] with the line and key where it isn't a scenario.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::Usage(format!(
                "can't read the scenario {}: {error}; herd init writes one to start from",
                file.display()
            ))
        })?;
        Self::parse(file, &text)
    }

    /// Reads a scenario's text; `file` names it in refusals.
    ///
    /// # Errors
    ///
    /// [`Error::Scenario`] with the line and key where it isn't a scenario.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        match toml::from_str::<Self>(text) {
            Ok(draft) => Ok(Self {
                file: file.into(),
                text: text.into(),
                ..draft
            }),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                let said = error.message().trim_end().replace('\n', ", ");
                Err(Error::Scenario {
                    file: file.into(),
                    line: line_of(text, at.start),
                    what: match key_at(text, &at) {
                        Some(key) => format!("{key}: {said}"),
                        None => said,
                    },
                })
            }
        }
    }

    /// What a simulation reads of it: what else it says is about a real server.
    pub(crate) fn simulated(self) -> Self {
        Self {
            file: self.file,
            text: self.text,
            name: self.name,
            clients: self.clients,
            seed: self.seed,
            client: self.client,
            connect: ConnectDraft {
                timeout: self.connect.timeout,
                ..ConnectDraft::default()
            },
            outage: self.outage.simulated(),
            checks: self.checks,
            output: self.output,
            ..Self::default()
        }
    }
}
