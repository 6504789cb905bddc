//! Sends numbered events at their due times, from priming to the tail, and notes what became of each.
//!
//! The schedule is never slowed by answers: an event goes out when it is due, whatever the ones before are waiting for.
//! What was refused goes to a lane and is sent again until it is accepted. This file knows how to keep time and order;
//! `publish/outcome.rs` what an answer means, `publish/book.rs` what became of whom, `publish/http.rs` and
//! `publish/command.rs` how an event gets out. It knows nothing of clients and judges nothing.

mod book;
mod command;
mod http;
pub mod outcome;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Publication, PublicationKind, Seq};
use crate::target::guarded::Place;
use crate::transport::network::Network;
use book::{Book, Ix};
use outcome::{Answer, Repeat, payload};

pub use book::Counts;

/// How often the head of the lane is tried while nothing is accepted.
const LANE_PACE: Duration = Duration::from_millis(50);
/// How many of the lane are under way at once.
const LANE_WIDTH: usize = 16;
/// How many further ones of the lane each acceptance sets going, so that the width is reached soon.
const LANE_GROWTH: usize = 2;

/// What is published, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// The way out.
    pub way: Way,
    /// How connections get to a URL.
    pub network: Arc<Network>,
    /// Events a second, above 0.
    pub rate: f64,
    /// The body: `{seq}` and `{payload}` are replaced for each event, everything else is expanded already.
    pub body: String,
    /// The first event's number; the others follow one by one.
    pub first: Seq,
    /// What makes this run's `Idempotency-Key`s its own.
    pub run: String,
    /// JSON Pointer of the id in an answer.
    pub answer_id: String,
    /// JSON Pointer of the position in the server's order, where answers tell one.
    pub answer_position: Option<String>,
    /// Whether an event whose answer was lost may be sent again.
    pub repeat: Repeat,
}

/// A way to publish, expanded.
#[derive(Debug, Clone)]
pub enum Way {
    /// POST, one event a request, each with an `Idempotency-Key`.
    Http {
        /// `http://` or `https://` URLs, at least one; a user in it becomes basic authentication. The first one is used until
        /// it refuses or its answer is lost, then the next, in a circle.
        urls: Vec<String>,
        /// Header lines `Name: value`.
        headers: Vec<String>,
    },
    /// A long-lived process that gets an event a line on stdin and may answer with lines such as
    /// `{"seq":7,"ok":true,"id":"a7"}`; no answer, ever, leaves an event Unknown.
    Command {
        /// The line for `sh -c`.
        line: String,
        /// herd's binary and where the process's stderr goes.
        place: Place,
    },
}

/// A running publisher. Dropping it stops everything at once; [`Publisher::end`] does it in order.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    /// The publish command's process, where there is one.
    feed: Option<command::Feed>,
    broken: watch::Receiver<Option<String>>,
}

/// What the handle and the tasks have in common.
#[derive(Debug)]
struct Shared {
    book: Mutex<Book>,
    clock: Clock,
    /// The schedule was paused or resumed.
    changed: Notify,
    body: String,
    repeat: Repeat,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it holds the lock; were it so, the record would still be the best there is.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn render(&self, seq: Seq) -> String {
        render(&self.body, seq)
    }
}

/// Fills a body in: `{seq}` is the number; `{payload}` is a JSON object that holds it beside some filler, or, between
/// quotes, the filler alone.
fn render(body: &str, seq: Seq) -> String {
    let filler = payload(seq.0);
    let object = format!(r#"{{"seq":{},"payload":"{filler}"}}"#, seq.0);
    body.replace(r#""{payload}""#, &format!("\"{filler}\""))
        .replace("{payload}", &object)
        .replace("{seq}", &seq.0.to_string())
}

/// What became of every event.
#[derive(Debug, Clone)]
pub struct Records(Arc<Shared>);

impl Records {
    /// Everything that is new or changed since the last call. An event whose answer is awaited is Unknown until it comes.
    #[must_use]
    pub fn take(&self) -> Vec<Publication> {
        self.0.book().take()
    }

    /// Looks at every event so far, by number. Nothing is published meanwhile.
    pub fn look<T>(&self, at: impl FnOnce(&[Publication]) -> T) -> T {
        at(self.0.book().publications())
    }
}

impl Publisher {
    /// Begins to publish, with priming events, the first one now. Call it within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Usage where the URL, a header, the rate or the body can't be used; Broken or File where the command can't be
    /// started.
    pub fn start(config: Config, clock: Clock) -> Result<Self, Error> {
        if !(config.rate.is_finite() && config.rate > 0.0) {
            return Err(Error::Usage(format!(
                "{} is no rate; use a number of events a second above 0",
                config.rate
            )));
        }
        let shared = Arc::new(Shared {
            book: Mutex::new(Book::new(config.first, clock.now(), config.rate)),
            clock,
            changed: Notify::new(),
            body: config.body.clone(),
            repeat: config.repeat,
        });
        let (tell, broken) = watch::channel(None);
        let mut tasks = JoinSet::new();
        let feed = match &config.way {
            Way::Http { urls, headers } => {
                let poster = Arc::new(http::Poster::new(urls, headers, &config, clock)?);
                let conductor = Conductor {
                    shared: Arc::clone(&shared),
                    sender: Sender::Http(poster),
                    tries: JoinSet::new(),
                    lane_width: 0,
                };
                // Held, so that `broken` never ends.
                tasks.spawn(async move {
                    let _tell = tell;
                    conductor.conduct().await;
                });
                None
            }
            Way::Command { line, place } => {
                check_line(&config.body)?;
                let (feed, answers) = command::Feed::start(line, place, &config, clock)?;
                let conductor = Conductor {
                    shared: Arc::clone(&shared),
                    sender: Sender::Command(feed.lines()),
                    tries: JoinSet::new(),
                    lane_width: 0,
                };
                tasks.spawn(conductor.conduct());
                tasks.spawn(answers.listen(Arc::clone(&shared), tell));
                Some(feed)
            }
        };
        Ok(Self {
            shared,
            tasks,
            feed,
            broken,
        })
    }

    /// What events are for from now on. Returns the number of the first one of the new kind.
    pub fn set_kind(&self, kind: PublicationKind) -> Seq {
        self.shared.book().set_kind(kind)
    }

    /// Makes no new events. Refused ones are still sent again.
    pub fn pause(&self) {
        self.shared.book().pause();
        self.shared.changed.notify_one();
    }

    /// Makes events again, the next one now.
    pub fn resume(&self) {
        let now = self.shared.clock.now();
        self.shared.book().resume(now);
        self.shared.changed.notify_one();
    }

    /// What became of every event, for the history and for whoever watches the run; it outlives the publisher.
    #[must_use]
    pub fn records(&self) -> Records {
        Records(Arc::clone(&self.shared))
    }

    /// How many there are of each fate, and what went wrong last.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.book().counts()
    }

    /// How many events may still change their fate: requests under way, and refused ones to be sent again. A command's
    /// unanswered events are not among them, since no answer need ever come.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.shared.book().outstanding()
    }

    /// Waits until herd's own means of publishing fail (exit 4), that is until the command dies; for ever over HTTP.
    pub async fn broken(&mut self) -> Error {
        let why = self
            .broken
            .wait_for(Option::is_some)
            .await
            .map(|why| (*why).clone());
        match why {
            Ok(why) => Error::Broken(why.unwrap_or_default()),
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops. A command's stdin is closed, and it has `grace` to end by itself; what is under way counts as lost.
    pub async fn end(mut self, grace: Duration) {
        self.pause();
        if let Some(feed) = self.feed {
            feed.close(&mut self.broken, grace).await;
        }
        self.tasks.shutdown().await;
        self.shared.book().finish();
    }
}

fn check_line(body: &str) -> Result<(), Error> {
    if body.contains(['\n', '\r']) {
        return Err(Error::Usage(
            "the publish body has a line break, but a publish command gets one event a line; write the body on one line"
                .into(),
        ));
    }
    Ok(())
}

/// Keeps time: sends what is due and works off the lane.
struct Conductor {
    shared: Arc<Shared>,
    sender: Sender,
    tries: JoinSet<Went>,
    /// How many tries of the lane are under way.
    lane_width: usize,
}

#[derive(Clone)]
enum Sender {
    Http(Arc<http::Poster>),
    Command(command::Lines),
}

/// Where a try came from, and whether it got through.
struct Went {
    from: From,
    through: Through,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Schedule,
    Lane,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Through {
    Accepted,
    Not,
}

impl Conductor {
    async fn conduct(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut lane = tokio::time::interval(LANE_PACE);
        lane.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = shared.book().next_due().map(|at| shared.clock.instant(at));
            tokio::select! {
                biased;
                () = shared.changed.notified() => {}
                () = until(due) => self.send_due(),
                Some(went) = self.tries.join_next() => {
                    if let Ok(went) = went {
                        self.follow(&went);
                    }
                }
                _ = lane.tick() => self.send_from_lane(),
            }
        }
    }

    fn send_due(&mut self) {
        let now = self.shared.clock.now();
        loop {
            let Some(ix) = self.shared.book().make_due(now) else {
                return;
            };
            self.try_one(ix, From::Schedule);
        }
    }

    fn follow(&mut self, went: &Went) {
        if went.from == From::Lane {
            self.lane_width -= 1;
        }
        if went.through == Through::Accepted {
            for _ in 0..LANE_GROWTH {
                self.send_from_lane();
            }
        }
    }

    fn send_from_lane(&mut self) {
        if self.lane_width >= LANE_WIDTH {
            return;
        }
        let Some(ix) = self.shared.book().leave_lane() else {
            return;
        };
        self.lane_width += 1;
        self.try_one(ix, From::Lane);
    }

    fn try_one(&mut self, ix: Ix, from: From) {
        let shared = Arc::clone(&self.shared);
        let seq = shared.book().begin(ix, shared.clock.now());
        let body = shared.render(seq);
        match &self.sender {
            Sender::Http(poster) => {
                let poster = Arc::clone(poster);
                self.tries.spawn(async move {
                    let answer = poster.post(seq, body).await;
                    let through = if matches!(answer, Answer::Accepted(_)) {
                        Through::Accepted
                    } else {
                        Through::Not
                    };
                    let (at, repeat) = (shared.clock.now(), shared.repeat);
                    match from {
                        From::Schedule => shared.book().answer(ix, answer, at, repeat),
                        From::Lane => shared.book().answer_to_lane(ix, answer, at, repeat),
                    }
                    Went { from, through }
                });
            }
            Sender::Command(lines) => {
                lines.send(body);
                shared.book().unanswered(ix);
                if from == From::Lane {
                    self.lane_width -= 1;
                }
            }
        }
    }
}

async fn until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_an_object_with_the_number_or_between_quotes_the_filler() {
        let filler = payload(7);
        let object = format!(r#"{{"seq":7,"payload":"{filler}"}}"#);
        assert_eq!(render("{payload}", Seq(7)), object);
        assert_eq!(
            render(r#"{"data":{payload}}"#, Seq(7)),
            format!(r#"{{"data":{object}}}"#)
        );
        let quoted = render(r#"{"n":{seq},"text":"{payload}"}"#, Seq(7));
        assert_eq!(quoted, format!(r#"{{"n":7,"text":"{filler}"}}"#));
    }
}
