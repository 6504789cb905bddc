//! URLs and header lines as they must be before a client dials with them.
//!
//! Knows syntax alone: no template, no client, no secret (an expanded URL may hold one: refusals never quote it).

use url::{Host, Url};

use crate::error::Error;
use crate::profile::Transport;
use crate::template::Template;

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

pub(super) fn parse_url(text: &str, transport: Transport) -> Result<Url, String> {
    let example = match transport {
        Transport::Ws => "ws://127.0.0.1:8080/live",
        Transport::Sse => "http://127.0.0.1:8080/events",
    };
    // The expanded URL may hold a secret: messages name what is wrong, not the text.
    let mut url = Url::parse(text)
        .map_err(|e| format!("the target is no URL ({e}); write it like {example}"))?;
    let fits = match transport {
        Transport::Ws => ["ws", "wss"],
        Transport::Sse => ["http", "https"],
    };
    if !fits.contains(&url.scheme()) {
        return Err(format!(
            "the target's scheme {:?} is not the profile's; write it like {example}",
            url.scheme()
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        _ => false,
    }
}

pub(super) fn header(line: &str, names: &[&str]) -> Result<(String, Template), Error> {
    let token = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    match line.split_once(':') {
        Some((name, _)) if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
            Err(Error::Usage(format!(
                "the header {name} is written by the handshake itself; remove it"
            )))
        }
        Some((name, value)) if token(name) => {
            Ok((name.into(), Template::compile(value.trim(), names)?))
        }
        _ => Err(Error::Usage(
            "a header is not of the form `Name: value`; write it so".into(),
        )),
    }
}
