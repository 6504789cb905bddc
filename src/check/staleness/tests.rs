//! Stretches of one client; what they mean for a verdict is in the rules' tests.

use super::*;
use crate::check::timeline::Timeline;
use crate::history::build::{Builder, Story};

/// The client's stretches: from, until, connected, in milliseconds.
fn told(primed: u64, story: impl FnOnce(&mut Story<'_>)) -> Vec<(u64, u64, u64)> {
    let history = Builder::new(1)
        .mark(primed, Mark::Primed)
        .outage(1, 5_000, 6_000)
        .acked(1, 900)
        .acked(2, 5_500)
        .client(1, story)
        .end(20_000);
    let timeline = Timeline::new(&history);
    let delivery = delivery::assess(&history, &timeline);
    let spans = Statuses::new(&history, &timeline.returns).spans(&history.clients[0]);
    let ms = |d: Duration| d.as_millis() as u64;
    stretches(
        &history.clients[0],
        &spans,
        &delivery.caught_up[0],
        Elapsed::from_millis(primed),
    )
    .iter()
    .map(|s| (ms(s.from.duration()), ms(s.until.duration()), ms(s.behind)))
    .collect()
}

#[test]
fn a_stretch_ends_with_being_caught_up_and_not_with_being_open() {
    let back = told(800, |s| {
        s.open(10).got(901, 1).dropped(5_000);
        s.opened(7_000, 7_000, 7_100, Some(1)).got(8_000, 2);
    });
    assert_eq!(back, [(5_000, 8_000, 900)]);
}

#[test]
fn a_session_that_was_never_caught_up_is_stale_while_it_lasted() {
    let never = told(800, |s| {
        s.open(10).got(901, 1).dropped(5_000);
        s.opened(7_000, 7_000, 7_100, Some(1)).dropped(9_000);
        s.opened(10_000, 10_000, 10_100, Some(1)).got(10_200, 2);
    });
    assert_eq!(never, [(5_000, 10_200, 2_000)]);
}

#[test]
fn the_ramp_is_no_stale_time_and_an_end_without_a_return_is() {
    let gone = told(3_000, |s| {
        s.open(10)
            .dropped(1_000)
            .open(2_900)
            .got(2_950, 1)
            .dropped(5_000);
    });
    assert_eq!(gone, [(5_000, 20_000, 0)]);
    let late = told(3_000, |s| {
        s.open(10).dropped(1_000).open(4_000).got(4_010, 1);
    });
    assert_eq!(late, [(3_000, 4_010, 9)]);
}

#[test]
fn percentiles_are_by_nearest_rank() {
    let lengths: Vec<_> = (1..=10).map(Duration::from_secs).collect();
    let at = |p| rank(&lengths, p).unwrap().as_secs();
    assert_eq!((at(50.0), at(90.0), at(99.0), at(100.0)), (5, 9, 10, 10));
    assert_eq!(at(0.1), 1);
    assert_eq!(rank(&[], 50.0), None);
}
