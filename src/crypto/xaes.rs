//! XAES-256-GCM (C2SP): AES-256-GCM with a 24-byte random nonce and a key of its own for each message.
//!
//! ```text
//! L  = AES256(K, 0¹²⁸)      K1 = L·x in GF(2¹²⁸)            once per key
//! Kx = AES256(K, 00 01 'X' 00 ‖ N[0..12] ⊕ K1) ‖ AES256(K, 00 02 'X' 00 ‖ N[0..12] ⊕ K1)
//! out = AES-256-GCM(Kx, N[12..24], plaintext, associated data)
//! ```
//!
//! **Why this is safe.** The derivation is CMAC in the counter mode of SP 800-108r1, and below it runs plain
//! AES-256-GCM. Plain GCM with random 96-bit nonces may seal 2³² messages under one key (SP 800-38D §8.3), which a busy
//! site reaches in weeks; here two messages collide only if all 192 random bits do: 2⁸⁰ messages at a risk of 2⁻³². It
//! commits to no key: that is why [`seal`](super::seal) authenticates the key id and never tries keys in turn.

use std::fmt;

use aes_gcm::{
    AeadInOut as _, AesGcm, KeyInit as _,
    aead::consts::U12,
    aes::{Aes256Enc, cipher::BlockCipherEncrypt as _},
};
use zeroize::{Zeroize as _, Zeroizing};

use super::aes::{doubled, encrypted};

/// Bytes of a nonce.
pub(crate) const NONCE: usize = 24;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;

/// A key for XAES-256-GCM, expanded once; wiped on drop, mute in `Debug`.
#[derive(Clone)]
pub(crate) struct XaesKey {
    aes: Aes256Enc,
    k1: Zeroizing<u128>,
}

/// AES-256-GCM without the decryption schedule of AES, which GCM never uses.
type Aes256Gcm = AesGcm<Aes256Enc, U12>;

impl XaesKey {
    /// A key from 32 uniform bytes.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let aes = Aes256Enc::new(key.into());
        let k1 = doubled(encrypted(&aes, 0));
        Self { aes, k1: Zeroizing::new(k1) }
    }

    /// Encrypts `message` in place and returns its tag.
    ///
    /// `None` if the message is too long for GCM, which nothing here is.
    pub(crate) fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], message: &mut [u8]) -> Option<[u8; TAG]> {
        let (cipher, nonce) = self.message_key(nonce)?;
        let tag = cipher.encrypt_inout_detached(&nonce.into(), aad, message.into()).ok()?;
        Some(tag.into())
    }

    /// Decrypts `message` in place; `None`, and `message` as it was, unless nonce, associated data and tag are those it
    /// was sealed with.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE],
        aad: &[u8],
        message: &mut [u8],
        tag: &[u8; TAG],
    ) -> Option<()> {
        let (cipher, nonce) = self.message_key(nonce)?;
        cipher.decrypt_inout_detached(&nonce.into(), aad, message.into(), tag.into()).ok()
    }

    /// The key of one message, and the rest of its nonce.
    fn message_key(&self, nonce: &[u8; NONCE]) -> Option<(Aes256Gcm, [u8; 12])> {
        let (for_key, for_gcm) = nonce.split_first_chunk::<12>()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *for_key;
        let mut key = Zeroizing::new([0; 32]);
        for (counter, half) in (1_u8..).zip(key.chunks_exact_mut(16)) {
            let message = u128::from_be_bytes([0, counter, b'X', 0, a, b, c, d, e, f, g, h, i, j, k, l]);
            let mut block = (message ^ *self.k1).to_be_bytes().into();
            self.aes.encrypt_block(&mut block);
            half.copy_from_slice(&block);
            block.zeroize();
        }
        let key: &[u8; 32] = &key;
        Some((Aes256Gcm::new(key.into()), for_gcm.try_into().ok()?))
    }
}

impl fmt::Debug for XaesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("XaesKey(..)")
    }
}

#[cfg(test)]
#[path = "../../tests/vectors/xaes.rs"]
mod vectors;
