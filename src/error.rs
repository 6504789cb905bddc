//! Every way herd can end: one sentence per exit code, and the one error type that `main` turns into a code.
//!
//! This file refuses to know what a verdict is made of; it only says which number the process returns.

use std::fmt;
use std::path::PathBuf;

/// How the process ends. The order of precedence is interrupted > broken > fail > unknown > pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Every check passed.
    Pass,
    /// At least one check failed.
    Fail,
    /// The command line or the scenario is wrong, or files of different runs were given to `check`.
    Usage,
    /// Nothing failed, but something could not be judged.
    Unknown,
    /// The run could not be carried out or its results not written.
    Broken,
    /// SIGINT: what was recorded is kept and marked truncated.
    Interrupted,
    /// SIGTERM: what was recorded is kept and marked truncated.
    Terminated,
}

impl Exit {
    /// All of them, in the order of the help text.
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::Usage,
        Self::Unknown,
        Self::Broken,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
            Self::Broken => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The word that reports print.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Usage => "usage",
            Self::Unknown => "unknown",
            Self::Broken => "broken",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
        }
    }

    /// What it means, in one sentence, for the help text and the documentation.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "every check passed",
            Self::Fail => "at least one check failed",
            Self::Usage => {
                "the command line or the scenario is wrong, or files of different runs were given to check"
            }
            Self::Unknown => "nothing failed, but something could not be judged",
            Self::Broken => "the run could not be carried out or its results not written",
            Self::Interrupted => "interrupted; what was recorded is kept and marked truncated",
            Self::Terminated => "terminated; what was recorded is kept and marked truncated",
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An end that is no verdict. Messages are lowercase fragments that finish "herd: "; the last clause says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked for something that makes no sense (exit 2).
    #[error("{0}")]
    Usage(String),
    /// A scenario file is wrong (exit 2).
    #[error("{}:{line}: {what}", file.display())]
    Scenario {
        /// The file as the user named it.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The key, what is wrong with it, and what would be right.
        what: String,
    },
    /// The run could not be carried out (exit 4).
    #[error("{0}")]
    Broken(String),
    /// A file could not be read or written (exit 4).
    #[error("can't {action} {}: {source}", path.display())]
    File {
        /// What was being done: "write", "create", "read".
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// The exit code that this error ends in.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Scenario { .. } => Exit::Usage,
            Self::Broken(_) | Self::File { .. } => Exit::Broken,
        }
    }
}
