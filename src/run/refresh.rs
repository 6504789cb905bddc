//! Which clients start anew in an outage, and when: drawn once, then ordered one after the other.
//!
//! Both are random numbers at an address of their own (seed, client, outage), so that any shard draws the same, and so that
//! who is refreshed has nothing to do with whom a cut takes, which goes by the clients' numbers. It knows nothing of what a
//! client does with the order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::backoff::Address;
use crate::client::Crew;
use crate::clock::Clock;
use crate::history::{ClientId, Elapsed, Memory};

/// Sets these draws apart from the delays' of the same seed.
const APART: u64 = 0x0072_6566_7265_7368;
/// Within what time they start anew where the outage has no length of its own.
const NO_LENGTH: Duration = Duration::from_secs(1);

/// The orders of one outage; they end with this.
#[derive(Debug)]
pub(super) struct Refreshing {
    /// When the last one is given.
    pub(super) until: Elapsed,
    orders: AbortHandle,
}

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.orders.abort();
    }
}

/// What is drawn for one outage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) seed: u64,
    /// Over all shards.
    pub(super) clients: u32,
    pub(super) outage: u32,
    /// 0 to 1.
    pub(super) share: f64,
}

impl Draw {
    fn number(&self, client: ClientId, which: u32) -> f64 {
        let address = Address {
            seed: self.seed ^ APART,
            client: client.0,
            drop: self.outage,
            attempt: which,
        };
        address.random()
    }

    /// The clients that start anew, by number: `clients x share`, rounded to the nearest (a half up), those with the
    /// smallest numbers.
    pub(super) fn chosen(&self) -> Vec<ClientId> {
        let part = (f64::from(self.clients) * self.share).round() as usize;
        let all = (1..=self.clients).map(ClientId);
        let mut drawn: Vec<_> = all.map(|client| (self.number(client, 0), client)).collect();
        drawn.sort_unstable_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
        drawn.truncate(part);
        let mut chosen: Vec<_> = drawn.into_iter().map(|(_, client)| client).collect();
        chosen.sort_unstable();
        chosen
    }

    /// How long after the outage's beginning a client starts anew: anywhere within its length.
    fn after(&self, client: ClientId, length: Duration) -> Duration {
        let length = match length.is_zero() {
            true => NO_LENGTH,
            false => length,
        };
        length.mul_f64(self.number(client, 1))
    }
}

/// Begins to order those of them that are this shard's, over an outage that began at `from` and has this length.
pub(super) fn begin(
    crew: &Arc<Crew>,
    clock: Clock,
    draw: Draw,
    memory: Memory,
    (from, length): (Elapsed, Duration),
) -> Refreshing {
    let chosen = draw.chosen();
    let mut orders: Vec<_> = crew
        .handles()
        .iter()
        .filter(|handle| chosen.binary_search(&handle.id()).is_ok())
        .map(|handle| (from + draw.after(handle.id(), length), handle.clone()))
        .collect();
    orders.sort_by_key(|(at, handle)| (*at, handle.id()));
    let until = orders.last().map_or(from, |(at, _)| *at);
    let task = tokio::spawn(async move {
        for (at, handle) in orders {
            tokio::time::sleep_until(clock.instant(at)).await;
            handle.refresh(memory);
        }
    });
    Refreshing {
        until,
        orders: task.abort_handle(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::chosen;

    fn draw(share: f64) -> Draw {
        Draw {
            seed: 9,
            clients: 200,
            outage: 1,
            share,
        }
    }

    #[test]
    fn exactly_the_share_is_chosen_and_the_same_each_time() {
        for (share, count) in [(0.1, 20), (0.0975, 20), (0.0, 0), (1.0, 200)] {
            assert_eq!(draw(share).chosen().len(), count, "{share}");
        }
        assert_eq!(draw(0.1).chosen(), draw(0.1).chosen());
        let second = Draw {
            outage: 2,
            ..draw(0.1)
        };
        assert_ne!(draw(0.1).chosen(), second.chosen());
    }

    #[test]
    fn who_is_refreshed_has_nothing_to_do_with_whom_a_cut_takes() {
        let both = |c: &&ClientId| chosen(**c, 200, 0.3);
        let cut = draw(0.3).chosen().iter().filter(both).count();
        // Independent draws have 18 of 60 in common; 8 to 30 are over three deviations either way.
        assert!((8..=30).contains(&cut), "{cut}");
    }

    #[test]
    fn they_start_anew_anywhere_within_the_outage() {
        let after = |length: u64| {
            let length = Duration::from_secs(length);
            let chosen = draw(1.0).chosen();
            let mut all: Vec<_> = chosen.iter().map(|c| draw(1.0).after(*c, length)).collect();
            all.sort_unstable();
            (all[0], all[199])
        };
        let ms = Duration::from_millis;
        let (first, last) = after(10);
        assert!(
            first < ms(500) && last > ms(9_500) && last < ms(10_000),
            "{first:?} {last:?}"
        );
        let (_, last) = after(0);
        assert!(last > ms(950) && last < ms(1_000), "{last:?}");
    }
}
