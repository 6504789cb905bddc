//! The log: what is acknowledged stays, ids go on, keys are remembered as long as their events.

use super::*;
use crate::server::defect::{Defect, Planted};

fn open(place: &Place, keep: u64) -> Log {
    Log::open(place, keep, Arc::default()).unwrap()
}

fn events(range: std::ops::RangeInclusive<u64>) -> Vec<Box<str>> {
    range.map(|n| format!("{n}").into()).collect()
}

fn ids(read: Read) -> Vec<u64> {
    match read {
        Read::Events(events) => events.iter().map(|event| event.id).collect(),
        Read::Evicted => panic!("evicted"),
    }
}

fn place() -> (tempfile::TempDir, Place) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::Dir(dir.path().join("data"));
    (dir, place)
}

#[tokio::test]
async fn ids_and_events_go_on_after_a_restart() {
    let (_dir, place) = place();
    let log = open(&place, 100);
    let first = log.append(events(1..=3), None).await.unwrap();
    assert_eq!((first.first, first.count), (1, 3));
    log.close();
    assert_eq!(log.append(events(1..=1), None).await, Err(Refused::Closed));
    drop(log);

    let log = open(&place, 100);
    assert_eq!(log.append(events(4..=4), None).await.unwrap().first, 4);
    assert_eq!(ids(log.read(0, 10).unwrap()), [1, 2, 3, 4]);
    assert_eq!(ids(log.read(1, 2).unwrap()), [2, 3]);
    assert_eq!(ids(log.read(4, 10).unwrap()), [0; 0]);
    let Read::Events(all) = log.read(3, 10).unwrap() else {
        panic!("evicted")
    };
    assert_eq!(
        all[0].frame.as_str(),
        r#"{"id":"4","type":"event","data":4}"#
    );
}

#[tokio::test]
async fn a_key_answers_the_same_ids_and_stores_nothing_across_a_restart() {
    let (_dir, place) = place();
    let log = open(&place, 100);
    let key = || Some("k".into());
    let first = log.append(events(1..=2), key()).await.unwrap();
    assert_eq!(log.append(events(1..=2), key()).await.unwrap(), first);
    log.close();
    drop(log);
    let log = open(&place, 100);
    assert_eq!(log.append(events(1..=2), key()).await.unwrap(), first);
    assert_eq!(
        log.append(events(1..=1), key()).await,
        Err(Refused::KeyReused)
    );
    assert_eq!(log.state().newest, 2);
}

#[tokio::test]
async fn what_is_not_kept_is_said_to_be_evicted_and_its_key_is_forgotten() {
    let (_dir, place) = place();
    let log = open(&place, 3);
    log.append(events(1..=1), Some("old".into())).await.unwrap();
    log.append(events(2..=5), None).await.unwrap();
    assert_eq!(
        log.state(),
        State {
            newest: 5,
            evicted: 2
        }
    );
    assert_eq!(log.read(1, 10).unwrap(), Read::Evicted);
    assert_eq!(ids(log.read(2, 10).unwrap()), [3, 4, 5]);
    assert_eq!(
        log.append(events(9..=9), Some("old".into()))
            .await
            .unwrap()
            .first,
        6
    );
    log.close();
    drop(log);
    let log = open(&place, 3);
    assert_eq!(
        log.state(),
        State {
            newest: 6,
            evicted: 3
        }
    );
    assert_eq!(log.read(2, 10).unwrap(), Read::Evicted);
}

#[tokio::test]
async fn the_store_and_the_memory_answer_the_same() {
    let log = open(&Place::Memory, 1_000_000);
    let all = RECENT as u64 + 500;
    log.append(events(1..=all), None).await.unwrap();
    assert!(log.shared.recent().floor >= 500);
    for cursor in [0, 10, 499, 500, 501, all - 1] {
        let read = ids(log.read(cursor, 700).unwrap());
        let expected: Vec<_> = (cursor + 1..=all).take(700).collect();
        assert_eq!(read, expected, "after {cursor}");
    }
}

#[tokio::test]
async fn many_publishers_share_a_commit_and_each_gets_its_own_ids() {
    let (_dir, place) = place();
    let log = Arc::new(open(&place, 1_000_000));
    let publishers: Vec<_> = (0..500)
        .map(|n| {
            let log = Arc::clone(&log);
            tokio::spawn(async move { (n, log.append(events(n..=n), None).await.unwrap()) })
        })
        .collect();
    for publisher in publishers {
        let (n, given) = publisher.await.unwrap();
        let Read::Events(read) = log.read(given.first - 1, 1).unwrap() else {
            panic!("evicted")
        };
        assert!(
            read[0]
                .frame
                .as_str()
                .ends_with(&format!(r#""data":{n}}}"#))
        );
    }
    assert_eq!(log.state().newest, 500);
}

#[tokio::test]
async fn an_acknowledged_event_that_is_lost_on_purpose_leaves_a_hole() {
    let planted = vec![Planted {
        defect: Defect::AckThenLose,
        arg: 1,
    }];
    let faults = Arc::new(Faults::new(planted, 1, None, None).unwrap());
    let log = Log::open(&Place::Memory, 100, Arc::clone(&faults)).unwrap();
    log.append(events(1..=1), None).await.unwrap();
    faults.on_resume();
    assert_eq!(log.append(events(2..=2), None).await.unwrap().first, 2);
    assert_eq!(ids(log.read(0, 10).unwrap()), [1]);
    assert_eq!(log.state().newest, 2);
}
