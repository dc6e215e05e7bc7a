//! Sessions in the memory of this process: for tests, and for sites of one process that may forget.

mod inner;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{
    contract::{
        CommitRequest, CreateError, IndexMismatch, NewSession, Replacement, RotateAnswer, RotateRequest,
        Store, StoreError,
    },
    feed::{FeedBatch, FeedMark, FeedPosition},
    revocation::Revocation,
    row::{FieldTag, Row},
    steps::{RowChange, commit_row, is_live, may_move, rotate_row, supersede_row},
};
use crate::{
    clock::{Clock, SystemClock, Timestamp},
    id::{StoredId, SubjectKey},
};
use inner::{Inner, Stored};

/// A store in memory. Clones share it; everything is gone when the last one is.
///
/// Every verb takes one short lock and never waits.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    born: Timestamp,
    inner: Mutex<Inner>,
    news: Notify,
}

impl MemoryStore {
    /// An empty store on the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store on another clock, for tests. Give the layer the same one.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let born = clock.now();
        Self(Arc::new(Shared { clock, born, inner: Mutex::default(), news: Notify::new() }))
    }

    /// The state, and the instant of the step.
    fn step(&self) -> (MutexGuard<'_, Inner>, Timestamp) {
        // A panic inside a step is a bug elsewhere (a keeper); the maps are whole, since steps write last.
        let inner = self.0.inner.lock().unwrap_or_else(PoisonError::into_inner);
        (inner, self.0.clock.now())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        let (mut inner, now) = self.step();
        if inner.sessions.contains_key(&new.id) {
            return Err(CreateError::Taken);
        }
        let mut row = Row { predecessor: None, successor: None, ..new.row };
        row.epoch = row.subject.map_or(0, |subject| inner.epoch(&subject));
        match new.replaces {
            Some(Replacement::End(old)) => {
                inner.end(&old, now);
            }
            Some(Replacement::Move(old)) => {
                let stored = inner
                    .live(&old, now)
                    .filter(|stored| may_move(&old, &stored.row, new.keeper))
                    .ok_or(CreateError::ReplacedGone)?;
                stored.check(new.seen.as_ref())?;
                inner.end(&old, now);
            }
            Some(Replacement::Supersede(old)) => {
                let stored = inner.live(&old, now).ok_or(CreateError::ReplacedGone)?;
                let after = supersede_row(&old, &stored.row, new.id, now, new.keeper)
                    .ok_or(CreateError::ReplacedGone)?;
                stored.check(new.seen.as_ref())?;
                inner.write(&old, after);
                inner.publish(Revocation::Superseded(old), now);
                row.predecessor = Some(old);
            }
            None => {}
        }
        new.keeper.sign(&new.id, &mut row);
        if let Some(subject) = row.subject {
            inner.subjects.entry(subject).or_default().ids.insert(new.id);
        }
        inner.sessions.insert(new.id, Stored { row: row.clone(), fields: new.fields.into_iter().collect() });
        drop(inner);
        if new.replaces.is_some() {
            self.0.news.notify_waiters();
        }
        Ok(row)
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        let (inner, now) = self.step();
        Ok(inner.live(id, now).map(|stored| (stored.row.clone(), stored.fields())))
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        let (mut inner, now) = self.step();
        let Some(stored) = inner.live_mut(&request.id, now) else { return Ok(None) };
        let after = commit_row(&request, &stored.row, now).map_err(StoreError::new)?;
        let Some(after) = after else { return Ok(None) };
        if request.edit || request.deadline.is_some() {
            stored.row = after.clone();
        }
        for (tag, value) in request.fields {
            match value {
                Some(value) => stored.fields.insert(tag, value),
                None => stored.fields.remove(&tag),
            };
        }
        if request.edit {
            inner.publish(Revocation::Claims(request.id, after.claims_version), now);
            // Cookies of the ids before this one carry the old claims too.
            let mut before = after.predecessor;
            while let Some(id) = before {
                inner.publish(Revocation::Claims(id, u64::MAX), now);
                before = inner.sessions.get(&id).and_then(|stored| stored.row.predecessor);
            }
            drop(inner);
            self.0.news.notify_waiters();
        }
        Ok(Some(after))
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        let (mut inner, now) = self.step();
        let Some(stored) = inner.live_mut(&request.id, now) else { return Ok(RotateAnswer::Gone) };
        let step = rotate_row(&request, &stored.row, now).map_err(StoreError::new)?;
        match step.change {
            RowChange::Keep => {}
            RowChange::Write(row) => stored.row = *row,
            RowChange::Revoke => {
                inner.end(&request.id, now);
                drop(inner);
                self.0.news.notify_waiters();
            }
        }
        Ok(step.answer)
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        let (mut inner, now) = self.step();
        let was_live = inner.live(id, now).is_some();
        inner.end(id, now);
        drop(inner);
        self.0.news.notify_waiters();
        Ok(was_live)
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        let (mut inner, now) = self.step();
        let epoch = inner.epoch(subject) + 1;
        let ended = inner.end_all(*subject, epoch, now);
        drop(inner);
        self.0.news.notify_waiters();
        Ok(ended)
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        let (mut inner, now) = self.step();
        inner.before = inner.before.max(moment);
        inner.publish(Revocation::Before(moment), now);
        drop(inner);
        self.0.news.notify_waiters();
        Ok(())
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        let (inner, now) = self.step();
        let ids = inner.subjects.get(subject).map(|subject| &subject.ids);
        let mut rows: Vec<_> = ids
            .into_iter()
            .flatten()
            .filter_map(|id| inner.live(id, now).map(|stored| (*id, stored.row.clone())))
            .filter(|(_, row)| row.superseded_at.is_none())
            .collect();
        rows.sort_by_key(|(id, row)| (row.created_at, *id));
        Ok(rows)
    }

    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        let over: Vec<_> = {
            let (mut inner, now) = self.step();
            inner.window = inner.window.max(window);
            let window = inner.window;
            while inner.feed.front().is_some_and(|(_, _, at)| *at + window < now) {
                inner.feed.pop_front();
            }
            let over = |(id, stored): (&StoredId, &Stored)| {
                let goes_on = is_live(&stored.row, 0, now) && stored.row.authenticated_at >= inner.before;
                (!goes_on).then_some(*id)
            };
            inner.sessions.iter().filter_map(over).collect()
        };
        // What is over stays over, so the lock can be let go between two batches.
        for batch in over.chunks(PURGE_BATCH) {
            let (mut inner, _) = self.step();
            for id in batch {
                inner.remove(id);
            }
        }
        Ok(u64::try_from(over.len()).unwrap_or(u64::MAX))
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        loop {
            let news = self.0.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let (inner, now) = self.step();
                let entries: Vec<_> = match &from {
                    FeedPosition::Window(window) => {
                        inner.feed.iter().filter(|(_, _, at)| *at + *window >= now).collect()
                    }
                    FeedPosition::After(mark) => inner
                        .feed
                        .range(inner.feed.partition_point(|(number, ..)| *number <= mark.number())..)
                        .collect(),
                };
                if !entries.is_empty() || matches!(from, FeedPosition::Window(_)) {
                    let entries = entries.into_iter().map(|(_, revocation, at)| (*revocation, *at)).collect();
                    let position = FeedPosition::After(FeedMark::of_number(inner.last));
                    return Ok(FeedBatch { entries, position, complete_since: self.0.born });
                }
            }
            news.await;
        }
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        let (mut inner, now) = self.step();
        for revocation in lost {
            match *revocation {
                Revocation::Session(id) => inner.end(&id, now),
                Revocation::Subject(subject, epoch) => {
                    inner.end_all(subject, epoch, now);
                }
                Revocation::Before(moment) => {
                    inner.before = inner.before.max(moment);
                    inner.publish(*revocation, now);
                }
                Revocation::Claims(..) | Revocation::Superseded(_) => inner.publish(*revocation, now),
            }
        }
        drop(inner);
        self.0.news.notify_waiters();
        Ok(())
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        Ok(self.0.clock.now())
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        let (mut inner, _) = self.step();
        if *inner.index.get_or_insert(check) == check { Ok(()) } else { Err(IndexMismatch::new()) }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

/// Sessions that one purge deletes at most: the lock is held for well under a millisecond.
const PURGE_BATCH: usize = 1000;
