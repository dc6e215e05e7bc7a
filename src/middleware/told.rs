//! What was told of a moment ago, so that one fault is one event and not one a request.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::clock::Timestamp;

/// A small table without a lock. Two things that fall on one slot are told of more often, never less.
#[derive(Debug)]
pub(super) struct Told {
    slots: [AtomicU64; SLOTS],
    hasher: RandomState,
}

impl Default for Told {
    fn default() -> Self {
        Self { slots: [const { AtomicU64::new(0) }; SLOTS], hasher: RandomState::new() }
    }
}

impl Told {
    /// Whether this is the first time in a few minutes; then it counts as told.
    pub(super) fn is_new(&self, what: impl Hash, now: Timestamp) -> bool {
        let place = self.hasher.hash_one(&what);
        let mark = self.hasher.hash_one((place, now.as_millis() / SPAN_MILLIS));
        let slot = usize::try_from(place % SLOTS_U64).ok().and_then(|slot| self.slots.get(slot));
        slot.is_none_or(|slot| slot.swap(mark, Ordering::Relaxed) != mark)
    }
}

const SLOTS: usize = 256;
const SLOTS_U64: u64 = 256;

/// About as long as a session cookie is fresh.
const SPAN_MILLIS: u64 = 5 * 60 * 1000;
