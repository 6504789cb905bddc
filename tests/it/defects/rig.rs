//! Runs the binary as a user would, with everything scaled down, and reads what it leaves behind: the summary on stdout,
//! the CSV files and the defect's ledger. It judges nothing.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::Duration;

use herd::check::{Check, DeliveryFacts, Finding, OutageFacts, Outcome};
use serde::Deserialize;
use serde_json::Value;

/// A run takes six to fourteen seconds; one that takes so long hangs.
const LIMIT: Duration = Duration::from_secs(90);
/// How many runs share the machine. Each is two processes that mostly wait; more of them would only make herd late.
const AT_ONCE: usize = 8;

/// Seats for runs, shared by all tests.
static FREE: Mutex<usize> = Mutex::new(AT_ONCE);
static FREED: Condvar = Condvar::new();

/// What the server is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    After,
    Sse,
    Resume,
}

impl Dialect {
    pub(super) const ALL: [Self; 3] = [Self::After, Self::Sse, Self::Resume];

    /// The name of its profile.
    fn profile(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Sse => "sse",
            Self::Resume => "resume",
        }
    }
}

/// A scenario, a fifth of the default's size in time. The last honest client is back 2 s after the server: no dial fails
/// once that is up, and the cap bounds what was drawn before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) dialect: Dialect,
    pub(super) clients: u32,
    pub(super) seed: u64,
    pub(super) policy: &'static str,
    /// Milliseconds.
    pub(super) down: u32,
    /// Publications a second.
    pub(super) rate: u32,
    /// Milliseconds, so low that honest clients always reach it.
    pub(super) min_spread: u32,
    /// Seconds. It costs them where somebody never comes back.
    pub(super) reconnect_limit: u32,
}

impl Plan {
    pub(super) const FULL_JITTER: &str = "preset = 'full-jitter'\nbase = '1s'\ncap = '2s'";

    pub(super) fn new(clients: u32, seed: u64) -> Self {
        Self {
            dialect: Dialect::After,
            clients,
            seed,
            policy: Self::FULL_JITTER,
            down: 500,
            rate: 20,
            min_spread: 800,
            reconnect_limit: 4,
        }
    }

    fn toml(&self) -> String {
        let Self {
            dialect,
            clients,
            seed,
            policy,
            down,
            rate,
            min_spread,
            reconnect_limit,
        } = self;
        let profile = dialect.profile();
        format!(
            "clients = {clients}\nseed = {seed}\n\
             [connect]\nramp = '200ms'\nprofile = '{profile}'\n\
             [client.backoff]\n{policy}\n\
             [outage]\ndown = '{down}ms'\nsteady = '700ms'\n\
             [publish]\nrate = '{rate}/s'\n\
             [checks]\nmin-spread = '{min_spread}ms'\nmax-peak = '75%/200ms'\nsettle = '2500ms'\n\
             reconnect-limit = '{reconnect_limit}s'\n\
             [output]\nformats = ['json', 'csv']\n"
        )
    }
}

/// What is read of `summary.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    pub(super) exit: i32,
    pub(super) outages: Vec<OutageFacts>,
    pub(super) delivery: DeliveryFacts,
    pub(super) checks: Vec<Finding>,
}

impl Told {
    /// The exit code that the answers come to.
    fn code(&self) -> i32 {
        match self.checks.iter().map(|f| f.outcome).max() {
            Some(Outcome::Pass) => 0,
            Some(Outcome::Unknown) | None => 3,
            Some(Outcome::Fail) => 1,
        }
    }

    /// Whether herd itself kept up: where it didn't, a timing check may be unknown for herd's sake (rule 7).
    pub(super) fn in_time(&self) -> bool {
        let mut generator = self.checks.iter().filter(|f| f.check == Check::Generator);
        generator.all(|f| f.outcome == Outcome::Pass)
    }
}

/// A line of the ledger: what the server did wrong, and to which (client, event) pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Act {
    pub(super) defect: String,
    pub(super) client: Option<u64>,
    pub(super) id: Option<String>,
}

/// A run that ended, and its files.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) told: Told,
    pub(super) acts: Vec<Act>,
    dir: tempfile::TempDir,
}

impl Ran {
    /// Lines that say something different: a pair that is withheld from every resume is lost once, and of a client's
    /// sockets that are kept only the last is one that it still uses.
    pub(super) fn distinct(&self) -> u64 {
        self.acts.iter().collect::<BTreeSet<_>>().len() as u64
    }

    /// All lines.
    pub(super) fn lines(&self) -> u64 {
        self.acts.len() as u64
    }

    /// How many rows of a CSV file have this in that column.
    pub(super) fn rows(&self, file: &str, column: &str, value: &str) -> u64 {
        let mut reader = csv::Reader::from_path(self.dir.path().join("out").join(file)).unwrap();
        let headers = reader.headers().unwrap();
        let place = headers.iter().position(|name| name == column).unwrap();
        let rows = reader.records().map(|row| row.unwrap());
        rows.filter(|row| &row[place] == value).count() as u64
    }
}

/// Runs it, when there is a seat.
pub(super) fn run(plan: &Plan, defect: Option<&str>) -> Ran {
    let _seat = Seat::take();
    let dir = tempfile::tempdir().unwrap();
    let (scenario, out) = (dir.path().join("scaled.toml"), dir.path().join("out"));
    std::fs::write(&scenario, plan.toml()).unwrap();
    let mut herd = Command::new(env!("CARGO_BIN_EXE_herd"));
    herd.arg("run").arg(&scenario).args(["--json", "-q", "-o"]);
    herd.arg(&out)
        .args(defect.iter().flat_map(|name| ["--defect", name]));
    let (code, stdout, stderr) = output(herd);
    let what = || format!("{plan:?} {defect:?}: exit {code:?}, stderr {stderr:?}");
    let told: Told = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{}: {e}", what()));
    assert_eq!(
        (code, told.exit),
        (Some(told.code()), told.code()),
        "{}",
        what()
    );
    assert_eq!(stderr, "", "{}", what());
    let acts = acts(&out.join("ledger.jsonl"));
    Ran { told, acts, dir }
}

/// The ledger is made where a defect is planted.
fn acts(ledger: &Path) -> Vec<Act> {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    let lines = text.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Exit code, stdout and stderr of a command that gets [`LIMIT`]. It has ended when its stdout has.
fn output(mut command: Command) -> (Option<i32>, String, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (said, ended) = mpsc::channel();
    let all = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        said.send(text)
    });
    let Ok(stdout) = ended.recv_timeout(LIMIT) else {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!(
            "{command:?} hung for {LIMIT:?} and said {}",
            all.join().unwrap()
        );
    };
    let status = child.wait().unwrap();
    (status.code(), stdout, all.join().unwrap())
}

/// What `herd list defects --json` says.
pub(super) fn declared() -> Vec<Value> {
    let mut herd = Command::new(env!("CARGO_BIN_EXE_herd"));
    herd.args(["list", "defects", "--json"]);
    let (code, stdout, stderr) = output(herd);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&stdout).unwrap()
}

struct Seat;

impl Seat {
    fn take() -> Self {
        let free = FREE.lock().unwrap();
        *FREED.wait_while(free, |free| *free == 0).unwrap() -= 1;
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *FREE.lock().unwrap() += 1;
        FREED.notify_one();
    }
}
