//! When clients come back: a preset, with its numbers changed where the user says so.

use super::super::Policy;
use super::super::draft::{BackoffDraft, Draft, Given};
use super::super::words::{Attempts, ResetOn, Share, Time};
use super::server::{Owner, unknown};
use crate::backoff::{Delay, Preset};
use crate::error::Error;
use crate::history::PolicySource;

impl Draft {
    pub(super) fn policy(&self, owner: Owner) -> Result<Policy, Error> {
        let draft = &self.backoff;
        let preset = self.preset(draft)?;
        let mut backoff = preset.backoff();
        let mut keys = Keys::of(draft);
        let first = keys.left();
        self.tune(&mut backoff.delay, &mut keys)?;
        if let (false, Some(origin)) = (backoff.is_sound(), first) {
            let what = "a delay is 1 ms to a year; for none at all use the preset immediate";
            return Err(self.refuse(origin, what));
        }
        if let Some(origin) = keys.left() {
            let what = format!(
                "the preset {} has no such number; leave it out",
                preset.name()
            );
            return Err(self.refuse(origin, &what));
        }
        if let Some(Given {
            value: Attempts(max),
            ..
        }) = draft.max_attempts
        {
            backoff.max_attempts = max;
        }
        if let Some(Given {
            value: ResetOn(reset),
            ..
        }) = draft.reset
        {
            backoff.reset = reset;
        }
        Ok(Policy {
            name: preset.name().into(),
            backoff,
            source: self.chosen_by(owner),
        })
    }

    /// Rule 8 of judgement: herd's default against the user's server is an assumption, and findings say so.
    fn chosen_by(&self, owner: Owner) -> PolicySource {
        if owner == Owner::Embedded || !self.backoff.is_empty() {
            PolicySource::Named
        } else {
            PolicySource::Assumed
        }
    }

    fn preset(&self, draft: &BackoffDraft) -> Result<Preset, Error> {
        let Some(Given { value, origin }) = &draft.preset else {
            return Ok(Preset::FullJitter);
        };
        let found = Preset::ALL
            .into_iter()
            .find(|preset| preset.name() == value);
        found.ok_or_else(|| {
            let names = Preset::ALL.into_iter().map(Preset::name);
            self.refuse(origin, &unknown("preset", value, names))
        })
    }

    fn tune(&self, tuned: &mut Delay, keys: &mut Keys<'_>) -> Result<(), Error> {
        match tuned {
            Delay::FullJitter { base, factor, cap } => {
                self.growth(base, factor, cap, keys)?;
            }
            Delay::Exponential {
                base,
                factor,
                cap,
                jitter,
            } => {
                self.growth(base, factor, cap, keys)?;
                set(jitter, keys.jitter.take(), |Share(share)| share);
            }
            Delay::Fixed { delay, jitter } => {
                set(delay, keys.delay.take(), |Time(time)| time);
                set(jitter, keys.jitter.take(), |Share(share)| share);
            }
            Delay::Immediate => {}
        }
        Ok(())
    }

    fn growth(
        &self,
        base: &mut std::time::Duration,
        factor: &mut f64,
        cap: &mut std::time::Duration,
        keys: &mut Keys<'_>,
    ) -> Result<(), Error> {
        let given = keys.base.or(keys.cap);
        set(base, keys.base.take(), |Time(time)| time);
        set(cap, keys.cap.take(), |Time(time)| time);
        if let (true, Some(given)) = (base > cap, given) {
            let what = format!(
                "the base, {}, is longer than the cap, {}; raise the cap",
                humantime::format_duration(*base),
                humantime::format_duration(*cap)
            );
            return Err(self.refuse(&given.origin, &what));
        }
        if let Some(given) = keys.factor.take() {
            if !(given.value >= 1.0 && given.value.is_finite()) {
                let what = format!("{} would not back off; use 1 or more", given.value);
                return Err(self.refuse(&given.origin, &what));
            }
            *factor = given.value;
        }
        Ok(())
    }
}

fn set<T, U: Copy>(place: &mut T, given: Option<&Given<U>>, convert: fn(U) -> T) {
    if let Some(given) = given {
        *place = convert(given.value);
    }
}

/// The numbers that only some presets have, not yet used.
struct Keys<'a> {
    base: Option<&'a Given<Time>>,
    factor: Option<&'a Given<f64>>,
    cap: Option<&'a Given<Time>>,
    delay: Option<&'a Given<Time>>,
    jitter: Option<&'a Given<Share>>,
}

impl<'a> Keys<'a> {
    fn of(draft: &'a BackoffDraft) -> Self {
        Self {
            base: draft.base.as_ref(),
            factor: draft.factor.as_ref(),
            cap: draft.cap.as_ref(),
            delay: draft.delay.as_ref(),
            jitter: draft.jitter.as_ref(),
        }
    }

    /// Where one that found no use was given.
    fn left(&self) -> Option<&'a super::Origin> {
        let times = [self.base, self.cap, self.delay]
            .into_iter()
            .flatten()
            .next();
        times
            .map(|given| &given.origin)
            .or(self.factor.map(|given| &given.origin))
            .or(self.jitter.map(|given| &given.origin))
    }
}

impl BackoffDraft {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
