//! A store that writes down what it is asked and passes it on, or answers nothing when told to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use portcullis::{
    clock::Timestamp,
    events::StoreVerb,
    id::{StoredId, SubjectKey},
    store::{
        CommitRequest, CreateError, FeedBatch, FeedPosition, FieldTag, IndexMismatch, NewSession,
        Replacement, Revocation, RotateAnswer, RotateRequest, Row, Store, StoreError,
    },
};

/// The spy. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Spy {
    store: Arc<dyn Store>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    calls: Vec<StoreVerb>,
    replaced: Option<Replacement>,
    ids: Vec<StoredId>,
    failing: Failing,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Failing {
    #[default]
    Nothing,
    Everything,
    Only(StoreVerb),
}

impl Spy {
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        Self { store, seen: Arc::default() }
    }

    /// The verbs since the last question, in order. The feed and the purge are not counted: they are no request's.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.seen.lock().unwrap().calls).into_iter().map(StoreVerb::name).collect()
    }

    /// What the last session created was to replace.
    pub(crate) fn replaced(&self) -> Option<Replacement> {
        self.seen.lock().unwrap().replaced
    }

    /// Every id the store was asked about so far.
    pub(crate) fn ids(&self) -> Vec<StoredId> {
        self.seen.lock().unwrap().ids.clone()
    }

    /// From now on no verb is answered.
    pub(crate) fn goes_down(&self) {
        self.seen.lock().unwrap().failing = Failing::Everything;
    }

    /// From now on this verb is not answered.
    pub(crate) fn fails_only(&self, verb: StoreVerb) {
        self.seen.lock().unwrap().failing = Failing::Only(verb);
    }

    /// All verbs are answered again.
    pub(crate) fn comes_back(&self) {
        self.seen.lock().unwrap().failing = Failing::Nothing;
    }

    fn asked(&self, verb: StoreVerb, id: Option<StoredId>) -> Result<(), StoreError> {
        let mut seen = self.seen.lock().unwrap();
        if !matches!(verb, StoreVerb::Subscribe | StoreVerb::Purge) {
            seen.calls.push(verb);
        }
        seen.ids.extend(id);
        match seen.failing {
            Failing::Everything => Err(StoreError::new("told to fail")),
            Failing::Only(failing) if failing == verb => Err(StoreError::new("told to fail")),
            Failing::Only(_) | Failing::Nothing => Ok(()),
        }
    }
}

#[async_trait]
impl Store for Spy {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        self.asked(StoreVerb::Create, Some(new.id))?;
        self.seen.lock().unwrap().replaced = new.replaces;
        self.store.create(new).await
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        self.asked(StoreVerb::Load, Some(*id))?;
        self.store.load(id).await
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        self.asked(StoreVerb::Commit, Some(request.id))?;
        self.store.commit(request).await
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        self.asked(StoreVerb::Rotate, Some(request.id))?;
        self.store.rotate(request).await
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        self.asked(StoreVerb::Revoke, Some(*id))?;
        self.store.revoke(id).await
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        self.asked(StoreVerb::RevokeSubject, None)?;
        self.store.revoke_subject(subject).await
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.asked(StoreVerb::RevokeBefore, None)?;
        self.store.revoke_before(moment).await
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        self.asked(StoreVerb::ListSubject, None)?;
        self.store.list_subject(subject).await
    }

    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        self.asked(StoreVerb::Purge, None)?;
        self.store.purge(window).await
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        self.asked(StoreVerb::Subscribe, None)?;
        self.store.subscribe(from).await
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        self.asked(StoreVerb::Revoke, None)?;
        self.store.restore(lost).await
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        self.asked(StoreVerb::Subscribe, None)?;
        self.store.ping().await
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        self.store.claim_index(check)
    }
}
