//! What clients say, session after session.

use super::*;

/// A client with its cursor.
struct Client {
    profile: Profile,
    talk: Talk,
    cursor: Option<String>,
}

impl Client {
    fn new(profile: Profile) -> Self {
        let talk = Talk::new(&profile);
        Self {
            profile,
            talk,
            cursor: None,
        }
    }

    fn open(&mut self) -> Turn {
        let values = values(self.cursor.as_deref());
        self.talk.open(&self.profile, NOW, &values, &|_| None)
    }

    fn hear(&mut self, text: &str) -> Turn {
        let values = values(self.cursor.as_deref());
        let frame = Frame::text(text);
        match self.talk.wants(&self.profile, frame) {
            true => self.talk.hear(&self.profile, NOW, frame, &values),
            false => Turn::default(),
        }
    }

    fn tick(&mut self, at: Duration) -> Turn {
        let values = values(self.cursor.as_deref());
        self.talk.tick(&self.profile, at, &values)
    }
}

fn says(texts: &[&str]) -> Turn {
    Turn {
        say: texts.iter().map(|text| (*text).to_owned()).collect(),
        ..Turn::default()
    }
}

const OPEN: &str =
    r#"0{"sid":"oUFD","upgrades":[],"pingInterval":3000,"pingTimeout":2000,"maxPayload":1000000}"#;

#[test]
fn socket_io_recovers_by_pid_and_offset() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    assert_eq!(client.open(), Turn::default(), "the server speaks first");
    assert_eq!(client.hear(OPEN), says(&["40"]));
    assert_eq!(
        client.hear(r#"40{"sid":"Vmps","pid":"UurQ"}"#),
        Turn::default()
    );
    assert_eq!(client.talk.named()[2].as_deref(), Some("UurQ"));
    assert_eq!(client.hear("2"), says(&["3"]));
    assert_eq!(
        client.hear(r#"42["event",{"id":"1"},"Q8hz_kk"]"#),
        Turn::default()
    );
    client.cursor = Some("Q8hz_kk".into());
    client.open();
    assert_eq!(
        client.hear(OPEN),
        says(&[r#"40{"pid":"UurQ","offset":"Q8hz_kk"}"#])
    );
    // What was missed comes before the answer.
    assert_eq!(
        client.hear(r#"42["event",{"id":"2"},"Q8h-0gF"]"#),
        Turn::default()
    );
    assert_eq!(
        client.hear(r#"40{"sid":"Vmps","pid":"UurQ"}"#),
        Turn::default()
    );
    client.open();
    client.hear(OPEN);
    let other = client.hear(r#"40{"sid":"uxaB","pid":"hvjO"}"#);
    assert!(other.reset, "another pid: not recovered");
    assert_eq!(client.talk.named()[2].as_deref(), Some("hvjO"));
}

#[test]
fn without_a_pid_no_offset_is_ever_sent() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    client.open();
    client.hear(OPEN);
    client.hear(r#"40{"sid":"Vmps"}"#);
    // The event's own last argument looked like an offset.
    client.cursor = Some("hello".into());
    client.open();
    assert_eq!(client.hear(OPEN), says(&["40"]));
    // The rule for the missing pid says reset; this would say it twice.
    assert!(!client.hear(r#"40{"sid":"uxaB"}"#).reset);
    // A pid that is lost is not sent again.
    client.open();
    client.hear(OPEN);
    assert!(
        client.hear(r#"40{"sid":"a","pid":"p"}"#).reset,
        "nothing was recovered"
    );
    client.open();
    client.hear(OPEN);
    client.hear(r#"40{"sid":"b"}"#);
    client.open();
    assert_eq!(client.hear(OPEN), says(&["40"]));
}

#[test]
fn a_first_pid_is_no_reset_and_one_without_a_cursor_is() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    client.open();
    client.hear(OPEN);
    assert!(!client.hear(r#"40{"sid":"a","pid":"p"}"#).reset);
    client.open();
    assert_eq!(client.hear(OPEN), says(&["40"]), "no event was received");
    assert!(client.hear(r#"40{"sid":"b","pid":"q"}"#).reset);
}

#[test]
fn a_server_that_keeps_silent_is_dead_after_both_its_times() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    client.open();
    assert_eq!(client.talk.due(), Some(NOW + Duration::from_secs(10)));
    client.hear(OPEN);
    client.hear(r#"40{"sid":"a","pid":"p"}"#);
    let dead = NOW + Duration::from_millis(5_000);
    assert_eq!(client.talk.due(), Some(dead));
    assert_eq!(
        client.tick(dead - Duration::from_millis(1)),
        Turn::default()
    );
    let turn = client.tick(dead);
    assert_eq!(turn.end, Some(Ending::Silent("not a word for 5s".into())));
    assert_eq!(client.talk.due(), None, "said once");
}

#[test]
fn any_frame_is_a_sign_of_life() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    client.open();
    client.hear(OPEN);
    client.hear(r#"40{"sid":"a","pid":"p"}"#);
    let later = NOW + Duration::from_secs(4);
    let frame = Frame::text(r#"42["event",{"id":"1"},"o"]"#);
    assert!(client.talk.wants(&client.profile, frame));
    client
        .talk
        .hear(&client.profile, later, frame, &values(None));
    assert_eq!(client.talk.due(), Some(later + Duration::from_secs(5)));
}

#[test]
fn an_opening_that_is_not_answered_ends_the_session() {
    let mut client = Client::new(builtin(ProfileName::Socketio));
    client.open();
    client.hear(OPEN);
    let waiting = |client: &Client| client.talk.unanswered(&client.profile);
    let nothing = "open[2].expect: nothing came that could fit it";
    assert_eq!(waiting(&client).as_deref(), Some(nothing));
    client.hear("2");
    let one = "open[2].expect: what came doesn't fit it: 2";
    assert_eq!(waiting(&client).as_deref(), Some(one));
    client.hear(r#"42["event",{"id":"1"}]"#);
    let two = "open[2].expect: none of 2 frames fits it, the first was 2";
    assert_eq!(waiting(&client).as_deref(), Some(two));
    let turn = client.tick(NOW + Duration::from_secs(10));
    let told = format!("{two} (within 10s)");
    assert_eq!(turn.end, Some(Ending::Unanswered(told.into())));
    assert_eq!(client.talk.due(), None);
    assert_eq!(
        waiting(&client).as_deref(),
        Some(two),
        "told once more when it has ended"
    );
}

#[test]
fn a_resume_frame_is_sent_at_once_and_nothing_more_is_heard() {
    let mut client = Client::new(builtin(ProfileName::Resume));
    assert_eq!(client.open(), says(&[r#"{"type":"resume"}"#]));
    assert_eq!(client.talk.due(), None);
    let event = Frame::text(r#"{"type":"event","id":"42"}"#);
    assert!(
        !client.talk.wants(&client.profile, event),
        "events cost nothing"
    );
    client.cursor = Some("4\"2".into());
    assert_eq!(
        client.open(),
        says(&[r#"{"type":"resume","lastEventId":"4\"2"}"#])
    );
    client.cursor = Some(String::new());
    assert_eq!(
        client.open(),
        says(&[r#"{"type":"resume"}"#]),
        "an empty cursor is none"
    );
    let mut nest = Client::new(builtin(ProfileName::NestjsWs));
    nest.cursor = Some("1".into());
    assert_eq!(
        nest.open(),
        says(&[r#"{"event":"resume","data":{"lastEventId":"1"}}"#])
    );
}

#[test]
fn centrifugo_subscribes_again_with_epoch_and_offset() {
    let mut client = Client::new(centrifugo());
    assert_eq!(client.open(), says(&[r#"{"id":1,"connect":{}}"#]));
    let connected = r#"{"id":1,"connect":{"client":"u","version":"6","ping":25,"pong":true}}"#;
    assert_eq!(
        client.hear(&format!("{connected}\n")),
        says(&[r#"{"id":2,"subscribe":{"channel":"ev"}}"#])
    );
    client.hear(r#"{"id":2,"subscribe":{"epoch":"tLtt","offset":3}}"#);
    assert_eq!(client.talk.due(), Some(NOW + Duration::from_secs(35)));
    assert_eq!(client.hear("{}\n"), says(&["{}"]));
    let push = r#"{"push":{"channel":"ev","pub":{"data":{"id":4},"offset":4}}}"#;
    assert_eq!(client.hear(&format!("{push}\n{{}}\n{push}")), says(&["{}"]));
    client.cursor = Some("4".into());
    client.open();
    // Both answers may come in one message.
    let turn = client.hear(&format!(
        "{connected}\n{}",
        r#"{"id":2,"subscribe":{"recovered":true,"epoch":"tLtt"}}"#
    ));
    assert_eq!(
        turn,
        says(&[
            r#"{"id":2,"subscribe":{"channel":"ev","recover":true,"epoch":"tLtt","offset":4}}"#
        ])
    );
    assert_eq!(client.talk.due(), Some(NOW + Duration::from_secs(35)));
}

#[test]
fn a_server_that_does_not_beat_has_no_limit() {
    let mut client = Client::new(centrifugo());
    client.open();
    client.hear(r#"{"id":1,"connect":{"client":"u"}}"#);
    client.hear(r#"{"id":2,"subscribe":{"epoch":"tLtt"}}"#);
    assert_eq!(client.talk.due(), None);
}

#[test]
fn an_own_beat_goes_on_and_starts_at_another_time_for_each_client() {
    let phoenix = |jitter: bool| {
        profile(&format!(
            "[[frame]]\nis = \"event\"\n[event]\nid = \"/4/id\"\n[beat]\nsend = '[null,\"{{n}}\",\"phoenix\",\"heartbeat\",{{}}]'\nevery = \"30s\"\njitter = {jitter}"
        ))
    };
    let mut client = Client::new(phoenix(false));
    client.open();
    let first = NOW + Duration::from_secs(30);
    assert_eq!(client.talk.due(), Some(first));
    assert_eq!(
        client.tick(first),
        says(&[r#"[null,"0","phoenix","heartbeat",{}]"#])
    );
    assert_eq!(client.talk.due(), Some(first + Duration::from_secs(30)));
    let profile = phoenix(true);
    let due: Vec<_> = (1..=100)
        .map(|client| {
            let mut talk = Talk::new(&profile);
            let values = Values {
                client,
                ..Values::default()
            };
            talk.open(&profile, NOW, &values, &|_| None);
            talk.due().unwrap() - NOW
        })
        .collect();
    assert!(due.iter().all(|due| *due <= Duration::from_secs(30)));
    let early = due
        .iter()
        .filter(|due| **due < Duration::from_secs(15))
        .count();
    assert!(
        (30..=70).contains(&early),
        "{early} of 100 in the first half"
    );
}

#[test]
fn a_header_that_names_another_cursor_is_a_reset() {
    let mercure = profile("base = \"sse\"\nreset = { header = \"Last-Event-ID\" }");
    let mut talk = Talk::new(&mercure);
    let mut open = |cursor, answered: Option<&str>| {
        let header = |name: &str| answered.filter(|_| name == "Last-Event-ID").map(Into::into);
        talk.open(&mercure, NOW, &values(cursor), &header).reset
    };
    assert!(!open(Some("urn:uuid:1"), Some("urn:uuid:1")));
    assert!(open(Some("urn:uuid:1"), Some("earliest")));
    assert!(!open(Some("urn:uuid:1"), None), "no header, no claim");
    assert!(!open(None, Some("earliest")), "nothing was asked");
}

#[test]
fn what_looks_like_a_heartbeat_inside_an_event_is_not_answered() {
    let profile = profile(
        r#"
        [[frame]]
        is = "event"
        when = { exists = "/id" }
        [[frame]]
        is = "heartbeat"
        when = { raw = '"type":"ping"', equals = { "/type" = "ping" } }
        reply = '{"type":"pong"}'
        [event]
        id = "/id"
        "#,
    );
    let mut client = Client::new(profile);
    client.open();
    assert_eq!(
        client.hear(r#"{"type":"ping"}"#),
        says(&[r#"{"type":"pong"}"#])
    );
    assert_eq!(client.hear(r#"{"id":1,"type":"ping"}"#), Turn::default());
    assert_eq!(client.hear(r#"{"x":{"type":"ping"}}"#), Turn::default());
}
