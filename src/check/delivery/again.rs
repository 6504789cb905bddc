//! Which duplicates the protocol allows: those count as redelivered and are in no gate. It knows of one client which
//! session brought an item last, nothing of order or deadlines.

use crate::history::{Client, Duplicates, History, Receipt};

/// One client's duplicates.
#[derive(Debug)]
pub(super) struct Again {
    allowed: Duplicates,
    /// By item: the number of the session, from 1, that brought it last; empty where that doesn't matter.
    last: Vec<u32>,
}

impl Again {
    pub(super) fn new(allowed: Duplicates, items: usize) -> Self {
        let tracked = match allowed {
            Duplicates::OnResume => items,
            Duplicates::Forbidden | Duplicates::Marked => 0,
        };
        Self {
            allowed,
            last: vec![0; tracked],
        }
    }

    /// An item arrived that the client lacked, or as a copy that the publisher made.
    pub(super) fn first(&mut self, x: u32, receipt: Receipt) {
        if let Some(last) = self.last.get_mut(x as usize) {
            *last = receipt.session as u32 + 1;
        }
    }

    /// Whether an item that the client has may arrive again so. A resume may bring what an earlier session brought, but
    /// only once.
    pub(super) fn is_allowed(
        &mut self,
        history: &History,
        client: &Client,
        x: u32,
        receipt: Receipt,
    ) -> bool {
        match self.allowed {
            Duplicates::Forbidden => false,
            Duplicates::Marked => history.event(receipt.event).redelivered,
            Duplicates::OnResume => {
                let session = client.sessions.get(receipt.session);
                let resumed = session.is_some_and(|s| s.resumed_from.is_some());
                let earlier = self.last[x as usize] <= receipt.session as u32;
                self.first(x, receipt);
                resumed && earlier
            }
        }
    }
}
