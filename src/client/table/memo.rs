//! What each distinct frame decoded to: a ring of the last ones, each known by its hash. It knows no event and no profile.

use std::collections::HashMap;

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::Parts;
use crate::profile::Carried;
use crate::transport::{Frame, Kind};

/// A client's guess at the next frame: what it read last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guess(pub(super) usize);

/// The ring of remembered frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) ring: Vec<(u128, Parts)>,
    pub(super) index: HashMap<u128, usize>,
    next: usize,
}

/// What a frame is known by. What every client of a plain profile gets costs one hash of the bytes.
pub(super) fn key(frame: Frame<'_>, carried: Carried) -> u128 {
    let on = match carried {
        Carried::Nothing => 0,
        Carried::Cursor => 1,
    };
    match frame.kind {
        Kind::Text => xxh3_128_with_seed(frame.bytes, on),
        Kind::Binary => xxh3_128_with_seed(frame.bytes, 2 + on),
        Kind::Event { name, id, has_data } => {
            let mut parts = [0; 50];
            parts[..16].copy_from_slice(&xxh3_128(frame.bytes).to_le_bytes());
            parts[16..32].copy_from_slice(&xxh3_128(name.as_bytes()).to_le_bytes());
            parts[32..48]
                .copy_from_slice(&xxh3_128(id.unwrap_or_default().as_bytes()).to_le_bytes());
            parts[48] = u8::from(id.is_some()) | u8::from(has_data) << 1;
            parts[49] = on as u8;
            xxh3_128_with_seed(&parts, 4)
        }
    }
}

impl Frames {
    pub(super) fn find(&self, hash: u128, guess: Guess, capacity: usize) -> Option<usize> {
        let next = (guess.0 + 1) % capacity;
        match self.ring.get(next) {
            Some((known, _)) if *known == hash => Some(next),
            _ => self.index.get(&hash).copied(),
        }
    }

    /// Where it stands now: another client may have been faster.
    pub(super) fn remember(&mut self, hash: u128, parts: &Parts, capacity: usize) -> usize {
        if let Some(at) = self.index.get(&hash) {
            return *at;
        }
        let at = self.next;
        let slot = (hash, parts.clone());
        if let Some(old) = self.ring.get_mut(at) {
            self.index.remove(&old.0);
            *old = slot;
        } else {
            self.ring.push(slot);
        }
        self.index.insert(hash, at);
        self.next = (at + 1) % capacity;
        at
    }
}
