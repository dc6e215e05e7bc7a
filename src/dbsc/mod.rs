//! Device Bound Session Credentials (W3C WebAppSec, draft of February 2026), the server's side, pure: a session that only
//! a key inside the browser can prolong, so that a copied cookie is worth nothing after minutes.
//!
//! ```text
//! wire        the headers, in both spellings that browsers use
//! proof       the signed answer to a challenge
//! challenge   what is to be signed: sealed, bound to one session and one use, nothing stored
//! identifier  what a browser calls its session: the session id and its key, sealed
//! instructions  what a browser is told to do with a session
//! key_kind    whether browser or script keeps the key
//! ```
//!
//! Browsers that bind no sessions have a lower tier: a script keeps the key, and signs such proofs of a type of their own.
//!
//! A check leaves a witness behind: only a `VerifiedProof` renews, and only a signature over a good challenge makes one.

mod challenge;
mod identifier;
mod instructions;
mod key_kind;
mod proof;
mod wire;

pub(crate) use challenge::{Challenges, Use};
pub(crate) use identifier::{BoundSession, Identifiers, MAX_IDENTIFIER};
pub(crate) use instructions::{Instructions, ended};
pub use key_kind::KeyKind;
pub use proof::ProofError;
pub(crate) use proof::{Proof, VerifiedProof};
pub use wire::SkipReason;
pub(crate) use wire::{challenge_field, registration_field, skipped, token};
