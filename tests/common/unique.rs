//! Names for what outlives a process on a server.

use std::hash::{BuildHasher as _, RandomState};

/// `kind` and 16 hex digits that no other test of any process got, also not one that died and left things behind.
pub(crate) fn unique(kind: &str) -> String {
    format!("{kind}_{:016x}", RandomState::new().hash_one(kind))
}
