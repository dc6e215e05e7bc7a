//! The one task of a registry: it reads the revocation feed, and now and then purges what is over.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::task::JoinHandle;

use super::{
    contract::StoreError,
    feed::{FeedBatch, FeedPosition},
    registry::Registry,
};
use crate::events::StoreVerb;

impl Registry {
    /// Starts the task, once. It ends with the registry.
    pub(crate) fn start_watching(self: &Arc<Self>) {
        // A load first: a swap on every request would make all cores fight for one cache line.
        if !self.watched.load(Ordering::Relaxed) && !self.watched.swap(true, Ordering::AcqRel) {
            // Made here: a task whose runtime goes before it ran once is dropped without having begun.
            tokio::spawn(watch(Ended(Arc::downgrade(self))));
        }
    }

    /// Starts the task, and waits until the feed was read once. From then on a fresh cookie needs no store call. Two store
    /// calls.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<(), StoreError> {
        self.start_watching();
        self.sync().await.map(drop)
    }

    /// Reads the whole window of the feed. What it says holds only as long as the task goes on reading.
    async fn sync(&self) -> Result<FeedPosition, StoreError> {
        self.measure_offset().await?;
        let batch = self.store.subscribe(FeedPosition::Window(self.window())).await?;
        self.take(&batch);
        self.revocations.set_synced(batch.complete_since);
        Ok(batch.position)
    }

    fn take(&self, batch: &FeedBatch) {
        let now = self.now();
        for (revocation, at) in &batch.entries {
            let until = *at + self.window();
            if now < until {
                self.revocations.insert(*revocation, until);
            }
        }
    }
}

/// The task ended: a store panicked, or the runtime it ran on is gone. The next request starts it again, and until it
/// has read the feed, the store is asked.
struct Ended(Weak<Registry>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(registry) = self.0.upgrade() {
            registry.revocations.set_unsynced();
            registry.watched.store(false, Ordering::Release);
        }
    }
}

async fn watch(ended: Ended) {
    let Ended(registry) = &ended;
    let mut rounds: u32 = 0;
    let mut tidying: Option<JoinHandle<()>> = None;
    loop {
        // Between two rounds nothing here keeps the registry alive.
        let Some(strong) = registry.upgrade() else { return };
        strong.revocations.prune(strong.now());
        if rounds.is_multiple_of(PURGE_EVERY) && tidying.as_ref().is_none_or(JoinHandle::is_finished) {
            // Beside the feed: a long purge must not keep revocations from being heard of.
            tidying = Some(tokio::spawn(tidy(Arc::clone(&strong))));
        }
        rounds = rounds.wrapping_add(1);
        if let Err(error) = follow(strong).await {
            if let Some(strong) = registry.upgrade() {
                strong.store_failed(StoreVerb::Subscribe, &error);
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

async fn tidy(registry: Arc<Registry>) {
    if let Err(error) = registry.store.purge(registry.window()).await {
        registry.store_failed(StoreVerb::Purge, &error);
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
            let batch = store.subscribe(position.clone()).await?;
            let Some(registry) = weak.upgrade() else { return Ok(()) };
            registry.take(&batch);
            position = batch.position;
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
