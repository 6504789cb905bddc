//! HTTP proxies: which one a URL goes through, and the tunnel through it (CONNECT, RFC 9110 section 9.3.6).
//!
//! Everything goes through a tunnel, plain URLs too: a WebSocket and an event stream need one. The environment is not
//! read here; whoever has it hands over what it says.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::{is_reset, safe};
use crate::error::Error;
use crate::history::AttemptOutcome;
use crate::secrets::basic;

/// The longest answer to a CONNECT (bytes).
const LONGEST_HEAD: usize = 16 * 1024;
/// How much of an answer is told (bytes).
const TEXT: usize = 100;

/// Which proxy a URL goes through.
#[derive(Clone, Default)]
pub struct Proxies {
    /// For `https` and `wss`.
    secure: Option<Proxy>,
    /// For `http` and `ws`.
    plain: Option<Proxy>,
    /// What goes through none.
    except: Vec<Exception>,
}

/// A proxy.
#[derive(Clone)]
pub struct Proxy {
    url: Url,
    /// The value of `Proxy-Authorization`.
    login: Option<String>,
}

/// What goes through no proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    Everything,
    /// The name and every name below it, on one port or on any.
    Name(String, Option<u16>),
    /// The addresses whose first bits are these.
    Net(IpAddr, u8),
}

impl Proxies {
    /// Every URL goes its own way.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// What the environment says, in curl's words: `https_proxy`, `http_proxy` (lower case alone, because a web server
    /// hands a request's `Proxy` header to its scripts as `HTTP_PROXY`), `all_proxy` and `no_proxy`; of the others the
    /// upper case counts where the lower one is not set.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the variable that is no proxy.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let env = |name: &'static str| {
            let value = env(name).filter(|value| !value.trim().is_empty());
            value.map(|value| (name, value))
        };
        let all = env("all_proxy").or_else(|| env("ALL_PROXY"));
        let secure = env("https_proxy").or_else(|| env("HTTPS_PROXY"));
        let parse = |found: Option<(&'static str, String)>| {
            let found = found.or_else(|| all.clone());
            found
                .map(|(name, value)| Proxy::parse(name, &value))
                .transpose()
        };
        Ok(Self {
            secure: parse(secure)?,
            plain: parse(env("http_proxy"))?,
            except: exceptions(env("no_proxy").or_else(|| env("NO_PROXY"))),
        })
    }

    /// Every URL goes through this one, but for what `no_proxy` of the environment excepts.
    ///
    /// # Errors
    /// [`Error::Usage`] where the URL is no proxy's.
    pub fn through(url: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let proxy = Proxy::parse("--proxy", url)?;
        Ok(Self {
            secure: Some(proxy.clone()),
            plain: Some(proxy),
            except: exceptions(
                env("no_proxy")
                    .or_else(|| env("NO_PROXY"))
                    .map(|value| ("no_proxy", value)),
            ),
        })
    }

    /// The proxy of a URL; none for loopback, whatever anybody says.
    #[must_use]
    pub fn of(&self, url: &Url) -> Option<&Proxy> {
        let proxy = match url.scheme() {
            "https" | "wss" => self.secure.as_ref(),
            _ => self.plain.as_ref(),
        }?;
        let direct = is_loopback(url) || self.except.iter().any(|e| e.holds(url));
        (!direct).then_some(proxy)
    }

    /// `user:password` of every proxy that has them.
    pub fn logins(&self) -> impl Iterator<Item = String> {
        [&self.secure, &self.plain]
            .into_iter()
            .flatten()
            .filter_map(|proxy| login(&proxy.url))
    }
}

impl Proxy {
    fn parse(from: &str, text: &str) -> Result<Self, Error> {
        // The URL isn't quoted: it may hold a password.
        let wrong = |why: &str| {
            Error::Usage(format!(
                "{from}: {why}; write http://HOST:PORT, or leave it out"
            ))
        };
        let text = text.trim();
        let text = match text.contains("://") {
            true => text.to_owned(),
            false => format!("http://{text}"),
        };
        let url = Url::parse(&text).map_err(|e| wrong(&format!("not a proxy's address ({e})")))?;
        if url.scheme() != "http" {
            return Err(wrong(&format!(
                "herd speaks to HTTP proxies only, and this is {}://",
                url.scheme()
            )));
        }
        if url.host().is_none() {
            return Err(wrong("the address has no host"));
        }
        Ok(Self {
            login: login(&url).map(|login| basic(&login)),
            url,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Its name for people: no user, no password.
    #[must_use]
    pub fn shown(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    /// Asks it for a tunnel to a URL's host. It has no limit of its own.
    ///
    /// # Errors
    /// [`AttemptOutcome::Handshake`] without a status, since no status of a proxy is the target's, and why.
    pub async fn tunnel(
        &self,
        mut stream: TcpStream,
        url: &Url,
    ) -> Result<TcpStream, AttemptOutcome> {
        let failed = |why: String| self.failed(&why);
        let broken = |e: std::io::Error| {
            failed(match is_reset(&e) {
                true => "reset the connection instead of an answer".into(),
                false => format!("failed: {e}"),
            })
        };
        stream
            .write_all(self.request(url).as_bytes())
            .await
            .map_err(broken)?;
        let mut head = Vec::with_capacity(256);
        loop {
            // What stands behind the head is the target's, so it is looked at before it is taken.
            let mut bytes = [0; 512];
            let seen = stream.peek(&mut bytes).await.map_err(broken)?;
            if seen == 0 {
                return Err(failed("closed without an answer".into()));
            }
            let before = head.len();
            head.extend(&bytes[..seen]);
            let from = before.saturating_sub(3);
            let end = head[from..].windows(4).position(|w| w == b"\r\n\r\n");
            head.truncate(end.map_or(head.len(), |at| from + at + 4));
            let taken = head.len() - before;
            stream
                .read_exact(&mut bytes[..taken])
                .await
                .map_err(broken)?;
            if let Some(why) = refused(&head) {
                return Err(failed(why));
            }
            if end.is_some() {
                return Ok(stream);
            }
            if head.len() >= LONGEST_HEAD {
                return Err(failed("answered with endless headers".into()));
            }
        }
    }

    /// An attempt that came no further than this proxy.
    pub(super) fn failed(&self, why: &str) -> AttemptOutcome {
        let advice = match why.contains("; ") {
            true => "",
            false => "; check the proxy, and whether the target is up",
        };
        AttemptOutcome::Handshake {
            status: None,
            why: safe(
                format!("the proxy {} {why}{advice}", self.shown()).as_bytes(),
                3 * TEXT,
            ),
        }
    }

    fn request(&self, url: &Url) -> String {
        let port = url.port_or_known_default().unwrap_or(80);
        let host = url.host_str().unwrap_or_default();
        let login = self.login.as_ref();
        let login = login.map_or(String::new(), |login| {
            format!("Proxy-Authorization: {login}\r\n")
        });
        format!(
            "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: herd/{}\r\n{login}\r\n",
            env!("CARGO_PKG_VERSION")
        )
    }
}

impl std::fmt::Debug for Proxies {
    /// Without logins.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxies")
            .field("secure", &self.secure)
            .field("plain", &self.plain)
            .field("except", &self.except)
            .finish()
    }
}

impl std::fmt::Debug for Proxy {
    /// Without the login.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

/// Why a head is no tunnel's, once its first line is whole.
fn refused(head: &[u8]) -> Option<String> {
    let end = head.iter().position(|b| *b == b'\n')?;
    let line = head[..end].trim_ascii();
    let status = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..));
    match status {
        Some(status) if status.starts_with(b"2") => None,
        Some(status) if status.starts_with(b"407") => Some(
            "answered 407 to CONNECT; put a user and password into its URL: http://USER:PASSWORD@HOST:PORT".into(),
        ),
        Some(status) => Some(format!("answered {} to CONNECT", safe(status, TEXT))),
        None => Some(format!("is no HTTP proxy: {}", safe(line, TEXT))),
    }
}

/// `user:password` of a URL, decoded.
#[must_use]
pub fn login(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    Some(format!(
        "{}:{}",
        decode(url.username()),
        decode(url.password().unwrap_or_default())
    ))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

fn exceptions(found: Option<(&str, String)>) -> Vec<Exception> {
    let Some((_, list)) = found else {
        return Vec::new();
    };
    let words = list.split([',', ' ']).map(str::trim);
    words
        .filter(|w| !w.is_empty())
        .map(Exception::parse)
        .collect()
}

impl Exception {
    fn parse(word: &str) -> Self {
        if word == "*" {
            return Self::Everything;
        }
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Self::Net(ip, if ip.is_ipv4() { 32 } else { 128 });
        }
        let net = word.split_once('/').and_then(|(ip, bits)| {
            let (ip, bits) = (ip.parse::<IpAddr>().ok()?, bits.parse::<u8>().ok()?);
            (bits <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, bits))
        });
        if let Some((ip, bits)) = net {
            return Self::Net(ip, bits);
        }
        let (name, port) = match word.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
            _ => (word, None),
        };
        let name = name.trim_start_matches('*').trim_matches('.');
        Self::Name(name.to_ascii_lowercase(), port)
    }

    fn holds(&self, url: &Url) -> bool {
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::from(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::from(ip).to_canonical()),
            _ => None,
        };
        match self {
            Self::Everything => true,
            Self::Net(net, bits) => ip.is_some_and(|ip| is_in(ip, *net, *bits)),
            Self::Name(name, port) => {
                let host = url.host_str().unwrap_or_default().trim_end_matches('.');
                let below = host.strip_suffix(name.as_str());
                !name.is_empty()
                    && below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                    && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
        }
    }
}

fn is_in(ip: IpAddr, net: IpAddr, bits: u8) -> bool {
    let differing = match (ip, net.to_canonical()) {
        (IpAddr::V4(ip), IpAddr::V4(net)) => (ip.to_bits() ^ net.to_bits()).leading_zeros(),
        (IpAddr::V6(ip), IpAddr::V6(net)) => (ip.to_bits() ^ net.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(bits)
}

#[cfg(test)]
mod tests;
