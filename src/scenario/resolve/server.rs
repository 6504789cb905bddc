//! Whose server is under test, where it is, and who restarts it.

use std::time::Duration;

use super::super::draft::{Draft, Given, Origin, Slot};
use super::super::template::{OWN, TARGET, filled, holds, resumes, stranger};
use super::super::{Pick, Plant, Server, Target};
use super::{nearest, or};
use crate::error::Error;
use crate::profile::{Profile, Transport};
use crate::server::defect::{Defect, PlantError, Planted};

/// Where clients reach the embedded server, by the profile's name: these are what it speaks.
const EMBEDDED_URLS: [(&str, &str); 3] = [
    (
        "after",
        "ws://127.0.0.1:{port}/v1/live?after={after}&client={client}",
    ),
    ("sse", "http://127.0.0.1:{port}/v1/events?client={client}"),
    ("resume", "ws://127.0.0.1:{port}/v1/resume?client={client}"),
];

/// Where clients of the profile `after` reach a supervised command, unless the user says otherwise.
const COMMAND_URL: &str = "ws://127.0.0.1:{port}/?after={after}";

/// Who runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Embedded,
    Command,
    Remote,
}

impl Draft {
    pub(super) fn owner(&self) -> Result<Owner, Error> {
        let draft = &self.target;
        let theirs = draft.server_cmd.as_ref().or(draft.url.as_ref());
        let Some(theirs) = theirs else {
            return Ok(Owner::Embedded);
        };
        let bugs = draft.defects.as_ref().map(|given| &given.origin);
        let slow = draft.slow_start.as_ref().map(|given| &given.origin);
        let keep = draft.keep.as_ref().map(|given| &given.origin);
        if let Some(ours) = bugs.or(keep).or(slow) {
            let why = "only herd's own server takes it; leave one out";
            return Err(self.contradiction(ours, &theirs.origin, why));
        }
        Ok(match &draft.server_cmd {
            Some(_) => Owner::Command,
            None => Owner::Remote,
        })
    }

    pub(super) fn target(
        &self,
        owner: Owner,
        profile: &Profile,
        implied: &mut Vec<String>,
    ) -> Result<Target, Error> {
        let draft = &self.target;
        let (servers, more_urls) = self.several(owner)?;
        let server = match &draft.server_cmd {
            Some(command) => Server::Command(self.command(command)?.to_owned()),
            None if owner == Owner::Remote => Server::Remote,
            None => Server::Embedded {
                planted: self.planted(servers)?,
                keep: self.keep()?,
                slow_start: self.target.slow_start.as_ref().map(|given| given.value.0),
            },
        };
        let url = match (&draft.url, owner) {
            (Some(given), _) => self.target_url(given, owner, profile, implied)?,
            (None, Owner::Embedded) => self.embedded_url(profile)?,
            (None, _) => {
                let url = command_url(profile);
                implied.push(format!(
                    "no --target: clients connect to {url} of the server that herd starts"
                ));
                url
            }
        };
        if let Some(ready) = &draft.ready {
            self.own_url(ready, owner)?;
        }
        for url in &more_urls {
            let given = Given {
                value: url.clone(),
                origin: self
                    .target
                    .url
                    .as_ref()
                    .map_or(Origin::Flag("--target"), |g| g.origin.clone()),
            };
            self.target_url(&given, owner, profile, &mut Vec::new())?;
        }
        Ok(Target {
            server,
            url,
            more_urls,
            servers,
            pick: or(&draft.pick, |pick| pick, Pick::default()),
            ready: draft.ready.as_ref().map(|given| given.value.clone()),
            ready_limit: self.positive(&draft.ready_limit, Duration::from_secs(30))?,
            watch_pid: self.watch_pid(owner)?,
        })
    }

    fn watch_pid(&self, owner: Owner) -> Result<Option<u32>, Error> {
        let given = &self.target.watch_pid;
        if owner != Owner::Remote {
            self.idle(given, "herd watches the server that it starts by itself")?;
        }
        if given.is_none() || owner != Owner::Remote {
            return Ok(None);
        }
        self.count(given, 1..=i32::MAX as u32, 1).map(Some)
    }

    fn embedded_url(&self, profile: &Profile) -> Result<String, Error> {
        let name = profile.spec().name.as_str();
        let spoken = EMBEDDED_URLS.iter().find(|(known, _)| *known == name);
        if let Some((_, url)) = spoken {
            return Ok((*url).to_owned());
        }
        let what = format!(
            "herd's own server doesn't speak {}; it speaks after, sse and resume. Name the server to test with --target or --server-cmd",
            if name.is_empty() {
                "this profile"
            } else {
                name
            }
        );
        let named = self.connect.profile.as_ref().map(|given| &given.origin);
        match named.or(self.profile.as_ref().map(|given| &given.origin)) {
            Some(origin) => Err(self.refuse(origin, &what)),
            None => Err(Error::Usage(what)),
        }
    }

    fn planted(&self, servers: u16) -> Result<Vec<Plant>, Error> {
        let Some(Given { value, origin }) = &self.target.defects else {
            return Ok(Vec::new());
        };
        let plant = |text: &String| {
            let (defect, server) = match text.rsplit_once('@') {
                Some((defect, server)) => (defect, Some(server)),
                None => (text.as_str(), None),
            };
            let defect = defect.parse::<Planted>().map_err(|error| {
                let what = match error {
                    PlantError::Unknown(name) => unknown(
                        "defect",
                        &name,
                        Defect::ALL.iter().map(|known| known.name()),
                    ),
                    error => error.to_string(),
                };
                self.refuse(origin, &what)
            })?;
            if servers > 1 && defect.defect.begins_ids_anew() {
                let what = format!(
                    "{defect} begins the ids anew, and several servers share theirs; leave it out, or target.servers"
                );
                return Err(self.refuse(origin, &what));
            }
            let known = |server: &str| {
                let number = server.parse::<u16>().ok();
                number.filter(|number| (1..=servers).contains(number))
            };
            let server = server.map(|server| {
                known(server).ok_or_else(|| {
                    let what = format!(
                        "there is no server {} among the {servers} (target.servers); write NAME@1 for the first one",
                        server.escape_debug()
                    );
                    self.refuse(origin, &what)
                })
            });
            Ok(Plant {
                defect,
                server: server.transpose()?,
            })
        };
        value.iter().map(plant).collect()
    }

    fn keep(&self) -> Result<Option<u64>, Error> {
        match &self.target.keep {
            Some(given) if given.value.0 == 0 => {
                let what = "0 would keep nothing to replay; use 1 or more";
                Err(self.refuse(&given.origin, what))
            }
            kept => Ok(kept.as_ref().map(|given| given.value.0)),
        }
    }

    fn target_url(
        &self,
        given: &Given<String>,
        owner: Owner,
        profile: &Profile,
        implied: &mut Vec<String>,
    ) -> Result<String, Error> {
        let Given { value, origin } = given;
        let (scheme, _) = value.split_once("://").unwrap_or_default();
        match scheme.to_ascii_lowercase().as_str() {
            "ws" | "wss" | "http" | "https" => {}
            _ => return Err(self.refuse(origin, "not an address; write ws://host:port/path")),
        }
        let known: Vec<&str> = TARGET.into_iter().chain(profile.names()).collect();
        self.template(given, &known, owner)?;
        let mut pairs = profile.spec().query.iter();
        let cursor = pairs.find(|(_, template)| resumes(template));
        if let (false, Some((name, _))) = (resumes(value), cursor) {
            implied.push(format!(
                "{} says nothing of {{after}}: clients resume with {name}=<cursor> in its query",
                self.place(origin)
            ));
        }
        Ok(value.clone())
    }

    /// An address that herd itself calls.
    pub(super) fn own_url(&self, given: &Given<String>, owner: Owner) -> Result<(), Error> {
        let (scheme, _) = given.value.split_once("://").unwrap_or_default();
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => self.template(given, &OWN, owner),
            _ => Err(self.refuse(&given.origin, "not an address; write http://host:port/path")),
        }
    }

    fn template(&self, given: &Given<String>, known: &[&str], owner: Owner) -> Result<(), Error> {
        let Given { value, origin } = given;
        if let Some(stranger) = stranger(value, known) {
            let what = format!(
                "{} is no placeholder here; herd knows {}",
                stranger.escape_debug(),
                known
                    .iter()
                    .map(|name| match *name {
                        "env:" => "{env:NAME}".to_owned(),
                        "file:" => "{file:PATH}".to_owned(),
                        "col:" => "{col:NAME}".to_owned(),
                        name => format!("{{{name}}}"),
                    })
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            return Err(self.refuse(origin, &what));
        }
        if owner == Owner::Remote && holds(value, "port") {
            let what = "{port} is the port that herd picks for --server-cmd, and there is none; write the port itself";
            return Err(self.refuse(origin, what));
        }
        match url::Url::parse(&filled(value)) {
            Ok(url) if url.fragment().is_some() => {
                Err(self.refuse(origin, "a #fragment is never sent; leave it out"))
            }
            Ok(_) => Ok(()),
            Err(error) => {
                let what = format!("not an address ({error}); write scheme://host:port/path");
                Err(self.refuse(origin, &what))
            }
        }
    }

    /// Refuses what needs a server of the user's while herd's own is under test.
    pub(super) fn needs_target<T>(&self, slot: &Slot<T>, owner: Owner) -> Result<(), Error> {
        match slot {
            Some(given) if owner == Owner::Embedded => Err(self.refuse(
                &given.origin,
                "herd publishes to its own server itself; this is for somebody else's, so name it with --target or --server-cmd",
            )),
            _ => Ok(()),
        }
    }
}

/// Where clients reach a server that herd starts.
fn command_url(profile: &Profile) -> String {
    let scheme = match profile.transport() {
        Transport::Ws if profile.spec().name == "after" => return COMMAND_URL.to_owned(),
        Transport::Ws => "ws",
        Transport::Sse => "http",
    };
    let path = profile.path().unwrap_or("/");
    format!("{scheme}://127.0.0.1:{{port}}{path}")
}

/// Says that a name is unknown, and which one was perhaps meant.
pub(super) fn unknown<'a>(what: &str, word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let hint = match &nearest(word, names)[..] {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(" or ")),
    };
    format!(
        "unknown {what} \"{}\"; {hint}herd list {what}s shows all",
        word.escape_debug()
    )
}
