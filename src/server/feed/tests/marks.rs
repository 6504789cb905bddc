//! How a subscriber's way begins without a cursor, and where the end of its replay is told.

use super::*;

#[tokio::test]
async fn a_first_connection_gets_recent_events_where_the_dialect_gives_some() {
    let server = Server::restarted(130, 1000, "none").await;
    let first = |dialect| server.open(dialect, None);
    assert_eq!(pull(&mut first(Dialect::Live)), [0; 0]);
    assert_eq!(pull(&mut first(Dialect::Events)), [0; 0]);
    let recent: Vec<i64> = (31..=130).chain([MARK + 130]).collect();
    assert_eq!(pull(&mut first(Dialect::Resume)), recent);
    // What is newer than its coming is no less its own where it was slow to ask.
    let asked = Asked {
        dialect: Dialect::Resume,
        after: None,
        client: CLIENT,
        since: 20,
    };
    let came = pull(&mut Feed::open(&server.log, asked, &server.faults));
    assert_eq!(came, (1..=130).chain([MARK + 130]).collect::<Vec<_>>());

    let server = Server::restarted(10, 4, "none").await;
    let mut few = server.open(Dialect::Resume, None);
    append(&server.log, 0).await;
    assert_eq!(pull(&mut few), [7, 8, 9, 10, MARK + 10]);
}

#[tokio::test]
async fn the_end_of_a_replay_is_told_once_and_in_its_place() {
    let server = Server::restarted(10, 1000, "none").await;
    let mut one = server.open(Dialect::Resume, Some("8"));
    let mut none = server.open(Dialect::Resume, Some("10"));
    let mut late = server.open(Dialect::Resume, Some("8"));
    assert_eq!(pull(&mut one), [9, 10, MARK + 10]);
    append(&server.log, 1).await;
    assert_eq!(pull(&mut one), [11]);
    assert_eq!(pull(&mut none), [MARK + 10, 11]);
    assert_eq!(pull(&mut late), [9, 10, MARK + 10, 11]);
    let empty = Server::restarted(0, 1000, "none").await;
    assert_eq!(pull(&mut empty.open(Dialect::Resume, None)), [MARK]);
}

#[tokio::test]
async fn defects_leave_the_mark_as_they_declare() {
    for (defect, expected) in [
        ("never-catch-up", vec![11]),
        ("zombie", vec![]),
        ("forget-log", vec![MARK + 10, 11]),
        ("lying-session", vec![MARK + 10, 11]),
        ("live-overtakes", vec![9, 11, 10, 11, MARK + 11]),
        ("data-before-ack", vec![9, 10, 11, MARK + 11]),
        ("live-not-resubscribed", vec![9, 10, MARK + 10]),
    ] {
        let server = Server::restarted(10, 100, defect).await;
        let mut feed = server.open(Dialect::Resume, Some("8"));
        append(&server.log, 1).await;
        assert_eq!(pull(&mut feed), expected, "{defect}");
    }
}

#[tokio::test]
async fn a_replay_that_nothing_overtakes_is_let_go() {
    let server = Server::restarted(10, 100, "live-overtakes").await;
    let mut feed = server.open(Dialect::Resume, Some("8"));
    assert_eq!(pull(&mut feed), [9]);
    assert!(feed.is_holding());
    assert_eq!(feed.release().as_ref().map(number), Some(10));
    assert_eq!(pull(&mut feed), [MARK + 10]);
    assert_eq!(server.ledger(), [0; 0]);
}
