//! Parses, calls, and turns the result into an exit code; the only place that may end the process.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use herd::check::{self, Outcome};
use herd::cli::{self, Colour, Command, Rendering, Stdout, Talk};
use herd::error::{Error, Exit};
use herd::history::file::read_all;
use herd::report::{self, Input, Summary};
use herd::run::{Show, Signal, Ui, simulated};
use herd::simulate::{advise, compare};
use herd::{scenario, server, target};
use rand::TryRng;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

fn main() -> ExitCode {
    let command = fresh_seed().and_then(|seed| cli::parse(std::env::args_os(), seed));
    let exit = match command {
        // A guard outlives herd and has codes of its own.
        Ok(Command::Guard(args)) => return target::guard::main(args),
        Ok(command) => carry_out(command),
        Err(error) => Err(error),
    };
    match exit {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            // Where stderr is gone too, the code is all there is to say.
            let _ = writeln!(io::stderr(), "herd: {error}");
            ExitCode::from(error.exit().code())
        }
    }
}

/// Below 2^53, so that tools that read JSON numbers as floats keep it exact.
fn fresh_seed() -> Result<u64, Error> {
    let drawn = rand::rngs::SysRng.try_next_u64();
    drawn.map(|seed| seed >> 11).map_err(|e| {
        Error::Broken(format!(
            "the system gives no random numbers ({e}); name a --seed"
        ))
    })
}

fn carry_out(command: Command) -> Result<Exit, Error> {
    match command {
        Command::Run(run) => run_command(&run),
        Command::Simulate(simulate) => simulate_command(&simulate),
        Command::Probe(probe) => herd::probe::probe(&probe, &mut io::stdout()),
        Command::Check { histories, talk } => check(&histories, talk),
        Command::Report {
            histories,
            rendering,
        } => render(&histories, &rendering),
        Command::Serve(config) => serve(*config),
        Command::Init { file } => init(file.as_deref()),
        Command::Answer { text, exit } => say(text.as_bytes()).map(|_| exit),
        Command::Print(text) => say(text.as_bytes()),
        Command::Hold => server::hold().map(|()| Exit::Pass),
        Command::Guard(_) => Ok(Exit::Usage),
    }
}

/// Runs, judges and tells.
fn run_command(run: &cli::Run) -> Result<Exit, Error> {
    let show = match run.talk.stderr {
        cli::Stderr::Quiet => Show::Nothing,
        cli::Stderr::Progress if io::stderr().is_terminal() => Show::Bars,
        cli::Stderr::Progress => Show::Lines,
    };
    let ui = Ui {
        show,
        talk: Box::new(io::stderr()),
        repeat: run.repeat.clone(),
    };
    let ended = herd::run::run(&run.scenario, ui, signals()?)?;
    let input = Input {
        history: &ended.history,
        verdict: &ended.verdict,
        summary: &ended.summary,
    };
    tell(&input, &ended.files, run.talk)?;
    Ok(ended.exit)
}

/// Follows a storm and tells what was asked of it.
fn simulate_command(simulate: &cli::Simulate) -> Result<Exit, Error> {
    let storm = &simulate.storm;
    match &simulate.ask {
        cli::Ask::Compare { mixes, shape } => {
            let table = compare::table(storm, mixes)?;
            say(table.render(*shape).as_bytes())
        }
        cli::Ask::Advise { rate } => {
            let advice = advise::advise(storm, *rate)?;
            let text = match simulate.talk.stdout {
                Stdout::Report => advice.text(),
                Stdout::Json => advice.json(),
            };
            say(text.as_bytes())
        }
        cli::Ask::Verdict => {
            let ended = simulated::run(&simulate.scenario, storm, &simulate.repeat)?;
            let input = Input {
                history: &ended.history,
                verdict: &ended.verdict,
                summary: &ended.summary,
            };
            tell(&input, &ended.files, simulate.talk)?;
            Ok(ended.exit)
        }
    }
}

/// Signals closer together than this are one request: timeout(1), a shell and npm each send one to the process and another
/// to its group.
const ONE_REQUEST: Duration = Duration::from_millis(100);

/// The first SIGINT or SIGTERM asks the run to stop, the second one ends the process at once.
fn signals() -> Result<watch::Receiver<Option<Signal>>, Error> {
    let broken = |e: io::Error| Error::Broken(format!("can't listen for signals: {e}; try again"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(broken)?;
    let (tell, asked) = watch::channel(None);
    let (mut interrupt, mut term) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(broken);
        (
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
        )
    };
    std::thread::spawn(move || {
        runtime.block_on(async move {
            loop {
                let got = tokio::select! {
                    biased;
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = term.recv() => Signal::Terminate,
                };
                if tell.borrow().is_some() {
                    end_at_once(got);
                }
                tell.send_replace(Some(got));
                let mut over = pin!(tokio::time::sleep(ONE_REQUEST));
                loop {
                    tokio::select! {
                        biased;
                        () = &mut over => break,
                        _ = interrupt.recv() => {}
                        _ = term.recv() => {}
                    }
                }
            }
        });
    });
    Ok(asked)
}

/// Whatever the run was doing: a guard ends the server, the history is true up to its last chunk.
#[expect(
    clippy::disallowed_methods,
    reason = "a second Ctrl-C must not wait for anything"
)]
fn end_at_once(signal: Signal) -> ! {
    let exit = match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate => Exit::Terminated,
    };
    std::process::exit(exit.code().into())
}

fn check(histories: &[PathBuf], talk: Talk) -> Result<Exit, Error> {
    let history = read_all(histories)?;
    let verdict = check::judge(&history);
    let exit = exit_of(verdict.outcome);
    let summary = Summary::new(&history, &verdict, exit);
    let input = Input {
        history: &history,
        verdict: &verdict,
        summary: &summary,
    };
    tell(&input, histories, talk)?;
    Ok(exit)
}

fn exit_of(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Pass => Exit::Pass,
        Outcome::Unknown => Exit::Unknown,
        Outcome::Fail => Exit::Fail,
    }
}

/// The report to whom it is for: people on stdout, or, where a machine reads that, on stderr.
fn tell(input: &Input<'_>, files: &[PathBuf], talk: Talk) -> Result<(), Error> {
    let report = |terminal| report::terminal::render(input, files, colour(talk.colour, terminal));
    match talk.stdout {
        Stdout::Report => say(report(io::stdout().is_terminal()).as_bytes())?,
        Stdout::Json => say(&json(input.summary)?)?,
    };
    if talk.stdout == Stdout::Json && talk.stderr == cli::Stderr::Progress {
        // A report that nobody can see any more is no reason to lose the exit code.
        let _ = io::stderr().write_all(report(io::stderr().is_terminal()).as_bytes());
    }
    Ok(())
}

fn colour(choice: Colour, terminal: bool) -> report::terminal::Colour {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match choice {
        Colour::Auto if terminal && !forbidden => report::terminal::Colour::Always,
        Colour::Auto | Colour::Never => report::terminal::Colour::Never,
    }
}

fn json(summary: &Summary) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    report::json::write(&mut text, summary)
        .map_err(|e| Error::Broken(format!("can't render the summary: {e}; report this")))?;
    Ok(text)
}

fn render(histories: &[PathBuf], rendering: &Rendering) -> Result<Exit, Error> {
    let history = read_all(histories)?;
    let verdict = check::judge(&history);
    let summary = Summary::new(&history, &verdict, herd::run::exit(&history, &verdict));
    match rendering {
        Rendering::Summary => say(&json(&summary)?),
        Rendering::Files { formats, dir } => {
            std::fs::create_dir_all(dir).map_err(|source| Error::File {
                action: "create",
                path: dir.clone(),
                source,
            })?;
            let written = report::write_all(dir, formats, &history, &verdict, &summary)?;
            let names: String = written
                .iter()
                .map(|file| format!("{}\n", file.display()))
                .collect();
            say(names.as_bytes())
        }
    }
}

fn serve(config: server::Config) -> Result<Exit, Error> {
    let broken = |e: io::Error| Error::Broken(format!("can't start the server: {e}; try again"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(broken)?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).map_err(broken)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
        let stop = async {
            tokio::select! {
                biased;
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let ready = |address| {
            // A server whose starter no longer reads is still a server.
            let _ = say(format!("{{\"listening\":\"{address}\"}}\n").as_bytes());
        };
        server::serve(config, ready, stop).await
    })?;
    Ok(Exit::Pass)
}

fn init(file: Option<&Path>) -> Result<Exit, Error> {
    let Some(path) = file else {
        return say(scenario::INIT.as_bytes());
    };
    let created = std::fs::File::create_new(path).and_then(|mut file| {
        file.write_all(scenario::INIT.as_bytes())?;
        file.sync_all()
    });
    match created {
        Ok(()) => say(format!("wrote {0}; run it with: herd run {0}\n", path.display()).as_bytes()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(Error::Usage(format!(
            "{} exists and is left alone; name a new file",
            path.display()
        ))),
        Err(source) => Err(Error::File {
            action: "create",
            path: path.into(),
            source,
        }),
    }
}

/// Writes to stdout. Whoever closed it has read enough: that is no error.
fn say(text: &[u8]) -> Result<Exit, Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Exit::Pass),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Pass),
        Err(e) => Err(Error::Broken(format!(
            "can't write to stdout: {e}; give it somewhere to go"
        ))),
    }
}
