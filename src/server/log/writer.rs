//! The log's one writer: groups what was submitted into a transaction, commits, shows, answers, in this order. Where
//! several servers share the log, it takes over first what the others stored, and tells them what it stores itself.

use std::sync::Arc;

use redb::{Database, ReadableTable, Table, WriteTransaction};
use tokio::sync::mpsc;
use xxhash_rust::xxh3::Xxh3Default;

use super::journal::{Journal, Record};
use super::table::{EVENTS, KEY_OF, KEYS, META, meta_state};
use super::{Answer, Event, Ids, Order, Refused, Shared, State, Submission};
use crate::server::faults::Faults;

/// The most submissions of one commit, so that the first of them doesn't wait for ever.
const GROUP: usize = 1024;

pub(super) struct Writer {
    shared: Arc<Shared>,
    /// What is shared with other servers; none = nothing.
    journal: Option<Journal>,
    keep: u64,
    faults: Arc<Faults>,
}

/// What a transaction will have done once it is committed.
struct Done {
    state: State,
    events: Vec<Event>,
    answers: Vec<Answer>,
    /// For the other servers.
    records: Vec<Record>,
}

/// Takes over what a shared log holds at first.
pub(super) fn replay(db: &Database, journal: &Journal, keep: u64) -> Result<(), redb::Error> {
    let records = journal.read()?;
    let txn = db.begin_write()?;
    {
        let mut tables = Tables::open(&txn)?;
        let mut done = tables.begin()?;
        tables.take_over(records, &mut done)?;
        tables.end(&mut done, keep)?;
    }
    txn.commit()?;
    Ok(())
}

/// The tables of one transaction.
struct Tables<'txn> {
    events: Table<'txn, u64, &'static str>,
    keys: Table<'txn, &'static str, (u64, u64, u64)>,
    key_of: Table<'txn, u64, &'static str>,
    meta: Table<'txn, &'static str, u64>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        journal: Option<Journal>,
        keep: u64,
        faults: Arc<Faults>,
    ) -> Self {
        Self {
            shared,
            journal,
            keep,
            faults,
        }
    }

    /// Works until every sender is gone. A store that failed once isn't trusted again: whether its last commit is on
    /// disk is not known, and going on could give an id twice.
    pub(super) fn run(self, mut inbox: mpsc::Receiver<Order>) {
        let mut failed = None;
        while let Some(first) = inbox.blocking_recv() {
            let mut group = Vec::new();
            let mut next = Some(first);
            while let Some(order) = next {
                if let Order::Store(submission) = order {
                    group.push(submission);
                }
                next = match group.len() < GROUP {
                    true => inbox.try_recv().ok(),
                    false => None,
                };
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
        // Who only reads needs no turn.
        let turn = match &self.journal {
            Some(journal) if !group.is_empty() => Some(journal.turn()?),
            _ => None,
        };
        let theirs = match &self.journal {
            Some(journal) => journal.read()?,
            None => Vec::new(),
        };
        let txn = self.shared.db.begin_write()?;
        let done = self.fill(&txn, theirs, group)?;
        if let (Some(journal), Some(turn), false) = (&self.journal, &turn, done.records.is_empty())
        {
            journal.append(turn, &done.records)?;
        }
        txn.commit()?;
        Ok(done)
    }

    fn fill(
        &self,
        txn: &WriteTransaction,
        theirs: Vec<Record>,
        group: &[Submission],
    ) -> Result<Done, redb::Error> {
        let mut tables = Tables::open(txn)?;
        let mut done = tables.begin()?;
        tables.take_over(theirs, &mut done)?;
        for submission in group {
            let answer = self.add(&mut tables, submission, &mut done)?;
            done.answers.push(answer);
        }
        tables.end(&mut done, self.keep)?;
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
        let kept = |id: u64, data: &str| (!self.faults.loses_publication(id)).then(|| data.into());
        let record = Record {
            first: ids.first,
            key: submission.key.clone(),
            digest,
            data: ids
                .iter()
                .zip(&submission.data)
                .map(|(id, data)| kept(id, data))
                .collect(),
        };
        tables.insert(&record, done)?;
        if self.journal.is_some() {
            done.records.push(record);
        }
        Ok(Ok(ids))
    }
}

impl<'txn> Tables<'txn> {
    fn open(txn: &'txn WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            events: txn.open_table(EVENTS)?,
            keys: txn.open_table(KEYS)?,
            key_of: txn.open_table(KEY_OF)?,
            meta: txn.open_table(META)?,
        })
    }

    fn begin(&self) -> Result<Done, redb::Error> {
        Ok(Done {
            state: meta_state(&self.meta)?,
            events: Vec::new(),
            answers: Vec::new(),
            records: Vec::new(),
        })
    }

    fn end(&mut self, done: &mut Done, keep: u64) -> Result<(), redb::Error> {
        self.evict(&mut done.state, keep)?;
        self.meta.insert("newest", done.state.newest)?;
        self.meta.insert("evicted", done.state.evicted)?;
        Ok(())
    }

    /// What other servers stored.
    fn take_over(&mut self, records: Vec<Record>, done: &mut Done) -> Result<(), redb::Error> {
        for record in records {
            if record.first != done.state.newest + 1 {
                return Err(redb::Error::Corrupted(format!(
                    "the shared log goes on with id {} after {}",
                    record.first, done.state.newest
                )));
            }
            self.insert(&record, done)?;
        }
        Ok(())
    }

    fn insert(&mut self, record: &Record, done: &mut Done) -> Result<(), redb::Error> {
        for (id, data) in (record.first..).zip(&record.data) {
            done.state.newest = id;
            if let Some(data) = data {
                self.events.insert(id, &**data)?;
                done.events.push(Event::new(id, data));
            }
        }
        if let Some(key) = &record.key {
            let count = record.data.len() as u64;
            self.keys
                .insert(&**key, (record.first, count, record.digest))?;
            self.key_of.insert(done.state.newest, &**key)?;
        }
        Ok(())
    }

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
