//! What there was to deliver and what each distinct event that arrived means: decided once for the whole history,
//! before any client is looked at. It knows nothing of sessions and deadlines.

use std::collections::HashMap;
use std::ops::Range;

use super::bits::Bits;
use super::contents::{Contents, Standing};
use super::observe;
use crate::history::{
    Elapsed, Entry, EventIx, Fate, History, Publication, PublicationKind, Seq, Source,
};

/// Something that clients must get.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    /// herd's number; none where others publish.
    pub(super) seq: Option<Seq>,
    /// The id in the publisher's answer, else the one that clients got it under.
    pub(super) id: Option<&'a str>,
    /// The epoch that clients got it under; none too where none of them got it.
    pub(super) epoch: Option<&'a str>,
    /// What must rise, where clients got it with a key of its own for that.
    pub(super) order: Option<&'a str>,
    /// Since when it certainly exists: the publisher's answer, else its first receipt anywhere.
    pub(super) known: Elapsed,
    /// The server can't have stored it before.
    pub(super) start: Elapsed,
    /// The server has stored it by then; none where nothing is certain (rule 19).
    pub(super) stored: Option<Elapsed>,
    /// Its place in the server's own order, from the publisher's answer.
    pub(super) position: Option<u64>,
    /// Whether its publication was confirmed.
    pub(super) fate: Fate,
    /// How many copies, under different ids, may be the publisher's own doing (rule 11).
    pub(super) copies: u32,
}

/// What a receipt of an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Counts for nothing: priming, or nothing can be said of it.
    Nothing,
    /// Another run's or stream's.
    Foreign,
    /// Its publication failed, or never was.
    Unexpected,
    /// A content that isn't the right one of its id. Where it came without herd's number: the item of that id.
    Conflict(Option<u32>),
    /// This item.
    Item(u32),
}

/// An event as the walk over a client reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) meaning: Meaning,
    /// An id that the publisher was told for several publications: which one (from 1; 0 = none).
    pub(super) reused: u32,
}

/// All items, by the instant since when they are known, and the meaning of every event.
#[derive(Debug)]
pub(super) struct Catalogue<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// By event number.
    pub(super) readings: Vec<Reading>,
    /// Publications that came under two ids after a repeat.
    pub(super) double_stored: u64,
    /// Publications that were sent once and came under several ids of one epoch: to whoever resumes from an id that is a
    /// danger, where ids are the reader's own it is none.
    pub(super) several_ids: u64,
    /// Receipts that could not be judged because they carry no identity (observe mode).
    pub(super) anonymous: u64,
    /// Why ids that were declared contiguous can't be; none = nothing against it.
    pub(super) not_contiguous: Option<String>,
}

impl<'a> Catalogue<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let survey = Survey::new(history);
        let mut catalogue = match history.header.terms.source {
            Source::Herd => published(history, &survey),
            Source::Others | Source::Nobody => observe::observed(history, &survey),
        };
        catalogue.sort();
        catalogue
    }

    /// The items known before an instant come first: how many they are.
    pub(super) fn before(&self, at: Elapsed) -> u32 {
        self.items.partition_point(|item| item.known < at) as u32
    }

    /// The same as a set.
    pub(super) fn known_before(&self, at: Elapsed) -> Bits {
        let mut bits = Bits::new(self.items.len());
        (0..self.before(at)).for_each(|x| bits.add(x));
        bits
    }

    /// The items known between two instants, the second excluded.
    pub(super) fn between(&self, from: Elapsed, to: Elapsed) -> Range<u32> {
        self.before(from)..self.before(to)
    }

    pub(super) fn item(&self, x: u32) -> &Item<'a> {
        &self.items[x as usize]
    }

    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.items.len() as u32).collect();
        order.sort_by_key(|&x| (self.items[x as usize].known, x));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        self.items.sort_by_key(|item| item.known);
        for reading in &mut self.readings {
            if let Meaning::Item(x) | Meaning::Conflict(Some(x)) = &mut reading.meaning {
                *x = place[*x as usize];
            }
        }
    }
}

/// How often, and when first, each distinct event arrived. The table alone doesn't tell: the id of a reset or of a
/// cursor stands in it too.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) received: Vec<u32>,
    pub(super) first_seen: Vec<Elapsed>,
}

impl Survey {
    fn new(history: &History) -> Self {
        let mut survey = Self {
            received: vec![0; history.events.len()],
            first_seen: vec![Elapsed(u64::MAX); history.events.len()],
        };
        for client in &history.clients {
            for entry in client.entries(history) {
                if let Entry::Receipt(receipt) = entry {
                    let place = receipt.event.0 as usize;
                    survey.received[place] = survey.received[place].saturating_add(1);
                    survey.first_seen[place] = survey.first_seen[place].min(receipt.at);
                }
            }
        }
        survey
    }
}

/// Whether a publication may be stored though its last answer says otherwise: an earlier try's answer was lost.
fn uncertain(publication: &Publication) -> bool {
    match publication.fate {
        Fate::Acked => false,
        Fate::Unknown => true,
        Fate::Failed => publication.lost_answers > 0,
    }
}

/// Rules 10 to 12 and 18 where herd publishes: the number is the identity.
fn published<'a>(history: &'a History, survey: &Survey) -> Catalogue<'a> {
    let contents = Contents::new(history, survey);
    let mut readings = vec![
        Reading {
            meaning: Meaning::Nothing,
            reused: 0
        };
        history.events.len()
    ];
    // The events of each of this run's expected publications that are the right content of their id.
    let mut arrived: HashMap<Seq, Vec<EventIx>> = HashMap::new();
    for (place, event) in history.events.iter().enumerate() {
        let ix = EventIx(place as u32);
        let standing = contents.standing(ix);
        if let Standing::Reused(group) = standing {
            readings[place].reused = group;
        }
        readings[place].meaning = match event.seq.filter(|seq| history.header.owns(*seq)) {
            _ if standing == Standing::Wrong => Meaning::Conflict(None),
            None => Meaning::Foreign,
            Some(seq) => match history.publications.get(&seq) {
                None if unrecorded(history, survey.first_seen[place]) => Meaning::Nothing,
                None => Meaning::Unexpected,
                Some(p) if p.kind == PublicationKind::Priming => Meaning::Nothing,
                Some(p) if p.fate == Fate::Failed && !uncertain(p) => Meaning::Unexpected,
                Some(_) => {
                    if survey.received[place] > 0 {
                        arrived.entry(seq).or_default().push(ix);
                    }
                    Meaning::Nothing
                }
            },
        };
    }
    let mut items = Vec::new();
    let (mut double_stored, mut several_ids) = (0, 0);
    for publication in history.publications.values() {
        let events = arrived.remove(&publication.seq).unwrap_or_default();
        let expected = publication.fate == Fate::Acked || !events.is_empty();
        if publication.kind == PublicationKind::Priming || !expected {
            continue;
        }
        let item = item(history, survey, publication, &events);
        double_stored += u64::from(item.copies > 1 && under_two_ids(history, &events));
        several_ids += u64::from(item.copies == 1 && renamed(history, &events));
        for ix in &events {
            readings[ix.0 as usize].meaning = Meaning::Item(items.len() as u32);
        }
        items.push(item);
    }
    name_conflicts(history, &items, &mut readings);
    Catalogue {
        items,
        readings,
        double_stored,
        several_ids,
        anonymous: 0,
        not_contiguous: None,
    }
}

/// Finds the items whose ids came with another content and without a number.
fn name_conflicts(history: &History, items: &[Item<'_>], readings: &mut [Reading]) {
    let mut by_id = HashMap::new();
    for (reading, event) in readings.iter_mut().zip(&history.events) {
        if reading.meaning == Meaning::Conflict(None) && event.seq.is_none() {
            if by_id.is_empty() {
                let ids = items.iter().zip(0..);
                by_id.extend(ids.map(|(item, x)| ((item.epoch, item.id), x)));
            }
            let (epoch, id) = event.identity();
            // Nobody may have got it under an epoch.
            let x = by_id.get(&(epoch, id)).or_else(|| by_id.get(&(None, id)));
            reading.meaning = Meaning::Conflict(x.copied());
        }
    }
}

fn item<'a>(
    history: &'a History,
    survey: &Survey,
    publication: &'a Publication,
    events: &[EventIx],
) -> Item<'a> {
    let first_seen = events
        .iter()
        .map(|ix| survey.first_seen[ix.0 as usize])
        .min();
    let answered = publication.answered.unwrap_or(publication.sent);
    let certain = publication.lost_answers == 0;
    Item {
        seq: Some(publication.seq),
        id: publication.id.as_deref().or_else(|| {
            events
                .iter()
                .find_map(|ix| history.event(*ix).id.as_deref())
        }),
        epoch: events
            .iter()
            .find_map(|ix| history.event(*ix).epoch.as_deref()),
        order: events
            .iter()
            .find_map(|ix| history.event(*ix).order.as_deref()),
        known: match publication.fate {
            Fate::Acked => answered,
            Fate::Failed | Fate::Unknown => first_seen.unwrap_or(answered),
        },
        // Where no answer was lost, all earlier tries were refused for certain and only the last one can be it.
        start: if certain {
            publication.sent
        } else {
            publication.first_sent
        },
        // A try whose answer was lost may still be carried out, even after a later one.
        stored: (publication.fate == Fate::Acked && certain).then_some(answered),
        position: publication.position.filter(|_| certain),
        fate: if uncertain(publication) {
            Fate::Unknown
        } else {
            publication.fate
        },
        copies: if publication.tries > 1 {
            1 + publication.lost_answers
        } else {
            1
        },
    }
}

fn under_two_ids(history: &History, events: &[EventIx]) -> bool {
    let identity = |ix: EventIx| history.event(ix).identity();
    events.iter().any(|ix| identity(*ix) != identity(events[0]))
}

/// Whether one epoch has two ids for it. The same number in another epoch is expected to have another id.
fn renamed(history: &History, events: &[EventIx]) -> bool {
    let mut first: HashMap<Option<&str>, &str> = HashMap::new();
    events.iter().any(|ix| {
        let (epoch, id) = history.event(*ix).identity();
        id.is_some_and(|id| *first.entry(epoch).or_insert(id) != id)
    })
}

/// A number of this run without a publication is unexpected only where the record of publications is whole: not where a
/// shard is missing, nor for what arrived after the last moment that a killed herd had written down.
fn unrecorded(history: &History, first_seen: Elapsed) -> bool {
    history.shards.len() < history.header.shard.of as usize
        || (history.end().is_none() && first_seen > history.horizon)
}
