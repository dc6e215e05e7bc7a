//! What the revocation feed tells.

use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// An entry of the revocation feed. Idempotent: taking it twice changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a store must carry every kind")]
pub enum Revocation {
    /// A session ended.
    Session(StoredId),
    /// The claims of a session changed: cookies below this version must renew.
    Claims(StoredId, u64),
    /// All sessions of a user below this epoch ended.
    Subject(SubjectKey, u64),
    /// A session has a newer id. Its fresh cookies live out; a late answer must not set them any more.
    Superseded(StoredId),
    /// All sessions whose user was authenticated before this instant ended, whoever the user is.
    Before(Timestamp),
}
