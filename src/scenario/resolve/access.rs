//! How a connection gets in: whom TLS believes, who a client says it is, through which proxy.

use super::super::draft::{Draft, Given, Slot};
use super::super::template::{outside_texts, stranger};
use super::super::{Credentials, Proxy};
use crate::error::Error;
use crate::transport::tls::{Identity, Settings, Trust};

/// What may stand in a proxy's URL.
const PROXY: [&str; 2] = ["env:", "file:"];

impl Draft {
    pub(super) fn tls(&self) -> Result<Settings, Error> {
        let draft = &self.connect;
        self.needs_tls(&draft.insecure)?;
        self.needs_tls(&draft.cacert)?;
        self.needs_tls(&draft.cert)?;
        self.needs_tls(&draft.key)?;
        let insecure = draft.insecure.as_ref().filter(|given| given.value);
        let trust = match (insecure, &draft.cacert) {
            (Some(anyone), Some(file)) => {
                let why = "whoever believes everybody needs no authority; leave one out";
                return Err(self.contradiction(&anyone.origin, &file.origin, why));
            }
            (Some(_), None) => Trust::Anyone,
            (None, Some(file)) => Trust::File(file.value.clone()),
            (None, None) => Trust::Platform,
        };
        let identity = match (&draft.cert, &draft.key) {
            (None, None) => None,
            (None, Some(key)) => {
                let what = "a key is no use without its certificate; add connect.cert (--cert)";
                return Err(self.refuse(&key.origin, what));
            }
            (Some(cert), key) => Some(Identity {
                cert: cert.value.clone(),
                key: key.as_ref().unwrap_or(cert).value.clone(),
            }),
        };
        Ok(Settings { trust, identity })
    }

    /// Refuses a flag of TLS where nothing is called by TLS.
    fn needs_tls<T>(&self, slot: &Slot<T>) -> Result<(), Error> {
        let urls = [&self.target.url, &self.target.ready, &self.publish.url];
        let secure = |url: &Given<String>| {
            let scheme = url.value.split_once("://").map_or("", |(scheme, _)| scheme);
            // An event stream may be sent on to another address.
            ["wss", "https", "http"].contains(&scheme.to_ascii_lowercase().as_str())
        };
        if urls.into_iter().flatten().any(secure) {
            return Ok(());
        }
        self.idle(
            slot,
            "there is no wss:// or https:// address, so nothing is said inside TLS",
        )
    }

    pub(super) fn credentials(&self) -> Result<Option<Credentials>, Error> {
        let (user, bearer) = (&self.connect.user, &self.connect.bearer);
        for given in [user, bearer].into_iter().flatten() {
            if given.value.is_empty() || given.value.contains(char::is_control) {
                // Not shown: it is a secret.
                let what = "nothing that a header can hold; write the text itself, {env:NAME} or {file:PATH}";
                return Err(self.refuse(&given.origin, what));
            }
        }
        match (user, bearer) {
            (Some(user), Some(bearer)) => {
                let why = "a client says once who it is; leave one out";
                Err(self.contradiction(&user.origin, &bearer.origin, why))
            }
            (Some(user), None) => Ok(Some(Credentials::User(user.value.clone()))),
            (None, Some(bearer)) => Ok(Some(Credentials::Bearer(bearer.value.clone()))),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn subprotocols(&self) -> Result<Vec<String>, Error> {
        let Some(Given { value, origin }) = &self.connect.subprotocols else {
            return Ok(Vec::new());
        };
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        for name in value {
            // A placeholder is judged when it is filled in.
            let plain = outside_texts(name)
                .into_iter()
                .fold(name.clone(), |text, p| text.replace(p, "x"));
            if name.is_empty() || !plain.bytes().all(token) {
                let what =
                    "not a subprotocol's name; write it without spaces and commas, one by one";
                return Err(self.refuse(origin, what));
            }
        }
        Ok(value.clone())
    }

    pub(super) fn proxy(&self) -> Result<Proxy, Error> {
        let Some(Given { value, origin }) = &self.connect.proxy else {
            return Ok(Proxy::Env);
        };
        match value.as_str() {
            "env" => Ok(Proxy::Env),
            "none" => Ok(Proxy::Direct),
            url if url.starts_with("http://") && stranger(url, &PROXY).is_none() => {
                Ok(Proxy::Url(url.to_owned()))
            }
            // Not shown: it may hold a password.
            _ => Err(self.refuse(
                origin,
                "not a proxy; write http://HOST:PORT, \"env\" for the environment's or \"none\"",
            )),
        }
    }
}
