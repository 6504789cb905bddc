//! The forms in which this server says things: one log, spoken of in three dialects.
//!
//! Pure: what is said and when is the feed's business, how it gets to the client the endpoints'. It knows no cursor, no
//! socket and no defect.

use axum::extract::ws::Utf8Bytes;
use serde_json::{Value, json};

use super::log::Event;

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `/v1/live`: a WebSocket, the cursor in the URL.
    Live,
    /// `/v1/events`: an event stream, the cursor in `Last-Event-ID`.
    Events,
    /// `/v1/resume`: a WebSocket, the cursor in the client's first frame.
    Resume,
}

/// What a subscriber is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// An event.
    Event(Event),
    /// An event that it may have, and says so.
    Again(Event),
    /// The first half of an event.
    Half(Event),
    /// Its cursor can't be honoured: it must reload, and goes on from this id.
    Reset {
        /// The newest id.
        id: u64,
        /// Why.
        why: Gone,
    },
    /// It must reload what is not newer than this id; what is newer follows.
    Partly(u64),
    /// The replay is over, and this was the newest id in it; 0 = there is none.
    CaughtUp(u64),
}

/// Why a cursor can't be honoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Something after it is no longer kept.
    Evicted,
    /// This log never gave it.
    Unknown,
}

impl Gone {
    /// The word on the wire.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::Unknown => "unknown-id",
        }
    }
}

impl Dialect {
    /// How many recent events a first connection gets.
    pub(crate) fn recent(self) -> u64 {
        match self {
            Self::Live | Self::Events => 0,
            Self::Resume => 100,
        }
    }

    /// Whether the end of a replay is told.
    pub(crate) fn marks(self) -> bool {
        self == Self::Resume
    }

    /// Whether nothing may follow: here a client that must reload comes again without its cursor.
    pub(crate) fn ends_with(self, item: &Item) -> Option<Gone> {
        match item {
            Item::Reset { why, .. } if self == Self::Resume => Some(*why),
            _ => None,
        }
    }

    /// The whole frame, or block of the stream.
    pub(crate) fn form(self, item: &Item) -> Utf8Bytes {
        match self {
            Self::Live | Self::Resume => self.frame(item),
            Self::Events => block(item).into(),
        }
    }

    /// The order of an object's keys means nothing, so an event has the same bytes in both dialects of the WebSocket.
    fn frame(self, item: &Item) -> Utf8Bytes {
        match item {
            Item::Event(event) => event.frame.clone(),
            Item::Again(event) => {
                let open = event.frame.strip_suffix('}').unwrap_or(&event.frame);
                format!(r#"{open},"redelivered":true}}"#).into()
            }
            Item::Half(event) => half(&event.frame).into(),
            Item::Reset { why, .. } if self == Self::Resume => {
                said(&json!({ "type": "resume-error", "reason": why.reason() }))
            }
            Item::Reset { id, .. } | Item::Partly(id) => {
                said(&json!({ "type": "reset", "id": id.to_string() }))
            }
            Item::CaughtUp(id) => {
                said(&json!({ "type": "caught-up", "lastEventId": last_event_id(*id) }))
            }
        }
    }
}

fn said(value: &Value) -> Utf8Bytes {
    value.to_string().into()
}

fn last_event_id(id: u64) -> Option<String> {
    (id > 0).then(|| id.to_string())
}

fn block(item: &Item) -> String {
    match item {
        Item::Event(event) => event_block(event.id, event.data()),
        Item::Again(event) => event_block(event.id, &marked(event.data())),
        // The block is whole and its id counts, as where a server escapes its data wrongly.
        Item::Half(event) => event_block(event.id, half(event.data())),
        Item::Reset { id, .. } | Item::Partly(id) => {
            format!("id: {id}\nevent: reset\ndata: {id}\n\n")
        }
        // Without an id of its own: a mark must not move a cursor over what was not sent.
        Item::CaughtUp(id) => {
            let data = json!({ "lastEventId": last_event_id(*id) });
            format!("event: caught-up\ndata: {data}\n\n")
        }
    }
}

/// JSON may hold line breaks between its tokens; each line is one of the block's, and the client joins them again.
fn event_block(id: u64, data: &str) -> String {
    let mut block = format!("id: {id}\nevent: event\n");
    for line in data.split(['\r', '\n']) {
        block.push_str("data: ");
        block.push_str(line);
        block.push('\n');
    }
    block.push('\n');
    block
}

/// Here the mark stands in what was published, which alone is the data; what is no object is put into one.
fn marked(data: &str) -> String {
    match data.strip_prefix('{').map(str::trim_start) {
        Some("}") => r#"{"redelivered":true}"#.into(),
        Some(rest) => format!(r#"{{"redelivered":true,{rest}"#),
        None => format!(r#"{{"redelivered":true,"data":{data}}}"#),
    }
}

fn half(text: &str) -> &str {
    let cut = (0..=text.len() / 2).rfind(|&i| text.is_char_boundary(i));
    &text[..cut.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Dialect; 3] = [Dialect::Live, Dialect::Events, Dialect::Resume];

    fn told(dialect: Dialect) -> String {
        let event = Event::new(42, r#"{"seq":7}"#);
        let items = [
            Item::Event(event.clone()),
            Item::Again(event.clone()),
            Item::Half(event),
            Item::Reset {
                id: 42,
                why: Gone::Evicted,
            },
            Item::CaughtUp(42),
            Item::CaughtUp(0),
        ];
        items.map(|item| dialect.form(&item).to_string()).join("\n")
    }

    #[test]
    fn each_dialect_has_its_forms() {
        insta::assert_snapshot!(ALL.map(told).join("\n---\n"), @r#"
        {"id":"42","type":"event","data":{"seq":7}}
        {"id":"42","type":"event","data":{"seq":7},"redelivered":true}
        {"id":"42","type":"ev
        {"id":"42","type":"reset"}
        {"lastEventId":"42","type":"caught-up"}
        {"lastEventId":null,"type":"caught-up"}
        ---
        id: 42
        event: event
        data: {"seq":7}


        id: 42
        event: event
        data: {"redelivered":true,"seq":7}


        id: 42
        event: event
        data: {"se


        id: 42
        event: reset
        data: 42


        event: caught-up
        data: {"lastEventId":"42"}


        event: caught-up
        data: {"lastEventId":null}


        ---
        {"id":"42","type":"event","data":{"seq":7}}
        {"id":"42","type":"event","data":{"seq":7},"redelivered":true}
        {"id":"42","type":"ev
        {"reason":"evicted","type":"resume-error"}
        {"lastEventId":"42","type":"caught-up"}
        {"lastEventId":null,"type":"caught-up"}
        "#);
    }

    #[test]
    fn what_was_published_is_one_json_body_whatever_its_white_space() {
        for data in [
            "{\n\"a\": 1,\r\n\"b\":\r2}",
            "\"\\n\"",
            "{ }",
            "{}",
            "[1]",
            "0.10",
        ] {
            let event = Event::new(1, data);
            for item in [Item::Event(event.clone()), Item::Again(event)] {
                let block = Dialect::Events.form(&item).to_string();
                assert!(
                    block.ends_with("\n\n") && !block.contains('\r'),
                    "{block:?}"
                );
                assert_eq!(block.matches("\n\n").count(), 1, "{block:?}");
                let lines = block.lines().filter_map(|line| line.strip_prefix("data: "));
                let body = lines.collect::<Vec<_>>().join("\n");
                let body: Value = serde_json::from_str(&body).unwrap();
                if matches!(item, Item::Event(_)) {
                    assert_eq!(body, serde_json::from_str::<Value>(data).unwrap());
                } else {
                    assert_eq!(body["redelivered"], true);
                }
            }
        }
    }

    #[test]
    fn half_of_a_text_is_cut_between_characters() {
        assert_eq!(half("éé"), "é");
        assert_eq!(half("aéé"), "a");
        assert_eq!(half("x"), "");
    }
}
