//! What the defects do to one resumed subscriber. Each act has its ledger line first, and one event has one defect at
//! most, so that each has its own count.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Cursor, Mark, Start};
use crate::server::defect::{Defect, Planted};
use crate::server::dialect::Item;
use crate::server::faults::{EPOCH, Faults};
use crate::server::log::{Event, State};

pub(super) struct Bite {
    faults: Arc<Faults>,
    client: u64,
    /// What the log held when it came; what is newer comes live.
    state: State,
    /// Events that aren't sent.
    mute: Vec<(Defect, RangeInclusive<u64>)>,
    /// Up to this id events are marked as sent again.
    again: u64,
    /// The last event of the replay, which a live one is to overtake.
    overtaken: Option<u64>,
    /// Held back until the next one was sent.
    held: Option<(Defect, Event)>,
}

impl Bite {
    pub(super) fn new(faults: Arc<Faults>, client: u64, state: State) -> Self {
        Self {
            faults,
            client,
            state,
            mute: Vec::new(),
            again: 0,
            overtaken: None,
            held: None,
        }
    }

    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    pub(super) fn release(&mut self) -> Option<Item> {
        self.held.take().map(|(_, event)| Item::Event(event))
    }

    fn has(&self, defect: Defect) -> bool {
        self.faults.planted(defect).is_some()
    }

    fn note(&self, defect: Defect, id: Option<u64>) -> bool {
        self.faults.note(defect, Some(self.client), id)
    }

    fn note_all(&self, defect: Defect, mut ids: RangeInclusive<u64>) -> bool {
        ids.all(|id| self.note(defect, Some(id)))
    }

    /// How the subscriber's way begins; `mark` is what it is without defects.
    pub(super) fn start(&mut self, after: &str, cursor: Cursor, mark: Mark) -> Start {
        if self.has(Defect::ResetAlways) && self.note(Defect::ResetAlways, None) {
            return Cursor::Unknown.start(self.state, mark);
        }
        let begin = |after, opening| Start {
            after,
            opening,
            mark,
        };
        if let Some(before) = self.faults.before()
            && let Ok(after) = after.parse()
            && let Some(after) = self.of_lost_ids(after, before)
        {
            return begin(after, None);
        }
        let evicted = self.state.evicted;
        match cursor {
            Cursor::Known(after) => self.resume(after, mark),
            Cursor::Unknown if self.spoils_start(Defect::UnknownIsNow) => {
                begin(self.state.newest, None)
            }
            Cursor::Unknown if self.spoils_start(Defect::SilentOldest) => begin(evicted, None),
            Cursor::Evicted(after) if self.skips(after) => begin(evicted, None),
            Cursor::Evicted(_) if self.spoils_start(Defect::PartialWithFlag) => {
                begin(evicted, Some(Item::Partly(evicted)))
            }
            Cursor::Evicted(_) | Cursor::Unknown => cursor.start(self.state, mark),
        }
    }

    fn spoils_start(&self, defect: Defect) -> bool {
        self.has(defect) && self.note(defect, None)
    }

    /// Says nothing of what is gone.
    fn skips(&self, after: u64) -> bool {
        let gone = after + 1..=self.state.evicted;
        [Defect::SkipEvicted, Defect::SilentOldest]
            .into_iter()
            .any(|defect| self.has(defect) && self.note_all(defect, gone.clone()))
    }

    /// A cursor of before the restart, where that made new ids: what it missed of the old ones went with them.
    fn of_lost_ids(&mut self, after: u64, before: u64) -> Option<u64> {
        let hidden = if self.has(Defect::IdsRestart) {
            // Of the new ones all up to its cursor stay hidden.
            (Defect::IdsRestart, after.saturating_add(1), 0..=after)
        } else if self.has(Defect::UnknownIsNow) && after <= before {
            let first = after.max(before / EPOCH * EPOCH) + 1;
            (Defect::UnknownIsNow, first, 0..=self.state.newest)
        } else {
            return None;
        };
        let (defect, first, hidden) = hidden;
        self.mute.push((defect, hidden));
        self.note_all(defect, first..=before)
            .then_some(self.state.evicted)
    }

    /// Goes on after a cursor that is known.
    fn resume(&mut self, after: u64, mark: Mark) -> Start {
        let mut start = Cursor::Known(after).start(self.state, mark);
        let faults = Arc::clone(&self.faults);
        for planted in faults.all() {
            let ids = self.muted(*planted, after);
            self.mute.extend(ids.map(|ids| (planted.defect, ids)));
            self.turn(*planted, after, &mut start);
        }
        start
    }

    /// Which events this defect keeps from a subscriber that goes on after this id.
    fn muted(&self, planted: Planted, after: u64) -> Option<RangeInclusive<u64>> {
        let newest = self.state.newest;
        let before = self.faults.before();
        match planted.defect {
            Defect::NeverCatchUp | Defect::LyingSession => Some(after + 1..=newest),
            Defect::ForgetLog => before
                .filter(|before| after <= *before)
                .map(|_| after + 1..=newest),
            Defect::LiveNotResubscribed => Some(newest + 1..=u64::MAX),
            Defect::GapAtHandoff => Some(newest + 1..=newest.saturating_add(planted.arg)),
            Defect::Zombie => before.map(|_| 0..=u64::MAX),
            Defect::LoseOnResume if newest - after >= 2 => {
                // Never the last one: while nothing newer has arrived, another resume would bring it after all.
                let draw = planted.draw(self.faults.seed(), self.client, after);
                let id = after + 1 + draw % (newest - after - 1);
                Some(id..=id)
            }
            _ => None,
        }
    }

    /// What else this defect does to the beginning.
    fn turn(&mut self, planted: Planted, after: u64, start: &mut Start) {
        let State { newest, evicted } = self.state;
        match planted.defect {
            Defect::DuplicateOnResume
                if after > evicted && self.note(planted.defect, Some(after)) =>
            {
                start.after = after - 1;
            }
            Defect::LegalRedelivery => {
                self.again = after;
                start.after = after.saturating_sub(planted.arg).max(evicted);
            }
            Defect::LiveOvertakes if newest > after => self.overtaken = Some(newest),
            Defect::LyingSession => {
                start.opening = Some(Item::CaughtUp(newest));
                start.mark = Mark::Never;
            }
            // Who never says that the replay is over tells no lie.
            Defect::NeverCatchUp => start.mark = Mark::Never,
            Defect::Zombie if self.faults.before().is_some() => start.mark = Mark::Never,
            Defect::DataBeforeAck if self.note(planted.defect, None) => {
                start.mark = Mark::AfterLive;
            }
            _ => {}
        }
    }

    /// Sends an event, or does to it what is planted.
    pub(super) fn pass(&mut self, event: Event, items: &mut Vec<Item>) {
        if event.id <= self.again {
            if self.note(Defect::LegalRedelivery, Some(event.id)) {
                items.push(Item::Again(event));
            }
            return;
        }
        if let Some((defect, _)) = self.mute.iter().find(|(_, ids)| ids.contains(&event.id))
            && self.note(*defect, Some(event.id))
        {
            return;
        }
        if let Some((defect, held)) = self.held.take() {
            return self.swap(defect, held, event, items);
        }
        if self.overtaken == Some(event.id) {
            self.held = Some((Defect::LiveOvertakes, event));
            return;
        }
        match self.spoils(event.id) {
            Some(Defect::Reorder) => self.held = Some((Defect::Reorder, event)),
            Some(defect) if self.note(defect, Some(event.id)) => spoil(defect, event, items),
            _ => items.push(Item::Event(event)),
        }
    }

    /// The next event goes before the held one. Where it overtook a replay it comes again behind that.
    fn swap(&self, defect: Defect, held: Event, next: Event, items: &mut Vec<Item>) {
        let named = if defect == Defect::LiveOvertakes {
            next.id
        } else {
            held.id
        };
        let (held, next) = (Item::Event(held), Item::Event(next));
        if !self.note(defect, Some(named)) {
            items.extend([held, next]);
        } else if defect == Defect::LiveOvertakes {
            items.extend([next.clone(), held, next]);
        } else {
            items.extend([next, held]);
        }
    }

    /// The defect that acts on this live event.
    fn spoils(&self, id: u64) -> Option<Defect> {
        if id <= self.state.newest {
            return None;
        }
        [
            Defect::LoseLive,
            Defect::DuplicateLive,
            Defect::CorruptFrame,
            Defect::Conflict,
            Defect::Reorder,
        ]
        .into_iter()
        .find(|defect| {
            self.faults
                .planted(*defect)
                .is_some_and(|planted| planted.hits(self.faults.seed(), self.client, id))
        })
    }
}

fn spoil(defect: Defect, event: Event, items: &mut Vec<Item>) {
    match defect {
        Defect::DuplicateLive => items.extend([Item::Event(event.clone()), Item::Event(event)]),
        Defect::CorruptFrame => items.push(Item::Half(event)),
        Defect::Conflict => {
            let other = Event::new(event.id, r#"{"conflict":true}"#);
            items.extend([Item::Event(event), Item::Event(other)]);
        }
        // Lost.
        _ => {}
    }
}
