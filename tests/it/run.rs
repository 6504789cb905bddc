//! Whole runs of the binary, as a user would start them: real sockets, real child processes, scaled-down windows.
//!
//! Every process carries a mark of its stage in its environment, so that a test can say who is left behind. A machine
//! that is too busy makes herd say "unknown, herd was late": where a pass is expected such a run is repeated.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what fails here fails the test"
)]

mod bad_input;
mod cuts;
mod dialects;
mod ends;
mod falls;
mod inside_tls;
mod nothing;
mod others;
mod passing;
mod peers;
mod policies;
mod refresh;
mod rollouts;
mod scenarios;
mod secrets;
mod shards;
mod streams;
mod texts;
mod ways;

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use herd::clock::Clock;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// The variable that marks a stage's processes.
const MARK: &str = "HERD_TEST_STAGE";
/// No run of these tests may take longer.
const LIMIT: Duration = Duration::from_secs(100);

/// A small run: honest full jitter over two seconds, about eight seconds in all.
const QUICK: &str = r#"
clients = 24
seed = 11
[connect]
ramp = "300ms"
[client.backoff]
preset = "full-jitter"
base = "2s"
cap = "8s"
[outage]
down = "300ms"
steady = "300ms"
quiet-period = "500ms"
command-limit = "1s"
[publish]
rate = "40/s"
[checks]
min-spread = "1s"
max-peak = "80%/500ms"
settle = "4s"
"#;

/// The same of clients that come back at once: about three seconds, and a fail.
const STAMPEDE: &str = r#"
clients = 24
seed = 11
[connect]
ramp = "300ms"
[client.backoff]
preset = "immediate"
[outage]
down = "300ms"
steady = "300ms"
[publish]
rate = "40/s"
[checks]
min-spread = "1s"
settle = "4s"
"#;

/// Looks again and again until there is something, half a minute at most.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} never happened");
}

/// Carries all out at the same time: a run mostly waits.
fn together<T: Send>(jobs: impl IntoIterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    std::thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        running.into_iter().map(|job| job.join().unwrap()).collect()
    })
}

/// A directory for one run, and the mark of its processes.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file; returns its name.
    fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.text(name)
    }

    /// A command with this stage's mark.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env(MARK, self.dir.path())
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    fn herd(&self, args: &[&str]) -> Running {
        Running::start(self.command(env!("CARGO_BIN_EXE_herd")).args(args))
    }

    /// `herd run` of this scenario and these options into the directory `out`.
    fn run(&self, scenario: &str, args: &[&str]) -> Running {
        Running::start(&mut self.run_command(scenario, args))
    }

    fn run_command(&self, scenario: &str, args: &[&str]) -> Command {
        let file = self.file("scenario.toml", scenario);
        let mut command = self.command(env!("CARGO_BIN_EXE_herd"));
        command
            .args(["run", &file, "-o", &self.text("out")])
            .args(args);
        command
    }

    /// Runs until the machine was quick enough for herd to be sure of its own timing, a few times at most.
    fn run_unless_busy(scenario: &str, args: &[&str]) -> (Self, Ended) {
        unless_busy(|| {
            let stage = Self::new();
            let ended = stage.run(scenario, args).end();
            (stage, ended)
        })
    }

    fn summary(&self) -> Value {
        let text = std::fs::read(self.path("out/summary.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// `herd check` of the run's history.
    fn check(&self, args: &[&str]) -> Ended {
        let history = self.text("out/history.herd");
        self.herd(&[&["check", &history], args].concat()).end()
    }

    /// Command lines of processes that carry this stage's mark and aren't zombies.
    fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.dir.path().display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|s| s.parse().ok()) else {
                continue;
            };
            // A process may end while it is looked at; a zombie's environment is empty.
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            if read("environ")
                .split(|b| *b == 0)
                .any(|v| v == mark.as_bytes())
            {
                let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.push((pid, line));
            }
        }
        found
    }

    /// Nobody is left behind, and the embedded server's socket neither.
    fn assert_empty(&self) {
        for _ in 0..300 {
            if self.processes().is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("left behind: {:#?}", self.processes());
    }
}

/// Repeats a run that herd couldn't judge because it was late itself.
fn unless_busy(run: impl Fn() -> (Stage, Ended)) -> (Stage, Ended) {
    for _ in 0..3 {
        let (stage, ended) = run();
        if ended.code != Some(3) || !busy(&stage.summary()) {
            return (stage, ended);
        }
    }
    run()
}

/// Whether `generator` is what isn't known.
fn busy(summary: &Value) -> bool {
    outcome(summary, "generator") == "unknown"
}

/// The worst outcome of a check over all outages.
fn outcome(summary: &Value, check: &str) -> String {
    let findings = summary["checks"].as_array().unwrap();
    let of = |word: &str| {
        findings
            .iter()
            .any(|f| f["name"] == check && f["outcome"] == word)
    };
    let found = ["fail", "unknown", "pass"].into_iter().find(|w| of(w));
    found.unwrap_or("absent").into()
}

/// A started process whose output is being read.
struct Running {
    child: Child,
    clock: Clock,
    stdout: Option<Reading>,
    stderr: Reading,
}

/// What was read so far, and who reads.
struct Reading {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Reading {
    fn start(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..n]);
            }
        });
        Self { text, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn all(self) -> String {
        self.reader.join().unwrap();
        self.text.lock().map_or_else(
            |_| String::new(),
            |text| String::from_utf8_lossy(&text).into_owned(),
        )
    }
}

/// A process that has ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Ended {
    /// Fails, with everything that was said, unless the process ended with this code.
    #[track_caller]
    fn with(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Fails unless stderr or stdout holds these words, whatever the line breaks.
    #[track_caller]
    fn says(&self, words: &[&str]) -> &Self {
        let all = format!("{}\n{}", self.stderr, self.stdout);
        let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(flat.contains(word), "{word:?} isn't in\n{all}");
        }
        self
    }

    #[track_caller]
    fn at_once(&self) -> &Self {
        assert!(self.took < Duration::from_secs(12), "{self:#?}");
        self
    }
}

impl Running {
    fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::piped())
    }

    /// A process group of its own, as a shell gives to what is typed.
    fn start_with(command: &mut Command, stdout: Stdio) -> Self {
        let mut child = command
            .process_group(0)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdout: child.stdout.take().map(Reading::start),
            stderr: Reading::start(child.stderr.take().unwrap()),
            child,
            clock: Clock::start(),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    /// Waits until stderr holds these words.
    fn until_it_says(&mut self, words: &str) {
        for _ in 0..3_000 {
            if self.stderr.so_far().contains(words) {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{status} before {words:?}: {}", self.stderr.so_far());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{words:?} was never said: {}", self.stderr.so_far());
    }

    /// Waits until it has ended; one that doesn't is killed.
    fn end(mut self) -> Ended {
        let mut status = None;
        while status.is_none() {
            if self.clock.now().duration() > LIMIT {
                self.child.kill().unwrap();
                panic!("not over after {LIMIT:?}: {}", self.stderr.so_far());
            }
            std::thread::sleep(Duration::from_millis(5));
            status = self.child.try_wait().unwrap();
        }
        Ended {
            code: status.and_then(|status| status.code()),
            took: self.clock.now().duration(),
            stdout: self.stdout.map(Reading::all).unwrap_or_default(),
            stderr: self.stderr.all(),
        }
    }
}

/// The rows of a CSV file, by column.
fn rows(dir: &Path, name: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(dir.join(name)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}
