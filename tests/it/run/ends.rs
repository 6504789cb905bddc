//! Acceptance 7: however a run ends, nobody is left behind, and what was recorded can be judged.

use rustix::process::{Pid, Signal, kill_process};

use super::{QUICK, Running, STAMPEDE, Stage, until};

/// A run that stays in its steady phase until somebody ends it.
fn steady(stage: &Stage, args: &[&str]) -> Running {
    let mut run = stage.run(QUICK, &[&["--steady", "1m"], args].concat());
    run.until_it_says("steady");
    run
}

#[test]
fn an_interrupted_run_keeps_its_files_and_says_that_it_was_cut() {
    type Send = fn(&Running);
    let ways: [(Send, i32, &str); 5] = [
        (|run| run.signal(Signal::INT), 130, "INTERRUPTED"),
        (|run| run.signal_group(Signal::INT), 130, "INTERRUPTED"),
        (|run| run.signal(Signal::TERM), 143, "TERMINATED"),
        (|run| run.signal_group(Signal::TERM), 143, "TERMINATED"),
        // As timeout(1) does it.
        (
            |run| {
                run.signal(Signal::TERM);
                run.signal_group(Signal::TERM);
            },
            143,
            "TERMINATED",
        ),
    ];
    let stages = ways.map(|way| (way, Stage::new()));
    let runs: Vec<_> = stages.iter().map(|(_, stage)| steady(stage, &[])).collect();
    for (((send, code, word), stage), run) in stages.iter().zip(runs) {
        send(&run);
        run.end()
            .with(*code)
            .says(&[&format!("{word} "), "stopped early"]);
        stage.assert_empty();
        let summary = stage.summary();
        assert_eq!(summary["truncated"], true);
        assert_eq!(summary["exit"], *code);
        for name in ["attempts.csv", "receipts.csv", "publications.csv"] {
            assert!(stage.path("out").join(name).is_file(), "{name}");
        }
        // The verdict of what is there, without the signal.
        stage.check(&[]).with(3);
    }
}

#[test]
fn a_signal_in_the_middle_of_an_outage_ends_it_too() {
    let stage = Stage::new();
    let mut run = stage.run(QUICK, &["--down", "30s"]);
    run.until_it_says("down ");
    run.signal_group(Signal::INT);
    run.end().with(130).at_once();
    stage.assert_empty();
}

/// A server that doesn't answer goodbyes makes the first Ctrl-C wait; the second one doesn't.
#[test]
fn a_second_ctrl_c_ends_at_once() {
    let stage = Stage::new();
    let run = steady(&stage, &[]);
    let server = stage
        .processes()
        .into_iter()
        .find(|(_, line)| line.contains(" serve "));
    let server = Pid::from_raw(server.unwrap().0).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    run.signal(Signal::INT);
    // Real time: signals that come together are one request.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let asked = herd::clock::Clock::start();
    run.signal(Signal::INT);
    run.end().with(130);
    assert!(asked.now().duration().as_secs() < 2);
    stage.assert_empty();
}

/// What is certain in what a killed herd recorded fails; all else is unknown, and never a pass.
#[test]
fn a_killed_run_leaves_nobody_and_is_judged_up_to_its_last_chunk() {
    let (clean, faulty) = (Stage::new(), Stage::new());
    let faulty_args = ["--outages", "3", "--defect", "duplicate-on-resume"];
    let runs = [
        (&clean, steady(&clean, &[]), "delivered", 3),
        (&faulty, faulty.run(QUICK, &faulty_args), "duplicated", 1),
    ];
    for (stage, run, word, code) in runs {
        let recorded = || {
            let judged = stage.check(&["--json", "-q"]);
            let summary: serde_json::Value = serde_json::from_str(&judged.stdout).ok()?;
            (summary["delivery"][word].as_u64()? > 0).then_some(())
        };
        until("a chunk with something in it", recorded);
        run.signal(Signal::KILL);
        assert_eq!(run.end().code, None);
        stage.assert_empty();
        stage.check(&[]).with(code).says(&["no end"]);
    }
}

#[test]
fn a_failed_run_leaves_nobody() {
    let stage = Stage::new();
    stage
        .run(STAMPEDE, &[])
        .end()
        .with(1)
        .says(&["FAIL", "reconnect-spread"]);
    stage.assert_empty();
    stage.check(&[]).with(1);
}
