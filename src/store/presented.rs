//! What is presented to renew a session, and what comes of it.

use super::row::{Row, RowKeeper};
use crate::{
    clock::Timestamp,
    dbsc::KeyKind,
    id::StoredId,
    session::{RotationOutcome, Timeouts},
};

/// Something that renews a session: see [`Presented`].
#[allow(missing_debug_implementations, reason = "it borrows a keeper of keys")]
#[allow(clippy::exhaustive_structs, reason = "the contract suite and stores of others build it")]
pub struct RotateRequest<'a> {
    /// The session.
    pub id: StoredId,
    /// What is presented.
    pub presented: Presented,
    /// Whether nothing speaks against the client being the one the session is bound to.
    pub same_client: bool,
    /// Whether a token is for a socket upgrade: then a good generation is counted, and nothing else changes.
    pub upgrade: bool,
    /// Whether it counts as activity of the user. Where it does not, the session renews and its deadline stays.
    pub active: bool,
    /// How long sessions last.
    pub timeouts: Timeouts,
    /// Verifies, edits and signs.
    pub keeper: &'a dyn RowKeeper,
}

/// What is presented to renew a session or to change what renews it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must treat every kind")]
pub enum Presented {
    /// A renewal token of this generation. It renews no session that is bound to a key.
    Token(u64),
    /// A renewal token of this generation, and beside it the script's key `x ‖ y`, which has answered the challenge of this
    /// number. It renews a session that is bound to this very key, by the rotation table; one that is bound to none, as the
    /// token alone does.
    SignedToken {
        /// The generation.
        generation: u64,
        /// The key.
        key: [u8; 64],
        /// The challenge, which must be newer than the last one that was answered.
        challenge: u64,
    },
    /// A device's proof: the key `x ‖ y` has answered the challenge of this number.
    Proof {
        /// The key, which must be the one that the session is bound to. A session that is bound to none, or to a script's, is
        /// bound to it: the store has lost writes, for only a session that was bound has an identifier under which a proof comes.
        key: [u8; 64],
        /// The challenge, which must be newer than the last one that was answered.
        challenge: u64,
    },
    /// A key to bind a session to that is bound to none; it has answered the challenge of this number. A device's takes the
    /// place of a script's.
    Device {
        /// Who keeps it.
        kind: KeyKind,
        /// The key.
        key: [u8; 64],
        /// The challenge.
        challenge: u64,
    },
    /// A new authentication of the user of a session that is bound to a key.
    Authentication,
}

/// What a presented token led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller must treat every kind")]
pub enum RotateAnswer {
    /// There is no such session, or it is over.
    Gone,
    /// The row is not as it was signed.
    Tampered,
    /// The session has a newer id; `late` if that is longer ago than the grace.
    Superseded {
        /// Whether the token came too late to be a race.
        late: bool,
    },
    /// The rotation table's answer, the row after it, and the instant of the step.
    Judged {
        /// The answer. After [`RotationOutcome::Reuse`] the session is revoked.
        outcome: RotationOutcome,
        /// The row after it.
        row: Row,
        /// The instant of the step, of the store's clock.
        now: Timestamp,
    },
    /// A token of a session that only its key renews, or another key for a session that has one, of this kind. Nothing is
    /// changed.
    Bound(KeyKind),
    /// A proof over a challenge at or below the last one that was answered. Nothing is changed.
    ProofUsed {
        /// The number of the last one.
        last: u64,
    },
    /// A proof, a key or an authentication was taken: the row after it, and the instant of the step.
    Taken {
        /// The row after it.
        row: Row,
        /// The instant of the step, of the store's clock.
        now: Timestamp,
    },
    /// A socket upgrade: admitted with the row as it is, or not.
    Upgrade(Option<Row>),
}
