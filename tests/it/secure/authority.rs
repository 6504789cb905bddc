//! An authority of the test's own, the certificates that it gives out, and servers that show them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The certificates that a server may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Signed by the authority, for localhost, 127.0.0.1, ::1 and target.test.
    Good,
    /// The same, of long ago.
    Expired,
    /// Signed by the authority, for other.example.
    WrongName,
    /// Signed by itself.
    SelfSigned,
    /// Signed by itself, and of itself an authority, as `openssl req -x509` makes it.
    OwnAuthority,
}

/// Whether a server wants to know who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Nobody,
    Everybody,
}

/// A certificate and its key.
struct Pair {
    cert: Certificate,
    key: KeyPair,
}

/// The authority, with a directory for its files.
pub(crate) struct Authority {
    dir: tempfile::TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "the test's authority");
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), ca.pem()).unwrap();
        Self { dir, ca }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A PEM file; its path as text.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name).display().to_string()
    }

    /// The authority's own certificate.
    pub(crate) fn ca(&self) -> String {
        self.path("ca.pem").display().to_string()
    }

    fn pair(&self, shows: Shows) -> Pair {
        let names = match shows {
            Shows::WrongName => vec!["other.example".to_owned()],
            _ => ["localhost", "127.0.0.1", "::1", "target.test"]
                .map(str::to_owned)
                .into(),
        };
        let mut params = CertificateParams::new(names).unwrap();
        if shows == Shows::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 2, 3);
        }
        if shows == Shows::OwnAuthority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let cert = match shows {
            Shows::SelfSigned | Shows::OwnAuthority => params.self_signed(&key),
            _ => params.signed_by(&key, &self.ca),
        };
        Pair {
            cert: cert.unwrap(),
            key,
        }
    }

    /// A client's certificate and key: their files.
    pub(crate) fn client(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["client".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.ca).unwrap();
        (
            self.file("client.pem", &cert.pem()),
            self.file("client.key", &key.serialize_pem()),
        )
    }

    /// A server's settings; what it shows is in the file `shown.pem` as well.
    pub(crate) fn server(&self, shows: Shows, asks: Asks, alpn: &[&str]) -> TlsAcceptor {
        let Pair { cert, key } = self.pair(shows);
        self.file("shown.pem", &cert.pem());
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match asks {
            Asks::Nobody => builder.with_no_client_auth(),
            Asks::Everybody => {
                let mut roots = RootCertStore::empty();
                roots.add(self.ca.der().clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = builder
            .with_single_cert(vec![cert.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// TLS in front of a plain server: what comes in goes on to `upstream`, until the test ends.
pub(crate) fn in_front(acceptor: TlsAcceptor, upstream: SocketAddr) -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(acceptor.clone(), stream, upstream));
            }
        });
    });
    told.recv().unwrap()
}

async fn relay(acceptor: TlsAcceptor, stream: TcpStream, upstream: SocketAddr) {
    // Whoever doesn't believe the certificate leaves.
    let Ok(mut outside) = acceptor.accept(stream).await else {
        return;
    };
    // The server is being restarted.
    let Ok(mut inside) = TcpStream::connect(upstream).await else {
        return;
    };
    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
}
