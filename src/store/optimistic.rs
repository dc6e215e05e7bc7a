//! Rotation and commit for servers that hold no lock for us: read, decide here, and write if nobody wrote meanwhile.
//!
//! A row carries a MAC under keys that no server has, so no script and no statement of a server can write one. Deciding
//! here also means that there is one rotation table, the pure one, and that a client which dies or stops in the middle holds
//! nothing (attack A63): the version it read is what fences it off.

use async_trait::async_trait;

use super::{
    contract::{CommitRequest, RotateAnswer, RotateRequest, StoreError},
    revocation::Revocation,
    row::{FieldTag, Row},
    steps::{MOST_PREDECESSORS, RowChange, commit_row, is_live, rotate_row},
};
use crate::{clock::Timestamp, id::StoredId};

/// A session that is live, as it was read.
pub(super) struct Found<V> {
    pub(super) row: Row,
    /// What changes with every write of the row.
    pub(super) version: V,
    /// The instant of the store's clock, of the same step.
    pub(super) now: Timestamp,
}

/// What a server must be able to do, each in one atomic step.
#[async_trait]
pub(super) trait Records: Send + Sync {
    type Version: Send + Sync;

    async fn find(&self, id: &StoredId) -> Result<Option<Found<Self::Version>>, StoreError>;

    /// Writes the row and these fields, and publishes the news, if the session is live and its row is as it was found.
    async fn swap(
        &self,
        id: &StoredId,
        found: &Found<Self::Version>,
        row: &Row,
        fields: &[(FieldTag, Option<Vec<u8>>)],
        news: &[Revocation],
    ) -> Result<bool, StoreError>;

    /// Ends a session and those whose newer id it is, and publishes it.
    async fn end(&self, id: &StoredId) -> Result<(), StoreError>;

    /// Publishes an entry about a session.
    async fn publish(&self, of: &StoredId, revocation: Revocation) -> Result<(), StoreError>;

    /// Whether the user was signed out everywhere since the session began. Where `find` looks at that in its own step, no.
    async fn is_outlived(&self, row: &Row) -> Result<bool, StoreError>;
}

pub(super) async fn rotate<R: Records>(
    records: &R,
    request: &RotateRequest<'_>,
) -> Result<RotateAnswer, StoreError> {
    for _ in 0..MOST_TRIES {
        let Some(found) = records.find(&request.id).await? else { return Ok(RotateAnswer::Gone) };
        let step = rotate_row(request, &found.row, found.now).map_err(StoreError::new)?;
        let (done, outlived) = match &step.change {
            RowChange::Keep => (Ok(true), records.is_outlived(&found.row).await),
            // At once: an epoch that rises after it was read ends the session by itself, through the index and the feed.
            RowChange::Write(row) => tokio::join!(
                records.swap(&request.id, &found, row, &[], &[]),
                records.is_outlived(&found.row)
            ),
            RowChange::Revoke => (records.end(&request.id).await.map(|()| true), Ok(false)),
        };
        if outlived? {
            records.end(&request.id).await?;
            return Ok(RotateAnswer::Gone);
        }
        if done? {
            return Ok(step.answer);
        }
    }
    Err(contended())
}

/// A commit that changes the row.
pub(super) async fn commit<R: Records>(
    records: &R,
    request: &CommitRequest<'_>,
) -> Result<Option<Row>, StoreError> {
    for _ in 0..MOST_TRIES {
        let Some(found) = records.find(&request.id).await? else { return Ok(None) };
        let after = commit_row(request, &found.row, found.now).map_err(StoreError::new)?;
        let Some(after) = after else { return Ok(None) };
        let mut news = Vec::new();
        if request.edit {
            outdate_predecessors(records, &after).await?;
            news.push(Revocation::Claims(request.id, after.claims_version));
        }
        if records.swap(&request.id, &found, &after, &request.fields, &news).await? {
            return Ok(Some(after));
        }
    }
    Err(contended())
}

/// What became of a commit of fields alone, which was written to a session that is live by what lies beside its row. What a
/// session has taken whose row is not as it was signed, nobody will read.
pub(super) fn taken(request: &CommitRequest<'_>, put: Option<(Row, Timestamp)>) -> Option<Row> {
    let (row, now) = put?;
    let is_good =
        is_live(&row, 0, now) && row.superseded_at.is_none() && request.keeper.verify(&request.id, &row);
    is_good.then_some(row)
}

/// Cookies of the ids before this one carry the old claims too. Before the write, so that nobody who is cut off there has
/// written claims that older cookies do not know of; what is published in vain makes them renew once.
async fn outdate_predecessors<R: Records>(records: &R, row: &Row) -> Result<(), StoreError> {
    let mut before = row.predecessor;
    for _ in 0..MOST_PREDECESSORS {
        let Some(id) = before else { return Ok(()) };
        records.publish(&id, Revocation::Claims(id, u64::MAX)).await?;
        before = records.find(&id).await?.and_then(|found| found.row.predecessor);
    }
    Ok(())
}

/// Every try met another writer.
pub(super) fn contended() -> StoreError {
    StoreError::new("too many others write to this session")
}

/// Each try that fails means that another writer has succeeded.
pub(super) const MOST_TRIES: u32 = 64;
