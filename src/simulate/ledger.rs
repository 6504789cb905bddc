//! What the model server did wrong, counted where it did it.
//!
//! Tests compare these numbers with the verdict's, so nothing here is computed from a history.

use std::collections::BTreeSet;

use crate::history::{ClientId, Seq};

/// The acts of one run's fault. All zero where there is none, but for `resets` and `covered`, which an honest server
/// causes too when it keeps too little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Pairs that were withheld and not sent by a later replay either.
    pub withheld: BTreeSet<(ClientId, Seq)>,
    /// Events sent again on a connection, or again after a resume from them.
    pub duplicated: u64,
    /// Neighbours swapped.
    pub reordered: u64,
    /// Events sent again and marked so.
    pub redelivered: u64,
    /// Subscribers that were told that they have caught up only after a live event.
    pub late_acks: u64,
    /// Ids sent again with another content.
    pub conflict: u64,
    /// Frames cut short.
    pub corrupt: u64,
    /// Reset frames sent.
    pub resets: u64,
    /// Pairs that were missing at a reset and are covered by it.
    pub covered: u64,
    /// Clients that are refused.
    pub refused: BTreeSet<ClientId>,
    /// Connections accepted and closed at once.
    pub flapped: u64,
    /// Accepts that had to wait.
    pub queued: u64,
    /// Sockets left open with nobody behind them.
    pub half_open: u64,
    /// Deaths that nobody asked for.
    pub died: u64,
    /// Publications acknowledged and not stored.
    pub acked_not_stored: u64,
}

impl Ledger {
    /// Pairs that no client will ever get.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.withheld.len() as u64
    }
}
