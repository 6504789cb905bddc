//! Runs in virtual time, judged and written: what the judge counted, the files give too, whatever the server did wrong.

use herd::check::judge;
use herd::error::Exit;
use herd::report::{Format, Summary, write_all};
use herd::server::defect::Defect;
use herd::simulate::{self, Fault, Setup};

fn check(setup: &Setup) {
    let history = simulate::run(setup);
    let verdict = judge(&history);
    let summary = Summary::new(&history, &verdict, Exit::Pass);
    let dir = tempfile::tempdir().expect("a directory");
    write_all(dir.path(), &Format::ALL, &history, &verdict, &summary).expect("room to write");
    super::check(dir.path());
}

#[test]
fn a_clean_run() {
    check(&Setup {
        outages: 2,
        ..Setup::new(100, 1)
    });
}

#[test]
fn every_defect() {
    for defect in Defect::ALL {
        check(&Setup {
            fault: Some(Fault::new(defect)),
            ..Setup::new(60, 1)
        });
    }
}

/// What was evicted is covered by a reset where the server says so, and lost where it doesn't.
#[test]
fn a_server_that_keeps_little() {
    for fault in [None, Some(Fault::new(Defect::SkipEvicted))] {
        check(&Setup {
            keep: 10,
            fault,
            ..Setup::new(60, 1)
        });
    }
}
