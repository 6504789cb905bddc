//! The model server by itself: what is replayed, what is live, and where a reset is due.

use std::ops::Range;

use super::*;

const BASE: u64 = 7 << 20;

fn model(keep: usize, defect: Option<Defect>) -> Model {
    let mut model = Model::new(&Setup {
        keep,
        fault: defect.map(|defect| Fault {
            share: 1.0,
            ..Fault::new(defect)
        }),
        ..Setup::new(2, 1)
    });
    model.arm(Seq(BASE + 1));
    model
}

fn publish(model: &mut Model, numbers: Range<u64>) {
    for n in numbers {
        model.publish(Seq(BASE + n));
    }
}

fn resume(model: &mut Model, after: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    model.subscribe(0, Some(after), &mut frames);
    frames
}

fn live(model: &mut Model, n: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    if let (_, Some(place)) = model.publish(Seq(BASE + n)) {
        model.live(0, place, &mut frames);
    }
    frames
}

#[test]
fn replay_and_live_meet_without_gap_or_overlap() {
    let mut model = model(100, None);
    publish(&mut model, 1..6);
    assert_eq!(
        resume(&mut model, 3),
        [Frame::Event(3), Frame::Event(4)],
        "ids 4 and 5"
    );
    assert_eq!(live(&mut model, 6), [Frame::Event(5)]);
    assert_eq!(live(&mut model, 6), [], "a repeated publication");
    assert_eq!(model.into_ledger(), Ledger::default());
}

#[test]
fn a_cursor_that_is_too_old_or_unknown_is_answered_by_a_reset() {
    let mut model = model(3, None);
    publish(&mut model, 1..9);
    assert_eq!(resume(&mut model, 5).len(), 3, "6, 7 and 8 are kept");
    assert_eq!(resume(&mut model, 4), [Frame::Reset(8)]);
    assert_eq!(resume(&mut model, 9), [Frame::Reset(8)]);
    assert_eq!(model.into_ledger().covered, 4);
}

#[test]
fn the_log_survives_a_kill_and_connections_do_not() {
    let mut model = model(100, None);
    publish(&mut model, 1..4);
    resume(&mut model, 3);
    model.kill();
    model.boot(Elapsed::from_millis(1));
    assert_eq!(live(&mut model, 4), []);
    assert_eq!(resume(&mut model, 2).len(), 2);
    assert_eq!(model.publish(Seq(BASE + 1)), (1, None));
}

#[test]
fn a_pair_withheld_and_then_replayed_is_not_lost() {
    let mut model = model(100, Some(Defect::LoseLive));
    resume(&mut model, 0);
    assert_eq!(live(&mut model, 1), []);
    assert_eq!(live(&mut model, 2), []);
    assert_eq!(model.ledger.lost(), 2);
    assert_eq!(resume(&mut model, 1), [Frame::Event(1)]);
    assert_eq!(model.ledger.lost(), 1);
}

#[test]
fn neighbours_are_swapped_and_the_last_one_is_let_go() {
    let mut model = model(100, Some(Defect::Reorder));
    resume(&mut model, 0);
    assert_eq!(live(&mut model, 1), []);
    assert_eq!(live(&mut model, 2), [Frame::Event(1), Frame::Event(0)]);
    assert_eq!(live(&mut model, 3), []);
    let mut frames = Vec::new();
    model.flush(0, &mut frames);
    assert_eq!(frames, [Frame::Event(2)]);
    assert_eq!(model.into_ledger().reordered, 1);
}

#[test]
fn ids_that_start_again_hide_what_lies_below_the_cursor() {
    let mut model = model(100, Some(Defect::IdsRestart));
    publish(&mut model, 1..4);
    model.kill();
    model.boot(Elapsed::from_millis(1));
    assert_eq!(model.publish(Seq(BASE + 4)).0, 1);
    assert_eq!(resume(&mut model, 2), []);
    assert_eq!(live(&mut model, 5), [], "id 2");
    assert_eq!(live(&mut model, 6), [Frame::Event(5)], "id 3");
    assert_eq!(model.into_ledger().lost(), 2);
}
