//! Rows to columns and back.

use std::time::Duration;

use sqlx::{FromRow, Row as _, Sqlite, Transaction, sqlite::SqliteRow};

use super::super::{contract::StoreError, row::Row};
use crate::{
    clock::Timestamp,
    dbsc::KeyKind,
    id::{StoredId, SubjectKey},
    session::{Device, Rotation},
};

pub(super) type Step<'a> = Transaction<'a, Sqlite>;
pub(super) type Done<T = ()> = Result<T, StoreError>;

/// A row with the present epoch of its user.
pub(super) struct Found {
    pub(super) id: StoredId,
    pub(super) row: Row,
    pub(super) subject_epoch: u64,
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
            successor: optional_bytes(from, "successor")?.map(StoredId::from_bytes),
            subject: optional_bytes(from, "subject")?.map(SubjectKey::from_bytes),
            epoch: number("epoch")?,
            claims_version: number("claims_version")?,
            upgrades: from.try_get("upgrades")?,
            remembered: from.try_get("remembered")?,
            device: device(from)?,
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

fn device(from: &SqliteRow) -> sqlx::Result<Option<Box<Device>>> {
    let bytes: Option<Vec<u8>> = from.try_get("device")?;
    // What cannot be read fails the row's MAC, as what was changed does.
    Ok(bytes.map(|bytes| {
        Box::new(Device::from_bytes(&bytes).unwrap_or(Device {
            kind: KeyKind::Device,
            key: [0; 64],
            challenge: u64::MAX,
            proven_at: Timestamp::MAX,
            confirmed: true,
        }))
    }))
}

/// SQLite's integers are signed. Nothing real reaches the limit; a value that does fails its row's MAC.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn instant(at: Timestamp) -> i64 {
    signed(at.as_millis())
}

pub(super) fn before(now: Timestamp, window: Duration) -> i64 {
    instant(now).saturating_sub(i64::try_from(window.as_millis()).unwrap_or(i64::MAX))
}
