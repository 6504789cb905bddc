//! The command line: what was typed, as plain structs for `main` to carry out.
//!
//! This file and its leaves are the only ones that know clap, and they do nothing: no run, no print, no exit. A leaf holds
//! one command: `cli/run.rs` the options of a run and how they lie over a scenario, `cli/simulate.rs` those of a
//! simulation, `cli/list.rs` the lists,
//! `cli/profile.rs` the trial of a profile.

mod access;
mod again;
mod help;
mod list;
mod probe;
mod profile;
mod run;
mod simulate;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::{Error, Exit};
use crate::probe::Probe;
use crate::report::Format;
use crate::scenario::{Count, Scenario, word};
use crate::server::defect::Planted;
use crate::server::slow::SlowStart;
use crate::server::{self, HOLD};
use help::{exits, manual};

pub use simulate::{Ask, Simulate};

/// What herd shall do.
#[derive(Debug)]
pub enum Command {
    /// Run and judge.
    Run(Box<Run>),
    /// Look at a server with one client.
    Probe(Box<Probe>),
    /// Follow the clients in virtual time.
    Simulate(Box<Simulate>),
    /// Judge recorded histories again.
    Check {
        /// The shards of one run.
        histories: Vec<PathBuf>,
        /// How to tell.
        talk: Talk,
    },
    /// Render recorded histories again.
    Report {
        /// The shards of one run.
        histories: Vec<PathBuf>,
        /// What to render.
        rendering: Rendering,
    },
    /// The reference server alone.
    Serve(Box<server::Config>),
    /// Write a commented scenario file.
    Init {
        /// Where; none = on stdout.
        file: Option<PathBuf>,
    },
    /// Text for stdout, and how the process then ends.
    Answer {
        /// The text.
        text: String,
        /// The end.
        exit: Exit,
    },
    /// Text for stdout: help, lists, completions, the manual page.
    Print(String),
    /// herd's own: a guard for a supervised server, with what follows on the command line.
    Guard(Vec<OsString>),
    /// herd's own: holds the reference server's half-open sockets.
    Hold,
}

/// One run.
#[derive(Debug)]
pub struct Run {
    /// What was asked for, flags laid over the file.
    pub scenario: Scenario,
    /// The command that repeats it: with its seed, without its output directory, secrets masked.
    pub repeat: String,
    /// How to tell.
    pub talk: Talk,
}

/// How to tell what came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Talk {
    /// What goes to stdout.
    pub stdout: Stdout,
    /// What goes to stderr.
    pub stderr: Stderr,
    /// Whether colours may be used at all.
    pub colour: Colour,
}

/// What goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// The report for people.
    Report,
    /// The summary as JSON and nothing else; the report goes to stderr.
    Json,
}

/// What goes to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// Progress and remarks.
    Progress,
    /// Errors only.
    Quiet,
}

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Never.
    Never,
}

/// What `herd report` renders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendering {
    /// The summary as JSON, on stdout.
    Summary,
    /// Files into a directory.
    Files {
        /// Which.
        formats: Vec<Format>,
        /// Where; created where it doesn't exist.
        dir: PathBuf,
    },
}

/// Restarts a realtime server under simulated clients, and judges: did they come back spread out, and did every client get
/// every event exactly once?
#[derive(Parser)]
#[command(name = "herd", version, max_term_width = 110, after_help = exits())]
struct Cli {
    #[command(subcommand)]
    command: Typed,
}

#[derive(Subcommand)]
enum Typed {
    /// Run and judge
    ///
    /// Run and judge. Without a scenario and without a target, herd tests its own reference server, as a child process.
    #[command(after_help = exits())]
    Run(Box<run::RunArgs>),
    /// Look at a server with one client and say which profile fits, what is missing, and what to run
    ///
    /// One client connects, receives one event, leaves, misses one and comes back, with each profile that could fit. Nothing
    /// is restarted. Exit code 0: a profile fits and resume works; 3: not so; 4: no session at all.
    Probe(Box<probe::ProbeArgs>),
    /// The same clients in virtual time, against a model server: a verdict in seconds, for a million clients
    ///
    /// The policies draw the delays that herd run draws with the same seed. No sockets, no latency, and nobody publishes, so
    /// only the reconnects are judged.
    #[command(after_help = exits())]
    Simulate(Box<simulate::SimulateArgs>),
    /// Judge recorded histories again; several are merged as shards of one run
    #[command(after_help = exits())]
    Check {
        /// Files that runs wrote: history.herd
        #[arg(required = true, value_name = "HISTORY")]
        histories: Vec<PathBuf>,
        #[command(flatten)]
        talk: TalkArgs,
    },
    /// Render recorded histories again
    Report {
        /// Files that runs wrote: history.herd
        #[arg(required = true, value_name = "HISTORY")]
        histories: Vec<PathBuf>,
        /// What to write; json alone may go to stdout
        #[arg(long, required = true, value_name = "LIST", value_delimiter = ',', value_parser = formats())]
        format: Vec<Format>,
        /// Directory to write into
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// The reference server alone
    ///
    /// It keeps a log of what is published and sends it to whoever subscribes, from where they left off. GET /v1/live is a
    /// WebSocket with the cursor in the URL (?after=ID), GET /v1/resume one with the cursor in the client's first frame,
    /// GET /v1/events an event stream with the cursor in Last-Event-ID. POST /v1/publish takes an event, GET /v1/state
    /// says where the log stands, GET /healthz that the server is ready.
    Serve(ServeArgs),
    /// Show what can be named
    List {
        /// Which list
        what: list::List,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Try a profile on recorded frames
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Write a commented scenario file with every key and its default
    Init {
        /// Where to; a file that exists is refused. Without it, to stdout
        file: Option<PathBuf>,
    },
    /// Write completions for a shell to stdout
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page to stdout
    Man,
}

#[derive(Args)]
struct TalkArgs {
    /// The summary as JSON on stdout and nothing else there; the report goes to stderr
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// No progress and no remarks
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// No colours (so does NO_COLOR in the environment)
    #[arg(long, help_heading = "Output")]
    no_color: bool,
}

impl TalkArgs {
    fn talk(&self) -> Talk {
        Talk {
            stdout: if self.json {
                Stdout::Json
            } else {
                Stdout::Report
            },
            stderr: if self.quiet {
                Stderr::Quiet
            } else {
                Stderr::Progress
            },
            colour: if self.no_color {
                Colour::Never
            } else {
                Colour::Auto
            },
        }
    }
}

#[derive(Args)]
struct ServeArgs {
    /// Where to listen; port 0 lets the system choose, and a JSON line on stdout says which
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Directory of the event log; without it the log is gone with the process
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Other servers keep their log in that directory too: each has every event, under the same id
    #[arg(long, requires = "data")]
    shared: bool,
    /// How many events are kept for replay
    #[arg(long, value_name = "COUNT", value_parser = word::<Count>)]
    keep: Option<Count>,
    /// Take connections at once but serve nobody for a time: "hang 2s", or "503 2s" with a Retry-After
    #[arg(long, value_name = "HOW TIME")]
    slow_start: Option<SlowStart>,
    /// Plant a bug (may be repeated); see herd list defects
    #[arg(long, value_name = "NAME[=ARG]")]
    defect: Vec<Planted>,
    /// File to which planted bugs write a line before they act
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Decides where planted bugs act
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl ServeArgs {
    fn config(self) -> server::Config {
        let usual = server::Config::default();
        server::Config {
            listen: self.listen,
            data: self.data,
            sharing: if self.shared {
                server::Sharing::Shared
            } else {
                server::Sharing::Alone
            },
            slow_start: self.slow_start,
            keep: self.keep.map_or(usual.keep, |Count(keep)| keep),
            defects: self.defect,
            ledger: self.ledger,
            seed: self.seed,
            limits: usual.limits,
            executable: std::env::current_exe().ok(),
        }
    }
}

fn formats() -> impl TypedValueParser<Value = Format> {
    named(&Format::ALL, |format| format.name())
}

/// Takes the name of one of `all`; clap lists them and suggests the nearest.
fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |value| name(*value))).try_map(move |word| {
        let found = all.iter().find(|value| name(**value) == word);
        found.copied().ok_or("no such name")
    })
}

/// Reads a command line, the program's name first. `fresh_seed` is the seed of a run that names none.
///
/// # Errors
///
/// [`Error::Usage`] and [`Error::Scenario`] where it makes no sense.
pub fn parse(args: impl IntoIterator<Item = OsString>, fresh_seed: u64) -> Result<Command, Error> {
    let args: Vec<OsString> = args.into_iter().collect();
    match args.get(1) {
        Some(word) if word == "guard" => return Ok(Command::Guard(args[2..].to_vec())),
        Some(word) if word == HOLD => return Ok(Command::Hold),
        _ => {}
    }
    let typed = Cli::command()
        .try_get_matches_from(args)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    match typed {
        Ok((cli, matches)) => decide(cli.command, &matches, fresh_seed),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            Ok(Command::Print(error.render().to_string()))
        }
        Err(error) => Err(Error::Usage(refusal(&error))),
    }
}

/// clap's words, without its "error: ".
fn refusal(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.trim_end();
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("no command is given; the commands are\n\n{text}")
        }
        _ => text.strip_prefix("error: ").unwrap_or(text).to_owned(),
    }
}

fn decide(typed: Typed, matches: &clap::ArgMatches, fresh_seed: u64) -> Result<Command, Error> {
    Ok(match typed {
        Typed::Run(args) => Command::Run(Box::new(args.run(matches, fresh_seed)?)),
        Typed::Probe(args) => Command::Probe(Box::new(args.probe(matches, fresh_seed)?)),
        Typed::Simulate(args) => Command::Simulate(Box::new(args.simulate(matches, fresh_seed)?)),
        Typed::Check { histories, talk } => Command::Check {
            histories,
            talk: talk.talk(),
        },
        Typed::Report {
            histories,
            format,
            output,
        } => Command::Report {
            histories,
            rendering: rendering(format, output)?,
        },
        Typed::Serve(args) => Command::Serve(Box::new(args.config())),
        Typed::List { what, json } => Command::Print(if json { what.json() } else { what.text() }),
        Typed::Profile(command) => command.answer()?,
        Typed::Init { file } => Command::Init { file },
        Typed::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "herd", &mut text);
            Command::Print(String::from_utf8_lossy(&text).into_owned())
        }
        Typed::Man => Command::Print(manual()),
    })
}

fn rendering(formats: Vec<Format>, output: Option<PathBuf>) -> Result<Rendering, Error> {
    match output {
        Some(dir) => Ok(Rendering::Files { formats, dir }),
        None if formats == [Format::Json] => Ok(Rendering::Summary),
        None => Err(Error::Usage(
            "only --format json goes to stdout; say with -o DIR where the files go".into(),
        )),
    }
}

#[cfg(test)]
mod tests;
