//! The options of `herd probe`: those of `herd run` that say where the server is and how to speak with it.

use std::path::PathBuf;

use clap::{ArgMatches, Args};

use super::access::AccessArgs;
use super::again::line;
use super::run::{ConnectArgs, PublishArgs, TargetArgs};
use crate::error::Error;
use crate::probe::{Probe, Profiles};
use crate::scenario::Draft;

#[derive(Args)]
pub(super) struct ProbeArgs {
    /// Scenario file that names target and publisher; every option overrides its key
    scenario: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    publish: PublishArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    access: AccessArgs,
}

impl ProbeArgs {
    pub(super) fn probe(self, matches: &ArgMatches, fresh_seed: u64) -> Result<Probe, Error> {
        let mut draft = match &self.scenario {
            Some(file) => Draft::read(file)?,
            None => Draft::default(),
        };
        self.target.lay_over(&mut draft);
        self.publish.lay_over(&mut draft);
        self.connect.lay_over(&mut draft);
        self.access.lay_over(&mut draft);
        let is_named = draft.connect.profile.is_some() || draft.profile.is_some();
        let scenario = draft.resolve(fresh_seed)?;
        let typed = matches.subcommand_matches("probe").unwrap_or(matches);
        Ok(Probe {
            line: line(
                "probe",
                "run",
                typed,
                &scenario,
                &["target", "profile", "id", "seq"],
            ),
            profiles: if is_named {
                Profiles::Named
            } else {
                Profiles::Any
            },
            scenario,
        })
    }
}
