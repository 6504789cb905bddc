//! herd's end of a guard: starts it, gives it orders, hears its reports.
//!
//! Dropping a [`Guarded`] is enough to have everything behind it killed; [`Guarded::end`] waits until it is. It knows
//! nothing of what the command is for.

use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::guard::{self, Mode, Order, Report};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::Elapsed;

/// How long a guard may take to kill everything.
const END: Duration = Duration::from_secs(12);
/// How much of a log's end is quoted.
const TAIL_BYTES: u64 = 4096;
/// How many of its last lines.
const TAIL_LINES: usize = 6;

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A command line, run by `sh -c`.
    Shell(String),
    /// herd itself with these arguments.
    Own(Vec<String>),
}

/// How herd starts guards: its own binary, and where commands' output goes.
#[derive(Debug, Clone)]
pub struct Place {
    /// herd's own binary; [`Place::own`] in a run, a path in tests.
    pub herd: PathBuf,
    /// The file that the command's output is appended to.
    pub log: PathBuf,
}

impl Place {
    /// This very binary, also where its file was replaced or deleted since.
    #[must_use]
    pub fn own(log: PathBuf) -> Self {
        Self {
            herd: guard::OWN.into(),
            log,
        }
    }

    /// The last lines of the log, made safe.
    #[must_use]
    pub fn last_words(&self) -> String {
        last_lines(&self.log).join("\n")
    }

    /// The last lines of the log, made safe, as the end of a sentence; a hint where it is empty.
    #[must_use]
    pub fn tail(&self) -> String {
        let lines = last_lines(&self.log);
        if lines.is_empty() {
            "it wrote nothing".into()
        } else {
            format!(
                "its last output, in {}:\n  {}",
                self.log.display(),
                lines.join("\n  ")
            )
        }
    }
}

/// A guard and the command behind it.
#[derive(Debug)]
pub struct Guarded {
    orders: mpsc::UnboundedSender<Order>,
    writer: JoinHandle<()>,
    child: Child,
}

impl Guarded {
    /// Starts a guard; the command itself is started by [`Order::Start`]. Reports come stamped with the instant at which
    /// herd heard them; their end means that the guard is gone, and whatever is left of the command's group was killed.
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    ///
    /// File where the log can't be written; Broken where herd can't run itself.
    pub fn start(
        mode: Mode,
        program: &Program,
        env: &[(String, String)],
        place: &Place,
        clock: Clock,
    ) -> Result<(Self, mpsc::UnboundedReceiver<(Elapsed, Report)>), Error> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&place.log)
            .map_err(|source| Error::File {
                action: "write",
                path: place.log.clone(),
                source,
            })?;
        let mut child = Command::new(&place.herd)
            .arg0("herd")
            .args(["guard", mode.name(), "--"])
            .args(arguments(program))
            .envs(env.iter().map(|(k, v)| (k, v)))
            // Its own group: Ctrl-C in the terminal is herd's business, which ends the guard by its pipe.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|e| Error::Broken(format!("can't start herd's own guard process: {e}")))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Broken(
                "herd's own guard process has no pipes; please report this".into(),
            ));
        };
        let (orders, to_write) = mpsc::unbounded_channel();
        let (heard, reports) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(to_write, stdin));
        tokio::spawn(read(stdout, heard, clock));
        Ok((
            Self {
                orders,
                writer,
                child,
            },
            reports,
        ))
    }

    /// Gives an order. A guard that is gone is noticed where its reports end.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// A handle that only gives orders.
    #[must_use]
    pub fn orders(&self) -> mpsc::UnboundedSender<Order> {
        self.orders.clone()
    }

    /// Has everything killed and waits until it is, 12 s at most.
    pub async fn end(mut self) {
        self.writer.abort();
        let _ = tokio::time::timeout(END, self.child.wait()).await;
    }
}

impl Drop for Guarded {
    /// Ends the writer, and with it the pipe that keeps the guard's command alive.
    fn drop(&mut self) {
        self.writer.abort();
    }
}

fn arguments(program: &Program) -> Vec<OsString> {
    match program {
        Program::Shell(line) => vec!["sh".into(), "-c".into(), line.into()],
        // The guard is herd too, so this is the same file.
        Program::Own(args) => std::iter::once(guard::OWN.into())
            .chain(args.iter().map(Into::into))
            .collect(),
    }
}

async fn write(mut orders: mpsc::UnboundedReceiver<Order>, mut stdin: ChildStdin) {
    while let Some(order) = orders.recv().await {
        let line = format!("{order}\n");
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, heard: mpsc::UnboundedSender<(Elapsed, Report)>, clock: Clock) {
    let mut lines = BufReader::new(stdout).lines();
    let mut group = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(report) = serde_json::from_str(&line) else {
            continue;
        };
        match &report {
            Report::Started(pid) => group = i32::try_from(*pid).ok().and_then(Pid::from_raw),
            Report::Exited(_) => group = None,
            Report::NotStarted(_) | Report::Line(_) => {}
        }
        // Read on though nobody listens any more: a full pipe would keep the guard from its work.
        let _ = heard.send((clock.now(), report));
    }
    // The guard was killed: what it guarded must not outlive it.
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// The last lines of a file, cut and made safe.
fn last_lines(path: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..]
        .iter()
        .map(|line| safe(line))
        .collect()
}

/// At most 300 characters, control characters escaped.
pub(crate) fn safe(text: &str) -> String {
    text.chars()
        .take(300)
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_short_and_safe() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::own(dir.path().join("log"));
        assert_eq!(place.tail(), "it wrote nothing");
        let mut text = "x".repeat(10_000);
        for i in 0..20 {
            text.push_str(&format!("\n\x1b[31mline {i}\r\n\n"));
        }
        std::fs::write(&place.log, text).unwrap();
        let lines = last_lines(&place.log);
        assert_eq!(lines.len(), TAIL_LINES);
        assert_eq!(lines[5], "\\u{1b}[31mline 19");
    }
}
