//! Why TLS failed, and what to do, in one fragment.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible,
};

use crate::transport::is_reset;

/// What an error of a connection says, TLS or not.
pub(in crate::transport) fn reason(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match tls {
        Some(tls) => of_tls(tls),
        None if is_reset(error) => "reset during the TLS handshake".into(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "closed during the TLS handshake; does the server speak TLS on this port?".into()
        }
        None => error.to_string(),
    }
}

fn of_tls(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(certificate) => of_certificate(certificate),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::MessageTooLarge,
        ) => {
            "the server speaks no TLS on this port; check the port, or use ws:// or http://".into()
        }
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
        | Error::AlertReceived(AlertDescription::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => "the server speaks neither TLS 1.2 nor 1.3; update it, or its settings".into(),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a client certificate; use --cert FILE and --key FILE".into()
        }
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => format!(
            "the server refused herd's client certificate ({error}); use another --cert and --key"
        ),
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the server knows nobody of the URL's name; check the name".into()
        }
        Error::NoApplicationProtocol
        | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks no HTTP/1.1 on this port (ALPN); check the port".into()
        }
        Error::AlertReceived(AlertDescription::HandshakeFailure) | Error::PeerIncompatible(_) => {
            format!(
                "the server and herd have no way of TLS in common ({error}); check the server's settings"
            )
        }
        other => format!("TLS failed: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "the certificate is not signed by a known authority; use --cacert FILE or -k".into()
        }
        // The authority's name is known, its key isn't.
        CertificateError::BadSignature => {
            "the certificate is not signed by a known authority, only by one of the same name; use --cacert FILE or -k"
                .into()
        }
        CertificateError::Expired => "the certificate has expired; renew it, or use -k".into(),
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "the certificate expired at {}; renew it, or use -k",
            instant(*not_after)
        ),
        CertificateError::NotValidYet => {
            "the certificate is not valid yet; check both clocks, or use -k".into()
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the certificate is not valid before {}; check both clocks, or use -k",
            instant(*not_before)
        ),
        CertificateError::NotValidForName => {
            "the certificate is for another name; use the name that it is for, or -k".into()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let mut names: Vec<_> = presented.iter().take(3).map(|name| plain(name)).collect();
            if presented.is_empty() {
                names.push("no name at all");
            }
            if presented.len() > names.len() {
                names.push("others");
            }
            let names = names.join(", ");
            format!(
                "the certificate is for {names} and not for {}; use a name that it is for, or -k",
                expected.to_str()
            )
        }
        CertificateError::Revoked => "the certificate was revoked; renew it, or use -k".into(),
        // webpki's word for a self-signed one that says of itself that it is an authority's.
        CertificateError::Other(why) if format!("{why:?}").contains("CaUsedAsEndEntity") => {
            "the certificate is an authority's own and not signed by a known one; use --cacert FILE or -k".into()
        }
        CertificateError::Other(why) => format!("the certificate is no good ({why}); use -k to pass over it"),
        other => format!("the certificate is no good ({other}); use -k to pass over it"),
    }
}

/// `DnsName("example.com")` is how webpki writes a name.
fn plain(name: &str) -> &str {
    let inner = name
        .split_once("(\"")
        .and_then(|(_, rest)| rest.strip_suffix("\")"));
    let inner = inner.or_else(|| {
        name.split_once('(')
            .and_then(|(_, rest)| rest.strip_suffix(')'))
    });
    inner.unwrap_or(name)
}

fn instant(time: UnixTime) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()));
    time.map_or("an unreadable date".into(), |time| {
        humantime::format_rfc3339_seconds(time).to_string()
    })
}
