//! What a store keeps of a session.

use std::fmt;

use crate::{
    clock::Timestamp,
    crypto::RandomError,
    dbsc::KeyKind,
    id::{StoredId, SubjectKey},
    session::{Device, Rotation},
};

/// One session as a store keeps it: what its rules need in clear, the rest sealed.
///
/// All instants are the store's clock. Everything but `mac` is covered by `mac`, so that a row changed by hand counts as
/// gone; whoever can write the database can still put back a whole older row.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "stores build it from their columns")]
pub struct Row {
    /// The state of renewal.
    pub rotation: Rotation,
    /// When the session began.
    pub created_at: Timestamp,
    /// When it was renewed last.
    pub renewed_at: Timestamp,
    /// When its user was authenticated last.
    pub authenticated_at: Timestamp,
    /// When it is over unless it renews: `min(last renewal + idle, ends_at)`.
    pub deadline: Timestamp,
    /// When it is over whatever happens.
    pub ends_at: Timestamp,
    /// When it got a newer id, if it did; from then on it renews nothing.
    pub superseded_at: Option<Timestamp>,
    /// The session whose newer id this one is; it ends with this one.
    pub predecessor: Option<StoredId>,
    /// The newer id of this session, once it is superseded.
    pub successor: Option<StoredId>,
    /// The index key of the user; none in an anonymous session.
    pub subject: Option<SubjectKey>,
    /// The user's epoch when the session began; it counts as gone when the epoch is higher.
    pub epoch: u64,
    /// Raised by every change of the claims.
    pub claims_version: u64,
    /// Socket upgrades admitted with the present generation although the cookie was stale.
    pub upgrades: u32,
    /// Whether the user asked to be remembered.
    pub remembered: bool,
    /// The key that alone renews it, if it is bound to one. In a box, because most rows have none and all are copied.
    pub device: Option<Box<Device>>,
    /// The root key under which `sealed` and `mac` were made.
    pub key: [u8; 4],
    /// Subject, claims, methods and client context, sealed.
    pub sealed: Vec<u8>,
    /// The authentication of this row.
    pub mac: [u8; 16],
}

impl Row {
    /// Whether the longer pair of timeouts holds: the user asked to be remembered, or a device's key keeps the session.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        let is_devices = matches!(&self.device, Some(device) if matches!(device.kind, KeyKind::Device));
        self.remembered || is_devices
    }
}

/// A name that stands for a field of the session's data: a MAC under a key that the session id gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldTag([u8; 16]);

impl FieldTag {
    /// Wraps the 16 bytes a store gave back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Holds the keys of rows for a store, which has none of its own. A store calls it inside its atomic steps.
pub trait RowKeeper: Send + Sync {
    /// Whether `row` is as it was signed, under `id`.
    fn verify(&self, id: &StoredId, row: &Row) -> bool;

    /// Signs `row`, after any change of it.
    fn sign(&self, id: &StoredId, row: &mut Row);

    /// Makes the change to the sealed part that its caller has in mind (new claims; a context that moved on), and
    /// seals under the active key. Called before `renewed_at` moves. `false` if the sealed part does not open.
    ///
    /// # Errors
    /// If the operating system gives no random bytes to seal with: then the step must not happen, and the verb fails.
    fn edit(&self, id: &StoredId, row: &mut Row, now: Timestamp) -> Result<bool, RandomError>;
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("rotation", &self.rotation)
            .field("deadline", &self.deadline)
            .field("ends_at", &self.ends_at)
            .field("superseded_at", &self.superseded_at)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
