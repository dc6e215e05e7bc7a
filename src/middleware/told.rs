//! Which sessions' changed clients were told of a moment ago, so that one change is one event and not one a request.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{clock::Timestamp, id::StoredId, session::ContextSignal};

/// A small table without a lock. Two sessions that fall on one slot are told of more often, never less.
#[derive(Debug)]
pub(super) struct Told([AtomicU64; SLOTS]);

impl Default for Told {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }
}

impl Told {
    /// Whether this is the first time in a few minutes; then it counts as told.
    pub(super) fn is_new(&self, session: &StoredId, signal: ContextSignal, now: Timestamp) -> bool {
        let [a, b, c, d, e, f, g, h, ..] = *session.as_bytes();
        let id = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let span = now.as_millis() / SPAN_MILLIS;
        let mark = id ^ (span << 8) ^ (signal as u64 + 1);
        let slot = usize::from(session.spread()) % SLOTS;
        self.0.get(slot).is_none_or(|slot| slot.swap(mark, Ordering::Relaxed) != mark)
    }
}

const SLOTS: usize = 256;

/// About as long as a session cookie is fresh.
const SPAN_MILLIS: u64 = 5 * 60 * 1000;
