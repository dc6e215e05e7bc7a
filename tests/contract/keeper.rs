//! A row keeper without keys.

use std::hash::{DefaultHasher, Hash, Hasher};

use portcullis::{
    clock::Timestamp,
    crypto::RandomError,
    id::StoredId,
    session::{Device, Rotation},
    store::{Row, RowKeeper},
};

/// The keeper of the suite.
pub(crate) static KEEPER: PlainKeeper = PlainKeeper { key: 1 };

/// Another keeper: to it no row of [`KEEPER`] is as it was signed, as if somebody had changed it by hand.
pub(crate) static STRANGER: PlainKeeper = PlainKeeper { key: 2 };

/// What is sealed in a row that was never edited.
pub(crate) const SEALED: &[u8] = b"sealed";

/// Signs by a plain hash. An edit leaves behind when it was made and what `renewed_at` was then.
pub(crate) struct PlainKeeper {
    key: u64,
}

impl PlainKeeper {
    fn mac(&self, id: &StoredId, row: &Row) -> [u8; 16] {
        // Taken apart without `..`, so that a column which is added later cannot be forgotten here.
        let Row {
            rotation: Rotation { previous, floor, issued, rotated_at },
            created_at,
            renewed_at,
            authenticated_at,
            deadline,
            ends_at,
            superseded_at,
            predecessor,
            successor,
            subject,
            epoch,
            claims_version,
            upgrades,
            remembered,
            device,
            key,
            sealed,
            mac: _,
        } = row;
        let mut hasher = DefaultHasher::new();
        (self.key, id, previous, floor, issued, rotated_at, created_at, renewed_at).hash(&mut hasher);
        (authenticated_at, deadline, ends_at, superseded_at, predecessor, successor, subject)
            .hash(&mut hasher);
        (epoch, claims_version, upgrades, remembered, key, sealed).hash(&mut hasher);
        device.as_deref().map(Device::to_bytes).hash(&mut hasher);
        let half = hasher.finish().to_be_bytes();
        let mut mac = [0; 16];
        mac[..8].copy_from_slice(&half);
        mac[8..].copy_from_slice(&half);
        mac
    }
}

impl RowKeeper for PlainKeeper {
    fn verify(&self, id: &StoredId, row: &Row) -> bool {
        row.mac == self.mac(id, row)
    }

    fn sign(&self, id: &StoredId, row: &mut Row) {
        row.mac = self.mac(id, row);
    }

    fn edit(&self, _: &StoredId, row: &mut Row, now: Timestamp) -> Result<bool, RandomError> {
        row.sealed.extend(edit_mark(row.renewed_at, now));
        Ok(true)
    }
}

/// What an edit at `now` appends to a row that was renewed last at `renewed_at`.
pub(crate) fn edit_mark(renewed_at: Timestamp, now: Timestamp) -> [u8; 16] {
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&renewed_at.as_millis().to_be_bytes());
    mark[8..].copy_from_slice(&now.as_millis().to_be_bytes());
    mark
}

/// How often a row was edited.
pub(crate) fn edits(row: &Row) -> usize {
    (row.sealed.len() - SEALED.len()) / edit_mark(row.renewed_at, row.renewed_at).len()
}

/// The row as the keeper of the suite would sign it.
pub(crate) fn signed(id: &StoredId, mut row: Row) -> Row {
    KEEPER.sign(id, &mut row);
    row
}
