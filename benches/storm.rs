//! The simulator's speed and memory: `cargo bench --bench storm` prints a curve. Each figure is a process of its own, so that
//! its peak of memory is its own too. The goals stand in the table; nothing fails, since a shared machine proves nothing.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark prints, reads the clock, and may end as it likes"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use herd::backoff::presets;
use herd::check;
use herd::history::{Source, Terms, build};
use herd::simulate::storm::tally::Tally;
use herd::simulate::storm::{Storm, record};

const DOWN: Duration = Duration::from_secs(2);
const SIZES: [u32; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// What is measured.
const WHAT: [(&str, &str, u32); 3] = [
    (
        "counted",
        "full-jitter, no limits: one client after the other",
        10_000_000,
    ),
    (
        "queued",
        "full-jitter, a server with a pace: all through the queue",
        10_000_000,
    ),
    (
        "judged",
        "full-jitter, no limits: recorded and judged",
        1_000_000,
    ),
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, what, clients] = &args[..] {
        return one(what, clients.parse().unwrap());
    }
    println!(
        "goals, counted: 1,000,000 in 0.3 s, 10,000,000 in 3 s and 300 MB; judged: 1,000,000 in 2 s\n"
    );
    println!(
        "{:>10}  {:>10}  {:>10}  {:>8}  {:>8}",
        "", "clients", "dials", "seconds", "MB"
    );
    for (what, meaning, most) in WHAT {
        println!("{meaning}");
        for clients in SIZES.into_iter().filter(|clients| *clients <= most) {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let output = child.args([what, &clients.to_string()]).output().unwrap();
            print!("{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

fn one(what: &str, clients: u32) {
    let mix = presets::find("full-jitter").unwrap().mix();
    let mut storm = Storm::new(clients, 1, mix, DOWN);
    let begun = Instant::now();
    let dials = match what {
        "judged" => judged(&storm),
        "queued" => {
            storm.limits.accept_rate = Some(f64::from(clients));
            Tally::of(&storm, u64::MAX).unwrap().1.dials
        }
        _ => Tally::of(&storm, u64::MAX).unwrap().1.dials,
    };
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{what:>10}  {clients:>10}  {dials:>10}  {took:>8.3}  {:>8}",
        peak_mb()
    );
}

fn judged(storm: &Storm) -> u64 {
    let mut header = build::header(storm.clients);
    header.terms = Terms {
        source: Source::Nobody,
        ..header.terms
    };
    let (history, course) = record::history(storm, header).unwrap();
    let verdict = check::judge(&history);
    assert_eq!(verdict.outages.len(), 1);
    course.dials
}

/// The most memory that this process held.
fn peak_mb() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kb.map_or("?".to_owned(), |kb| (kb * 1_024 / 1_000_000).to_string())
}
