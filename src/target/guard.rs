//! The guard: a small process between herd and a command, which sees to it that the command dies with herd.
//!
//! herd runs itself again as `herd guard MODE -- COMMAND...`. The guard holds the reading end of a pipe that only herd
//! can write to; when the pipe ends, however herd ended, it kills the command's process group and, being a child
//! subreaper, every descendant that left the group. It takes orders as lines on stdin and reports as JSON lines on
//! stdout; its stderr is the command's log. It knows nothing of servers, ports or outages.

mod wire;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

pub use wire::{Ended, Mode, Order, Report};

/// This very binary, also where its file was replaced or deleted since it was started.
pub const OWN: &str = "/proc/self/exe";
/// How often a group whose leader has ended is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long killed processes may take to disappear before the guard stops waiting for them.
const LAST_WAIT: Duration = Duration::from_secs(10);
/// The longest line that is taken from a command; the rest of a longer one is thrown away.
const MAX_LINE: u64 = 64 * 1024;

/// Runs a guard until herd is gone. `args` is what follows `guard` on the command line: `MODE -- COMMAND...`.
///
/// Returns 2 where the arguments make no sense, else 0.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let mode = args
        .next()
        .and_then(|word| Mode::ALL.into_iter().find(|m| word == m.name()));
    let dashes = args.next();
    let command: Vec<OsString> = args.collect();
    let (Some(mode), Some("--"), false) = (
        mode,
        dashes.as_deref().and_then(|d| d.to_str()),
        command.is_empty(),
    ) else {
        return ExitCode::from(2);
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::from(4);
    };
    // So that `killall herd` leaves somebody to clean up. Only a name: nothing depends on it.
    let _ = std::fs::write("/proc/self/comm", "guard");
    let done = runtime.block_on(Guard::new(mode, command).run());
    // The thread that reads stdin may be blocked; nobody waits for it.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(4),
    }
}

/// A started command.
#[derive(Debug)]
struct Running {
    /// Its process id and its group's.
    pid: Pid,
    /// Set when it was reaped, while its group may still live.
    ended: Option<Ended>,
    /// Whether somebody asked it to end.
    asked: Asked,
    /// Lines for its stdin; none = closed.
    stdin: Option<mpsc::UnboundedSender<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Term,
    Kill,
}

#[derive(Debug)]
struct Guard {
    mode: Mode,
    command: Vec<OsString>,
    running: Option<Running>,
}

impl Guard {
    fn new(mode: Mode, command: Vec<OsString>) -> Self {
        Self {
            mode,
            command,
            running: None,
        }
    }

    async fn run(mut self) -> io::Result<()> {
        if self.mode != Mode::Task {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        }
        // Handlers, not "ignore", which the command would inherit.
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let mut hup = signal(SignalKind::hangup())?;
        let mut child = signal(SignalKind::child())?;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut orders = read_orders();
        loop {
            tokio::select! {
                biased;
                _ = term.recv() => break,
                _ = int.recv() => break,
                _ = hup.recv() => break,
                _ = child.recv() => self.reap(),
                _ = look.tick(), if self.is_draining() => self.drain(),
                order = orders.recv() => match order {
                    Some(order) => self.obey(order),
                    None => break,
                },
            }
        }
        self.end(&mut child).await;
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match (order, &mut self.running) {
            (Order::Start, None) => self.start(&[]),
            (Order::StartWith(further), None) => self.start(&further),
            (Order::Start | Order::StartWith(_), Some(_)) => {
                say(&Report::NotStarted("it still runs".into()))
            }
            (Order::Term, Some(running)) => running.signal(Signal::TERM),
            (Order::Kill, Some(running)) => running.signal(Signal::KILL),
            (Order::Line(line), Some(running)) => {
                if let Some(stdin) = &running.stdin {
                    // Fails only where the command closed its stdin; it'll be reported when it ends.
                    let _ = stdin.send(line);
                }
            }
            (Order::Close, Some(running)) => running.stdin = None,
            (Order::Term | Order::Kill | Order::Line(_) | Order::Close, None) => {}
        }
    }

    fn start(&mut self, further: &[String]) {
        match self.spawn(further) {
            Ok(running) => {
                say(&Report::Started(
                    running.pid.as_raw_nonzero().get().unsigned_abs(),
                ));
                self.running = Some(running);
            }
            Err(e) => say(&Report::NotStarted(e.to_string())),
        }
    }

    fn spawn(&self, further: &[String]) -> io::Result<Running> {
        let log = || Ok::<_, io::Error>(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        let mut command = Command::new(&self.command[0]);
        if self.command[0] == OWN {
            command.arg0("herd");
        }
        command
            .args(&self.command[1..])
            .args(further)
            .process_group(0)
            .stderr(log()?);
        if self.mode == Mode::Feed {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null()).stdout(log()?);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().map(feeder);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || forward(stdout));
        }
        let pid = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("no process id"))?;
        Ok(Running {
            pid,
            ended: None,
            asked: Asked::Nothing,
            stdin,
        })
    }

    /// Reaps whoever ended: the command, or orphans that came to the subreaper.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, Some(signal)) => Ended::Signal(signal),
                (None, None) => continue,
            };
            let mode = self.mode;
            if let Some(running) = self.running.as_mut().filter(|r| r.pid == pid) {
                running.ended = Some(ended);
                // A service whose main process ended by itself is over; what is left of its group must not hold the
                // port when it is started again.
                if mode != Mode::Task && running.asked == Asked::Nothing {
                    running.signal(Signal::KILL);
                }
            }
        }
        self.drain();
    }

    fn is_draining(&self) -> bool {
        self.running.as_ref().is_some_and(|r| r.ended.is_some())
    }

    /// Reports the end once nothing is left of the group (a task's may stay).
    fn drain(&mut self) {
        let Some((running, ended)) = self.running.as_ref().and_then(|r| Some((r, r.ended?))) else {
            return;
        };
        let left = self.mode != Mode::Task || running.asked != Asked::Nothing;
        if !left || running.is_group_empty() {
            say(&Report::Exited(ended));
            self.running = None;
        }
    }

    /// Kills everything and waits until it is gone.
    async fn end(&mut self, child: &mut tokio::signal::unix::Signal) {
        if let Some(running) = &mut self.running {
            running.signal(Signal::KILL);
        }
        if self.mode == Mode::Task {
            return;
        }
        let all_gone = async {
            loop {
                // Children of children come to the subreaper as their parents die. Killing nobody but its own children
                // can't hit a stranger: their ids are taken until the guard itself reaps them.
                for pid in children() {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
                loop {
                    match rustix::process::wait(WaitOptions::NOHANG) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(Errno::INTR) => {}
                        Err(_) => return,
                    }
                }
                tokio::select! {
                    biased;
                    _ = child.recv() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        };
        let _ = tokio::time::timeout(LAST_WAIT, all_gone).await;
    }
}

impl Running {
    /// Signals the group. Its id can't have been taken by a stranger while it has a member or its leader is not reaped.
    fn signal(&mut self, signal: Signal) {
        self.asked = if signal == Signal::KILL {
            Asked::Kill
        } else {
            Asked::Term
        };
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    fn is_group_empty(&self) -> bool {
        rustix::process::test_kill_process_group(self.pid) == Err(Errno::SRCH)
    }
}

/// A thread that reads orders. The channel ends when herd is gone, or says what this version can't read.
fn read_orders() -> mpsc::UnboundedReceiver<Order> {
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Some(order) = line.ok().and_then(|l| l.parse().ok()) else {
                return;
            };
            if sender.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

/// Writes a report to herd. A herd that is gone is noticed on stdin.
fn say(report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// A thread that writes lines to the command, so that a full pipe never keeps the guard from its orders.
fn feeder(mut pipe: std::process::ChildStdin) -> mpsc::UnboundedSender<String> {
    let (sender, mut lines) = mpsc::unbounded_channel::<String>();
    std::thread::spawn(move || {
        while let Some(mut line) = lines.blocking_recv() {
            line.push('\n');
            if pipe.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    sender
}

/// Reports the command's lines, each cut at [`MAX_LINE`].
fn forward(stdout: impl Read) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdout.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.ends_with(b"\n") {
            line.pop();
        } else if stdout.skip_until(b'\n').is_err() {
            return;
        }
        say(&Report::Line(String::from_utf8_lossy(&line).into_owned()));
    }
}

/// This process's children.
fn children() -> Vec<Pid> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(dir) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    dir.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent(*pid) == Some(me))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parent_in(&stat)
}

/// The fourth field of `/proc/PID/stat`; the second, in parentheses, may hold anything.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (a) 7 (b)) S 345 12 12 0"), Some(345));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_whole() {
        let mut text = vec![b'x'; 3 * MAX_LINE as usize];
        text.extend_from_slice(b"\nnext\n");
        // `forward` prints; what is tested is that it comes to an end on such input.
        let mut reader = BufReader::new(&text[..]);
        let mut line = Vec::new();
        reader
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .unwrap();
        assert!(!line.ends_with(b"\n"));
        reader.skip_until(b'\n').unwrap();
        line.clear();
        reader.read_until(b'\n', &mut line).unwrap();
        assert_eq!(line, b"next\n");
    }
}
