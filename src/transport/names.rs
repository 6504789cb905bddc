//! A target's name to addresses, asked for again while the run goes on: a restarted server may have moved. Ten thousand
//! clients that dial at once share one look-up a second. It knows nothing of who dials.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use url::{Host, Url};

use crate::history::Elapsed;

/// How long an answer is good for.
const FRESH: Duration = Duration::from_secs(1);

/// The addresses of the names seen so far.
#[derive(Debug)]
pub struct Names {
    limit: Duration,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Debug, Clone)]
struct Known {
    addresses: Arc<[SocketAddr]>,
    ask_again: Elapsed,
}

impl Names {
    /// Knows no name yet; one look-up may take as long as `limit`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            known: Mutex::default(),
        }
    }

    /// Every address of a URL's host, in the order of the system. A literal address costs nothing. An answer of up to a
    /// second ago is used again, and so is an older one while somebody asks or where nobody answers.
    ///
    /// # Errors
    /// The system's, or a timeout, where a name was never resolved.
    pub async fn addresses(&self, url: &Url, now: Elapsed) -> io::Result<Arc<[SocketAddr]>> {
        let name = match host(url)? {
            Place::Address(address) => return Ok([address].into()),
            Place::Name(name) => name,
        };
        let old = match self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&name)
        {
            Some(known) if now < known.ask_again => return Ok(known.addresses.clone()),
            Some(known) => {
                known.ask_again = now + FRESH;
                Some(known.addresses.clone())
            }
            None => None,
        };
        match self.ask(&name).await {
            Ok(addresses) => {
                let known = Known {
                    addresses,
                    ask_again: now + FRESH,
                };
                let addresses = known.addresses.clone();
                self.known
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(name, known);
                Ok(addresses)
            }
            Err(e) => old.ok_or(e),
        }
    }

    /// The same, asked for now.
    ///
    /// # Errors
    /// The system's, or a timeout.
    pub async fn ask_now(&self, url: &Url) -> io::Result<Arc<[SocketAddr]>> {
        match host(url)? {
            Place::Address(address) => Ok([address].into()),
            Place::Name(name) => self.ask(&name).await,
        }
    }

    async fn ask(&self, name: &str) -> io::Result<Arc<[SocketAddr]>> {
        let asked = timeout(self.limit, tokio::net::lookup_host(name)).await;
        let found = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let mut found: Vec<_> = found?.collect();
        if let Some(port) = found.first().map(SocketAddr::port)
            && is_localhost(name)
        {
            // Systems that name one of them only are common, and servers that listen on the other one as well.
            for ip in [
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ] {
                if !found.iter().any(|known| known.is_ipv4() == ip.is_ipv4()) {
                    found.push((ip, port).into());
                }
            }
        }
        Ok(found.into())
    }
}

/// Whether `name:port` is loopback's name.
fn is_localhost(name: &str) -> bool {
    name.rsplit_once(':')
        .is_some_and(|(name, _)| name.eq_ignore_ascii_case("localhost"))
}

/// Where a URL's host is.
enum Place {
    Address(SocketAddr),
    /// `name:port`.
    Name(String),
}

fn host(url: &Url) -> io::Result<Place> {
    let port = url.port_or_known_default().unwrap_or(80);
    Ok(match url.host() {
        Some(Host::Ipv4(ip)) => Place::Address((ip, port).into()),
        Some(Host::Ipv6(ip)) => Place::Address((ip, port).into()),
        Some(Host::Domain(name)) => Place::Name(format!("{name}:{port}")),
        None => return Err(io::Error::other("the URL names no host")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(names: &Names, url: &str, ms: u64) -> io::Result<Arc<[SocketAddr]>> {
        names
            .addresses(&Url::parse(url).unwrap(), Elapsed::from_millis(ms))
            .await
    }

    #[tokio::test]
    async fn literal_addresses_are_not_looked_up() {
        let names = Names::new(Duration::from_secs(10));
        assert_eq!(
            *ask(&names, "ws://127.0.0.1/", 0).await.unwrap(),
            ["127.0.0.1:80".parse().unwrap()]
        );
        assert_eq!(
            *ask(&names, "ws://[::1]:9/", 0).await.unwrap(),
            ["[::1]:9".parse().unwrap()]
        );
        assert!(names.known.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn localhost_is_both_families_whatever_the_system_says() {
        let names = Names::new(Duration::from_secs(10));
        let mut found = ask(&names, "ws://LocalHost:9/", 0).await.unwrap().to_vec();
        found.sort();
        let both = ["127.0.0.1:9", "[::1]:9"].map(|a| a.parse().unwrap());
        assert_eq!(found, both);
    }

    #[tokio::test]
    async fn an_answer_is_used_for_a_second_and_kept_where_none_comes() {
        let names = Names::new(Duration::from_secs(10));
        let kept: Arc<[SocketAddr]> = ["10.0.0.1:7".parse().unwrap()].into();
        // A name that no resolver answers (RFC 6761).
        names.known.lock().unwrap().insert(
            "gone.invalid:7".into(),
            Known {
                addresses: kept.clone(),
                ask_again: Elapsed::from_millis(1_000),
            },
        );
        assert_eq!(ask(&names, "ws://gone.invalid:7", 999).await.unwrap(), kept);
        assert_eq!(
            ask(&names, "ws://gone.invalid:7", 1_000).await.unwrap(),
            kept
        );
        assert!(ask(&names, "ws://never.invalid:7", 0).await.is_err());
    }
}
