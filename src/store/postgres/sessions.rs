//! One session: found, written if nobody wrote it since, ended.

use async_trait::async_trait;
use sqlx::{Postgres, Transaction};

use super::{
    super::{
        contract::{CreateError, NewSession, Replacement, StoreError},
        optimistic::{Found, Records},
        revocation::Revocation,
        row::{FieldTag, Row},
        row_bytes,
        steps::{MOST_PREDECESSORS, is_as_seen, is_live, may_move, supersede_row},
    },
    Shared, feed, instant, schema, signed, sql,
};
use crate::{clock::Timestamp, id::StoredId};

type Step<'a> = Transaction<'a, Postgres>;
type Fields = (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>);

/// A row as it lies in the table. What cannot be read is kept, so that its reader finds that it is not as it was signed.
pub(super) fn row_of(bytes: &[u8]) -> Row {
    row_bytes::decode(bytes).unwrap_or_else(row_bytes::damaged)
}

impl Shared {
    /// Creates a session in one transaction with what becomes of the session it replaces.
    pub(super) async fn create(&self, new: &NewSession<'_>) -> Result<Row, CreateError> {
        let claimed = self.unwritten_index();
        let mut step = self.pool.run(|pool| async move { pool.begin().await }).await?;
        if let Some(check) = claimed {
            schema::write_index(&mut step, check).await?;
        }
        let mut row = Row { predecessor: None, successor: None, epoch: 0, ..new.row.clone() };
        if let Some(subject) = &row.subject {
            let epoch: Option<(i64,)> = sqlx::query_as(sql::EPOCH)
                .bind(subject.as_bytes().as_slice())
                .fetch_optional(&mut *step)
                .await
                .map_err(StoreError::new)?;
            row.epoch = epoch.map_or(0, |(epoch,)| super::unsigned(epoch));
        }
        row.predecessor = self.replace(&mut step, new).await?;
        new.keeper.sign(&new.id, &mut row);
        self.insert(&mut step, &new.id, &row, &new.fields).await?;
        step.commit().await.map_err(StoreError::new)?;
        if claimed.is_some() {
            self.index_is_written();
        }
        Ok(row)
    }

    /// What becomes of the session that a new one replaces. The predecessor of the new one, if it stays.
    async fn replace(
        &self,
        step: &mut Step<'_>,
        new: &NewSession<'_>,
    ) -> Result<Option<StoredId>, CreateError> {
        let (old, supersedes) = match new.replaces {
            None => return Ok(None),
            Some(Replacement::End(old)) => {
                self.end_in(step, &old).await?;
                return Ok(None);
            }
            Some(Replacement::Move(old)) => (old, false),
            Some(Replacement::Supersede(old)) => (old, true),
        };
        let found: Option<(Vec<u8>, i64, i64)> = sqlx::query_as(sql::FIND_AND_HOLD)
            .bind(old.as_bytes().as_slice())
            .bind(self.clock())
            .fetch_optional(&mut **step)
            .await
            .map_err(StoreError::new)?;
        let (row, version, now) = found.ok_or(CreateError::ReplacedGone)?;
        let (row, now) = (row_of(&row), instant(now));
        let superseded = supersede_row(&old, &row, new.id, now, new.keeper);
        let after = superseded.filter(|_| is_live(&row, 0, now) && may_move(&old, &row, new.keeper));
        let after = after.ok_or(CreateError::ReplacedGone)?;
        if new.seen.is_some() {
            let fields: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as(sql::FIELDS)
                .bind(old.as_bytes().as_slice())
                .fetch_all(&mut **step)
                .await
                .map_err(StoreError::new)?;
            if !is_as_seen(new.seen.as_ref(), &row, &super::tagged(fields)) {
                return Err(CreateError::ReplacedChanged);
            }
        }
        if !supersedes {
            self.end_in(step, &old).await?;
            return Ok(None);
        }
        let query = self.swap_query(&old, version, &after, &[], &[Revocation::Superseded(old)]);
        let (written, _): (i64, i64) = query.fetch_one(&mut **step).await.map_err(StoreError::new)?;
        if written == 1 { Ok(Some(old)) } else { Err(CreateError::ReplacedGone) }
    }

    async fn insert(
        &self,
        step: &mut Step<'_>,
        id: &StoredId,
        row: &Row,
        fields: &[(FieldTag, Vec<u8>)],
    ) -> Result<(), CreateError> {
        let (until, due) = ends(row);
        let (tags, values): (Vec<_>, Vec<_>) =
            fields.iter().map(|(tag, value)| (tag.as_bytes().to_vec(), value.clone())).unzip();
        let inserted = sqlx::query(sql::INSERT)
            .bind(id.as_bytes().as_slice())
            .bind(row_bytes::encode(row))
            .bind(until)
            .bind(due)
            .bind(row.superseded_at.is_some())
            .bind(row.predecessor.as_ref().map(|id| id.as_bytes().to_vec()))
            .bind(row.subject.as_ref().map(|subject| subject.as_bytes().to_vec()))
            .bind(signed(row.epoch))
            .bind(signed(row.created_at.as_millis()))
            .bind(tags)
            .bind(values)
            .bind(signed(row.authenticated_at.as_millis()))
            .execute(&mut **step)
            .await;
        match inserted {
            Ok(_) => Ok(()),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(CreateError::Taken),
            Err(error) => Err(StoreError::new(error).into()),
        }
    }

    async fn end_in(&self, step: &mut Step<'_>, id: &StoredId) -> Result<(), StoreError> {
        let query = self.end_query(id).fetch_one(&mut **step);
        query.await.map(drop).map_err(StoreError::new)
    }

    /// Ends a session and those whose newer id it is. Whether it was live.
    pub(super) async fn end_session(&self, id: &StoredId) -> Result<bool, StoreError> {
        let ended = self.pool.run(|pool| async move { self.end_query(id).fetch_one(&pool).await });
        ended.await.map(|(was_live, _)| was_live)
    }

    fn end_query(&self, id: &StoredId) -> Query<'static, (bool, i64)> {
        sqlx::query_as(sql::END)
            .bind(id.as_bytes().to_vec())
            .bind(i32::try_from(MOST_PREDECESSORS).unwrap_or(i32::MAX))
            .bind(self.channel.clone())
            .bind(self.clock())
    }

    /// Writes fields alone. The row and the instant, if the session took them.
    pub(super) async fn put(
        &self,
        id: &StoredId,
        fields: &[(FieldTag, Option<Vec<u8>>)],
    ) -> Result<Option<(Row, Timestamp)>, StoreError> {
        let (tags, values, cut) = split(fields);
        let put: Option<(Vec<u8>, i64)> = self
            .pool
            .run(|pool| {
                let query = sqlx::query_as(sql::PUT)
                    .bind(id.as_bytes().to_vec())
                    .bind(tags.clone())
                    .bind(values.clone())
                    .bind(cut.clone())
                    .bind(self.clock());
                async move { query.fetch_optional(&pool).await }
            })
            .await?;
        Ok(put.map(|(row, now)| (row_of(&row), instant(now))))
    }

    fn swap_query(
        &self,
        id: &StoredId,
        version: i64,
        row: &Row,
        fields: &[(FieldTag, Option<Vec<u8>>)],
        news: &[Revocation],
    ) -> Query<'static, (i64, i64)> {
        let (until, due) = ends(row);
        let (tags, values, cut) = split(fields);
        let (kinds, of, numbers) = feed::entries(news);
        sqlx::query_as(sql::SWAP)
            .bind(id.as_bytes().to_vec())
            .bind(version)
            .bind(row_bytes::encode(row))
            .bind(until)
            .bind(due)
            .bind(row.superseded_at.is_some())
            .bind(tags)
            .bind(values)
            .bind(cut)
            .bind(kinds)
            .bind(of)
            .bind(numbers)
            .bind(self.channel.clone())
            .bind(self.clock())
            .bind(signed(row.authenticated_at.as_millis()))
    }
}

type Query<'q, T> = sqlx::query::QueryAs<'q, Postgres, T, sqlx::postgres::PgArguments>;

#[async_trait]
impl Records for Shared {
    type Version = i64;

    async fn find(&self, id: &StoredId) -> Result<Option<Found<i64>>, StoreError> {
        let clock = self.clock();
        let found: Option<(Vec<u8>, i64, i64)> = self
            .pool
            .run(|pool| async move {
                let query = sqlx::query_as(sql::FIND).bind(id.as_bytes().as_slice()).bind(clock);
                query.fetch_optional(&pool).await
            })
            .await?;
        let found = found.map(|(row, version, now)| Found { row: row_of(&row), version, now: instant(now) });
        Ok(found.filter(|found| is_live(&found.row, 0, found.now)))
    }

    async fn swap(
        &self,
        id: &StoredId,
        found: &Found<i64>,
        row: &Row,
        fields: &[(FieldTag, Option<Vec<u8>>)],
        news: &[Revocation],
    ) -> Result<bool, StoreError> {
        let swapped = self.pool.run(|pool| {
            let query = self.swap_query(id, found.version, row, fields, news);
            async move { query.fetch_one(&pool).await }
        });
        swapped.await.map(|(written, _)| written == 1)
    }

    async fn end(&self, id: &StoredId) -> Result<(), StoreError> {
        self.end_session(id).await.map(drop)
    }

    async fn publish(&self, _: &StoredId, revocation: Revocation) -> Result<(), StoreError> {
        self.publish_one(&revocation).await
    }

    /// `find` and `swap` look at the epoch themselves.
    async fn is_outlived(&self, _: &Row) -> Result<bool, StoreError> {
        Ok(false)
    }
}

/// When a session is over, and the hour in which a purge will find it.
fn ends(row: &Row) -> (i64, i64) {
    let until = signed(row.deadline.min(row.ends_at).as_millis());
    (until, (until.saturating_add(HOUR - 1) / HOUR).saturating_mul(HOUR))
}

/// Fields to write and to remove, in the order of their tags, so that two commits never wait for each other in a circle.
fn split(fields: &[(FieldTag, Option<Vec<u8>>)]) -> Fields {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(tag, _)| *tag);
    let mut split = (Vec::new(), Vec::new(), Vec::new());
    for (tag, value) in sorted {
        match value {
            Some(value) => {
                split.0.push(tag.as_bytes().to_vec());
                split.1.push(value.clone());
            }
            None => split.2.push(tag.as_bytes().to_vec()),
        }
    }
    split
}

/// Milliseconds.
const HOUR: i64 = 3_600_000;
