//! What servers use while the run lasts: processor, memory, threads and descriptors of the process that was started and of
//! all that it started, once a second and at the end.
//!
//! A thread of its own reads `/proc`, so that a slow reading delays no dial. It refuses to know what the numbers mean, and
//! a server that isn't on this machine.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use procfs::process::Stat;

use super::archive::Sources;
use crate::history::{Health, Mark};

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// The processes that are watched: of each target (from 0) the one that was started last.
type Watched = Arc<Mutex<BTreeMap<u16, u32>>>;

/// What the thread is told.
enum Word {
    Look,
    End,
}

/// The watching thread.
pub(super) struct Watch {
    watched: Watched,
    words: mpsc::Sender<Word>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch; nothing, until a process is named.
    pub(super) fn start(sources: Sources) -> Self {
        let watched = Watched::default();
        let (words, told) = mpsc::channel();
        let thread = std::thread::spawn({
            let watched = watched.clone();
            move || {
                // What each process had used when it was last looked at: what its children used may vanish with them.
                let mut used = HashMap::new();
                loop {
                    let last = match told.recv_timeout(EVERY) {
                        Err(RecvTimeoutError::Timeout) | Ok(Word::Look) => false,
                        Ok(Word::End) | Err(RecvTimeoutError::Disconnected) => true,
                    };
                    let watched = watched
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone();
                    if !watched.is_empty() {
                        look(&sources, watched, &mut used);
                    }
                    if last {
                        return;
                    }
                }
            }
        });
        Self {
            watched,
            words,
            thread: Some(thread),
        }
    }

    /// A target's process is this one from now on; it is looked at at once, or a short life would go unseen.
    pub(super) fn of(&self, target: u16, pid: u32) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.insert(target, pid);
        let _ = self.words.send(Word::Look);
    }

    /// Looks once more and ends.
    pub(super) fn finish(&mut self) {
        let _ = self.words.send(Word::End);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to say any more.
            let _ = thread.join();
        }
    }
}

/// Whether there is such a process now.
pub(super) fn is_there(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| procfs::process::Process::new(pid).is_ok())
}

fn look(sources: &Sources, watched: BTreeMap<u16, u32>, used: &mut HashMap<u32, Duration>) {
    let all = processes();
    let at = sources.clock.now();
    for (target, pid) in watched {
        let Some(mut health) = of_tree(&all, pid) else {
            continue;
        };
        health.target = target;
        let most = used.entry(pid).or_default();
        health.cpu = health.cpu.max(*most);
        *most = health.cpu;
        sources.mark(at, Mark::Health(health));
    }
}

/// All processes that can be read.
fn processes() -> HashMap<i32, Stat> {
    let all = procfs::process::all_processes().into_iter().flatten();
    let stats = all.filter_map(|process| process.ok()?.stat().ok());
    stats.map(|stat| (stat.pid, stat)).collect()
}

/// What a process, all that descend from it, and all that stayed in its group use; none where it is gone.
fn of_tree(all: &HashMap<i32, Stat>, pid: u32) -> Option<Health> {
    let root = i32::try_from(pid).ok()?;
    if all.get(&root)?.state == 'Z' {
        return None;
    }
    let descends = |stat: &Stat| {
        let mut at = stat;
        // Bounded, should two readings make a circle of reused numbers.
        for _ in 0..64 {
            if at.pid == root || at.pgrp == root {
                return true;
            }
            match all.get(&at.ppid) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    };
    let mut health = Health {
        pid,
        ..Health::default()
    };
    let mut ticks = 0;
    for stat in all.values().filter(|stat| descends(stat)) {
        // What children that are gone have used stands with whoever waited for them.
        let waited = stat.cutime.max(0).unsigned_abs() + stat.cstime.max(0).unsigned_abs();
        ticks += stat.utime + stat.stime + waited;
        health.rss += stat.rss * procfs::page_size();
        health.threads += u32::try_from(stat.num_threads).unwrap_or(0);
        let open = procfs::process::Process::new(stat.pid).and_then(|process| process.fd_count());
        health.descriptors += open.map_or(0, |n| n as u32);
    }
    let second = procfs::ticks_per_second().max(1);
    health.cpu = Duration::from_secs_f64(ticks as f64 / second as f64);
    Some(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_children_are_counted_together() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 20 & exec 7</dev/null; wait"])
            .spawn()
            .unwrap();
        let clock = crate::clock::Clock::start();
        let deadline = clock.now() + Duration::from_secs(10);
        let health = loop {
            let health = of_tree(&processes(), child.id());
            if health.is_some_and(|h| h.threads == 2) || clock.now() > deadline {
                break health.unwrap();
            }
            std::thread::yield_now();
        };
        let all = processes();
        let sleep = all.values().find(|s| s.ppid == child.id() as i32).unwrap();
        let sleep = rustix::process::Pid::from_raw(sleep.pid).unwrap();
        assert_eq!((health.threads, health.pid), (2, child.id()));
        assert!(
            health.rss > 100_000 && health.descriptors >= 6,
            "{health:?}"
        );
        rustix::process::kill_process(sleep, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(of_tree(&processes(), child.id()), None);
        assert!(!is_there(child.id()) && is_there(std::process::id()));
    }
}
