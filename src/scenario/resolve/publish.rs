//! Who publishes, and how.

use super::super::draft::{Draft, Given, Slot};
use super::super::template::{holds, masked};
use super::super::words::Rate;
use super::super::{Publish, Via};
use super::or;
use super::server::Owner;
use crate::error::Error;
use crate::profile::Profile;
use crate::profile::spec::Recipe;

/// Where herd publishes to the embedded server.
const EMBEDDED_URL: &str = "http://127.0.0.1:{port}/v1/publish";

/// A way to publish, and what the profile adds to it.
struct Way<'a> {
    via: Via,
    recipe: Option<&'a Recipe>,
}

impl Draft {
    pub(super) fn publication(
        &self,
        owner: Owner,
        profile: &Profile,
        implied: &mut Vec<String>,
    ) -> Result<Publish, Error> {
        let draft = &self.publish;
        let Way { via, recipe } = self.way(owner, profile, implied)?;
        if via == Via::Observe {
            let why = "herd publishes nothing here, it observes what others publish";
            self.idle(&draft.rate, why)?;
            self.idle(&draft.body, why)?;
        }
        if let Some(Given { value, origin }) = &draft.body
            && !holds(value, "seq")
            && !holds(&value.replace("\"{payload}\"", ""), "payload")
        {
            let what = "without {seq}, or {payload} outside quotes, no event could be told from another; put one in";
            return Err(self.refuse(origin, what));
        }
        let usual = recipe.cloned().unwrap_or_default();
        let given = |slot: &Slot<String>| slot.as_ref().map(|given| given.value.clone());
        let idempotent = owner == Owner::Embedded || usual.idempotent;
        Ok(Publish {
            via,
            rate: or(&draft.rate, |Rate(rate)| rate, 20.0),
            body: given(&draft.body)
                .or(usual.body)
                .unwrap_or_else(|| "{payload}".into()),
            answer_id: self
                .pointer(&draft.answer_id)?
                .or(usual.answer_id)
                .unwrap_or_else(|| "/id".into()),
            answer_position: self
                .pointer(&draft.answer_position)?
                .or(usual.answer_position),
            idempotent: or(&draft.idempotent, |i| i, idempotent),
        })
    }

    fn way<'a>(
        &self,
        owner: Owner,
        profile: &'a Profile,
        implied: &mut Vec<String>,
    ) -> Result<Way<'a>, Error> {
        let draft = &self.publish;
        let recipe = profile.spec().publish.as_ref();
        let recipe = recipe.and_then(|recipe| Some((recipe, recipe.path.as_deref()?)));
        let plain = |via| Way { via, recipe: None };
        let observe = draft.observe.as_ref().filter(|given| given.value);
        if let Some(observe) = observe {
            let ways = [&draft.url, &draft.cmd];
            if let Some(way) = ways.into_iter().flatten().next() {
                let why = "herd either publishes or observes; leave one out";
                return Err(self.contradiction(&observe.origin, &way.origin, why));
            }
            return Ok(plain(Via::Observe));
        }
        self.needs_target(&draft.url, owner)?;
        self.needs_target(&draft.cmd, owner)?;
        let headers = self.headers(&draft.headers)?;
        match (&draft.url, &draft.cmd, recipe) {
            (Some(url), Some(cmd), _) => {
                let why = "events go one way; leave one out";
                Err(self.contradiction(&url.origin, &cmd.origin, why))
            }
            (Some(url), None, recipe) => {
                self.own_url(url, owner)?;
                let url = &url.value;
                match recipe.filter(|_| has_no_path(url)) {
                    Some((recipe, path)) => {
                        let url = format!("{}{path}", url.trim_end_matches('/'));
                        Ok(by_recipe(recipe, url, headers, implied))
                    }
                    None => Ok(plain(Via::Http {
                        url: url.clone(),
                        headers,
                    })),
                }
            }
            (None, Some(cmd), _) => Ok(plain(Via::Command(self.command(cmd)?.to_owned()))),
            (None, None, _) if owner == Owner::Embedded => Ok(plain(Via::Http {
                url: EMBEDDED_URL.into(),
                headers,
            })),
            (None, None, Some((recipe, path)))
                if owner == Owner::Command && draft.observe.is_none() =>
            {
                let url = format!("http://127.0.0.1:{{port}}{path}");
                Ok(by_recipe(recipe, url, headers, implied))
            }
            (None, None, _) => self.observe(implied).map(plain),
        }
    }

    fn observe(&self, implied: &mut Vec<String>) -> Result<Via, Error> {
        if let Some(refused) = &self.publish.observe {
            let what = "nothing else says how herd shall publish; add publish.url or publish.cmd";
            return Err(self.refuse(&refused.origin, what));
        }
        implied.push(
            "no --publish-url and no --publish-cmd: herd observes what others publish (--observe)"
                .into(),
        );
        Ok(Via::Observe)
    }
}

fn by_recipe<'a>(
    recipe: &'a Recipe,
    url: String,
    mut headers: Vec<String>,
    implied: &mut Vec<String>,
) -> Way<'a> {
    implied.push(format!(
        "herd publishes as the profile says: POST {}",
        masked(&url, &[])
    ));
    let given = |name: &str| {
        let mut lines = headers.iter().filter_map(|line| line.split_once(':'));
        lines.any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let own = recipe.headers.iter().filter(|(name, _)| !given(name));
    let own: Vec<_> = own
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.extend(own);
    Way {
        via: Via::Http { url, headers },
        recipe: Some(recipe),
    }
}

/// Whether a URL names a host and nothing behind it.
fn has_no_path(url: &str) -> bool {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    !behind.trim_end_matches('/').contains(['/', '?'])
}
