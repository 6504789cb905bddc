//! Clients that talk: scripts, beats, resets and refusals of profiles, against servers that play a part.

use futures::{SinkExt, StreamExt};
use herd::history::{Cause, Client, Entry, History, Quit, Seq};
use herd::profile::Spec;
use herd::scenario::{Scenario, Via};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

use super::rig::{ids, retries, run, tungstenite};

/// What a server does in one session.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Sends a text message.
    Say(&'static str),
    /// Reads a text message of the client's.
    Hear,
    /// Closes with a code.
    Close(u16),
    /// Waits until the client is gone.
    Stay,
}
use Act::{Close, Hear, Say, Stay};

/// Plays the sessions in turn; tells what the clients said.
async fn play(
    profile: &str,
    change: impl FnOnce(&mut Scenario),
    sessions: &'static [&'static [Act]],
) -> (History, Client, Vec<String>) {
    let (sent, told) = unbounded_channel();
    let turn = Arc::new(AtomicUsize::new(0));
    let spec = Spec::parse(profile).unwrap();
    let set = |s: &mut Scenario| {
        s.connect.profile = spec;
        s.policy.mix = retries(sessions.len() as u32 - 1);
        change(s);
    };
    let (history, client) = run(set, move |stream: TcpStream| {
        let acts = sessions[turn.fetch_add(1, SeqCst)];
        let sent = sent.clone();
        async move { session(tungstenite(stream).await, acts, &sent).await }
    })
    .await;
    (history, client, all(told))
}

async fn session(mut ws: WebSocketStream<TcpStream>, acts: &[Act], sent: &UnboundedSender<String>) {
    for act in acts {
        match act {
            Say(text) => ws.send(Message::text(*text)).await.unwrap(),
            Hear => match ws.next().await {
                Some(Ok(message)) => sent.send(message.into_text().unwrap().to_string()).unwrap(),
                other => panic!("{other:?}"),
            },
            Close(code) => {
                let frame = CloseFrame {
                    code: CloseCode::from(*code),
                    reason: "".into(),
                };
                ws.close(Some(frame)).await.unwrap();
            }
            Stay => {}
        }
    }
    while let Some(Ok(_)) = ws.next().await {}
}

fn all(mut told: UnboundedReceiver<String>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Ok(line) = told.try_recv() {
        lines.push(line);
    }
    lines
}

fn causes(client: &Client) -> Vec<Cause> {
    let sessions = client.sessions.iter();
    sessions.map(|s| s.closed.clone().unwrap().1).collect()
}

/// What the client's sessions carried.
fn carried(history: &History, client: &Client) -> Vec<Option<String>> {
    let from = client.sessions.iter().map(|s| s.resumed_from);
    from.map(|event| Some(history.event(event?).id.as_deref()?.to_owned()))
        .collect()
}

/// Receipts (by id) and resets, in order.
fn stream(history: &History, client: &Client) -> Vec<String> {
    let entries = client.entries(history).filter_map(|entry| match entry {
        Entry::Receipt(receipt) => history
            .event(receipt.event)
            .id
            .as_deref()
            .map(str::to_owned),
        Entry::Reset { .. } => Some("reset".into()),
        Entry::Session { .. } => None,
    });
    entries.collect()
}

/// A dialect with a session id that must not change, a cursor beside the ids, and beats.
const CHATTY: &str = r#"
name = "chatty"
timeout = "300ms"

[[open]]
expect = { exists = "/hello" }
capture = { ping = "/hello/ping" }

[[open]]
send = '{"resume":{"sid":{sid|json},"at":{cursor|json}}}'
otherwise = '{"start":{client}}'
expect = { exists = "/ok" }
capture = { sid = "/ok/sid" }

[[frame]]
is = "heartbeat"
when = { raw = '^\{"ping":\d' }
reply = '{"pong":true}'

[[frame]]
is = "caught-up"
when = { exists = "/ok" }

[[frame]]
is = "resume-error"
when = { exists = "/gone" }
why = "/gone"

[[frame]]
is = "fatal"
when = { exists = "/fatal" }
why = "/fatal"

[[frame]]
is = "event"
when = { exists = "/id" }

[[frame]]
is = "ignore"
when = { exists = "/hello" }

[event]
id = "/id"
seq = "/n"
cursor = "/at"

[reset]
changed = "sid"

[close]
stop = "4001"
reset = "4002"

[status]
stop = "403"
"#;

const HELLO: Act = Say(r#"{"hello":{"ping":0}}"#);
const OK: Act = Say(r#"{"ok":{"sid":"s1"}}"#);

#[tokio::test]
async fn a_script_is_spoken_in_order_and_events_in_it_count() {
    let (history, client, told) = play(
        CHATTY,
        |_| {},
        &[
            &[HELLO, Hear, Say(r#"{"id":"1","at":"c1"}"#), OK, Close(1012)],
            &[
                HELLO,
                Hear,
                Say(r#"{"id":"2","at":"c2"}"#),
                OK,
                Say(r#"{"id":"volatile"}"#),
                Close(1012),
            ],
            &[HELLO, Hear, OK, Close(1001)],
        ],
    )
    .await;
    assert_eq!(
        told,
        [
            r#"{"start":1}"#,
            r#"{"resume":{"sid":"s1","at":"c1"}}"#,
            r#"{"resume":{"sid":"s1","at":"c2"}}"#,
        ]
    );
    assert_eq!(ids(&history, &client), ["1", "2", "volatile"]);
    assert_eq!(
        carried(&history, &client),
        [None, Some("c1".into()), Some("c2".into())]
    );
    assert!(client.sessions.iter().all(|s| s.marker.is_some()));
}

#[tokio::test]
async fn a_capture_that_changed_is_a_reset_before_the_rest_of_its_frame() {
    let (history, client, told) = play(
        CHATTY,
        |_| {},
        &[
            &[HELLO, Hear, OK, Say(r#"{"id":"1","at":"c1"}"#), Close(1012)],
            &[
                HELLO,
                Hear,
                Say(r#"{"ok":{"sid":"s2"},"id":"x"}"#),
                Close(1012),
            ],
            &[HELLO, Hear, OK, Close(1012)],
        ],
    )
    .await;
    assert_eq!(stream(&history, &client)[..2], ["1", "reset"]);
    assert_eq!(
        told[2], r#"{"start":1}"#,
        "the cursor is gone with the session"
    );
    assert_eq!(carried(&history, &client)[2], None);
}

#[tokio::test]
async fn a_script_that_is_not_answered_ends_the_session() {
    let acts: &[Act] = &[HELLO, Hear, Say(r#"{"okay":"secret?"}"#), Stay];
    let sessions: &'static [&'static [Act]] = Box::leak(Box::new([acts]));
    let (_, client, told) = play(CHATTY, |_| {}, sessions).await;
    assert_eq!(told.len(), 1);
    assert_eq!(causes(&client), [Cause::Unanswered]);
    let why = client.sessions[0].unanswered.as_deref();
    let said = r#"open[2].expect: what came doesn't fit it: {"okay":"secret?"}"#;
    assert_eq!(why, Some(said));
}

#[tokio::test]
async fn only_an_opening_that_is_not_done_is_told_as_unanswered() {
    let (_, client, _) = play(
        CHATTY,
        |_| {},
        &[&[HELLO, Hear, OK, Close(1012)], &[HELLO, Hear, Close(1012)]],
    )
    .await;
    let told = client.sessions.iter().map(|s| s.unanswered.as_deref());
    let nothing = "open[2].expect: nothing came that could fit it";
    assert_eq!(told.collect::<Vec<_>>(), [None, Some(nothing)]);
}

#[tokio::test]
async fn heartbeats_are_answered_and_silence_is_death() {
    const BEATS: &str = r#"
base = "after"
[[frame]]
is = "heartbeat"
when = { raw = '^ping$' }
reply = "pong"
[[frame]]
is = "event"
[decoding]
json = "maybe"
[beat]
send = "beat {client}"
every = "100ms"
dead = "500ms"
"#;
    let acts: &[Act] = &[Say("ping"), Hear, Hear, Say(r#"{"id":"1"}"#), Hear, Stay];
    let sessions: &'static [&'static [Act]] = Box::leak(Box::new([acts]));
    let (history, client, told) = play(BEATS, |_| {}, sessions).await;
    assert_eq!(told, ["pong", "beat 1", "beat 1"]);
    assert_eq!(ids(&history, &client), ["1"]);
    assert_eq!(causes(&client), [Cause::Heartbeat]);
    let (closed, _) = client.sessions[0].closed.clone().unwrap();
    assert!(closed.since(client.sessions[0].opened).as_millis() >= 500);
}

#[tokio::test]
async fn what_the_protocol_forbids_is_not_tried_again() {
    const SESSIONS: &[&[Act]] = &[&[HELLO, Close(4001)], &[Stay]];
    let (_, client, _) = play(CHATTY, |_| {}, SESSIONS).await;
    assert_eq!(client.attempts.len(), 1);
    assert!(
        matches!(&client.quit, Some((_, Quit::Fatal(why))) if why.contains("4001")),
        "{:?}",
        client.quit
    );
    let forbid = async |mut stream: TcpStream| {
        super::rig::request(&mut stream).await;
        let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer)
            .await
            .unwrap();
    };
    let (_, client) = run(
        |s| {
            s.connect.profile = Spec::parse(CHATTY).unwrap();
            s.policy.mix = retries(3);
        },
        forbid,
    )
    .await;
    assert_eq!(client.attempts.len(), 1);
    assert!(matches!(client.quit, Some((_, Quit::Fatal(_)))));
}

#[tokio::test]
async fn a_refused_resume_is_followed_by_a_fresh_dial() {
    let (history, client, told) = play(
        CHATTY,
        |_| {},
        &[
            &[HELLO, Hear, OK, Say(r#"{"id":"1","at":"c1"}"#), Close(1012)],
            &[
                HELLO,
                Hear,
                Say(r#"{"gone":"unknown \u001b id"}"#),
                Close(4404),
            ],
            &[HELLO, Hear, OK, Say(r#"{"id":"9","at":"c9"}"#), Close(4002)],
            &[HELLO, Hear, OK, Close(1012)],
        ],
    )
    .await;
    let (_, text) = client.sessions[1].refused.clone().unwrap();
    assert_eq!(&*text, "unknown \\u{1b} id");
    assert_eq!(told[2], r#"{"start":1}"#);
    assert!(client.sessions[2].refused.is_some(), "4002 says it too");
    assert_eq!(told[3], r#"{"start":1}"#);
    assert_eq!(ids(&history, &client), ["1", "9"]);
}

#[tokio::test]
async fn a_fatal_frame_ends_the_session_in_the_servers_words() {
    const SESSIONS: &[&[Act]] = &[&[
        HELLO,
        Hear,
        Say(r#"{"fatal":"no such room"}"#),
        Say(r#"{"id":"1"}"#),
        Stay,
    ]];
    let (history, client, _) = play(CHATTY, |_| {}, SESSIONS).await;
    assert_eq!(causes(&client), [Cause::Declined("no such room".into())]);
    assert_eq!(ids(&history, &client), Vec::<String>::new());
}

#[tokio::test]
async fn a_cursor_of_the_stream_counts_whoever_published() {
    const SESSIONS: &[&[Act]] = &[
        &[
            HELLO,
            Hear,
            OK,
            Say(r#"{"id":"1","n":5,"at":"c1"}"#),
            Say(r#"{"id":"others","at":"c2"}"#),
            Close(1012),
        ],
        &[HELLO, Hear, OK, Close(1012)],
    ];
    let by_herd = |s: &mut Scenario| s.publish.via = Via::Command("true".into());
    let (history, client, _) = play(CHATTY, by_herd, SESSIONS).await;
    assert_eq!(carried(&history, &client)[1].as_deref(), Some("c2"));
    assert!(history.events.iter().any(|event| event.seq == Some(Seq(5))));
}

#[tokio::test]
async fn a_clients_own_column_goes_into_url_header_and_frame() {
    const HEARD: &[&[Act]] = &[&[Hear, Close(1012)]];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "room,token\nblue,t-1\n").unwrap();
    let path = file.path().to_path_buf();
    let set = move |s: &mut Scenario| {
        s.connect.clients_file = Some(path);
        s.target.url = s.target.url.replace("{after}", "{col:room}");
        s.connect.headers = vec!["X-Token: {col:token}".into()];
    };
    let profile = "base = \"after\"\n[[open]]\nsend = 'join {col:room|json}'\n";
    let (_, client, told) = play(profile, set, HEARD).await;
    assert_eq!(told, [r#"join "blue""#]);
    assert_eq!(client.sessions.len(), 1);
}
