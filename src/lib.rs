//! Secure cookie sessions for axum on tower-sessions.
#![allow(dead_code, unused_imports, reason = "the floors above are not there yet")]
mod base64url;
pub mod clock;
pub mod cookie;
pub mod crypto;
pub mod events;
#[cfg(feature = "axum")]
pub mod extract;
pub mod id;
pub mod middleware;
pub mod session;
pub mod store;

pub use crypto::{KeyId, KeyRing, KeyRingError, KeyState};
#[cfg(feature = "axum")]
pub use extract::{Auth, Identity, RequireRecentAuth};
pub use middleware::{AuthError, ConfigError, SessionLayer, SessionLayerBuilder};
pub use session::Timeouts;
pub use store::MemoryStore;
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
pub use tower_sessions_core::{Session, session::Error as SessionError};

#[cfg(test)]
#[path = "../tests/common/corpus.rs"]
mod corpus;
