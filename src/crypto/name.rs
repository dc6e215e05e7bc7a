//! The public name of a hash: one block of AES-256.
//!
//! A keyed permutation of 16 bytes: two hashes that differ in them get different names, and without the key nobody can
//! tell which hash a name stands for. It is made on every request with a session, and costs about 90 instructions.

use std::fmt;

use aes_gcm::{KeyInit as _, aes::Aes256Enc};

use super::aes::encrypted;

/// A key for names; wiped on drop, mute in `Debug`.
#[derive(Clone)]
pub(crate) struct NameKey(Aes256Enc);

impl NameKey {
    /// A key from 32 uniform bytes.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Aes256Enc::new(key.into()))
    }

    /// The name of a hash, from its first half: 128 bits of it are unique by themselves.
    pub(crate) fn of(&self, hash: &[u8; 32]) -> [u8; 16] {
        let half = *hash.first_chunk().unwrap_or(&[0; 16]);
        encrypted(&self.0, u128::from_be_bytes(half)).to_be_bytes()
    }
}

impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::hex_text as hex;

    /// FIPS 197, appendix C.3: the name is the plain cipher, under the whole key.
    #[test]
    fn is_one_block_of_aes_256() {
        let key: [u8; 32] = std::array::from_fn(|n| u8::try_from(n).unwrap());
        let mut hash = [0xff; 32];
        hash[..16].copy_from_slice(&hex("00112233445566778899aabbccddeeff"));
        let name = NameKey::new(&key).of(&hash);
        assert_eq!(name.to_vec(), hex("8ea2b7ca516745bfeafc49904b496089"));
    }
}
