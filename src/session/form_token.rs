//! The token of a form: proof that a page of this session rendered it. For sites where headers alone do not tell, because
//! their service worker sends requests again in its own name.
//!
//! ```text
//! tag   = CMAC(index: len ‖ origin ‖ stored id)        nothing is stored; a login gives a new id, so a new tag
//! token = base64url(mask(16) ‖ mask ⊕ tag)             masked anew in every response
//! ```
//!
//! The mask is against compression oracles (BREACH): a token that stands the same in every response could be guessed byte by
//! byte from their lengths.

use subtle::ConstantTimeEq as _;

use crate::base64url;

/// What the tokens of one session have in common.
pub(crate) type FormTag = [u8; 16];

/// The token that stands for `tag` under `mask`, which must be random.
pub(crate) fn masked(tag: &FormTag, mask: &[u8; 16]) -> String {
    let mut bytes = [0; 32];
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(mask);
    for ((byte, mask), tag) in second.iter_mut().zip(mask).zip(tag) {
        *byte = mask ^ tag;
    }
    base64url::encode(&bytes)
}

/// Whether `token` stands for `tag`, compared in constant time.
pub(crate) fn is_for(token: &[u8], tag: &FormTag) -> bool {
    let Some(bytes) = base64url::decode_array::<32>(token) else { return false };
    let mut shown = [0; 16];
    for (byte, (mask, hidden)) in shown.iter_mut().zip(bytes.iter().zip(bytes.iter().skip(16))) {
        *byte = mask ^ hidden;
    }
    shown.ct_eq(tag).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mask_gives_another_token_for_the_same_tag() {
        let tag = [7; 16];
        let (one, other) = (masked(&tag, &[1; 16]), masked(&tag, &[2; 16]));
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
        for token in [&one, &other] {
            assert!(is_for(token.as_bytes(), &tag));
            assert!(!is_for(token.as_bytes(), &[8; 16]));
            for (at, byte) in token.bytes().enumerate() {
                let mut changed = token.clone().into_bytes();
                changed[at] = if byte == b'A' { b'B' } else { b'A' };
                assert!(!is_for(&changed, &tag), "{at}");
            }
            assert!(!is_for(&token.as_bytes()[..42], &tag));
        }
        assert!(!is_for(b"", &tag));
    }
}
