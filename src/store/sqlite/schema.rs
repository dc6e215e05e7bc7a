//! The tables, and how a file comes to have them.

use std::{fs::OpenOptions, io::ErrorKind, path::Path};

use sqlx::{Sqlite, SqlitePool, Transaction};

use super::super::{
    contract::{IndexMismatch, StoreError},
    open_error::StoreOpenError,
};
use crate::clock::Timestamp;

pub(super) fn refused(path: &Path, error: &sqlx::Error) -> StoreOpenError {
    StoreOpenError::new(
        format!("the session database {} cannot be opened ({error})", path.display()),
        "check that its folder exists, that this process may write there, and that it is an SQLite file",
    )
}

/// Makes the file for its owner alone, if it is not there. SQLite gives its two companions the same mode.
pub(super) fn make_file(path: &Path) -> Result<(), StoreOpenError> {
    let name = path.to_string_lossy();
    if name.is_empty() || name == ":memory:" || name.starts_with("file:") {
        return Err(StoreOpenError::new(
            format!("the session database `{name}` is no file"),
            "name a file, or use MemoryStore",
        ));
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(refused(path, &sqlx::Error::Io(error))),
        _ => Ok(()),
    }
}

/// Brings the file to this version's tables, and gives the check value of the index secret it belongs to, and when it
/// was made.
///
/// Safe under several processes at once: the first takes the write lock, the others find the work done.
pub(super) async fn migrate(
    writer: &SqlitePool,
    path: &Path,
    now: Timestamp,
) -> Result<(Option<[u8; 16]>, Timestamp), StoreOpenError> {
    let failed = |error: sqlx::Error| refused(path, &error);
    let mut step = writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let (version,): (i64,) =
        sqlx::query_as("PRAGMA user_version").fetch_one(&mut *step).await.map_err(failed)?;
    let (application,): (i64,) =
        sqlx::query_as("PRAGMA application_id").fetch_one(&mut *step).await.map_err(failed)?;
    let (tables,): (i64,) =
        sqlx::query_as("SELECT COUNT(*) FROM sqlite_schema").fetch_one(&mut *step).await.map_err(failed)?;
    let is_new = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION && !is_new {
        return Err(StoreOpenError::new(
            format!("the database {} is another program's", path.display()),
            "give sessions a file of their own",
        ));
    }
    if version > VERSION {
        return Err(StoreOpenError::new(
            format!("the session database {} was made by a later version of portcullis", path.display()),
            "use that version, or another file",
        ));
    }
    if version < VERSION {
        sqlx::raw_sql(TABLES).execute(&mut *step).await.map_err(failed)?;
        sqlx::query("INSERT INTO portcullis_meta (name, value) VALUES ('born', ?)")
            .bind(now.as_millis().to_be_bytes().as_slice())
            .execute(&mut *step)
            .await
            .map_err(failed)?;
    }
    let (born,): (Vec<u8>,) = sqlx::query_as("SELECT value FROM portcullis_meta WHERE name = 'born'")
        .fetch_one(&mut *step)
        .await
        .map_err(failed)?;
    let born =
        born.try_into().map_or(Timestamp::MAX, |born| Timestamp::from_millis(u64::from_be_bytes(born)));
    let index: Option<(Vec<u8>,)> =
        sqlx::query_as("SELECT value FROM portcullis_meta WHERE name = 'index_check'")
            .fetch_optional(&mut *step)
            .await
            .map_err(failed)?;
    step.commit().await.map_err(failed)?;
    Ok((index.and_then(|(value,)| value.try_into().ok()), born))
}

/// Writes the check value, unless another process wrote one; then both must be the same.
pub(super) async fn write_index(
    step: &mut Transaction<'_, Sqlite>,
    check: [u8; 16],
) -> Result<(), StoreError> {
    sqlx::query("INSERT OR IGNORE INTO portcullis_meta (name, value) VALUES ('index_check', ?)")
        .bind(check.as_slice())
        .execute(&mut **step)
        .await
        .map_err(StoreError::new)?;
    let (value,): (Vec<u8>,) = sqlx::query_as("SELECT value FROM portcullis_meta WHERE name = 'index_check'")
        .fetch_one(&mut **step)
        .await
        .map_err(StoreError::new)?;
    if value == check { Ok(()) } else { Err(IndexMismatch::new().into()) }
}

const VERSION: i64 = 1;

/// "Prtl", in the file's header, so that a database of another program is not taken for ours.
const APPLICATION: i64 = 0x5072_746c;

/// Times are milliseconds since the epoch. The indexes serve the user's list, the purge and the feed; none is touched by
/// a renewal but the one of deadlines.
const TABLES: &str = "
CREATE TABLE portcullis_sessions (
    id BLOB NOT NULL PRIMARY KEY,
    previous INTEGER NOT NULL, floor INTEGER NOT NULL, issued INTEGER NOT NULL, rotated_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, renewed_at INTEGER NOT NULL, authenticated_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL, ends_at INTEGER NOT NULL, superseded_at INTEGER, predecessor BLOB, successor BLOB, subject BLOB,
    epoch INTEGER NOT NULL, claims_version INTEGER NOT NULL, upgrades INTEGER NOT NULL, remembered INTEGER NOT NULL,
    device BLOB, key BLOB NOT NULL, sealed BLOB NOT NULL, mac BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX portcullis_sessions_subject ON portcullis_sessions (subject) WHERE subject IS NOT NULL;
CREATE INDEX portcullis_sessions_deadline ON portcullis_sessions (deadline);
CREATE TABLE portcullis_fields (
    session BLOB NOT NULL REFERENCES portcullis_sessions (id) ON DELETE CASCADE,
    tag BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (session, tag)
) STRICT, WITHOUT ROWID;
CREATE TABLE portcullis_subjects (subject BLOB NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE portcullis_revocations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind INTEGER NOT NULL, subject_of BLOB NOT NULL,
    value INTEGER NOT NULL
) STRICT;
CREATE INDEX portcullis_revocations_at ON portcullis_revocations (at);
CREATE TABLE portcullis_meta (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
PRAGMA application_id = 1349678188;
";
