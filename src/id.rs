//! The names a session goes by: the secret one, the one in the store, the one in the logs.
//!
//! ```text
//! SessionId  32 random bytes; only the browser's credentials hold it
//! SessionDigest  SHA-256(SessionId); the renewal token's `sid`
//! StoredId   SHA-256(label ‖ origin ‖ SessionDigest); the store's key
//! SessionRef keyed digest of the StoredId; for logs and session lists
//! ```

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::base64url;

/// The secret identifier of a session: 32 bytes from the operating system.
///
/// It never reaches a store, a log or a response body; `Debug` does not print it. 256 bits, because the key of the
/// session's data at rest is derived from it: whoever holds a database must not be able to search for it.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SessionId(pub(crate) [u8; 32]);

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(..)")
    }
}

/// SHA-256 of a session id, as the renewal token's `sid` claim states it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionDigest(pub(crate) [u8; 32]);

impl fmt::Debug for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionDigest(..)")
    }
}

/// The key under which a store keeps a session: a hash from which the session id cannot be found.
///
/// 32 bytes. `Debug` does not print it, so that a log cannot be matched against a database dump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredId([u8; 32]);

impl StoredId {
    /// Wraps the 32 bytes a store gave back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A number that spreads ids evenly over shards; ids are hashes, so two of their bytes will do.
    pub(crate) const fn spread(&self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]])
    }
}

impl fmt::Debug for StoredId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredId(..)")
    }
}

/// The key of a subject in a store's index: a keyed MAC of origin and subject, 16 bytes.
///
/// `Debug` does not print it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubjectKey([u8; 16]);

impl SubjectKey {
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

impl fmt::Debug for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectKey(..)")
    }
}

/// A name for a session that may be logged, shown in a list and put into a URL.
///
/// 22 characters of base64url: a digest of the stored id under a key of its own (OWASP Logging Cheat Sheet: log a keyed
/// hash, never the id). It opens nothing, and without the key ring it cannot be matched to a row of the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionRef(pub(crate) [u8; 16]);

impl SessionRef {
    /// Reads the text form; `None` if it is not 22 characters of canonical base64url.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        base64url::decode_array(text.as_bytes()).map(Self)
    }
}

impl std::str::FromStr for SessionRef {
    type Err = NotASessionRef;

    fn from_str(text: &str) -> Result<Self, NotASessionRef> {
        Self::parse(text).ok_or(NotASessionRef)
    }
}

impl Serialize for SessionRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// So that it can be taken from a route: `Path<SessionRef>`.
impl<'de> Deserialize<'de> for SessionRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is not a session's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotASessionRef;

impl fmt::Display for NotASessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not the name of a session: 22 characters of base64url")
    }
}

impl std::error::Error for NotASessionRef {}

impl fmt::Display for SessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

impl fmt::Debug for SessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionRef({self})")
    }
}
