//! Scenario, seed and shard resolved: when, from where and with what words each client dials. Computed on demand, never
//! stored per client, and the same in every shard. It knows no socket, no clock and no outcome.

mod auth;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use url::{Host, Url};

use self::auth::{AUTHORIZATION, Auth};
use crate::error::Error;
use crate::history::{ClientId, Shard};
use crate::scenario::Scenario;
use crate::template::{Place, Template, Values};

/// Beyond about 14,000 connections from one address to one target a connect costs milliseconds of kernel time.
pub const CLIENTS_PER_ADDRESS: u32 = 10_000;

/// Headers that the handshake writes itself.
const OWN_HEADERS: [&str; 7] = [
    "connection",
    "upgrade",
    "content-length",
    "transfer-encoding",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
];

/// What every client will do.
#[derive(Debug, Clone)]
pub struct Plan {
    clients: u32,
    shard: Shard,
    seed: u64,
    ramp: Duration,
    url: Template,
    headers: Vec<(String, Template)>,
    auth: Option<Auth>,
    sources: Sources,
    port: Option<u16>,
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
    /// Resolves a scenario; `port` is the supervised server's, none where somebody else runs it.
    ///
    /// # Errors
    /// [`Error::Usage`] for a template whose variable or file is missing, a URL that is none or not `ws://`, and a header
    /// that is malformed or the handshake's own.
    pub fn new(scenario: &Scenario, port: Option<u16>) -> Result<Self, Error> {
        let headers = scenario.connect.headers.iter().map(|line| header(line));
        let mut headers = headers.collect::<Result<Vec<_>, _>>()?;
        let protocols = scenario.connect.subprotocols.join(", ");
        if !protocols.is_empty() {
            headers.push(header(&format!("Sec-WebSocket-Protocol: {protocols}"))?);
        }
        let mut plan = Self {
            clients: scenario.clients,
            shard: scenario.shard,
            seed: scenario.seed,
            ramp: scenario.connect.ramp,
            url: Template::parse(&scenario.target.url)?,
            headers,
            auth: Auth::new(&scenario.connect)?,
            sources: Sources::Any,
            port,
        };
        let url = plan.call(ClientId(1), "").map_err(Error::Usage)?.url;
        plan.sources = match &scenario.connect.source_ips[..] {
            [] if scenario.clients > CLIENTS_PER_ADDRESS && is_loopback(&url) => Sources::Loopback,
            [] => Sources::Any,
            given => Sources::Given(given.to_vec()),
        };
        Ok(plan)
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

    /// The words of a client's dial that resumes after `after` (empty = from nothing).
    ///
    /// # Errors
    /// What is wrong with the expanded URL or header, and what to do.
    pub fn call(&self, client: ClientId, after: &str) -> Result<Call, String> {
        let values = Values {
            cursor: Some(after),
            client: client.0,
            port: self.port,
            named: &[],
        };
        let headers = self.headers.iter().map(|(name, template)| {
            let value = template.expand(&values, Place::Header);
            if value.chars().any(|c| c.is_control() && c != '\t') {
                return Err(format!(
                    "the header {name} holds a control character; remove it from the variable or file"
                ));
            }
            Ok((name.clone(), value))
        });
        let mut headers = headers.collect::<Result<Vec<_>, _>>()?;
        let mut url = parse_url(&self.url.expand(&values, Place::Url))?;
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
}

fn parse_url(text: &str) -> Result<Url, String> {
    // The expanded URL may hold a secret: messages name what is wrong, not the text.
    let mut url = Url::parse(text).map_err(|e| {
        format!(
            "the target is no URL ({e}); write it like ws://127.0.0.1:8080/v1/live?after={{after}}"
        )
    })?;
    match url.scheme() {
        "ws" | "wss" | "http" | "https" => {}
        other => {
            return Err(format!(
                "the target's scheme {other:?} is none of ws://, wss://, http:// and https://; use one of them"
            ));
        }
    }
    url.set_fragment(None);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        _ => false,
    }
}

fn header(line: &str) -> Result<(String, Template), Error> {
    let token = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    match line.split_once(':') {
        Some((name, _)) if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
            Err(Error::Usage(format!(
                "the header {name} is written by the WebSocket handshake itself; remove it"
            )))
        }
        Some((name, value)) if token(name) => Ok((name.into(), Template::parse(value.trim())?)),
        _ => Err(Error::Usage(
            "a header is not of the form `Name: value`; write it so".into(),
        )),
    }
}

#[cfg(test)]
mod tests;
