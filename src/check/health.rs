//! What each server used while the run lasted, in numbers, and how it died. It judges nothing.
//!
//! A process counts its processor time from its own beginning: over restarts the parts are added up, what the first one had
//! used before anybody looked is left out, and a share is taken only between two looks.

use serde::{Deserialize, Serialize};

use super::Ms;
use crate::history::{Elapsed, Health, History, Mark};

/// The longest series that a summary holds.
const POINTS: usize = 600;

/// One server's use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthFacts {
    /// Which target, from 1.
    pub target: u16,
    /// Processes that were watched one after the other.
    pub processes: u32,
    /// Processor time of all of them since the first look, seconds.
    pub cpu_s: f64,
    /// The most between two looks, as a share of one processor: 2 is two of them.
    pub cpu_peak: f64,
    /// The most resident memory, bytes.
    pub rss_peak_bytes: u64,
    /// The most threads.
    pub threads_peak: u32,
    /// The most open descriptors.
    pub descriptors_peak: u32,
    /// When it was last seen.
    #[serde(default)]
    pub last_ms: Ms,
    /// How it went; of a long run every so many looks.
    pub series: Vec<HealthPoint>,
}

/// One look at a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthPoint {
    /// When.
    pub at_ms: Ms,
    /// The share of one processor since the last look.
    pub cpu: f64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u32,
    /// Open descriptors.
    pub descriptors: u32,
}

/// A server that ended although nobody asked it to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// When.
    pub at_ms: Ms,
    /// How it ended.
    pub status: String,
    /// The last lines that it wrote; empty where it wrote none.
    pub last_words: String,
}

/// One look, with what lies between it and the last one.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// When.
    pub at: Elapsed,
    /// What was seen.
    pub health: Health,
    /// The share of one processor since the last look.
    pub cpu: f64,
    /// Whether it is another process than at the last look.
    pub new: bool,
}

/// Every look, by target, then time.
#[must_use]
pub fn looks(history: &History) -> Vec<Look> {
    let looks = history.marks.iter().filter_map(|(at, mark)| match mark {
        Mark::Health(health) => Some((*at, *health)),
        _ => None,
    });
    let mut looks: Vec<_> = looks.collect();
    looks.sort_by_key(|(at, health)| (health.target, *at));
    let mut last: Option<(Elapsed, Health)> = None;
    let look = |(at, health): &(Elapsed, Health)| {
        let before = last.replace((*at, *health));
        let before = before.filter(|(_, b)| b.target == health.target);
        let (since, used, new) = match before {
            Some((since, b)) if b.pid == health.pid => {
                (since, health.cpu.saturating_sub(b.cpu), false)
            }
            // All that a new process has used it used since.
            Some((since, _)) => (since, health.cpu, true),
            // Nobody knows since when the first one has run.
            None => (*at, std::time::Duration::ZERO, true),
        };
        let between = at.since(since).as_secs_f64();
        // Processor time comes in hundredths of a second: of less than this nothing can be said.
        let cpu = match between >= 0.2 {
            true => used.as_secs_f64() / between,
            false => 0.0,
        };
        Look {
            at: *at,
            health: *health,
            cpu,
            new,
        }
    };
    looks.iter().map(look).collect()
}

/// Each server's numbers, by target.
#[must_use]
pub fn facts(history: &History) -> Vec<HealthFacts> {
    let looks = looks(history);
    looks
        .chunk_by(|a, b| a.health.target == b.health.target)
        .map(of)
        .collect()
}

fn of(looks: &[Look]) -> HealthFacts {
    let mut facts = HealthFacts {
        target: looks[0].health.target + 1,
        cpu_s: -looks[0].health.cpu.as_secs_f64(),
        last_ms: looks[looks.len() - 1].at.millis(),
        ..HealthFacts::default()
    };
    for (n, look) in looks.iter().enumerate() {
        let health = &look.health;
        facts.processes += u32::from(look.new);
        let is_last = looks.get(n + 1).is_none_or(|next| next.new);
        if is_last {
            facts.cpu_s += health.cpu.as_secs_f64();
        }
        facts.cpu_peak = facts.cpu_peak.max(look.cpu);
        facts.rss_peak_bytes = facts.rss_peak_bytes.max(health.rss);
        facts.threads_peak = facts.threads_peak.max(health.threads);
        facts.descriptors_peak = facts.descriptors_peak.max(health.descriptors);
    }
    let every = looks.len().div_ceil(POINTS).max(1);
    let point = |look: &Look| HealthPoint {
        at_ms: look.at.millis(),
        cpu: look.cpu,
        rss_bytes: look.health.rss,
        threads: look.health.threads,
        descriptors: look.health.descriptors,
    };
    facts.series = looks.iter().step_by(every).map(point).collect();
    facts
}

/// Every death, in order.
#[must_use]
pub fn deaths(history: &History) -> Vec<Death> {
    let mut deaths: Vec<Death> = Vec::new();
    for (at, mark) in &history.marks {
        match mark {
            Mark::Died { status } => deaths.push(Death {
                at_ms: at.millis(),
                status: status.to_string(),
                last_words: String::new(),
            }),
            Mark::LastWords { text, .. } => {
                if let Some(death) = deaths.last_mut() {
                    death.last_words = text.to_string();
                }
            }
            _ => {}
        }
    }
    deaths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::build::Builder;
    use std::time::Duration;

    fn at(second: u64, pid: u32, cpu_ms: u64) -> (Elapsed, Mark) {
        let health = Health {
            target: 0,
            pid,
            cpu: Duration::from_millis(cpu_ms),
            rss: pid.into(),
            threads: 2,
            descriptors: cpu_ms as u32,
        };
        (Elapsed::from_millis(second * 1_000), Mark::Health(health))
    }

    #[test]
    fn processor_time_adds_up_over_restarts() {
        let mut history = Builder::new(1).end(9_000);
        history.marks.extend([
            at(1, 10, 5_000),
            at(2, 10, 5_500),
            at(4, 10, 7_500),
            at(5, 20, 250),
            at(6, 20, 400),
        ]);
        let [facts] = &facts(&history)[..] else {
            panic!("one server");
        };
        assert_eq!(
            (facts.processes, facts.cpu_s, facts.last_ms),
            (2, 2.9, 6_000.0)
        );
        let shares: Vec<f64> = facts.series.iter().map(|p| p.cpu).collect();
        assert_eq!(shares, [0.0, 0.5, 1.0, 0.25, 0.15]);
        assert_eq!(facts.cpu_peak, 1.0);
        assert_eq!((facts.rss_peak_bytes, facts.descriptors_peak), (20, 7_500));
    }

    #[test]
    fn a_long_run_is_told_in_few_points() {
        let mut history = Builder::new(1).end(9_000);
        history.marks.extend((1..=5_000).map(|n| at(n, 1, n)));
        let points = facts(&history)[0].series.len();
        assert!((500..=POINTS).contains(&points), "{points}");
    }
}
