//! Storms whose course is known beforehand.

use super::*;
use crate::backoff::presets;
use proptest::prelude::*;

fn storm(preset: &str, clients: u32, seed: u64, down: f64) -> Storm {
    let mix = presets::find(preset).unwrap().mix();
    Storm::new(clients, seed, mix, Duration::from_secs_f64(down))
}

type Path = fn(&Storm, u64, &mut dyn FnMut(Told)) -> Result<Course, TooMany>;

fn alone(storm: &Storm, most: u64, told: &mut dyn FnMut(Told)) -> Result<Course, TooMany> {
    alone::run(storm, most, &mut |t| told(t))
}

fn crowd(storm: &Storm, most: u64, told: &mut dyn FnMut(Told)) -> Result<Course, TooMany> {
    crowd::run(storm, most, &mut |t| told(t))
}

/// Everything that was told, in the order of the clients.
fn told(path: Path, storm: &Storm) -> (Vec<Dialled>, Vec<String>, Course) {
    let (mut dials, mut others) = (Vec::new(), Vec::new());
    let course = path(storm, 1_000_000, &mut |told| match told {
        Told::Dialled(dialled) => dials.push(dialled),
        other => others.push(format!("{other:?}")),
    });
    dials.sort_unstable();
    others.sort_unstable();
    (dials, others, course.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Where nobody meets anybody the queue changes nothing.
    #[test]
    fn both_paths_tell_the_same(
        preset in proptest::sample::select(presets::all().collect::<Vec<_>>()),
        clients in 1u32..40,
        seed in any::<u64>(),
        down in 0u64..4_000,
        detect in 0u64..100,
    ) {
        let mut storm = Storm::new(clients, seed, preset.mix(), Duration::from_millis(down));
        storm.detect.most = Duration::from_millis(detect);
        prop_assert_eq!(told(alone, &storm), told(crowd, &storm));
    }
}

#[test]
fn a_dial_at_the_instant_of_return_is_served() {
    for (down, back) in [(2.0, 1), (2.000_001, 0)] {
        let storm = storm("signalr", 1, 1, down);
        for path in [alone as Path, crowd] {
            let (dials, _, _) = told(path, &storm);
            let second = dials[1];
            assert_eq!(second.due, CUT + Duration::from_secs(2));
            let opened = dials
                .iter()
                .filter(|d| d.met == Met::Opened && d.due == second.due);
            assert_eq!(opened.count(), back, "{down}");
        }
    }
}

/// Two clients at once; the server serves one a second. Then the second waits a second.
#[test]
fn a_server_accepts_at_its_own_pace() {
    let mut storm = storm("partysocket", 4, 1, 1.0);
    storm.limits.accept_rate = Some(1.0);
    let (dials, _, course) = told(crowd, &storm);
    let served: Vec<_> = dials.iter().map(|d| d.ended.since(CUT).as_secs()).collect();
    // Its limit of a handshake is 4 s, as much as the last one needs.
    assert_eq!(served, [3, 4, 5, 6]);
    assert!(dials.iter().all(|d| d.connected == Some(d.due)));
    assert_eq!(course.recovered, Some(CUT + Duration::from_secs(6)));
}

#[test]
fn a_full_backlog_drops_the_syn_which_comes_again_after_1_and_3_seconds() {
    let mut storm = storm("partysocket", 8, 1, 1.0);
    (storm.limits.accept_rate, storm.limits.backlog) = (Some(2.0), 1);
    let (dials, _, _) = told(crowd, &storm);
    let first = |client: u32| *dials.iter().find(|d| d.client == client).unwrap();
    let ms = |at: Elapsed| at.since(CUT).as_millis() as u64;
    // One is being served, one waits, six are dropped; a second later the first of them finds room.
    assert_eq!(ms(first(1).ended), 3_000);
    assert_eq!(
        (first(2).connected.map(ms), ms(first(2).ended)),
        (Some(3_000), 3_500)
    );
    assert_eq!(
        (first(3).connected.map(ms), ms(first(3).ended)),
        (Some(4_000), 4_000)
    );
    assert_eq!(
        (first(4).connected.map(ms), ms(first(4).ended)),
        (Some(4_000), 4_500)
    );
    assert_eq!(first(5).connected.map(ms), Some(6_000));
    // The limit of partysocket is 4 s: before the SYN would come a third time.
    assert_eq!((first(7).met, ms(first(7).ended)), (Met::Unanswered, 7_000));
}

#[test]
fn a_client_gives_up_waiting_and_the_server_serves_it_all_the_same() {
    let mut storm = storm("partysocket", 6, 1, 1.0);
    storm.limits.handshake = Duration::from_secs(1);
    let (dials, _, _) = told(crowd, &storm);
    let met: Vec<_> = (1..=6)
        .map(|client| dials.iter().find(|d| d.client == client).unwrap().met)
        .collect();
    use Met::{Opened, Unserved};
    assert_eq!(met, [Opened, Opened, Opened, Opened, Unserved, Unserved]);
    let again = dials.iter().filter(|d| d.client == 5).nth(1).unwrap();
    assert_eq!(again.due.since(CUT), Duration::from_millis(7_000 + 3_900));
}

/// Requests of an attempt are load: one of SignalR's takes as long as two of another's.
#[test]
fn a_handshake_costs_as_many_requests_as_the_library_makes() {
    for (preset, at) in [("signalr", 20), ("supabase", 10)] {
        let mut storm = storm(preset, 1, 1, 0.0);
        storm.limits.handshake = Duration::from_millis(10);
        let (dials, _, _) = told(crowd, &storm);
        let took = dials[0].ended.since(dials[0].due);
        assert_eq!(took, Duration::from_millis(at), "{preset}");
    }
}

/// Acceptance 5 of the simulator.
#[test]
fn a_server_that_falls_over_recovers_from_full_jitter_and_never_from_immediate() {
    let fallen = |preset| {
        let mut storm = storm(preset, 300, 3, 2.0);
        storm.limits = Limits {
            handshake: Duration::from_millis(5),
            collapse: Some(100),
            ..Limits::NONE
        };
        storm.until = Some(Duration::from_secs(30));
        tally::Tally::of(&storm, 20_000_000).unwrap()
    };
    let (tally, course) = fallen("immediate");
    assert!(course.falls.len() > 10, "{:?}", course.falls.len());
    assert_eq!(course.recovered, None);
    assert_eq!(tally.back().count(), 0);
    let (tally, course) = fallen("full-jitter");
    assert!(course.falls.is_empty(), "{:?}", course.falls);
    assert_eq!(tally.back().count(), 300);
    assert!(course.recovered.is_some());
}

/// One that falls at first and recovers later, since the windows grow while it is down.
#[test]
fn windows_that_grow_end_a_series_of_falls() {
    let mut storm = storm("aws-full", 2_000, 5, 1.0);
    storm.limits = Limits {
        handshake: Duration::from_millis(8),
        collapse: Some(200),
        ..Limits::NONE
    };
    let (tally, course) = tally::Tally::of(&storm, 20_000_000).unwrap();
    assert!(!course.falls.is_empty());
    assert!(course.recovered.is_some(), "{} falls", course.falls.len());
    assert_eq!(tally.back().count(), 2_000);
}

#[test]
fn a_fall_takes_open_connections_with_it() {
    let mut storm = storm("full-jitter", 30, 1, 1.0);
    storm.limits = Limits {
        handshake: Duration::from_millis(100),
        collapse: Some(2),
        ..Limits::NONE
    };
    let (dials, others, course) = told(crowd, &storm);
    let count = |word: &str| others.iter().filter(|o| o.starts_with(word)).count();
    let met = |wanted| dials.iter().filter(|d| d.met == wanted).count();
    assert!(!course.falls.is_empty());
    // Each of them once at the cut; then whatever was opened and did not stay.
    assert_eq!(count("Lost"), 30 + met(Met::Opened) - count("Stayed"));
    assert!(count("Lost") > 30);
    // Two wait, and one too many.
    assert_eq!(met(Met::Reset), 3 * course.falls.len());
}

#[test]
fn outages_follow_each_other_and_draw_anew() {
    let mut storm = storm("full-jitter", 20, 9, 1.0);
    storm.outages = 3;
    let (dials, others, _) = told(crowd, &storm);
    let settled = others.iter().filter(|o| o.starts_with("Settled")).count();
    assert_eq!(settled, 3);
    let opened = dials.iter().filter(|d| d.met == Met::Opened);
    assert_eq!(opened.count(), 60);
}

#[test]
fn a_herd_that_dials_too_often_is_refused() {
    let storm = storm("immediate", 100, 1, 2.0);
    for path in [alone as Path, crowd] {
        assert_eq!(path(&storm, 1_000, &mut |_| {}), Err(TooMany(1_000)));
    }
}

#[test]
fn who_is_away_at_the_limit_is_given_up() {
    let mut storm = storm("partysocket", 5, 1, 10.0);
    storm.until = Some(Duration::from_secs(8));
    for path in [alone as Path, crowd] {
        let (dials, _, course) = told(path, &storm);
        assert_eq!(dials.len(), 10);
        assert_eq!(course.recovered, None);
        assert_eq!(course.end, CUT + Duration::from_secs(8));
    }
}
