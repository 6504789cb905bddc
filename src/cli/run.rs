//! The options of `herd run`, how they lie over a scenario file, and the command that repeats a run.
//!
//! Which options contradict each other is the scenario's business: it knows the file too.

use std::path::PathBuf;

use clap::{ArgMatches, Args};

use super::access::AccessArgs;
use super::again::line;
use super::{Run, TalkArgs, formats, named};
use crate::error::Error;
use crate::history::{CutKind, DeliveryMode, TriggerKind};
use crate::profile::ProfileName;
use crate::report::Format;
use crate::scenario::{
    BackoffDraft, Count, Draft, Form, Heartbeat, Ip, Peak, Pick, Rate, Scenario, ShardOf, Share,
    Staleness, StopSignal, Time, lay, word,
};
use crate::server::slow::SlowStart;

#[derive(Args)]
pub(super) struct RunArgs {
    /// Scenario file; every option overrides its key (herd init writes one)
    scenario: Option<PathBuf>,
    /// How many clients [default: 1000]
    #[arg(short, long, value_name = "COUNT", value_parser = word::<Count>)]
    clients: Option<Count>,
    /// Replays every delay of the run that printed it [default: drawn]
    #[arg(long, value_name = "N", value_parser = word::<Count>)]
    seed: Option<Count>,
    /// This process's share of the clients, such as 1/4; all shards of a run need the same --seed, each run another
    #[arg(long, value_name = "i/N", value_parser = word::<ShardOf>)]
    shard: Option<ShardOf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    outage: OutageArgs,
    #[command(flatten)]
    publish: PublishArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    checks: ChecksArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    talk: TalkArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Server under test")]
pub(super) struct TargetArgs {
    /// Where clients connect: ws:// or wss://HOST:PORT/PATH, http:// or https:// for an event stream; {after} is the last id,
    /// {client} the client's number, {env:NAME} and {file:PATH} keep secrets out; again for each further one [default: herd's own server]
    #[arg(long, value_name = "URL")]
    target: Vec<String>,
    /// How many servers herd runs, each with a {port} of its own [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    servers: Option<Count>,
    /// How clients choose among several targets [default: round-robin]
    #[arg(long, value_name = "HOW", value_parser = named(&Pick::ALL, |p| p.name()))]
    pick: Option<Pick>,
    /// Command that starts the server, by sh -c; {port} is a free port, PORT in its environment too
    #[arg(long, value_name = "CMD")]
    server_cmd: Option<String>,
    /// Ready once this http:// or https:// URL answers 2xx [default: a TCP connect to the target]
    #[arg(long, value_name = "URL")]
    ready: Option<String>,
    /// A process of this machine whose CPU, memory, threads and descriptors are recorded, with all that it started, where
    /// herd doesn't run the server
    #[arg(long, value_name = "PID", value_parser = word::<Count>)]
    watch_pid: Option<Count>,
    /// How the server is stopped [default: KILL for herd's own server, else TERM]
    #[arg(long, value_name = "SIGNAL", value_parser = named(&StopSignal::ALL, |s| s.name()))]
    stop_signal: Option<StopSignal>,
    /// How long it may take after TERM [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    grace: Option<Time>,
    /// Plant a bug in herd's own server (may be repeated), @2 in the second of several only; see herd list defects
    #[arg(long, value_name = "NAME[=ARG][@N]")]
    defect: Vec<String>,
    /// How many events herd's own server keeps for replay
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    keep: Option<Count>,
    /// What handshakes of herd's own server meet at first after a restart: "hang 2s", or "503 2s" with a Retry-After
    #[arg(long, value_name = "HOW TIME", value_parser = word::<Form<SlowStart>>)]
    slow_start: Option<Form<SlowStart>>,
}

#[derive(Args)]
#[command(next_help_heading = "Restarts")]
struct OutageArgs {
    /// How many restarts [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    outages: Option<Count>,
    /// How long the server stays down [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    down: Option<Time>,
    /// From all clients primed until the restart [default: 3s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    steady: Option<Time>,
    /// Command that restarts a server that herd didn't start, by sh -c
    #[arg(long, value_name = "CMD")]
    restart_cmd: Option<String>,
    /// Wait until somebody restarts it; --target alone implies this
    #[arg(long)]
    wait: bool,
    /// How long to wait for that [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    wait_limit: Option<Time>,
    /// A pause longer than this ends somebody's rollout [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    quiet_period: Option<Time>,
    /// How often the server falls in one restart: above 1 it is a crash loop [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    falls: Option<Count>,
    /// How long it is up between two falls [default: 3s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    up: Option<Time>,
    /// Restart several targets one after another
    #[arg(long, conflicts_with = "wait")]
    rolling: bool,
    /// From one's readiness to the next one's stop [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    pause: Option<Time>,
    /// Take the network away instead of restarting a server
    #[arg(long, value_name = "KIND", value_parser = named(&CutKind::ALL, |k| k.name()))]
    cut: Option<CutKind>,
    /// The share of the clients that a cut hits [default: 100%]
    #[arg(long, value_name = "SHARE", value_parser = word::<Share>)]
    share: Option<Share>,
    /// The share of the clients that restart during the outage, as closed tabs do, and keep their last id
    #[arg(long, value_name = "SHARE", value_parser = word::<Share>)]
    refresh: Option<Share>,
}

#[derive(Args)]
#[command(next_help_heading = "Events")]
pub(super) struct PublishArgs {
    /// Publish by one POST an event to this http:// or https:// URL
    #[arg(long, value_name = "URL")]
    publish_url: Option<String>,
    /// What to publish: {payload} is a JSON object with herd's number as seq, {seq} the number alone [default: {payload}]
    #[arg(long, value_name = "TEMPLATE")]
    publish_body: Option<String>,
    /// Publish by one long-lived command, by sh -c, that gets a line an event on stdin
    #[arg(long, value_name = "CMD")]
    publish_cmd: Option<String>,
    /// Others publish; compare what the clients get
    #[arg(long)]
    observe: bool,
    /// Events a second [default: 20/s]
    #[arg(long, value_name = "RATE", value_parser = word::<Rate>)]
    rate: Option<Rate>,
}

#[derive(Args)]
#[command(next_help_heading = "Clients")]
pub(super) struct ConnectArgs {
    /// When clients come back; see herd list presets [default: full-jitter]
    #[arg(long, value_name = "PRESET")]
    backoff: Option<String>,
    /// What is said over the connection; see herd list profiles [default: by the target's scheme]
    #[arg(long, value_name = "NAME", value_parser = named(&ProfileName::ALL, |p| p.name()))]
    profile: Option<ProfileName>,
    /// JSON Pointer of an event's id [default: as the profile says, such as /id]
    #[arg(long, value_name = "POINTER")]
    id: Option<String>,
    /// JSON Pointer of herd's number [default: as the profile says, such as /data/seq]
    #[arg(long, value_name = "POINTER")]
    seq: Option<String>,
    /// Header of the handshake, "Name: value" (may be repeated)
    #[arg(short = 'H', long, value_name = "LINE")]
    header: Vec<String>,
    /// CSV file whose row k holds client k's own values, such as tokens: {col:NAME} in URL, headers and frames
    #[arg(long, value_name = "FILE")]
    clients_file: Option<PathBuf>,
    /// Local address to dial from (may be repeated)
    #[arg(long, value_name = "IP", value_parser = word::<Ip>)]
    source_ip: Vec<Ip>,
    /// The first connects are spread evenly over this [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    ramp: Option<Time>,
    /// From ping to ping / how long an answer may take, such as 25s/20s [default: as the profile says]
    #[arg(long, value_name = "TIME", value_parser = word::<Form<Heartbeat>>)]
    heartbeat: Option<Form<Heartbeat>>,
}

#[derive(Args)]
#[command(next_help_heading = "What must hold")]
struct ChecksArgs {
    /// Last minus first reconnect of each wave, at least [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    min_spread: Option<Time>,
    /// Attempts in any such window, as a share of the wave's clients, at most [default: 75%/1s]
    #[arg(long, value_name = "SHARE/WINDOW", value_parser = word::<Peak>)]
    max_peak: Option<Peak>,
    /// Delivery that must hold [default: exactly-once]
    #[arg(long, value_name = "MODE", value_parser = named(&DeliveryMode::ALL, |d| d.name()))]
    delivery: Option<DeliveryMode>,
    /// How many clients may be told to reload [default: 0]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    max_resets: Option<Count>,
    /// How long an event may take [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    settle: Option<Time>,
    /// How long a client may stay away [default: derived from the backoff]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    reconnect_limit: Option<Time>,
    /// How long a client's data may be stale, at p99 or "pN LIMIT" [default: reported only]
    #[arg(long, value_name = "LIMIT", value_parser = word::<Form<Staleness>>)]
    max_staleness: Option<Form<Staleness>>,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Directory of the results; one that isn't empty is refused [default: reports/TIME-SCENARIO]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Files to write besides the history [default: json,csv,hdr]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = formats())]
    format: Option<Vec<Format>>,
}

impl RunArgs {
    pub(super) fn run(self, matches: &ArgMatches, fresh_seed: u64) -> Result<Run, Error> {
        let mut draft = match &self.scenario {
            Some(file) => Draft::read(file)?,
            None => Draft::default(),
        };
        let talk = self.talk.talk();
        self.lay_over(&mut draft);
        let scenario = draft.resolve(fresh_seed)?;
        let typed = matches.subcommand_matches("run").unwrap_or(matches);
        Ok(Run {
            repeat: repeat(typed, &scenario),
            scenario,
            talk,
        })
    }

    fn lay_over(self, draft: &mut Draft) {
        lay(&mut draft.clients, "--clients", self.clients);
        lay(&mut draft.seed, "--seed", self.seed);
        lay(&mut draft.shard, "--shard", self.shard);
        self.target.lay_over(draft);
        self.outage.lay_over(draft);
        self.publish.lay_over(draft);
        self.connect.lay_over(draft);
        self.access.lay_over(draft);
        self.checks.lay_over(draft);
        lay(&mut draft.output.dir, "--output", self.output.output);
        lay(&mut draft.output.formats, "--format", self.output.format);
    }
}

impl TargetArgs {
    pub(super) fn lay_over(self, draft: &mut Draft) {
        let target = &mut draft.target;
        match &self.target[..] {
            [] => {}
            [one] => {
                target.urls = None;
                lay(&mut target.url, "--target", Some(one.clone()));
            }
            several => {
                target.url = None;
                lay(&mut target.urls, "--target", Some(several.to_vec()));
            }
        }
        lay(&mut target.servers, "--servers", self.servers);
        lay(&mut target.pick, "--pick", self.pick);
        lay(&mut target.server_cmd, "--server-cmd", self.server_cmd);
        lay(&mut target.ready, "--ready", self.ready);
        lay(&mut target.watch_pid, "--watch-pid", self.watch_pid);
        lay(&mut target.stop_signal, "--stop-signal", self.stop_signal);
        lay(&mut target.grace, "--grace", self.grace);
        lay(&mut target.defects, "--defect", some(self.defect));
        lay(&mut target.keep, "--keep", self.keep);
        lay(&mut target.slow_start, "--slow-start", self.slow_start);
    }
}

impl OutageArgs {
    fn lay_over(self, draft: &mut Draft) {
        let outage = &mut draft.outage;
        outage.lay("--outages", self.outages, |o| &mut o.outages);
        outage.lay("--down", self.down, |o| &mut o.down);
        outage.lay("--falls", self.falls, |o| &mut o.falls);
        outage.lay("--up", self.up, |o| &mut o.up);
        outage.lay("--steady", self.steady, |o| &mut o.steady);
        outage.lay("--restart-cmd", self.restart_cmd, |o| &mut o.command);
        let wait = self.wait.then_some(TriggerKind::Wait);
        outage.lay("--wait", wait, |o| &mut o.trigger);
        outage.lay("--wait-limit", self.wait_limit, |o| &mut o.wait_limit);
        outage.lay("--quiet-period", self.quiet_period, |o| &mut o.quiet_period);
        let rolling = self.rolling.then_some(TriggerKind::Rolling);
        outage.lay("--rolling", rolling, |o| &mut o.trigger);
        outage.lay("--pause", self.pause, |o| &mut o.pause);
        outage.lay("--cut", self.cut, |o| &mut o.cut);
        outage.lay("--share", self.share, |o| &mut o.share);
        outage.lay("--refresh", self.refresh, |o| &mut o.refresh);
    }
}

impl PublishArgs {
    pub(super) fn lay_over(self, draft: &mut Draft) {
        let publish = &mut draft.publish;
        lay(&mut publish.url, "--publish-url", self.publish_url);
        lay(&mut publish.body, "--publish-body", self.publish_body);
        lay(&mut publish.cmd, "--publish-cmd", self.publish_cmd);
        lay(
            &mut publish.observe,
            "--observe",
            self.observe.then_some(true),
        );
        lay(&mut publish.rate, "--rate", self.rate);
    }
}

impl ConnectArgs {
    pub(super) fn lay_over(self, draft: &mut Draft) {
        if let Some(preset) = self.backoff {
            // A preset is a whole policy: numbers that the file gives belong to the file's.
            draft.client.backoff = BackoffDraft::default();
            lay(&mut draft.client.backoff.preset, "--backoff", Some(preset));
        }
        if self.profile.is_some() {
            // Likewise: what the file changes is changed in the file's profile.
            draft.profile = None;
        }
        lay(&mut draft.client.heartbeat, "--heartbeat", self.heartbeat);
        let connect = &mut draft.connect;
        lay(&mut connect.profile, "--profile", self.profile);
        lay(&mut connect.id, "--id", self.id);
        lay(&mut connect.seq, "--seq", self.seq);
        lay(&mut connect.headers, "--header", some(self.header));
        lay(
            &mut connect.clients_file,
            "--clients-file",
            self.clients_file,
        );
        lay(&mut connect.source_ips, "--source-ip", some(self.source_ip));
        lay(&mut connect.ramp, "--ramp", self.ramp);
    }
}

impl ChecksArgs {
    fn lay_over(self, draft: &mut Draft) {
        let checks = &mut draft.checks;
        lay(&mut checks.min_spread, "--min-spread", self.min_spread);
        lay(&mut checks.max_peak, "--max-peak", self.max_peak);
        lay(&mut checks.delivery, "--delivery", self.delivery);
        lay(&mut checks.max_resets, "--max-resets", self.max_resets);
        lay(&mut checks.settle, "--settle", self.settle);
        lay(
            &mut checks.reconnect_limit,
            "--reconnect-limit",
            self.reconnect_limit,
        );
        lay(
            &mut checks.max_staleness,
            "--max-staleness",
            self.max_staleness,
        );
    }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// The command that repeats a run: what was typed, with the seed, without the output directory (it isn't empty any more),
/// secrets masked.
fn repeat(typed: &ArgMatches, scenario: &Scenario) -> String {
    let line = line("run", "run", typed, scenario, &["seed", "output"]);
    format!("{line} --seed {}", scenario.seed)
}
