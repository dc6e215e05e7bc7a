//! A store that counts what is asked of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use portcullis::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
    session::RotationOutcome,
    store::{
        CommitRequest, CreateError, FeedBatch, FeedPosition, FieldTag, IndexMismatch, NewSession, Revocation,
        RotateAnswer, RotateRequest, Row, Store, StoreError,
    },
};
use serde_json::{Value, json};

/// What was asked so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    create: AtomicU64,
    load: AtomicU64,
    commit: AtomicU64,
    rotate: AtomicU64,
    revoke: AtomicU64,
    revoke_subject: AtomicU64,
    revoke_before: AtomicU64,
    list_subject: AtomicU64,
    restore: AtomicU64,
    renewals: AtomicU64,
    echoes: AtomicU64,
    reuses: AtomicU64,
    heard: AtomicU64,
    lag: AtomicU64,
    worst_lag: AtomicU64,
}

impl Counters {
    pub(crate) fn to_json(&self) -> Value {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "calls": {
                "create": count(&self.create), "load": count(&self.load), "commit": count(&self.commit),
                "rotate": count(&self.rotate), "revoke": count(&self.revoke),
                "revoke_subject": count(&self.revoke_subject), "revoke_before": count(&self.revoke_before), "list_subject": count(&self.list_subject),
                "restore": count(&self.restore),
            },
            "renewals": count(&self.renewals), "echoes": count(&self.echoes), "reuses": count(&self.reuses),
            "feed": {
                "entries": count(&self.heard), "lag_us": count(&self.lag), "worst_lag_us": count(&self.worst_lag),
            },
        })
    }

    fn judged(&self, answer: &RotateAnswer) {
        let counter = match answer {
            RotateAnswer::Judged { outcome, .. } => match outcome {
                RotationOutcome::Won(_) | RotationOutcome::Again(_) | RotationOutcome::RolledBack(_) => {
                    &self.renewals
                }
                RotationOutcome::Young | RotationOutcome::Echo => &self.echoes,
                RotationOutcome::Reuse => &self.reuses,
                _ => return,
            },
            _ => return,
        };
        add(counter);
    }

    /// How long ago entries were made by the store's clock, which is a millisecond exact.
    #[allow(clippy::disallowed_methods, reason = "it measures the machine, not sessions")]
    fn heard(&self, batch: &FeedBatch) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for (_, at) in &batch.entries {
            let lag = now.saturating_sub(Duration::from_millis(at.as_millis()));
            let lag = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
            self.lag.store(lag, Ordering::Relaxed);
            self.worst_lag.fetch_max(lag, Ordering::Relaxed);
            add(&self.heard);
        }
    }
}

/// A store, and the counters of what is asked of it.
#[derive(Debug)]
pub(crate) struct Counted {
    store: Arc<dyn Store>,
    counters: Arc<Counters>,
}

impl Counted {
    pub(crate) fn new(store: Arc<dyn Store>) -> (Self, Arc<Counters>) {
        let counters = Arc::<Counters>::default();
        (Self { store, counters: Arc::clone(&counters) }, counters)
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[async_trait]
impl Store for Counted {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        add(&self.counters.create);
        self.store.create(new).await
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        add(&self.counters.load);
        self.store.load(id).await
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        add(&self.counters.commit);
        self.store.commit(request).await
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        add(&self.counters.rotate);
        let answer = self.store.rotate(request).await;
        if let Ok(answer) = &answer {
            self.counters.judged(answer);
        }
        answer
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        add(&self.counters.revoke);
        self.store.revoke(id).await
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        add(&self.counters.revoke_subject);
        self.store.revoke_subject(subject).await
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        add(&self.counters.revoke_before);
        self.store.revoke_before(moment).await
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        add(&self.counters.list_subject);
        self.store.list_subject(subject).await
    }

    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        self.store.purge(window).await
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        let follows = matches!(from, FeedPosition::After(_));
        let batch = self.store.subscribe(from).await;
        if let (true, Ok(batch)) = (follows, &batch) {
            self.counters.heard(batch);
        }
        batch
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        add(&self.counters.restore);
        self.store.restore(lost).await
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        self.store.ping().await
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        self.store.claim_index(check)
    }
}
