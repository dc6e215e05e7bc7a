//! What stands in front of every store: a time limit for each verb, and a breaker.
//!
//! A verb that is given up is dropped, which every store promises to survive; whether it was done is not known then, and
//! nothing that is done twice does harm.

use std::{fmt, sync::Arc, task::Poll, time::Duration};

use super::{
    breaker::Breaker,
    contract::{CommitRequest, CreateError, NewSession, RotateAnswer, RotateRequest, Store, StoreError},
    feed::{FeedBatch, FeedPosition},
    revocation::Revocation,
    row::{FieldTag, Row},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// A store whose every answer comes in time, if only to say that there is none.
pub(crate) struct Guarded {
    store: Arc<dyn Store>,
    limit: Duration,
    breaker: Breaker,
}

impl Guarded {
    pub(super) fn new(store: Arc<dyn Store>, limit: Duration) -> Self {
        Self { store, limit, breaker: Breaker::default() }
    }

    /// Within the limit, if the breaker lets it.
    async fn ask<T>(&self, verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let Some(leave) = self.breaker.enter() else {
            return Err(StoreError::new("it does not answer at present"));
        };
        let answer = self.in_time(self.limit, verb).await;
        leave.ended(answer.is_ok());
        answer
    }

    async fn in_time<T>(
        &self,
        limit: Duration,
        verb: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut verb = std::pin::pin!(verb);
        // A store in memory is done when it is first asked: then no timer is set.
        if let Poll::Ready(answer) =
            std::future::poll_fn(|context| Poll::Ready(verb.as_mut().poll(context))).await
        {
            return answer;
        }
        tokio::time::timeout(limit, verb)
            .await
            .unwrap_or_else(|_| Err(StoreError::new(format!("no answer within {limit:?}"))))
    }
}

/// The verbs of a store. Not its trait: a future less to box on the way of every request that reads.
impl Guarded {
    pub(super) async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        // What the store answers about the session is an answer.
        let created = self.ask(async {
            match self.store.create(new).await {
                Err(CreateError::Store(error)) => Err(error),
                answered => Ok(answered),
            }
        });
        created.await?
    }

    pub(super) async fn load(
        &self,
        id: &StoredId,
    ) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        self.ask(self.store.load(id)).await
    }

    pub(super) async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        self.ask(self.store.commit(request)).await
    }

    pub(super) async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        self.ask(self.store.rotate(request)).await
    }

    pub(super) async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        self.ask(self.store.revoke(id)).await
    }

    pub(super) async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        self.ask(self.store.revoke_subject(subject)).await
    }

    pub(super) async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.ask(self.store.revoke_before(moment)).await
    }

    pub(super) async fn list_subject(
        &self,
        subject: &SubjectKey,
    ) -> Result<Vec<(StoredId, Row)>, StoreError> {
        self.ask(self.store.list_subject(subject)).await
    }

    /// Beside the requests, and as long as it takes.
    pub(super) async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        self.store.purge(window).await
    }

    /// A window comes at once and may be large; what comes after a position may take for ever.
    pub(super) async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        match from {
            FeedPosition::Window(_) => {
                self.in_time(self.limit.saturating_mul(WINDOWS_LIMIT), self.store.subscribe(from)).await
            }
            FeedPosition::After(_) => self.store.subscribe(from).await,
        }
    }

    pub(super) async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        self.in_time(self.limit.saturating_mul(WINDOWS_LIMIT), self.store.restore(lost)).await
    }

    /// Never held up by the breaker: its answer shows that the store is back.
    pub(super) async fn ping(&self) -> Result<Timestamp, StoreError> {
        let answer = self.in_time(self.limit, self.store.ping()).await;
        if answer.is_ok() {
            self.breaker.succeeded();
        }
        answer
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// Reading a whole window may take so many times as long as a verb.
const WINDOWS_LIMIT: u32 = 8;
