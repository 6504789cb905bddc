//! A profile as it is written: the form of its TOML. Nothing is checked here but names and kinds (`profile/compile.rs`
//! does the rest), and nothing is read by it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Transport;
use super::form::{is_default, one_or_many, time};
use crate::history::{Duplicates, IdKind};

/// A protocol: what is said over a transport and how frames are read.
///
/// In TOML, `base = "socketio"` starts from a built-in one: keys that are given replace its keys, and tables are merged
/// key by key; lists are replaced as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(
    remote = "Self",
    rename_all = "kebab-case",
    deny_unknown_fields,
    default
)]
pub struct Spec {
    /// The name in reports.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// What it is, in one line.
    #[serde(skip_serializing_if = "is_default")]
    pub summary: String,
    /// The servers that it was tried with.
    #[serde(skip_serializing_if = "is_default")]
    pub tested: String,
    /// How its bytes move.
    pub transport: Transport,
    /// The path where the target's URL names none; begins with `/`.
    #[serde(skip_serializing_if = "is_default")]
    pub path: Option<String>,
    /// The subprotocols offered, in order of preference.
    #[serde(skip_serializing_if = "is_default")]
    pub subprotocols: Vec<String>,
    /// How long the open script may take; 10 s where nothing is said.
    #[serde(skip_serializing_if = "is_default", with = "time")]
    pub timeout: Option<Duration>,
    /// How ids (or order keys, where there are any) are compared; opaque where nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub ids: Option<IdKind>,
    /// Whether integer ids have no holes.
    #[serde(skip_serializing_if = "is_default")]
    pub contiguous: bool,
    /// Which raw duplicates the protocol allows.
    #[serde(skip_serializing_if = "is_default")]
    pub duplicates: Duplicates,
    /// Query pairs, name to template. A pair is left out while something that stands in its template is unset.
    #[serde(skip_serializing_if = "is_default")]
    pub query: BTreeMap<String, String>,
    /// Headers of the handshake, name to template; left out alike.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: BTreeMap<String, String>,
    /// What is said at the beginning of every session, in this order.
    #[serde(skip_serializing_if = "is_default")]
    pub open: Vec<Step>,
    /// How a frame becomes something that rules can look into.
    #[serde(skip_serializing_if = "is_default")]
    pub decoding: Decoding,
    /// What a frame means: the first rule that fits decides, one without a condition fits always.
    #[serde(skip_serializing_if = "is_default")]
    pub frame: Vec<Rule>,
    /// Where in an event things stand.
    #[serde(skip_serializing_if = "is_default")]
    pub event: Extract,
    /// What besides frames says that the client must reload.
    #[serde(skip_serializing_if = "is_default")]
    pub reset: ResetOn,
    /// The client's own beat, and how long silence may last.
    #[serde(skip_serializing_if = "is_default")]
    pub beat: Beat,
    /// HTTP statuses that mean more than "try again".
    #[serde(skip_serializing_if = "is_default")]
    pub status: Codes,
    /// Close codes that mean more than "come back".
    #[serde(skip_serializing_if = "is_default")]
    pub close: Codes,
    /// How herd publishes, where the scenario doesn't say.
    #[serde(skip_serializing_if = "is_default")]
    pub publish: Option<Recipe>,
}

/// A step of the open script: says something, then waits for a frame.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Step {
    /// What is said, a template; nothing while something that stands in it is unset.
    #[serde(skip_serializing_if = "is_default")]
    pub send: Option<String>,
    /// What is said instead then.
    #[serde(skip_serializing_if = "is_default")]
    pub otherwise: Option<String>,
    /// The frame to wait for.
    #[serde(skip_serializing_if = "is_default")]
    pub expect: Option<Matcher>,
    /// What is kept of it, name to place; kept over sessions, until a later session's frame brings another or none.
    #[serde(skip_serializing_if = "is_default")]
    pub capture: BTreeMap<String, String>,
}

/// Conditions on a frame; all that are given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Matcher {
    /// The block's name is one of these (event streams).
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub event: Vec<String>,
    /// The kind of message (WebSocket).
    #[serde(skip_serializing_if = "is_default")]
    pub kind: Option<FrameKind>,
    /// A regular expression finds something in its bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub raw: Option<String>,
    /// These hold something other than null.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub exists: Vec<String>,
    /// These hold nothing, or null.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub absent: Vec<String>,
    /// What stands at a pointer is this text, number or truth value.
    #[serde(skip_serializing_if = "is_default")]
    pub equals: BTreeMap<String, toml::Value>,
    /// What stands at a pointer is something else, or nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub differs: BTreeMap<String, toml::Value>,
    /// A regular expression finds something in the text or number at a pointer.
    #[serde(skip_serializing_if = "is_default")]
    pub matches: BTreeMap<String, String>,
    /// Whether the connection's dial carried a cursor.
    #[serde(skip_serializing_if = "is_default")]
    pub on: Option<When>,
}

/// The kinds of WebSocket messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameKind {
    /// Text.
    Text,
    /// Binary.
    Binary,
}

/// What kind of session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Its dial carried no cursor.
    First,
    /// Its dial carried one.
    Resume,
}

/// A rule: what a frame means, and when.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Rule {
    /// Its meanings, in this order.
    #[serde(deserialize_with = "one_or_many")]
    pub is: Vec<Class>,
    /// The conditions; none = any frame.
    #[serde(skip_serializing_if = "is_default")]
    pub when: Matcher,
    /// Where the event (or the array of a batch) stands; the frame itself where nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub at: Option<String>,
    /// Where a reset names its id; as in an event where nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// Where a cursor that no event carries stands; nothing said, or nothing there, clears the cursor.
    #[serde(skip_serializing_if = "is_default")]
    pub cursor: Option<String>,
    /// Where the reason of a refusal stands; the frame itself where nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub why: Option<String>,
    /// What answers a heartbeat, a template.
    #[serde(skip_serializing_if = "is_default")]
    pub reply: Option<String>,
}

/// What a frame can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// An event.
    Event,
    /// An array of events; none where it is missing.
    Batch,
    /// Moves or clears the cursor, and is no event.
    Cursor,
    /// A sign of life.
    Heartbeat,
    /// The replay is over.
    CaughtUp,
    /// The client must reload.
    Reset,
    /// The server refuses to resume; the next session asks without a cursor.
    ResumeError,
    /// The server ends the session.
    Fatal,
    /// Known, and nothing to count.
    Ignore,
}

/// How bytes become something to look into.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Decoding {
    /// A message is several frames with this between them; empty ones count for nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub split: Option<String>,
    /// A regular expression whose group `json` is the JSON; where it finds nothing, there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub strip: Option<String>,
    /// Whether frames are JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub json: Json,
    /// Pointers to strings that are JSON themselves and are read as such.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub reparse: Vec<String>,
    /// A pointer to an array each of whose elements is a frame of its own; where it is none, the frame is one.
    #[serde(skip_serializing_if = "is_default")]
    pub each: Option<String>,
}

/// Whether frames are JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Json {
    /// They are.
    #[default]
    Always,
    /// Where they aren't, the text is taken for a JSON string.
    Maybe,
}

/// Where in an event things stand: JSON Pointers (in which `-1` is the last element), `text:` and a pointer to what must be
/// a string, `sse:id`, `group:NAME` of the rule's `raw`, or several of them in braces with text between:
/// `"{/offset}/{/stream}"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Extract {
    /// What makes two deliveries the same event.
    #[serde(skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// herd's number; the first of these that holds one.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub seq: Vec<String>,
    /// What is sent back to resume; the id where nothing is said. The first of these that is there; the word `id` is the
    /// id. An event that holds none leaves the cursor as it was.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub cursor: Vec<String>,
    /// What must rise, where that isn't the id.
    #[serde(skip_serializing_if = "is_default")]
    pub order: Option<String>,
    /// Within which ids and order keys are comparable.
    #[serde(skip_serializing_if = "is_default")]
    pub epoch: Option<String>,
    /// Is true where the event may have been sent before.
    #[serde(skip_serializing_if = "is_default")]
    pub redelivered: Option<String>,
    /// The part that must be equal wherever the id is. What herd sent is found beside its number first.
    #[serde(skip_serializing_if = "is_default")]
    pub content: Option<String>,
}

/// What besides frames says that the client must reload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ResetOn {
    /// Captures that another session's frame must not change.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub changed: Vec<String>,
    /// A header of the answer that must hold the cursor that was sent, where it is there.
    #[serde(skip_serializing_if = "is_default")]
    pub header: Option<String>,
}

/// The client's own beat, and how long silence may last. Times are sums of durations and of captures: `"ping + 5s"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Beat {
    /// What the client says again and again, a template.
    #[serde(skip_serializing_if = "is_default")]
    pub send: Option<String>,
    /// How often.
    #[serde(skip_serializing_if = "is_default")]
    pub every: Option<String>,
    /// Whether the first beat of a session comes after a part of that only, another one for each client.
    #[serde(skip_serializing_if = "is_default")]
    pub jitter: bool,
    /// After how long without any frame the server counts as dead; no limit while a capture in it is unset or 0.
    #[serde(skip_serializing_if = "is_default")]
    pub dead: Option<String>,
    /// What captured times count; milliseconds where nothing is said.
    #[serde(skip_serializing_if = "is_default")]
    pub unit: Unit,
}

/// A unit of captured times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unit {
    /// Milliseconds.
    #[default]
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
}

/// Codes that mean something; `"204"` or `"3500-3999"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Codes {
    /// The client stops for good.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub stop: Vec<String>,
    /// The client must reload.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "one_or_many")]
    pub reset: Vec<String>,
}

/// How herd publishes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Recipe {
    /// The path of the publish URL, on the target's host.
    #[serde(skip_serializing_if = "is_default")]
    pub path: Option<String>,
    /// Headers, name to template.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: BTreeMap<String, String>,
    /// The body, a template: `{seq}`, `{payload}`.
    #[serde(skip_serializing_if = "is_default")]
    pub body: Option<String>,
    /// JSON Pointer of the id in the answer.
    #[serde(skip_serializing_if = "is_default")]
    pub answer_id: Option<String>,
    /// JSON Pointer of the position in the answer.
    #[serde(skip_serializing_if = "is_default")]
    pub answer_position: Option<String>,
    /// Whether the same body sent twice is stored once.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotent: bool,
}
