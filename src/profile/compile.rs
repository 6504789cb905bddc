//! From what was written to what runs: every mistake in a profile is found here, before the run.

mod frames;
mod values;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::decode::{Decoding, Extract, Rule};
use super::spec::{Spec, When};
use super::talk::{Beat, Span};
use super::{Pointers, Profile, Refusal, Transport};
use crate::history::{Duplicates, IdKind};
use crate::template::Template;
use values::{
    KNOWN, Refused, bytes_regex, codes, is_name, is_query_name, is_token, pointer, refuse, stranger,
};

pub(super) use values::{Codes, holds_cursor};

/// How long the open script may take where the profile says nothing.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The statuses of HTTP (RFC 9110).
const STATUSES: RangeInclusive<u16> = 100..=599;
/// The close codes of WebSockets (RFC 6455), 1005 and 1006 included: a frame without a code, and no frame.
const CLOSE_CODES: RangeInclusive<u16> = 1000..=4999;

/// What the parts of a profile must agree on.
struct Scope<'a> {
    spec: &'a Spec,
    names: Vec<String>,
}

impl Profile {
    /// Compiles a profile; environment variables and files that its templates name are read now.
    ///
    /// # Errors
    /// The first mistake, with its key and what to do about it.
    pub fn compile(spec: &Spec, pointers: &Pointers) -> Result<Self, Refusal> {
        let mut spec = spec.clone();
        if let Some(id) = &pointers.id {
            spec.event.id = Some(id.clone());
        }
        if let Some(seq) = &pointers.seq {
            spec.event.seq = vec![seq.clone()];
        }
        let scope = Scope::new(&spec)?;
        scope.plain()?;
        let (rules, event) = (scope.rules()?, scope.event()?);
        scope.cursor(&event, &rules)?;
        let compiled = Self {
            query: scope.pairs("query", &spec.query, is_query_name)?,
            headers: scope.pairs("headers", &spec.headers, is_token)?,
            steps: scope.steps()?,
            decoding: scope.decoding()?,
            beat: scope.beat()?,
            changed: scope.changed()?,
            status: codes("status", &spec.status, &STATUSES)?,
            close: codes("close", &spec.close, &CLOSE_CODES)?,
            timeout: spec.timeout.unwrap_or(TIMEOUT),
            rules,
            event,
            names: scope.names,
            spec: Spec::default(),
        };
        Ok(Self { spec, ..compiled })
    }
}

impl<'a> Scope<'a> {
    fn new(spec: &'a Spec) -> Refused<Self> {
        let mut names = Vec::new();
        for (i, step) in spec.open.iter().enumerate() {
            for name in step.capture.keys() {
                let key = format!("open[{}].capture.{name}", i + 1);
                if !is_name(name) {
                    refuse(&key, "a name is made of a-z, 0-9, - and _; use such a one")?;
                }
                if KNOWN.contains(&name.as_str()) {
                    refuse(&key, "that hole is herd's own; use another name")?;
                }
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        Ok(Self { spec, names })
    }

    /// What needs nothing else.
    fn plain(&self) -> Refused<()> {
        let spec = self.spec;
        if spec
            .path
            .as_ref()
            .is_some_and(|path| !path.starts_with('/'))
        {
            refuse("path", "a path begins with /; write for example \"/live\"")?;
        }
        if spec.timeout.is_some_and(|time| time.is_zero()) {
            refuse("timeout", "no time at all is left; use more than 0s")?;
        }
        if spec.contiguous && spec.ids != Some(IdKind::Integer) {
            refuse(
                "contiguous",
                "only integers can be without holes; say ids = \"integer\"",
            )?;
        }
        if spec.duplicates == Duplicates::Marked && spec.event.redelivered.is_none() {
            refuse(
                "duplicates",
                "nothing says where the mark stands; say event.redelivered",
            )?;
        }
        if spec.subprotocols.iter().any(|name| !is_token(name)) {
            refuse(
                "subprotocols",
                "one of them is no token; write names such as \"chat.v1\"",
            )?;
        }
        if spec
            .reset
            .header
            .as_ref()
            .is_some_and(|name| !is_token(name))
        {
            refuse("reset.header", "that is no header's name")?;
        }
        if self.is_sse() {
            let talk = [
                ("open", !spec.open.is_empty()),
                ("beat.send", spec.beat.send.is_some()),
                ("subprotocols", !spec.subprotocols.is_empty()),
            ];
            if let Some((key, _)) = talk.into_iter().find(|(_, said)| *said) {
                refuse(
                    key,
                    "nothing can be said over an event stream; use transport = \"ws\", or leave it out",
                )?;
            }
        }
        Ok(())
    }

    fn is_sse(&self) -> bool {
        self.spec.transport == Transport::Sse
    }

    fn template(&self, key: &str, text: &str) -> Refused<Template> {
        if let Some(hole) = stranger(text, &self.names) {
            refuse(
                key,
                format!(
                    "nothing captures what {hole} holds; add a capture of that name to a step of open, or use {{cursor}}, {{client}}, {{n}}, {{env:NAME}}, {{file:PATH}}"
                ),
            )?;
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        Template::compile(text, &names).or_else(|e| refuse(key, e))
    }

    fn maybe_template(&self, key: &str, text: &Option<String>) -> Refused<Option<Template>> {
        text.as_ref()
            .map(|text| self.template(key, text))
            .transpose()
    }

    fn pairs(
        &self,
        key: &str,
        pairs: &BTreeMap<String, String>,
        fit: impl Fn(&str) -> bool,
    ) -> Refused<Vec<(String, Template)>> {
        let pair = |(name, text): (&String, &String)| {
            let key = format!("{key}.{name}");
            if !fit(name) {
                refuse(&key, "that is no name; write it as it goes over the wire")?;
            }
            Ok((name.clone(), self.template(&key, text)?))
        };
        pairs.iter().map(pair).collect()
    }

    /// Who sends a cursor, or tells resumes apart, must know where one stands.
    fn cursor(&self, event: &Extract, rules: &[Rule]) -> Refused<()> {
        let knows = event.id.is_some()
            || event.cursor.iter().any(Option::is_some)
            || rules.iter().any(|rule| rule.cursor.is_some());
        let spec = self.spec;
        let pairs = |name: &'static str, pairs: &'a BTreeMap<String, String>| {
            pairs
                .iter()
                .map(move |(key, text)| (format!("{name}.{key}"), text))
        };
        let said = spec.open.iter().enumerate().flat_map(|(i, step)| {
            let texts = [&step.send, &step.otherwise].into_iter().flatten();
            texts.map(move |text| (format!("open[{}].send", i + 1), text))
        });
        let mut texts = pairs("query", &spec.query)
            .chain(pairs("headers", &spec.headers))
            .chain(said);
        let sends = texts
            .find(|(_, text)| holds_cursor(text))
            .map(|(key, _)| key);
        let asks = rules
            .iter()
            .position(|rule| rule.when.on == Some(When::Resume));
        match sends.or(asks.map(|i| format!("frame[{}].when.on", i + 1))) {
            Some(key) if !knows => refuse(
                key,
                "nothing can be resumed, because no event has a cursor; say event.id or event.cursor",
            ),
            _ => Ok(()),
        }
    }

    fn decoding(&self) -> Refused<Decoding> {
        let given = &self.spec.decoding;
        let split = match given.split.as_deref() {
            Some("") => refuse(
                "decoding.split",
                "nothing stands between frames; leave it out",
            )?,
            Some(text) => bytes_regex("decoding.split", &Some(regex::escape(text)))?,
            None => None,
        };
        let strip = bytes_regex("decoding.strip", &given.strip)?;
        if let Some(strip) = &strip
            && !strip.capture_names().flatten().any(|name| name == "json")
        {
            refuse(
                "decoding.strip",
                "it has no group json; write (?<json>..) around what is JSON",
            )?;
        }
        let reparse = given
            .reparse
            .iter()
            .map(|at| pointer("decoding.reparse", at));
        Ok(Decoding {
            split,
            strip,
            json: given.json,
            reparse: reparse.collect::<Refused<_>>()?,
            each: given
                .each
                .as_ref()
                .map(|at| pointer("decoding.each", at))
                .transpose()?,
        })
    }

    fn beat(&self) -> Refused<Beat> {
        let beat = &self.spec.beat;
        match (&beat.send, &beat.every) {
            (Some(_), None) => refuse(
                "beat.every",
                "how often is it said? add a time such as \"25s\"",
            )?,
            (None, Some(_)) => refuse("beat.send", "what is said? add it, or leave out every")?,
            _ => {}
        }
        Ok(Beat {
            send: self.maybe_template("beat.send", &beat.send)?,
            every: self.span("beat.every", &beat.every)?,
            jitter: beat.jitter,
            dead: self.span("beat.dead", &beat.dead)?,
        })
    }

    fn span(&self, key: &str, text: &Option<String>) -> Refused<Option<Span>> {
        let Some(text) = text else { return Ok(None) };
        let mut span = Span {
            fixed: Duration::ZERO,
            named: Vec::new(),
            unit: self.spec.beat.unit,
        };
        for term in text.split('+').map(str::trim) {
            if let Some(name) = self.names.iter().position(|name| name == term) {
                span.named.push(name);
            } else if let Ok(time) = humantime::parse_duration(term) {
                span.fixed = span.fixed.saturating_add(time);
            } else {
                refuse(
                    key,
                    format!("{term:?} is neither a duration such as \"5s\" nor a capture of open"),
                )?;
            }
        }
        if span.named.is_empty() && span.fixed.is_zero() {
            refuse(key, "no time at all is left; use more than 0s")?;
        }
        Ok(Some(span))
    }

    fn changed(&self) -> Refused<Vec<usize>> {
        let place = |name: &String| match self.names.iter().position(|known| known == name) {
            Some(place) => Ok(place),
            None => refuse(
                "reset.changed",
                format!("nothing captures {name}; add it to a step of open"),
            ),
        };
        self.spec.reset.changed.iter().map(place).collect()
    }
}
