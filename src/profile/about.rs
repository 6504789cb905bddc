//! What a profile does, told from its own declarations, for people who look for the right one.

use super::compile::holds_cursor;
use super::spec::{Class, Spec};

/// A profile in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Where an event's id stands, and the cursor where that is something else.
    pub id: String,
    /// How a client asks for what it missed.
    pub resume: String,
    /// Whether the server says that the replay is over.
    pub caught_up: String,
    /// What says that a client must reload.
    pub reset: String,
    /// The servers that it was tried with.
    pub tested: String,
}

impl Spec {
    /// What it does.
    #[must_use]
    pub fn about(&self) -> About {
        let id = self.event.id.as_deref().unwrap_or("none");
        let id = match self.event.cursor.first() {
            Some(cursor) if cursor != "id" && cursor != id => format!("{id}, cursor {cursor}"),
            _ => id.to_owned(),
        };
        let said = match self.reads(Class::CaughtUp) {
            true => "yes",
            false => "no",
        };
        About {
            id,
            resume: list(self.resumes()),
            caught_up: said.into(),
            reset: list(self.resets()),
            tested: self.tested.clone(),
        }
    }

    fn reads(&self, class: Class) -> bool {
        self.frame.iter().any(|rule| rule.is.contains(&class))
    }

    fn resumes(&self) -> Vec<String> {
        let query = self.query.iter().filter(|(_, text)| holds_cursor(text));
        let query = query.map(|(name, _)| format!("query {name}"));
        let headers = self.headers.iter().filter(|(_, text)| holds_cursor(text));
        let headers = headers.map(|(name, _)| format!("header {name}"));
        let said = |text: &Option<String>| text.as_deref().is_some_and(holds_cursor);
        let frame = self
            .open
            .iter()
            .find(|step| said(&step.send) || said(&step.otherwise));
        let frame = frame.map(|_| "a frame after opening".to_owned());
        query.chain(headers).chain(frame).collect()
    }

    fn resets(&self) -> Vec<String> {
        let mut ways = Vec::new();
        if self.reads(Class::Reset) {
            ways.push("a frame".to_owned());
        }
        if self.reads(Class::ResumeError) {
            ways.push("a refused resume".into());
        }
        ways.extend(
            self.reset
                .changed
                .iter()
                .map(|name| format!("another {name}")),
        );
        ways.extend(
            self.reset
                .header
                .iter()
                .map(|name| format!("header {name}")),
        );
        ways.extend(
            self.status
                .reset
                .iter()
                .map(|code| format!("status {code}")),
        );
        ways.extend(
            self.close
                .reset
                .iter()
                .map(|code| format!("close code {code}")),
        );
        ways
    }
}

fn list(ways: Vec<String>) -> String {
    match ways.is_empty() {
        true => "no".into(),
        false => ways.join(", "),
    }
}
