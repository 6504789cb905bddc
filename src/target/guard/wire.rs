//! What herd and its guard say to each other, a line at a time. Both ends are the same binary, so there is no version.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a guarded command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A server: no stdin, output to the log; it and all that it ever started die with herd.
    Serve,
    /// A process that is fed lines and may answer with lines; it and all that it ever started die with herd.
    Feed,
    /// A command that comes to an end and may leave something running on purpose: only its process group dies, and
    /// only where it had not ended by itself.
    Task,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Serve, Self::Feed, Self::Task];

    /// The word on the guard's command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Feed => "feed",
            Self::Task => "task",
        }
    }
}

/// What herd tells a guard, one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Start the command (again).
    Start,
    /// Start the command again, with further arguments, which hold no line break.
    StartWith(Vec<String>),
    /// SIGTERM to the command's process group.
    Term,
    /// SIGKILL to the command's process group.
    Kill,
    /// A line for the command's stdin; it holds no line break.
    Line(String),
    /// Close the command's stdin.
    Close,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::StartWith(args) => {
                let args = serde_json::to_string(args).map_err(|_| fmt::Error)?;
                write!(f, "start {args}")
            }
            Self::Term => f.write_str("signal TERM"),
            Self::Kill => f.write_str("signal KILL"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Close => f.write_str("close"),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        match s {
            "start" => Ok(Self::Start),
            "signal TERM" => Ok(Self::Term),
            "signal KILL" => Ok(Self::Kill),
            "close" => Ok(Self::Close),
            _ => match s.split_once(' ') {
                Some(("line", line)) => Ok(Self::Line(line.to_owned())),
                Some(("start", args)) => serde_json::from_str(args)
                    .map(Self::StartWith)
                    .map_err(|_| ()),
                _ => Err(()),
            },
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It returned this exit code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(9) => f.write_str("SIGKILL"),
            Self::Signal(15) => f.write_str("SIGTERM"),
            Self::Signal(n) => write!(f, "signal {n}"),
        }
    }
}

/// What a guard tells herd, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The command runs, with this process id, which is its group's too.
    Started(u32),
    /// The command could not be started; the system's words.
    NotStarted(String),
    /// The command was reaped and nothing is left of its process group.
    Exited(Ended),
    /// A line of the command's stdout.
    Line(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_pipe() {
        for order in [
            Order::Start,
            Order::Term,
            Order::Kill,
            Order::Close,
            Order::Line(r#"{"a": "line start"}"#.into()),
            Order::Line(String::new()),
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert_eq!("signal HUP".parse::<Order>(), Err(()));
    }

    #[test]
    fn reports_are_small_json() {
        let line = |r| serde_json::to_string(&r).unwrap();
        assert_eq!(line(Report::Started(7)), r#"{"started":7}"#);
        assert_eq!(
            line(Report::Exited(Ended::Signal(9))),
            r#"{"exited":{"signal":9}}"#
        );
    }
}
