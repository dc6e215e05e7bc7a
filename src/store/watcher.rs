//! The one task of a registry: it reads the revocation feed, and now and then purges what is over.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::task::JoinHandle;

use super::{
    backlog::Owed,
    contract::StoreError,
    feed::{FeedBatch, FeedPosition},
    outage::FeedLoss,
    registry::Registry,
    revocation::Revocation,
};
use crate::{
    clock::Timestamp,
    events::{SessionEvent, StoreVerb},
};

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

    /// Reads the whole window of the feed, and writes again what the store should know and does not. What the feed says holds
    /// only as long as the task goes on reading.
    async fn sync(&self) -> Result<FeedPosition, StoreError> {
        self.measure_offset().await?;
        let batch = self.store.subscribe(FeedPosition::Window(self.window())).await?;
        let lost = self.heard.missing(&batch.entries, self.window(), self.now());
        self.take(&batch);
        if !lost.is_empty() {
            self.store.restore(&lost).await?;
            self.event(SessionEvent::RevocationsRestored(lost.len() as u64));
        }
        if let Err(error) = self.pay().await {
            self.store_failed(StoreVerb::Revoke, &error);
        }
        self.revocations.set_synced(batch.complete_since);
        self.feed.read_at.store(self.now().as_millis(), Ordering::Relaxed);
        self.feed.failing.store(false, Ordering::Relaxed);
        if self.feed.lost.swap(false, Ordering::Relaxed) {
            self.event(SessionEvent::FeedRecovered);
        }
        Ok(batch.position)
    }

    /// Writes the revocations that the store has not taken while it was silent.
    pub(in crate::store) async fn pay(&self) -> Result<(), StoreError> {
        // One at a time: a sign-out everywhere that is written twice would end who signed in between.
        let _turn = self.paying.lock().await;
        let owed = self.backlog.all();
        let (mut paid, mut failed) = (Vec::new(), None);
        for debt in &owed {
            // What can be written twice without harm is; and it has more time than a verb of a request.
            let done = match debt {
                Owed::Session(id) => self.store.restore(&[Revocation::Session(*id)]).await,
                Owed::Subject(subject, Some(epoch)) => {
                    self.store.restore(&[Revocation::Subject(*subject, *epoch)]).await
                }
                Owed::Subject(subject, None) => self.store.revoke_subject(subject).await.map(drop),
                Owed::Before(moment) => self.store.restore(&[Revocation::Before(*moment)]).await,
            };
            match done {
                Ok(()) => {
                    // At once: what cannot be written twice must not be, whatever fails after it.
                    if let Err(error) = self.backlog.remove(std::slice::from_ref(debt)) {
                        tracing::error!(target: "portcullis", %error, "the journal of revocations cannot be written");
                    }
                    paid.push(*debt);
                }
                // One that cannot be paid must not keep the others from it.
                Err(error) => failed = Some(error),
            }
        }
        if !paid.is_empty() {
            // The epochs that the users have got now come with the feed; until then nobody of theirs gets in.
            let batch = self.store.subscribe(FeedPosition::Window(self.window())).await?;
            self.take(&batch);
            for debt in &paid {
                if let Owed::Subject(subject, _) = debt {
                    self.revocations.subject_is_paid(subject);
                }
            }
            self.event(SessionEvent::RevocationsDelivered(paid.len() as u64));
        }
        failed.map_or(Ok(()), Err)
    }

    /// An attempt to hear the feed failed. After a while that is said, and the operator's choice holds.
    fn feed_failed(&self, error: &StoreError) {
        self.store_failed(StoreVerb::Subscribe, error);
        self.feed.failing.store(true, Ordering::Relaxed);
        let read_at = Timestamp::from_millis(self.feed.read_at.load(Ordering::Relaxed));
        if self.now() >= read_at + self.outage.feed_patience && !self.feed.lost.swap(true, Ordering::Relaxed)
        {
            self.event(SessionEvent::FeedLost);
            if self.outage.feed_loss == FeedLoss::CheckStore {
                self.revocations.set_unsynced();
            }
        }
    }

    fn take(&self, batch: &FeedBatch) {
        let now = self.now();
        for (revocation, at) in &batch.entries {
            let until = *at + self.window();
            if now < until {
                self.revocations.insert(*revocation, until);
                self.heard.note(*revocation, *at);
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
        if !strong.feed.failing.load(Ordering::Relaxed) {
            strong.revocations.prune(strong.now());
        }
        if rounds.is_multiple_of(PURGE_EVERY) && tidying.as_ref().is_none_or(JoinHandle::is_finished) {
            // Beside the feed: a long purge must not keep revocations from being heard of.
            tidying = Some(tokio::spawn(tidy(Arc::clone(&strong))));
        }
        rounds = rounds.wrapping_add(1);
        if let Err(error) = follow(strong).await {
            if let Some(strong) = registry.upgrade() {
                strong.feed_failed(&error);
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

async fn tidy(registry: Arc<Registry>) {
    let purged = tokio::time::timeout(PURGE_LIMIT, registry.store.purge(registry.window())).await;
    if let Err(error) = purged.unwrap_or_else(|_| Err(StoreError::new("no end of the purge"))) {
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

/// A purge that takes longer hangs, and must not keep the next one from beginning.
const PURGE_LIMIT: Duration = Duration::from_secs(300);

/// Pause after a store that does not answer.
const RETRY: Duration = Duration::from_millis(500);
