//! The tables, and how a database comes to have them.

use sqlx::{PgPool, Postgres, Transaction};

use super::{
    super::{
        contract::{IndexMismatch, StoreError},
        open_error::StoreOpenError,
    },
    unsigned,
};
use crate::clock::Timestamp;

/// Brings the database to this version's tables, and gives the check value of the index secret it belongs to, and when it
/// was made.
///
/// Safe under several instances at once: the first takes the lock, the others find the work done. The lock is of the
/// transaction, so it also holds behind a pooler.
pub(super) async fn migrate(
    pool: &PgPool,
    place: &str,
    schema: Option<&str>,
    clock: Option<i64>,
) -> Result<(Option<[u8; 16]>, Timestamp), StoreOpenError> {
    let failed = |error: sqlx::Error| refused(place, &error);
    let mut step = pool.begin().await.map_err(failed)?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *step).await.map_err(failed)?;
    if let Some(schema) = schema {
        // The name was checked to be letters, digits and underscores.
        let text = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut *step).await.map_err(failed)?;
    }
    let (is_there,): (bool,) = sqlx::query_as("SELECT to_regclass('portcullis_meta') IS NOT NULL")
        .fetch_one(&mut *step)
        .await
        .map_err(failed)?;
    if !is_there {
        sqlx::raw_sql(TABLES).execute(&mut *step).await.map_err(failed)?;
        sqlx::query(concat!(
            "INSERT INTO portcullis_meta (name, value) VALUES ('version', int8send($1)), ",
            "('born', int8send(COALESCE($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)))"
        ))
        .bind(VERSION)
        .bind(clock)
        .execute(&mut *step)
        .await
        .map_err(failed)?;
    }
    let found: Vec<(String, Vec<u8>)> = sqlx::query_as("SELECT name, value FROM portcullis_meta")
        .fetch_all(&mut *step)
        .await
        .map_err(failed)?;
    step.commit().await.map_err(failed)?;
    let value = |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_slice());
    let number = |name: &str| value(name).and_then(|value| value.try_into().ok()).map(i64::from_be_bytes);
    if number("version") != Some(VERSION) {
        return Err(StoreOpenError::new(
            format!("the tables portcullis_… in {place} were made by another version of portcullis"),
            "use that version, or another schema",
        ));
    }
    let born = number("born").map_or(Timestamp::MAX, |born| Timestamp::from_millis(unsigned(born)));
    Ok((value("index_check").and_then(|value| value.try_into().ok()), born))
}

/// Says why the database cannot be used, and what to do about it. It names no password.
pub(super) fn refused(place: &str, error: &sqlx::Error) -> StoreOpenError {
    let code = match error {
        sqlx::Error::Database(error) => error.code().unwrap_or_default().into_owned(),
        _ => String::new(),
    };
    let fault = format!("the session database {place} cannot be used ({error})");
    match code.as_str() {
        "28P01" | "28000" => StoreOpenError::new(
            format!("the PostgreSQL at {place} refuses the user or the password"),
            "put them into the URL, postgres://USER:PASSWORD@HOST/DATABASE, and look at pg_hba.conf",
        ),
        "42704" | "42883" => StoreOpenError::new(fault, "use PostgreSQL 13 or later"),
        "3D000" => StoreOpenError::new(fault, "make the database: createdb NAME"),
        "42501" => StoreOpenError::new(
            format!("the user may not make or use tables in the database {place}"),
            "give it a schema of its own: CREATE SCHEMA sessions AUTHORIZATION name; ALTER ROLE name SET search_path = sessions",
        ),
        "25006" => StoreOpenError::new(fault, "name the primary: this server takes no writes"),
        _ => StoreOpenError::new(
            fault,
            "check the address, that the server runs, and what sslmode the URL asks for",
        ),
    }
}

/// Writes the check value, unless another instance wrote one; then both must be the same.
pub(super) async fn write_index(
    step: &mut Transaction<'_, Postgres>,
    check: [u8; 16],
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO portcullis_meta (name, value) VALUES ('index_check', $1) ON CONFLICT DO NOTHING",
    )
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

/// "Prtlmigr": whoever makes tables holds this advisory lock.
const LOCK: i64 = 0x5072_746c_6d69_6772;

/// Times are milliseconds since the epoch.
///
/// A renewal changes `row`, `version` and `until`, of which none is in an index, so PostgreSQL updates the row in place
/// (HOT) and no index grows. `due`, which purge looks for, is `until` rounded up to the hour: it changes once in twelve
/// renewals. `xid` lets a reader of the feed tell exactly what it has not seen: numbers are given before the commit, so
/// a smaller one may come later.
const TABLES: &str = "
CREATE TABLE portcullis_sessions (
    id bytea PRIMARY KEY, row bytea NOT NULL, version int8 NOT NULL, until int8 NOT NULL, due int8 NOT NULL,
    superseded bool NOT NULL, predecessor bytea, subject bytea, epoch int8 NOT NULL, created_at int8 NOT NULL,
    authenticated_at int8 NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX portcullis_sessions_subject ON portcullis_sessions (subject) WHERE subject IS NOT NULL;
CREATE INDEX portcullis_sessions_due ON portcullis_sessions (due);
CREATE TABLE portcullis_fields (
    session bytea NOT NULL REFERENCES portcullis_sessions (id) ON DELETE CASCADE,
    tag bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (session, tag)
);
CREATE TABLE portcullis_subjects (subject bytea PRIMARY KEY, epoch int8 NOT NULL);
CREATE TABLE portcullis_feed (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at int8 NOT NULL, kind int2 NOT NULL, subject_of bytea NOT NULL, value int8 NOT NULL
);
CREATE INDEX portcullis_feed_xid ON portcullis_feed (xid);
CREATE INDEX portcullis_feed_at ON portcullis_feed (at);
CREATE TABLE portcullis_meta (name text PRIMARY KEY, value bytea NOT NULL);
";
