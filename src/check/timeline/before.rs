//! Whether a wave is a relapse where herd does not own the server. It knows who was dropped in the waves before, nothing of
//! time.

use std::collections::HashSet;

use super::least_judged;

/// The waves of an outage so far, as far as they tell whether the next one is a relapse where herd does not own the
/// server. There it sees connections and not processes, and pods rolled one after the other drop the same client more
/// than once: it comes back to a pod whose turn is yet to come. So having been dropped before proves nothing by itself.
#[derive(Debug, Default)]
pub(super) struct Before {
    seen: HashSet<usize>,
    last: HashSet<usize>,
    /// Whether one of them held the whole server.
    whole: bool,
}

impl Before {
    /// Whether a wave shows the server falling over again: all of it after all of it, or most of the wave's clients have
    /// just come back from a wave that held all of it, or the history says that the server died and most of them were
    /// dropped before.
    pub(super) fn fell_again(&self, wave: &HashSet<usize>, clients: usize, died: bool) -> bool {
        let most_of = |set| wave.intersection(set).count() * 2 > wave.len();
        self.whole && is_whole(wave.len(), clients)
            || is_whole(self.last.len(), clients) && most_of(&self.last)
            || died && most_of(&self.seen)
    }

    /// A few stray drops are no wave that another one could come back from.
    pub(super) fn add(&mut self, wave: HashSet<usize>, clients: usize) {
        self.whole |= is_whole(wave.len(), clients);
        self.seen.extend(&wave);
        if wave.len() >= least_judged(clients) {
            self.last = wave;
        }
    }
}

/// Whether a wave hit the whole server and not one pod of several: 95 % of the clients.
fn is_whole(wave: usize, clients: usize) -> bool {
    wave * 100 >= clients * 95
}
