//! The public keys of the renewal tokens, as a JWK set (RFC 7517).

use std::fmt::Write as _;

use crate::crypto::KeyRing;

/// The JSON.
pub(super) fn key_set(ring: &KeyRing) -> String {
    let mut keys = String::new();
    for key in ring.all_opening() {
        let Some((x, y)) = key.token_signature.verifying_key().coordinates() else { continue };
        let comma = if keys.is_empty() { "" } else { "," };
        let written = write!(
            keys,
            r#"{comma}{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","kid":"{}","alg":"ES256","use":"sig"}}"#,
            key.id
        );
        debug_assert!(written.is_ok(), "a String takes what is written");
    }
    format!(r#"{{"keys":[{keys}]}}"#)
}
