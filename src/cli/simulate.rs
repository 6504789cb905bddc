//! The options of `herd simulate`, how they lie over a scenario, and which of them contradict each other.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args};

use super::again::line;
use super::{Talk, TalkArgs, named};
use crate::backoff::{Mix, Window};
use crate::error::Error;
use crate::report::Format;
use crate::scenario::{BackoffDraft, Count, Draft, Form, Peak, Rate, Scenario, Time, lay, word};
use crate::simulate::compare::{self, Shape};
use crate::simulate::storm::{Limits, Storm};

/// A simulation.
#[derive(Debug)]
pub struct Simulate {
    /// What was asked for, flags laid over the file.
    pub scenario: Scenario,
    /// The herd, its outage and its server.
    pub storm: Storm,
    /// What is asked of them.
    pub ask: Ask,
    /// The command that repeats it: with its seed, without its output directory.
    pub repeat: String,
    /// How to tell.
    pub talk: Talk,
}

/// What is asked of a storm.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// A verdict.
    Verdict,
    /// A table of these herds.
    Compare {
        /// Which.
        mixes: Vec<Mix>,
        /// In which form.
        shape: Shape,
    },
    /// The smallest window for a server that accepts so many connections a second.
    Advise {
        /// How many, above 0.
        rate: f64,
    },
}

#[derive(Args)]
pub(super) struct SimulateArgs {
    /// Scenario file: clients, seed, backoff, outages and checks are read; every option overrides its key
    scenario: Option<PathBuf>,
    /// How many clients [default: 1000]
    #[arg(short, long, value_name = "COUNT", value_parser = word::<Count>)]
    clients: Option<Count>,
    /// Replays every delay of the run that printed it [default: drawn]
    #[arg(long, value_name = "N", value_parser = word::<Count>)]
    seed: Option<Count>,
    /// When clients come back; see herd list presets [default: full-jitter]
    #[arg(long, value_name = "PRESET")]
    backoff: Option<String>,
    /// How many cuts [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    outages: Option<Count>,
    /// How long the server is down; a dial at the very instant of its return is served [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    down: Option<Time>,
    /// How long a client takes to notice the cut: a time, or bounds such as 0s..50ms [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Form<Window>>)]
    detect: Option<Form<Window>>,
    /// How long after the cut whoever is away is given up [default: long enough for the policy, and 10 minutes more]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    until: Option<Time>,
    /// Compare presets instead of judging one: all of them, or those named
    #[arg(long, value_name = "PRESET,...", num_args = 0..=1, value_delimiter = ',')]
    compare: Option<Vec<String>>,
    /// Say which first window suits a server that accepts --accept-rate
    #[arg(long, conflicts_with = "compare")]
    advise: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    checks: SpreadArgs,
    #[command(flatten)]
    output: FilesArgs,
    #[command(flatten)]
    talk: TalkArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Model server")]
struct ServerArgs {
    /// Connections that it accepts in a second, such as 500/s [default: any number]
    #[arg(long, value_name = "RATE", value_parser = word::<Rate>)]
    accept_rate: Option<Rate>,
    /// Connections that wait to be accepted; behind them SYNs are dropped and come again after 1, 3, 7 ... s [default: 4096]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    backlog: Option<Count>,
    /// What one HTTP request of a handshake costs it, one after the other [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    handshake: Option<Time>,
    /// It falls over, for --down again, when more clients than this are connected and wait [default: never]
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    collapse: Option<Count>,
}

#[derive(Args)]
#[command(next_help_heading = "What must hold")]
struct SpreadArgs {
    /// Last minus first reconnect of each wave, at least [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    min_spread: Option<Time>,
    /// Attempts in any such window, as a share of the wave's clients, at most [default: 75%/1s]
    #[arg(long, value_name = "SHARE/WINDOW", value_parser = word::<Peak>)]
    max_peak: Option<Peak>,
    /// How long a client may stay away [default: derived from the backoff]
    #[arg(long, value_name = "DURATION", value_parser = word::<Time>)]
    reconnect_limit: Option<Time>,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct FilesArgs {
    /// Directory of the results; one that isn't empty is refused [default: nothing is written]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Files to write with -o besides the history [default: json,csv,hdr]; with --compare the form of the table, text by
    /// default
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = named(&Written::ALL, |w| w.name()))]
    format: Option<Vec<Written>>,
}

/// What `--format` may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Text,
    Md,
    File(Format),
}

impl Written {
    const ALL: [Self; 5] = [
        Self::Text,
        Self::File(Format::Json),
        Self::File(Format::Csv),
        Self::File(Format::Hdr),
        Self::Md,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Md => "md",
            Self::File(format) => format.name(),
        }
    }

    fn file(self) -> Option<Format> {
        match self {
            Self::File(format) => Some(format),
            Self::Text | Self::Md => None,
        }
    }

    fn shape(self) -> Option<Shape> {
        match self {
            Self::Text => Some(Shape::Text),
            Self::Md => Some(Shape::Md),
            Self::File(Format::Json) => Some(Shape::Json),
            Self::File(Format::Csv) => Some(Shape::Csv),
            Self::File(Format::Hdr) => None,
        }
    }
}

fn usage(text: &str) -> Error {
    Error::Usage(text.to_owned())
}

impl SimulateArgs {
    pub(super) fn simulate(
        mut self,
        matches: &ArgMatches,
        fresh_seed: u64,
    ) -> Result<Simulate, Error> {
        let draft = match &self.scenario {
            Some(file) => Draft::read(file)?,
            None => Draft::default(),
        };
        let mut draft = draft.simulated();
        let talk = self.talk.talk();
        self.fitting()?;
        self.written(&mut draft)?;
        self.lay_over(&mut draft);
        let scenario = draft.resolve(fresh_seed)?;
        let ask = self.ask(&draft, &scenario, talk)?;
        let typed = matches.subcommand_matches("simulate").unwrap_or(matches);
        let without = ["seed", "output"];
        let said = line("simulate", "simulate", typed, &scenario, &without);
        Ok(Simulate {
            storm: self.storm(&scenario)?,
            repeat: format!("{said} --seed {}", scenario.seed),
            ask,
            scenario,
            talk,
        })
    }

    fn lay_over(&mut self, draft: &mut Draft) {
        lay(&mut draft.clients, "--clients", self.clients);
        lay(&mut draft.seed, "--seed", self.seed);
        if let Some(preset) = self.backoff.take() {
            // A preset is a whole policy: numbers that the file gives belong to the file's.
            draft.client.backoff = BackoffDraft::default();
            lay(&mut draft.client.backoff.preset, "--backoff", Some(preset));
        }
        let outage = &mut draft.outage;
        outage.lay("--outages", self.outages, |o| &mut o.outages);
        outage.lay("--down", self.down, |o| &mut o.down);
        let checks = &mut draft.checks;
        lay(
            &mut checks.min_spread,
            "--min-spread",
            self.checks.min_spread,
        );
        lay(&mut checks.max_peak, "--max-peak", self.checks.max_peak);
        let limit = self.checks.reconnect_limit;
        lay(&mut checks.reconnect_limit, "--reconnect-limit", limit);
    }

    /// Refuses what would have no effect.
    fn fitting(&self) -> Result<(), Error> {
        let server = &self.server;
        let line_forms = server.accept_rate.is_some() || server.handshake.is_some();
        if server.backlog.is_some() && !line_forms {
            return Err(usage(
                "--backlog: nobody waits at a server that accepts any number; give it an --accept-rate",
            ));
        }
        if server.collapse.is_some() && !line_forms {
            return Err(usage(
                "--collapse: no handshake ever waits; say with --handshake what one costs, or give an --accept-rate",
            ));
        }
        let verdict = self.compare.is_none() && !self.advise;
        let judged = self.outages.is_some()
            || self.checks.min_spread.is_some()
            || self.checks.max_peak.is_some()
            || self.checks.reconnect_limit.is_some();
        if judged && !verdict {
            return Err(usage(
                "--outages and limits are for a verdict; leave them out with --compare and --advise",
            ));
        }
        if self.output.output.is_some() && !verdict {
            return Err(usage(
                "--output: --compare and --advise write to stdout; leave it out",
            ));
        }
        if self.advise {
            self.advisable()?;
        }
        Ok(())
    }

    fn advisable(&self) -> Result<(), Error> {
        let server = &self.server;
        if server.accept_rate.is_none() {
            return Err(usage(
                "--advise: say with --accept-rate what the server accepts, such as 500/s",
            ));
        }
        if self.backoff.is_some() {
            return Err(usage(
                "--backoff: the policy is what --advise looks for; leave it out",
            ));
        }
        if server.backlog.is_some() || server.handshake.is_some() || server.collapse.is_some() {
            return Err(usage(
                "--advise keeps the herd below --accept-rate, so that nothing waits; leave --backlog, --handshake and \
                 --collapse out",
            ));
        }
        if self.output.format.is_some() {
            return Err(usage(
                "--format: --advise knows text and --json; leave it out",
            ));
        }
        Ok(())
    }

    /// The files of a verdict.
    fn written(&mut self, draft: &mut Draft) -> Result<(), Error> {
        if self.compare.is_some() || self.advise {
            return Ok(());
        }
        if let Some(format) = &self.output.format {
            if self.output.output.is_none() {
                return Err(usage(
                    "--format: nothing is written without a directory; add -o DIR",
                ));
            }
            let files: Option<Vec<_>> = format.iter().map(|written| written.file()).collect();
            let files = files.ok_or_else(|| {
                usage("--format: text and md are forms of a table; add --compare, or name json, csv or hdr")
            })?;
            lay(&mut draft.output.formats, "--format", Some(files));
        }
        // A directory that the file names is for real runs.
        draft.output.dir = None;
        lay(&mut draft.output.dir, "--output", self.output.output.take());
        Ok(())
    }

    fn ask(&self, draft: &Draft, scenario: &Scenario, talk: Talk) -> Result<Ask, Error> {
        if let (true, Some(Rate(rate))) = (self.advise, self.server.accept_rate) {
            return Ok(Ask::Advise { rate });
        }
        let Some(names) = &self.compare else {
            return Ok(Ask::Verdict);
        };
        let named = names.iter().map(|name| draft.named(name, "--compare"));
        let mut mixes: Vec<Mix> = named.collect::<Result<_, _>>()?;
        if mixes.is_empty() {
            mixes = compare::all();
        }
        let asked = draft.client.backoff != BackoffDraft::default();
        if asked && !mixes.contains(&scenario.policy.mix) {
            mixes.insert(0, own(&scenario.policy.mix, &mixes));
        }
        let json = talk.stdout == super::Stdout::Json;
        let shape = match (self.output.format.as_deref(), json) {
            (None, false) => Shape::Text,
            (None, true) => Shape::Json,
            (Some([one]), false) => one
                .shape()
                .ok_or_else(|| usage("--format: a table has no hdr; use text, json, csv or md"))?,
            (Some(_), false) => {
                return Err(usage("--format: one table has one form; name one"));
            }
            (Some(_), true) => {
                return Err(usage("--json is a --format of its own; leave one out"));
            }
        };
        Ok(Ask::Compare { mixes, shape })
    }

    fn storm(&self, scenario: &Scenario) -> Result<Storm, Error> {
        let server = &self.server;
        let usual = Limits::NONE;
        let at_least_one = |flag: &str, given: Option<Count>| match given {
            None => Ok(None),
            Some(Count(n)) => match u32::try_from(n) {
                Ok(n) if n > 0 => Ok(Some(n)),
                _ => Err(Error::Usage(format!(
                    "{flag}: {n} is out of range; use 1 to {}",
                    u32::MAX
                ))),
            },
        };
        let limits = Limits {
            accept_rate: server.accept_rate.map(|Rate(rate)| rate),
            backlog: at_least_one("--backlog", server.backlog)?.unwrap_or(usual.backlog),
            handshake: server.handshake.map_or(usual.handshake, |Time(time)| time),
            collapse: at_least_one("--collapse", server.collapse)?,
        };
        if limits.handshake.is_zero() && limits.collapse.is_some_and(|most| most >= limits.backlog)
        {
            return Err(Error::Usage(format!(
                "--collapse: a backlog of {} never lets more wait; use less, or say with --handshake what one costs",
                limits.backlog
            )));
        }
        let zero = Window::exactly(Duration::ZERO);
        Ok(Storm {
            clients: scenario.clients,
            seed: scenario.seed,
            mix: scenario.policy.mix.clone(),
            down: scenario.outage(1).down,
            detect: self.detect.map_or(zero, |Form(window)| window),
            outages: scenario.outage(1).count,
            steady: scenario.outage(1).steady,
            timeout: scenario.connect.timeout,
            limits,
            until: self.until.map(|Time(until)| until),
        })
    }
}

/// A herd of the scenario's own, told apart from a preset whose numbers it changes.
fn own(mix: &Mix, others: &[Mix]) -> Mix {
    match mix.parts() {
        [one] if others.iter().any(|other| other.name() == one.name) => {
            Mix::one(&format!("{} (scenario)", one.name), one.backoff.clone())
        }
        _ => mix.clone(),
    }
}
