//! Keyed SipHash-2-4, for digests on the way of every request: the client's context, the name of a session in logs.
//!
//! A pseudorandom function is all that is needed: without the key nobody can tell which browser, network or session a
//! digest stands for, nor find another one that gives the same. 150 bytes cost about 600 instructions.

use std::hash::Hasher as _;

use siphasher::{sip::SipHasher24, sip128, sip128::Hasher128 as _};

/// The digest of `bytes` as a signal of kind `kind`.
pub(crate) fn digest(key: &[u8; 16], kind: u8, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.write_u8(kind);
    hasher.finish()
}

/// The 16-byte digest of `bytes`.
pub(crate) fn digest_16(key: &[u8; 16], bytes: &[u8]) -> [u8; 16] {
    let mut hasher = sip128::SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}
