//! SHA-256 and HKDF-SHA256 (RFC 5869), each use under a label of its own.

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::id::{SessionDigest, SessionId, StoredId};

/// The `sid` of a renewal token.
pub(crate) fn session_digest(id: &SessionId) -> SessionDigest {
    SessionDigest(Sha256::digest(id.0).into())
}

/// The store's key for the session that `digest` names, at `origin`.
///
/// The session id has 256 random bits, so a plain hash of it cannot be searched; the second hash keeps a token's `sid`
/// from being a key into the store.
pub(crate) fn stored_id(origin: &str, digest: &SessionDigest) -> StoredId {
    let mut hash = Sha256::new();
    hash.update(b"portcullis/1/stored-id\0");
    hash.update(origin.as_bytes());
    hash.update([0]);
    hash.update(digest.0);
    StoredId::from_bytes(hash.finalize().into())
}

/// The plain SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Expands `secret` into `N` bytes for one use.
///
/// The label is the whole `info`, and no label is the beginning of another, so no two uses share a key (RFC 5869 §3.2).
/// The salt is fixed: the secrets are uniform random bytes already.
pub(crate) fn derive<const N: usize>(secret: &[u8], label: Label) -> Zeroizing<[u8; N]> {
    let mut okm = Zeroizing::new([0; N]);
    expand(Some(b"portcullis/1"), secret, label.0, okm.as_mut_slice());
    okm
}

/// HKDF-SHA256 as RFC 5869 states it. Fills `okm`, or leaves it zero if it is longer than 255 hashes.
fn expand(salt: Option<&[u8]>, secret: &[u8], info: &[u8], okm: &mut [u8]) {
    let filled = Hkdf::<Sha256>::new(salt, secret).expand(info, okm);
    debug_assert!(filled.is_ok(), "every key here is far shorter than 8160 bytes");
}

/// What a derived key is for. Every label ends in NUL and holds no other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(pub(crate) &'static [u8]);

#[cfg(test)]
#[path = "../../tests/vectors/hkdf.rs"]
mod vectors;
