//! base64url without padding (RFC 4648 §5), in its one canonical spelling.
//!
//! A decoder that takes padding, white space, `+`, `/` or non-zero trailing bits gives one value several spellings,
//! and whatever compares or remembers the spelling can then be walked around (RFC 7515 §2 knows one spelling).

use base64_simd::URL_SAFE_NO_PAD;

/// Encodes `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode_to_string(bytes)
}

/// Appends `bytes`, encoded, to `out`.
pub(crate) fn encode_onto(bytes: &[u8], out: &mut String) {
    URL_SAFE_NO_PAD.encode_append(bytes, out);
}

/// Decodes `text`; `None` for every spelling but the canonical one.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode_to_vec(text).ok()
}

/// Decodes `text` into exactly `N` bytes.
pub(crate) fn decode_array<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_spelling_decodes() {
        assert_eq!(decode(b"AAE").as_deref(), Some(&[0, 1][..]));
        assert_eq!(decode(b"-_-_").as_deref(), Some(&[0xfb, 0xff, 0xbf][..]));
        for bad in ["AAE=", "AAF", "AA F", "AAE\n", "+/+/", "A", "AAAAA", "AAE.", " AAE"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn every_length_round_trips() {
        let bytes: Vec<u8> = (0..=255).collect();
        for n in 0..bytes.len() {
            let text = encode(&bytes[..n]);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(&bytes[..n]));
            assert!(!text.contains('='));
        }
    }
}
