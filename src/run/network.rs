//! The ways out of this process as a scenario wants them: certificates and keys read, proxies chosen, secrets known.
//!
//! The environment's proxies are read here, once.

use std::sync::Arc;

use crate::error::Error;
use crate::scenario::{Connect, Proxy, Scenario, Via};
use crate::template::{Place, Template, Values};
use crate::transport::network::Network;
use crate::transport::proxy::Proxies;
use crate::transport::tls::{Settings, Tls};

/// Loads everything that connections need.
///
/// # Errors
/// [`Error::Usage`] where a file, a variable or a proxy can't be used.
pub fn load(scenario: &Scenario) -> Result<Arc<Network>, Error> {
    let env = |name: &str| std::env::var(name).ok();
    let connect = &scenario.connect;
    let proxies = match &connect.proxy {
        Proxy::Env => Proxies::from_env(env)?,
        Proxy::Direct => Proxies::none(),
        Proxy::Url(url) => Proxies::through(&expand(url)?, env)?,
    };
    let mut secrets = scenario.secrets(expand)?;
    for login in proxies.logins() {
        secrets.add_login(&login);
    }
    let network = Network::plain(connect.timeout.unwrap_or(Connect::USUAL_TIMEOUT))
        .with_proxies(proxies)
        .with_secrets(secrets);
    // Reading hundreds of authorities is for those who need them; files that the user named are looked at in any case.
    let network = if speaks_tls(scenario) || connect.tls != Settings::default() {
        network.with_tls(Tls::load(&connect.tls)?)
    } else {
        network
    };
    Ok(Arc::new(network))
}

fn expand(text: &str) -> Result<String, Error> {
    Ok(Template::parse(text)?.expand(&Values::default(), Place::Text))
}

fn speaks_tls(scenario: &Scenario) -> bool {
    let publish = match &scenario.publish.via {
        Via::Http { url, .. } => Some(url),
        Via::Command(_) | Via::Observe => None,
    };
    let urls = [
        Some(&scenario.target.url),
        scenario.target.ready.as_ref(),
        scenario.reload.as_ref(),
        publish,
    ];
    urls.into_iter().flatten().any(|url| {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        ["wss", "https"].contains(&scheme.to_ascii_lowercase().as_str())
    })
}
