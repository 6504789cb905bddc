//! What was written, key by key, before anything is decided: the form of the TOML file, and of the flags laid over it.
//!
//! Every value remembers where it came from, so that a refusal can name the line and key, or the flag. No default and no
//! contradiction is known here (`scenario/resolve.rs`); what each key means stands in `scenario/init.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::words::{
    Attempts, Count, Form, Ip, Peak, Rate, ResetOn, ShardOf, Share, Staleness, Time,
};
use super::{Heartbeat, Pick, StopSignal, Then};
use crate::backoff::{ConnectTimeout, Counted, Jitter, Rule, Slow, Window};
use crate::error::Error;
use crate::history::{CutKind, DeliveryMode, IdKind, Remembers, TriggerKind};
use crate::profile::ProfileName;
use crate::report::Format;
use crate::server::slow::SlowStart;

/// A value and where it was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// The bytes of the file that hold it.
    File(Range<usize>),
    /// The flag.
    Flag(&'static str),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            origin: Origin::File(spanned.span()),
            value: spanned.into_inner(),
        })
    }
}

/// A key that may be left out.
pub(crate) type Slot<T> = Option<Given<T>>;

/// Lays a flag, where it was given, over a key.
pub(crate) fn lay<T>(slot: &mut Slot<T>, flag: &'static str, value: Option<T>) {
    if let Some(value) = value {
        let origin = Origin::Flag(flag);
        *slot = Some(Given { value, origin });
    }
}

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

/// The outages in order: `[outage]` once, or `[[outage]]` as often as there are.
#[derive(Debug, Clone)]
pub(crate) struct OutagesDraft {
    pub(crate) all: Vec<OutageDraft>,
}

impl Default for OutagesDraft {
    fn default() -> Self {
        Self {
            all: vec![OutageDraft::default()],
        }
    }
}

impl<'de> Deserialize<'de> for OutagesDraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = OutagesDraft;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the table [outage], or several [[outage]]")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OutagesDraft, A::Error> {
                let one = OutageDraft::deserialize(MapAccessDeserializer::new(map))?;
                Ok(OutagesDraft { all: vec![one] })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<OutagesDraft, A::Error> {
                let all = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(match all.is_empty() {
                    true => OutagesDraft::default(),
                    false => OutagesDraft { all },
                })
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

impl OutagesDraft {
    /// What a simulation reads of it: the first one's times.
    fn simulated(self) -> Self {
        let first = self.all.into_iter().next().unwrap_or_default();
        Self {
            all: vec![OutageDraft {
                outages: first.outages,
                down: first.down,
                steady: first.steady,
                ..OutageDraft::default()
            }],
        }
    }

    /// Lays a flag over a key of every outage.
    pub(crate) fn lay<T: Clone>(
        &mut self,
        flag: &'static str,
        value: Option<T>,
        key: impl Fn(&mut OutageDraft) -> &mut Slot<T>,
    ) {
        for outage in &mut self.all {
            lay(key(outage), flag, value.clone());
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct OutageDraft {
    pub(crate) trigger: Slot<TriggerKind>,
    pub(crate) command: Slot<String>,
    pub(crate) command_limit: Slot<Time>,
    pub(crate) wait_limit: Slot<Time>,
    pub(crate) quiet_period: Slot<Time>,
    pub(crate) outages: Slot<Count>,
    pub(crate) down: Slot<Time>,
    pub(crate) falls: Slot<Count>,
    pub(crate) up: Slot<Time>,
    pub(crate) pause: Slot<Time>,
    pub(crate) cut: Slot<CutKind>,
    pub(crate) share: Slot<Share>,
    pub(crate) latency: Slot<Time>,
    pub(crate) bandwidth: Slot<Count>,
    pub(crate) then: Slot<Then>,
    pub(crate) refresh: Slot<Share>,
    pub(crate) persist: Slot<bool>,
    pub(crate) steady: Slot<Time>,
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

    /// Refuses a value: names its flag, or its line and key.
    pub(crate) fn refuse(&self, origin: &Origin, what: &str) -> Error {
        match origin {
            Origin::Flag(flag) => Error::Usage(format!("{flag}: {what}")),
            Origin::File(span) => Error::Scenario {
                file: self.file.clone(),
                line: line_of(&self.text, span.start),
                what: match key_at(&self.text, span) {
                    Some(key) => format!("{key}: {what}"),
                    None => what.to_owned(),
                },
            },
        }
    }

    /// Refuses a value by a key that the text names itself: its flag, or its line.
    pub(crate) fn refuse_as(&self, origin: &Origin, what: &str) -> Error {
        match origin {
            Origin::Flag(_) => self.refuse(origin, what),
            Origin::File(span) => Error::Scenario {
                file: self.file.clone(),
                line: line_of(&self.text, span.start),
                what: what.to_owned(),
            },
        }
    }

    /// Where the file gives a key, or what of its path there is: `profile.frame[2].when`, lists counting from 1.
    pub(crate) fn origin_of(&self, path: &str) -> Option<Origin> {
        let table = DeTable::parse(&self.text).ok()?;
        let mut place = None;
        let mut value: Option<&DeValue<'_>> = None;
        for name in path.split(['.', '[']) {
            let inside = match (value, name.strip_suffix(']')) {
                (None, _) => table.get_ref().get_key_value(name),
                (Some(DeValue::Table(table)), None) => table.get_key_value(name),
                (Some(DeValue::Array(list)), Some(n)) => {
                    let n = n.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                    let Some(item) = n.and_then(|n| list.get(n)) else {
                        break;
                    };
                    place = Some(item.span());
                    value = Some(item.get_ref());
                    continue;
                }
                _ => None,
            };
            let Some((key, item)) = inside else {
                break;
            };
            place = Some(key.span());
            value = Some(item.get_ref());
        }
        place.map(Origin::File)
    }

    /// How a refusal of something else mentions a value.
    pub(crate) fn place(&self, origin: &Origin) -> String {
        match origin {
            Origin::Flag(flag) => (*flag).to_owned(),
            Origin::File(span) => format!(
                "{} ({}:{})",
                key_at(&self.text, span).unwrap_or_default(),
                self.file.display(),
                line_of(&self.text, span.start)
            ),
        }
    }

    /// Refuses two values that can't both hold.
    pub(crate) fn contradiction(&self, one: &Origin, other: &Origin, why: &str) -> Error {
        let other = self.place(other);
        self.refuse(one, &format!("contradicts {other}: {why}"))
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    before.iter().filter(|b| **b == b'\n').count() + 1
}

/// The dotted key whose name or value holds the span; none where the text isn't TOML.
fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let mut path = Vec::new();
    find(table.get_ref(), span, &mut path).then(|| path.join("."))
}

fn find(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
    let holds = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        let inside = match value.get_ref() {
            DeValue::Table(inner) => find(inner, span, path),
            DeValue::Array(items) => items.iter().enumerate().any(|(place, item)| {
                let DeValue::Table(inner) = item.get_ref() else {
                    return false;
                };
                let name = path.pop().unwrap_or_default();
                path.push(format!("{name}[{}]", place + 1));
                let inside = find(inner, span, path);
                if !inside {
                    path.pop();
                    path.push(name);
                }
                inside
            }),
            _ => false,
        };
        if inside || holds(key.span()) || holds(value.span()) {
            return true;
        }
        path.pop();
    }
    false
}
