//! Which profile, and whether what was written of it can be: a built-in one by its name, or a `[profile]` table that
//! stands for itself or changes one.

use super::super::Connect;
use super::super::draft::{Draft, Given, Origin, Slot};
use super::super::template::columns;
use crate::error::Error;
use crate::profile::{Pointers, Profile, ProfileName, Refusal, Spec, Transport};

impl Draft {
    /// The profile as it was named or written, and compiled: every mistake in it ends here, although the run compiles it
    /// again.
    pub(super) fn profile(&self) -> Result<(Spec, Profile), Error> {
        let spec = match (&self.profile, &self.connect.profile) {
            (Some(table), named) => self.written(table, named)?,
            (None, Some(named)) => Spec::builtin(named.value),
            (None, None) => Spec::builtin(self.usual()),
        };
        let pointers = Pointers {
            id: self.pointer(&self.connect.id)?,
            seq: self.pointer(&self.connect.seq)?,
        };
        let profile =
            Profile::compile(&spec, &pointers).map_err(|refusal| self.refuse_profile(&refusal))?;
        self.fits(&profile)?;
        Ok((spec, profile))
    }

    /// What the target's scheme stands for.
    fn usual(&self) -> ProfileName {
        match self.scheme().as_deref() {
            Some("http" | "https") => ProfileName::Sse,
            _ => ProfileName::After,
        }
    }

    fn scheme(&self) -> Option<String> {
        let url = &self.target.url.as_ref()?.value;
        Some(url.split_once("://")?.0.to_ascii_lowercase())
    }

    /// Profile and target speak of one transport.
    fn fits(&self, profile: &Profile) -> Result<(), Error> {
        let (Some(url), Some(scheme)) = (&self.target.url, self.scheme()) else {
            return Ok(());
        };
        let (what, right) = match (profile.transport(), scheme.as_str()) {
            (Transport::Sse, "ws" | "wss") => ("an event stream", "http:// address"),
            (Transport::Ws, "http" | "https") => ("a WebSocket", "ws:// address"),
            _ => return Ok(()),
        };
        let name = profile.spec().name.as_str();
        let what = format!(
            "the profile {name} speaks over {what}; give the target's {right}, or another profile (herd list profiles)"
        );
        Err(self.refuse(&url.origin, &what))
    }

    /// A `[profile]` table; `connect.profile` beside it names what it changes.
    fn written(
        &self,
        table: &Given<toml::Table>,
        named: &Slot<ProfileName>,
    ) -> Result<Spec, Error> {
        let mut keys = table.value.clone();
        if let Some(named) = named {
            let base = toml::Value::from(named.value.name());
            if keys.get("base").is_some_and(|given| *given != base) {
                let why = "a profile has one base; leave one out";
                return Err(self.contradiction(&named.origin, &self.at("base", table), why));
            }
            keys.insert("base".into(), base);
        }
        // The derived function of this name knows no base.
        let read = <Spec as serde::Deserialize>::deserialize(keys);
        read.map_err(|error: toml::de::Error| {
            let said = error.to_string();
            let said = said.trim_end().replace('\n', ", ");
            self.refuse(&table.origin, &said)
        })
    }

    /// Where a key of the `[profile]` table stands.
    fn at(&self, key: &str, table: &Given<toml::Table>) -> Origin {
        self.origin_of(&format!("profile.{key}"))
            .unwrap_or_else(|| table.origin.clone())
    }

    fn refuse_profile(&self, refusal: &Refusal) -> Error {
        let Some(table) = &self.profile else {
            // A built-in profile has no mistake of its own: what it lacks is a variable, a file or a pointer.
            let what = format!("the profile's {refusal}");
            return match (&self.connect.id, &self.connect.seq, &self.connect.profile) {
                (Some(Given { origin, .. }), ..)
                | (_, Some(Given { origin, .. }), _)
                | (_, _, Some(Given { origin, .. })) => self.refuse(origin, &what),
                (None, None, None) => Error::Usage(what),
            };
        };
        match self.origin_of(&format!("profile.{}", refusal.key)) {
            Some(origin) => self.refuse_as(&origin, &format!("profile.{refusal}")),
            None => self.refuse_as(&table.origin, &format!("profile.{refusal}")),
        }
    }

    /// Every column that is asked for has a file, and a file is asked for.
    pub(super) fn columns(&self, connect: &Connect, url: &str) -> Result<(), Error> {
        let mut lines = connect.texts().flat_map(columns);
        let mut frames = templates(&connect.profile).flat_map(columns);
        let wanted = columns(url).next().or_else(|| lines.next());
        let wanted = wanted.or_else(|| frames.next());
        match (&self.connect.clients_file, wanted) {
            (Some(file), None) => self.idle(
                &Some(file.clone()),
                "nothing asks for a column of it, as {col:NAME} does",
            ),
            (None, Some(column)) => {
                let what = format!(
                    "{{col:{column}}} is a column of a file that isn't named; name it with connect.clients-file (--clients-file)"
                );
                let given = (&self.target.url, &self.connect.headers, &self.profile);
                Err(match given {
                    (Some(url), ..) if columns(&url.value).next().is_some() => {
                        self.refuse(&url.origin, &what)
                    }
                    (_, Some(lines), _)
                        if lines.value.iter().any(|l| columns(l).next().is_some()) =>
                    {
                        self.refuse(&lines.origin, &what)
                    }
                    (_, _, Some(table)) => self.refuse(&table.origin, &what),
                    _ => Error::Usage(what),
                })
            }
            _ => Ok(()),
        }
    }
}

/// The texts of a profile that are filled in for each client.
pub(crate) fn templates(spec: &Spec) -> impl Iterator<Item = &str> {
    let pairs = spec.query.values().chain(spec.headers.values());
    let said = spec
        .open
        .iter()
        .flat_map(|step| [&step.send, &step.otherwise]);
    let replies = spec.frame.iter().map(|rule| &rule.reply);
    let frames = said.chain(replies).chain([&spec.beat.send]).flatten();
    pairs.chain(frames).map(String::as_str)
}

impl Connect {
    /// The profile's name, for people.
    #[must_use]
    pub fn profile_name(&self) -> &str {
        match self.profile.name.as_str() {
            "" => "custom",
            name => name,
        }
    }

    /// The names that clients capture, besides which no other stands for something of the server's in templates.
    pub(crate) fn names(&self) -> Vec<&str> {
        let steps = self.profile.open.iter();
        steps
            .flat_map(|step| step.capture.keys().map(String::as_str))
            .collect()
    }
}
