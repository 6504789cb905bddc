//! What must hold before anything is started: outputs can be written, descriptors suffice, the header is known.
//!
//! Everything here fails before the run rather than after it, and leaves nothing behind but the run's directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::TryRng as _;
use rustix::process::{Resource, getrlimit, setrlimit};

use super::health;
use crate::error::Error;
use crate::history::{CutKind, Duplicates, Header, Mark, OutageTerms, Source, Terms, TriggerKind};
use crate::scenario::{Heartbeat, Outage, Scenario, Server, Trigger};

/// Descriptors that herd needs besides its clients' sockets: the history, the server's pipes, the publisher's pool.
const RESERVED_DESCRIPTORS: u64 = 256;

/// How many numbers are set aside for a run (rule 10 of judgement).
const SEQ_BLOCK: u64 = 1 << 20;

/// Looks whether the process that is to be watched is there.
pub(super) fn watched(scenario: &Scenario) -> Result<(), Error> {
    match scenario.target.watch_pid {
        Some(pid) if !health::is_there(pid) => Err(Error::Usage(format!(
            "there is no process {pid} to watch; give --watch-pid the server's"
        ))),
        _ => Ok(()),
    }
}

/// The wall clock at the run's beginning, microseconds since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the wall clock is read once, for the header"
)]
pub(super) fn wall_clock() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Creates the run's directory: the one that was asked for (which must be new or empty), or a new one under `reports/`.
pub(super) fn directory(scenario: &Scenario, started_unix_us: u64) -> Result<PathBuf, Error> {
    let create = |path: &Path| {
        std::fs::create_dir_all(path).map_err(|source| Error::File {
            action: "create",
            path: path.into(),
            source,
        })
    };
    if let Some(dir) = &scenario.output.dir {
        create(dir)?;
        let mut entries = dir.read_dir().map_err(|source| Error::File {
            action: "read",
            path: dir.clone(),
            source,
        })?;
        return match entries.next() {
            None => Ok(dir.clone()),
            Some(_) => Err(Error::Usage(format!(
                "the output directory {} isn't empty; name a new one or empty it",
                dir.display()
            ))),
        };
    }
    let started = UNIX_EPOCH + Duration::from_secs(started_unix_us / 1_000_000);
    let stamp = humantime::format_rfc3339_seconds(started)
        .to_string()
        .replace(':', "");
    let parent = PathBuf::from("reports");
    create(&parent)?;
    // Two runs may begin in the same second: create_dir alone says whose the name is.
    for n in 1..1000 {
        let suffix = if n == 1 {
            String::new()
        } else {
            format!("-{n}")
        };
        let dir = parent.join(format!("{stamp}-{}{suffix}", scenario.name));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                return Err(Error::File {
                    action: "create",
                    path: dir,
                    source,
                });
            }
        }
    }
    Err(Error::Broken(format!(
        "{} holds a thousand runs of this second; name another with -o",
        parent.display()
    )))
}

/// Raises the soft limit of open files as far as it goes and refuses a herd that doesn't fit.
pub(super) fn descriptors(scenario: &Scenario) -> Result<(), Error> {
    let clients = scenario.clients.div_ceil(scenario.shard.of);
    let each = sockets(scenario);
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(clients) * each + RESERVED_DESCRIPTORS;
    let enough = |current: Option<u64>| current.is_none_or(|current| current >= wanted);
    if !enough(limit.current) {
        limit.current = limit.maximum;
        // A refusal shows in what is read back.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    match getrlimit(Resource::Nofile).current {
        current if enough(current) => Ok(()),
        current => Err(Error::Broken(format!(
            "{clients} clients need {wanted} open files and this process may have {}: at most {} clients fit; \
             raise `ulimit -Hn`, or split the herd with --shard i/N over several processes",
            current.unwrap_or(u64::MAX),
            current
                .unwrap_or(u64::MAX)
                .saturating_sub(RESERVED_DESCRIPTORS)
                / each,
        ))),
    }
}

/// How many sockets a client takes: one, or, where its way leads through herd itself, three; and what a blackhole swallows
/// stays open beside what the client makes of it.
fn sockets(scenario: &Scenario) -> u64 {
    let cuts = || {
        let cut = |outage: &Outage| match outage.trigger {
            Trigger::Cut(cut) => Some(cut.kind()),
            _ => None,
        };
        scenario.each_outage().filter_map(cut)
    };
    match cuts().next() {
        None => 1,
        Some(_) => 3 + cuts().filter(|kind| *kind == CutKind::Blackhole).count() as u64,
    }
}

/// The history's header.
pub(crate) fn header(
    scenario: &Scenario,
    repeat: &str,
    started_unix_us: u64,
) -> Result<Header, Error> {
    let policy = serde_json::to_string(&scenario.policy.mix)
        .map_err(|e| Error::Broken(format!("the policy can't be written down: {e}")))?;
    let toml = scenario.masked().to_toml();
    let checks = &scenario.checks;
    let terms = Terms {
        policy_name: scenario.policy.mix.name(),
        policy,
        policy_source: scenario.policy.source,
        profile: scenario.connect.profile_name().into(),
        target: shown_target(scenario),
        outages: scenario
            .each_outage()
            .map(|o| outage(scenario, o))
            .collect(),
        targets: scenario.targets(),
        silence: scenario.heartbeat.map(Heartbeat::limit),
        source: scenario.publish.source(),
        ids: scenario.connect.ids,
        contiguous: scenario.connect.contiguous,
        duplicates: duplicates(scenario),
        idempotent: scenario.publish.idempotent,
        min_spread: checks.min_spread,
        max_peak: checks.max_peak,
        peak_window: checks.peak_window,
        delivery: checks.delivery,
        max_resets: checks.max_resets,
        settle: checks.settle,
        reconnect_limit: checks.reconnect_limit,
        max_recovery: checks.max_recovery,
        max_staleness: checks.max_staleness,
        dedupe: checks.dedupe.clone(),
    };
    let identity = xxhash_rust::xxh3::xxh3_64(scenario.common().to_toml().as_bytes());
    let run = format!("{:016x}-{identity:016x}", scenario.seed);
    let seq_base = match scenario.publish.source() {
        Source::Others | Source::Nobody => 0,
        Source::Herd if scenario.shard.of > 1 => shared_seq_base(&run),
        Source::Herd => seq_base()?,
    };
    Ok(Header {
        herd: env!("CARGO_PKG_VERSION").into(),
        run,
        started_unix_us,
        name: scenario.name.clone(),
        scenario: toml,
        repeat: repeat.into(),
        seed: scenario.seed,
        clients: scenario.clients,
        shard: scenario.shard,
        seq_base,
        seq_span: SEQ_BLOCK,
        terms,
    })
}

/// What an outage was asked to be.
fn outage(scenario: &Scenario, outage: &Outage) -> OutageTerms {
    let kind = outage.trigger.kind();
    OutageTerms {
        trigger: kind,
        cut: match outage.trigger {
            Trigger::Cut(cut) => Some(cut.kind()),
            _ => None,
        },
        share: outage.share,
        falls: match kind {
            TriggerKind::Rolling => u32::from(scenario.targets()),
            _ => outage.falls,
        },
        refresh: outage.refresh,
    }
}

/// What the profile allows. Of its own server herd knows that a mark says the truth.
fn duplicates(scenario: &Scenario) -> Duplicates {
    match (&scenario.target.server, scenario.connect.profile.duplicates) {
        (Server::Embedded { .. }, Duplicates::Forbidden) => Duplicates::Marked,
        (_, allowed) => allowed,
    }
}

/// A random multiple of 2^20 below 2^52. It comes from the system and not from the seed: a run repeated with the same
/// seed against the same server must still tell its own events from the earlier run's.
fn seq_base() -> Result<u64, Error> {
    let random = rand::rngs::SysRng
        .try_next_u64()
        .map_err(|e| Error::Broken(format!("the system gave no random number: {e}")))?;
    Ok(block(random))
}

/// The same for the shards of one run, which have nothing in common but scenario and seed: each must know the numbers that
/// the first one publishes. That is why a run in shards needs a seed of its own each time.
fn shared_seq_base(run: &str) -> u64 {
    block(xxhash_rust::xxh3::xxh3_64(run.as_bytes()))
}

fn block(random: u64) -> u64 {
    (1 + random % ((1 << 32) - 1)) * SEQ_BLOCK
}

/// What herd itself has used so far; none where the system doesn't tell.
pub(super) fn usage() -> Option<Mark> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold spaces and brackets; the numbers begin behind its last bracket, with field 3 of proc(5).
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    Some(Mark::Usage {
        cpu: Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64),
        rss_peak: kilobytes * 1024,
    })
}

/// The target as people may see it.
pub(super) fn shown_target(scenario: &Scenario) -> String {
    match scenario.target.server {
        Server::Embedded { .. } => "embedded".into(),
        Server::Command(_) | Server::Remote => scenario.masked().target.url,
    }
}
