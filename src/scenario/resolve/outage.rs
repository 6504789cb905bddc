//! What is restarted or cut, how often, by whom, and under whose eyes.

use std::time::Duration;

use super::super::draft::{Draft, Given, OutageDraft, Slot};
use super::super::words::Form;
use super::super::{Cut, Heartbeat, Means, Outage, StopSignal, Then, Trigger};
use super::server::Owner;
use super::{Origin, or, time};
use crate::error::Error;
use crate::history::file::MAX_OUTAGES;
use crate::history::{ClientId, CutKind, Memory, TriggerKind, chosen};
use crate::profile::Profile;

/// How many falls a crash loop may have.
const MOST_FALLS: u32 = 100;

impl Draft {
    pub(super) fn outages(
        &self,
        owner: Owner,
        (clients, targets): (u32, u16),
        implied: &mut Vec<String>,
    ) -> Result<Vec<Outage>, Error> {
        let drafts = self.outage.all.iter();
        let outages = drafts.map(|draft| self.outage(draft, owner, (clients, targets), implied));
        let outages = outages.collect::<Result<Vec<_>, _>>()?;
        let all: u64 = outages.iter().map(|outage| u64::from(outage.count)).sum();
        if all > u64::from(MAX_OUTAGES) {
            return Err(Error::Usage(format!(
                "{all} outages are more than the {MAX_OUTAGES} that a run may have; ask for fewer"
            )));
        }
        implied.dedup();
        self.used(&outages, targets)?;
        Ok(outages)
    }

    /// Refuses flags that none of the outages has a use for: they lie over all of them.
    fn used(&self, outages: &[Outage], targets: u16) -> Result<(), Error> {
        let none = |uses: fn(&Outage) -> bool| !outages.iter().any(uses);
        let Some(draft) = self.outage.all.first() else {
            return Ok(());
        };
        if none(|outage| outage.trigger.stops()) {
            let why = "herd doesn't stop this server, it isn't herd's child";
            self.idle(&self.target.stop_signal, why)?;
            self.idle(&self.target.grace, why)?;
            if none(|outage| outage.trigger.kind() == TriggerKind::Cut) {
                self.idle(&draft.down, why)?;
            }
        }
        if none(|outage| outage.trigger.kind() == TriggerKind::Wait) {
            let why = "herd doesn't wait for somebody else's restart here";
            self.idle(&draft.wait_limit, why)?;
            self.idle(&draft.quiet_period, why)?;
        }
        if none(|outage| outage.trigger.kind() == TriggerKind::Rolling) {
            let why = "nothing is restarted one after another here (--rolling does)";
            self.idle(&draft.pause, why)?;
        }
        if none(|outage| outage.falls > 1) {
            self.idle(&draft.up, "nothing falls more than once here (--falls)")?;
        }
        if targets < 2 {
            self.idle(&self.target.pick, "there is only one target to go to")?;
        }
        Ok(())
    }

    fn outage(
        &self,
        draft: &OutageDraft,
        owner: Owner,
        (clients, targets): (u32, u16),
        implied: &mut Vec<String>,
    ) -> Result<Outage, Error> {
        let trigger = self.trigger(draft, owner, targets, implied)?;
        let kind = trigger.kind();
        let falls = self.count(&draft.falls, 1..=MOST_FALLS, 1)?;
        if let (true, Some(given)) = (kind != TriggerKind::Child, &draft.falls) {
            let what = "only a server that herd restarts can be made to fall again; use trigger = \"child\"";
            return Err(self.refuse(&given.origin, what));
        }
        let down = match trigger {
            Trigger::Cut(Cut::Fin | Cut::Rst) => Duration::ZERO,
            Trigger::Cut(Cut::Latency { .. } | Cut::Bandwidth { .. }) => Duration::from_secs(5),
            _ => Duration::from_secs(1),
        };
        Ok(Outage {
            count: self.count(&draft.outages, 1..=MAX_OUTAGES, 1)?,
            down: time(&draft.down, down),
            falls,
            up: self.positive(&draft.up, Duration::from_secs(3))?,
            share: self.part_of(draft, kind, clients)?,
            refresh: self.refresh(draft, clients)?,
            steady: time(&draft.steady, Duration::from_secs(3)),
            quiet_period: self.positive(&draft.quiet_period, Duration::from_secs(10))?,
            trigger,
        })
    }

    /// The share of the clients that a cut hits.
    fn part_of(&self, draft: &OutageDraft, kind: TriggerKind, clients: u32) -> Result<f64, Error> {
        let Some(Given { value, origin }) = &draft.share else {
            return Ok(1.0);
        };
        if kind != TriggerKind::Cut {
            let what =
                "a restart is for everybody; only a cut (outage.cut) takes a share of the clients";
            return Err(self.refuse(origin, what));
        }
        let share = self.somebody(value.0, origin, clients)?;
        if share < 1.0 && (1..=clients).all(|k| chosen(ClientId(k), clients, share)) {
            let what =
                format!("that is all of {clients} clients; use a smaller share, or leave it out");
            return Err(self.refuse(origin, &what));
        }
        Ok(share)
    }

    fn somebody(&self, share: f64, origin: &Origin, clients: u32) -> Result<f64, Error> {
        if (1..=clients).any(|k| chosen(ClientId(k), clients, share)) {
            return Ok(share);
        }
        let what = format!("that is none of {clients} clients; use a larger share");
        Err(self.refuse(origin, &what))
    }

    fn refresh(&self, draft: &OutageDraft, clients: u32) -> Result<Option<(f64, Memory)>, Error> {
        let memory = or(
            &draft.persist,
            |persist| if persist { Memory::Kept } else { Memory::Lost },
            Memory::Kept,
        );
        match (&draft.refresh, &draft.persist) {
            (Some(Given { value, origin }), _) => {
                let share = self.somebody(value.0, origin, clients)?;
                Ok(Some((share, memory)))
            }
            (None, Some(persist)) => Err(self.refuse(
                &persist.origin,
                "nobody restarts here; say which share of the clients does with refresh",
            )),
            (None, None) => Ok(None),
        }
    }

    fn trigger(
        &self,
        draft: &OutageDraft,
        owner: Owner,
        targets: u16,
        implied: &mut Vec<String>,
    ) -> Result<Trigger, Error> {
        let kind = self.trigger_kind(draft, owner, implied)?;
        let limit = || self.positive(&draft.command_limit, Duration::from_secs(120));
        let command = || match &draft.command {
            Some(command) => self.command(command).map(str::to_owned),
            None => Ok(String::new()),
        };
        Ok(match kind {
            TriggerKind::Child => {
                let (signal, grace) = self.stop(owner)?;
                Trigger::Child { signal, grace }
            }
            TriggerKind::Command => Trigger::Command {
                command: command()?,
                limit: limit()?,
            },
            TriggerKind::Wait => Trigger::Wait {
                limit: self.positive(&draft.wait_limit, Duration::from_secs(600))?,
            },
            TriggerKind::Cut => Trigger::Cut(self.cut(draft)?),
            TriggerKind::Rolling => {
                if targets < 2 {
                    let what = "one target can't be restarted one after another; name several (--target again, target.urls), or set target.servers";
                    return Err(match &draft.trigger {
                        Some(given) => self.refuse(&given.origin, what),
                        None => Error::Usage(what.into()),
                    });
                }
                if let (Some(given), Some(_)) = (&self.target.ready, &draft.command) {
                    let what = "one address can't tell which of several targets is away; leave it out: herd asks each by a TCP connect";
                    return Err(self.refuse(&given.origin, what));
                }
                Trigger::Rolling {
                    means: match &draft.command {
                        Some(_) => Means::Command {
                            command: command()?,
                            limit: limit()?,
                        },
                        None => {
                            let (signal, grace) = self.stop(owner)?;
                            Means::Child { signal, grace }
                        }
                    },
                    pause: time(&draft.pause, Duration::from_secs(5)),
                }
            }
        })
    }

    /// How a server of herd's is stopped.
    fn stop(&self, owner: Owner) -> Result<(StopSignal, Duration), Error> {
        let usual = match owner {
            Owner::Embedded => StopSignal::Kill,
            Owner::Command | Owner::Remote => StopSignal::Term,
        };
        let signal = or(&self.target.stop_signal, |s| s, usual);
        if signal == StopSignal::Kill {
            self.idle(
                &self.target.grace,
                "the server is stopped by KILL, which leaves none",
            )?;
        }
        Ok((signal, time(&self.target.grace, Duration::from_secs(10))))
    }

    fn cut(&self, draft: &OutageDraft) -> Result<Cut, Error> {
        let kind = or(&draft.cut, |kind| kind, CutKind::Rst);
        let only = |slot: &Option<Origin>, kind: CutKind| match slot {
            Some(origin) => Err(self.refuse(
                origin,
                &format!("it is for cut = \"{}\"; leave one out", kind.name()),
            )),
            None => Ok(()),
        };
        let origin = |slot: &Slot<_>| slot.as_ref().map(|given: &Given<_>| given.origin.clone());
        if kind != CutKind::Latency {
            only(&origin(&draft.latency), CutKind::Latency)?;
        }
        if kind != CutKind::Bandwidth {
            let origin = draft.bandwidth.as_ref().map(|given| given.origin.clone());
            only(&origin, CutKind::Bandwidth)?;
        }
        let then = or(&draft.then, |then| then, Then::default());
        if let (false, Some(given)) = (
            matches!(kind, CutKind::Latency | CutKind::Bandwidth),
            &draft.then,
        ) {
            let what = "it says how a slow time ends; this cut ends the connections itself";
            return Err(self.refuse(&given.origin, what));
        }
        Ok(match kind {
            CutKind::Fin => Cut::Fin,
            CutKind::Rst => Cut::Rst,
            CutKind::Blackhole => Cut::Blackhole,
            CutKind::Refuse => Cut::Refuse,
            CutKind::Latency => Cut::Latency {
                delay: self.positive(&draft.latency, Duration::from_secs(1))?,
                then,
            },
            CutKind::Bandwidth => Cut::Bandwidth {
                bytes: self.count(&draft.bandwidth, 1..=u32::MAX, 100)?,
                then,
            },
        })
    }

    fn trigger_kind(
        &self,
        draft: &OutageDraft,
        owner: Owner,
        implied: &mut Vec<String>,
    ) -> Result<TriggerKind, Error> {
        let (named, command) = (&draft.trigger, &draft.command);
        let kind = match (named, command) {
            (Some(kind), Some(command))
                if !matches!(kind.value, TriggerKind::Command | TriggerKind::Rolling) =>
            {
                let why = "one restart has one cause; leave one out";
                return Err(self.contradiction(&command.origin, &kind.origin, why));
            }
            (Some(kind), _) => {
                if kind.value == TriggerKind::Cut && draft.cut.is_none() {
                    implied.push("no outage.cut: connections are reset (rst)".into());
                }
                kind.value
            }
            (None, Some(_)) => TriggerKind::Command,
            (None, None) if draft.cut.is_some() => TriggerKind::Cut,
            (None, None) if owner == Owner::Remote => {
                implied.push(
                    "no --restart-cmd: herd waits for somebody to restart the server (--wait)"
                        .into(),
                );
                TriggerKind::Wait
            }
            (None, None) => TriggerKind::Child,
        };
        if let (Some(cut), true) = (&draft.cut, kind != TriggerKind::Cut) {
            let other = named.as_ref().map(|given| &given.origin);
            let other = other.or(command.as_ref().map(|given| &given.origin));
            let why = "one outage has one cause; leave one out, or write another [[outage]]";
            return Err(self.contradiction(&cut.origin, other.unwrap_or(&cut.origin), why));
        }
        let origin = match (named, command) {
            (Some(Given { origin, .. }), _) | (None, Some(Given { origin, .. })) => origin,
            (None, None) => return Ok(kind),
        };
        match (kind, owner) {
            (TriggerKind::Child, Owner::Remote) => Err(self.refuse(
                origin,
                "herd can only restart a server that it started; use --server-cmd, or \"command\" or \"wait\"",
            )),
            (TriggerKind::Rolling, Owner::Remote) if command.is_none() => Err(self.refuse(
                origin,
                "herd can only restart servers that it started; give a command in which {target} is the target's number (--restart-cmd)",
            )),
            (TriggerKind::Command, _) if command.is_none() => {
                Err(self.refuse(origin, "no command is given; set outage.command (--restart-cmd)"))
            }
            (TriggerKind::Rolling, Owner::Embedded | Owner::Command) if command.is_some() => {
                Err(self.not_ours(origin))
            }
            (TriggerKind::Command | TriggerKind::Wait, Owner::Embedded | Owner::Command) => {
                Err(self.not_ours(origin))
            }
            _ => Ok(kind),
        }
    }

    fn not_ours(&self, origin: &Origin) -> Error {
        match &self.target.server_cmd {
            Some(command) => {
                let why = "herd restarts the server that it starts; leave one out";
                self.contradiction(origin, &command.origin, why)
            }
            None => self.refuse(
                origin,
                "herd restarts its own server itself; this is for somebody else's, so name it with --target",
            ),
        }
    }

    /// How clients find out that a connection is dead; a blackhole needs some way.
    pub(super) fn heartbeat(
        &self,
        outages: &[Outage],
        profile: &Profile,
        implied: &mut Vec<String>,
    ) -> Option<Heartbeat> {
        if let Some(given) = &self.client.heartbeat {
            let Form(heartbeat) = given.value;
            return Some(heartbeat);
        }
        let silent = |outage: &Outage| outage.trigger == Trigger::Cut(Cut::Blackhole);
        if profile.listens_for_silence() || !outages.iter().any(silent) {
            return None;
        }
        let usual = Heartbeat::USUAL;
        implied.push(format!(
            "no client.heartbeat: clients look for signs of life every {} and wait {} for one, or nobody would notice a blackhole",
            humantime::format_duration(usual.interval),
            humantime::format_duration(usual.timeout)
        ));
        Some(usual)
    }

    /// How many servers herd runs, and the further targets of those that it doesn't.
    pub(super) fn several(&self, owner: Owner) -> Result<(u16, Vec<String>), Error> {
        let servers = self.count(&self.target.servers, 1..=100, 1)? as u16;
        if let (Owner::Remote, Some(given)) = (owner, &self.target.servers) {
            let what = "herd runs no server here; name each target (--target again, target.urls)";
            return Err(self.refuse(&given.origin, what));
        }
        let Some(Given { value, origin }) = &self.target.urls else {
            return Ok((servers, Vec::new()));
        };
        if owner != Owner::Remote {
            let what = "herd runs this server, and as many as target.servers says; name one address, in which {port} is each one's own";
            return Err(self.refuse(origin, what));
        }
        if value.len() > 100 {
            return Err(self.refuse(origin, "over 100 targets; name fewer"));
        }
        let scheme = |url: &str| {
            let (scheme, _) = url.split_once("://").unwrap_or_default();
            scheme.to_ascii_lowercase()
        };
        if value.iter().any(|url| scheme(url).is_empty()) {
            return Err(self.refuse(
                origin,
                "not an address: write each like ws://host:port/path",
            ));
        }
        if let Some(other) = value.iter().find(|url| scheme(url) != scheme(&value[0])) {
            let what = format!(
                "the targets' schemes differ ({} and {}); all clients speak alike, so use one",
                scheme(&value[0]),
                scheme(other)
            );
            return Err(self.refuse(origin, &what));
        }
        Ok((servers, value[1..].to_vec()))
    }

    /// The draft in which a list of targets is one target and further ones.
    pub(super) fn with_first_target(&self) -> Result<Self, Error> {
        let mut draft = self.clone();
        if let Some(Given { value, origin }) = &self.target.urls {
            if let Some(url) = &self.target.url {
                let why = "both name targets; write all of them into one list";
                return Err(self.contradiction(origin, &url.origin, why));
            }
            let Some(first) = value.first() else {
                return Err(self.refuse(origin, "no target; write at least one address"));
            };
            draft.target.url = Some(Given {
                value: first.clone(),
                origin: origin.clone(),
            });
        }
        Ok(draft)
    }
}
