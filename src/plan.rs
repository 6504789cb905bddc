//! Scenario, seed and shard resolved: when, from where and with what words each client dials. Computed on demand, never
//! stored per client, and the same in every shard. It knows no socket, no clock and no outcome.

mod address;
mod auth;
mod columns;
mod reload;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use self::address::{header, is_loopback, parse_url};
use self::auth::{AUTHORIZATION, Auth};
use self::columns::Columns;
use crate::error::Error;
use crate::history::{ClientId, Shard};
use crate::profile::{Pointers, Profile};
use crate::scenario::{Pick, Scenario, columns, resumes, templates};
use crate::template::{Place, Template, Values};

/// Beyond about 14,000 connections from one address to one target a connect costs milliseconds of kernel time.
pub const CLIENTS_PER_ADDRESS: u32 = 10_000;

/// What offers subprotocols.
const SUBPROTOCOL: &str = "Sec-WebSocket-Protocol";

/// What every client will do.
#[derive(Debug, Clone)]
pub struct Plan {
    clients: u32,
    shard: Shard,
    seed: u64,
    ramp: Duration,
    profile: Arc<Profile>,
    /// At least one.
    targets: Vec<Destination>,
    pick: Pick,
    headers: Vec<(String, Template)>,
    auth: Option<Auth>,
    columns: Columns,
    sources: Sources,
}

/// One target.
#[derive(Debug, Clone)]
struct Destination {
    url: Template,
    /// The profile's query pairs that the user's URL speaks for itself.
    spoken_for: Vec<String>,
    /// The supervised server's; none where somebody else runs it.
    port: Option<u16>,
    /// Where the full state is.
    reload: Option<Url>,
}

/// Where clients dial from.
#[derive(Debug, Clone)]
enum Sources {
    /// As the system likes.
    Any,
    /// The user's, in turn over this shard's clients: another shard runs elsewhere and has others.
    Given(Vec<IpAddr>),
    /// 127.0.0.1, 127.0.0.2, ..., the next after every [`CLIENTS_PER_ADDRESS`] clients of the whole run: its shards share
    /// the loopback.
    Loopback,
}

/// The words of one dial. They may hold secrets, so they can't be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Where to.
    pub url: Url,
    /// Header names and values. The name is a token, the value holds no control character.
    pub headers: Vec<(String, String)>,
}

impl Plan {
    /// Resolves a scenario; `ports` are the supervised servers', none where somebody else runs them.
    ///
    /// # Errors
    /// [`Error::Usage`] for a template whose variable, file or column is missing, a mistake in the profile, a URL that is
    /// none or not of the profile's transport, and a header that is malformed or the handshake's own.
    pub fn new(scenario: &Scenario, ports: &[u16]) -> Result<Self, Error> {
        let connect = &scenario.connect;
        let profile = compiled(scenario)?;
        let names: Vec<&str> = profile.names().collect();
        let headers = connect.headers.iter().map(|line| header(line, &names));
        let mut headers = headers.collect::<Result<Vec<_>, _>>()?;
        let protocols = connect.subprotocols.join(", ");
        if !protocols.is_empty() {
            headers.push(header(&format!("{SUBPROTOCOL}: {protocols}"), &names)?);
        }
        let mut plan = Self {
            clients: scenario.clients,
            shard: scenario.shard,
            seed: scenario.seed,
            ramp: connect.ramp,
            targets: destinations(scenario, ports, &profile)?,
            pick: scenario.target.pick,
            headers,
            auth: Auth::new(connect)?,
            columns: own_columns(scenario, &profile)?,
            sources: Sources::Any,
            profile: Arc::new(profile),
        };
        let targets = 0..plan.targets.len() as u16;
        let calls = targets.map(|target| plan.call(ClientId(1), target, None, &[]));
        let calls = calls.collect::<Result<Vec<_>, _>>().map_err(Error::Usage)?;
        let near = calls.iter().all(|call| is_loopback(&call.url));
        plan.sources = match &connect.source_ips[..] {
            [] if scenario.clients > CLIENTS_PER_ADDRESS && near => Sources::Loopback,
            [] => Sources::Any,
            given => Sources::Given(given.to_vec()),
        };
        Ok(plan)
    }

    /// What is said, compiled.
    #[must_use]
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// A text of a server's without any client's own values.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.columns.hide(text)
    }

    /// How many targets there are, at least 1.
    #[must_use]
    pub fn targets(&self) -> u16 {
        self.targets.len() as u16
    }

    /// Which target a client dials; `dial` counts all its dials, from 0. By turns it begins with the one that its number
    /// falls on, so that a herd spreads evenly, and goes on with each dial, so that no client waits for a server that is
    /// down while others are up.
    #[must_use]
    pub fn target_of(&self, client: ClientId, dial: u32) -> u16 {
        let all = self.targets.len() as u64;
        let place = u64::from(client.0 - 1);
        let target = match self.pick {
            Pick::RoundRobin => (place + u64::from(dial)) % all,
            Pick::Sticky => place % all,
            Pick::Random => drawn(self.seed, client, dial) % all,
        };
        target as u16
    }

    /// What fills a client's templates: its number, its row, that target's port. A dial adds its cursor and what the client
    /// captured.
    #[must_use]
    pub fn values(&self, client: ClientId, target: u16) -> Values<'_> {
        Values {
            client: client.0,
            port: self.targets[usize::from(target)].port,
            row: self.columns.of(client),
            ..Values::default()
        }
    }

    /// The run's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// This shard's clients, in order.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + use<> {
        (self.shard.index..=self.clients)
            .step_by(self.shard.of as usize)
            .map(ClientId)
    }

    /// When a client first dials, after the ramp's beginning: spread evenly by its number over all shards.
    #[must_use]
    pub fn first_due(&self, client: ClientId) -> Duration {
        let part = u128::from(client.0 - 1) * self.ramp.as_micros() / u128::from(self.clients);
        Duration::from_micros(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// The local address that a client dials from; none = as the system likes.
    #[must_use]
    pub fn source(&self, client: ClientId) -> Option<IpAddr> {
        let place = client.0 - 1;
        match &self.sources {
            Sources::Any => None,
            Sources::Given(given) => Some(given[(place / self.shard.of) as usize % given.len()]),
            Sources::Loopback => Some(IpAddr::V4(Ipv4Addr::from_bits(
                Ipv4Addr::LOCALHOST.to_bits() + place / CLIENTS_PER_ADDRESS,
            ))),
        }
    }

    /// The words of a client's dial of a target (from 0, as [`Plan::target_of`] has it) that resumes from a cursor (none =
    /// from nothing). `named` is what the client captured, in the order of the profile's names.
    ///
    /// # Errors
    /// What is wrong with the expanded URL or header, and what to do.
    pub fn call(
        &self,
        client: ClientId,
        target: u16,
        cursor: Option<&str>,
        named: &[Option<Box<str>>],
    ) -> Result<Call, String> {
        let values = Values {
            cursor,
            named,
            ..self.values(client, target)
        };
        let mut url = self.address(&self.targets[usize::from(target)], &values)?;
        let mut headers = self.lines(&values)?;
        let in_url = auth::taken_from(&mut url);
        let given = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
        let credential = self.auth.as_ref().map(|auth| auth.value(&values));
        match (in_url, credential) {
            (None, None) => {}
            (Some(value), None) | (None, Some(value)) if !given => {
                headers.push((AUTHORIZATION.into(), value));
            }
            _ => {
                return Err(
                    "the target is told twice who a client is; leave the URL's user, the user, the token or the header Authorization out"
                        .into(),
                );
            }
        }
        Ok(Call { url, headers })
    }

    /// The user's URL, with the profile's path where it has none, and the profile's query pairs.
    fn address(&self, target: &Destination, values: &Values<'_>) -> Result<Url, String> {
        let text = target.url.expand(values, Place::Url);
        let mut url = parse_url(&text, self.profile.transport())?;
        if let (true, Some(path)) = (url.path() == "/", self.profile.path()) {
            url.set_path(path);
        }
        for (name, value) in self.profile.query(values) {
            if !target.spoken_for.iter().any(|spoken| spoken == name) {
                let before = url.query().filter(|query| !query.is_empty());
                let query = before.map_or(String::new(), |query| format!("{query}&"));
                url.set_query(Some(&format!("{query}{name}={value}")));
            }
        }
        Ok(url)
    }

    /// The user's headers, then those of the profile that the user didn't give.
    fn lines(&self, values: &Values<'_>) -> Result<Vec<(String, String)>, String> {
        let given = self.headers.iter();
        let mut lines: Vec<_> = given
            .map(|(name, template)| (name.clone(), template.expand(values, Place::Header)))
            .collect();
        let users = lines.len();
        let mut add = |name: &str, value: String| {
            let mut given = lines[..users].iter();
            if !given.any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                lines.push((name.to_owned(), value));
            }
        };
        for (name, value) in self.profile.headers(values) {
            add(name, value);
        }
        if !self.profile.subprotocols().is_empty() {
            add(SUBPROTOCOL, self.profile.subprotocols().join(", "));
        }
        let broken =
            |(_, value): &&(String, String)| value.chars().any(|c| c.is_control() && c != '\t');
        match lines.iter().find(broken) {
            Some((name, _)) => Err(format!(
                "the header {name} holds a control character; remove it from the variable or file"
            )),
            None => Ok(lines),
        }
    }
}

/// The targets in order: each server that herd runs has a port of its own, else each has its own URL.
fn destinations(
    scenario: &Scenario,
    ports: &[u16],
    profile: &Profile,
) -> Result<Vec<Destination>, Error> {
    let names: Vec<&str> = profile.names().collect();
    let destination = |url: &str, port| {
        Ok(Destination {
            url: Template::compile(url, &names)?,
            spoken_for: spoken_for(url, profile),
            port,
            reload: reload::address(scenario.reload.as_deref(), port)?,
        })
    };
    let target = &scenario.target;
    match ports {
        [] => std::iter::once(&target.url)
            .chain(&target.more_urls)
            .map(|url| destination(url, None))
            .collect(),
        ports => {
            let own = ports
                .iter()
                .map(|port| destination(&target.url, Some(*port)));
            own.collect()
        }
    }
}

/// Any number, the same in every process that has this seed.
fn drawn(seed: u64, client: ClientId, dial: u32) -> u64 {
    let mut key = *b"target..................";
    key[8..16].copy_from_slice(&seed.to_le_bytes());
    key[16..20].copy_from_slice(&client.0.to_le_bytes());
    key[20..].copy_from_slice(&dial.to_le_bytes());
    xxh3_64(&key)
}

fn compiled(scenario: &Scenario) -> Result<Profile, Error> {
    let pointers = Pointers {
        id: scenario.connect.id.clone(),
        seq: scenario.connect.seq.clone(),
    };
    Profile::compile(&scenario.connect.profile, &pointers)
        .map_err(|refusal| Error::Usage(format!("the profile's {refusal}")))
}

/// The profile's query pairs that a URL speaks for itself: those whose names it has, and, where it says what to resume
/// from, all that say so too.
fn spoken_for(url: &str, profile: &Profile) -> Vec<String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let named = |name: &str| {
        let mut keys = query.split('&').map(|pair| pair.split('=').next());
        keys.any(|key| key == Some(name))
    };
    let pairs = profile.spec().query.iter();
    pairs
        .filter(|(name, template)| named(name) || (resumes(url) && resumes(template)))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The columns of the clients' file that something asks for.
fn own_columns(scenario: &Scenario, profile: &Profile) -> Result<Columns, Error> {
    let Some(file) = &scenario.connect.clients_file else {
        return Ok(Columns::default());
    };
    let texts = templates(profile.spec()).chain([&*scenario.target.url]);
    let texts = texts.chain(scenario.target.more_urls.iter().map(String::as_str));
    let texts = texts.chain(scenario.connect.texts());
    let mut wanted: Vec<&str> = texts.flat_map(columns).collect();
    wanted.sort_unstable();
    wanted.dedup();
    Columns::read(file, &wanted, scenario.clients)
}

#[cfg(test)]
mod tests;
