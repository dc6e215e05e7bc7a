//! The seal: what is sealed for one purpose, name and origin opens for no other, under the key it names and no other.
//!
//! ```text
//! version(1) ‖ key id(4) ‖ nonce(24) ‖ ciphertext ‖ tag(16)
//! associated data: version ‖ key id ‖ len ‖ purpose ‖ len ‖ name ‖ len ‖ origin ‖ extra
//! ```
//!
//! **Why this is safe.** The key id picks the key and is authenticated, so a value never meets a second key and the
//! missing key commitment of GCM gives an attacker nothing to partition (attacks A40, A48). Purpose, name and origin are
//! length-prefixed, so a value cannot be moved to another cookie, host or use (A38, A39). Nothing is compressed (A50).

use std::{fmt, sync::Arc};

use zeroize::Zeroize as _;

use crate::crypto::{
    key_ring::KeyRing,
    random,
    random::RandomError,
    root_keys::{KeyId, Purpose, RootKeys},
    xaes::{NONCE, TAG},
};

/// Bytes that sealing adds.
pub(crate) const OVERHEAD: usize = HEADER + NONCE + TAG;

const VERSION: u8 = 1;
const HEADER: usize = 5;

/// Seals and opens values of one purpose, name and origin.
#[derive(Clone)]
pub(crate) struct Seal {
    purpose: Purpose,
    active: KeyId,
    keys: Vec<BoundKey>,
}

/// A key with the associated data of everything this seal makes with it.
#[derive(Clone)]
struct BoundKey {
    keys: Arc<RootKeys>,
    header: [u8; HEADER],
    aad: Vec<u8>,
}

/// Why a sealed value did not open. All look alike outside; the difference is for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// Too short or of a version that is not ours.
    Malformed,
    /// The ring has no key of that id that opens.
    UnknownKey,
    /// The tag is wrong.
    Forged,
}

impl Seal {
    /// A seal for `purpose` under the keys of `ring`.
    pub(crate) fn new(ring: &KeyRing, purpose: Purpose, name: &str, origin: &str) -> Self {
        let bind = |keys: &Arc<RootKeys>| {
            let [a, b, c, d] = keys.id.0;
            let header = [VERSION, a, b, c, d];
            let mut aad = header.to_vec();
            for part in [purpose.name(), name.as_bytes(), origin.as_bytes()] {
                aad.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                aad.extend_from_slice(part);
            }
            BoundKey { keys: Arc::clone(keys), header, aad }
        };
        Self { purpose, active: ring.active().id, keys: ring.all_opening().iter().map(bind).collect() }
    }

    /// Seals `plaintext` under the active key, bound to `extra` as well.
    pub(crate) fn seal(&self, plaintext: &[u8], extra: &[u8]) -> Result<Vec<u8>, RandomError> {
        let nonce: [u8; NONCE] = random::bytes()?;
        let Some(key) = self.keys.iter().find(|key| key.keys.id == self.active) else {
            return Err(RandomError);
        };
        let mut sealed = Vec::with_capacity(OVERHEAD + plaintext.len());
        sealed.extend_from_slice(&key.header);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plaintext);
        let message = sealed.get_mut(HEADER + NONCE..).unwrap_or_default();
        let cipher = key.keys.sealing(self.purpose);
        let tag = key.with_aad(extra, |aad| cipher.seal(&nonce, aad, message));
        // Only a message beyond 64 GiB has no tag; its plaintext must not leave by any path.
        let Some(tag) = tag else {
            sealed.zeroize();
            return Err(RandomError);
        };
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    /// Opens `sealed` in place: afterwards it holds the plaintext alone.
    ///
    /// One decryption at most, whatever it holds.
    pub(crate) fn open(&self, sealed: &mut Vec<u8>, extra: &[u8]) -> Result<(), OpenError> {
        let (header, rest) = sealed.split_first_chunk_mut::<HEADER>().ok_or(OpenError::Malformed)?;
        let (nonce, rest) = rest.split_first_chunk_mut::<NONCE>().ok_or(OpenError::Malformed)?;
        let (message, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(OpenError::Malformed)?;
        let [version, id @ ..] = *header;
        if version != VERSION {
            return Err(OpenError::Malformed);
        }
        let key = self.keys.iter().find(|key| key.keys.id == KeyId(id)).ok_or(OpenError::UnknownKey)?;
        let cipher = key.keys.sealing(self.purpose);
        key.with_aad(extra, |aad| cipher.open(nonce, aad, message, tag)).ok_or(OpenError::Forged)?;
        let length = message.len();
        sealed.copy_within(HEADER + NONCE..HEADER + NONCE + length, 0);
        sealed.truncate(length);
        Ok(())
    }
}

impl BoundKey {
    fn with_aad<T>(&self, extra: &[u8], use_it: impl FnOnce(&[u8]) -> T) -> T {
        if extra.is_empty() {
            return use_it(&self.aad);
        }
        use_it(&[self.aad.as_slice(), extra].concat())
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/seal.rs"]
mod tests;
