//! One client's timer. A client whose profile needs none has none, and one whose deadline moves with every frame sets it
//! only when it goes off: setting a timer of the runtime costs more than a frame.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use crate::clock::Clock;

/// Nothing is allocated before the first deadline.
#[derive(Debug, Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits until `due`, counted from the run's beginning; none = for ever.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        due: Option<Duration>,
    ) -> Poll<()> {
        let Some(due) = due else {
            return Poll::Pending;
        };
        let at = clock.instant(due.into());
        loop {
            if clock.now().duration() >= due {
                return Poll::Ready(());
            }
            let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if sleep.deadline() > at {
                sleep.as_mut().reset(at);
            }
            ready!(sleep.as_mut().poll(cx));
            sleep.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn wait(alarm: &mut Alarm, clock: Clock, due: Option<u64>) -> Duration {
        poll_fn(|cx| alarm.poll(cx, &clock, due.map(Duration::from_millis))).await;
        clock.now().duration()
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_off_at_the_last_deadline_it_was_told() {
        let (clock, mut alarm) = (Clock::start(), Alarm::default());
        let half = Duration::from_millis(50);
        assert!(
            tokio::time::timeout(half, wait(&mut alarm, clock, Some(100)))
                .await
                .is_err()
        );
        // Later than it was set to, then earlier.
        let late = wait(&mut alarm, clock, Some(300)).await;
        assert_eq!(late.as_millis(), 300);
        assert!(
            tokio::time::timeout(half, wait(&mut alarm, clock, Some(900)))
                .await
                .is_err()
        );
        let early = wait(&mut alarm, clock, Some(500)).await;
        assert_eq!(early.as_millis(), 500);
        assert!(
            tokio::time::timeout(half, wait(&mut alarm, clock, None))
                .await
                .is_err()
        );
    }
}
