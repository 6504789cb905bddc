//! What shards of one run have to agree on before they can be judged as one: when it was, when everybody was primed, how
//! it ended.
//!
//! Each process counts from its own beginning; the wall clocks of their headers put these on one line. It knows nothing
//! of bytes, and what the records mean only as far as that.

use std::time::Duration;

use super::FileError;
use crate::history::{Client, Elapsed, End, History, Mark, PublicationKind};

/// Shards that began further apart than this were not one run, or their machines' clocks differ.
const APART: Duration = Duration::from_secs(3600);

/// Counts all parts' instants from the beginning of the earliest.
///
/// # Errors
/// They began too far apart.
pub(super) fn clocks(parts: &mut [History]) -> Result<(), FileError> {
    let began = |part: &History| part.header.started_unix_us;
    let Some(earliest) = parts.iter().map(began).min() else {
        return Ok(());
    };
    for part in parts {
        let by = Duration::from_micros(began(part) - earliest);
        if by > APART {
            return Err(FileError::Mismatch(format!(
                "the shards began {} s apart; give the shards of one run, and set their machines' clocks",
                by.as_secs()
            )));
        }
        part.header.started_unix_us = earliest;
        if !by.is_zero() {
            postpone(part, by);
        }
    }
    Ok(())
}

fn postpone(part: &mut History, by: Duration) {
    let later = |at: &mut Elapsed| *at = *at + by;
    later(&mut part.horizon);
    part.marks.iter_mut().for_each(|(at, _)| later(at));
    for p in part.publications.values_mut() {
        let sent = [&mut p.due, &mut p.first_sent, &mut p.sent];
        sent.into_iter().chain(&mut p.answered).for_each(later);
    }
    for client in &mut part.clients {
        postpone_client(client, by);
    }
}

fn postpone_client(client: &mut Client, by: Duration) {
    let later = |at: &mut Elapsed| *at = *at + by;
    client.shift += by;
    for a in &mut client.attempts {
        let dialled = [&mut a.due, &mut a.dialled, &mut a.ended];
        dialled.into_iter().chain(&mut a.connected).for_each(later);
    }
    for s in &mut client.sessions {
        let opened = [&mut s.dialled, &mut s.opened];
        opened.into_iter().chain(&mut s.marker).for_each(later);
        s.closed.iter_mut().for_each(|(at, _)| later(at));
        s.refused.iter_mut().for_each(|(at, _)| later(at));
        s.silent_since.iter_mut().for_each(later);
    }
    client.quit.iter_mut().for_each(|(at, _)| later(at));
    let said = client.unread.iter_mut().chain(&mut client.refused_dials);
    said.for_each(|(at, _)| later(at));
    client.traced.iter_mut().for_each(|t| later(&mut t.at));
    client.lacking.iter_mut().for_each(|(at, _)| later(at));
    client.retry_after.iter_mut().for_each(|(at, _)| later(at));
    client.refreshed.iter_mut().for_each(|(at, _)| later(at));
    for r in &mut client.reloads {
        [&mut r.asked, &mut r.ended].into_iter().for_each(later);
    }
}

/// What holds for the whole because of what each part says.
pub(super) struct Common {
    parts: usize,
    /// When the last shard's clients were primed; none where one's never were.
    primed: Option<Elapsed>,
    /// The worst end; none where a part has none.
    end: Option<End>,
}

impl Common {
    /// Of parts whose clocks are aligned.
    pub(super) fn of(parts: &[History]) -> Self {
        let primed = |part: &History| {
            let mut marks = part.marks.iter();
            marks.find_map(|(at, mark)| (*mark == Mark::Primed).then_some(*at))
        };
        let primed: Option<Vec<_>> = parts.iter().map(primed).collect();
        let ends: Option<Vec<_>> = parts.iter().map(History::end).collect();
        Self {
            parts: parts.len(),
            primed: primed.and_then(|all| all.into_iter().max()),
            end: ends.and_then(|all| all.into_iter().max_by_key(|end| badness(end)).cloned()),
        }
    }

    /// Rule 9 over all shards: what was sent before everybody was primed counts for nothing. And a run whose one shard was
    /// cut is a cut one, however the others ended.
    pub(super) fn impose(self, whole: &mut History) {
        if self.parts < 2 {
            return;
        }
        let early = |sent: Elapsed| self.primed.is_none_or(|primed| sent < primed);
        for p in whole.publications.values_mut() {
            if early(p.first_sent) {
                p.kind = PublicationKind::Priming;
            }
        }
        let last = whole.marks.last().map_or(whole.horizon, |(at, _)| *at);
        whole
            .marks
            .retain(|(_, mark)| !matches!(mark, Mark::End(_)));
        whole
            .marks
            .extend(self.end.map(|end| (last, Mark::End(end))));
    }
}

/// In the order of the exit codes' precedence.
fn badness(end: &End) -> u8 {
    match end {
        End::Complete => 0,
        End::NotConnected { .. } | End::NotPrimed { .. } | End::NoRestart => 1,
        End::Broken { .. } => 2,
        End::Interrupted { .. } => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::super::merge;
    use crate::history::build::Builder;
    use crate::history::{Elapsed, End, Entry, History, Mark, Memory, PublicationKind, Shard};

    /// Client `index` of two, whose shard began `began` ms after the other's; the first one publishes.
    fn part(index: u32, began: u64) -> History {
        let mut builder = Builder::new(2).mark(50, Mark::Primed);
        if index == 1 {
            builder = builder.acked_every(1..=3, 60, 100);
        }
        let mut part = builder
            .client(index, |c| {
                c.open(10).got(100, 1).refused(150, "gone").dropped(200);
                c.retry_after(160, 3_000).refused(250, "410");
                c.traced(170, 2).silent(180);
                c.refreshed(260, Memory::Lost).reloaded(270, 5, 200);
            })
            .end(900);
        part.header.shard = Shard { index, of: 2 };
        part.shards = vec![part.header.shard];
        part.clients.retain(|c| c.id.0 == index);
        part.header.started_unix_us += began * 1000;
        part
    }

    #[test]
    fn instants_count_from_the_earliest_beginning() {
        for parts in [[part(1, 0), part(2, 70)], [part(2, 70), part(1, 0)]] {
            let whole = merge(parts.into()).unwrap();
            let opened: Vec<_> = whole.clients.iter().map(|c| c.sessions[0].opened).collect();
            assert_eq!(opened, [11, 81].map(Elapsed::from_millis));
            for client in &whole.clients {
                let shift = client.sessions[0].opened.micros() - 11_000;
                let (at, _) = client.sessions[0].refused.as_ref().unwrap();
                let told = [
                    *at,
                    client.retry_after[0].0,
                    client.traced[0].at,
                    client.refused_dials[0].0,
                ];
                assert_eq!(
                    told,
                    [150, 160, 170, 250].map(|ms| Elapsed(ms * 1_000 + shift))
                );
                let anew = [
                    client.sessions[0].silent_since.unwrap(),
                    client.refreshed[0].0,
                    client.reloads[0].asked,
                    client.reloads[0].ended,
                ];
                assert_eq!(
                    anew,
                    [180, 260, 270, 275].map(|ms| Elapsed(ms * 1_000 + shift))
                );
            }
            let received = whole.clients.iter().map(|c| {
                c.entries(&whole).find_map(|entry| match entry {
                    Entry::Receipt(receipt) => Some(receipt.at),
                    _ => None,
                })
            });
            let wanted = [100, 170].map(|ms| Some(Elapsed::from_millis(ms)));
            assert_eq!(received.collect::<Vec<_>>(), wanted);
            // The second shard was primed at 120 ms: what was sent before counts for nothing.
            let kinds: Vec<_> = whole.publications.values().map(|p| p.kind).collect();
            use PublicationKind::{Expected, Priming};
            assert_eq!(kinds, [Priming, Expected, Expected]);
        }
    }

    #[test]
    fn a_cut_or_interrupted_shard_cuts_the_whole() {
        let with_end = |end: Option<End>| {
            let mut other = part(2, 0);
            other
                .marks
                .retain(|(_, mark)| !matches!(mark, Mark::End(_)));
            other
                .marks
                .extend(end.map(|end| (Elapsed::from_millis(300), Mark::End(end))));
            merge(vec![part(1, 0), other]).unwrap().end().cloned()
        };
        let interrupted = End::Interrupted { terminated: false };
        assert_eq!(with_end(None), None);
        assert_eq!(with_end(Some(interrupted.clone())), Some(interrupted));
        assert_eq!(with_end(Some(End::Complete)), Some(End::Complete));
    }

    #[test]
    fn shards_that_began_hours_apart_are_refused() {
        let said = merge(vec![part(1, 0), part(2, 4_000_000)]).unwrap_err();
        assert!(said.to_string().contains("4000 s apart"), "{said}");
    }
}
