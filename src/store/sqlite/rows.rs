//! The statements over sessions, their fields and their users.

use std::time::Duration;

use sqlx::{Executor, FromRow as _, Sqlite};

use super::{
    super::{
        contract::StoreError,
        revocation::Revocation,
        row::{FieldTag, Row},
        steps::{MOST_PREDECESSORS, is_live},
    },
    columns::{Done, Found, Step, before, instant, signed, unsigned},
    feed::publish,
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
    session::Device,
};

pub(super) async fn exists(step: &mut Step<'_>, id: &StoredId) -> Done<bool> {
    let found = sqlx::query("SELECT 1 FROM portcullis_sessions WHERE id = ?")
        .bind(id.as_bytes().as_slice())
        .fetch_optional(&mut **step)
        .await;
    Ok(found.map_err(StoreError::new)?.is_some())
}

/// The session, unless it is over.
pub(super) async fn live<'e>(
    from: impl Executor<'e, Database = Sqlite>,
    id: &StoredId,
    now: Timestamp,
) -> Done<Option<Row>> {
    let found: sqlx::Result<Option<Found>> = sqlx::query_as(concat!(
        "SELECT s.*, COALESCE(u.epoch, 0) AS subject_epoch FROM portcullis_sessions s ",
        "LEFT JOIN portcullis_subjects u ON u.subject = s.subject WHERE s.id = ? AND s.authenticated_at >= ",
        "COALESCE((SELECT epoch FROM portcullis_subjects WHERE subject = x''), 0)"
    ))
    .bind(id.as_bytes().as_slice())
    .fetch_optional(from)
    .await;
    let found = match found {
        // Somebody changed the row by hand: it counts as gone, as one that fails its MAC does.
        Err(sqlx::Error::ColumnDecode { index, .. }) => {
            tracing::warn!(target: "portcullis", column = index, "a row of the session database cannot be read");
            None
        }
        found => found.map_err(StoreError::new)?,
    };
    Ok(found.filter(|found| is_live(&found.row, found.subject_epoch, now)).map(|found| found.row))
}

/// The user's sessions that are neither over nor superseded, oldest first.
pub(super) async fn list<'e>(
    from: impl Executor<'e, Database = Sqlite>,
    subject: &SubjectKey,
    now: Timestamp,
) -> Done<Vec<(StoredId, Row)>> {
    let found = sqlx::query(concat!(
        "SELECT s.*, COALESCE(u.epoch, 0) AS subject_epoch FROM portcullis_sessions s ",
        "LEFT JOIN portcullis_subjects u ON u.subject = s.subject ",
        "WHERE s.subject = ? AND s.superseded_at IS NULL AND s.authenticated_at >= ",
        "COALESCE((SELECT epoch FROM portcullis_subjects WHERE subject = x''), 0) ORDER BY s.created_at, s.id"
    ))
    .bind(subject.as_bytes().as_slice())
    .fetch_all(from)
    .await
    .map_err(StoreError::new)?;
    // A row that somebody changed by hand is none; the others stay.
    let found = found.iter().filter_map(|row| Found::from_row(row).ok());
    let live = found.filter(|found| is_live(&found.row, found.subject_epoch, now));
    Ok(live.map(|found| (found.id, found.row)).collect())
}

pub(super) async fn fields<'e>(
    from: impl Executor<'e, Database = Sqlite>,
    id: &StoredId,
) -> Done<Vec<(FieldTag, Vec<u8>)>> {
    let found: Vec<(Vec<u8>, Vec<u8>)> =
        sqlx::query_as("SELECT tag, value FROM portcullis_fields WHERE session = ?")
            .bind(id.as_bytes().as_slice())
            .fetch_all(from)
            .await
            .map_err(StoreError::new)?;
    let field = |(tag, value): (Vec<u8>, Vec<u8>)| Some((FieldTag::from_bytes(tag.try_into().ok()?), value));
    Ok(found.into_iter().filter_map(field).collect())
}

/// Writes a row, new or not. Not by REPLACE: that would delete the row first, and its fields with it.
pub(super) async fn write(step: &mut Step<'_>, id: &StoredId, row: &Row) -> Done {
    sqlx::query(concat!(
        "INSERT INTO portcullis_sessions (id, previous, floor, issued, rotated_at, created_at, renewed_at, ",
        "authenticated_at, deadline, ends_at, superseded_at, predecessor, successor, subject, epoch, claims_version, ",
        "upgrades, remembered, device, key, sealed, mac) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET ",
        "previous = excluded.previous, floor = excluded.floor, issued = excluded.issued, ",
        "rotated_at = excluded.rotated_at, renewed_at = excluded.renewed_at, deadline = excluded.deadline, ",
        "ends_at = excluded.ends_at, authenticated_at = excluded.authenticated_at, device = excluded.device, ",
        "superseded_at = excluded.superseded_at, successor = excluded.successor, ",
        "claims_version = excluded.claims_version, upgrades = excluded.upgrades, key = excluded.key, ",
        "sealed = excluded.sealed, mac = excluded.mac"
    ))
    .bind(id.as_bytes().as_slice())
    .bind(signed(row.rotation.previous))
    .bind(signed(row.rotation.floor))
    .bind(signed(row.rotation.issued))
    .bind(instant(row.rotation.rotated_at))
    .bind(instant(row.created_at))
    .bind(instant(row.renewed_at))
    .bind(instant(row.authenticated_at))
    .bind(instant(row.deadline))
    .bind(instant(row.ends_at))
    .bind(row.superseded_at.map(instant))
    .bind(row.predecessor.as_ref().map(|id| id.as_bytes().as_slice()))
    .bind(row.successor.as_ref().map(|id| id.as_bytes().as_slice()))
    .bind(row.subject.as_ref().map(|subject| subject.as_bytes().as_slice()))
    .bind(signed(row.epoch))
    .bind(signed(row.claims_version))
    .bind(row.upgrades)
    .bind(row.remembered)
    .bind(row.device.as_deref().map(Device::to_bytes))
    .bind(row.key.as_slice())
    .bind(row.sealed.as_slice())
    .bind(row.mac.as_slice())
    .execute(&mut **step)
    .await
    .map_err(StoreError::new)?;
    Ok(())
}

pub(super) async fn write_field(
    step: &mut Step<'_>,
    id: &StoredId,
    tag: &FieldTag,
    value: Option<&[u8]>,
) -> Done {
    let query = match value {
        Some(_) => "INSERT OR REPLACE INTO portcullis_fields (session, tag, value) VALUES (?, ?, ?)",
        None => "DELETE FROM portcullis_fields WHERE session = ? AND tag = ?",
    };
    let mut query = sqlx::query(query).bind(id.as_bytes().as_slice()).bind(tag.as_bytes().as_slice());
    if let Some(value) = value {
        query = query.bind(value);
    }
    query.execute(&mut **step).await.map_err(StoreError::new)?;
    Ok(())
}

/// Ends a session and those whose newer id it is. Published also where nothing is found: a cookie may be out there.
pub(super) async fn end(step: &mut Step<'_>, id: &StoredId, now: Timestamp) -> Done {
    let mut next = Some(*id);
    while let Some(id) = next {
        publish(step, &Revocation::Session(id), now).await?;
        let removed: Option<(Option<Vec<u8>>,)> =
            sqlx::query_as("DELETE FROM portcullis_sessions WHERE id = ? RETURNING predecessor")
                .bind(id.as_bytes().as_slice())
                .fetch_optional(&mut **step)
                .await
                .map_err(StoreError::new)?;
        next = removed.and_then(|(predecessor,)| predecessor?.try_into().ok()).map(StoredId::from_bytes);
    }
    Ok(())
}

/// Cookies of the ids before a session's present one carry its old claims too.
pub(super) async fn outdate_predecessors(
    step: &mut Step<'_>,
    predecessor: Option<StoredId>,
    now: Timestamp,
) -> Done {
    let mut before = predecessor;
    // Bounded: a hand-made circle in the database must not hold the write lock.
    for _ in 0..MOST_PREDECESSORS {
        let Some(id) = before else { break };
        publish(step, &Revocation::Claims(id, u64::MAX), now).await?;
        let found: Option<(Option<Vec<u8>>,)> =
            sqlx::query_as("SELECT predecessor FROM portcullis_sessions WHERE id = ?")
                .bind(id.as_bytes().as_slice())
                .fetch_optional(&mut **step)
                .await
                .map_err(StoreError::new)?;
        before = found.and_then(|(id,)| id?.try_into().ok()).map(StoredId::from_bytes);
    }
    if before.is_some() {
        // Better no new claims, and the application told of it, than old ones that live on in some cookie.
        return Err(StoreError::new("the session has had too many ids"));
    }
    Ok(())
}

/// Raises a user's epoch to at least `epoch`, and ends the sessions below it.
pub(super) async fn end_below(step: &mut Step<'_>, subject: &SubjectKey, epoch: u64) -> Done {
    sqlx::query(concat!(
        "INSERT INTO portcullis_subjects (subject, epoch) VALUES (?, ?) ",
        "ON CONFLICT (subject) DO UPDATE SET epoch = MAX(epoch, excluded.epoch)"
    ))
    .bind(subject.as_bytes().as_slice())
    .bind(signed(epoch))
    .execute(&mut **step)
    .await
    .map_err(StoreError::new)?;
    sqlx::query("DELETE FROM portcullis_sessions WHERE subject = ? AND epoch < ?")
        .bind(subject.as_bytes().as_slice())
        .bind(signed(epoch))
        .execute(&mut **step)
        .await
        .map_err(StoreError::new)?;
    Ok(())
}

/// Keeps in mind that everybody who was authenticated before `moment` is signed out: as the epoch of the user without a
/// name, whom nobody else can be.
pub(super) async fn end_before(step: &mut Step<'_>, moment: Timestamp) -> Done {
    sqlx::query(concat!(
        "INSERT INTO portcullis_subjects (subject, epoch) VALUES (x'', ?) ",
        "ON CONFLICT (subject) DO UPDATE SET epoch = MAX(epoch, excluded.epoch)"
    ))
    .bind(instant(moment))
    .execute(&mut **step)
    .await
    .map_err(StoreError::new)?;
    Ok(())
}

pub(super) async fn epoch(step: &mut Step<'_>, subject: &SubjectKey) -> Done<u64> {
    let found: Option<(i64,)> = sqlx::query_as("SELECT epoch FROM portcullis_subjects WHERE subject = ?")
        .bind(subject.as_bytes().as_slice())
        .fetch_optional(&mut **step)
        .await
        .map_err(StoreError::new)?;
    Ok(found.map_or(0, |(epoch,)| unsigned(epoch)))
}

/// Deletes up to `batch` sessions that are over, and the feed's entries before the window.
pub(super) async fn purge(step: &mut Step<'_>, now: Timestamp, window: Duration, batch: u64) -> Done<u64> {
    let purged = sqlx::query(concat!(
        "DELETE FROM portcullis_sessions WHERE id IN ",
        "(SELECT id FROM portcullis_sessions WHERE deadline <= ? ORDER BY deadline LIMIT ?)"
    ))
    .bind(instant(now))
    .bind(signed(batch))
    .execute(&mut **step)
    .await
    .map_err(StoreError::new)?;
    let window = widest_window(step, window).await?;
    sqlx::query("DELETE FROM portcullis_revocations WHERE at < ?")
        .bind(before(now, window))
        .execute(&mut **step)
        .await
        .map_err(StoreError::new)?;
    Ok(purged.rows_affected())
}

/// The largest window that any layer over this file purges with: what one of them still needs, none may drop.
async fn widest_window(step: &mut Step<'_>, window: Duration) -> Done<Duration> {
    let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    let (widest,): (Vec<u8>,) = sqlx::query_as(concat!(
        "INSERT INTO portcullis_meta (name, value) VALUES ('window', ?) ",
        "ON CONFLICT (name) DO UPDATE SET value = MAX(value, excluded.value) RETURNING value"
    ))
    .bind(millis.to_be_bytes().as_slice())
    .fetch_one(&mut **step)
    .await
    .map_err(StoreError::new)?;
    Ok(widest.try_into().map_or(window, |widest| Duration::from_millis(u64::from_be_bytes(widest))))
}
