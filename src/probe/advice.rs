//! What a probe's trials prove, and what to type next. Pure text: it meets no server.

use std::fmt::{self, Write as _};

use super::pointers::Found;
use crate::history::{Fate, Publication};
use crate::profile::{Spec, Transport};
use crate::scenario::{Scenario, Server};

/// A way to read the server, and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    spec: Spec,
    /// The query key that carries the cursor, where it isn't the profile's own.
    key: Option<&'static str>,
    /// Where id and number were found to stand, where the profile looks elsewhere.
    pub(super) found: Found,
    pub(super) proof: Proof,
}

/// How far a trial got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// There was no session: why.
    NotOpened(String),
    /// No event was recognised.
    NoEvent {
        /// Something that came and could not be read.
        unread: Option<String>,
    },
    /// Events carry nothing to resume from.
    NoCursor,
    /// The event that was missed did not come.
    Missed {
        /// Whether live events came after the resume.
        live: Live,
        /// The server's words, where it refused.
        refused: Option<String>,
    },
    /// The event that was missed came in a frame that the profile reads as something else.
    NotRead {
        /// The frame.
        frame: String,
    },
    /// The server told the client to reload.
    Reset,
    /// The event that was missed came, and others that the client had.
    Repeated {
        /// How many of them.
        times: usize,
    },
    /// Events are read; nobody published one that could be missed.
    Readable,
    /// The event that was missed came, once.
    Resumed {
        /// Whether live events came after it.
        live: Live,
    },
}

/// Whether live events came after a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    Yes,
    No,
}

impl Candidate {
    pub(super) fn new(spec: Spec) -> Self {
        Self {
            spec,
            key: None,
            found: Found::default(),
            proof: Proof::NotOpened(String::new()),
        }
    }

    /// The same, with the cursor under another query key.
    pub(super) fn with_key(&self, key: &'static str) -> Self {
        Self {
            key: Some(key),
            ..self.clone()
        }
    }

    /// Whether it makes sense to send the cursor under other keys.
    pub(super) fn takes_keys(&self) -> bool {
        self.key.is_none() && (self.spec.transport == Transport::Sse || self.spec.name == "after")
    }

    pub(super) fn title(&self) -> String {
        match self.key {
            Some(key) => format!("{} with ?{key}=<cursor>", self.spec.name),
            None => format!("{}: {}", self.spec.name, self.spec.summary),
        }
    }

    /// The scenario as this candidate would have it.
    pub(super) fn scenario(&self, given: &Scenario) -> Scenario {
        let mut scenario = given.clone();
        scenario.connect.profile = self.spec.clone();
        if let Some(key) = self.key {
            let url = &mut scenario.target.url;
            let joint = if url.contains('?') { '&' } else { '?' };
            let _ = write!(url, "{joint}{key}={{cursor}}");
        }
        let Found { id, seq } = self.found.clone();
        scenario.connect.id = id.or(scenario.connect.id);
        scenario.connect.seq = seq.or(scenario.connect.seq);
        scenario
    }
}

impl Proof {
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::NotOpened(_) => 0,
            Self::NoEvent { .. } => 1,
            Self::NoCursor => 2,
            Self::Missed { .. } | Self::NotRead { .. } => 3,
            Self::Reset => 4,
            Self::Repeated { .. } => 5,
            Self::Readable => 6,
            Self::Resumed { .. } => 7,
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = match self {
            Self::NotOpened(why) => return write!(f, "no session: {why}"),
            Self::NoEvent { unread: None } => "a session, but nothing came that is an event",
            Self::NoEvent { unread: Some(_) } => "frames came, but none that it reads as an event",
            Self::NoCursor => {
                "events are read, but nothing in them looks like an id: nothing to resume from"
            }
            Self::Missed {
                refused: Some(words),
                ..
            } => return write!(f, "events are read; the resume was refused: {words}"),
            Self::Missed {
                live: Live::Yes, ..
            } => "events are read; what was missed did not come: the cursor is not heeded",
            Self::Missed { live: Live::No, .. } => {
                "events are read, but none came after the resume"
            }
            Self::NotRead { .. } => {
                "events are read; what was missed came in a frame that isn't read as an event"
            }
            Self::Reset => "events are read; the resume was answered by an order to reload",
            Self::Repeated { times } => {
                return write!(
                    f,
                    "what was missed came, but {times} came again: the cursor is not heeded, or inclusive"
                );
            }
            Self::Readable => "events are read; nobody published, so no resume could be tried",
            Self::Resumed { live: Live::Yes } => {
                "resume works: the missed event came, once, and live events go on"
            }
            Self::Resumed { live: Live::No } => {
                "the missed event came, once, but no live event after it"
            }
        };
        f.write_str(told)
    }
}

/// The end of the report: what fits, what is missing, what to type.
pub(super) fn text(
    best: &Candidate,
    given: &Scenario,
    line: &str,
    published: Option<&Publication>,
) -> String {
    let mut text = String::new();
    let reads = best.proof.rank() > Proof::NoEvent { unread: None }.rank();
    text.push('\n');
    let mut row = |name: &str, what: &str| {
        let _ = writeln!(text, "{name:<9}  {what}");
    };
    if reads {
        row("Profile", &best.title());
        row("Found", &best.proof.to_string());
    } else {
        let furthest = format!("none fits; {} got furthest: {}", best.spec.name, best.proof);
        row("Profile", &furthest);
    }
    for missing in missing(best, published) {
        row("Missing", &missing);
    }
    if reads {
        row("Run", &command(best, given, line));
    }
    text
}

/// What the server (or the user) would have to add.
fn missing(best: &Candidate, published: Option<&Publication>) -> Vec<String> {
    let mut missing = Vec::new();
    let mut lacks = |what: &str| missing.push(what.to_owned());
    match &best.proof {
        Proof::NotOpened(_) => lacks("a session: check address, path and credentials"),
        Proof::NoEvent { unread } => {
            if published.is_none() {
                lacks("an event: publish some meanwhile, or give --publish-url or --publish-cmd");
            }
            if let Some(frame) = unread {
                lacks(&format!(
                    "a profile that reads {frame}; write one (GUIDE, \"Write a profile\")"
                ));
            }
        }
        Proof::NoCursor => lacks(
            "an id that herd could find: where there is one, name it with --id; without one on the wire no client can resume",
        ),
        Proof::Missed { .. } => lacks("a resume: the server gives no client what it missed"),
        Proof::NotRead { frame } => lacks(&format!(
            "a profile that reads {frame}; write one (GUIDE, \"Write a profile\")"
        )),
        Proof::Reset => lacks("a history that outlasts a reconnect: the server asks for a reload"),
        Proof::Repeated { .. } => lacks("a replay that begins after the cursor"),
        Proof::Readable => lacks("a way to publish: --publish-url or --publish-cmd"),
        Proof::Resumed { live: Live::No } => lacks("live events after a resume"),
        Proof::Resumed { live: Live::Yes } => {}
    }
    match published {
        Some(p) if p.fate == Fate::Acked && p.id.is_none() => {
            lacks("an id in the answer to a publication: not needed, but it tells the order");
        }
        Some(p) if p.fate == Fate::Failed => {
            lacks("an accepted publication: see what the publish URL or command answers");
        }
        _ => {}
    }
    missing
}

fn command(best: &Candidate, given: &Scenario, line: &str) -> String {
    let target = best.scenario(given).masked().target.url;
    let mut command = line.to_owned();
    if !matches!(given.target.server, Server::Embedded { .. }) {
        let _ = write!(command, " --target '{target}'");
    }
    let _ = write!(command, " --profile {}", best.spec.name);
    for (flag, pointer) in [("--id", &best.found.id), ("--seq", &best.found.seq)] {
        if let Some(pointer) = pointer {
            let _ = write!(command, " {flag} {pointer}");
        }
    }
    command
}
