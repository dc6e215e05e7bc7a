//! The revocation feed: a table of its own, numbered in the order of the commits.

use sqlx::{Executor, Sqlite};

use super::{
    super::{
        contract::StoreError,
        feed::{FeedMark, FeedPosition},
        revocation::Revocation,
    },
    columns::{Done, Step, before, instant, signed, unsigned},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

pub(super) async fn publish(step: &mut Step<'_>, revocation: &Revocation, now: Timestamp) -> Done {
    let (kind, of, value): (i64, &[u8], u64) = match revocation {
        Revocation::Session(id) => (SESSION, id.as_bytes(), 0),
        Revocation::Claims(id, version) => (CLAIMS, id.as_bytes(), *version),
        Revocation::Subject(subject, epoch) => (SUBJECT, subject.as_bytes(), *epoch),
        Revocation::Superseded(id) => (SUPERSEDED, id.as_bytes(), 0),
        Revocation::Before(moment) => (BEFORE, &[], moment.as_millis()),
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

pub(super) async fn read<'e>(
    from: impl Executor<'e, Database = Sqlite>,
    position: &FeedPosition,
    now: Timestamp,
) -> Done<(Vec<(Revocation, Timestamp)>, FeedPosition)> {
    // The last number is read in the same statement as the entries: what is written between two would be missed.
    let (at, after) = match position {
        FeedPosition::Window(window) => (before(now, *window), 0),
        FeedPosition::After(mark) => (0, signed(mark.number())),
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
            BEFORE => Revocation::Before(Timestamp::from_millis(value)),
            SUPERSEDED => Revocation::Superseded(StoredId::from_bytes(of.try_into().ok()?)),
            _ => return None,
        };
        Some((revocation, Timestamp::from_millis(unsigned(at))))
    };
    Ok((found.into_iter().filter_map(entry).collect(), FeedPosition::After(FeedMark::of_number(last))))
}

const SESSION: i64 = 1;
const CLAIMS: i64 = 2;
const SUBJECT: i64 = 3;
const SUPERSEDED: i64 = 4;
const BEFORE: i64 = 5;
