//! From what was typed to what will be done: defaults, what follows from what, and what can't be.
//!
//! Every refusal names the flag or the line and key, and what would be right. A flag that would have no effect is refused;
//! a key without effect is not, since a file may serve several targets. `scenario/resolve/{server,publish,policy}.rs` hold
//! the parts with rules of their own.

mod access;
mod outage;
mod policy;
mod profile;
mod publish;
mod server;

use std::time::Duration;

use super::draft::{ChecksDraft, Draft, Given, Origin, Slot};
use super::words::{Count, Form, Ip, Peak, Staleness, Time};
use super::{Checks, Connect, Output, Scenario};
use crate::error::Error;
use crate::history::file::MAX_CLIENTS;
use crate::history::{DeliveryMode, IdKind, Remembers, Shard, Source};
use crate::profile::Profile;
use crate::report::Format;
use server::Owner;

pub(super) use policy::raw;
pub(crate) use profile::templates;

impl Draft {
    /// Decides everything. `fresh_seed` is the seed where none was given.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] or [`Error::Scenario`]: which flag or key is wrong, and what would be right.
    pub fn resolve(&self, fresh_seed: u64) -> Result<Scenario, Error> {
        self.with_first_target()?.decide(fresh_seed)
    }

    fn decide(&self, fresh_seed: u64) -> Result<Scenario, Error> {
        let mut implied = Vec::new();
        let owner = self.owner()?;
        let (spec, profile) = self.profile()?;
        let target = self.target(owner, &profile, &mut implied)?;
        let clients = self.count(&self.clients, 1..=MAX_CLIENTS, 1_000)?;
        let targets = target.servers.max(1 + target.more_urls.len() as u16);
        let outages = self.outages(owner, (clients, targets), &mut implied)?;
        let publish = self.publication(owner, &profile, &mut implied)?;
        let connect = Connect {
            profile: spec,
            ..self.connect(owner, &profile, publish.source())?
        };
        self.columns(&connect, &target.url)?;
        Ok(Scenario {
            name: self.title()?,
            clients,
            seed: or(&self.seed, |Count(n)| n, fresh_seed),
            shard: self.share(clients, owner)?,
            connect,
            policy: self.policy(owner)?,
            heartbeat: self.heartbeat(&outages, &profile, &mut implied),
            outages,
            reload: self.reload(owner)?,
            checks: self.demands(publish.source())?,
            output: self.output(),
            target,
            publish,
            implied,
        })
    }

    fn title(&self) -> Result<String, Error> {
        let Some(name) = &self.name else {
            let stem = self.file.file_stem();
            return Ok(stem.map_or("default".into(), |s| s.to_string_lossy().into_owned()));
        };
        let plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        if name.value.is_empty() || name.value.starts_with('.') || !name.value.chars().all(plain) {
            let what =
                "it becomes part of a directory's name; use letters, digits, '-', '_' and '.'";
            return Err(self.refuse(&name.origin, what));
        }
        Ok(name.value.clone())
    }

    fn share(&self, clients: u32, owner: Owner) -> Result<Shard, Error> {
        match &self.shard {
            None => Ok(Shard::WHOLE),
            Some(Given { value, origin }) if value.0.of > clients => Err(self.refuse(
                origin,
                &format!(
                    "{clients} clients can't fill {} shards; use fewer shards or more clients",
                    value.0.of
                ),
            )),
            Some(Given { value, origin }) if value.0.of > 1 && owner != Owner::Remote => {
                let what = "each shard would start a server of its own; start one yourself and give all of them its --target";
                Err(self.refuse(origin, what))
            }
            Some(Given { value, origin }) if value.0.of > 1 && self.seed.is_none() => {
                let what = "the shards of a run know each other by its seed; give all of them one --seed N, another for each run";
                Err(self.refuse(origin, what))
            }
            Some(given) => Ok(given.value.0),
        }
    }

    fn connect(&self, owner: Owner, profile: &Profile, source: Source) -> Result<Connect, Error> {
        let draft = &self.connect;
        if source == Source::Others {
            self.idle(
                &draft.seq,
                "herd publishes nothing here, so no number of its own comes back",
            )?;
        }
        let ids = match (owner, profile.ids()) {
            (Owner::Embedded, _) => IdKind::Integer,
            (Owner::Command | Owner::Remote, Some(ids)) => ids,
            (Owner::Command | Owner::Remote, None) => IdKind::Opaque,
        };
        let ids = or(&draft.ids, |k| k, ids);
        if let Some(Given {
            value: true,
            origin,
        }) = &draft.contiguous
            && ids != IdKind::Integer
        {
            let what = "only integers can be without holes; say ids = \"integer\", or leave it out";
            return Err(self.refuse(origin, what));
        }
        Ok(Connect {
            profile: profile.spec().clone(),
            id: self.pointer(&draft.id)?,
            seq: self.pointer(&draft.seq)?,
            ids,
            contiguous: or(
                &draft.contiguous,
                |c| c,
                profile.contiguous() && ids == IdKind::Integer,
            ),
            headers: self.headers(&draft.headers)?,
            clients_file: draft.clients_file.as_ref().map(|given| given.value.clone()),
            subprotocols: self.subprotocols()?,
            credentials: self.credentials()?,
            tls: self.tls()?,
            proxy: self.proxy()?,
            source_ips: draft
                .source_ips
                .iter()
                .flat_map(|g| &g.value)
                .map(|Ip(ip)| *ip)
                .collect(),
            ramp: time(&draft.ramp, Duration::from_secs(2)),
            timeout: self.limit(&draft.timeout)?,
            max_message: self.count(&draft.max_message, 1..=1 << 30, 1 << 20)? as usize,
        })
    }

    /// Where clients get the full state.
    fn reload(&self, owner: Owner) -> Result<Option<String>, Error> {
        let Some(given) = &self.client.reload else {
            return Ok(None);
        };
        self.own_url(given, owner)?;
        Ok(Some(given.value.clone()))
    }

    fn demands(&self, source: Source) -> Result<Checks, Error> {
        let ChecksDraft {
            min_spread,
            max_peak,
            delivery,
            max_resets,
            settle,
            reconnect_limit,
            max_recovery,
            ..
        } = &self.checks;
        if let (Source::Herd, Some(given)) = (source, delivery)
            && given.value == DeliveryMode::Agreement
        {
            let what = "agreement is for events that others publish (--observe), and herd publishes here; use exactly-once";
            return Err(self.refuse(&given.origin, what));
        }
        let peak = max_peak.as_ref().map_or(
            Peak {
                share: 0.75,
                window: None,
            },
            |g| g.value,
        );
        Ok(Checks {
            min_spread: time(min_spread, Duration::from_secs(5)),
            max_peak: peak.share,
            peak_window: peak.window.unwrap_or(Duration::from_secs(1)),
            delivery: or(delivery, |d| d, DeliveryMode::ExactlyOnce),
            max_resets: self.count(max_resets, 0..=u32::MAX, 0)?,
            settle: self.positive(settle, Duration::from_secs(30))?,
            reconnect_limit: self.limit(reconnect_limit)?,
            max_recovery: self.limit(max_recovery)?,
            max_staleness: self.staleness(),
            dedupe: self.dedupe(),
        })
    }

    fn output(&self) -> Output {
        let draft = &self.output;
        let mut formats = Vec::new();
        let wanted = draft.formats.as_ref().map(|given| given.value.as_slice());
        for format in wanted.unwrap_or(&[Format::Json, Format::Csv, Format::Hdr]) {
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
        Output {
            dir: draft.dir.as_ref().map(|given| given.value.clone()),
            formats,
        }
    }

    /// Refuses a flag that would have no effect.
    fn idle<T>(&self, slot: &Slot<T>, why: &str) -> Result<(), Error> {
        match slot {
            Some(Given { origin, .. }) if matches!(origin, Origin::Flag(_)) => {
                Err(self.refuse(origin, &format!("{why}; leave it out")))
            }
            _ => Ok(()),
        }
    }

    fn staleness(&self) -> Option<(f64, Duration)> {
        let given = self.checks.max_staleness.as_ref()?;
        let Form(Staleness { percentile, limit }) = given.value;
        Some((percentile, limit))
    }

    fn dedupe(&self) -> Vec<Remembers> {
        let given = self.checks.dedupe.iter().flat_map(|given| &given.value);
        given.map(|Form(remembers)| *remembers).collect()
    }

    fn count(
        &self,
        slot: &Slot<Count>,
        range: std::ops::RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, Error> {
        let Some(Given { value, origin }) = slot else {
            return Ok(default);
        };
        let count = u32::try_from(value.0).ok().filter(|n| range.contains(n));
        count.ok_or_else(|| {
            let (least, most) = range.into_inner();
            self.refuse(
                origin,
                &format!("{} is out of range; use {least} to {most}", value.0),
            )
        })
    }

    fn positive(&self, slot: &Slot<Time>, default: Duration) -> Result<Duration, Error> {
        Ok(self.limit(slot)?.unwrap_or(default))
    }

    /// A limit, where there is one, leaves some time.
    fn limit(&self, slot: &Slot<Time>) -> Result<Option<Duration>, Error> {
        match slot {
            Some(given) if given.value.0.is_zero() => {
                Err(self.refuse(&given.origin, "no time at all is left; use more than 0s"))
            }
            slot => Ok(slot.as_ref().map(|given| given.value.0)),
        }
    }

    fn pointer(&self, slot: &Slot<String>) -> Result<Option<String>, Error> {
        let Some(Given { value, origin }) = slot else {
            return Ok(None);
        };
        let escapes = value.replace("~0", "").replace("~1", "");
        if !value.starts_with('/') || escapes.contains('~') {
            let what = "not a JSON Pointer (RFC 6901); write for example \"/id\" or \"/data/id\"";
            return Err(self.refuse(origin, what));
        }
        Ok(Some(value.clone()))
    }

    fn headers(&self, slot: &Slot<Vec<String>>) -> Result<Vec<String>, Error> {
        let Some(Given { value, origin }) = slot else {
            return Ok(Vec::new());
        };
        let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
        for line in value {
            let name = line.split_once(':').map_or("", |(name, _)| name);
            if name.is_empty() || !name.bytes().all(token) || line.contains(char::is_control) {
                // Not shown: what isn't a header may still be a secret.
                let what = "not a header; write \"Name: value\"";
                return Err(self.refuse(origin, what));
            }
        }
        Ok(value.clone())
    }

    /// A shell command that isn't empty.
    fn command<'a>(&self, given: &'a Given<String>) -> Result<&'a str, Error> {
        if given.value.trim().is_empty() {
            return Err(self.refuse(
                &given.origin,
                "the command is empty; write one that sh -c can run",
            ));
        }
        Ok(&given.value)
    }
}

fn time(slot: &Slot<Time>, default: Duration) -> Duration {
    or(slot, |Time(time)| time, default)
}

fn or<T: Copy, U>(slot: &Slot<T>, convert: impl Fn(T) -> U, default: U) -> U {
    slot.as_ref().map_or(default, |given| convert(given.value))
}

/// Up to three names that a mistyped one is near to, the nearest first: few letters apart, or begun so.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let begun = |name: &str| word.len() > 2 && name.starts_with(word);
    let mut near: Vec<_> = names
        .map(|name| (distance(word, name), name))
        .filter(|(distance, name)| *distance <= name.len() / 3 + 1 || begun(name))
        .collect();
    near.sort_unstable();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, name)| *distance <= best + 1 || begun(name));
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How many letters must be put in, taken out or changed (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
