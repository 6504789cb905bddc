//! TLS over a TCP connection: whom to trust, who to be, and why a handshake failed, in words that say what to do.
//!
//! Everything is loaded once, before the run. No session is resumed: a restarted server has new ticket keys, so its
//! whole herd shakes hands in full; and a store that all clients share would let them resume each other's sessions,
//! which no real herd does. What is said over the connection is somebody else's business.

mod reason;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, InconsistentKeys};
use url::{Host, Url};

use super::safe;
use super::wire::Wire;
use crate::error::Error;
use crate::history::AttemptOutcome;

pub(super) use reason::reason;

/// How much of an error is told (bytes).
const TEXT: usize = 300;

/// What the user says about TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whose certificates are believed.
    pub trust: Trust,
    /// What herd's clients identify themselves with, where they do.
    pub identity: Option<Identity>,
}

/// Whose certificates are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// The platform's authorities.
    #[default]
    Platform,
    /// Those in a PEM file, and no others.
    File(PathBuf),
    /// Everybody's: nothing is checked.
    Anyone,
}

/// A client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A PEM file with the certificate and the chain behind it.
    pub cert: PathBuf,
    /// A PEM file with the key; it may be the same file.
    pub key: PathBuf,
}

/// What is offered by ALPN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// HTTP/1.1 alone: a WebSocket's upgrade, and requests.
    Http1,
    /// HTTP/2, else HTTP/1.1: an event stream.
    Http2,
}

/// Settings, loaded; shared by all connections.
#[derive(Clone)]
pub struct Tls {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Tls {
    /// Reads every file.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the file that can't be read or holds nothing of use, a key that doesn't fit its
    /// certificate, or a platform without authorities.
    pub fn load(settings: &Settings) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let mut http1 = config(settings, &provider)?;
        http1.resumption = Resumption::disabled();
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut http2 = http1.clone();
        http2.alpn_protocols.insert(0, b"h2".to_vec());
        Ok(Self {
            http1: Arc::new(http1),
            http2: Arc::new(http2),
        })
    }

    /// Shakes hands with the URL's host. It has no limit of its own.
    ///
    /// # Errors
    /// [`AttemptOutcome::Handshake`] without a status, and why.
    pub async fn shake_hands(
        &self,
        stream: TcpStream,
        url: &Url,
        offer: Offer,
    ) -> Result<Wire, AttemptOutcome> {
        let name = server_name(url).ok_or_else(|| {
            failed("the URL's host can't be named in TLS; use a DNS name or an IP address")
        })?;
        let config = match offer {
            Offer::Http1 => &self.http1,
            Offer::Http2 => &self.http2,
        };
        let connector = TlsConnector::from(Arc::clone(config));
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Wire::Tls(Box::new(stream))),
            Err(error) => Err(failed(&reason(&error))),
        }
    }
}

impl std::fmt::Debug for Tls {
    /// Without the client's key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

fn failed(why: &str) -> AttemptOutcome {
    AttemptOutcome::Handshake {
        status: None,
        why: safe(why.as_bytes(), TEXT),
    }
}

fn server_name(url: &Url) -> Option<ServerName<'static>> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ServerName::from(std::net::IpAddr::from(ip))),
        Host::Ipv6(ip) => Some(ServerName::from(std::net::IpAddr::from(ip))),
        // The dot that makes a name absolute is no part of a certificate's.
        Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned()).ok(),
    }
}

fn config(settings: &Settings, provider: &Arc<CryptoProvider>) -> Result<ClientConfig, Error> {
    let broken =
        |e: &dyn std::fmt::Display| Error::Broken(format!("TLS can't be set up: {e}; report this"));
    let verifier = trust::verifier(&settings.trust, provider)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| broken(&e))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some(Identity { cert, key }) = &settings.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(cert)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| {
        Error::Usage(format!(
            "can't read a private key from {}: {e}; name a PEM file that holds one, without a passphrase",
            key.display()
        ))
    })?;
    builder.with_client_auth_cert(chain, secret).map_err(|e| {
        use tokio_rustls::rustls::Error::InconsistentKeys as Inconsistent;
        Error::Usage(match e {
            Inconsistent(InconsistentKeys::KeyMismatch) => format!(
                "the key in {} doesn't fit the certificate in {}; name the pair that belongs together",
                key.display(),
                cert.display()
            ),
            e => format!(
                "{} and {} are no use as a client certificate: {e}; name a PEM certificate and its key",
                cert.display(),
                key.display()
            ),
        })
    })
}

/// The certificates in a PEM file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: &dyn std::fmt::Display| {
        Error::Usage(format!(
            "can't read certificates from {}: {why}; name a PEM file that holds them",
            file.display()
        ))
    };
    let found = CertificateDer::pem_file_iter(file).map_err(|e| wrong(&e))?;
    let found = found
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| wrong(&e))?;
    if found.is_empty() {
        return Err(wrong(&"there are none in it"));
    }
    Ok(found)
}
