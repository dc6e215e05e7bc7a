//! A fresh store with all that a test of it needs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use portcullis::{
    clock::{Clock, ManualClock, Timestamp},
    id::{StoredId, SubjectKey},
    session::{Rotation, RotationOutcome, Timeouts},
    store::{
        CommitRequest, CreateError, FeedBatch, FeedPosition, FieldTag, NewSession, Presented, Replacement,
        Revocation, RotateAnswer, RotateRequest, Row, RowKeeper, Store,
    },
};

use crate::{
    harness::Harness,
    keeper::{KEEPER, SEALED},
};

pub(crate) const GRACE: Duration = Duration::from_secs(30);
pub(crate) const IDLE: Duration = Duration::from_secs(30 * 60);
pub(crate) const REMEMBERED_IDLE: Duration = Duration::from_secs(14 * 24 * 3600);
pub(crate) const ABSOLUTE: Duration = Duration::from_secs(12 * 3600);
/// How far back the feed is of interest.
pub(crate) const WINDOW: Duration = Duration::from_secs(10 * 60);
pub(crate) const MILLI: Duration = Duration::from_millis(1);
/// The promise of the feed: another process's revocation is heard within this time.
pub(crate) const FEED_DELAY: Duration = Duration::from_secs(1);
/// No test may hang, whatever a store does.
pub(crate) const TEST_LIMIT: Duration = Duration::from_secs(60);

/// What lies in the fields of a session.
pub(crate) type Fields = BTreeMap<FieldTag, Vec<u8>>;

/// One store, fresh, with two handles to its data.
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) other: Arc<dyn Store>,
    harness: Box<dyn Harness>,
}

impl Stage {
    pub(crate) async fn set<H: Harness>() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let harness = H::new(Arc::clone(&clock));
        let (store, other) = (harness.open().await, harness.open().await);
        Self { clock, store, other, harness: Box::new(harness) }
    }

    /// A third handle.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        self.harness.open().await
    }

    /// How many sessions that are over a purge is to count.
    pub(crate) fn purged(&self, over: u64) -> u64 {
        if self.harness.expires_by_itself() { 0 } else { over }
    }

    /// How long after its end a session may lie there before a purge takes it.
    pub(crate) fn purges_by(&self) -> Duration {
        self.harness.purges_by()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The row of an anonymous session that begins now.
    pub(crate) fn row(&self) -> Row {
        row(self.now())
    }

    /// The row of a session of `subject` that begins now.
    pub(crate) fn row_of(&self, subject: SubjectKey) -> Row {
        Row { subject: Some(subject), ..self.row() }
    }

    pub(crate) async fn create(&self, id: StoredId, row: Row) -> Row {
        self.store.create(session(id, row)).await.unwrap()
    }

    /// Creates an anonymous session with one field.
    pub(crate) async fn create_with(&self, id: StoredId, tag: FieldTag, value: &[u8]) -> Row {
        let fields = vec![(tag, value.to_vec())];
        self.store.create(NewSession { fields, ..session(id, self.row()) }).await.unwrap()
    }

    /// Creates an anonymous session in the place of another.
    pub(crate) async fn replace(&self, id: StoredId, replaces: Replacement) -> Result<Row, CreateError> {
        self.store.create(NewSession { replaces: Some(replaces), ..session(id, self.row()) }).await
    }

    /// The session as the other handle sees it.
    pub(crate) async fn load(&self, id: StoredId) -> Option<(Row, Fields)> {
        let (row, fields) = self.other.load(&id).await.unwrap()?;
        assert!(KEEPER.verify(&id, &row), "a store signs what it writes");
        Some((row, fields.into_iter().collect()))
    }

    /// The row of a session that must be there.
    pub(crate) async fn loaded(&self, id: StoredId) -> Row {
        self.load(id).await.unwrap().0
    }

    /// The fields of a session that must be there.
    pub(crate) async fn fields(&self, id: StoredId) -> Fields {
        self.load(id).await.unwrap().1
    }

    pub(crate) async fn is_gone(&self, id: StoredId) -> bool {
        self.load(id).await.is_none()
    }

    /// Asserts that the session is gone and that none of its data would come back with its id.
    pub(crate) async fn assert_wiped(&self, id: StoredId) {
        assert!(self.is_gone(id).await);
        self.create(id, self.row()).await;
        assert_eq!(self.fields(id).await, Fields::new());
    }

    /// Writes one field, or nothing if the session takes no commit.
    pub(crate) async fn put(&self, id: StoredId, tag: FieldTag, value: &[u8]) -> Option<Row> {
        let fields = vec![(tag, Some(value.to_vec()))];
        self.store.commit(CommitRequest { fields, ..commit(id) }).await.unwrap()
    }

    pub(crate) async fn rotate(&self, request: RotateRequest<'static>) -> RotateAnswer {
        self.store.rotate(request).await.unwrap()
    }

    /// A rotation that the table must judge: its answer and the row it gives.
    pub(crate) async fn judge(&self, request: RotateRequest<'static>) -> (RotationOutcome, Row) {
        let now = self.now();
        match self.rotate(request).await {
            RotateAnswer::Judged { outcome, row, now: at } => {
                assert_eq!(at, now);
                (outcome, row)
            }
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) async fn list(&self, subject: SubjectKey) -> Vec<(StoredId, Row)> {
        self.other.list_subject(&subject).await.unwrap()
    }

    /// Everything in the feed.
    pub(crate) async fn feed(&self) -> Vec<Revocation> {
        let batch = self.window(ABSOLUTE).await;
        batch.entries.into_iter().map(|(revocation, _)| revocation).collect()
    }

    /// Asserts that these and no others are in the feed. The ids of one chain may end in any order.
    pub(crate) async fn assert_told(&self, expected: &[&[Revocation]]) {
        let sorted = |mut entries: Vec<Revocation>| {
            entries.sort_by_key(|revocation| match revocation {
                Revocation::Session(id) => (1, id.as_bytes().to_vec(), 0),
                Revocation::Claims(id, version) => (2, id.as_bytes().to_vec(), *version),
                Revocation::Subject(subject, epoch) => (3, subject.as_bytes().to_vec(), *epoch),
                Revocation::Superseded(id) => (4, id.as_bytes().to_vec(), 0),
                Revocation::Before(moment) => (5, Vec::new(), moment.as_millis()),
            });
            entries
        };
        assert_eq!(sorted(self.feed().await), sorted(expected.concat()));
    }

    /// Waits until what a caller that went away has sent has come to rest: a server may still be at it.
    pub(crate) async fn settle(&self, id: StoredId) {
        if !self.harness.goes_on_alone() {
            return;
        }
        let mut before = self.load(id).await;
        let mut still = 0;
        while still < 4 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            let now = self.load(id).await;
            still = if now == before { still + 1 } else { 0 };
            before = now;
        }
    }

    /// What `look` gives, as soon as it gives something: where a server may still be at what a caller that went away has sent,
    /// two looks at it can see two states.
    pub(crate) async fn at_rest<T>(&self, look: impl AsyncFn(&Self) -> Option<T>) -> Option<T> {
        for _ in 0..400 {
            let seen = look(self).await;
            if seen.is_some() || !self.harness.goes_on_alone() {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        None
    }

    /// The end of the feed.
    pub(crate) async fn position(&self) -> FeedPosition {
        self.window(ABSOLUTE).await.position
    }

    /// A window of the feed, which must come at once.
    pub(crate) async fn window(&self, window: Duration) -> FeedBatch {
        within(FEED_DELAY, self.other.subscribe(FeedPosition::Window(window))).await.unwrap()
    }
}

/// Waits for what must come within `limit`.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("not within {limit:?}"))
}

/// The session id number `number`.
pub(crate) fn id(number: u32) -> StoredId {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    StoredId::from_bytes(bytes)
}

pub(crate) fn subject(number: u8) -> SubjectKey {
    SubjectKey::from_bytes([number; 16])
}

pub(crate) fn tag(number: u8) -> FieldTag {
    FieldTag::from_bytes([number; 16])
}

/// The row of an anonymous session that begins at `now`.
pub(crate) fn row(now: Timestamp) -> Row {
    Row {
        rotation: Rotation::begin(now),
        created_at: now,
        renewed_at: now,
        authenticated_at: now,
        deadline: now + IDLE,
        ends_at: now + ABSOLUTE,
        superseded_at: None,
        predecessor: None,
        successor: None,
        subject: None,
        epoch: 0,
        claims_version: 0,
        upgrades: 0,
        remembered: false,
        device: None,
        key: *b"key1",
        sealed: SEALED.to_vec(),
        mac: [0; 16],
    }
}

/// A session to create, without fields.
pub(crate) fn session(id: StoredId, row: Row) -> NewSession<'static> {
    NewSession { id, row, fields: Vec::new(), replaces: None, seen: None, keeper: &KEEPER }
}

/// A commit that changes nothing.
pub(crate) fn commit(id: StoredId) -> CommitRequest<'static> {
    CommitRequest { id, fields: Vec::new(), deadline: None, edit: false, keeper: &KEEPER }
}

/// How long sessions last in the suite.
pub(crate) fn timeouts() -> Timeouts {
    Timeouts::default()
        .grace(GRACE)
        .idle(IDLE)
        .absolute(ABSOLUTE)
        .remembered(REMEMBERED_IDLE, 2 * REMEMBERED_IDLE)
}

/// A renewal by the client the session is bound to.
pub(crate) fn renewal(id: StoredId, generation: u64) -> RotateRequest<'static> {
    RotateRequest {
        id,
        presented: Presented::Token(generation),
        same_client: true,
        upgrade: false,
        active: true,
        timeouts: timeouts(),
        keeper: &KEEPER,
    }
}
