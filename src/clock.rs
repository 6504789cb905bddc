//! The run's clock: the only place that reads the time. It knows no wall clock and no other part of herd than the unit
//! in which histories tell instants.

use tokio::time::Instant;

use crate::history::Elapsed;

/// Tells the time since the run began, on the monotonic clock. Copies tell the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// The run begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: read() }
    }

    /// The time since the run began, in whole microseconds.
    #[must_use]
    pub fn now(&self) -> Elapsed {
        Elapsed::from(read().duration_since(self.origin))
    }

    /// The runtime's name for an instant of the run, to sleep until it.
    #[must_use]
    pub fn instant(&self, at: Elapsed) -> Instant {
        self.origin + at.duration()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else asks"
)]
fn read() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_counts_from_its_start_and_names_instants() {
        let clock = Clock::start();
        assert_eq!(clock.now(), Elapsed::ZERO);
        tokio::time::advance(Duration::from_micros(2_500)).await;
        assert_eq!(clock.now(), Elapsed(2_500));
        tokio::time::sleep_until(clock.instant(Elapsed::from_millis(40))).await;
        // The runtime's timers count whole milliseconds and never fire early.
        assert!(clock.now().since(Elapsed::from_millis(40)) < Duration::from_millis(1));
        assert!(clock.now() >= Elapsed::from_millis(40));
    }
}
