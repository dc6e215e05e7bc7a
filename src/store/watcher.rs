//! The one task of a registry: it reads the revocation feed, and now and then purges what is over.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{
    contract::{FeedBatch, FeedPosition, StoreError},
    registry::Registry,
};
use crate::events::StoreVerb;

impl Registry {
    /// Starts the task, once. It ends with the registry.
    pub(crate) fn start_watching(self: &Arc<Self>) {
        // A load first: a swap on every request would make all cores fight for one cache line.
        if !self.watched.load(Ordering::Relaxed) && !self.watched.swap(true, Ordering::AcqRel) {
            let registry = Arc::downgrade(self);
            tokio::spawn(async move {
                // A store of somebody else's may panic; revocations must go on being heard of.
                while tokio::spawn(watch(registry.clone())).await.is_err_and(|error| error.is_panic()) {
                    tokio::time::sleep(RETRY).await;
                }
            });
        }
    }

    /// Reads the whole window of the feed once. From then on a fresh cookie needs no store call.
    pub(crate) async fn sync(&self) -> Result<FeedPosition, StoreError> {
        self.measure_offset().await?;
        let batch = self.store.subscribe(FeedPosition::Window(self.window())).await?;
        let position = batch.position;
        self.take(batch);
        self.revocations.set_synced();
        Ok(position)
    }

    fn take(&self, batch: FeedBatch) {
        let now = self.now();
        for (revocation, at) in batch.entries {
            let until = at + self.window();
            if now < until {
                self.revocations.insert(revocation, until);
            }
        }
    }
}

async fn watch(registry: Weak<Registry>) {
    let mut rounds: u32 = 0;
    loop {
        // Between two rounds nothing here keeps the registry alive.
        let Some(strong) = registry.upgrade() else { return };
        if rounds.is_multiple_of(PURGE_EVERY)
            && let Err(error) = strong.store.purge(strong.window()).await
        {
            strong.store_failed(StoreVerb::Purge, &error);
        }
        rounds = rounds.wrapping_add(1);
        strong.revocations.prune(strong.now());
        if let Err(error) = follow(strong).await {
            if let Some(strong) = registry.upgrade() {
                strong.store_failed(StoreVerb::Subscribe, &error);
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Reads the window, then follows the feed for a while; then the window again, in case something was missed.
async fn follow(registry: Arc<Registry>) -> Result<(), StoreError> {
    let mut position = registry.sync().await?;
    let weak = Arc::downgrade(&registry);
    let store = Arc::clone(&registry.store);
    drop(registry);
    let followed = async {
        loop {
            let batch = store.subscribe(position).await?;
            position = batch.position;
            let Some(registry) = weak.upgrade() else { return Ok(()) };
            registry.take(batch);
        }
    };
    // Taking a batch does not wait, so the timeout cannot cut between reading an entry and taking it.
    tokio::time::timeout(ROUND, followed).await.unwrap_or(Ok(()))
}

/// The window is read anew this often.
const ROUND: Duration = Duration::from_secs(5);

/// One purge a minute.
const PURGE_EVERY: u32 = 12;

/// Pause after a store that does not answer.
const RETRY: Duration = Duration::from_millis(500);
