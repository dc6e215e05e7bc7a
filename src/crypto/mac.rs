//! AES-256-CMAC (NIST SP 800-38B, RFC 4493), and the key derivation in counter mode that stands on it (SP 800-108r1 §4.1).
//!
//! ```text
//! L = AES(K, 0¹²⁸)    K1 = L·x    K2 = L·x² in GF(2¹²⁸)        once per key
//! X = 0;  X = AES(K, X ⊕ block) for each whole block but the last
//! tag = AES(K, X ⊕ last ⊕ K1), or AES(K, X ⊕ (last ‖ 1 ‖ 0…) ⊕ K2) where the last block is not whole
//! ```
//!
//! CMAC and not HMAC, because it is on the way of every request that carries a forged token or reads session data: with
//! AES instructions 500 bytes cost a few hundred nanoseconds, a tenth of HMAC-SHA256 where SHA-256 runs in software. The
//! chain is written out here because a key that has to be copied for each message, as the crate `cmac` wants it, costs
//! more than the messages do; that crate is what the tests hold it against.

use std::fmt;

use aes_gcm::{KeyInit as _, aes::Aes256Enc};
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

use super::aes::{doubled, encrypted};

/// A key for message authentication; wiped on drop, mute in `Debug`.
#[derive(Clone)]
pub(crate) struct MacKey {
    aes: Aes256Enc,
    /// For a last block that is whole.
    k1: Zeroizing<u128>,
    /// For one that is not.
    k2: Zeroizing<u128>,
}

impl MacKey {
    /// A key from 32 uniform bytes.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let aes = Aes256Enc::new(key.into());
        let k1 = Zeroizing::new(doubled(encrypted(&aes, 0)));
        let k2 = Zeroizing::new(doubled(*k1));
        Self { aes, k1, k2 }
    }

    /// The tag of all `parts` in a row. The caller frames them so that no two messages read alike.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut chain = Chain { key: self, state: 0, last: [0; 16], filled: 0 };
        parts.iter().for_each(|part| chain.take(part));
        chain.finish()
    }

    /// Whether `tag` is the tag of `parts`, compared in constant time.
    pub(crate) fn verify(&self, parts: &[&[u8]], tag: &[u8; 16]) -> bool {
        self.tag(parts).ct_eq(tag).into()
    }

    /// 32 bytes derived for `label` and `context`: `K(1) ‖ K(2)` with `K(i) = CMAC(i ‖ label ‖ 0 ‖ context ‖ 256)`.
    ///
    /// `label` holds no NUL, so label and context cannot be confused.
    pub(crate) fn derive(&self, label: &[u8], context: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        for (counter, half) in (1_u8..).zip(key.chunks_exact_mut(16)) {
            let tag = self.tag(&[&[counter], label, &[0], context, &256_u16.to_be_bytes()]);
            half.copy_from_slice(Zeroizing::new(tag).as_slice());
        }
        key
    }
}

/// A message under way.
struct Chain<'a> {
    key: &'a MacKey,
    state: u128,
    /// What was taken last, at most a block: which key ends it is known only at the end.
    last: [u8; 16],
    filled: usize,
}

impl Chain<'_> {
    fn take(&mut self, part: &[u8]) {
        let room = self.last.get_mut(self.filled..).unwrap_or_default();
        let (start, mut rest) = part.split_at(room.len().min(part.len()));
        if let Some(room) = room.get_mut(..start.len()) {
            room.copy_from_slice(start);
        }
        self.filled += start.len();
        if rest.is_empty() {
            return;
        }
        self.absorb(self.last);
        while let Some((block, after)) = rest.split_first_chunk()
            && !after.is_empty()
        {
            self.absorb(*block);
            rest = after;
        }
        if let Some(room) = self.last.get_mut(..rest.len()) {
            room.copy_from_slice(rest);
        }
        self.filled = rest.len();
    }

    fn absorb(&mut self, block: [u8; 16]) {
        self.state = encrypted(&self.key.aes, self.state ^ u128::from_be_bytes(block));
    }

    fn finish(mut self) -> [u8; 16] {
        let key = match self.last.get_mut(self.filled..) {
            Some([end, rest @ ..]) => {
                *end = 0x80;
                rest.fill(0);
                &self.key.k2
            }
            _ => &self.key.k1,
        };
        let tag = encrypted(&self.key.aes, self.state ^ u128::from_be_bytes(self.last) ^ **key);
        tag.to_be_bytes()
    }
}

/// A part of a message can be a secret.
impl Drop for Chain<'_> {
    fn drop(&mut self) {
        self.last.zeroize();
        self.state.zeroize();
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::hex_text as hex;

    /// NIST's examples for CMAC-AES256 (SP 800-38B, D.3).
    #[test]
    fn nist_examples() {
        let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let message = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                           30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
        let mac = MacKey::new(&key.try_into().unwrap());
        for (length, tag) in [
            (0, "028962f61b7bf89efc6b551f4667d983"),
            (16, "28a7023f452e8f82bd4bf28d8c37c35c"),
            (40, "aaf3d8f1de5640c232f5b169b9c911e6"),
            (64, "e1992190549f6ed5696a2c056c315410"),
        ] {
            let tag: [u8; 16] = hex(tag).try_into().unwrap();
            assert_eq!(mac.tag(&[&message[..length]]), tag, "{length} bytes");
            assert!(mac.verify(&[&message[..length / 2], &message[length / 2..length]], &tag));
            let mut wrong = tag;
            wrong[15] ^= 1;
            assert!(!mac.verify(&[&message[..length]], &wrong));
        }
    }

    /// Every length up to nine blocks, cut into parts in every way that a block's border can fall.
    #[test]
    fn agrees_with_the_crate_cmac() {
        use cmac::{KeyInit as _, Mac as _};
        let message: Vec<u8> = (0..144_u8).map(|n| n.wrapping_mul(151)).collect();
        let mac = MacKey::new(&[0x5c; 32]);
        for length in 0..=message.len() {
            let message = &message[..length];
            let mut theirs = cmac::Cmac::<Aes256Enc>::new(&[0x5c; 32].into());
            theirs.update(message);
            let theirs: [u8; 16] = theirs.finalize().into_bytes().into();
            for cut in 0..=length.min(40) {
                let (start, rest) = message.split_at(cut);
                let (middle, end) = rest.split_at(rest.len() / 2);
                assert_eq!(mac.tag(&[start, middle, b"", end]), theirs, "{length} bytes cut at {cut}");
            }
        }
    }

    #[test]
    fn derived_keys_differ_by_label_and_context() {
        let mac = MacKey::new(&[7; 32]);
        let keys = [
            mac.derive(b"a", b"x"),
            mac.derive(b"a", b"y"),
            mac.derive(b"b", b"x"),
            mac.derive(b"", b"a\0x"),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert_ne!(a[..16], a[16..]);
            assert!(keys.iter().skip(i + 1).all(|b| a != b));
        }
    }
}
