//! What was typed, written down as a command that may be typed again: secrets masked, words quoted for a shell.
//!
//! It knows no option's meaning but whether it may hold a secret.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::{Cli, access};
use crate::scenario::{Scenario, masked, masked_header};

/// The command `says` with what was typed for `command`, but for the options in `without`.
pub(super) fn line(
    command: &str,
    says: &str,
    typed: &ArgMatches,
    scenario: &Scenario,
    without: &[&str],
) -> String {
    let names = scenario.connect.names();
    let mut words = vec!["herd".to_owned(), says.to_owned()];
    let root = Cli::command();
    let run = root.find_subcommand(command).unwrap_or(&root);
    for arg in run.get_arguments() {
        let id = arg.get_id().as_str();
        let typed_here = typed.value_source(id) == Some(ValueSource::CommandLine);
        if !typed_here || without.contains(&id) {
            continue;
        }
        let flag = arg.get_long().map(|long| format!("--{long}"));
        if !arg.get_action().takes_values() {
            words.extend(flag);
            continue;
        }
        for value in typed.get_raw(id).into_iter().flatten() {
            let value = value.to_string_lossy();
            words.extend(flag.clone());
            words.push(quoted(&match id {
                "target" | "ready" | "publish_url" => masked(&value, &names),
                "header" => masked_header(&value, &names),
                id => access::shown(id, &value).unwrap_or_else(|| value.into_owned()),
            }));
        }
    }
    words.join(" ")
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
