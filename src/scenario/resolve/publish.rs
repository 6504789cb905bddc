//! Who publishes, and how.

use super::super::draft::{Draft, Given};
use super::super::template::holds;
use super::super::words::Rate;
use super::super::{Publish, Via};
use super::or;
use super::server::Owner;
use crate::error::Error;

/// Where herd publishes to the embedded server.
const EMBEDDED_URL: &str = "http://127.0.0.1:{port}/v1/publish";

impl Draft {
    pub(super) fn publication(
        &self,
        owner: Owner,
        implied: &mut Vec<String>,
    ) -> Result<Publish, Error> {
        let draft = &self.publish;
        let via = self.via(owner, implied)?;
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
        Ok(Publish {
            via,
            rate: or(&draft.rate, |Rate(rate)| rate, 20.0),
            body: draft
                .body
                .as_ref()
                .map_or("{payload}".into(), |given| given.value.clone()),
            answer_id: self
                .pointer(&draft.answer_id)?
                .unwrap_or_else(|| "/id".into()),
            answer_position: self.pointer(&draft.answer_position)?,
            idempotent: or(&draft.idempotent, |i| i, owner == Owner::Embedded),
        })
    }

    fn via(&self, owner: Owner, implied: &mut Vec<String>) -> Result<Via, Error> {
        let draft = &self.publish;
        let observe = draft.observe.as_ref().filter(|given| given.value);
        if let Some(observe) = observe {
            let ways = [&draft.url, &draft.cmd];
            if let Some(way) = ways.into_iter().flatten().next() {
                let why = "herd either publishes or observes; leave one out";
                return Err(self.contradiction(&observe.origin, &way.origin, why));
            }
            return Ok(Via::Observe);
        }
        self.needs_target(&draft.url, owner)?;
        self.needs_target(&draft.cmd, owner)?;
        let headers = self.headers(&draft.headers)?;
        match (&draft.url, &draft.cmd) {
            (Some(url), Some(cmd)) => {
                let why = "events go one way; leave one out";
                Err(self.contradiction(&url.origin, &cmd.origin, why))
            }
            (Some(url), None) => {
                self.own_url(url, owner)?;
                let url = url.value.clone();
                Ok(Via::Http { url, headers })
            }
            (None, Some(cmd)) => Ok(Via::Command(self.command(cmd)?.to_owned())),
            (None, None) if owner == Owner::Embedded => Ok(Via::Http {
                url: EMBEDDED_URL.into(),
                headers,
            }),
            (None, None) => self.observe(implied),
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
