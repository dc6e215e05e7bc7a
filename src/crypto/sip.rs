//! Keyed SipHash-2-4, for the digests of the client's context on the way of every request.
//!
//! A pseudorandom function is all that is needed: without the key nobody can tell which browser or network a digest stands
//! for, nor find another one that gives the same. 150 bytes cost about 600 instructions.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

/// The digest of `bytes` as a signal of kind `kind`.
pub(crate) fn digest(key: &[u8; 16], kind: u8, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.write_u8(kind);
    hasher.finish()
}
