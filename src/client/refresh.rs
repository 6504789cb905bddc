//! A client that starts anew, as a browser's tab does that is closed and opened again.
//!
//! When, and which of them, is the conductor's business; what the server owes to one that forgot everything, the judge's.

use super::Client;
use super::handle::Status;
use super::machine::{Action, Input};
use super::table::{Cursor, Guess};
use crate::history::{Cause, Elapsed, Memory};
use crate::profile::Talk;
use crate::transport::Connection;

impl Client<'_> {
    /// The open session ends here: nobody waits for the server's answer, as nobody is left who could.
    pub(super) async fn closed_as_a_tab(
        &mut self,
        connection: Connection,
        memory: Memory,
    ) -> Action {
        let at = self.now();
        connection.go_away();
        {
            let mut state = self.handle.lock();
            state.recorder.closed(at, Cause::Refreshed);
            state.progress.dropped = Some(at);
        }
        self.status(Status::Reconnecting);
        self.tell_cursor(at);
        self.refresh(at, memory)
    }

    /// It has no connection any more: what it still knows, and its first dial.
    pub(super) fn refresh(&mut self, at: Elapsed, memory: Memory) -> Action {
        self.handle.refreshing();
        if memory == Memory::Lost {
            self.talk = Talk::new(self.crew.plan.profile());
            (self.cursor, self.guess) = (Cursor::None, Guess::default());
        }
        {
            let mut state = self.handle.lock();
            state.recorder.refreshed(at, memory);
            if memory == Memory::Lost {
                // What was published until it is back is not owed to it.
                state.progress.last_reset = Some(at);
                state.progress.has_cursor = false;
            }
        }
        let input = Input::Refresh { due: at, memory };
        self.machine.on(at, input, self.policy)
    }
}
