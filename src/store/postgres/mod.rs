//! Sessions in PostgreSQL 13 or later.
//!
//! ```text
//! schema   the tables          sql       the statements, each one atomic step
//! open     what is looked at before anything is served
//! pool     connections         sessions  one session
//! feed     outbox and notifications
//! ```

mod feed;
mod open;
mod pool;
mod schema;
mod sessions;
mod sql;

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::{
    contract::{
        CommitRequest, CreateError, IndexMismatch, NewSession, RotateAnswer, RotateRequest, Store, StoreError,
    },
    feed::{FeedBatch, FeedPosition},
    open_error::StoreOpenError,
    optimistic,
    revocation::Revocation,
    row::{FieldTag, Row},
    steps::is_live,
};
use crate::{
    clock::{Clock, Timestamp},
    id::{StoredId, SubjectKey},
};
pub use open::PostgresOptions;
use pool::Pool;

/// A store in PostgreSQL 13 or later. Clones share it, its connections, and the one that listens.
///
/// The tables are made, and are named `portcullis_…`. A renewal updates its row in place and touches no index.
/// `synchronous_commit` must stay on, its default: a revocation that PostgreSQL has confirmed then survives a crash of the
/// server. It survives a failover only if `synchronous_standby_names` names the standby; otherwise the last moment may be
/// lost, and the running instances write again the revocations that they had heard of. The URL names one host: let a DNS
/// name, a virtual address or a pooler follow the primary.
///
/// Round trips: a read one; a write one; a renewal two (what is there, what takes its place); a login four to six.
///
/// **Behind a transaction pooler** (`PgBouncer` and the like) it works where the pooler keeps prepared statements apart
/// (`PgBouncer` 1.21 with `max_prepared_statements`). Notifications do not pass such a pooler; that is found out, and the
/// feed is then looked at every 100 ms. The option [`schema`](PostgresOptions::schema) does not pass it either: set the
/// role's `search_path` instead.
#[derive(Clone)]
pub struct PostgresStore(Arc<Shared>);

struct Shared {
    pool: Arc<Pool>,
    channel: String,
    /// A test's clock, in place of the server's.
    clock: Option<Arc<dyn Clock>>,
    born: Timestamp,
    news: Arc<feed::News>,
    index: Mutex<Option<[u8; 16]>>,
    index_written: AtomicBool,
}

impl PostgresStore {
    /// Connects, and makes the tables if they are not there. Several instances may do so at once.
    ///
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Without `sslmode` it is `prefer`: the certificate is not checked, and TLS
    /// is given up where the server offers none. Over any network write `?sslmode=verify-full` (the certificates that the
    /// system trusts), or add `&sslrootcert=/path/ca.pem` for an authority of your own.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
    /// use portcullis::{KeyRing, PostgresStore, SessionLayer};
    ///
    /// let store = PostgresStore::open("postgres://shop:secret@db.internal/shop?sslmode=verify-full").await?;
    /// let sessions = SessionLayer::builder("https://app.example.com", KeyRing::from_env("SESSION_KEYS")?, store).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the URL is none, nobody answers there, the password or the user's rights are wrong, or the tables are of another
    /// version.
    pub async fn open(url: &str) -> Result<Self, StoreOpenError> {
        PostgresOptions::new(url).open().await
    }
}

impl Shared {
    /// The instant of a test's clock; none lets the server's count.
    fn clock(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| signed(clock.now().as_millis()))
    }

    /// The check value of the index secret, while it is not known to be written.
    fn unwritten_index(&self) -> Option<[u8; 16]> {
        let claimed = *self.index.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.filter(|_| !self.index_written.load(Ordering::Acquire))
    }

    fn index_is_written(&self) {
        self.index_written.store(true, Ordering::Release);
    }

    async fn publish_one(&self, revocation: &Revocation) -> Result<(), StoreError> {
        let (kinds, of, numbers) = feed::entries(std::slice::from_ref(revocation));
        let published = self.pool.run(|pool| {
            let query = sqlx::query(sql::PUBLISH)
                .bind(kinds.clone())
                .bind(of.clone())
                .bind(numbers.clone())
                .bind(self.channel.clone())
                .bind(self.clock());
            async move { query.execute(&pool).await }
        });
        published.await.map(drop)
    }

    /// Raises a user's epoch, by one or to at least `epoch`, and ends the sessions below. How many there were.
    async fn end_all(&self, subject: &SubjectKey, epoch: Option<u64>) -> Result<u64, StoreError> {
        let ended: (i64, i64) = self
            .pool
            .run(|pool| {
                let query = sqlx::query_as(sql::END_ALL)
                    .bind(subject.as_bytes().to_vec())
                    .bind(epoch.map(signed))
                    .bind(self.channel.clone())
                    .bind(self.clock());
                async move { query.fetch_one(&pool).await }
            })
            .await?;
        Ok(unsigned(ended.0))
    }
}

impl Shared {
    /// Signs out everybody who was authenticated before `moment`.
    async fn end_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        let ended = self.pool.run(|pool| {
            let query = sqlx::query(sql::END_BEFORE)
                .bind(signed(moment.as_millis()))
                .bind(self.channel.clone())
                .bind(self.clock());
            async move { query.execute(&pool).await }
        });
        ended.await.map(drop)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        self.0.create(&new).await
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        let clock = self.0.clock();
        let lines: Vec<(Vec<u8>, i64, Option<Vec<u8>>, Option<Vec<u8>>)> = self
            .0
            .pool
            .run(|pool| async move {
                sqlx::query_as(sql::LOAD).bind(id.as_bytes().as_slice()).bind(clock).fetch_all(&pool).await
            })
            .await?;
        let Some((row, now, ..)) = lines.first() else { return Ok(None) };
        let row = sessions::row_of(row);
        if !is_live(&row, 0, instant(*now)) {
            return Ok(None);
        }
        let fields = lines.into_iter().filter_map(|(_, _, tag, value)| Some((tag?, value?))).collect();
        Ok(Some((row, tagged(fields))))
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        if request.edit || request.deadline.is_some() {
            return optimistic::commit(&*self.0, &request).await;
        }
        let put = self.0.put(&request.id, &request.fields).await?;
        Ok(optimistic::taken(&request, put))
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        optimistic::rotate(&*self.0, &request).await
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        self.0.end_session(id).await
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        self.0.end_all(subject, None).await
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.0.end_before(moment).await
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        let clock = self.0.clock();
        let found: Vec<(Vec<u8>, Vec<u8>, i64)> = self
            .0
            .pool
            .run(|pool| async move {
                sqlx::query_as(sql::LIST)
                    .bind(subject.as_bytes().as_slice())
                    .bind(clock)
                    .fetch_all(&pool)
                    .await
            })
            .await?;
        let session = |(id, row, now): (Vec<u8>, Vec<u8>, i64)| {
            let (id, row) = (StoredId::from_bytes(id.try_into().ok()?), sessions::row_of(&row));
            is_live(&row, 0, instant(now)).then_some((id, row))
        };
        Ok(found.into_iter().filter_map(session).collect())
    }

    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        let (shared, mut purged) = (&self.0, 0);
        loop {
            let clock = shared.clock();
            let batch = shared.pool.run(|pool| async move {
                sqlx::query(sql::PURGE).bind(PURGE_BATCH).bind(clock).execute(&pool).await
            });
            let batch = batch.await?.rows_affected();
            purged += batch;
            if batch < unsigned(PURGE_BATCH) {
                break;
            }
        }
        let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
        let clock = shared.clock();
        let feed = shared.pool.run(|pool| async move {
            sqlx::query(sql::PURGE_FEED).bind(window).bind(clock).execute(&pool).await
        });
        feed.await?;
        Ok(purged)
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        match from {
            FeedPosition::Window(window) => self.0.window(window).await,
            FeedPosition::After(mark) => self.0.after(&mark).await,
        }
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        for revocation in lost {
            match revocation {
                Revocation::Session(id) => {
                    self.0.end_session(id).await?;
                }
                Revocation::Subject(subject, epoch) => {
                    self.0.end_all(subject, Some(*epoch)).await?;
                }
                Revocation::Before(moment) => self.0.end_before(*moment).await?,
                Revocation::Claims(..) | Revocation::Superseded(_) => self.0.publish_one(revocation).await?,
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        let clock = self.0.clock();
        let now: (i64,) = self
            .0
            .pool
            .run(|pool| async move { sqlx::query_as(sql::NOW).bind(clock).fetch_one(&pool).await })
            .await?;
        Ok(instant(now.0))
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        let mut index = self.0.index.lock().unwrap_or_else(PoisonError::into_inner);
        if *index.get_or_insert(check) == check { Ok(()) } else { Err(IndexMismatch::new()) }
    }
}

fn tagged(fields: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(FieldTag, Vec<u8>)> {
    let field = |(tag, value): (Vec<u8>, _)| Some((FieldTag::from_bytes(tag.try_into().ok()?), value));
    fields.into_iter().filter_map(field).collect()
}

/// PostgreSQL's integers are signed. Nothing real reaches the limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn instant(millis: i64) -> Timestamp {
    Timestamp::from_millis(unsigned(millis))
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresStore")
    }
}

const PURGE_BATCH: i64 = 500;
