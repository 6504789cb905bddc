//! What a frame means: cut into parts, each part's first rule that fits, and what stands where in it. A pure function of
//! the frame and of whether its session resumes.

use regex::bytes::Regex;

use super::digest::digest;
use super::extract::{Extractor, Found, Place, Pointer};
use super::json::Value;
use super::matcher::{Matcher, Part};
use super::spec::{Class, Json};
use super::{Carried, Decoded, Moves, Profile, Reading};
use crate::template::Template;
use crate::transport::{Frame, Kind, safe};

/// How much of a frame is quoted as its own reason (bytes).
const QUOTED: usize = 200;

/// How bytes become something to look into, compiled.
#[derive(Debug, Clone)]
pub(super) struct Decoding {
    pub(super) split: Option<Regex>,
    pub(super) strip: Option<Regex>,
    pub(super) json: Json,
    pub(super) reparse: Vec<Pointer>,
    pub(super) each: Option<Pointer>,
}

/// A rule, compiled.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) is: Vec<Class>,
    pub(super) when: Matcher,
    pub(super) at: Option<Pointer>,
    pub(super) id: Option<Extractor>,
    pub(super) cursor: Option<Extractor>,
    pub(super) why: Option<Extractor>,
    pub(super) reply: Option<Template>,
}

/// Where in an event things stand, compiled.
#[derive(Debug, Clone)]
pub(super) struct Extract {
    pub(super) id: Option<Extractor>,
    pub(super) seq: Vec<Pointer>,
    /// The first that is there; none = the id.
    pub(super) cursor: Vec<Option<Extractor>>,
    pub(super) order: Option<Extractor>,
    pub(super) epoch: Option<Extractor>,
    pub(super) redelivered: Option<Pointer>,
    pub(super) content: Option<Pointer>,
}

impl Profile {
    /// Reads a frame into what its parts mean. The same frame on the same kind of session always means the same.
    #[must_use]
    pub fn decode(&self, frame: Frame<'_>, carried: Carried) -> Vec<Decoded> {
        if let Kind::Event {
            id,
            has_data: false,
            ..
        } = frame.kind
        {
            // Nothing is dispatched, but the id counts.
            let moved = id.filter(|_| self.resumes_by_sse_id());
            return vec![moved.map_or(Decoded::Ignored, |id| Decoded::Cursor(text(id)))];
        }
        let mut meanings = Vec::new();
        for part in self.parts(frame) {
            match self.rule(&part, carried) {
                Some(rule) => self.meanings(rule, &part, &mut meanings),
                None => meanings.push(Decoded::Unread(match part.value {
                    Err(why) => why,
                    Ok(_) => "no rule of the profile fits".into(),
                })),
            }
        }
        meanings
    }

    /// The frames that a message holds.
    pub(super) fn parts<'a>(&self, frame: Frame<'a>) -> Vec<Part<'a>> {
        let pieces: Vec<&[u8]> = match &self.decoding.split {
            None => vec![frame.bytes],
            Some(split) => split.split(frame.bytes).filter(|p| !p.is_empty()).collect(),
        };
        let mut parts = Vec::with_capacity(pieces.len());
        for bytes in pieces {
            let mut value = self.value(bytes);
            let list = value.as_mut().ok().zip(self.decoding.each.as_ref());
            let list = list.and_then(|(value, each)| each.find_mut(value));
            if let Some(Value::List(items)) = list {
                let items = std::mem::take(items);
                parts.extend(items.into_iter().map(|item| Part {
                    bytes,
                    kind: frame.kind,
                    value: Ok(item),
                }));
            } else {
                parts.push(Part {
                    bytes,
                    kind: frame.kind,
                    value,
                });
            }
        }
        parts
    }

    fn value(&self, bytes: &[u8]) -> Result<Value, String> {
        let json = match &self.decoding.strip {
            None => bytes,
            Some(strip) => strip
                .captures(bytes)
                .and_then(|found| found.name("json"))
                .ok_or("strip finds no JSON in it")?
                .as_bytes(),
        };
        let mut value = match Value::parse(json) {
            Ok(value) => value,
            Err(e) => match (self.decoding.json, std::str::from_utf8(json)) {
                (Json::Maybe, Ok(text)) => Value::Text(text.into()),
                _ => return Err(format!("not JSON: {e}")),
            },
        };
        for pointer in &self.decoding.reparse {
            if let Some(inner) = pointer.find_mut(&mut value)
                && let Some(parsed) = inner
                    .as_text()
                    .and_then(|t| Value::parse(t.as_bytes()).ok())
            {
                *inner = parsed;
            }
        }
        Ok(value)
    }

    /// The first rule that fits.
    pub(super) fn rule(&self, part: &Part<'_>, carried: Carried) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            rule.when.fits(part, carried, || {
                let event = part.value.as_ref().ok().and_then(|value| rule.stand(value));
                event.is_some_and(|event| self.own(event).is_some())
            })
        })
    }

    fn meanings(&self, rule: &Rule, part: &Part<'_>, meanings: &mut Vec<Decoded>) {
        let groups = rule
            .when
            .raw
            .as_ref()
            .and_then(|raw| raw.captures(part.bytes));
        let sse_id = match part.kind {
            Kind::Event { id, .. } => id,
            Kind::Text | Kind::Binary => None,
        };
        let whole = Place {
            value: part.value.as_ref().ok(),
            sse_id,
            groups: groups.as_ref(),
        };
        if let Some(id) = sse_id.filter(|_| self.resumes_by_sse_id())
            && (id.is_empty() || !rule.moves_cursor())
        {
            meanings.push(Decoded::Cursor(text(id)));
        }
        for class in &rule.is {
            match class {
                Class::Event => self.event(rule, part, whole, meanings),
                Class::Batch => self.batch(rule, whole, meanings),
                Class::Cursor => {
                    let found = rule.cursor.as_ref().map(|cursor| cursor.find(whole));
                    meanings.push(Decoded::Cursor(found.and_then(Found::text)));
                }
                Class::Heartbeat | Class::Ignore => meanings.push(Decoded::Ignored),
                Class::CaughtUp => meanings.push(Decoded::CaughtUp),
                Class::Reset => meanings.push(self.reset(rule, whole)),
                Class::ResumeError => {
                    meanings.push(Decoded::ResumeRefused(rule.reason(part, whole)));
                }
                Class::Fatal => meanings.push(Decoded::Fatal(rule.reason(part, whole))),
            }
        }
    }

    fn event(&self, rule: &Rule, part: &Part<'_>, whole: Place<'_>, meanings: &mut Vec<Decoded>) {
        let value = whole.value.and_then(|value| rule.stand(value));
        match (&part.value, value) {
            (Ok(_), None) => {
                let at = rule.at.as_ref().map_or("", Pointer::text);
                meanings.push(Decoded::Unread(format!("no event at {at}")));
            }
            (Err(why), _) => {
                let read = self.reading(Place { value, ..whole });
                meanings.extend(read.into_iter().map(|meaning| match meaning {
                    Decoded::Unread(_) => Decoded::Unread(why.clone()),
                    other => other,
                }));
            }
            (Ok(_), _) => meanings.extend(self.reading(Place { value, ..whole })),
        }
    }

    fn batch(&self, rule: &Rule, whole: Place<'_>, meanings: &mut Vec<Decoded>) {
        match whole.value.and_then(|value| rule.stand(value)) {
            None | Some(Value::Null) => {}
            Some(Value::List(items)) => {
                for item in items {
                    let value = Some(item);
                    meanings.extend(self.reading(Place { value, ..whole }));
                }
            }
            Some(_) => {
                let at = rule.at.as_ref().map_or("", Pointer::text);
                meanings.push(Decoded::Unread(format!("no array of events at {at}")));
            }
        }
    }

    /// An event, or why it is none. One that can't be counted may move the cursor all the same.
    fn reading(&self, place: Place<'_>) -> Vec<Decoded> {
        let all = &self.event;
        let find = |at: &Option<Extractor>| at.as_ref().map_or(Found::Nothing, |at| at.find(place));
        let id = match find(&all.id) {
            Found::Unfit(why) => return vec![Decoded::Unread(format!("the id at {why}"))],
            found => found.text(),
        };
        let cursor = all.moves(place, id.as_deref());
        let own = place.value.and_then(|event| self.own(event));
        if id.is_none() && own.is_none() {
            let what = match &all.id {
                Some(id) => format!("no id at {}", id.text()),
                None => "no number of herd's".into(),
            };
            let moved = match cursor {
                Moves::To(cursor) => Some(Decoded::Cursor(Some(cursor))),
                Moves::ToId | Moves::Nowhere => None,
            };
            return moved.into_iter().chain([Decoded::Unread(what)]).collect();
        }
        let marked =
            |at: &Pointer| place.value.and_then(|v| at.find(v)) == Some(&Value::Bool(true));
        vec![Decoded::Event(Reading {
            id,
            seq: own.map(|(seq, _)| seq),
            digest: place
                .value
                .map_or(0, |event| digest(event, own, all.content.as_ref())),
            cursor,
            order: find(&all.order).text(),
            epoch: find(&all.epoch).text(),
            redelivered: all.redelivered.as_ref().is_some_and(marked),
        })]
    }

    fn reset(&self, rule: &Rule, whole: Place<'_>) -> Decoded {
        let event = || self.event.cursors().next();
        match rule.id.as_ref().or_else(event).map(|id| id.find(whole)) {
            Some(Found::Unfit(why)) => Decoded::Unread(format!("the id at {why}")),
            found => Decoded::Reset {
                id: found.and_then(Found::text),
            },
        }
    }

    /// herd's number in an event, and where it stands.
    fn own(&self, event: &Value) -> Option<(u64, &Pointer)> {
        self.event.seq.iter().find_map(|pointer| {
            let text = pointer.find(event).and_then(Value::lexeme)?;
            Some((text.parse().ok()?, pointer))
        })
    }

    fn resumes_by_sse_id(&self) -> bool {
        self.event.cursors().any(Extractor::is_sse_id)
    }
}

impl Extract {
    /// Where a cursor may stand, the most likely place first.
    fn cursors(&self) -> impl Iterator<Item = &Extractor> {
        self.cursor
            .iter()
            .filter_map(|at| at.as_ref().or(self.id.as_ref()))
    }

    fn moves(&self, place: Place<'_>, id: Option<&str>) -> Moves {
        for at in &self.cursor {
            match at.as_ref().map(|at| at.find(place)) {
                None if id.is_some() => return Moves::ToId,
                Some(Found::Text(cursor)) if Some(&*cursor) == id => return Moves::ToId,
                Some(Found::Text(cursor)) => return Moves::To(cursor),
                _ => {}
            }
        }
        Moves::Nowhere
    }
}

impl Rule {
    /// Where its event, or array of events, stands.
    fn stand<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.at.as_ref().map_or(Some(value), |at| at.find(value))
    }

    /// Whether what it makes of a block moves the cursor to the block's id by itself.
    fn moves_cursor(&self) -> bool {
        let moves = |class| matches!(class, &Class::Event | &Class::Batch | &Class::Reset);
        self.is.iter().any(moves)
    }

    fn reason(&self, part: &Part<'_>, whole: Place<'_>) -> Box<str> {
        let said = self.why.as_ref().and_then(|why| why.find(whole).text());
        match said {
            Some(said) => safe(said.as_bytes(), QUOTED),
            None => safe(part.bytes, QUOTED),
        }
    }
}

/// A cursor; an empty one is none.
fn text(id: &str) -> Option<Box<str>> {
    Some(id)
        .filter(|id| !id.is_empty() && id.len() <= super::MAX_ID)
        .map(Into::into)
}
