//! The statements: rows to columns and back.

use std::time::Duration;

use sqlx::{Executor, FromRow, Row as _, Sqlite, Transaction, sqlite::SqliteRow};

use super::super::{
    contract::{FeedBatch, FeedPosition, StoreError},
    revocations::Revocation,
    row::{FieldTag, Row},
    steps::is_live,
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
    session::Rotation,
};

type Step<'a> = Transaction<'a, Sqlite>;
type Done<T = ()> = Result<T, StoreError>;

/// A row with the present epoch of its user.
struct Found {
    id: StoredId,
    row: Row,
    subject_epoch: u64,
}

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
        "LEFT JOIN portcullis_subjects u ON u.subject = s.subject WHERE s.id = ?"
    ))
    .bind(id.as_bytes().as_slice())
    .fetch_optional(from)
    .await;
    let found = match found {
        // Somebody changed the row by hand: it counts as gone, as one that fails its MAC does.
        Err(sqlx::Error::ColumnDecode { .. }) => None,
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
    let found: Vec<Found> = sqlx::query_as(concat!(
        "SELECT s.*, COALESCE(u.epoch, 0) AS subject_epoch FROM portcullis_sessions s ",
        "LEFT JOIN portcullis_subjects u ON u.subject = s.subject ",
        "WHERE s.subject = ? AND s.superseded_at IS NULL ORDER BY s.created_at, s.id"
    ))
    .bind(subject.as_bytes().as_slice())
    .fetch_all(from)
    .await
    .map_err(StoreError::new)?;
    let live = found.into_iter().filter(|found| is_live(&found.row, found.subject_epoch, now));
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
        "authenticated_at, deadline, ends_at, superseded_at, predecessor, subject, epoch, claims_version, upgrades, ",
        "remembered, key, sealed, mac) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET ",
        "previous = excluded.previous, floor = excluded.floor, issued = excluded.issued, ",
        "rotated_at = excluded.rotated_at, renewed_at = excluded.renewed_at, deadline = excluded.deadline, ",
        "ends_at = excluded.ends_at, superseded_at = excluded.superseded_at, ",
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
    .bind(row.subject.as_ref().map(|subject| subject.as_bytes().as_slice()))
    .bind(signed(row.epoch))
    .bind(signed(row.claims_version))
    .bind(row.upgrades)
    .bind(row.remembered)
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

pub(super) async fn remove_all(step: &mut Step<'_>, subject: &SubjectKey) -> Done {
    sqlx::query("DELETE FROM portcullis_sessions WHERE subject = ?")
        .bind(subject.as_bytes().as_slice())
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

pub(super) async fn raise_epoch(step: &mut Step<'_>, subject: &SubjectKey) -> Done<u64> {
    let (epoch,): (i64,) = sqlx::query_as(concat!(
        "INSERT INTO portcullis_subjects (subject, epoch) VALUES (?, 1) ",
        "ON CONFLICT (subject) DO UPDATE SET epoch = epoch + 1 RETURNING epoch"
    ))
    .bind(subject.as_bytes().as_slice())
    .fetch_one(&mut **step)
    .await
    .map_err(StoreError::new)?;
    Ok(unsigned(epoch))
}

pub(super) async fn publish(step: &mut Step<'_>, revocation: &Revocation, now: Timestamp) -> Done {
    let (kind, of, value): (i64, &[u8], u64) = match revocation {
        Revocation::Session(id) => (SESSION, id.as_bytes(), 0),
        Revocation::Claims(id, version) => (CLAIMS, id.as_bytes(), *version),
        Revocation::Subject(subject, epoch) => (SUBJECT, subject.as_bytes(), *epoch),
    };
    sqlx::query("INSERT INTO portcullis_revocations (at, kind, subject_of, value) VALUES (?, ?, ?, ?)")
        .bind(instant(now))
        .bind(kind)
        .bind(of)
        .bind(signed(value))
        .execute(&mut **step)
        .await
        .map_err(StoreError::new)?;
    Ok(())
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
    sqlx::query("DELETE FROM portcullis_revocations WHERE at < ?")
        .bind(before(now, window))
        .execute(&mut **step)
        .await
        .map_err(StoreError::new)?;
    Ok(purged.rows_affected())
}

pub(super) async fn feed<'e>(
    from: impl Executor<'e, Database = Sqlite>,
    position: FeedPosition,
    now: Timestamp,
) -> Done<FeedBatch> {
    // The last number is read in the same statement as the entries: what is written between two would be missed.
    let (at, after) = match position {
        FeedPosition::Window(window) => (before(now, window), 0),
        FeedPosition::After(last) => (0, signed(last)),
    };
    let found: Vec<(i64, i64, i64, Vec<u8>, i64)> = sqlx::query_as(concat!(
        "SELECT number, at, kind, subject_of, value FROM portcullis_revocations WHERE number > ? AND at >= ? ",
        "UNION ALL SELECT COALESCE(MAX(number), 0), 0, -1, x'', 0 FROM portcullis_revocations ORDER BY number"
    ))
    .bind(after)
    .bind(at)
    .fetch_all(from)
    .await
    .map_err(StoreError::new)?;
    let last = found.iter().map(|(number, ..)| unsigned(*number)).max().unwrap_or(0).max(unsigned(after));
    let entry = |(_, at, kind, of, value): (i64, i64, i64, Vec<u8>, i64)| {
        let value = unsigned(value);
        let revocation = match kind {
            SESSION => Revocation::Session(StoredId::from_bytes(of.try_into().ok()?)),
            CLAIMS => Revocation::Claims(StoredId::from_bytes(of.try_into().ok()?), value),
            SUBJECT => Revocation::Subject(SubjectKey::from_bytes(of.try_into().ok()?), value),
            _ => return None,
        };
        Some((revocation, Timestamp::from_millis(unsigned(at))))
    };
    Ok(FeedBatch {
        entries: found.into_iter().filter_map(entry).collect(),
        position: FeedPosition::After(last),
    })
}

impl FromRow<'_, SqliteRow> for Found {
    fn from_row(from: &SqliteRow) -> sqlx::Result<Self> {
        let number = |name: &str| from.try_get::<i64, _>(name).map(unsigned);
        let at = |name: &str| number(name).map(Timestamp::from_millis);
        let row = Row {
            rotation: Rotation {
                previous: number("previous")?,
                floor: number("floor")?,
                issued: number("issued")?,
                rotated_at: at("rotated_at")?,
            },
            created_at: at("created_at")?,
            renewed_at: at("renewed_at")?,
            authenticated_at: at("authenticated_at")?,
            deadline: at("deadline")?,
            ends_at: at("ends_at")?,
            superseded_at: from
                .try_get::<Option<i64>, _>("superseded_at")?
                .map(unsigned)
                .map(Timestamp::from_millis),
            predecessor: optional_bytes(from, "predecessor")?.map(StoredId::from_bytes),
            subject: optional_bytes(from, "subject")?.map(SubjectKey::from_bytes),
            epoch: number("epoch")?,
            claims_version: number("claims_version")?,
            upgrades: from.try_get("upgrades")?,
            remembered: from.try_get("remembered")?,
            key: bytes(from, "key")?,
            sealed: from.try_get("sealed")?,
            mac: bytes(from, "mac")?,
        };
        Ok(Self {
            id: StoredId::from_bytes(bytes(from, "id")?),
            row,
            subject_epoch: number("subject_epoch")?,
        })
    }
}

fn bytes<const N: usize>(from: &SqliteRow, name: &str) -> sqlx::Result<[u8; N]> {
    optional_bytes(from, name)?.ok_or_else(|| sqlx::Error::ColumnNotFound(name.into()))
}

fn optional_bytes<const N: usize>(from: &SqliteRow, name: &str) -> sqlx::Result<Option<[u8; N]>> {
    let bytes: Option<Vec<u8>> = from.try_get(name)?;
    match bytes {
        Some(bytes) => bytes.try_into().map(Some).map_err(|_| sqlx::Error::ColumnDecode {
            index: name.into(),
            source: "not of the length this column has".into(),
        }),
        None => Ok(None),
    }
}

/// SQLite's integers are signed. Nothing real reaches the limit; a value that does fails its row's MAC.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn instant(at: Timestamp) -> i64 {
    signed(at.as_millis())
}

fn before(now: Timestamp, window: Duration) -> i64 {
    instant(now).saturating_sub(i64::try_from(window.as_millis()).unwrap_or(i64::MAX))
}

const SESSION: i64 = 1;
const CLAIMS: i64 = 2;
const SUBJECT: i64 = 3;
