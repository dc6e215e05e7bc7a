//! Secure cookie sessions for axum on tower-sessions.
#![allow(dead_code, unused_imports, reason = "the floors above are not there yet")]
mod base64url;
pub mod clock;
pub mod cookie;
pub mod crypto;
pub mod events;
pub mod id;
pub mod session;
pub mod store;

pub use crypto::{KeyId, KeyRing, KeyRingError, KeyState};
pub use session::Timeouts;
pub use store::MemoryStore;
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;

#[cfg(test)]
#[path = "../tests/common/corpus.rs"]
mod corpus;
