//! One event a line on the stdin of a long-lived process, which may answer with lines on its stdout.
//!
//! The process lives behind a guard, which also queues lines while the process doesn't read, so that the schedule is
//! never slowed by it. This file decides nothing about what an answer means.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::outcome::{Answer, Receipted};
use super::{Config, Shared};
use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Elapsed, Seq};
use crate::target::guard::{Mode, Order, Report};
use crate::target::guarded::{Guarded, Place, Program};

/// The process.
#[derive(Debug)]
pub(super) struct Feed {
    guarded: Guarded,
}

/// Where lines go.
#[derive(Debug, Clone)]
pub(super) struct Lines(mpsc::UnboundedSender<Order>);

impl Lines {
    pub(super) fn send(&self, line: String) {
        // A process that is gone is told by `Answers::listen`.
        let _ = self.0.send(Order::Line(line));
    }
}

/// Where answers come from.
pub(super) struct Answers {
    reports: mpsc::UnboundedReceiver<(Elapsed, Report)>,
    place: Place,
    answer_id: String,
    answer_position: Option<String>,
}

impl Feed {
    pub(super) fn start(
        line: &str,
        place: &Place,
        config: &Config,
        clock: Clock,
    ) -> Result<(Self, Answers), Error> {
        let program = Program::Shell(line.to_owned());
        let (guarded, reports) = Guarded::start(Mode::Feed, &program, &[], place, clock)?;
        guarded.order(Order::Start);
        let answers = Answers {
            reports,
            place: place.clone(),
            answer_id: config.answer_id.clone(),
            answer_position: config.answer_position.clone(),
        };
        Ok((Self { guarded }, answers))
    }

    pub(super) fn lines(&self) -> Lines {
        Lines(self.guarded.orders())
    }

    /// Closes its stdin, lets it end by itself, then ends it.
    pub(super) async fn close(self, over: &mut watch::Receiver<Option<String>>, grace: Duration) {
        self.guarded.order(Order::Close);
        let _ = tokio::time::timeout(grace, over.wait_for(Option::is_some)).await;
        self.guarded.end().await;
    }
}

impl Answers {
    /// Notes answers until the process ends, then tells why that breaks the run.
    pub(super) async fn listen(
        mut self,
        shared: Arc<Shared>,
        broken: watch::Sender<Option<String>>,
    ) {
        let why = loop {
            match self.reports.recv().await {
                Some((at, Report::Line(line))) => {
                    if let Some((seq, answer)) = self.read(&line) {
                        let repeat = shared.repeat;
                        shared.book().answer_by_seq(seq, answer, at, repeat);
                    }
                }
                Some((_, Report::Started(_))) => {}
                Some((_, Report::NotStarted(why))) => {
                    break format!("the publish command can't be started: {why}");
                }
                Some((_, Report::Exited(ended))) => {
                    break format!("the publish command ended with {ended}");
                }
                None => break "herd's guard process of the publish command was ended".into(),
            }
        };
        broken.send_replace(Some(format!(
            "{why}; it must read events from stdin until that is closed; {}",
            self.place.tail()
        )));
        // The sender is kept, so that who waits for `broken` later still learns it.
        std::future::pending::<()>().await;
    }

    /// An answer; none for a line that is something else, which a command is free to print.
    fn read(&self, line: &str) -> Option<(Seq, Answer)> {
        let value: Value = serde_json::from_str(line).ok()?;
        let seq = match value.get("seq")? {
            Value::Number(n) => n.as_u64(),
            Value::String(s) => s.parse().ok(),
            _ => None,
        }?;
        let answer = if value.get("ok")?.as_bool()? {
            let (id, position) = (&self.answer_id, self.answer_position.as_deref());
            Answer::Accepted(Receipted::read(line.as_bytes(), id, position))
        } else {
            Answer::Declined
        };
        Some((Seq(seq), answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_chatter() {
        let answers = Answers {
            reports: mpsc::unbounded_channel().1,
            place: Place::own("log".into()),
            answer_id: "/id".into(),
            answer_position: None,
        };
        let id = |id: &str| {
            Answer::Accepted(Receipted {
                id: Some(id.into()),
                position: None,
            })
        };
        for (line, expected) in [
            (
                r#"{"seq":7,"ok":true,"id":90071992547409931}"#,
                Some((Seq(7), id("90071992547409931"))),
            ),
            (r#"{"seq":"7","ok":true,"id":"a"}"#, Some((Seq(7), id("a")))),
            (r#"{"seq":7,"ok":false}"#, Some((Seq(7), Answer::Declined))),
            (r#"{"seq":7}"#, None),
            (r#"{"seq":-7,"ok":true}"#, None),
            ("delivered 7", None),
            ("", None),
        ] {
            assert_eq!(answers.read(line), expected, "{line}");
        }
    }
}
