//! Revocations that the store is known to have taken. A failover to a replica that had not heard of them takes them back;
//! whoever heard of them writes them again (attack A76).

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::revocation::Revocation;
use crate::clock::Timestamp;

/// What was heard, and when it was made. As bounded as the revocation set: it holds one window.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<HashMap<Revocation, Timestamp>>);

impl Heard {
    /// Notes a revocation. Of claims and newer ids the rows themselves tell, so only ends are noted.
    pub(super) fn note(&self, revocation: Revocation, at: Timestamp) {
        if matches!(revocation, Revocation::Session(_) | Revocation::Subject(..) | Revocation::Before(_)) {
            let mut heard = self.lock();
            let known = heard.entry(revocation).or_insert(at);
            *known = (*known).max(at);
        }
    }

    /// Those of the last `window` that are not among `entries`, which is the whole window as the store has it now.
    ///
    /// Left out is what was made so long ago that the store may have let it go, or a moment ago, beside the reading.
    pub(super) fn missing(
        &self,
        entries: &[(Revocation, Timestamp)],
        window: Duration,
        now: Timestamp,
    ) -> Vec<Revocation> {
        let mut heard = self.lock();
        heard.retain(|_, at| now < *at + window);
        let mut missing: HashMap<_, _> = heard
            .iter()
            .filter(|(_, at)| now + MARGIN < **at + window && **at + BESIDE <= now)
            .map(|(revocation, at)| (*revocation, *at))
            .collect();
        for (entry, _) in entries {
            missing.remove(entry);
        }
        missing.into_keys().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Revocation, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So near its end an entry matters to nobody any more.
const MARGIN: Duration = Duration::from_secs(10);

/// So young an entry may have been made after the window was read.
const BESIDE: Duration = Duration::from_secs(1);

#[cfg(test)]
#[path = "../../tests/unit/heard.rs"]
mod tests;
