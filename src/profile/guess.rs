//! What a server seems to speak, from the frames that a profile could not read or from an answer to a handshake that was
//! none. A guess for people, in one sentence that says what to try; nothing depends on it.
//!
//! It knows how protocols look from outside and nothing of how they are read.

/// What was asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// To become a WebSocket.
    WebSocket,
    /// For an event stream.
    EventStream,
}

/// One protocol as it looks from outside.
struct Look {
    /// The built-in profile that reads it; empty where there is none.
    profile: &'static str,
    /// Whether a frame, without leading blanks, is one of its own.
    is: fn(&str) -> bool,
    says: &'static str,
}

/// The surest looks first.
const LOOKS: &[Look] = &[
    Look {
        profile: "socketio",
        is: |f| f.starts_with("0{\"sid\"") || f.starts_with("40{\"sid\"") || f.starts_with("42["),
        says: "the frames look like Engine.IO, which Socket.IO speaks: try --profile socketio",
    },
    Look {
        profile: "",
        is: |f| f.contains("\"event\":\"pusher"),
        says: "the frames look like Pusher's protocol, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "",
        is: |f| f.starts_with('[') && f.contains("\"phx_") || f.contains("\"event\":\"phx_"),
        says: "the frames look like Phoenix channels, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "nestjs-ws",
        is: |f| f.starts_with("{\"event\":") && f.contains("\"data\":"),
        says: "the frames look like a NestJS gateway's, an event and its data: try --profile nestjs-ws",
    },
    Look {
        profile: "",
        is: |f| {
            f.starts_with("{\"push\":")
                || f.starts_with("{\"id\":") && f.contains("\"connect\":{\"client\"")
                || f.starts_with("{\"id\":") && f.contains("\"subscribe\":{")
        },
        says: "the frames look like Centrifugo's, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "",
        is: |f| {
            f.contains("\"type\":\"welcome\"") || f.contains("\"type\":\"confirm_subscription\"")
        },
        says: "the frames look like Action Cable, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "",
        is: |f| f.contains("\"type\":\"connection_ack\"") || f.contains("\"type\":\"next\""),
        says: "the frames look like GraphQL over WebSocket, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "",
        is: |f| f.starts_with('{') && (f.ends_with('\u{1e}') || f.ends_with("\\u{1e}")),
        says: "the frames look like SignalR, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "",
        is: |f| f.starts_with("INFO {"),
        says: "the frames look like NATS, for which herd has no built-in profile",
    },
    Look {
        profile: "",
        is: |f| f.starts_with("id: ") && f.contains("content-type:"),
        says: "the frames look like Nchan's with meta data, for which herd has no built-in profile: describe it in a [profile] table",
    },
    Look {
        profile: "resume",
        is: |f| {
            ["caught-up", "resume-error", "resume_error"]
                .iter()
                .any(|word| f.contains(&format!("\"type\":\"{word}\"")))
                || f.contains("\"lastEventId\"")
        },
        says: "the frames look like those of a resume protocol: try --profile resume",
    },
];

/// Guesses from up to the first few frames that a profile (by its name) could not read; escaped and cut text will do.
/// None where they look like nothing known.
#[must_use]
pub fn from_frames(frames: &[&str], profile: &str) -> Option<&'static str> {
    let compact: Vec<String> = frames.iter().map(|frame| compact(frame)).collect();
    let seen = |look: &&Look| compact.iter().any(|frame| (look.is)(frame));
    let known = LOOKS.iter().find(seen);
    match known {
        Some(look) if look.profile != profile => Some(look.says),
        _ if compact.iter().any(|frame| frame.starts_with('{')) => Some(
            "the frames are JSON: see where in them the event's id and herd's number stand, and point --id and --seq there",
        ),
        _ if compact.iter().any(|frame| frame.starts_with('\u{fffd}')) => Some(
            "the frames are binary: herd reads text; ask the server for a text encoding, if it has one",
        ),
        _ => None,
    }
}

/// Without the blanks that writers of JSON put after colons and commas.
fn compact(frame: &str) -> String {
    let frame = frame.trim_start();
    frame.replace("\": ", "\":").replace(", \"", ",\"")
}

/// Guesses from an answer that was not the one asked for: its status and content type. None where that says nothing.
#[must_use]
pub fn from_answer(asked: Asked, status: u16, content_type: Option<&str>) -> Option<&'static str> {
    let essence = content_type.and_then(|t| t.split(';').next()).unwrap_or("");
    let is = |wanted: &str| essence.trim().eq_ignore_ascii_case(wanted);
    match (asked, status) {
        (Asked::WebSocket, 200) if is("text/event-stream") => Some(
            "it is an event stream: write the target with http:// or https://, and use --profile sse",
        ),
        (Asked::WebSocket, 200) if is("text/html") => {
            Some("it is a web page: is that the path of the WebSocket?")
        }
        (Asked::WebSocket, 200) => Some(
            "it answers plain HTTP: is that the path of the WebSocket? an event stream is written with http:// or https:// and --profile sse",
        ),
        (Asked::WebSocket, 400) if is("application/json") => Some(
            "an Engine.IO server answers so to what isn't its handshake: is it Socket.IO? then try --profile socketio",
        ),
        (Asked::EventStream, 101 | 426) => {
            Some("it wants to become a WebSocket: write the target with ws:// or wss://")
        }
        (Asked::EventStream, 400) => Some(
            "WebSocket servers answer so to a plain request: if it is one, write the target with ws:// or wss://",
        ),
        (Asked::EventStream, 200) if is("text/html") => {
            Some("it is a web page: is that the path of the event stream?")
        }
        (Asked::EventStream, 200) if !essence.is_empty() && !is("text/event-stream") => {
            Some("it is no event stream: check the path, or use the profile that reads what it is")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(frame: &str) -> &'static str {
        from_frames(&[frame], "after").unwrap_or("nothing")
    }

    /// First frames as servers were seen to send them.
    #[test]
    fn a_protocol_is_known_by_its_first_frames() {
        for (frame, says) in [
            (
                r#"0{"sid":"oUFD","upgrades":[],"pingInterval":3000}"#,
                "--profile socketio",
            ),
            (r#"42["event",{"id":"1"},"Q8hz_kk"]"#, "--profile socketio"),
            (
                r#"{"event":"tick","data":{"id":2,"v":"b"}}"#,
                "--profile nestjs-ws",
            ),
            (
                r#"{"event": "tick", "data": {"id": 2}}"#,
                "--profile nestjs-ws",
            ),
            (
                r#"{"event":"pusher:connection_established","data":"{}"}"#,
                "Pusher",
            ),
            (
                r#"{"id":1,"connect":{"client":"u","version":"6","ping":25}}"#,
                "Centrifugo",
            ),
            (
                r#"{"push":{"channel":"ev","pub":{"data":{},"offset":4}}}"#,
                "Centrifugo",
            ),
            (r#"{"type":"welcome"}"#, "Action Cable"),
            (
                r#"["1","1","room:1","phx_reply",{"status":"ok"}]"#,
                "Phoenix",
            ),
            ("{}\u{1e}", "SignalR"),
            (r"{}\u{1e}", "SignalR"),
            (r#"{"type":"connection_ack"}"#, "GraphQL"),
            ("INFO {\"server_id\":\"N\"}\\r\\n", "NATS"),
            (
                "id: 1796033310:1\\ncontent-type: text/plain\\n\\nm5",
                "Nchan",
            ),
            (
                r#"{"type":"caught-up","lastEventId":"42"}"#,
                "--profile resume",
            ),
            (r#"{"msg":"tick"}"#, "--id and --seq"),
            ("\u{fffd}\u{fffd}a", "binary"),
            ("hello", "nothing"),
        ] {
            assert!(guess(frame).contains(says), "{frame}: {}", guess(frame));
        }
        assert_eq!(from_frames(&[], "after"), None);
    }

    /// Whoever uses the profile already needs another hint.
    #[test]
    fn the_profile_in_use_is_never_proposed() {
        let frame = [r#"{"event":"tick","data":{"n":2}}"#];
        let says = from_frames(&frame, "nestjs-ws");
        assert!(says.is_some_and(|says| says.contains("--id and --seq")));
        assert_eq!(from_frames(&["42[\"tick\",{}]"], "socketio"), None);
    }

    #[test]
    fn an_answer_that_is_none_tells_the_transport() {
        let ws = |status, kind| from_answer(Asked::WebSocket, status, kind).unwrap_or("nothing");
        let sse = |status, kind| from_answer(Asked::EventStream, status, kind).unwrap_or("nothing");
        assert!(ws(200, Some("text/event-stream; charset=utf-8")).contains("--profile sse"));
        assert!(ws(200, Some("text/html")).contains("web page"));
        assert!(ws(400, Some("application/json")).contains("--profile socketio"));
        assert!(ws(200, None).contains("plain HTTP"));
        assert_eq!(ws(404, Some("text/html")), "nothing");
        assert_eq!(ws(503, None), "nothing");
        for status in [101, 426, 400] {
            assert!(sse(status, None).contains("ws://"), "{status}");
        }
        assert!(sse(200, Some("text/plain")).contains("no event stream"));
        assert_eq!(sse(200, Some("Text/Event-Stream")), "nothing");
        assert_eq!(sse(200, None), "nothing");
        assert_eq!(sse(500, Some("text/html")), "nothing");
    }
}
