//! Sessions in an SQLite file: the embedded default. Safe under restart, and shared by the processes of one machine.
//!
//! WAL mode, so readers never wait for a writer; writers of one process queue for one connection, writers of several
//! processes for SQLite's lock. `synchronous = FULL`: what a step wrote survives a loss of power (about 0.2 ms a write
//! on a local disk), so a revocation is never taken back.

mod columns;
mod connect;
mod feed;
mod rows;
mod schema;

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{
    Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::Notify;

use super::{
    contract::{
        CommitRequest, CreateError, IndexMismatch, NewSession, Replacement, RotateAnswer, RotateRequest,
        Seen, Store, StoreError,
    },
    feed::{FeedBatch, FeedPosition},
    open_error::StoreOpenError,
    revocation::Revocation,
    row::{FieldTag, Row},
    steps::{RowChange, commit_row, is_as_seen, may_move, rotate_row, supersede_row},
};
use crate::{
    clock::{Clock, SystemClock, Timestamp},
    id::{StoredId, SubjectKey},
};
use connect::{BUSY_TIMEOUT, connect};

/// A store in an SQLite file. Clones share it.
///
/// The file is sessions' own and belongs to one machine: not to another program's tables, and not to a network file
/// system. It comes with two companions, `-wal` and `-shm`; a copy is made of all three, or by SQLite's own backup. New
/// files are made with mode 0600. A write waits up to 2 s for other processes, and what one process revokes, the others
/// hear of within 100 ms.
#[derive(Clone)]
pub struct SqliteStore(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    born: Timestamp,
    readers: SqlitePool,
    writer: SqlitePool,
    index: Mutex<Option<[u8; 16]>>,
    index_written: AtomicBool,
    news: Notify,
}

impl SqliteStore {
    /// Opens the file, and makes it and its tables if they are not there. Several processes may do so at once.
    ///
    /// # Errors
    /// If the file cannot be opened or written, is no database, or was made by a later version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreOpenError> {
        Self::open_with_clock(path, Arc::new(SystemClock)).await
    }

    /// The same on another clock, for tests. Give the layer the same one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with_clock(
        path: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreOpenError> {
        let path = path.as_ref();
        schema::make_file(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let refused = |error: &sqlx::Error| schema::refused(path, error);
        // One connection writes: writers of this process queue in order, and none of them spins on SQLite's lock.
        let writer = SqlitePoolOptions::new().max_connections(1).acquire_timeout(BUSY_TIMEOUT);
        let writer = connect(writer, &options).await.map_err(|error| refused(&error))?;
        let (index, born) = schema::migrate(&writer, path, clock.now()).await?;
        let readers = SqlitePoolOptions::new().max_connections(4).acquire_timeout(BUSY_TIMEOUT);
        let readers = connect(readers, &options.read_only(true)).await.map_err(|error| refused(&error))?;
        Ok(Self(Arc::new(Shared {
            clock,
            born,
            readers,
            writer,
            index_written: AtomicBool::new(index.is_some()),
            index: Mutex::new(index),
            news: Notify::new(),
        })))
    }

    /// Begins a step that may write: the lock is taken at once, so that what is read stays true until the commit.
    async fn step(&self) -> Result<(Transaction<'static, Sqlite>, Timestamp), StoreError> {
        let step = self.0.writer.begin_with("BEGIN IMMEDIATE").await.map_err(StoreError::new)?;
        Ok((step, self.0.clock.now()))
    }

    /// Commits a step. `news` is whether it published a revocation: the feed is read again for nothing else.
    async fn finish(&self, step: Transaction<'static, Sqlite>, news: bool) -> Result<(), StoreError> {
        step.commit().await.map_err(StoreError::new)?;
        if news {
            self.0.news.notify_waiters();
        }
        Ok(())
    }

    /// Writes the check value of the index secret with the first session, and finds out who else wrote one. Only when
    /// the step is committed is it known to stand.
    async fn write_index(&self, step: &mut Transaction<'static, Sqlite>) -> Result<bool, StoreError> {
        let claimed = *self.0.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = claimed
            && !self.0.index_written.load(Ordering::Acquire)
        {
            schema::write_index(step, check).await?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        let (mut step, now) = self.step().await?;
        let wrote_index = self.write_index(&mut step).await?;
        if rows::exists(&mut step, &new.id).await? {
            return Err(CreateError::Taken);
        }
        let mut row = Row { predecessor: None, successor: None, ..new.row };
        row.epoch = match row.subject {
            Some(subject) => rows::epoch(&mut step, &subject).await?,
            None => 0,
        };
        match new.replaces {
            Some(Replacement::End(old)) => rows::end(&mut step, &old, now).await?,
            Some(Replacement::Move(old)) => {
                let live = rows::live(&mut *step, &old, now).await?;
                let row =
                    live.filter(|row| may_move(&old, row, new.keeper)).ok_or(CreateError::ReplacedGone)?;
                check(&mut step, &old, &row, new.seen.as_ref()).await?;
                rows::end(&mut step, &old, now).await?;
            }
            Some(Replacement::Supersede(old)) => {
                let live = rows::live(&mut *step, &old, now).await?.ok_or(CreateError::ReplacedGone)?;
                let after =
                    supersede_row(&old, &live, new.id, now, new.keeper).ok_or(CreateError::ReplacedGone)?;
                check(&mut step, &old, &live, new.seen.as_ref()).await?;
                rows::write(&mut step, &old, &after).await?;
                feed::publish(&mut step, &Revocation::Superseded(old), now).await?;
                row.predecessor = Some(old);
            }
            None => {}
        }
        new.keeper.sign(&new.id, &mut row);
        rows::write(&mut step, &new.id, &row).await?;
        for (tag, value) in &new.fields {
            rows::write_field(&mut step, &new.id, tag, Some(value)).await?;
        }
        self.finish(step, new.replaces.is_some()).await?;
        if wrote_index {
            self.0.index_written.store(true, Ordering::Release);
        }
        Ok(row)
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        // One read transaction: the row and its fields are of one moment.
        let mut read = self.0.readers.begin().await.map_err(StoreError::new)?;
        let Some(row) = rows::live(&mut *read, id, self.0.clock.now()).await? else { return Ok(None) };
        let fields = rows::fields(&mut *read, id).await?;
        Ok(Some((row, fields)))
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        let (mut step, now) = self.step().await?;
        let Some(row) = rows::live(&mut *step, &request.id, now).await? else { return Ok(None) };
        let after = commit_row(&request, &row, now).map_err(StoreError::new)?;
        let Some(after) = after else { return Ok(None) };
        if after != row {
            rows::write(&mut step, &request.id, &after).await?;
        }
        for (tag, value) in &request.fields {
            rows::write_field(&mut step, &request.id, tag, value.as_deref()).await?;
        }
        if request.edit {
            feed::publish(&mut step, &Revocation::Claims(request.id, after.claims_version), now).await?;
            rows::outdate_predecessors(&mut step, after.predecessor, now).await?;
        }
        self.finish(step, request.edit).await?;
        Ok(Some(after))
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        let (mut step, now) = self.step().await?;
        let Some(row) = rows::live(&mut *step, &request.id, now).await? else {
            return Ok(RotateAnswer::Gone);
        };
        let judged = rotate_row(&request, &row, now).map_err(StoreError::new)?;
        match &judged.change {
            RowChange::Keep => return Ok(judged.answer),
            RowChange::Write(row) => rows::write(&mut step, &request.id, row).await?,
            RowChange::Revoke => rows::end(&mut step, &request.id, now).await?,
        }
        self.finish(step, matches!(judged.change, RowChange::Revoke)).await?;
        Ok(judged.answer)
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        let (mut step, now) = self.step().await?;
        let was_live = rows::live(&mut *step, id, now).await?.is_some();
        rows::end(&mut step, id, now).await?;
        self.finish(step, true).await?;
        Ok(was_live)
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        let (mut step, now) = self.step().await?;
        let live = rows::list(&mut *step, subject, now).await?.len();
        let epoch = rows::epoch(&mut step, subject).await? + 1;
        rows::end_below(&mut step, subject, epoch).await?;
        feed::publish(&mut step, &Revocation::Subject(*subject, epoch), now).await?;
        self.finish(step, true).await?;
        Ok(u64::try_from(live).unwrap_or(u64::MAX))
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.restore(&[Revocation::Before(moment)]).await
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        rows::list(&self.0.readers, subject, self.0.clock.now()).await
    }

    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        let mut purged = 0;
        loop {
            // Each batch is a transaction of its own, so that a renewal never waits for a whole purge.
            let (mut step, now) = self.step().await?;
            let batch = rows::purge(&mut step, now, window, PURGE_BATCH).await?;
            self.finish(step, false).await?;
            purged += batch;
            if batch < PURGE_BATCH {
                return Ok(purged);
            }
        }
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        loop {
            let news = self.0.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let (entries, position) = feed::read(&self.0.readers, &from, self.0.clock.now()).await?;
            if !entries.is_empty() || matches!(from, FeedPosition::Window(_)) {
                return Ok(FeedBatch { entries, position, complete_since: self.0.born });
            }
            // This process's own steps wake it at once, those of other processes are seen at the next look.
            let _ = tokio::time::timeout(POLL, news).await;
        }
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        let (mut step, now) = self.step().await?;
        for revocation in lost {
            match revocation {
                Revocation::Session(id) => rows::end(&mut step, id, now).await?,
                Revocation::Subject(subject, epoch) => {
                    rows::end_below(&mut step, subject, *epoch).await?;
                    feed::publish(&mut step, revocation, now).await?;
                }
                Revocation::Before(moment) => {
                    rows::end_before(&mut step, *moment).await?;
                    feed::publish(&mut step, revocation, now).await?;
                }
                Revocation::Claims(..) | Revocation::Superseded(_) => {
                    feed::publish(&mut step, revocation, now).await?;
                }
            }
        }
        self.finish(step, true).await
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        sqlx::query("SELECT 1").execute(&self.0.readers).await.map_err(StoreError::new)?;
        Ok(self.0.clock.now())
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        let mut index = self.0.index.lock().unwrap_or_else(PoisonError::into_inner);
        if *index.get_or_insert(check) == check { Ok(()) } else { Err(IndexMismatch::new()) }
    }
}

/// Refuses if the session no longer holds what was seen of it.
async fn check(
    step: &mut Transaction<'static, Sqlite>,
    id: &StoredId,
    row: &Row,
    seen: Option<&Seen>,
) -> Result<(), CreateError> {
    let fields = if seen.is_some() { rows::fields(&mut **step, id).await? } else { Vec::new() };
    if is_as_seen(seen, row, &fields) { Ok(()) } else { Err(CreateError::ReplacedChanged) }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteStore")
    }
}

/// How often the feed is looked at for what other processes wrote.
const POLL: Duration = Duration::from_millis(100);

const PURGE_BATCH: u64 = 500;
