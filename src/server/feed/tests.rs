//! The hand-over from replay to live, and each defect's exact deed.

mod marks;

use proptest::prelude::*;

use super::*;
use crate::server::defect::Planted;
use crate::server::log::Place;

const CLIENT: u64 = 7;

struct Server {
    log: Arc<Log>,
    faults: Arc<Faults>,
    dir: tempfile::TempDir,
}

impl Server {
    /// A server that was restarted with these events in its log, and a defect.
    async fn restarted(events: u64, keep: u64, planted: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::Dir(dir.path().join("data"));
        let first = Log::open(&place, keep, Arc::default()).unwrap();
        append(&first, events).await;
        first.close();
        drop(first);
        let planted = planted.parse::<Planted>().into_iter().collect();
        let ledger = dir.path().join("ledger");
        let faults = Arc::new(Faults::new(planted, 3, Some(&ledger), None).unwrap());
        let log = Arc::new(Log::open(&place, keep, Arc::clone(&faults)).unwrap());
        Self { log, faults, dir }
    }

    fn feed(&self, after: &str) -> Feed {
        self.open(Dialect::Live, Some(after))
    }

    fn open(&self, dialect: Dialect, after: Option<&str>) -> Feed {
        open(&self.log, dialect, after, &self.faults)
    }

    /// The ids of the ledger's lines; 0 = a line without one.
    fn ledger(&self) -> Vec<u64> {
        let text = std::fs::read_to_string(self.dir.path().join("ledger")).unwrap();
        let id = |line: &str| -> u64 {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["id"].as_str().map_or(0, |id| id.parse().unwrap())
        };
        text.lines().map(id).collect()
    }
}

fn open(log: &Arc<Log>, dialect: Dialect, after: Option<&str>, faults: &Arc<Faults>) -> Feed {
    let asked = Asked {
        dialect,
        after,
        client: CLIENT,
        since: log.state().newest,
    };
    Feed::open(log, asked, faults)
}

async fn append(log: &Log, events: u64) {
    for _ in 0..events {
        log.append(vec![r#"{"seq":1}"#.into()], None).await.unwrap();
    }
}

/// A mark, among ids.
const MARK: i64 = 5000;

/// What came, as ids; a reset is -id, half a frame 0, another content 1000 + its id, one that comes again 2000 + its id.
fn pull(feed: &mut Feed) -> Vec<i64> {
    let mut all = Vec::new();
    loop {
        let items = feed.pull().unwrap();
        if items.is_empty() {
            return all;
        }
        all.extend(items.iter().map(number));
    }
}

fn number(item: &Item) -> i64 {
    match item {
        Item::Event(event) if event.data().contains("conflict") => 1000 + event.id as i64,
        Item::Event(event) => event.id as i64,
        Item::Again(event) => 2000 + event.id as i64,
        Item::Half(_) => 0,
        Item::Reset { id, .. } | Item::Partly(id) => -(*id as i64),
        Item::CaughtUp(id) => MARK + *id as i64,
    }
}

#[tokio::test]
async fn a_cursor_means_what_follows_it_and_nothing_else() {
    let server = Server::restarted(10, 6, "none").await;
    let log = &server.log;
    let mut now = server.open(Dialect::Live, None);
    let mut empty = server.feed("");
    let (mut seven, mut four, mut three, mut ten) = (
        server.feed("7"),
        server.feed("4"),
        server.feed("3"),
        server.feed("10"),
    );
    let mut unknown: Vec<_> = ["11", "x", "07", "-1", "99999999999999999999"]
        .map(|after| server.feed(after))
        .into();
    append(log, 1).await;
    assert_eq!(pull(&mut now), [11]);
    assert_eq!(pull(&mut empty), [11]);
    assert_eq!(pull(&mut seven), [8, 9, 10, 11]);
    assert!(matches!(four.pull(), Err(Broken::FellBehind)));
    assert_eq!(pull(&mut three), [-10, 11]);
    assert_eq!(pull(&mut ten), [11]);
    for feed in &mut unknown {
        assert_eq!(pull(feed), [-10, 11]);
    }
}

#[tokio::test]
async fn resumes_are_spoilt_as_declared() {
    for (defect, after, expected, ledger) in [
        ("never-catch-up", "5", vec![11], vec![6, 7, 8, 9, 10]),
        ("forget-log", "5", vec![11], vec![6, 7, 8, 9, 10]),
        ("forget-log", "10", vec![11], vec![]),
        ("reset-always", "10", vec![-10, 11], vec![0]),
        ("duplicate-on-resume", "8", vec![8, 9, 10, 11], vec![8]),
        ("live-not-resubscribed", "8", vec![9, 10], vec![11]),
        ("gap-at-handoff=2", "8", vec![9, 10], vec![11]),
        ("lying-session", "8", vec![MARK + 10, 11], vec![9, 10]),
        ("zombie", "8", vec![], vec![9, 10, 11]),
        ("live-overtakes", "8", vec![9, 11, 10, 11], vec![11]),
        ("live-overtakes", "10", vec![11], vec![]),
        (
            "legal-redelivery=2",
            "8",
            vec![2007, 2008, 9, 10, 11],
            vec![7, 8],
        ),
        ("data-before-ack", "8", vec![9, 10, 11, MARK + 11], vec![0]),
    ] {
        let server = Server::restarted(10, 100, defect).await;
        let mut feed = server.feed(after);
        let mut fresh = server.open(Dialect::Live, None);
        append(&server.log, 1).await;
        assert_eq!(pull(&mut feed), expected, "{defect} after {after}");
        assert_eq!(
            pull(&mut fresh),
            [11],
            "{defect}: who didn't resume is spared"
        );
        assert_eq!(server.ledger(), ledger, "{defect} after {after}");
    }
}

#[tokio::test]
async fn a_replay_without_one_of_its_events_still_ends_with_its_last() {
    let server = Server::restarted(10, 100, "lose-on-resume").await;
    for after in 0..=8 {
        let came = pull(&mut server.feed(&after.to_string()));
        assert_eq!(came.len() as u64, 10 - after - 1);
        assert_eq!(came.last(), Some(&10));
    }
    assert_eq!(pull(&mut server.feed("9")), [10]);
    assert_eq!(server.ledger().len(), 9);
}

#[tokio::test]
async fn evicted_events_are_skipped_without_a_word_where_that_is_planted() {
    let server = Server::restarted(10, 4, "skip-evicted=4").await;
    assert_eq!(pull(&mut server.feed("3")), [7, 8, 9, 10]);
    assert_eq!(server.ledger(), [4, 5, 6]);
    assert_eq!(
        pull(&mut server.feed("x")),
        [-10],
        "a cursor never given is still reset"
    );
}

#[tokio::test]
async fn ids_that_begin_again_are_hidden_up_to_the_cursor() {
    let server = Server::restarted(3, 100, "ids-restart").await;
    assert_eq!(server.log.state().newest, 0);
    append(&server.log, 1).await;
    let mut feed = server.feed("2");
    assert_eq!(pull(&mut feed), [0; 0]);
    append(&server.log, 3).await;
    assert_eq!(pull(&mut feed), [3, 4]);
    // The old event 3, then the new ones 1 and 2.
    assert_eq!(server.ledger(), [3, 1, 2]);
}

#[tokio::test]
async fn what_is_left_follows_a_reset_where_that_is_planted() {
    let server = Server::restarted(10, 4, "partial-with-flag=4").await;
    assert_eq!(pull(&mut server.feed("3")), [-6, 7, 8, 9, 10]);
    assert_eq!(pull(&mut server.feed("6")), [7, 8, 9, 10]);
    assert_eq!(pull(&mut server.feed("x")), [-10]);
    assert_eq!(server.ledger(), [0]);
    let mut resumed = server.open(Dialect::Resume, Some("3"));
    assert_eq!(pull(&mut resumed), [-6, 7, 8, 9, 10, MARK + 10]);
}

#[tokio::test]
async fn nobody_is_told_that_the_oldest_kept_is_not_what_follows() {
    let server = Server::restarted(10, 4, "silent-oldest=4").await;
    assert_eq!(pull(&mut server.feed("3")), [7, 8, 9, 10]);
    assert_eq!(server.ledger(), [4, 5, 6]);
    assert_eq!(pull(&mut server.feed("x")), [7, 8, 9, 10]);
    assert_eq!(pull(&mut server.feed("8")), [9, 10]);
}

#[tokio::test]
async fn ids_of_before_are_unknown_and_mean_from_now() {
    let server = Server::restarted(3, 100, "unknown-is-now").await;
    let epoch = super::super::faults::EPOCH;
    assert_eq!(server.log.state().newest, epoch);
    append(&server.log, 2).await;
    let first = epoch as i64 + 1;
    let mut old = server.feed("1");
    assert_eq!(pull(&mut old), [0; 0]);
    append(&server.log, 1).await;
    assert_eq!(pull(&mut old), [first + 2]);
    // The old events 2 and 3, then the new ones that were there.
    assert_eq!(server.ledger(), [2, 3, epoch + 1, epoch + 2]);
    let mut new = server.feed(&first.to_string());
    assert_eq!(pull(&mut new), [first + 1, first + 2]);
    assert_eq!(pull(&mut server.feed("x")), [0; 0]);
}

#[tokio::test]
async fn live_events_are_spoilt_as_declared_and_replayed_ones_spared() {
    for (defect, expected) in [
        ("lose-live=1", vec![9, 10]),
        ("duplicate-live=1", vec![9, 10, 11, 11, 12, 12, 13, 13]),
        ("corrupt-frame=1", vec![9, 10, 0, 0, 0]),
        ("conflict=1", vec![9, 10, 11, 1011, 12, 1012, 13, 1013]),
        ("reorder=1", vec![9, 10, 12, 11]),
    ] {
        let server = Server::restarted(10, 100, defect).await;
        let mut feed = server.feed("8");
        append(&server.log, 3).await;
        assert_eq!(pull(&mut feed), expected, "{defect}");
        let lines = if defect == "reorder=1" {
            vec![11]
        } else {
            vec![11, 12, 13]
        };
        assert_eq!(server.ledger(), lines, "{defect}");
        assert_eq!(feed.is_holding(), defect == "reorder=1");
        if let Some(item) = feed.release() {
            assert_eq!(number(&item), 13);
            assert_eq!(
                server.ledger(),
                [11],
                "a held event that came in its place has no line"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn publishers_and_subscribers_at_once_leave_no_gap_and_no_overlap() {
    let log = Arc::new(Log::open(&Place::Memory, 1_000_000, Arc::default()).unwrap());
    append(&log, 50).await;
    let publishers = (0..4).map(|_| {
        let log = Arc::clone(&log);
        tokio::spawn(async move { append(&log, 100).await })
    });
    let publishers: Vec<_> = publishers.collect();
    let subscribers = (0..40u64).map(|n| {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let mut changes = log.changes();
            let mut feed = open(&log, Dialect::Live, Some(&n.to_string()), &Arc::default());
            let mut next = n as i64 + 1;
            while next <= 450 {
                for id in pull(&mut feed) {
                    assert_eq!(id, next);
                    next += 1;
                }
                if next <= 450 {
                    changes.changed().await.unwrap();
                }
            }
        })
    });
    for task in subscribers
        .collect::<Vec<_>>()
        .into_iter()
        .chain(publishers)
    {
        task.await.unwrap();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish(u64),
    Open(u64),
    Pull(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..200u64).prop_map(Step::Publish),
        (0..1000u64).prop_map(Step::Open),
        (0..8usize).prop_map(Step::Pull),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However publishing, opening and pulling follow each other, a subscriber gets what follows its cursor, in order.
    #[test]
    fn any_interleaving_gives_each_subscriber_exactly_what_follows(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let log = Arc::new(Log::open(&Place::Memory, 1_000_000, Arc::default()).unwrap());
        let mut feeds: Vec<(Feed, Vec<i64>, i64)> = Vec::new();
        for step in steps {
            let newest = log.state().newest;
            match step {
                Step::Publish(n) => {
                    let data = (0..n).map(|_| r#"{"seq":1}"#.into()).collect();
                    runtime.block_on(log.append(data, None)).unwrap();
                }
                Step::Open(cursor) => {
                    let cursor = cursor % (newest + 1);
                    let after = cursor.to_string();
                    let feed = open(&log, Dialect::Events, Some(&after), &Arc::default());
                    feeds.push((feed, Vec::new(), cursor as i64));
                }
                Step::Pull(n) if !feeds.is_empty() => {
                    let n = n % feeds.len();
                    let (feed, came, _) = &mut feeds[n];
                    came.extend(feed.pull().unwrap().iter().map(number));
                }
                Step::Pull(_) => {}
            }
        }
        let newest = log.state().newest as i64;
        for (mut feed, mut came, cursor) in feeds {
            came.extend(pull(&mut feed));
            prop_assert_eq!(came, (cursor + 1..=newest).collect::<Vec<_>>());
        }
    }
}
