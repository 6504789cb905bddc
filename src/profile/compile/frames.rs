//! The parts of a profile that read frames: steps, conditions, rules, and where in an event things stand.

use std::collections::BTreeMap;

use regex::Regex;

use super::super::decode::{Extract, Rule};
use super::super::extract::Extractor;
use super::super::matcher::{Matcher, Thing};
use super::super::spec::{self, Class};
use super::super::talk::Step;
use super::Scope;
use super::values::{Refused, bytes_regex, no_regex, pointer, refuse, scalar};

impl Scope<'_> {
    pub(super) fn steps(&self) -> Refused<Vec<Step>> {
        let step = |(i, step): (usize, &spec::Step)| {
            let key = |name: &str| format!("open[{}]{name}", i + 1);
            if step.send.is_none() && step.expect.is_none() {
                refuse(
                    key(""),
                    "the step neither says nor waits for anything; give it send or expect",
                )?;
            }
            if step.send.is_none() && step.otherwise.is_some() {
                refuse(
                    key(".otherwise"),
                    "there is no send that could be left out; call it send",
                )?;
            }
            if step.expect.is_none() && !step.capture.is_empty() {
                refuse(
                    key(".capture"),
                    "no frame is waited for; say which with expect",
                )?;
            }
            let expect = step.expect.as_ref();
            let expect = expect
                .map(|m| self.matcher(&key(".expect"), m))
                .transpose()?;
            let groups = groups(expect.as_ref());
            let capture = step.capture.iter().map(|(name, text)| {
                let at = self.extractor(&key(&format!(".capture.{name}")), text, &groups)?;
                let place = self.names.iter().position(|known| known == name);
                Ok((place.unwrap_or_default(), at))
            });
            Ok(Step {
                send: self.maybe_template(&key(".send"), &step.send)?,
                otherwise: self.maybe_template(&key(".otherwise"), &step.otherwise)?,
                capture: capture.collect::<Refused<_>>()?,
                expect,
            })
        };
        self.spec.open.iter().enumerate().map(step).collect()
    }

    fn matcher(&self, key: &str, given: &spec::Matcher) -> Refused<Matcher> {
        let key = |name: &str| format!("{key}.{name}");
        if self.is_sse() && given.kind.is_some() {
            refuse(key("kind"), "an event stream has text only; leave it out")?;
        }
        if !self.is_sse() && !given.event.is_empty() {
            refuse(
                key("event"),
                "only an event stream names its events; use equals or raw",
            )?;
        }
        let things = |name: &str, list: &[String]| -> Refused<Vec<Thing>> {
            let thing = |text: &String| match text.as_str() {
                "seq" => Ok(Thing::Own),
                text => pointer(&key(name), text).map(Thing::At),
            };
            list.iter().map(thing).collect()
        };
        let values = |name: &str, map: &BTreeMap<String, toml::Value>| {
            let pair = |(at, value): (&String, &toml::Value)| {
                let key = key(&format!("{name}.{at}"));
                Ok((pointer(&key, at)?, scalar(&key, value)?))
            };
            map.iter().map(pair).collect::<Refused<Vec<_>>>()
        };
        let matches = given.matches.iter().map(|(at, text)| {
            let key = key(&format!("matches.{at}"));
            let regex = Regex::new(text).or_else(|e| refuse(&key, no_regex(&e)))?;
            Ok((pointer(&key, at)?, regex))
        });
        Ok(Matcher {
            event: given.event.clone(),
            kind: given.kind,
            raw: bytes_regex(&key("raw"), &given.raw)?,
            exists: things("exists", &given.exists)?,
            absent: things("absent", &given.absent)?,
            equals: values("equals", &given.equals)?,
            differs: values("differs", &given.differs)?,
            matches: matches.collect::<Refused<_>>()?,
            on: given.on,
        })
    }

    fn extractor(&self, key: &str, text: &str, groups: &[String]) -> Refused<Extractor> {
        let at = Extractor::parse(text).or_else(|e| refuse(key, e))?;
        if at.needs_sse() && !self.is_sse() {
            refuse(key, "only an event stream has sse:id; use a JSON Pointer")?;
        }
        let unknown = at
            .groups()
            .find(|name| !groups.iter().any(|group| group == name));
        match unknown {
            Some(name) => refuse(
                key,
                format!("no pattern here has a group {name}; write (?<{name}>..) into raw"),
            ),
            None => Ok(at),
        }
    }

    pub(super) fn rules(&self) -> Refused<Vec<Rule>> {
        let list = &self.spec.frame;
        if !list.iter().any(|rule| {
            rule.is
                .iter()
                .any(|c| matches!(c, Class::Event | Class::Batch))
        }) {
            refuse(
                "frame",
                "no rule reads events; add [[frame]] with is = \"event\"",
            )?;
        }
        if let Some(i) = list
            .iter()
            .position(|rule| rule.when == spec::Matcher::default())
            && i + 1 < list.len()
        {
            refuse(
                format!("frame[{}]", i + 2),
                "the rule before it fits every frame, so that this one never decides; give that one a condition, or put it last",
            )?;
        }
        list.iter()
            .enumerate()
            .map(|(i, rule)| self.rule(i + 1, rule))
            .collect()
    }

    fn rule(&self, number: usize, rule: &spec::Rule) -> Refused<Rule> {
        let key = |name: &str| format!("frame[{number}]{name}");
        let is = |wanted: &[Class]| rule.is.iter().any(|class| wanted.contains(class));
        if rule.is.is_empty() {
            refuse(
                key(".is"),
                "the rule says nothing of what the frame is; name a class",
            )?;
        }
        if is(&[Class::Ignore]) && rule.is.len() > 1 {
            refuse(
                key(".is"),
                "what is ignored is nothing else; leave out ignore, or the other classes",
            )?;
        }
        if (1..rule.is.len()).any(|i| rule.is[..i].contains(&rule.is[i])) {
            refuse(
                key(".is"),
                "one class stands there twice, and would count twice; name it once",
            )?;
        }
        let needs = [
            (
                ".at",
                rule.at.is_some(),
                is(&[Class::Event, Class::Batch]),
                "event or batch",
            ),
            (".id", rule.id.is_some(), is(&[Class::Reset]), "reset"),
            (
                ".cursor",
                rule.cursor.is_some(),
                is(&[Class::Cursor]),
                "cursor",
            ),
            (
                ".why",
                rule.why.is_some(),
                is(&[Class::ResumeError, Class::Fatal]),
                "resume-error or fatal",
            ),
            (
                ".reply",
                rule.reply.is_some(),
                is(&[Class::Heartbeat]),
                "heartbeat",
            ),
        ];
        if let Some((name, _, _, class)) =
            needs.into_iter().find(|(_, said, fits, _)| *said && !fits)
        {
            refuse(
                key(name),
                format!("only a rule that is {class} uses it; leave it out"),
            )?;
        }
        if is(&[Class::Batch]) && rule.at.is_none() {
            refuse(key(".at"), "a batch needs the pointer to its array; add at")?;
        }
        if rule.reply.is_some() && self.is_sse() {
            refuse(
                key(".reply"),
                "nothing can be said over an event stream; leave it out",
            )?;
        }
        if rule.reply.is_some() && rule.when.raw.is_none() {
            refuse(
                key(".when.raw"),
                "a heartbeat that is answered must be found without reading JSON; give raw, beside other conditions",
            )?;
        }
        let when = self.matcher(&key(".when"), &rule.when)?;
        let groups = groups(Some(&when));
        let place = |name: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| self.extractor(&key(name), text, &groups))
                .transpose()
        };
        Ok(Rule {
            at: rule
                .at
                .as_ref()
                .map(|at| pointer(&key(".at"), at))
                .transpose()?,
            id: place(".id", &rule.id)?,
            cursor: place(".cursor", &rule.cursor)?,
            why: place(".why", &rule.why)?,
            reply: self.maybe_template(&key(".reply"), &rule.reply)?,
            is: rule.is.clone(),
            when,
        })
    }

    pub(super) fn event(&self) -> Refused<Extract> {
        let event = &self.spec.event;
        // Every rule that reads events must have a group that is used here.
        let readers = self.spec.frame.iter().enumerate();
        let readers = readers.filter(|(_, rule)| {
            rule.is
                .iter()
                .any(|c| matches!(c, Class::Event | Class::Batch))
        });
        let mut common: Option<Vec<String>> = None;
        for (i, rule) in readers {
            let raw = bytes_regex(&format!("frame[{}].when.raw", i + 1), &rule.when.raw)?;
            let here: Vec<String> = raw
                .iter()
                .flat_map(|raw| raw.capture_names().flatten())
                .map(Into::into)
                .collect();
            common = Some(match common {
                None => here,
                Some(common) => common
                    .into_iter()
                    .filter(|name| here.contains(name))
                    .collect(),
            });
        }
        let groups = common.unwrap_or_default();
        let place = |name: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| self.extractor(&format!("event.{name}"), text, &groups))
                .transpose()
        };
        let at = |name: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| pointer(&format!("event.{name}"), text))
                .transpose()
        };
        if event.id.is_none() && event.seq.is_empty() {
            refuse(
                "event.id",
                "nothing says how an event is known again; say where its id stands, or herd's number (seq)",
            )?;
        }
        let seq = event.seq.iter().map(|text| pointer("event.seq", text));
        let cursor = event.cursor.iter().map(|text| match text.as_str() {
            "id" => Ok(None),
            text => self.extractor("event.cursor", text, &groups).map(Some),
        });
        let cursor = match event.cursor.is_empty() {
            true => vec![None],
            false => cursor.collect::<Refused<_>>()?,
        };
        Ok(Extract {
            id: place("id", &event.id)?,
            seq: seq.collect::<Refused<_>>()?,
            cursor,
            order: place("order", &event.order)?,
            epoch: place("epoch", &event.epoch)?,
            redelivered: at("redelivered", &event.redelivered)?,
            content: at("content", &event.content)?,
        })
    }
}

fn groups(matcher: Option<&Matcher>) -> Vec<String> {
    let raw = matcher.and_then(|matcher| matcher.raw.as_ref());
    raw.iter()
        .flat_map(|raw| raw.capture_names().flatten())
        .map(Into::into)
        .collect()
}
