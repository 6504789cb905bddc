use super::*;
use crate::check::Verdict;
use crate::error::Exit;
use crate::report::{Summary, fixture};

fn shown(case: (History, Verdict), exit: Exit, colour: Colour) -> String {
    let (history, verdict) = case;
    let summary = Summary::new(&history, &verdict, exit);
    let input = Input {
        history: &history,
        verdict: &verdict,
        summary: &summary,
    };
    let names = [
        "history.herd",
        "summary.json",
        "attempts.csv",
        "sessions.csv",
    ];
    let files = names.map(|name| Path::new("reports/1200-default").join(name));
    render(&input, &files, colour)
}

#[test]
fn a_pass() {
    let text = shown(fixture::pass(), Exit::Pass, Colour::Never);
    println!("{text}");
}

#[test]
fn a_fail_with_offenders() {
    let text = shown(fixture::fail(), Exit::Fail, Colour::Never);
    println!("{text}");
}

#[test]
fn an_unknown() {
    let text = shown(fixture::unknown(), Exit::Unknown, Colour::Never);
    println!("{text}");
}

#[test]
fn an_unprimed() {
    let text = shown(fixture::unprimed(), Exit::Unknown, Colour::Never);
    println!("{text}");
}
