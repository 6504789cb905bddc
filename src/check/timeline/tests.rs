//! The timeline read off histories of a few lines, and off any.

use super::*;
use crate::history::Cause;
use crate::history::build::{Builder, Story};
use proptest::prelude::*;

fn wave_drops(timeline: &Timeline) -> Vec<(u32, u32, u32)> {
    let of = |o: &OutageSpan| {
        let wave = |w: &WaveSpan| (o.outage, w.wave, w.dropped);
        o.waves.iter().map(wave).collect::<Vec<_>>()
    };
    timeline.outages.iter().flat_map(of).collect()
}

#[test]
fn a_pause_of_more_than_a_second_starts_a_new_wave() {
    let drops = [1_000, 2_000, 3_001, 3_001];
    let history = Builder::new(4)
        .outage(1, 1_000, 60_000)
        .each(|k, s| {
            s.open(1).got(2, 1).dropped(drops[k as usize - 1]);
        })
        .end(70_000);
    assert_eq!(wave_drops(&Timeline::new(&history)), [(1, 1, 2), (1, 2, 2)]);
}

#[test]
fn drops_before_the_first_trigger_are_outage_0_and_between_two_the_first_ones() {
    let history = Builder::new(1)
        .outage(1, 10_000, 11_000)
        .outage(2, 20_000, 21_000)
        .client(1, |s| {
            s.open(1).dropped(5_000).open(6_000).dropped(10_001);
            s.open(12_000).dropped(19_999);
            s.open(20_000).dropped(21_500).open(22_000);
        })
        .end(30_000);
    let timeline = Timeline::new(&history);
    assert_eq!(
        wave_drops(&timeline),
        [(0, 1, 1), (1, 1, 1), (1, 2, 1), (2, 1, 1)]
    );
    let places: Vec<_> = timeline.sessions[0]
        .iter()
        .map(|p| (p.outage, p.wave))
        .collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 1), (1, 2), (2, 1)]);
    let triggered: Vec<_> = timeline
        .outages
        .iter()
        .flat_map(|o| o.waves.iter().map(|w| w.triggered))
        .collect();
    assert_eq!(triggered, [false, true, false, true]);
}

#[test]
fn a_flapped_session_ends_no_absence() {
    let history = Builder::new(1)
        .outage(1, 10_000, 11_000)
        .client(1, |s| {
            s.open(1).dropped(10_001);
            s.failed(10_500, crate::history::AttemptOutcome::Refused);
            s.open(11_000).dropped(11_500);
            s.open(12_000);
        })
        .end(30_000);
    let timeline = Timeline::new(&history);
    let row = &timeline.returns[0];
    assert_eq!(
        (timeline.returns.len(), row.session, row.attempts),
        (1, Some(2), 3)
    );
    let flapped: Vec<_> = timeline.sessions[0].iter().map(|p| p.flapped).collect();
    assert_eq!(flapped, [false, true, false]);
    assert_eq!(dials(&history.clients[0], row).len(), 3);
}

#[test]
fn a_session_still_open_at_the_end_lasted_until_then() {
    for (end, flapped) in [(12_000, true), (12_001, false)] {
        let history = Builder::new(1)
            .outage(1, 10_000, 11_000)
            .client(1, |s| {
                s.open(1).dropped(10_001).open(11_000);
            })
            .end(end);
        let timeline = Timeline::new(&history);
        assert_eq!(timeline.sessions[0][1].flapped, flapped);
        assert_eq!(timeline.returns[0].session.is_none(), flapped);
    }
}

#[test]
fn half_open_sessions_belong_to_the_cut() {
    let half_open = |with_others: bool| {
        let clients = Builder::new(2).outage(1, 10_000, 11_000).each(|k, s| {
            s.open(1);
            match k {
                1 => s.closed(17_000, Cause::HalfOpen).open(18_000),
                _ if with_others => s.dropped(10_003).open(11_500),
                _ => s,
            };
        });
        Timeline::new(&clients.end(30_000)).returns[0].dropped
    };
    assert_eq!(half_open(true), Elapsed::from_millis(10_003));
    assert_eq!(half_open(false), Elapsed::from_millis(10_000));
}

fn story(s: &mut Story<'_>, gaps: &[u64]) {
    let mut at = 1;
    for gap in gaps {
        s.open(at).dropped(at + gap);
        at += gap + 300;
    }
}

proptest! {
    #[test]
    fn waves_partition_the_drops(
        gaps in proptest::collection::vec(proptest::collection::vec(1u64..4_000, 0..6), 1..8),
        trigger in 1u64..9_000,
    ) {
        let clients = gaps.len() as u32;
        let history = Builder::new(clients)
            .outage(1, trigger, trigger + 500)
            .each(|k, s| story(s, &gaps[k as usize - 1]))
            .end(60_000);
        let timeline = Timeline::new(&history);
        let lost: usize = history.clients.iter().zip(&timeline.sessions)
            .map(|(c, p)| c.sessions.iter().zip(p)
                .filter(|(s, p)| s.dropped().is_some() && !p.flapped).count())
            .sum();
        prop_assert_eq!(timeline.returns.len(), lost);
        let mut seen = 0;
        for outage in &timeline.outages {
            let mut last: Option<Elapsed> = None;
            for wave in &outage.waves {
                prop_assert!(last.is_none_or(|l| wave.first_drop.since(l) > PAUSE));
                prop_assert!(wave.last_drop < outage.until);
                last = Some(wave.last_drop);
                let rows = timeline.of_wave(outage.outage, wave.wave);
                prop_assert!(rows.iter().all(|r| wave.first_drop <= r.dropped && r.dropped <= wave.last_drop));
                seen += rows.len();
            }
        }
        prop_assert_eq!(seen, lost);
    }

    /// Merged shards may tell of the same run in any order.
    #[test]
    fn the_order_of_the_marks_does_not_matter(seed in any::<u64>(), twice in any::<bool>()) {
        let history = Builder::new(3)
            .outage(1, 10_000, 11_000)
            .outage(2, 20_000, 21_000)
            .each(|k, s| story(s, &[10_000 + u64::from(k), 9_700, 3_000]))
            .end(60_000);
        let mut shuffled = history.clone();
        if twice {
            shuffled.marks.extend(history.marks.clone());
        }
        let by = |i: usize| (i as u64 + 1).wrapping_mul(seed | 1) >> 7;
        let mut numbered: Vec<_> = shuffled.marks.into_iter().enumerate().collect();
        numbered.sort_by_key(|(i, _)| by(*i));
        shuffled.marks = numbered.into_iter().map(|(_, m)| m).collect();
        let (a, b) = (Timeline::new(&history), Timeline::new(&shuffled));
        prop_assert_eq!(a.outages, b.outages);
        prop_assert_eq!(a.returns, b.returns);
        prop_assert_eq!(a.sessions, b.sessions);
    }
}
