//! The publisher against servers that misbehave, and against processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use herd::history::{Fate, Publication, PublicationKind, Seq};
use herd::publish::outcome::Repeat;
use herd::publish::{Config, Publisher, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Stage, clock, is_alive, number, until};

const FIRST: u64 = 3 << 20;

/// What the fake server does with a request.
#[derive(Debug, Clone)]
enum Reply {
    Say(u16, String),
    Hang,
    /// Ends the connection without an answer.
    Close,
}

/// Decides by the event's number (from 1) and how often it came before.
type Rule = fn(u64, u32) -> Reply;

/// Every request: number from 1, idempotency key, body.
type Seen = Arc<Mutex<Vec<(u64, String, String)>>>;

struct Fake {
    url: String,
    seen: Seen,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    async fn start(rule: Rule) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, rule)
    }

    fn on(listener: TcpListener, rule: Rule) -> Self {
        let seen = Seen::default();
        let url = format!("http://{}/publish?x=1", listener.local_addr().unwrap());
        let to = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            // Dropped with the task, so that hanging requests end with the fake.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, rule, Arc::clone(&to)));
            }
        });
        Self { url, seen, task }
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn serve(mut stream: TcpStream, rule: Rule, seen: Seen) {
    while let Some((head, body)) = request(&mut stream).await {
        assert!(head.starts_with("POST /publish?x=1 HTTP/1.1\r\n"), "{head}");
        let key = head
            .lines()
            .find_map(|l| l.strip_prefix("idempotency-key: "))
            .unwrap()
            .to_owned();
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        let number = value["seq"].as_u64().unwrap() - FIRST + 1;
        let before = {
            let mut seen = seen.lock().unwrap();
            let before = seen.iter().filter(|(n, ..)| *n == number).count();
            seen.push((number, key, body));
            u32::try_from(before).unwrap()
        };
        match rule(number, before) {
            Reply::Say(status, body) => {
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Hang => std::future::pending().await,
            Reply::Close => return,
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end + 2].to_vec()).unwrap();
            let length: usize = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "))?
                .parse()
                .unwrap();
            if bytes.len() >= end + 4 + length {
                let body = bytes[end + 4..end + 4 + length].to_vec();
                return Some((head, String::from_utf8(body).unwrap()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn ok(number: u64, _before: u32) -> Reply {
    Reply::Say(200, format!(r#"{{"id":{}}}"#, id(number)))
}

/// Beyond what a float can tell apart.
fn id(number: u64) -> String {
    format!("90071992547409920000{number}")
}

fn config(url: &str, repeat: Repeat) -> Config {
    Config {
        way: Way::Http {
            urls: vec![url.into()],
            headers: vec!["X-Test: 1".into()],
        },
        network: super::network(),
        rate: 200.0,
        body: r#"{"seq":{seq},"payload":"{payload}"}"#.into(),
        first: Seq(FIRST),
        run: "r1".into(),
        answer_id: "/id".into(),
        answer_position: None,
        repeat,
    }
}

/// Publishes until there are this many events, then pauses and waits until none is outstanding.
async fn settled(publisher: &Publisher, events: u64) -> Vec<Publication> {
    until("publishing", || {
        (publisher.counts().sent >= events).then_some(())
    })
    .await;
    publisher.pause();
    until("settling", || (publisher.outstanding() == 0).then_some(())).await;
    publisher.records().look(<[_]>::to_vec)
}

#[tokio::test]
async fn accepted_events_keep_their_ids_and_their_due_times() {
    let fake = Fake::start(ok).await;
    let publisher = Publisher::start(config(&fake.url, Repeat::Never), clock()).unwrap();
    until("priming", || (publisher.counts().acked >= 5).then_some(())).await;
    let boundary = publisher.set_kind(PublicationKind::Expected);
    let all = settled(&publisher, 40).await;
    for (i, p) in all.iter().enumerate() {
        assert_eq!(p.seq, Seq(FIRST + i as u64));
        assert_eq!(p.due.0, all[0].due.0 + i as u64 * 5_000);
        assert_eq!((p.fate, p.tries, p.lost_answers), (Fate::Acked, 1, 0));
        assert_eq!(p.id.as_deref(), Some(id(i as u64 + 1).as_str()));
        assert!(p.due <= p.first_sent && p.first_sent == p.sent);
        assert!(p.answered.unwrap() >= p.sent);
        let expected = p.kind == PublicationKind::Expected;
        assert_eq!(expected, p.seq >= boundary);
    }
    let mut history: HashMap<Seq, Publication> = HashMap::new();
    let records = publisher.records();
    history.extend(records.take().into_iter().map(|p| (p.seq, p)));
    publisher.end(Duration::ZERO).await;
    history.extend(records.take().into_iter().map(|p| (p.seq, p)));
    assert!(all.iter().all(|p| history[&p.seq] == *p));
}

#[tokio::test]
async fn refused_events_are_sent_when_the_server_is_there() {
    let stage = Stage::new();
    let port = stage.held.port();
    let url = format!("http://127.0.0.1:{port}/publish?x=1");
    let publisher = Publisher::start(config(&url, Repeat::Never), clock()).unwrap();
    until("refusals", || {
        (publisher.counts().failed >= 30).then_some(())
    })
    .await;
    let problem = publisher.counts().last_problem.unwrap();
    assert!(problem.contains("can't connect"), "{problem}");
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let fake = Fake::on(listener, ok);
    let all = settled(&publisher, 60).await;
    assert!(
        all.iter()
            .all(|p| p.fate == Fate::Acked && p.lost_answers == 0)
    );
    assert!(all[0].tries >= 2 && all[0].first_sent < all[0].sent);
    assert_eq!(fake.requests(), all.len());
}

#[tokio::test]
async fn what_was_lost_is_unknown_and_sent_once_only() {
    let rule: Rule = |number, before| match number % 4 {
        0 => Reply::Close,
        1 => Reply::Say(500, String::new()),
        2 => Reply::Say(404, String::new()),
        _ => ok(number, before),
    };
    let fake = Fake::start(rule).await;
    let publisher = Publisher::start(config(&fake.url, Repeat::Never), clock()).unwrap();
    let all = settled(&publisher, 20).await;
    for p in &all {
        let (fate, lost) = match (p.seq.0 - FIRST + 1) % 4 {
            0 | 1 => (Fate::Unknown, 1),
            2 => (Fate::Failed, 0),
            _ => (Fate::Acked, 0),
        };
        assert_eq!((p.fate, p.lost_answers, p.tries), (fate, lost, 1), "{p:?}");
        assert_eq!(p.answered.is_none(), fate == Fate::Unknown);
    }
    assert_eq!(fake.requests(), all.len());
}

#[tokio::test]
async fn an_idempotent_server_gets_what_was_lost_again_under_the_same_key() {
    let rule: Rule = |number, before| match (number % 4, before) {
        (0, 0) => Reply::Close,
        (1, 0 | 1) => Reply::Say(503, String::new()),
        _ => ok(number, before),
    };
    let fake = Fake::start(rule).await;
    let publisher = Publisher::start(config(&fake.url, Repeat::Idempotent), clock()).unwrap();
    let all = settled(&publisher, 20).await;
    for p in &all {
        let lost = match (p.seq.0 - FIRST + 1) % 4 {
            0 => 1,
            1 => 2,
            _ => 0,
        };
        assert_eq!(
            (p.fate, p.lost_answers, p.tries),
            (Fate::Acked, lost, lost + 1)
        );
    }
    let mut content: HashMap<u64, (String, String)> = HashMap::new();
    for (number, key, body) in fake.seen.lock().unwrap().iter() {
        assert_eq!(*key, format!("herd-r1-{}", FIRST + number - 1));
        let first = content
            .entry(*number)
            .or_insert_with(|| (key.clone(), body.clone()));
        assert_eq!(*first, (key.clone(), body.clone()));
    }
}

#[tokio::test]
async fn the_schedule_does_not_wait_for_answers() {
    let fake = Fake::start(|_, _| Reply::Hang).await;
    let publisher = Publisher::start(config(&fake.url, Repeat::Never), clock()).unwrap();
    until("requests", || (fake.requests() >= 100).then_some(())).await;
    let counts = publisher.counts();
    assert_eq!((counts.acked, counts.failed), (0, 0));
    let records = publisher.records();
    publisher.end(Duration::ZERO).await;
    let all = records.look(<[_]>::to_vec);
    for (i, p) in all.iter().enumerate() {
        assert_eq!(p.due.0, all[0].due.0 + i as u64 * 5_000);
        assert_eq!((p.fate, p.lost_answers), (Fate::Unknown, 1));
    }
}

#[test]
fn what_can_not_be_published_to_is_refused_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    for url in ["nothing", "wss://a/", "ws://a/", "http://"] {
        assert!(
            Publisher::start(config(url, Repeat::Never), clock()).is_err(),
            "{url}"
        );
    }
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let config = Config {
            rate,
            ..config("http://a/", Repeat::Never)
        };
        assert!(Publisher::start(config, clock()).is_err(), "{rate}");
    }
}

fn by_command(stage: &Stage, script: &str) -> Config {
    Config {
        way: Way::Command {
            line: stage.script(script),
            place: stage.place(),
        },
        ..config("", Repeat::Never)
    }
}

#[tokio::test]
async fn a_command_gets_a_line_an_event_and_may_answer() {
    let stage = Stage::new();
    // Every third is declined when it first comes, every third is never answered.
    let script = r#"n=0
while read -r line; do
  echo "$line" >> lines
  seq=${line#*:}; seq=${seq%%,*}
  case $((seq % 3)) in
    0) echo "{\"seq\":$seq,\"ok\":true,\"id\":9007199254740993}";;
    1) if grep -q "^$seq$" declined 2>/dev/null
       then echo "{\"seq\":\"$seq\",\"ok\":true,\"id\":\"b\"}"
       else echo $seq >> declined; echo "{\"seq\":$seq,\"ok\":false}"; fi;;
    2) echo chatter;;
  esac
done
echo done > done"#;
    let publisher = Publisher::start(by_command(&stage, script), clock()).unwrap();
    until("publishing", || {
        (publisher.counts().sent >= 30).then_some(())
    })
    .await;
    publisher.pause();
    let sent = publisher.counts().sent;
    let silent = (FIRST..FIRST + sent).filter(|s| s % 3 == 2).count() as u64;
    until("answers", || {
        let counts = publisher.counts();
        (counts.acked == sent - silent && counts.unknown == silent).then_some(())
    })
    .await;
    for p in publisher.records().look(<[_]>::to_vec) {
        let expected = match p.seq.0 % 3 {
            0 => (Fate::Acked, Some("9007199254740993"), 1),
            1 => (Fate::Acked, Some("b"), 2),
            _ => (Fate::Unknown, None, 1),
        };
        assert_eq!((p.fate, p.id.as_deref(), p.tries), expected, "{p:?}");
    }
    publisher.end(Duration::from_secs(60)).await;
    assert!(stage.path("done").exists());
    let lines = std::fs::read_to_string(stage.path("lines")).unwrap();
    let first = format!("{{\"seq\":{FIRST},\"payload\":\"");
    assert!(lines.starts_with(&first), "{lines}");
}

#[tokio::test]
async fn a_command_that_dies_is_broken_and_quoted() {
    let stage = Stage::new();
    let script = "read line; echo no broker there >&2; exit 4";
    let mut publisher = Publisher::start(by_command(&stage, script), clock()).unwrap();
    let said = publisher.broken().await.to_string();
    assert!(
        said.contains("exit code 4") && said.contains("no broker there"),
        "{said}"
    );
    // Asked again it says so again.
    assert_eq!(publisher.broken().await.to_string(), said);
    publisher.end(Duration::ZERO).await;
}

#[tokio::test]
async fn a_command_that_does_not_read_slows_nothing_and_ends_with_herd() {
    let stage = Stage::new();
    let config = Config {
        rate: 20_000.0,
        ..by_command(&stage, "echo $$ > pid; exec sleep 1000")
    };
    let publisher = Publisher::start(config, clock()).unwrap();
    // Far more than a pipe holds.
    until("publishing", || {
        (publisher.counts().sent >= 5_000).then_some(())
    })
    .await;
    let pid = until("its start", || number(&stage.path("pid"))).await;
    publisher.end(Duration::ZERO).await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_body_of_two_lines_is_refused_for_a_command() {
    let stage = Stage::new();
    let config = Config {
        body: "{\"seq\":{seq},\n\"payload\":1}".into(),
        ..by_command(&stage, "cat > /dev/null")
    };
    let said = Publisher::start(config, clock()).unwrap_err().to_string();
    assert!(said.contains("one line"), "{said}");
}
