//! Clauses that tell people what happened to the first offending pair of a kind. They decide nothing. What a server
//! sent is escaped: it is untrusted text.

use super::catalogue::{Catalogue, Meaning};
use super::presence::Presence;
use crate::check::{Offender, ResumeOutcome, Wrong, opening};
use crate::history::{Client, Elapsed, Entry, EventIx, Fate, History, Receipt, Seq, Source, Trace};

/// An event as people know it: herd's number from 1, else its id.
fn name(history: &History, event: EventIx) -> String {
    let event = history.event(event);
    match (event.seq.filter(|s| history.header.owns(*s)), &event.id) {
        (Some(seq), _) => history.header.shown(seq).to_string(),
        (None, Some(id)) => id.escape_debug().to_string(),
        (None, None) => "without an id".into(),
    }
}

/// What a session resumed from: an event as people know it, else the bare token, which is nobody's id.
fn cursor(history: &History, cursor: EventIx) -> String {
    let event = history.event(cursor);
    match &event.id {
        Some(token) if event.seq.is_none() && event.digest == 0 => {
            let cut: String = token.chars().take(CURSOR).collect();
            let more = if cut.len() < token.len() { "..." } else { "" };
            format!("cursor \"{}{more}\"", cut.escape_debug())
        }
        _ => name(history, cursor),
    }
}

/// The characters that a cursor may take.
const CURSOR: usize = 60;

fn seconds(at: Elapsed) -> String {
    format!("{:.3} s", at.micros() as f64 / 1e6)
}

/// What happened with a receipt that counts against the server.
pub(super) fn receipt(
    history: &History,
    client: &Client,
    wrong: Wrong,
    receipt: Receipt,
) -> String {
    let event = history.event(receipt.event);
    let (who, what, at) = (
        client.id.0,
        name(history, receipt.event),
        seconds(receipt.at),
    );
    let session = client.sessions.get(receipt.session);
    let cursor = session.and_then(|s| s.resumed_from);
    match wrong {
        Wrong::Duplicated if cursor == Some(receipt.event) => {
            format!(
                "client {who} resumed from {what} and got {what} again: the replay includes the cursor's own event"
            )
        }
        Wrong::Duplicated => format!("client {who} got event {what} again at {at}"),
        Wrong::Late => format!(
            "client {who} got event {what} only at {at}, past the settle limit of {:?}",
            history.header.terms.settle
        ),
        Wrong::Reordered => {
            format!("client {who} got event {what} at {at}, after one that comes later")
        }
        Wrong::Unexpected
            if event
                .seq
                .is_some_and(|s| history.publications.contains_key(&s)) =>
        {
            format!(
                "client {who} got event {what} at {at} although its publication was definitely refused"
            )
        }
        Wrong::Unexpected => {
            format!("client {who} got event {what} at {at}, which was never published")
        }
        Wrong::Conflict => format!(
            "client {who} got another content under id {} at {at}",
            event.id.as_deref().unwrap_or("").escape_debug()
        ),
        Wrong::Lost => format!("client {who} never got event {what}"),
    }
}

/// A client that got two items in another order than at most others.
pub(super) fn disagreement(history: &History, offender: &Offender) -> String {
    let what = match (offender.seq, &offender.id) {
        (Some(seq), _) => history.header.shown(seq).to_string(),
        (None, id) => id.as_deref().unwrap_or("").escape_debug().to_string(),
    };
    format!(
        "client {} got event {what} after one that most clients got later",
        offender.client.0
    )
}

/// Why clients may have received no priming event: what to look at first.
pub(super) fn unprimed(history: &History) -> String {
    if history.header.terms.source == Source::Others {
        return "does anybody publish what these clients may see?".into();
    }
    let mut publications = history.publications.values();
    if publications.all(|p| p.fate != Fate::Acked) {
        return "no publication was accepted; see where and how herd publishes".into();
    }
    if opening::never(history) {
        return "expect in one of its steps fits nothing that the server says".into();
    }
    let numberless = history.events.iter().find_map(|event| {
        let own = event.seq.is_some_and(|seq| history.header.owns(seq));
        event.id.as_deref().filter(|_| !own)
    });
    let mut frames = history.clients.iter().filter_map(|c| c.lacking.as_ref());
    let frame = frames.next();
    let frame = frame.map_or(String::new(), |(_, text)| {
        format!(": \"{}\"", text.escape_debug())
    });
    match numberless {
        Some(id) => format!(
            "events such as id {} arrived without herd's number; point --seq at it{frame}",
            id.escape_debug()
        ),
        None => format!("see whether --id and --seq point at the right places{frame}"),
    }
}

/// Frames that the profile could not read, as a hint: the first client's first ones.
pub(super) fn unread(history: &History) -> Option<String> {
    let client = history.clients.iter().find(|c| !c.unread.is_empty())?;
    let frames: Vec<String> = client
        .unread
        .iter()
        .take(3)
        .map(|(_, text)| format!("\"{}\"", text.escape_debug()))
        .collect();
    Some(format!(
        "client {} could not read {}",
        client.id.0,
        frames.join(", ")
    ))
}

/// An event that came in a frame that was not read as it, with that frame where it was kept.
pub(super) fn traced(
    history: &History,
    client: &Client,
    seq: Seq,
    trace: Option<&Trace>,
) -> String {
    let kept = |at: Elapsed| client.unread.iter().find(|(kept, _)| *kept == at);
    let frame = trace
        .and_then(|trace| kept(trace.at))
        .or(client.unread.last())
        .map_or(String::new(), |(_, text)| {
            format!(": \"{}\"", text.escape_debug())
        });
    format!(
        "client {} did not read event {} in the frame that holds it{frame}",
        client.id.0,
        history.header.shown(seq)
    )
}

/// What to do about such frames.
pub(super) const SAY_WHAT_IT_IS: &str = "say in a [profile] what such a frame is (a [[profile.frame]] with when, is = \"event\" or \"batch\" and at; [profile.decoding] where a message holds several) and try it with herd profile check";

/// A client that lost something.
pub(super) struct Loss<'a> {
    pub(super) history: &'a History,
    pub(super) catalogue: &'a Catalogue<'a>,
    pub(super) client: &'a Client,
    pub(super) presence: &'a Presence,
    /// The items, in the order in which they became known; not empty.
    pub(super) lost: &'a [u32],
    /// Of its sessions.
    pub(super) outcomes: &'a [Option<ResumeOutcome>],
}

impl Loss<'_> {
    /// Who lost what, and what its session looked like.
    pub(super) fn explain(&self) -> String {
        let who = self.client.id.0;
        let first = self.lost[0];
        if self.is_hole(first) {
            let holes = self.lost.iter().filter(|x| self.is_hole(**x)).count();
            return format!(
                "client {who} and all others never got {holes} events: ids that were declared contiguous have holes there"
            );
        }
        if let Some(id) = self.in_conflict(first) {
            return format!(
                "client {who} got another content under id {}, and never the right one",
                id.escape_debug()
            );
        }
        if let Some(index) = self.left_out_live(first) {
            return self.live(first, index);
        }
        let Some((index, session)) = self.session(first) else {
            return format!("client {who} never got event {}", self.item(first));
        };
        let replayed = self.catalogue.before(session.dialled);
        let missed: Vec<u32> = self
            .lost
            .iter()
            .copied()
            .filter(|x| *x < replayed)
            .collect();
        let Some(from) = session.resumed_from.filter(|_| !missed.is_empty()) else {
            return self.live(first, index);
        };
        let cursor = cursor(self.history, from);
        let (span, all) = self.span(&missed, replayed);
        let part = if all {
            format!("nothing of {span}")
        } else {
            format!("not {} of {span}", missed.len())
        };
        let cause = match self.outcomes.get(index).copied().flatten() {
            Some(ResumeOutcome::MissedReset) if missed.len() == 1 => "one left out of the replay",
            Some(ResumeOutcome::MissedReset) => {
                "history gone or cursor not understood, no reset sent"
            }
            Some(ResumeOutcome::NeverResumed) => "connected, but served nothing",
            _ => "no reset sent",
        };
        format!("client {who} resumed from {cursor} and got {part}: {cause}")
    }

    fn is_hole(&self, x: u32) -> bool {
        let item = self.catalogue.item(x);
        item.seq.is_none() && item.id.is_none()
    }

    /// The id of an item, where the client got something else under it.
    fn in_conflict(&self, x: u32) -> Option<&str> {
        let item = self.catalogue.item(x);
        let id = item.id?;
        let same = |identity: (Option<&str>, Option<&str>)| {
            identity.1 == Some(id) && (item.epoch.is_none() || identity.0 == item.epoch)
        };
        let mut entries = self.client.entries(self.history);
        let something = entries.any(|entry| match entry {
            Entry::Receipt(receipt) => {
                same(self.history.event(receipt.event).identity())
                    && matches!(
                        self.catalogue.readings[receipt.event.0 as usize].meaning,
                        Meaning::Conflict(_)
                    )
            }
            _ => false,
        });
        something.then_some(id)
    }

    fn live(&self, x: u32, session: usize) -> String {
        let (who, what) = (self.client.id.0, self.item(x));
        let known = seconds(self.catalogue.item(x).known);
        let mut readings = self.catalogue.readings.iter();
        let numbered = self.catalogue.item(x).seq.is_some();
        if numbered && readings.all(|reading| reading.meaning != Meaning::Item(x)) {
            return format!(
                "no client ever got event {what}, known at {known} while client {who} was connected (session {})",
                session + 1
            );
        }
        format!(
            "client {who} never got event {what}, known at {known} while it was connected (session {})",
            session + 1
        )
    }

    /// The session that an item was due in live, where the cursor of the next one lies behind it: no replay can bring it.
    fn left_out_live(&self, x: u32) -> Option<usize> {
        let known = self.catalogue.item(x).known;
        let sessions = &self.client.sessions;
        let index = sessions
            .iter()
            .position(|s| s.opened <= known && s.dropped().is_none_or(|dropped| known < dropped))?;
        let cursor = sessions[index + 1..].iter().find_map(|s| s.resumed_from)?;
        match self.catalogue.readings[cursor.0 as usize].meaning {
            Meaning::Item(at) if at > x => Some(index),
            _ => None,
        }
    }

    /// The first and the last of what a replay left out, and whether that is all between them. Items are held in the order
    /// in which they became known; people read numbers.
    fn span(&self, missed: &[u32], replayed: u32) -> (String, bool) {
        let key = |x: &u32| (self.catalogue.item(*x).seq, *x);
        let (Some(first), Some(last)) = (
            missed.iter().copied().min_by_key(key),
            missed.iter().copied().max_by_key(key),
        ) else {
            return (String::new(), false);
        };
        let range = key(&first)..=key(&last);
        let between = (0..replayed).filter(|x| range.contains(&key(x))).count();
        let span = if first == last {
            self.item(first)
        } else {
            format!("{}..{}", self.item(first), self.item(last))
        };
        (span, between == missed.len())
    }

    /// The session in which an item became overdue.
    fn session(&self, x: u32) -> Option<(usize, &crate::history::Session)> {
        let deadline = self.presence.deadline(self.catalogue.item(x).known)?;
        let window = self
            .presence
            .windows
            .iter()
            .rev()
            .find(|w| w.opened < deadline)?;
        let mut sessions = self.client.sessions.iter().enumerate();
        sessions.find(|(_, s)| s.opened == window.opened)
    }

    fn item(&self, x: u32) -> String {
        let item = self.catalogue.item(x);
        match (item.seq, item.id) {
            (Some(seq), _) => self.history.header.shown(seq).to_string(),
            (None, Some(id)) => id.escape_debug().to_string(),
            (None, None) => "without an id".into(),
        }
    }
}
