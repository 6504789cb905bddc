//! Connections inside TLS and through proxies, and the secrets that open them.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what fails here fails the test"
)]

pub(crate) mod authority;
mod handshakes;
