//! What frames of the model server do to the client that they reach.

use super::conduct::Phase;
use super::model::Frame;
use super::world::{Step, World};
use crate::history::Elapsed;

impl World<'_> {
    pub(super) fn deliver(&mut self, at: Elapsed, client: usize, frames: &mut Vec<Frame>) {
        for frame in frames.drain(..) {
            match frame {
                Frame::Event(place) => self.event(at, client, place),
                Frame::Conflict(place) => {
                    let stored = self.model.stored(place);
                    let number = self.publisher.number(stored.seq);
                    let seen = self.table.conflict(stored, number);
                    self.peers[client].receipt(at, seen);
                }
                Frame::Cut(place) => {
                    let text = format!(r#"{{"id":"{}","type":"#, self.model.stored(place).id);
                    self.peers[client].unread(at, text);
                }
                Frame::Again(place) => {
                    let stored = self.model.stored(place);
                    let number = self.publisher.number(stored.seq);
                    let seen = self.table.again(stored, number);
                    self.peers[client].receipt(at, seen);
                }
                Frame::CaughtUp => self.peers[client].marker(at),
                Frame::Reset(id) => {
                    let event = self.table.reset(id);
                    let (model, publisher) = (&self.model, &self.publisher);
                    let stored = (0..model.len()).map(|place| model.stored(place));
                    let covered = stored
                        .filter(|stored| stored.id <= id)
                        .map(|stored| publisher.number(stored.seq));
                    self.peers[client].reset(at, event, id, covered);
                }
            }
        }
    }

    fn event(&mut self, at: Elapsed, client: usize, place: usize) {
        let stored = self.model.stored(place);
        let number = self.publisher.number(stored.seq);
        let seen = self.table.seen(place, stored, number);
        let peer = &mut self.peers[client];
        let first = peer.receipt(at, seen);
        match self.phase {
            Phase::Priming if first => {
                self.priming.resize(self.model.len(), 0);
                self.priming[place] += 1;
                if self.priming[place] == self.peers.len() && self.primed.is_none() {
                    self.primed = Some(at + self.slowest);
                    self.queue.push(at + self.slowest, Step::Primed);
                }
            }
            Phase::Outage { .. } => {
                self.others_receive.get_or_insert(at);
            }
            _ => {}
        }
    }
}
