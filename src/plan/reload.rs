//! Where a client asks for the full state, and with which words: those of its dial, as far as they are meant for that
//! place. It knows not when.

use url::Url;

use super::{Call, Plan, SUBPROTOCOL};
use crate::error::Error;
use crate::history::ClientId;
use crate::template::{Place, Template, Values};

/// What only an event stream, or the handshake of a WebSocket, is asked with.
const OF_THE_DIAL: [&str; 3] = [SUBPROTOCOL, "last-event-id", "accept"];

/// What is meant for one server: credentials, and the name that the user gave it.
const OF_THE_SERVER: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "host"];

/// Reads the scenario's address.
///
/// # Errors
/// [`Error::Usage`] where a variable or a file is missing, or what they make of it is no address.
pub(super) fn address(text: Option<&str>, port: Option<u16>) -> Result<Option<Url>, Error> {
    let Some(text) = text else {
        return Ok(None);
    };
    let values = Values {
        port,
        ..Values::default()
    };
    let text = Template::parse(text)?.expand(&values, Place::Text);
    // It isn't quoted: what was filled in may be a secret.
    let parsed = Url::parse(&text)
        .ok()
        .filter(|url| ["http", "https"].contains(&url.scheme()) && url.host_str().is_some());
    parsed.map(Some).ok_or_else(|| {
        Error::Usage(
            "client.reload is no address once its placeholders are filled in; use one such as http://127.0.0.1:8080/state"
                .into(),
        )
    })
}

impl Plan {
    /// The words of a client's request for the full state; none where the scenario knows no such place. Credentials go along
    /// only to the server that the client dials.
    pub fn reload(&self, client: ClientId, target: u16) -> Option<Result<Call, String>> {
        let url = self.targets.get(usize::from(target))?.reload.as_ref()?;
        Some(self.call(client, target, None, &[]).map(|mut dial| {
            let elsewhere = !same_server(&dial.url, url);
            let named =
                |names: &[&str], name: &str| names.iter().any(|own| name.eq_ignore_ascii_case(own));
            dial.headers.retain(|(name, _)| {
                let elsewheres = elsewhere && named(&OF_THE_SERVER, name);
                !named(&OF_THE_DIAL, name) && !elsewheres
            });
            Call {
                url: url.clone(),
                headers: dial.headers,
            }
        }))
    }
}

/// `ws` and `http` are two schemes of one server.
fn same_server(a: &Url, b: &Url) -> bool {
    let place = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        let secure = matches!(url.scheme(), "wss" | "https");
        (host, url.port_or_known_default(), secure)
    };
    place(a) == place(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::scenario;

    #[test]
    fn credentials_go_only_to_the_server_that_the_client_dials() {
        let said = |reload: &str| {
            let mut scenario = scenario("ws://h:81/live");
            scenario.connect.headers = vec!["Authorization: Bearer x".into(), "X-Api: 1".into()];
            scenario.reload = Some(reload.into());
            let plan = Plan::new(&scenario, &[]).unwrap();
            let call = plan.reload(ClientId(1), 0).unwrap().unwrap();
            call.headers
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(said("http://h:81/state"), ["Authorization", "X-Api"]);
        assert_eq!(said("http://h:82/state"), ["X-Api"]);
        assert_eq!(said("https://h:81/state"), ["X-Api"]);
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_being_quoted() {
        let said = address(Some("http://{port}secret"), Some(1)).map(|_| ());
        assert!(said.is_ok(), "1secret is a name");
        let said = address(Some("http://:secret@/x"), None)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("client.reload") && !said.contains("secret@"),
            "{said}"
        );
    }
}
