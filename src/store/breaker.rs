//! Keeps those who wait for a silent store few.
//!
//! After some failures in a row one caller at a time may try; the others are told at once. The first that succeeds opens the
//! way for all. So a store that is back is used by the very next request, and no timer has to be right.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The state of one store, as its callers find it.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: AtomicU32,
    trying: AtomicBool,
}

/// Leave to ask the store. Dropped without a word (the caller went away), it changes nothing.
#[derive(Debug)]
pub(super) struct Leave<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Breaker {
    /// Leave, unless the store is silent and somebody is trying it already.
    pub(super) fn enter(&self) -> Option<Leave<'_>> {
        if self.failures.load(Ordering::Relaxed) < TRIP {
            return Some(Leave { breaker: self, is_trial: false });
        }
        let was_trying = self.trying.swap(true, Ordering::AcqRel);
        // Not made in vain: its drop would end the trial of another.
        (!was_trying).then(|| Leave { breaker: self, is_trial: true })
    }

    /// The store has answered, whoever asked.
    pub(super) fn succeeded(&self) {
        // A load first: a store on every request would make all cores fight for one cache line.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }
}

impl Leave<'_> {
    /// What came of it.
    pub(super) fn ended(self, answered: bool) {
        if answered {
            self.breaker.succeeded();
        } else {
            let failures = &self.breaker.failures;
            // It does not matter how many more there are.
            if failures.load(Ordering::Relaxed) < TRIP {
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.is_trial {
            self.breaker.trying.store(false, Ordering::Release);
        }
    }
}

/// One failure can be a hiccup, and two that were under way together.
const TRIP: u32 = 3;

#[cfg(test)]
#[path = "../../tests/unit/breaker.rs"]
mod tests;
