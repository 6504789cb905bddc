//! How any connection of this process gets to where its URL points: names, addresses, proxies, TLS. Loaded once, before
//! the run, and shared by clients, publisher and probe.
//!
//! It knows the way and nothing of what is said at its end, nor when to go it.

use std::net::IpAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::names::Names;
use super::proxy::Proxies;
use super::tls::{Offer, Tls};
use super::wire::Wire;
use super::{safe, tcp};
use crate::error::Error;
use crate::history::{AttemptOutcome, Elapsed};
use crate::secrets::Secrets;

/// How much of an error is told (bytes).
const TEXT: usize = 200;

/// The ways out of this process.
#[derive(Debug)]
pub struct Network {
    names: Names,
    proxies: Proxies,
    tls: Option<Tls>,
    secrets: Secrets,
    timeout: Duration,
}

impl Network {
    /// TCP alone; a connect may take as long as `timeout`, and so may a look-up.
    #[must_use]
    pub fn plain(timeout: Duration) -> Self {
        Self {
            names: Names::new(timeout),
            proxies: Proxies::none(),
            tls: None,
            secrets: Secrets::none(),
            timeout,
        }
    }

    /// With TLS, for `https` and `wss`.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Through proxies.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// With secrets that nobody may write down.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// What nobody may write down of what a server says.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Whether a URL's host has an address; a host behind a proxy is the proxy's to find.
    ///
    /// # Errors
    /// [`Error::Broken`] with the name that has none.
    pub async fn find(&self, url: &Url) -> Result<(), Error> {
        let (url, what) = match self.proxies.of(url) {
            Some(proxy) => (proxy.url(), "the proxy "),
            None => (url, ""),
        };
        match self.names.ask_now(url).await {
            Ok(addresses) if !addresses.is_empty() => Ok(()),
            Ok(_) => Err("it has no address".to_owned()),
            Err(e) => Err(e.to_string()),
        }
        .map_err(|why| {
            let name = url.host_str().unwrap_or_default();
            Error::Broken(format!(
                "{what}{name} can't be resolved: {why}; check the name"
            ))
        })
    }

    /// A TCP connection to a URL's host, directly or through its proxy. Names are looked up once a second as `now` tells
    /// it, or afresh where there is no `now`. A connect may take as long as `limit`, or as long as usual.
    ///
    /// # Errors
    /// As of [`tcp::connect`]; [`AttemptOutcome::Local`] where the name has no address; [`AttemptOutcome::Handshake`]
    /// without a status where the proxy refuses.
    pub async fn reach(
        &self,
        url: &Url,
        source: Option<IpAddr>,
        now: Option<Elapsed>,
        limit: Option<Duration>,
    ) -> Result<TcpStream, AttemptOutcome> {
        let limit = limit.unwrap_or(self.timeout);
        let proxy = self.proxies.of(url);
        let peer = proxy.map_or(url, |proxy| proxy.url());
        let addresses = match now {
            Some(now) => self.names.addresses(peer, now).await,
            None => self.names.ask_now(peer).await,
        };
        let addresses = addresses.map_err(|e| {
            let who = match proxy {
                Some(proxy) => format!("the proxy's name, {},", proxy.shown()),
                None => format!("the target's name, {},", url.host_str().unwrap_or_default()),
            };
            local(&format!("{who} can't be resolved: {e}"))
        })?;
        let stream = tcp::connect(&addresses, source, limit).await;
        let Some(proxy) = proxy else {
            return stream;
        };
        // Whether the target would have refused nobody knows, so it didn't.
        let stream = stream.map_err(|outcome| match outcome {
            AttemptOutcome::Refused => proxy.failed("refuses connections"),
            AttemptOutcome::Timeout => proxy.failed("doesn't answer a TCP connect"),
            other => other,
        })?;
        timeout(limit, proxy.tunnel(stream, url))
            .await
            .unwrap_or_else(|_| Err(proxy.failed("doesn't answer CONNECT")))
    }

    /// Puts TLS over a connection if its URL wants it. It has no limit of its own.
    ///
    /// # Errors
    /// [`AttemptOutcome::Handshake`] without a status, and why.
    pub async fn secure(
        &self,
        stream: TcpStream,
        url: &Url,
        offer: Offer,
    ) -> Result<Wire, AttemptOutcome> {
        if !is_secure(url) {
            return Ok(Wire::Plain(stream));
        }
        match &self.tls {
            Some(tls) => tls.shake_hands(stream, url, offer).await,
            None => Err(AttemptOutcome::Handshake {
                status: None,
                why: "it led to a TLS address, and none was named before the run; name it yourself"
                    .into(),
            }),
        }
    }
}

/// Whether a URL's scheme wants TLS.
#[must_use]
pub fn is_secure(url: &Url) -> bool {
    matches!(url.scheme(), "wss" | "https")
}

fn local(why: &str) -> AttemptOutcome {
    AttemptOutcome::Local(safe(why.as_bytes(), TEXT))
}
