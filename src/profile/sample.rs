//! A profile tried on frames that were recorded: how each is read, and what a client would say. It reads no file.
//!
//! A sample holds a frame a line, as `S> frame` or the bare frame; `C> ..` is what a client said and counts for nothing,
//! and so do blank lines. A line that begins with `--` ends a session: the next one resumes, if there is a cursor. For an
//! event stream the lines are the stream's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::compile::holds_cursor;
use super::{Carried, Decoded, Moves, Profile, Talk, Transport, Turn};
use crate::template::Values;
use crate::transport::sse::parser::{Block, Item, Parser};
use crate::transport::{Frame, Kind, safe};

/// How much of a text is shown (bytes).
const SHOWN: usize = 200;
/// The longest block of a stream (bytes).
const LONGEST: usize = 1 << 24;

/// How a sample was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Line by line, for people; nothing in it can move a terminal's cursor.
    pub text: String,
    /// The frames that were read as something.
    pub read: usize,
    /// The frames that were not.
    pub unread: usize,
}

/// Tries a profile on a sample.
#[must_use]
pub fn try_on(profile: &Profile, sample: &str) -> Trial {
    let mut trial = Run {
        profile,
        talk: Talk::new(profile),
        session: 0,
        cursor: None,
        carried: None,
        out: Trial {
            text: String::new(),
            read: 0,
            unread: 0,
        },
    };
    trial.open();
    match profile.transport() {
        Transport::Ws => trial.messages(sample),
        Transport::Sse => trial.blocks(sample),
    }
    trial.out
}

struct Run<'a> {
    profile: &'a Profile,
    talk: Talk,
    /// From 1.
    session: u32,
    cursor: Option<String>,
    /// What this session's dial carried.
    carried: Option<String>,
    out: Trial,
}

impl Run<'_> {
    fn open(&mut self) {
        self.session += 1;
        self.carried.clone_from(&self.cursor);
        let values = known(self.carried.as_deref(), self.talk.named());
        let query = self.profile.query(&values);
        let headers = self.profile.headers(&values);
        let how = match &self.carried {
            Some(cursor) => format!("resumes from {}", quoted(cursor)),
            None => "from nothing".into(),
        };
        self.line(&format!("session {}: {how}", self.session));
        // Only what carries the cursor: other pairs may be nobody else's business.
        let spec = self.profile.spec();
        let carries = |pairs: &BTreeMap<String, String>, name: &str| {
            pairs.get(name).is_some_and(|text| holds_cursor(text))
        };
        let query = query.iter().filter(|(name, _)| carries(&spec.query, name));
        let headers = headers
            .iter()
            .filter(|(name, _)| carries(&spec.headers, name));
        let query = query.map(|(name, value)| format!("  query   {name}={}", show(value)));
        let headers = headers.map(|(name, value)| format!("  header  {name}: {}", show(value)));
        let dial: Vec<_> = query.chain(headers).collect();
        dial.iter().for_each(|line| self.line(line));
        let named = self.talk.named().to_vec();
        let values = known(self.carried.as_deref(), &named);
        let turn = self
            .talk
            .open(self.profile, Duration::ZERO, &values, &|_| None);
        self.turn(&turn);
    }

    fn messages(&mut self, sample: &str) {
        for line in sample.lines() {
            if line.starts_with("--") {
                self.open();
            } else if let Some(frame) = line.strip_prefix("S> ") {
                self.frame(line, Frame::text(frame));
            } else if !line.starts_with("C> ") && !line.trim().is_empty() {
                self.frame(line, Frame::text(line));
            }
        }
    }

    fn blocks(&mut self, sample: &str) {
        let mut parser = Parser::new(LONGEST);
        // A recorded stream may lack its last blank line, without which a live one would leave the block unfinished.
        for line in sample.lines().chain([""]) {
            if line.starts_with("--") {
                parser = Parser::new(LONGEST);
                self.open();
                continue;
            }
            let line = format!("{line}\n");
            let mut rest = line.as_bytes();
            while let Ok(Some(item)) = parser.read(&mut rest) {
                if let Item::Block(block) = item {
                    self.block(&block);
                }
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let id = block.id.as_ref().map(|id| format!("(id {id})"));
        let shown = [
            block.event.as_str(),
            id.as_deref().unwrap_or_default(),
            &block.data,
        ];
        let shown: Vec<_> = shown.into_iter().filter(|part| !part.is_empty()).collect();
        let kind = Kind::Event {
            name: block.name(),
            id: block.id.as_deref(),
            has_data: block.has_data,
        };
        let bytes = block.data.as_bytes();
        self.frame(&shown.join(" "), Frame { bytes, kind });
    }

    fn frame(&mut self, shown: &str, frame: Frame<'_>) {
        self.line(&format!("< {}", show(shown)));
        let named = self.talk.named().to_vec();
        let values = known(self.carried.as_deref(), &named);
        let turn = match self.talk.wants(self.profile, frame) {
            true => self.talk.hear(self.profile, Duration::ZERO, frame, &values),
            false => Turn::default(),
        };
        let carried = self
            .carried
            .as_ref()
            .map_or(Carried::Nothing, |_| Carried::Cursor);
        self.told_to_reload(&turn);
        let meanings = self.profile.decode(frame, carried);
        for meaning in &meanings {
            self.follow(meaning);
            self.line(&format!("  {}", told(meaning)));
        }
        match meanings
            .iter()
            .any(|meaning| matches!(meaning, Decoded::Unread(_)))
        {
            true => self.out.unread += 1,
            false => self.out.read += 1,
        }
        self.turn(&turn);
    }

    fn follow(&mut self, meaning: &Decoded) {
        match meaning {
            Decoded::Event(event) => match &event.cursor {
                Moves::To(cursor) => self.cursor = Some(cursor.to_string()),
                Moves::ToId if event.id.is_some() => {
                    self.cursor = event.id.as_deref().map(Into::into);
                }
                Moves::ToId | Moves::Nowhere => {}
            },
            Decoded::Cursor(id) | Decoded::Reset { id } => {
                self.cursor = id.as_deref().map(Into::into);
            }
            Decoded::ResumeRefused(_) => self.cursor = None,
            _ => {}
        }
    }

    fn told_to_reload(&mut self, turn: &Turn) {
        if turn.reset {
            self.cursor = None;
            self.line("  reset: what was captured or answered is another now");
        }
    }

    fn turn(&mut self, turn: &Turn) {
        for text in &turn.say {
            self.line(&format!("  > {}", show(text)));
        }
        if let Some(why) = &turn.end {
            self.line(&format!("  ends the session: {}", show(&why.to_string())));
        }
    }

    fn line(&mut self, text: &str) {
        self.out.text.push_str(text);
        self.out.text.push('\n');
    }
}

/// The first client's.
fn known<'a>(cursor: Option<&'a str>, named: &'a [Option<Box<str>>]) -> Values<'a> {
    Values {
        cursor,
        client: 1,
        named,
        ..Values::default()
    }
}

fn told(meaning: &Decoded) -> String {
    let named = |what: &str, id: &Option<Box<str>>| match id {
        Some(id) => format!("{what} {}", quoted(id)),
        None => format!("{what} none"),
    };
    match meaning {
        Decoded::Event(event) => {
            let mut text = named("event, id", &event.id);
            if let Some(seq) = event.seq {
                let _ = write!(text, ", seq {seq}");
            }
            match &event.cursor {
                Moves::ToId => {}
                Moves::To(cursor) => {
                    let _ = write!(text, ", cursor {}", quoted(cursor));
                }
                Moves::Nowhere => text.push_str(", cursor not moved"),
            }
            for (name, value) in [("order", &event.order), ("epoch", &event.epoch)] {
                if let Some(value) = value {
                    let _ = write!(text, ", {name} {}", quoted(value));
                }
            }
            if event.redelivered {
                text.push_str(", marked as sent again");
            }
            text
        }
        Decoded::Cursor(id) => named("cursor", id),
        Decoded::Reset { id } => named("reset, cursor", id),
        Decoded::CaughtUp => "caught up".into(),
        Decoded::ResumeRefused(why) => format!("resume refused: {}", show(why)),
        Decoded::Fatal(why) => format!("ends the session: {}", show(why)),
        Decoded::Ignored => "nothing to count".into(),
        Decoded::Unread(why) => format!("NOT READ: {}", show(why)),
    }
}

fn show(text: &str) -> Box<str> {
    safe(text.as_bytes(), SHOWN)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", show(text))
}

#[cfg(test)]
mod tests {
    use super::super::{Pointers, ProfileName, Spec};
    use super::*;

    fn tried(name: ProfileName, sample: &str) -> Trial {
        let profile = Profile::compile(&Spec::builtin(name), &Pointers::default()).unwrap();
        try_on(&profile, sample)
    }

    #[test]
    fn a_recorded_talk_is_read_frame_by_frame() {
        let sample = concat!(
            "S> 0{\"sid\":\"a\",\"pingInterval\":3000,\"pingTimeout\":2000}\n",
            "C> 40\n",
            "S> 40{\"sid\":\"b\",\"pid\":\"p\"}\n",
            "S> 42[\"event\",{\"id\":\"1\",\"seq\":5},\"Q8\"]\n",
            "2\n\n",
            "-- the server is restarted\n",
            "S> 0{\"sid\":\"c\",\"pingInterval\":3000,\"pingTimeout\":2000}\n",
            "S> 40{\"sid\":\"d\",\"pid\":\"q\"}\n",
            "S> 45\u{1b}[31m\n",
        );
        let trial = tried(ProfileName::Socketio, sample);
        insta::assert_snapshot!(trial.text, @r#"
        session 1: from nothing
        < S> 0{"sid":"a","pingInterval":3000,"pingTimeout":2000}
          nothing to count
          > 40
        < S> 40{"sid":"b","pid":"p"}
          caught up
        < S> 42["event",{"id":"1","seq":5},"Q8"]
          event, id "1", seq 5, cursor "Q8"
        < 2
          nothing to count
          > 3
        session 2: resumes from "Q8"
        < S> 0{"sid":"c","pingInterval":3000,"pingTimeout":2000}
          nothing to count
          > 40{"pid":"p","offset":"Q8"}
        < S> 40{"sid":"d","pid":"q"}
          reset: what was captured or answered is another now
          caught up
        < S> 45\u{1b}[31m
          NOT READ: strip finds no JSON in it
        "#);
        assert_eq!((trial.read, trial.unread), (6, 1));
    }

    #[test]
    fn a_recorded_stream_is_read_block_by_block() {
        let sample = "\u{feff}: hi\n\nevent: tick\nid: 2\ndata: line2\ndata: second\n\nid: 3\n\n-- again\ndata:x";
        let trial = tried(ProfileName::Sse, sample);
        insta::assert_snapshot!(trial.text, @r#"
        session 1: from nothing
        < tick (id 2) line2\nsecond
          event, id "2"
        < (id 3)
          cursor "3"
        session 2: resumes from "3"
          header  Last-Event-ID: 3
        < x
          NOT READ: no id at sse:id
        "#);
        assert_eq!((trial.read, trial.unread), (2, 1));
    }

    #[test]
    fn no_secret_is_shown() {
        let spec = Spec::parse(
            "base = \"resume\"\nquery = { token = \"{env:HERD_SECRET}\" }\n[[open]]\nsend = '{\"auth\":\"{file:/no/such}\",\"id\":{cursor|json}}'\notherwise = \"auth {env:HERD_SECRET}\"",
        )
        .unwrap();
        let profile = Profile::compile(&spec.without_secrets(), &Pointers::default()).unwrap();
        let text = try_on(&profile, "{\"id\":1}\n--").text;
        assert!(text.contains("> auth ***"), "{text}");
        assert!(text.contains("> {\"auth\":\"***\",\"id\":\"1\"}"), "{text}");
        assert!(!text.contains("token"), "{text}");
    }
}
