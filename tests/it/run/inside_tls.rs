//! Whole runs against a target inside TLS: refused with a reason, or carried out over it from probe to publisher.

use std::net::SocketAddr;

use herd::target::port::Held;

use super::{QUICK, Stage, together, unless_busy};
use crate::secure::authority::{Asks, Authority, Shows, in_front};

#[test]
fn a_certificate_that_can_not_be_believed_ends_the_run_with_the_reason() {
    let nowhere: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let cases = [
        (
            Shows::SelfSigned,
            false,
            "not signed by a known authority; use --cacert FILE or -k",
        ),
        (
            Shows::Good,
            false,
            "not signed by a known authority, only by one of the same name; use --cacert FILE or -k",
        ),
        (
            Shows::Expired,
            true,
            "the certificate expired at 2002-02-03T00:00:00Z",
        ),
        (
            Shows::WrongName,
            true,
            "is for other.example and not for localhost",
        ),
    ];
    together(cases.map(|(shows, named, words)| {
        move || {
            let (authority, system) = (Authority::new(), Authority::new());
            let address = in_front(authority.server(shows, Asks::Nobody, &[]), nowhere);
            let stage = Stage::new();
            let target = format!("wss://localhost:{}/live?after={{after}}", address.port());
            let ca = authority.ca();
            let mut command = stage.run_command(QUICK, &["--target", &target]);
            if named {
                command.args(["--cacert", &ca]);
            }
            // A test must not depend on this system's authorities.
            command.env("SSL_CERT_FILE", system.ca());
            let ended = super::Running::start(&mut command).end().with(4);
            ended
                .at_once()
                .says(&[words, &format!("localhost:{}", address.port())]);
            stage.assert_empty();
        }
    }));
}

#[test]
fn tls_flags_are_checked_before_anything_is_started() {
    let stage = Stage::new();
    let nothing = stage.file("nothing.pem", "");
    let tls = ["--target", "wss://127.0.0.1:9/"];
    for (args, words) in [
        (
            vec!["--insecure"],
            "--insecure: there is no wss:// or https:// address",
        ),
        (
            vec!["--cacert", "/no/such.pem"],
            "--cacert: there is no wss://",
        ),
        (
            [&tls[..], &["--cacert", "/no/such.pem"]].concat(),
            "/no/such.pem",
        ),
        (
            [&tls[..], &["--cacert", &nothing]].concat(),
            "there are none in it",
        ),
        (
            [&tls[..], &["-k", "--cacert", &nothing]].concat(),
            "leave one out",
        ),
        (
            [&tls[..], &["--key", &nothing]].concat(),
            "without its certificate",
        ),
        (
            [&tls[..], &["--user", "a:b", "--bearer", "c"]].concat(),
            "leave one out",
        ),
        (
            [&tls[..], &["--subprotocol", "a b"]].concat(),
            "not a subprotocol",
        ),
        (
            [&tls[..], &["--proxy", "socks5://h:1"]].concat(),
            "not a proxy",
        ),
    ] {
        let ended = stage.run(QUICK, &args).end().with(2);
        ended.at_once().says(&[words]);
        assert!(!stage.path("out").exists(), "{args:?}");
    }
}

#[test]
fn a_run_inside_tls_passes_with_the_authority_or_without_any() {
    together(
        [(Shows::Good, true), (Shows::SelfSigned, false)].map(|(shows, named)| {
            move || {
                let authority = Authority::new();
                let held = Held::pick().unwrap();
                let upstream = SocketAddr::from(([127, 0, 0, 1], held.port()));
                let acceptor = authority.server(shows, Asks::Nobody, &["http/1.1"]);
                let port = in_front(acceptor, upstream).port();
                let ca = authority.ca();
                let (stage, ended) = unless_busy(|| {
                    let stage = Stage::new();
                    let command = format!(
                        "exec {} serve --listen {upstream} --data {}",
                        env!("CARGO_BIN_EXE_herd"),
                        stage.text("data")
                    );
                    let target = format!("wss://localhost:{port}/v1/live?after={{after}}");
                    let publish = format!("https://127.0.0.1:{port}/v1/publish");
                    let ready = format!("https://127.0.0.1:{port}/healthz");
                    let mut args = vec!["--server-cmd", &command, "--target", &target];
                    args.extend(["--publish-url", &publish, "--ready", &ready]);
                    if named {
                        args.extend(["--cacert", &ca]);
                    } else {
                        args.push("-k");
                    }
                    let ended = stage.run(QUICK, &args).end();
                    (stage, ended)
                });
                ended.with(0).says(&["PASS", "wss://localhost"]);
                stage.assert_empty();
                let summary = stage.summary();
                assert_eq!(summary["outages"][0]["reconnected"], 24);
                assert_eq!(summary["outages"][0]["dropped"], 24);
            }
        }),
    );
}
