//! The log's one writer: groups what was submitted into a transaction, commits, shows, answers, in this order.

use std::sync::Arc;

use redb::{ReadableTable, Table, WriteTransaction};
use tokio::sync::mpsc;
use xxhash_rust::xxh3::Xxh3Default;

use super::table::{EVENTS, KEY_OF, KEYS, META, meta_state};
use super::{Answer, Event, Ids, Refused, Shared, State, Submission};
use crate::server::faults::Faults;

/// The most submissions of one commit, so that the first of them doesn't wait for ever.
const GROUP: usize = 1024;

pub(super) struct Writer {
    shared: Arc<Shared>,
    keep: u64,
    faults: Arc<Faults>,
}

/// What a transaction will have done once it is committed.
struct Done {
    state: State,
    events: Vec<Event>,
    answers: Vec<Answer>,
}

/// The tables of one transaction.
struct Tables<'txn> {
    events: Table<'txn, u64, &'static str>,
    keys: Table<'txn, &'static str, (u64, u64, u64)>,
    key_of: Table<'txn, u64, &'static str>,
    meta: Table<'txn, &'static str, u64>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, keep: u64, faults: Arc<Faults>) -> Self {
        Self {
            shared,
            keep,
            faults,
        }
    }

    /// Works until every sender is gone. A store that failed once isn't trusted again: whether its last commit is on
    /// disk is not known, and going on could give an id twice.
    pub(super) fn run(self, mut inbox: mpsc::Receiver<Submission>) {
        let mut failed = None;
        while let Some(first) = inbox.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(next) = inbox.try_recv()
            {
                group.push(next);
            }
            if failed.is_none() {
                group = match self.commit(&group) {
                    Ok(done) => {
                        self.publish(group, done);
                        continue;
                    }
                    Err(e) => {
                        failed = Some(Refused::Store(e.to_string()));
                        group
                    }
                };
            }
            for (submission, refused) in group.into_iter().zip(failed.iter().cycle()) {
                let _ = submission.answer.send(Err(refused.clone()));
            }
        }
    }

    fn publish(&self, group: Vec<Submission>, done: Done) {
        self.shared.show(done.state, done.events);
        for (submission, answer) in group.into_iter().zip(done.answers) {
            // Nobody waits where the publisher's connection broke; the event is stored all the same.
            let _ = submission.answer.send(answer);
        }
    }

    fn commit(&self, group: &[Submission]) -> Result<Done, redb::Error> {
        let txn = self.shared.db.begin_write()?;
        let done = self.fill(&txn, group)?;
        txn.commit()?;
        Ok(done)
    }

    fn fill(&self, txn: &WriteTransaction, group: &[Submission]) -> Result<Done, redb::Error> {
        let mut tables = Tables {
            events: txn.open_table(EVENTS)?,
            keys: txn.open_table(KEYS)?,
            key_of: txn.open_table(KEY_OF)?,
            meta: txn.open_table(META)?,
        };
        let mut done = Done {
            state: meta_state(&tables.meta)?,
            events: Vec::new(),
            answers: Vec::with_capacity(group.len()),
        };
        for submission in group {
            let answer = self.add(&mut tables, submission, &mut done)?;
            done.answers.push(answer);
        }
        tables.evict(&mut done.state, self.keep)?;
        tables.meta.insert("newest", done.state.newest)?;
        tables.meta.insert("evicted", done.state.evicted)?;
        Ok(done)
    }

    fn add(
        &self,
        tables: &mut Tables<'_>,
        submission: &Submission,
        done: &mut Done,
    ) -> Result<Answer, redb::Error> {
        let digest = digest(&submission.data);
        if let Some(key) = &submission.key
            && let Some(known) = tables.keys.get(&**key)?
        {
            let (first, count, of) = known.value();
            return Ok(if of == digest {
                Ok(Ids { first, count })
            } else {
                Err(Refused::KeyReused)
            });
        }
        let ids = Ids {
            first: done.state.newest + 1,
            count: submission.data.len() as u64,
        };
        for (id, data) in ids.iter().zip(&submission.data) {
            done.state.newest = id;
            if self.faults.loses_publication(id) {
                continue;
            }
            tables.events.insert(id, &**data)?;
            done.events.push(Event::new(id, data));
        }
        if let Some(key) = &submission.key {
            tables.keys.insert(&**key, (ids.first, ids.count, digest))?;
            tables.key_of.insert(done.state.newest, &**key)?;
        }
        Ok(Ok(ids))
    }
}

impl Tables<'_> {
    fn evict(&mut self, state: &mut State, keep: u64) -> Result<(), redb::Error> {
        let through = state.newest.saturating_sub(keep);
        for id in state.evicted + 1..=through {
            self.events.remove(id)?;
            if let Some(key) = self.key_of.remove(id)? {
                self.keys.remove(key.value())?;
            }
        }
        state.evicted = state.evicted.max(through);
        Ok(())
    }
}

fn digest(data: &[Box<str>]) -> u64 {
    let mut hasher = Xxh3Default::new();
    for part in data {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.digest()
}
