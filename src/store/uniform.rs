//! Hashing of keys that are hashes already.
//!
//! Stored ids are SHA-256 of 256 random bits, subject keys are MACs: nobody can choose them, so nobody can make a map
//! slow by choosing them (attack A28), and the ordinary hash of a map would be spent for nothing.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps whose keys are uniform bytes that nobody outside can choose. For no other keys.
pub(super) type Uniform = BuildHasherDefault<FirstBytes>;

/// The first eight bytes of the key.
#[derive(Default)]
pub(super) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// The length of the key, which is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
