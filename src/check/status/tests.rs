//! Spans of stories of a few lines, and counts that add up whatever happened.

use super::*;
use crate::check::timeline::Timeline;
use crate::history::Quit;
use crate::history::build::{Builder, Story};
use proptest::prelude::*;

use Status::{Connected, Connecting, Disconnected, GaveUp, Reconnecting};

/// What the only client was, with the instants at which it became that, in milliseconds.
fn told(story: impl FnOnce(&mut Story<'_>)) -> Vec<(u64, Status)> {
    let history = Builder::new(1)
        .outage(1, 500, 700)
        .client(1, story)
        .end(10_000);
    let timeline = Timeline::new(&history);
    let spans = Statuses::new(&history, &timeline.returns).spans(&history.clients[0]);
    assert_eq!(spans[0].from, Elapsed::ZERO);
    assert_eq!(spans[spans.len() - 1].until, history.horizon);
    assert!(spans.windows(2).all(|pair| pair[0].until == pair[1].from));
    spans
        .iter()
        .map(|span| (span.from.micros() / 1_000, span.status))
        .collect()
}

#[test]
fn a_client_waits_dials_and_is_back() {
    let spans = told(|s| {
        s.failed(10, AttemptOutcome::Refused)
            .opened(20, 20, 30, None);
        s.dropped(500).failed(600, AttemptOutcome::Refused);
        s.opened(800, 800, 900, None);
    });
    let wanted = [
        (0, Connecting),
        (30, Connected),
        (500, Disconnected),
        (600, Reconnecting),
        (601, Disconnected),
        (800, Reconnecting),
        (900, Connected),
    ];
    assert_eq!(spans, wanted);
}

/// A user doesn't ask whether a connection was of use.
#[test]
fn a_flapped_session_is_connected_for_as_long_as_it_was() {
    let spans = told(|s| {
        s.opened(0, 0, 10, None).dropped(500);
        s.opened(600, 600, 610, None).dropped(612);
    });
    assert_eq!(spans[4..], [(610, Connected), (612, Disconnected)]);
}

#[test]
fn a_silent_connection_is_lost_with_its_last_sign_of_life() {
    let spans = told(|s| {
        s.opened(0, 0, 10, None).silent(400);
        s.closed(3_000, Cause::Heartbeat)
            .opened(3_100, 3_100, 3_200, None);
    });
    assert_eq!(spans[1..3], [(10, Connected), (400, Disconnected)]);
    assert_eq!(spans[3..], [(3_100, Reconnecting), (3_200, Connected)]);
}

/// Rule 5: nobody recorded since when; it was lost when the trigger was pulled.
#[test]
fn a_half_open_connection_is_not_connected_since_the_cut() {
    let spans = told(|s| {
        s.opened(0, 0, 10, None).closed(6_000, Cause::HalfOpen);
    });
    assert_eq!(spans[1..], [(10, Connected), (500, Disconnected)]);
}

#[test]
fn whoever_stops_stays_so_and_the_runs_own_end_is_no_loss() {
    let spans = told(|s| {
        s.failed(10, AttemptOutcome::Refused).quit(11, Quit::GaveUp);
    });
    assert_eq!(spans, [(0, Connecting), (11, GaveUp)]);
    let spans = told(|s| {
        s.opened(0, 0, 10, None).closed(9_000, Cause::Herd);
    });
    assert_eq!(spans, [(0, Connecting), (10, Connected)]);
    let spans = told(|s| {
        s.opened(0, 0, 10, None).dropped(500);
        s.failed(600, AttemptOutcome::Aborted);
    });
    assert_eq!(spans[2..], [(500, Disconnected), (600, Reconnecting)]);
}

/// In a run of hours a step of the series is minutes long, and an outage of a second may not vanish in it.
#[test]
fn a_step_shows_its_worst_moment() {
    let history = Builder::new(2)
        .each(|_, s| {
            s.opened(0, 0, 10, None).dropped(3_600_000);
            s.opened(3_601_000, 3_601_000, 3_601_010, None);
        })
        .end(7_200_000);
    let facts = Statuses::new(&history, &[]).survey().facts();
    assert_eq!(facts.step_ms, 50_000.0);
    let rows: Vec<_> = facts
        .series
        .iter()
        .map(|r| (r.at_ms, r.connected))
        .collect();
    let wanted = [
        (0.0, 0),
        (50_000.0, 2),
        (3_600_000.0, 0),
        (3_650_000.0, 2),
        (7_200_000.0, 2),
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn steps_are_handy() {
    assert_eq!(handy(0), 1_000);
    assert_eq!(handy(999), 1_000);
    assert_eq!(handy(1_000), 2_000);
    assert_eq!(handy(36_000_000), 50_000_000);
}

/// Gaps in milliseconds between what happens to one client, and what.
fn tale(s: &mut Story<'_>, turns: &[(u64, u8)]) {
    let (mut at, mut open) = (1, false);
    for (gap, turn) in turns {
        at += gap;
        match (open, turn % 4) {
            (false, 0) => _ = s.failed(at, AttemptOutcome::Refused),
            (false, _) => {
                s.opened(at, at, at + gap / 3, None);
                (at, open) = (at + gap / 3, true);
            }
            (true, turn) => {
                if turn == 1 {
                    s.silent(at - gap / 2);
                }
                let cause = if turn == 2 {
                    Cause::HalfOpen
                } else {
                    Cause::Eof
                };
                s.closed(at, cause);
                open = false;
            }
        }
        if *turn == 200 && !open {
            s.quit(at + 1, Quit::GaveUp);
            return;
        }
    }
}

proptest! {
    #[test]
    fn spans_cover_the_run_and_counts_add_up(
        tales in proptest::collection::vec(
            proptest::collection::vec((0u64..900, any::<u8>()), 0..12), 1..6),
        end in 1u64..12_000,
    ) {
        let clients = tales.len() as u32;
        let history = Builder::new(clients)
            .outage(1, 1_000, 1_500)
            .each(|k, s| tale(s, &tales[k as usize - 1]))
            .end(end);
        let timeline = Timeline::new(&history);
        let statuses = Statuses::new(&history, &timeline.returns);
        let mut times = Duration::ZERO;
        for client in &history.clients {
            let mut at = Elapsed::ZERO;
            for span in statuses.spans(client) {
                prop_assert_eq!(span.from, at);
                prop_assert!(span.until > span.from);
                prop_assert_eq!(span.session.is_some(), span.status == Connected);
                at = span.until;
                times += span.length();
            }
            prop_assert_eq!(at, history.horizon);
        }
        prop_assert_eq!(times, history.horizon.duration() * clients);
        let survey = statuses.survey();
        for (_, counts) in survey.rows() {
            prop_assert_eq!(counts.iter().sum::<u32>(), clients);
        }
        let facts = survey.facts();
        prop_assert!((facts.client_seconds.total() - times.as_secs_f64()).abs() < 1e-6);
        prop_assert!(facts.series.len() <= 203);
        for pair in survey.rows().windows(2) {
            prop_assert!(pair[0].0 < pair[1].0);
        }
    }

    /// A row is what anybody would count at that instant, where steps hold one look only.
    #[test]
    fn a_look_is_a_count(
        tales in proptest::collection::vec(
            proptest::collection::vec((0u64..900, any::<u8>()), 0..12), 1..6),
    ) {
        let history = Builder::new(tales.len() as u32)
            .each(|k, s| tale(s, &tales[k as usize - 1]))
            .end(5_000);
        let statuses = Statuses::new(&history, &[]);
        let survey = statuses.survey();
        for (look, counts) in survey.counts.iter().enumerate() {
            let at = Elapsed(look as u64 * survey.step);
            let mut counted = Counts::default();
            for client in &history.clients {
                let spans = statuses.spans(client);
                // The record's end belongs to the last of them.
                let span = spans.iter().find(|s| at < s.until).or(spans.last());
                counted[span.unwrap().status as usize] += 1;
            }
            prop_assert_eq!(*counts, counted, "at {:?}", at);
        }
    }
}
