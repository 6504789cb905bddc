//! What of a scenario nobody may see: header values, logins, query values, and whatever comes from the environment or a
//! file.

use super::template::{outside_texts, private_parts};
use super::{Credentials, Proxy, Scenario, Via, templates};
use crate::error::Error;
use crate::secrets::Secrets;

impl Scenario {
    /// Every secret that the scenario's server, its publisher's and its proxy may come to see, and repeat. `expand` fills
    /// a template in; what differs from client to client stays as it was written.
    ///
    /// # Errors
    /// Those of `expand`.
    pub fn secrets(
        &self,
        expand: impl Fn(&str) -> Result<String, Error>,
    ) -> Result<Secrets, Error> {
        let mut found = Found {
            secrets: Secrets::none(),
            expand,
        };
        found.url(&self.target.url)?;
        found.lines(&self.connect.headers)?;
        let profile = &self.connect.profile;
        for template in templates(profile) {
            found.outside(template)?;
        }
        for (name, value) in &profile.headers {
            let text = (found.expand)(value)?;
            found.secrets.add_header(name, &text);
        }
        for protocol in &self.connect.subprotocols {
            found.outside(protocol)?;
        }
        match &self.connect.credentials {
            Some(Credentials::User(login)) => found.login(login)?,
            Some(Credentials::Bearer(token)) => found.text(token)?,
            None => {}
        }
        for url in [&self.target.ready, &self.reload].into_iter().flatten() {
            found.url(url)?;
        }
        if let Via::Http { url, headers } = &self.publish.via {
            found.url(url)?;
            found.lines(headers)?;
        }
        if let Proxy::Url(url) = &self.connect.proxy {
            found.url(url)?;
        }
        Ok(found.secrets)
    }
}

struct Found<F> {
    secrets: Secrets,
    expand: F,
}

impl<F: Fn(&str) -> Result<String, Error>> Found<F> {
    /// What comes from outside, wherever it stands.
    fn outside(&mut self, template: &str) -> Result<(), Error> {
        for placeholder in outside_texts(template) {
            let text = (self.expand)(placeholder)?;
            self.secrets.add(&text);
        }
        Ok(())
    }

    fn text(&mut self, template: &str) -> Result<(), Error> {
        self.outside(template)?;
        let text = (self.expand)(template)?;
        self.secrets.add(&text);
        Ok(())
    }

    fn login(&mut self, template: &str) -> Result<(), Error> {
        self.outside(template)?;
        let text = (self.expand)(template)?;
        self.secrets.add_login(&text);
        Ok(())
    }

    fn lines(&mut self, lines: &[String]) -> Result<(), Error> {
        for line in lines {
            self.outside(line)?;
            let text = (self.expand)(line)?;
            if let Some((name, value)) = text.split_once(':') {
                self.secrets.add_header(name, value);
            }
        }
        Ok(())
    }

    fn url(&mut self, url: &str) -> Result<(), Error> {
        self.outside(url)?;
        let (user, values) = private_parts(url);
        if let Some(user) = user {
            let text = (self.expand)(user)?;
            self.secrets.add_login(&text);
            let decoded = percent_encoding::percent_decode_str(&text).decode_utf8_lossy();
            self.secrets.add_login(&decoded);
        }
        for value in values {
            // What is left unfilled is another value for each client and dial.
            if !value.contains('{') || !outside_texts(value).is_empty() {
                self.text(value)?;
            }
        }
        Ok(())
    }
}
