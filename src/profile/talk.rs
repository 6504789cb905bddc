//! What one client says: its open script, its answers to heartbeats, its own beat, and what it keeps of the server's words
//! from session to session. Synchronous, without a clock: time is told to it.

use std::time::Duration;

use super::Profile;
use crate::template::Values;
use crate::transport::Frame;

/// One client's talk over all its sessions. Times count from the run's beginning.
#[derive(Debug, Clone)]
pub struct Talk {
    named: Box<[Option<Box<str>>]>,
}

/// What comes of an instant of talk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// What is said now, in this order.
    pub say: Vec<String>,
    /// Whether the client must reload; comes before what the same frame means otherwise, and leaves no cursor.
    pub reset: bool,
    /// Why the session is to be ended (made safe).
    pub end: Option<Box<str>>,
}

impl Talk {
    /// A client that has said nothing yet.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self {
            named: profile.names().map(|_| None).collect(),
        }
    }

    /// What was captured, in the order of [`Profile::names`].
    #[must_use]
    pub fn named(&self) -> &[Option<Box<str>>] {
        &self.named
    }

    /// A session was opened; its dial carried `values.cursor`, and `headers` are those of the answer, by lower-case name.
    pub fn open(
        &mut self,
        profile: &Profile,
        now: Duration,
        values: &Values<'_>,
        headers: &dyn Fn(&str) -> Option<String>,
    ) -> Turn {
        let _ = (profile, now, values, headers);
        Turn::default()
    }

    /// Whether a frame must be told to it by [`Talk::hear`]; cheap.
    #[must_use]
    pub fn wants(&self, profile: &Profile, frame: Frame<'_>) -> bool {
        let _ = (profile, frame);
        false
    }

    /// A frame came.
    pub fn hear(
        &mut self,
        profile: &Profile,
        now: Duration,
        frame: Frame<'_>,
        values: &Values<'_>,
    ) -> Turn {
        let _ = (profile, now, frame, values);
        Turn::default()
    }

    /// When [`Talk::tick`] must be called next, while this session lasts; none = not.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        None
    }

    /// Time has passed.
    pub fn tick(&mut self, profile: &Profile, now: Duration, values: &Values<'_>) -> Turn {
        let _ = (profile, now, values);
        Turn::default()
    }
}
