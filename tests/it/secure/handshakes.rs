//! Single connections: whom TLS believes, what a refusal says, and how an open one ends.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use herd::client::{Crew, OwnNumbers};
use herd::clock::Clock;
use herd::history::{AttemptOutcome, Cause, Client, Elapsed, History};
use herd::plan::Plan;
use herd::transport::network::Network;
use herd::transport::tls::{Identity, Offer, Settings, Tls, Trust};
use herd::transport::wire::Wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use url::Url;

use super::authority::{Asks, Authority, Shows};
use crate::client::rig::{self, PATIENCE};

fn believing(trust: Trust) -> Settings {
    Settings {
        trust,
        identity: None,
    }
}

fn network(settings: &Settings) -> Arc<Network> {
    let tls = Tls::load(settings).unwrap();
    Arc::new(Network::plain(PATIENCE).with_tls(tls))
}

/// Accepts for as long as the test runs.
async fn serve(acceptor: TlsAcceptor) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read(&mut [0; 64]).await;
                }
            });
        }
    });
    address
}

async fn shake(network: &Network, url: &str, offer: Offer) -> Result<Wire, String> {
    let url = Url::parse(url).unwrap();
    let stream = network.reach(&url, None, None, None).await;
    let stream = stream.map_err(|outcome| format!("{outcome:?}"))?;
    match network.secure(stream, &url, offer).await {
        Ok(wire) => Ok(wire),
        Err(AttemptOutcome::Handshake { status: None, why }) => Err(why.into()),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_is_believed_or_refused_with_a_reason() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let file = |path: &str| Trust::File(path.into());
    let (known, unknown) = (file(&authority.ca()), file(&stranger.ca()));
    let shown = file(&authority.path("shown.pem").display().to_string());
    let cases = [
        (Shows::Good, &known, ""),
        (
            Shows::Good,
            &unknown,
            "not signed by a known authority, only by one of the same name; use --cacert FILE or -k",
        ),
        (Shows::Expired, &known, "expired at 2002-02-03T00:00:00Z"),
        (
            Shows::WrongName,
            &known,
            "is for other.example and not for localhost",
        ),
        (
            Shows::SelfSigned,
            &known,
            "not signed by a known authority; use --cacert FILE or -k",
        ),
        (Shows::SelfSigned, &shown, ""),
        (Shows::OwnAuthority, &known, "use --cacert FILE or -k"),
        (Shows::OwnAuthority, &shown, ""),
    ];
    for (shows, trust, words) in cases {
        let address = serve(authority.server(shows, Asks::Nobody, &[])).await;
        let url = format!("wss://localhost:{}/", address.port());
        let told = shake(&network(&believing(trust.clone())), &url, Offer::Http1).await;
        match told {
            Ok(_) => assert_eq!(words, "", "{shows:?} was believed"),
            Err(why) => assert!(!words.is_empty() && why.contains(words), "{shows:?}: {why}"),
        }
        let anyone = network(&believing(Trust::Anyone));
        assert!(
            shake(&anyone, &url, Offer::Http1).await.is_ok(),
            "-k: {shows:?}"
        );
    }
    // A certificate that the user named is still for its own name only.
    let address = serve(authority.server(Shows::OwnAuthority, Asks::Nobody, &[])).await;
    let url = format!("wss://a.localhost:{}/", address.port());
    let stream = TcpStream::connect(address).await.unwrap();
    let named = network(&believing(shown));
    let refused = named
        .secure(stream, &Url::parse(&url).unwrap(), Offer::Http1)
        .await;
    assert!(
        format!("{refused:?}").contains("not for a.localhost"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_address_can_be_a_certificates_name() {
    let authority = Authority::new();
    let known = network(&believing(Trust::File(authority.path("ca.pem"))));
    let address = serve(authority.server(Shows::Good, Asks::Nobody, &[])).await;
    assert!(
        shake(&known, &format!("wss://{address}/"), Offer::Http1)
            .await
            .is_ok()
    );
    let address = serve(authority.server(Shows::WrongName, Asks::Nobody, &[])).await;
    let why = shake(&known, &format!("wss://{address}/"), Offer::Http1)
        .await
        .unwrap_err();
    assert!(why.contains("not for 127.0.0.1"), "{why}");
}

#[tokio::test]
async fn alpn_offers_h2_for_event_streams_only() {
    let authority = Authority::new();
    let known = network(&believing(Trust::File(authority.path("ca.pem"))));
    for (speaks, offer, chosen) in [
        (&["h2", "http/1.1"][..], Offer::Http2, Some("h2")),
        (&["h2", "http/1.1"], Offer::Http1, Some("http/1.1")),
        (&["http/1.1"], Offer::Http2, Some("http/1.1")),
        (&[], Offer::Http2, None),
    ] {
        let address = serve(authority.server(Shows::Good, Asks::Nobody, speaks)).await;
        let wire = shake(&known, &format!("wss://{address}/"), offer)
            .await
            .unwrap();
        assert_eq!(wire.alpn(), chosen.map(str::as_bytes), "{speaks:?}");
    }
    let address = serve(authority.server(Shows::Good, Asks::Nobody, &["h2"])).await;
    let why = shake(&known, &format!("wss://{address}/"), Offer::Http1)
        .await
        .unwrap_err();
    assert!(why.contains("HTTP/1.1"), "{why}");
}

#[tokio::test]
async fn a_server_without_tls_is_named_as_one() {
    let known = network(&believing(Trust::Anyone));
    for (answer, words) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "speaks no TLS on this port",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "speaks no TLS on this port"),
        (b"", "closed during the TLS handshake"),
        // An alert: protocol_version.
        (&[0x15, 3, 1, 0, 2, 2, 70], "neither TLS 1.2 nor 1.3"),
        // An alert: handshake_failure.
        (&[0x15, 3, 3, 0, 2, 2, 40], "no way of TLS in common"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let hello = stream.read(&mut [0; 4096]).await.unwrap();
            assert!(hello > 0);
            for byte in answer {
                let _ = stream.write_all(&[*byte]).await;
            }
        });
        let why = shake(&known, &format!("wss://{address}/"), Offer::Http1)
            .await
            .unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn files_that_are_no_use_are_refused_before_the_run() {
    let authority = Authority::new();
    let (cert, key) = authority.client();
    let other = Authority::new();
    let (_, strange) = other.client();
    let empty = authority.file("empty.pem", "nothing here\n");
    let identity = |cert: &str, key: &str| Settings {
        trust: Trust::Anyone,
        identity: Some(Identity {
            cert: Path::new(cert).into(),
            key: Path::new(key).into(),
        }),
    };
    let trust = |file: &str| believing(Trust::File(file.into()));
    assert!(Tls::load(&identity(&cert, &key)).is_ok());
    let both = std::fs::read_to_string(&cert).unwrap() + &std::fs::read_to_string(&key).unwrap();
    let both = authority.file("both.pem", &both);
    assert!(Tls::load(&identity(&both, &both)).is_ok());
    for (settings, words) in [
        (trust("/no/such.pem"), "/no/such.pem"),
        (trust(&empty), "there are none in it"),
        (identity(&empty, &key), "there are none in it"),
        (identity(&cert, &empty), "can't read a private key"),
        (identity(&cert, &strange), "doesn't fit the certificate"),
    ] {
        let refused = Tls::load(&settings).unwrap_err();
        assert!(matches!(refused, herd::error::Error::Usage(_)), "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

/// Runs one client against a server that does this inside TLS.
async fn run<F>(
    acceptor: TlsAcceptor,
    settings: Settings,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
) -> (History, Client)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = rig::listen().await;
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream).await;
            }
        }
    });
    let mut scenario = rig::scenario(address);
    scenario.target.url = format!("wss://{address}/live?after={{after}}");
    let plan = Plan::new(&scenario, &[]).unwrap();
    let own = OwnNumbers {
        base: 0,
        span: 1_000,
    };
    let crew = Arc::new(Crew::new(
        &scenario,
        plan,
        network(&settings),
        Clock::start(),
        own,
    ));
    let clients = crew.launch(Elapsed::ZERO);
    tokio::time::timeout(PATIENCE, clients.join_all())
        .await
        .expect("the client ends by itself");
    server.abort();
    rig::recorded(&crew)
}

/// Shakes hands as a WebSocket server, and writes what follows in the same go.
async fn upgrade(stream: &mut TlsStream<TcpStream>, frames: &[u8]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_buf(&mut head).await.unwrap();
    }
    let mut bytes = rig::accept(std::str::from_utf8(&head).unwrap()).into_bytes();
    bytes.extend(frames);
    stream.write_all(&bytes).await.unwrap();
    stream.flush().await.unwrap();
}

#[tokio::test]
async fn an_end_without_a_goodbye_of_tls_is_an_end_of_stream() {
    let authority = Authority::new();
    let acceptor = authority.server(Shows::Good, Asks::Nobody, &["http/1.1"]);
    let known = believing(Trust::File(authority.path("ca.pem")));
    let event = rig::frame(0x81, br#"{"id":"last"}"#);
    let (history, client) = run(acceptor, known, move |mut stream| {
        let event = event.clone();
        async move {
            upgrade(&mut stream, &event).await;
            // The socket goes without a word, as a killed server's does.
            drop(stream);
        }
    })
    .await;
    assert_eq!(rig::ids(&history, &client), ["last"]);
    assert_eq!(rig::only_cause(&client), Cause::Eof);
}

#[tokio::test]
async fn forbidden_close_codes_and_pongs_get_through_tls() {
    let authority = Authority::new();
    let acceptor = authority.server(Shows::Good, Asks::Nobody, &[]);
    let known = believing(Trust::File(authority.path("ca.pem")));
    let (history, client) = run(acceptor, known, |mut stream| async move {
        let mut bytes = rig::frame(0x89, b"?");
        bytes.extend(rig::frame(0x81, br#"{"id":"a"}"#));
        upgrade(&mut stream, &bytes).await;
        let mut pong = [0; 7];
        stream.read_exact(&mut pong).await.unwrap();
        assert_eq!(pong[0], 0x8a);
        stream
            .write_all(&rig::frame(0x88, b"\x03\xf6so"))
            .await
            .unwrap();
        stream.flush().await.unwrap();
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await;
    assert_eq!(rig::ids(&history, &client), ["a"]);
    let reason = "so".into();
    assert_eq!(
        rig::only_cause(&client),
        Cause::Close {
            code: Some(1014),
            reason
        }
    );
}

/// A killed server answers the pongs to its last pings with a reset; what it had sent before must not be lost.
#[tokio::test]
async fn what_was_sent_before_a_reset_is_still_received_inside_tls() {
    let authority = Authority::new();
    let acceptor = authority.server(Shows::Good, Asks::Nobody, &[]);
    let known = believing(Trust::File(authority.path("ca.pem")));
    let (history, client) = run(acceptor, known, |mut stream| async move {
        let mut bytes = Vec::new();
        for n in 0..200 {
            bytes.extend(rig::frame(0x89, b"?"));
            bytes.extend(rig::frame(0x81, format!(r#"{{"id":{n}}}"#).as_bytes()));
        }
        upgrade(&mut stream, &bytes).await;
    })
    .await;
    let expected: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(rig::ids(&history, &client), expected);
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_it_or_is_named() {
    let authority = Authority::new();
    let known = Trust::File(authority.path("ca.pem"));
    let (cert, key) = authority.client();
    let identity = Identity {
        cert: cert.into(),
        key: key.into(),
    };
    let close = rig::frame(0x88, b"\x03\xe8");
    for identity in [None, Some(identity)] {
        let acceptor = authority.server(Shows::Good, Asks::Everybody, &[]);
        let settings = Settings {
            trust: known.clone(),
            identity: identity.clone(),
        };
        let close = close.clone();
        let (_, client) = run(acceptor, settings, move |mut stream| {
            let close = close.clone();
            async move {
                upgrade(&mut stream, &close).await;
                let _ = stream.read(&mut [0; 64]).await;
            }
        })
        .await;
        match identity {
            Some(_) => assert_eq!(rig::only_cause(&client).name(), "close"),
            None => {
                let (status, why) = rig::only_failure(&client);
                assert_eq!(status, None);
                assert!(
                    why.contains("wants a client certificate; use --cert"),
                    "{why}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_tls_handshake_without_an_end_times_out() {
    let (listener, address) = rig::listen().await;
    let mut scenario = rig::scenario(address);
    scenario.target.url = format!("wss://{address}/");
    scenario.connect.timeout = Some(Duration::from_millis(100));
    let plan = Plan::new(&scenario, &[]).unwrap();
    let own = OwnNumbers { base: 0, span: 1 };
    let network = network(&believing(Trust::Anyone));
    let crew = Arc::new(Crew::new(&scenario, plan, network, Clock::start(), own));
    crew.launch(Elapsed::ZERO).join_all().await;
    drop(listener);
    let (_, client) = rig::recorded(&crew);
    let (status, why) = rig::only_failure(&client);
    assert_eq!(status, None);
    assert!(
        why.contains("TLS handshake had no end within 100ms"),
        "{why}"
    );
}
