//! The promises of a store. One contract suite (`tests/contract/`) holds every store to them.

use std::{error::Error, fmt, time::Duration};

use async_trait::async_trait;

pub use super::presented::{Presented, RotateAnswer, RotateRequest};
use super::{
    feed::{FeedBatch, FeedPosition},
    revocation::Revocation,
    row::{FieldTag, Row, RowKeeper},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// Keeps sessions. Each verb is one atomic operation: seen whole or not at all, also when the caller is cancelled or the
/// process dies.
///
/// What all of them promise:
///
/// - A session that is over (deadline passed, revoked, its user's epoch raised) is not loaded, committed or rotated, and
///   nothing brings it back.
/// - Two commits to different fields both win; of two to one field the later wins.
/// - A change that others must hear of, and its entry in the revocation feed, are written in the same step.
/// - The instant that counts is the store's own clock, read inside the step.
/// - A future that is dropped leaves the verb done or not done, and holds no lock.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Creates a session. Reads the user's epoch, enters the index and replaces the other session in the same step.
    ///
    /// # Errors
    /// [`CreateError::Taken`] if the id exists; [`CreateError::ReplacedGone`] if the session to be moved or superseded
    /// is over; [`CreateError::ReplacedChanged`] if it no longer holds what was `seen`. Nothing is changed then.
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError>;

    /// The session with its data, or `None` if it is over. A superseded one is still loaded.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError>;

    /// Writes the changed fields of a session that exists, and never creates one. `None` if it is over or superseded.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError>;

    /// Judges a presented generation by the rotation table and writes the state after it.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError>;

    /// Ends a session, those it superseded, and all their data. Whether there was one.
    ///
    /// Published also where there was none: a fresh cookie of it may be out there.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError>;

    /// Raises the user's epoch, then ends all the user's sessions. How many there were.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError>;

    /// Ends every session whose user was authenticated (or which was created, if nobody was) before `moment`, whoever it is,
    /// and keeps that in mind: none of them comes back. An earlier moment than one before changes nothing.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError>;

    /// The user's sessions that are not over and not superseded, oldest first.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError>;

    /// Deletes what is over, in batches that hold no lock for long. How many sessions.
    ///
    /// Revocations older than the largest `window` that any layer over this store has asked for go too; epochs stay.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn purge(&self, window: Duration) -> Result<u64, StoreError>;

    /// The revocation feed: from a window, at once, everything in it; after a position, as soon as there is something.
    ///
    /// Entries may come twice, never not at all. Dropping the future loses nothing: the caller asks again from the same
    /// position.
    ///
    /// # Errors
    /// If the store does not answer; the caller then reads its window again.
    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError>;

    /// Makes revocations stand that stood once and that the store has lost: ends the sessions, raises the epochs to at least
    /// these (and ends the sessions below), and publishes all of them again. What stands already stays as it is.
    ///
    /// # Errors
    /// If the store does not answer; some may have been restored then.
    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError>;

    /// The instant of the store's clock.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn ping(&self) -> Result<Timestamp, StoreError>;

    /// Ties the store to a key ring's index secret, of which `check` is a check value: the first ring that comes stays.
    ///
    /// Called when a layer is built, so it must not wait; a store reads what it needs when it is opened.
    ///
    /// # Errors
    /// If the store belongs to another index secret.
    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch>;
}

/// A session to be created.
#[allow(missing_debug_implementations, reason = "it borrows a keeper of keys")]
#[allow(clippy::exhaustive_structs, reason = "the contract suite and stores of others build it")]
pub struct NewSession<'a> {
    /// Its id.
    pub id: StoredId,
    /// Its row, but for `epoch`, `predecessor`, `successor` and `mac`, which the step fills in whatever they are.
    pub row: Row,
    /// Its data.
    pub fields: Vec<(FieldTag, Vec<u8>)>,
    /// The session it takes the place of.
    pub replaces: Option<Replacement>,
    /// What that session must still hold; `None` where nothing of it goes on.
    pub seen: Option<Seen>,
    /// Signs the rows the step writes.
    pub keeper: &'a dyn RowKeeper,
}

/// What becomes of the session that a new one replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must treat every kind")]
pub enum Replacement {
    /// It ends, if it is not over already (login).
    End(StoredId),
    /// It must be live, and ends (a new id for the same session).
    Move(StoredId),
    /// It must be live, and stays as superseded, which is published: its fresh cookies live out, its tokens renew nothing.
    Supersede(StoredId),
}

/// Changes to a session that exists.
#[allow(missing_debug_implementations, reason = "it borrows a keeper of keys")]
#[allow(clippy::exhaustive_structs, reason = "the contract suite and stores of others build it")]
pub struct CommitRequest<'a> {
    /// The session.
    pub id: StoredId,
    /// Fields to write, or to remove.
    pub fields: Vec<(FieldTag, Option<Vec<u8>>)>,
    /// A deadline to shorten to, and `ends_at` with it; a later one than the present changes nothing.
    pub deadline: Option<Timestamp>,
    /// Whether `keeper` is to edit the sealed part; `claims_version` rises, and the feed says so, for the ids that this one
    /// superseded as well ([`Revocation::Claims`] with the highest version).
    pub edit: bool,
    /// Edits and signs.
    pub keeper: &'a dyn RowKeeper,
}

/// What a session that goes on under a new id was read to hold, so that no change made meanwhile is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the contract suite and stores of others build it")]
pub struct Seen {
    /// The version of its claims.
    pub claims_version: u64,
    /// Whether it was bound to a device.
    pub is_bound: bool,
    /// Its data, in any order.
    pub fields: Vec<(FieldTag, Vec<u8>)>,
}

/// The store did not do what was asked; whether it will have been done is not known.
#[derive(Debug)]
pub struct StoreError(Box<dyn Error + Send + Sync>);

impl StoreError {
    /// Wraps what the backend said. It must hold no id and no data.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session store did not answer as it should")
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// Why a session was not created.
#[derive(Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// The id exists already.
    Taken,
    /// The session to be moved or superseded is over.
    ReplacedGone,
    /// The session to be moved or superseded was written to since it was read.
    ReplacedChanged,
    /// The store did not answer.
    Store(StoreError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("the session id is taken"),
            Self::ReplacedGone => f.write_str("the session to be replaced is over"),
            Self::ReplacedChanged => f.write_str("the session to be replaced was written to meanwhile"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for CreateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::Taken | Self::ReplacedGone | Self::ReplacedChanged => None,
        }
    }
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The store belongs to another index secret, so none of its sessions could be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexMismatch;

impl IndexMismatch {
    /// The error a store gives when its check value is another.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Default for IndexMismatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for IndexMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store was made with another index secret")
    }
}

impl Error for IndexMismatch {}

/// What an instance says that finds out only with its first session: two began at once, each with a ring of its own.
impl From<IndexMismatch> for StoreError {
    fn from(error: IndexMismatch) -> Self {
        Self::new(format!("{error}; give every instance the same key ring"))
    }
}
