//! What one client says: its open script, its answers to heartbeats, its own beat, and what it keeps of the server's words
//! from session to session. Synchronous, without a clock: time is told to it.

use std::fmt;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::decode::Rule;
use super::extract::{Extractor, Place};
use super::matcher::{Matcher, Part};
use super::spec::Unit;
use super::{Carried, Profile};
use crate::template::{Place as Goes, Template, Values};
use crate::transport::{Frame, Kind, safe};

/// The shortest time between two beats: a server's 0 or 1 must not make a storm.
const SHORTEST: Duration = Duration::from_millis(100);
/// No captured time is longer.
const LONGEST: u64 = 24 * 60 * 60;
/// How much of a frame that didn't fit is kept (bytes).
const QUOTED: usize = 200;

/// A step of the open script, compiled.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) send: Option<Template>,
    pub(super) otherwise: Option<Template>,
    pub(super) expect: Option<Matcher>,
    /// The name's place among the profile's, and where its value stands.
    pub(super) capture: Vec<(usize, Extractor)>,
}

/// The client's own beat and the limit of silence, compiled.
#[derive(Debug, Clone)]
pub(super) struct Beat {
    pub(super) send: Option<Template>,
    pub(super) every: Option<Span>,
    pub(super) jitter: bool,
    pub(super) dead: Option<Span>,
}

/// A sum of durations and of captured times.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) fixed: Duration,
    pub(super) named: Vec<usize>,
    pub(super) unit: Unit,
}

/// One client's talk over all its sessions. Times count from the run's beginning.
#[derive(Debug, Clone)]
pub struct Talk {
    named: Box<[Option<Box<str>>]>,
    carried: Carried,
    /// How much of the open script is done.
    step: usize,
    /// Frames that came while the step waited and that didn't fit, and the first of them, made safe.
    unfit: Option<(u32, Box<str>)>,
    /// When the open script must be done.
    deadline: Option<Duration>,
    /// When the last frame came.
    heard: Duration,
    /// How long silence may last.
    silence: Option<Duration>,
    /// When the next own beat is due.
    beat: Option<Duration>,
}

/// What comes of an instant of talk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// What is said now, in this order.
    pub say: Vec<String>,
    /// Whether the client must reload; comes before what the same frame means otherwise, and leaves no cursor.
    pub reset: bool,
    /// Why herd's side ends the session.
    pub end: Option<Ending>,
}

/// Why herd's side ends a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Nothing that came in time fits what the opening waits for: what that is, and what came (made safe).
    Unanswered(Box<str>),
    /// The server hasn't said a word for too long.
    Silent(Box<str>),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(why) | Self::Silent(why) => f.write_str(why),
        }
    }
}

impl Talk {
    /// A client that has said nothing yet.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self {
            named: profile.names().map(|_| None).collect(),
            carried: Carried::Nothing,
            step: 0,
            unfit: None,
            deadline: None,
            heard: Duration::ZERO,
            silence: None,
            beat: None,
        }
    }

    /// What was captured, in the order of [`Profile::names`].
    #[must_use]
    pub fn named(&self) -> &[Option<Box<str>>] {
        &self.named
    }

    /// A session was opened; its dial carried `values.cursor` (an empty one is none), and `headers` finds those of the
    /// answer.
    pub fn open(
        &mut self,
        profile: &Profile,
        now: Duration,
        values: &Values<'_>,
        headers: &dyn Fn(&str) -> Option<String>,
    ) -> Turn {
        let cursor = values.cursor.filter(|cursor| !cursor.is_empty());
        let values = Values { cursor, ..*values };
        self.carried = cursor.map_or(Carried::Nothing, |_| Carried::Cursor);
        (self.step, self.unfit, self.heard) = (0, None, now);
        (self.silence, self.beat) = (None, None);
        self.deadline = Some(now.saturating_add(profile.timeout));
        let mut turn = Turn::default();
        if let (Some(sent), Some(name)) = (cursor, &profile.spec.reset.header) {
            turn.reset = headers(name).is_some_and(|answered| answered != sent);
        }
        self.advance(profile, now, &values, &mut turn);
        turn
    }

    /// Whether a frame must be told to it by [`Talk::hear`]; cheap: with the script done it costs a regular expression for
    /// each kind of heartbeat that is answered.
    #[must_use]
    pub fn wants(&self, profile: &Profile, frame: Frame<'_>) -> bool {
        self.listens(profile) || self.silence.is_some() || profile.may_answer(frame)
    }

    /// A frame came; any is a sign of life.
    pub fn hear(
        &mut self,
        profile: &Profile,
        now: Duration,
        frame: Frame<'_>,
        values: &Values<'_>,
    ) -> Turn {
        let mut turn = Turn::default();
        self.heard = now;
        if !self.listens(profile) && !profile.may_answer(frame) {
            return turn;
        }
        for part in profile.parts(frame) {
            let reply = profile.rule(&part, self.carried).and_then(Rule::answer);
            turn.say
                .extend(reply.and_then(|text| self.fill(text, values)));
            self.expect(profile, now, &part, values, &mut turn);
        }
        turn
    }

    /// Something came that is no frame, such as a comment: a sign of life all the same.
    pub fn alive(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Whether a silent server is taken for dead, by the profile's own limit.
    #[must_use]
    pub fn listens_for_silence(&self) -> bool {
        self.silence.is_some()
    }

    /// When the last sign of life came.
    #[must_use]
    pub fn heard(&self) -> Duration {
        self.heard
    }

    /// When [`Talk::tick`] must be called next, while this session lasts; none = not.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let silent = self.silence.map(|limit| self.heard.saturating_add(limit));
        [self.deadline, silent, self.beat]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time has passed. Once it has said that the session is to end, nothing more is due.
    pub fn tick(&mut self, profile: &Profile, now: Duration, values: &Values<'_>) -> Turn {
        let mut turn = Turn::default();
        if self.deadline.is_some_and(|at| now >= at) {
            let within = humantime::format_duration(profile.timeout);
            let waiting = self.unanswered(profile).unwrap_or_default();
            turn.end = Some(Ending::Unanswered(
                format!("{waiting} (within {within})").into(),
            ));
        } else if let Some(limit) = self.silence
            && now >= self.heard.saturating_add(limit)
        {
            let limit = humantime::format_duration(limit);
            turn.end = Some(Ending::Silent(format!("not a word for {limit}").into()));
        } else if self.beat.is_some_and(|at| now >= at) {
            let send = profile.beat.send.as_ref();
            turn.say
                .extend(send.and_then(|text| self.fill(text, values)));
            self.beat = self
                .interval(profile)
                .map(|every| now.saturating_add(every));
        }
        if turn.end.is_some() {
            (self.deadline, self.silence, self.beat) = (None, None, None);
        }
        turn
    }

    /// Whether the open script isn't done yet.
    #[must_use]
    pub fn is_opening(&self, profile: &Profile) -> bool {
        self.listens(profile)
    }

    /// What the open script waits for and what came instead (made safe); none where it is done.
    #[must_use]
    pub fn unanswered(&self, profile: &Profile) -> Option<String> {
        let step = self.listens(profile).then_some(self.step + 1)?;
        let came = match &self.unfit {
            None => "nothing came that could fit it".to_owned(),
            Some((1, only)) => format!("what came doesn't fit it: {only}"),
            Some((n, first)) => format!("none of {n} frames fits it, the first was {first}"),
        };
        Some(format!("open[{step}].expect: {came}"))
    }

    fn listens(&self, profile: &Profile) -> bool {
        self.step < profile.steps.len()
    }

    fn fill(&self, text: &Template, values: &Values<'_>) -> Option<String> {
        let named = &self.named;
        text.expand_whole(&Values { named, ..*values }, Goes::Text)
    }

    /// Says what stands before the next frame that is waited for.
    fn advance(&mut self, profile: &Profile, now: Duration, values: &Values<'_>, turn: &mut Turn) {
        while let Some(step) = profile.steps.get(self.step) {
            let mut texts = [&step.send, &step.otherwise].into_iter().flatten();
            turn.say
                .extend(texts.find_map(|text| self.fill(text, values)));
            if step.expect.is_some() {
                return;
            }
            self.step += 1;
        }
        self.deadline = None;
        self.silence = profile
            .beat
            .dead
            .as_ref()
            .and_then(|span| span.of(&self.named));
        self.beat = self.interval(profile).map(|every| {
            let first = match profile.beat.jitter {
                true => every.mul_f64(share(values.client)),
                false => every,
            };
            now.saturating_add(first)
        });
    }

    fn expect(
        &mut self,
        profile: &Profile,
        now: Duration,
        part: &Part<'_>,
        values: &Values<'_>,
        turn: &mut Turn,
    ) {
        let Some(step) = profile.steps.get(self.step) else {
            return;
        };
        let fits = |expect: &Matcher| expect.fits(part, self.carried, || false);
        if !step.expect.as_ref().is_some_and(fits) {
            let first = || (0, safe(part.bytes, QUOTED));
            self.unfit.get_or_insert_with(first).0 += 1;
            return;
        }
        self.capture(profile, step, part, turn);
        (self.step, self.unfit) = (self.step + 1, None);
        self.advance(profile, now, values, turn);
    }

    /// Keeps what a step asks for. What isn't there any more is unset: a new session's server may know nothing of it.
    fn capture(&mut self, profile: &Profile, step: &Step, part: &Part<'_>, turn: &mut Turn) {
        let raw = step.expect.as_ref().and_then(|expect| expect.raw.as_ref());
        let groups = raw.and_then(|raw| raw.captures(part.bytes));
        let place = Place {
            value: part.value.as_ref().ok(),
            sse_id: None,
            groups: groups.as_ref(),
        };
        for (name, at) in &step.capture {
            let new = at.find(place).text();
            let old = std::mem::replace(&mut self.named[*name], new);
            let new = &self.named[*name];
            // What a first session brings is no change; that it is missing now is for a rule to judge.
            let changed = match (&old, new) {
                (Some(old), Some(new)) => old != new,
                (None, Some(_)) => self.carried == Carried::Cursor,
                (_, None) => false,
            };
            turn.reset |= changed && profile.changed.contains(name);
        }
    }

    fn interval(&self, profile: &Profile) -> Option<Duration> {
        let every = profile.beat.every.as_ref()?.of(&self.named)?;
        Some(every.max(SHORTEST))
    }
}

impl Span {
    /// How long it is now; none while a captured time in it is unset, 0, or no number.
    fn of(&self, named: &[Option<Box<str>>]) -> Option<Duration> {
        self.named.iter().try_fold(self.fixed, |sum, name| {
            let count: u64 = named.get(*name)?.as_deref()?.parse().ok()?;
            let time = match self.unit {
                Unit::Milliseconds => Duration::from_millis(count.min(LONGEST * 1_000)),
                Unit::Seconds => Duration::from_secs(count.min(LONGEST)),
            };
            (count > 0).then(|| sum.saturating_add(time))
        })
    }
}

impl Rule {
    /// What answers it.
    fn answer(&self) -> Option<&Template> {
        self.reply.as_ref()
    }
}

impl Profile {
    /// Whether a frame may be a heartbeat that is answered, by its bytes alone.
    fn may_answer(&self, frame: Frame<'_>) -> bool {
        let answered = |bytes: &[u8]| {
            let mut rules = self.rules.iter().filter(|rule| rule.reply.is_some());
            rules.any(|rule| {
                rule.when
                    .raw
                    .as_ref()
                    .is_some_and(|raw| raw.is_match(bytes))
            })
        };
        match &self.decoding.split {
            _ if matches!(frame.kind, Kind::Event { .. }) => false,
            None => answered(frame.bytes),
            Some(split) => split.split(frame.bytes).any(answered),
        }
    }
}

/// A client's own share of a time, from 0 to 1: the same in every run and shard.
fn share(client: u32) -> f64 {
    (xxh3_64(&client.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}
