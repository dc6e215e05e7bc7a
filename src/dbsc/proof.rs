//! The proof: a compact JWS that signs a challenge.
//!
//! ```text
//! registration  {"alg":"ES256","jwk":{"crv":"P-256","kty":"EC","x":…,"y":…},"typ":"dbsc+jwt"} . {"jti":challenge}
//! refresh       {"alg":"ES256","typ":"dbsc+jwt"} . {"jti":challenge}
//! by a script   {"alg":"ES256","jwk":{…},"typ":"portcullis-key+jwt"} . {"jti":challenge}
//! ```
//!
//! It has no time and no session in it: the challenge says when and for whom, the key says who. A key in the proof of a
//! refresh is not looked at; the one that was bound verifies (attack A72).

use std::{borrow::Cow, fmt};

use serde::Deserialize;

use super::key_kind::KeyKind;
use crate::{
    base64url,
    crypto::{es256::VerifyingKey, jws::Compact},
};

/// A proof as it came, taken apart; nothing of it is verified.
#[derive(Debug)]
pub(crate) struct Proof<'a> {
    compact: Compact<'a>,
    key: Option<VerifyingKey>,
    challenge: String,
    audience: Option<String>,
}

/// A proof whose signature holds, over a challenge that was good.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerifiedProof {
    key: VerifyingKey,
    challenge: u64,
}

/// Why a proof is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// It is not the form of one: too large, not three parts, not JSON, a member twice.
    Malformed,
    /// It is signed by an algorithm that was not offered.
    Algorithm,
    /// It is another kind of token.
    Type,
    /// It is for another address than the one it came to.
    Audience,
    /// It is to bind a key, and holds none that can be one.
    Key,
    /// It answers another challenge than one of this login.
    Challenge,
    /// The signature is not that of the session's key.
    Signature,
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
    #[serde(borrow)]
    typ: Cow<'a, str>,
    #[serde(borrow)]
    jwk: Option<Jwk<'a>>,
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Jwk<'a> {
    #[serde(borrow)]
    kty: Cow<'a, str>,
    #[serde(borrow)]
    crv: Option<Cow<'a, str>>,
    #[serde(borrow)]
    x: Option<Cow<'a, str>>,
    #[serde(borrow)]
    y: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Payload {
    jti: String,
    aud: Option<String>,
}

impl<'a> Proof<'a> {
    /// Takes `token` apart. No signature is checked.
    ///
    /// # Errors
    /// If it is not the form of a proof by ES256 of a key of this kind.
    pub(crate) fn read(token: &'a [u8], kind: KeyKind) -> Result<Self, ProofError> {
        if token.len() > MAX_PROOF {
            return Err(ProofError::Malformed);
        }
        let compact = Compact::split(token).ok_or(ProofError::Malformed)?;
        let header = base64url::decode(compact.header).ok_or(ProofError::Malformed)?;
        let header: Header<'_> = serde_json::from_slice(&header).map_err(|_| ProofError::Malformed)?;
        if header.typ != kind.proof_type() {
            return Err(ProofError::Type);
        }
        if header.alg != "ES256" {
            return Err(ProofError::Algorithm);
        }
        if header.crit.is_some() {
            return Err(ProofError::Malformed);
        }
        let payload = compact.payload_bytes().ok_or(ProofError::Malformed)?;
        let payload: Payload = serde_json::from_slice(&payload).map_err(|_| ProofError::Malformed)?;
        let key = header.jwk.as_ref().and_then(Jwk::key);
        Ok(Self { compact, key, challenge: payload.jti, audience: payload.aud })
    }

    /// The key that it brings, unverified.
    pub(crate) const fn key(&self) -> Option<&VerifyingKey> {
        self.key.as_ref()
    }

    /// The challenge that it claims to answer.
    pub(crate) fn challenge(&self) -> &[u8] {
        self.challenge.as_bytes()
    }

    /// Checks that it was made for `url`, if it says for what (browsers do so only by an option of theirs).
    pub(crate) fn is_for(&self, url: &str) -> Result<(), ProofError> {
        if self.audience.as_deref().is_none_or(|audience| audience == url) {
            Ok(())
        } else {
            Err(ProofError::Audience)
        }
    }

    /// Verifies it with the key that it brings, which is to be bound, or is compared with the one that is; `challenge` is the
    /// number of the good challenge that it answers. About 400 µs.
    pub(crate) fn introduces(&self, challenge: u64) -> Result<VerifiedProof, ProofError> {
        self.verify(&self.key.ok_or(ProofError::Key)?, challenge)
    }

    /// Verifies it with the key that is bound. About 400 µs.
    pub(crate) fn verify(&self, key: &VerifyingKey, challenge: u64) -> Result<VerifiedProof, ProofError> {
        if self.compact.verify(key) {
            Ok(VerifiedProof { key: *key, challenge })
        } else {
            Err(ProofError::Signature)
        }
    }
}

impl Jwk<'_> {
    fn key(&self) -> Option<VerifyingKey> {
        if self.kty != "EC" || self.crv.as_deref() != Some("P-256") {
            return None;
        }
        VerifyingKey::from_coordinates(self.x.as_deref()?, self.y.as_deref()?)
    }
}

impl VerifiedProof {
    /// The key that signed.
    pub(crate) const fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// The number of the challenge it answers.
    pub(crate) const fn challenge(&self) -> u64 {
        self.challenge
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not the form of a proof",
            Self::Algorithm => "it is signed by an algorithm that was not offered",
            Self::Type => "it is another kind of token",
            Self::Audience => "it was made for another address",
            Self::Key => "it holds no key on P-256",
            Self::Challenge => "it answers no challenge of this login",
            Self::Signature => "its signature is not that of the session's key",
        })
    }
}

impl std::error::Error for ProofError {}

/// A proof is about 600 bytes: a key, a challenge of 120 characters, a signature.
const MAX_PROOF: usize = 4096;

#[cfg(test)]
#[path = "../../tests/unit/dbsc_proof.rs"]
mod tests;
