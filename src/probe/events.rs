//! The few events of a probe, one when it is asked for: the run's own publisher, let go and held again.

use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::{Fate, Publication};
use crate::publish::{Config, Publisher};

/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(5);
/// How often is looked whether it is there.
const LOOK: Duration = Duration::from_millis(5);
/// So slow that the next event only comes when it is asked for.
const RATE: f64 = 1e-4;

pub(super) struct Events {
    config: Option<Config>,
    publisher: Option<Publisher>,
    clock: Clock,
    answered: Option<Publication>,
}

impl Events {
    /// None where others publish.
    pub(super) fn new(config: Option<Config>, clock: Clock) -> Self {
        Self {
            config,
            publisher: None,
            clock,
            answered: None,
        }
    }

    /// Whether herd publishes.
    pub(super) fn are_herds(&self) -> bool {
        self.config.is_some()
    }

    /// What became of the last event that was asked for.
    pub(super) fn answered(&self) -> Option<&Publication> {
        self.answered.as_ref()
    }

    /// Publishes one event and waits for its answer; a command that never answers is not waited for long. None where others
    /// publish.
    pub(super) async fn one(&mut self) -> Result<Option<Publication>, Error> {
        let Some(config) = &self.config else {
            return Ok(None);
        };
        let before = match &self.publisher {
            None => {
                let config = Config {
                    rate: RATE,
                    ..config.clone()
                };
                self.publisher = Some(Publisher::start(config, self.clock)?);
                0
            }
            Some(publisher) => {
                let before = publisher.records().look(<[_]>::len);
                publisher.resume();
                before
            }
        };
        let Some(publisher) = &self.publisher else {
            return Ok(None);
        };
        let records = publisher.records();
        let until = self.clock.now() + LIMIT;
        let mut made = None;
        while self.clock.now() < until {
            made = records.look(|all| all.get(before).cloned());
            if let Some(made) = &made {
                publisher.pause();
                if made.fate != Fate::Unknown || (publisher.outstanding() == 0 && made.tries > 0) {
                    break;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        self.answered = made.clone();
        Ok(made)
    }

    /// Why the last event was not accepted, in the publisher's words.
    pub(super) fn trouble(&self) -> Option<String> {
        let counts = self.publisher.as_ref()?.counts();
        counts.last_problem
    }

    pub(super) async fn end(&mut self) {
        if let Some(publisher) = self.publisher.take() {
            publisher.end(Duration::from_secs(1)).await;
        }
    }
}
