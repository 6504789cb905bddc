//! Rule 20: what there was to deliver where others publish. The id is the identity, and what exists is what anybody
//! got, so this shows whether clients agree, not what none of them got. Only ids that the user declares to have no
//! holes show that too: each hole is then an item that nobody received.

use std::collections::{BTreeMap, HashMap};

use super::catalogue::{Catalogue, Item, Meaning, Reading, Survey};
use super::contents::{Contents, Standing};
use crate::history::{Elapsed, Fate, History, IdKind};

/// More holes than this in ids declared contiguous, and the declaration is what's wrong.
const MAX_HOLES: u128 = 100_000;

/// The items and meanings of an observed history; items are not sorted yet.
pub(super) fn observed<'a>(history: &'a History, survey: &Survey) -> Catalogue<'a> {
    let contents = Contents::new(history, survey);
    let mut catalogue = Catalogue {
        items: Vec::new(),
        readings: Vec::with_capacity(history.events.len()),
        double_stored: 0,
        several_ids: 0,
        anonymous: 0,
        not_contiguous: None,
    };
    let mut by_identity: HashMap<_, u32> = HashMap::new();
    for (place, event) in history.events.iter().enumerate() {
        use crate::history::EventIx;
        let wrong = contents.standing(EventIx(place as u32)) == Standing::Wrong;
        let meaning = match event.id.as_deref() {
            _ if survey.received[place] == 0 => Meaning::Nothing,
            _ if wrong => Meaning::Conflict(None),
            None => {
                // Equal contents may be two events: without an id nothing tells a duplicate from a repetition.
                catalogue.anonymous += u64::from(survey.received[place]);
                Meaning::Nothing
            }
            Some(_) => {
                let items = &mut catalogue.items;
                let x = *by_identity.entry(event.identity()).or_insert_with(|| {
                    items.push(seen(event.identity(), survey.first_seen[place]));
                    items.len() as u32 - 1
                });
                let known = &mut items[x as usize].known;
                *known = (*known).min(survey.first_seen[place]);
                Meaning::Item(x)
            }
        };
        catalogue.readings.push(Reading { meaning, reused: 0 });
    }
    if history.header.terms.contiguous {
        add_holes(history, &mut catalogue);
    }
    catalogue
}

fn seen<'a>((epoch, id): (Option<&'a str>, Option<&'a str>), known: Elapsed) -> Item<'a> {
    Item {
        seq: None,
        id,
        epoch,
        order: None,
        known,
        start: Elapsed::ZERO,
        stored: None,
        position: None,
        fate: Fate::Acked,
        copies: 1,
    }
}

/// A hole was there to deliver at the latest when the next id was first seen. Each epoch numbers by itself.
fn add_holes(history: &History, catalogue: &mut Catalogue<'_>) {
    if history.header.terms.ids != IdKind::Integer {
        catalogue.not_contiguous = Some("only integer ids can be declared contiguous".into());
        return;
    }
    let mut numbers: BTreeMap<Option<&str>, BTreeMap<u128, Elapsed>> = BTreeMap::new();
    for item in &catalogue.items {
        if let Some(number) = item.id.and_then(|id| id.parse().ok()) {
            let epoch = numbers.entry(item.epoch).or_default();
            epoch.insert(number, item.known);
        }
    }
    if numbers.values().map(BTreeMap::len).sum::<usize>() < catalogue.items.len() {
        catalogue.not_contiguous =
            Some("ids were declared contiguous, but not all of them are integers".into());
        return;
    }
    let neighbours = || {
        let of = |epoch: &Option<_>, numbers: &'_ BTreeMap<u128, Elapsed>| {
            let next = numbers.iter().skip(1);
            let pairs = numbers
                .keys()
                .zip(next)
                .map(|(a, (b, known))| (*a, *b, *known));
            pairs.map(|pair| (*epoch, pair)).collect::<Vec<_>>()
        };
        numbers
            .iter()
            .flat_map(move |(epoch, numbers)| of(epoch, numbers))
    };
    let holes: u128 = neighbours().map(|(_, (a, b, _))| b - a - 1).sum();
    if holes > MAX_HOLES {
        catalogue.not_contiguous = Some(format!(
            "ids were declared contiguous, but {holes} are missing between the lowest and the highest"
        ));
        return;
    }
    for (epoch, (a, b, known)) in neighbours() {
        for _ in a + 1..b {
            catalogue.items.push(seen((epoch, None), known));
        }
    }
}
