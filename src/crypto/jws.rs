//! The compact form of a signed token (RFC 7515 §7.1), as strict as it can be read.
//!
//! ```text
//! base64url(header) . base64url(payload) . base64url(r ‖ s)
//! ```
//!
//! There is no header parser here: a verifier states the one header it accepts, byte for byte. So there is no `alg` to
//! choose, no `jwk`, `jku` or `x5c` to follow and no `crit` to miss (RFC 8725 §3.1, attacks A43 and A44).

use crate::{
    base64url,
    crypto::es256::{SIGNATURE, SigningKey, VerifyingKey},
};

/// A token in its three parts; nothing of it is verified yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compact<'a> {
    /// The header, still base64url.
    pub(crate) header: &'a [u8],
    /// The payload, still base64url.
    pub(crate) payload: &'a [u8],
    signed: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Compact<'a> {
    /// Splits `token`; `None` unless it has exactly three parts.
    pub(crate) fn split(token: &'a [u8]) -> Option<Self> {
        let first = memchr::memchr(b'.', token)?;
        let last = memchr::memrchr(b'.', token)?;
        let header = token.get(..first)?;
        let payload = token.get(first + 1..last)?;
        let signature = token.get(last + 1..)?;
        if memchr::memchr(b'.', payload).is_some() {
            return None;
        }
        Some(Self { header, payload, signed: token.get(..last)?, signature })
    }

    /// The payload's bytes; `None` unless it is canonical base64url.
    pub(crate) fn payload_bytes(&self) -> Option<Vec<u8>> {
        base64url::decode(self.payload)
    }

    /// Whether the signature is `key`'s over header and payload as they stand.
    pub(crate) fn verify(&self, key: &VerifyingKey) -> bool {
        base64url::decode_array::<SIGNATURE>(self.signature)
            .is_some_and(|signature| key.verify(self.signed, &signature))
    }
}

/// Signs `payload` under a header that is base64url already.
pub(crate) fn sign(header: &str, payload: &[u8], key: &SigningKey) -> String {
    let mut token = String::with_capacity(header.len() + payload.len() * 4 / 3 + SIGNATURE * 4 / 3 + 8);
    token.push_str(header);
    token.push('.');
    base64url::encode_onto(payload, &mut token);
    let signature = key.sign(token.as_bytes());
    token.push('.');
    base64url::encode_onto(&signature, &mut token);
    token
}

#[cfg(test)]
#[path = "../../tests/vectors/jws.rs"]
mod vectors;
