//! `herd profile check`: whether a profile is one, and how it reads recorded frames.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use toml::{Table, Value};

use super::Command;
use crate::error::{Error, Exit};
use crate::profile::sample::try_on;
use crate::profile::{Pointers, Profile, ProfileName, Refusal, Spec};

/// What to do with a profile.
#[derive(Subcommand)]
pub(super) enum ProfileCommand {
    /// Check a profile, and show how it reads recorded frames
    ///
    /// Exit code 0: every frame was read as something; 3: some were not, or there were none; 2: the profile is wrong.
    Check {
        /// A TOML file with a profile table, a scenario, or a built-in profile's name
        #[arg(value_name = "FILE")]
        profile: PathBuf,
        /// Recorded frames, one a line; a line "--" begins another session. For sse, the stream's own lines
        #[arg(long, value_name = "FILE")]
        frames: Option<PathBuf>,
    },
}

impl ProfileCommand {
    /// Carries it out: it needs nothing but the files.
    pub(super) fn answer(&self) -> Result<Command, Error> {
        let Self::Check { profile, frames } = self;
        let (spec, pointers) = written(profile)?;
        let compiled = Profile::compile(&spec.without_secrets(), &pointers)
            .map_err(|refusal| refused(profile, &refusal))?;
        let mut text = described(&spec);
        let Some(frames) = frames else {
            let exit = Exit::Pass;
            return Ok(Command::Answer { text, exit });
        };
        let trial = try_on(&compiled, &String::from_utf8_lossy(&read(frames)?));
        let (read, unread) = (trial.read, trial.unread);
        text += &format!(
            "\n{}\n{read} frames were read, {unread} were not\n",
            trial.text
        );
        let exit = match (read, unread) {
            (1.., 0) => Exit::Pass,
            _ => Exit::Unknown,
        };
        Ok(Command::Answer { text, exit })
    }
}

fn described(spec: &Spec) -> String {
    let about = spec.about();
    let name = match spec.name.as_str() {
        "" => "the profile",
        name => name,
    };
    format!(
        "{name}: id {}; resume: {}; caught-up marker: {}; reset marker: {}\n",
        about.id, about.resume, about.caught_up, about.reset
    )
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|e| {
        let file = file.display();
        Error::Usage(format!(
            "can't read {file}: {e}; name a file, or a built-in profile (herd list profiles)"
        ))
    })
}

fn refused(file: &Path, refusal: &Refusal) -> Error {
    Error::Usage(format!("{}: profile.{refusal}", file.display()))
}

/// The profile that is meant, and the pointers that a scenario names beside it.
fn written(file: &Path) -> Result<(Spec, Pointers), Error> {
    let builtin = ProfileName::ALL
        .into_iter()
        .find(|name| file.as_os_str() == name.name());
    if let Some(name) = builtin {
        return Ok((Spec::builtin(name), Pointers::default()));
    }
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    let mut table: Table = toml::from_str(&text).map_err(|e| {
        let before = e
            .span()
            .map_or("", |span| text.get(..span.start).unwrap_or_default());
        Error::Scenario {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            what: e.message().trim_end().replace('\n', ", "),
        }
    })?;
    let connect = table.get("connect").and_then(Value::as_table).cloned();
    let connect = connect.unwrap_or_default();
    let word = |key: &str| connect.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut keys = match table.remove("profile") {
        Some(Value::Table(keys)) => keys,
        Some(_) => {
            let why = "profile is no table; write [profile], and its keys below it";
            return Err(Error::Usage(format!("{}: {why}", file.display())));
        }
        None if word("profile").is_some() => Table::new(),
        None => {
            let why = "it has no [profile] table; begin one with that line";
            return Err(Error::Usage(format!("{}: {why}", file.display())));
        }
    };
    if let Some(base) = word("profile") {
        keys.entry("base").or_insert(base.into());
    }
    let spec = Value::Table(keys).try_into::<Spec>().map_err(|e| {
        let why = e.to_string().trim_end().replace('\n', ", ");
        let what = Refusal {
            key: String::new(),
            why,
        };
        Error::Usage(format!("{}: [profile]: {what}", file.display()))
    })?;
    let pointers = Pointers {
        id: word("id"),
        seq: word("seq"),
    };
    Ok((spec, pointers))
}
