//! An outage of several falls as a whole: the load of all its waves together, and the recovery after the last fall. Its
//! parts are judged as waves, each by itself; what is here finds what lies across them.

use std::time::Duration;

use super::facts::count_clients;
use super::measure::{self, Measured, Part, reconnect};
use crate::check::timeline::OutageSpan;
use crate::check::{Return, Timeline};
use crate::history::{Elapsed, History};

/// All dials of an outage with several falls, for its peak: a share of all its clients.
pub(super) fn whole(
    history: &History,
    timeline: &Timeline,
    outage: &OutageSpan,
    waves: &[Measured],
) -> Option<Measured> {
    if outage.falls.len() < 2 {
        return None;
    }
    let rows = timeline.of_outage(outage.outage);
    let window = history.header.terms.peak_window;
    let mut whole = Measured::of(history, rows, Part::Whole, window);
    // The shortest time down has the highest honest peak.
    whole.down = waves.iter().map(|wave| wave.down).min()?;
    // Whoever is dropped twice within a window dials twice in it, and no policy can help it.
    whole.at_once = most_at_once(outage, window);
    Some(whole)
}

/// The most falls that begin in one window.
fn most_at_once(outage: &OutageSpan, window: Duration) -> u32 {
    let begun = outage.falls.iter().map(|fall| fall.at).collect();
    measure::busiest(begun, window).max(1) as u32
}

/// Everybody who was away when the server fell for the last time, or lost the connection with it. Only where all servers
/// fell together: else there was always one to come back to, and the last fall's wave is all there is.
pub(super) fn last(
    history: &History,
    timeline: &Timeline,
    outage: &OutageSpan,
) -> Option<Measured> {
    let fall = outage.falls.last()?;
    if outage.falls.len() < 2 || outage.falls.iter().any(|fall| fall.target.is_some()) {
        return None;
    }
    let begun = fall.gone.unwrap_or(fall.at);
    let after =
        |row: &&Return| reconnect(history, row).is_none_or(|attempt| attempt.dialled >= begun);
    let rows: Vec<Return> = timeline
        .of_outage(outage.outage)
        .iter()
        .filter(after)
        .cloned()
        .collect();
    let window = history.header.terms.peak_window;
    let mut last = Measured::of(history, &rows, Part::Last, window);
    // Of those who had been away before, only what follows is looked at.
    let drops = rows.iter().map(|row| row.dropped.max(fall.at)).collect();
    last.down = measure::down(history, &rows, drops, fall.ready);
    let enough = |n: u32| n as usize * 20 >= history.clients.len() && n >= 2;
    enough(count_clients(rows.iter())).then_some(last)
}

/// When the last of several falls was over; none where there is one fall, or it never was.
pub(super) fn over(outage: &OutageSpan) -> Option<Elapsed> {
    let several = outage.falls.len() > 1;
    outage.falls.last().filter(|_| several)?.ready
}
