//! The options of how a connection gets in: TLS, credentials, subprotocols, proxy.

use std::path::PathBuf;

use clap::Args;

use crate::scenario::{Draft, hidden, lay, masked};

#[derive(Args)]
#[command(next_help_heading = "Access")]
pub(super) struct AccessArgs {
    /// Believe every server's certificate
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Believe the authorities in this PEM file and no others [default: the system's]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Client certificate, with its chain, in a PEM file
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Its private key in a PEM file [default: in the file of the certificate]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Basic authentication; {env:NAME} and {file:PATH} keep secrets out
    #[arg(short, long, value_name = "USER:PASSWORD")]
    user: Option<String>,
    /// Bearer token, such as {env:TOKEN}
    #[arg(long, value_name = "TOKEN")]
    bearer: Option<String>,
    /// Subprotocol to offer (may be repeated); the server must choose one
    #[arg(long, value_name = "NAME")]
    subprotocol: Vec<String>,
    /// HTTP proxy: http://HOST:PORT, none, or env for https_proxy, http_proxy, all_proxy and no_proxy [default: env]
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
}

impl AccessArgs {
    pub(super) fn lay_over(self, draft: &mut Draft) {
        let connect = &mut draft.connect;
        lay(
            &mut connect.insecure,
            "--insecure",
            self.insecure.then_some(true),
        );
        lay(&mut connect.cacert, "--cacert", self.cacert);
        lay(&mut connect.cert, "--cert", self.cert);
        lay(&mut connect.key, "--key", self.key);
        lay(&mut connect.user, "--user", self.user);
        lay(&mut connect.bearer, "--bearer", self.bearer);
        let protocols = (!self.subprotocol.is_empty()).then_some(self.subprotocol);
        lay(&mut connect.subprotocols, "--subprotocol", protocols);
        lay(&mut connect.proxy, "--proxy", self.proxy);
    }
}

/// The value of one of these options as it may be shown; none where another file's options are meant.
pub(super) fn shown(id: &str, value: &str) -> Option<String> {
    match id {
        "user" | "bearer" => Some(hidden(value, &[])),
        "proxy" => Some(masked(value, &[])),
        _ => None,
    }
}
