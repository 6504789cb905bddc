//! A scenario as TOML again, with nothing left to imply: it loads to the same scenario.
//!
//! What is stored and shown goes through [`Scenario::masked`] first. No default is known here.

mod policy;

use std::collections::BTreeMap;
use std::time::Duration;

use toml::Value;

use super::template::{hidden, masked, masked_header};
use super::{
    Checks, Connect, Credentials, Cut, Heartbeat, Means, Outage, Output, Proxy, Publish, Scenario,
    Server, Trigger, Via,
};
use crate::history::{Memory, Remembers, Shard};
use crate::profile::{ProfileName, Spec};
use crate::transport::tls::Trust;

impl Scenario {
    /// The scenario as TOML. Loads to the same scenario, but for `implied`: what is written down was said.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut page = Page::default();
        page.put("name", self.name.as_str());
        page.put("clients", i64::from(self.clients));
        match i64::try_from(self.seed) {
            Ok(seed) => page.put("seed", seed),
            Err(_) => page.put("seed", self.seed.to_string()),
        }
        page.put("shard", format!("{}/{}", self.shard.index, self.shard.of));
        target(&mut page, self);
        connect(&mut page, &self.connect);
        client(&mut page, self);
        policy::table(&mut page, &self.policy);
        match &self.outages[..] {
            [one] => {
                page.table("outage");
                outage(&mut page, one);
            }
            several => several.iter().for_each(|it| {
                page.table("[outage]");
                outage(&mut page, it);
            }),
        }
        publish(&mut page, &self.publish, &self.target.server);
        checks(&mut page, &self.checks);
        output(&mut page, &self.output);
        page.0
    }

    /// The same with what may be secret hidden: literal header values, userinfo and query values. Placeholders stay.
    /// Commands stay as they were written; a secret belongs into the environment, not into them.
    #[must_use]
    pub fn masked(&self) -> Self {
        let mut shown = self.clone();
        let names = self.connect.names();
        shown.target.url = masked(&self.target.url, &names);
        for url in &mut shown.target.more_urls {
            *url = masked(url, &names);
        }
        shown.reload = self.reload.as_deref().map(|url| masked(url, &[]));
        shown.target.ready = self.target.ready.as_deref().map(|url| masked(url, &[]));
        mask_profile(&mut shown.connect.profile, &names);
        for line in &mut shown.connect.headers {
            *line = masked_header(line, &names);
        }
        if let Some(Credentials::User(text) | Credentials::Bearer(text)) =
            &mut shown.connect.credentials
        {
            *text = hidden(text, &names);
        }
        if let Proxy::Url(url) = &mut shown.connect.proxy {
            *url = masked(url, &[]);
        }
        if let Via::Http { url, headers } = &mut shown.publish.via {
            *url = masked(url, &[]);
            for line in headers {
                *line = masked_header(line, &[]);
            }
        }
        shown
    }

    /// What all shards of one run have in common: not the share, not the machine's addresses, certificates and proxy, not
    /// where results go.
    #[must_use]
    pub fn common(&self) -> Self {
        let mut common = self.clone();
        common.shard = Shard::WHOLE;
        common.connect.source_ips = Vec::new();
        common.connect.tls = Default::default();
        common.connect.proxy = Proxy::Env;
        common.output.dir = None;
        common.output.formats = Vec::new();
        common.implied = Vec::new();
        common
    }
}

/// TOML, line by line.
#[derive(Default)]
struct Page(String);

impl Page {
    fn table(&mut self, name: &str) {
        self.0 += &format!("\n[{name}]\n");
    }

    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0 += &format!("{key} = {}\n", value.into());
    }

    fn time(&mut self, key: &str, time: Duration) {
        self.put(key, humantime::format_duration(time).to_string());
    }

    fn unlike<T: ToString + PartialEq>(&mut self, key: &str, value: Option<T>, known: Option<T>) {
        if let (Some(value), true) = (&value, value != known) {
            self.put(key, value.to_string());
        }
    }

    fn time_unlike(&mut self, key: &str, time: Option<Duration>, known: Option<Duration>) {
        if let (Some(time), true) = (time, time != known) {
            self.time(key, time);
        }
    }

    fn maybe(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn list(&mut self, key: &str, values: impl IntoIterator<Item = String>) {
        self.put(key, values.into_iter().collect::<Vec<_>>());
    }
}

fn target(page: &mut Page, scenario: &Scenario) {
    let target = &scenario.target;
    page.table("target");
    match &target.server {
        Server::Embedded {
            planted,
            keep,
            slow_start,
        } => {
            page.list("defects", planted.iter().map(ToString::to_string));
            page.maybe("keep", keep.map(|keep| keep.to_string()).as_deref());
            let slow = slow_start.map(|slow| slow.to_string());
            page.maybe("slow-start", slow.as_deref());
        }
        Server::Command(command) => {
            page.put("server-cmd", command.as_str());
            page.put("url", target.url.as_str());
        }
        Server::Remote if target.more_urls.is_empty() => page.put("url", target.url.as_str()),
        Server::Remote => page.list(
            "urls",
            std::iter::once(&target.url)
                .chain(&target.more_urls)
                .cloned(),
        ),
    }
    if scenario.targets() > 1 {
        page.put("pick", target.pick.name());
    }
    if target.servers > 1 {
        page.put("servers", i64::from(target.servers));
    }
    page.maybe("ready", target.ready.as_deref());
    page.time("ready-limit", target.ready_limit);
    if let Some(pid) = target.watch_pid {
        page.put("watch-pid", i64::from(pid));
    }
    let stop = scenario
        .outages
        .iter()
        .find_map(|outage| match &outage.trigger {
            Trigger::Child { signal, grace }
            | Trigger::Rolling {
                means: Means::Child { signal, grace },
                ..
            } => Some((signal, grace)),
            _ => None,
        });
    if let Some((signal, grace)) = stop {
        page.put("stop-signal", signal.name());
        page.time("grace", *grace);
    }
}

fn connect(page: &mut Page, connect: &Connect) {
    page.table("connect");
    let builtin = builtin(&connect.profile);
    page.maybe("profile", builtin.map(ProfileName::name));
    page.maybe("id", connect.id.as_deref());
    page.maybe("seq", connect.seq.as_deref());
    page.put("ids", connect.ids.name());
    page.put("contiguous", connect.contiguous);
    page.list("headers", connect.headers.iter().cloned());
    let file = connect.clients_file.as_ref();
    page.maybe("clients-file", file.map(|f| f.to_string_lossy()).as_deref());
    page.list("subprotocols", connect.subprotocols.iter().cloned());
    match &connect.credentials {
        Some(Credentials::User(login)) => page.put("user", login.as_str()),
        Some(Credentials::Bearer(token)) => page.put("bearer", token.as_str()),
        None => {}
    }
    match &connect.tls.trust {
        Trust::Platform => {}
        Trust::Anyone => page.put("insecure", true),
        Trust::File(file) => page.put("cacert", file.to_string_lossy().as_ref()),
    }
    if let Some(identity) = &connect.tls.identity {
        page.put("cert", identity.cert.to_string_lossy().as_ref());
        page.put("key", identity.key.to_string_lossy().as_ref());
    }
    page.put(
        "proxy",
        match &connect.proxy {
            Proxy::Env => "env",
            Proxy::Direct => "none",
            Proxy::Url(url) => url.as_str(),
        },
    );
    page.list(
        "source-ips",
        connect.source_ips.iter().map(ToString::to_string),
    );
    page.time("ramp", connect.ramp);
    page.time_unlike("timeout", connect.timeout, None);
    page.put("max-message", connect.max_message as i64);
    if builtin.is_none() {
        page.0 += "\n";
        page.0 += &profile_table(&connect.profile);
    }
}

/// Which built-in profile this is, unchanged.
fn builtin(spec: &Spec) -> Option<ProfileName> {
    let named = |name: &ProfileName| name.name() == spec.name;
    let found = ProfileName::ALL.into_iter().find(named)?;
    (Spec::builtin(found) == *spec).then_some(found)
}

/// A profile as the `[profile]` table of a scenario.
fn profile_table(spec: &Spec) -> String {
    // It came out of TOML, so that it goes into it again.
    toml::to_string(&BTreeMap::from([("profile", spec)])).unwrap_or_default()
}

/// Hides the literal values of a user's own profile that may be secret, as those of the user's own URL and headers are.
fn mask_profile(spec: &mut Spec, names: &[&str]) {
    if builtin(spec).is_some() {
        return;
    }
    let known: Vec<Spec> = ProfileName::ALL.into_iter().map(Spec::builtin).collect();
    for (key, value) in &mut spec.query {
        if known
            .iter()
            .all(|known| known.query.get(key) != Some(value))
        {
            *value = hidden(value, names);
        }
    }
    for (key, value) in &mut spec.headers {
        if known
            .iter()
            .all(|known| known.headers.get(key) != Some(value))
        {
            *value = hidden(value, names);
        }
    }
    if let Some(recipe) = &mut spec.publish {
        for value in recipe.headers.values_mut() {
            *value = hidden(value, names);
        }
    }
}

fn client(page: &mut Page, scenario: &Scenario) {
    if scenario.heartbeat.is_some() || scenario.reload.is_some() {
        page.table("client");
    }
    if let Some(Heartbeat { interval, timeout }) = scenario.heartbeat {
        let [interval, timeout] = [interval, timeout].map(humantime::format_duration);
        page.put("heartbeat", format!("{interval}/{timeout}"));
    }
    page.maybe("reload", scenario.reload.as_deref());
}

fn outage(page: &mut Page, outage: &Outage) {
    page.put("trigger", outage.trigger.kind().name());
    match &outage.trigger {
        Trigger::Child { .. } => {}
        Trigger::Command { command, limit } => restart(page, command, *limit),
        Trigger::Wait { limit } => page.time("wait-limit", *limit),
        Trigger::Cut(cut) => {
            page.put("cut", cut.kind().name());
            match cut {
                Cut::Latency { delay, then } => {
                    page.time("latency", *delay);
                    page.put("then", then.name());
                }
                Cut::Bandwidth { bytes, then } => {
                    page.put("bandwidth", i64::from(*bytes));
                    page.put("then", then.name());
                }
                Cut::Fin | Cut::Rst | Cut::Blackhole | Cut::Refuse => {}
            }
            page.put("share", outage.share);
        }
        Trigger::Rolling { means, pause } => {
            page.time("pause", *pause);
            if let Means::Command { command, limit } = means {
                restart(page, command, *limit);
            }
        }
    }
    page.put("outages", i64::from(outage.count));
    page.time("down", outage.down);
    if outage.falls > 1 {
        page.put("falls", i64::from(outage.falls));
        page.time("up", outage.up);
    }
    if let Some((share, memory)) = outage.refresh {
        page.put("refresh", share);
        page.put("persist", memory == Memory::Kept);
    }
    page.time("steady", outage.steady);
    page.time("quiet-period", outage.quiet_period);
}

fn restart(page: &mut Page, command: &str, limit: Duration) {
    page.put("command", command);
    page.time("command-limit", limit);
}

fn publish(page: &mut Page, publish: &Publish, server: &Server) {
    page.table("publish");
    match &publish.via {
        Via::Http { url, headers } => {
            if !matches!(server, Server::Embedded { .. }) {
                page.put("url", url.as_str());
            }
            page.list("headers", headers.iter().cloned());
        }
        Via::Command(command) => page.put("cmd", command.as_str()),
        Via::Observe => page.put("observe", true),
    }
    page.put("rate", format!("{}/s", publish.rate));
    page.put("body", publish.body.as_str());
    page.put("answer-id", publish.answer_id.as_str());
    page.maybe("answer-position", publish.answer_position.as_deref());
    page.put("idempotent", publish.idempotent);
}

fn checks(page: &mut Page, checks: &Checks) {
    page.table("checks");
    page.time("min-spread", checks.min_spread);
    let window = humantime::format_duration(checks.peak_window);
    page.put("max-peak", format!("{}/{window}", checks.max_peak));
    page.put("delivery", checks.delivery.name());
    page.put("max-resets", i64::from(checks.max_resets));
    page.time("settle", checks.settle);
    if let Some((percentile, limit)) = checks.max_staleness {
        let limit = humantime::format_duration(limit);
        page.put("max-staleness", format!("p{percentile} {limit}"));
    }
    if !checks.dedupe.is_empty() {
        page.list("dedupe", checks.dedupe.iter().map(remembers));
    }
    if let Some(limit) = checks.reconnect_limit {
        page.time("reconnect-limit", limit);
    }
    if let Some(limit) = checks.max_recovery {
        page.time("max-recovery", limit);
    }
}

fn remembers(remembers: &Remembers) -> String {
    match remembers {
        Remembers::Everything => "everything".into(),
        Remembers::Last(n) => format!("last {n}"),
        Remembers::For(time) => format!("for {}", humantime::format_duration(*time)),
    }
}

fn output(page: &mut Page, output: &Output) {
    page.table("output");
    if let Some(dir) = &output.dir {
        page.put("dir", dir.to_string_lossy().as_ref());
    }
    page.list(
        "formats",
        output.formats.iter().map(|format| format.name().to_owned()),
    );
}
