//! What the conductor and the history's writer see of a running client, and the few orders that it takes.
//!
//! The lock is the client's own: nobody else wants it but for a moment each second. No socket and no policy here.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;

use super::numbers::Numbers;
use crate::history::record::{Growth, Recorder};
use crate::history::{ClientId, Elapsed, Memory, Seq};

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// It was never connected yet.
    #[default]
    Connecting,
    /// Its connection is open.
    Connected,
    /// It lost its connection and is waiting to dial, or dialling.
    Reconnecting,
    /// Its policy allows no further attempt.
    GaveUp,
}

/// A client's state at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Where it stands.
    pub status: Status,
    /// Sessions opened so far; the number of the current one, from 1.
    pub sessions: u32,
    /// When the current or last session was opened.
    pub opened: Option<Elapsed>,
    /// When the last connection was lost.
    pub dropped: Option<Elapsed>,
    /// When the last event arrived, whichever it was.
    pub last_receipt: Option<Elapsed>,
    /// When the server last told it to reload.
    pub last_reset: Option<Elapsed>,
    /// Whether it holds a cursor to resume from.
    pub has_cursor: bool,
    /// Whether the profile's opening still waits for an answer of the server's.
    pub opening: bool,
    /// Whether its request for the full state is under way.
    pub reloading: bool,
}

/// Why a client is to end what it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The run is over.
    Stop,
    /// It starts anew, whatever it is doing.
    Refresh(Memory),
    /// The session is open but silent (rule 5 of judgement).
    HalfOpen,
}

/// One client as others see it.
#[derive(Debug)]
pub struct Handle {
    id: ClientId,
    state: Mutex<State>,
    orders: Orders,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) recorder: Recorder,
    pub(super) progress: Progress,
    pub(super) numbers: Numbers,
    /// Of herd's numbers, those that stood in frames that were not read as their events.
    pub(super) traced: Numbers,
    pub(super) unread: Option<Box<str>>,
}

/// Orders to the client's task: a number to look at for each frame and a waker for when there are none.
#[derive(Debug, Default)]
struct Orders {
    /// 0 = none, [`STOP`], or the session (from 1) to be closed as half-open.
    pending: AtomicU32,
    /// 0 = none, [`KEPT`] or [`LOST`]: it is to start anew so. Beside the other orders, because it holds in any state and
    /// is taken but once.
    refresh: AtomicU8,
    waker: AtomicWaker,
}

const KEPT: u8 = 1;
const LOST: u8 = 2;

const STOP: u32 = u32::MAX;

impl Handle {
    pub(super) fn new(id: ClientId) -> Self {
        Self {
            id,
            state: Mutex::default(),
            orders: Orders::default(),
        }
    }

    /// Whose it is.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// Its state now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.lock().progress
    }

    /// What its record grew by since the last call.
    #[must_use]
    pub fn take(&self) -> Growth {
        self.lock().recorder.take()
    }

    /// Whether it received herd's number `seq`, in any session.
    #[must_use]
    pub fn has(&self, seq: Seq) -> bool {
        self.lock().numbers.contains(seq.0)
    }

    /// Which of herd's numbers `first..=last` it never received, as ranges in ascending order.
    #[must_use]
    pub fn missing(&self, first: Seq, last: Seq) -> Vec<RangeInclusive<u64>> {
        self.lock().numbers.missing(first.0..=last.0)
    }

    /// The first frame that it could not read, cut and made safe.
    #[must_use]
    pub fn unread(&self) -> Option<Box<str>> {
        self.lock().unread.clone()
    }

    /// Orders it to close its session with this number (from 1, [`Progress::sessions`]) as half-open. If that session has
    /// ended meanwhile, nothing happens.
    pub fn close_half_open(&self, session: u32) {
        let orders = &self.orders.pending;
        // An order to stop stays.
        let replace = |pending| (pending != STOP).then_some(session.min(STOP - 1));
        if orders.fetch_update(SeqCst, SeqCst, replace).is_ok() {
            self.orders.waker.wake();
        }
    }

    /// Orders it to start anew, as a tab does that is closed and opened again. One that has stopped for good stays so.
    pub fn refresh(&self, memory: Memory) {
        let order = match memory {
            Memory::Kept => KEPT,
            Memory::Lost => LOST,
        };
        self.orders.refresh.store(order, SeqCst);
        self.orders.waker.wake();
    }

    /// Orders it to end: it says goodbye to its server and its task ends.
    pub fn stop(&self) {
        self.orders.pending.store(STOP, SeqCst);
        self.orders.waker.wake();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The order that applies to a session (0 = none is open).
    pub(super) fn order(&self, session: u32) -> Option<Order> {
        let pending = self.orders.pending.load(SeqCst);
        if pending == STOP {
            return Some(Order::Stop);
        }
        match self.orders.refresh.load(SeqCst) {
            KEPT => Some(Order::Refresh(Memory::Kept)),
            LOST => Some(Order::Refresh(Memory::Lost)),
            _ => (pending != 0 && pending == session).then_some(Order::HalfOpen),
        }
    }

    /// The client obeys its order to start anew.
    pub(super) fn refreshing(&self) {
        self.orders.refresh.store(0, SeqCst);
    }

    /// Waits for an order that applies. Only the client's own task may wait: there is one place for a waker.
    pub(super) fn poll_order(&self, cx: &mut Context<'_>, session: u32) -> Poll<Order> {
        self.orders.waker.register(cx.waker());
        self.order(session).map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_for_one_session_and_a_stop_is_for_ever() {
        let handle = Handle::new(ClientId(1));
        assert_eq!(handle.order(1), None);
        handle.close_half_open(2);
        assert_eq!(handle.order(1), None);
        assert_eq!(handle.order(2), Some(Order::HalfOpen));
        assert_eq!(handle.order(3), None);
        handle.stop();
        handle.close_half_open(3);
        assert_eq!(handle.order(3), Some(Order::Stop));
        assert_eq!(handle.order(0), Some(Order::Stop));
    }

    #[test]
    fn an_order_to_start_anew_holds_in_any_state_until_it_is_obeyed() {
        let handle = Handle::new(ClientId(1));
        handle.refresh(Memory::Lost);
        handle.close_half_open(2);
        assert_eq!(handle.order(0), Some(Order::Refresh(Memory::Lost)));
        assert_eq!(handle.order(2), Some(Order::Refresh(Memory::Lost)));
        handle.refreshing();
        assert_eq!(handle.order(0), None);
        assert_eq!(handle.order(2), Some(Order::HalfOpen));
        handle.refresh(Memory::Kept);
        handle.stop();
        assert_eq!(handle.order(0), Some(Order::Stop));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_client_is_woken() {
        let handle = std::sync::Arc::new(Handle::new(ClientId(1)));
        let waiting = tokio::spawn({
            let handle = handle.clone();
            async move { std::future::poll_fn(|cx| handle.poll_order(cx, 1)).await }
        });
        tokio::task::yield_now().await;
        handle.close_half_open(1);
        assert_eq!(waiting.await.unwrap(), Order::HalfOpen);
    }
}
