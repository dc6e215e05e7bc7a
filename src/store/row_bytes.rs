//! A row as bytes, for stores that keep it in one value.
//!
//! ```text
//! version(1) ‖ flags(1) ‖ key id(4) ‖ MAC(16) ‖ 13 numbers of 8 ‖ predecessor, successor(32), subject(16), device(82)
//! where flagged ‖ sealed part
//! ```
//!
//! Numbers are big-endian, instants milliseconds. The row's MAC covers what is in clear, so nothing here is trusted.

use super::row::Row;
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
    session::{DEVICE, Device, Rotation},
};

const VERSION: u8 = 1;
const SUPERSEDED: u8 = 1;
const PREDECESSOR: u8 = 2;
const SUCCESSOR: u8 = 4;
const SUBJECT: u8 = 8;
const REMEMBERED: u8 = 16;
const BOUND: u8 = 32;

pub(super) fn encode(row: &Row) -> Vec<u8> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let mut bytes = Vec::with_capacity(230 + row.sealed.len());
    bytes.push(VERSION);
    bytes.push(
        flag(row.superseded_at.is_some(), SUPERSEDED)
            | flag(row.predecessor.is_some(), PREDECESSOR)
            | flag(row.successor.is_some(), SUCCESSOR)
            | flag(row.subject.is_some(), SUBJECT)
            | flag(row.remembered, REMEMBERED)
            | flag(row.device.is_some(), BOUND),
    );
    bytes.extend_from_slice(&row.key);
    bytes.extend_from_slice(&row.mac);
    let numbers = [
        row.rotation.previous,
        row.rotation.floor,
        row.rotation.issued,
        row.rotation.rotated_at.as_millis(),
        row.created_at.as_millis(),
        row.renewed_at.as_millis(),
        row.authenticated_at.as_millis(),
        row.deadline.as_millis(),
        row.ends_at.as_millis(),
        row.superseded_at.unwrap_or_default().as_millis(),
        row.epoch,
        row.claims_version,
        u64::from(row.upgrades),
    ];
    bytes.extend_from_slice(numbers.map(u64::to_be_bytes).as_flattened());
    for id in [&row.predecessor, &row.successor].into_iter().flatten() {
        bytes.extend_from_slice(id.as_bytes());
    }
    if let Some(subject) = &row.subject {
        bytes.extend_from_slice(subject.as_bytes());
    }
    if let Some(device) = &row.device {
        bytes.extend_from_slice(&device.to_bytes());
    }
    bytes.extend_from_slice(&row.sealed);
    bytes
}

/// `None` if it is no row of this version.
pub(super) fn decode(bytes: &[u8]) -> Option<Row> {
    let rest = &mut &*bytes;
    let [version, flags] = take(rest)?;
    if version != VERSION {
        return None;
    }
    let has = |flag: u8| flags & flag != 0;
    let key = take(rest)?;
    let mac = take(rest)?;
    let mut number = || take(rest).map(u64::from_be_bytes);
    let (previous, floor, issued) = (number()?, number()?, number()?);
    let mut at = || number().map(Timestamp::from_millis);
    let (rotated_at, created_at, renewed_at, authenticated_at) = (at()?, at()?, at()?, at()?);
    let (deadline, ends_at, superseded_at) = (at()?, at()?, at()?);
    let (epoch, claims_version, upgrades) = (number()?, number()?, u32::try_from(number()?).ok()?);
    let mut id =
        |flag| if has(flag) { take(rest).map(|bytes| Some(StoredId::from_bytes(bytes))) } else { Some(None) };
    let (predecessor, successor) = (id(PREDECESSOR)?, id(SUCCESSOR)?);
    let subject = if has(SUBJECT) { Some(SubjectKey::from_bytes(take(rest)?)) } else { None };
    let device = if has(BOUND) { Some(Box::new(Device::from_bytes(&take::<DEVICE>(rest)?)?)) } else { None };
    Some(Row {
        rotation: Rotation { previous, floor, issued, rotated_at },
        created_at,
        renewed_at,
        authenticated_at,
        deadline,
        ends_at,
        superseded_at: has(SUPERSEDED).then_some(superseded_at),
        predecessor,
        successor,
        subject,
        epoch,
        claims_version,
        upgrades,
        remembered: has(REMEMBERED),
        device,
        key,
        sealed: rest.to_vec(),
        mac,
    })
}

/// What stands for a row that cannot be read: not over, and signed by nobody, so that whoever verifies it finds it tampered
/// with instead of absent.
pub(super) fn damaged() -> Row {
    Row {
        rotation: Rotation { previous: 0, floor: 0, issued: 0, rotated_at: Timestamp::MAX },
        created_at: Timestamp::MAX,
        renewed_at: Timestamp::MAX,
        authenticated_at: Timestamp::MAX,
        deadline: Timestamp::MAX,
        ends_at: Timestamp::MAX,
        superseded_at: None,
        predecessor: None,
        successor: None,
        subject: None,
        epoch: u64::MAX,
        claims_version: u64::MAX,
        upgrades: u32::MAX,
        remembered: false,
        device: None,
        key: [0; 4],
        sealed: Vec::new(),
        mac: [0; 16],
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*array)
}

#[cfg(test)]
#[path = "../../tests/unit/row_bytes.rs"]
mod tests;
