//! What a browser calls its session. By it alone a refresh is recognised: browsers send no cookie with some of them.
//!
//! ```text
//! base64url(seal(session id(32) ‖ x(32) ‖ y(32)))
//! ```
//!
//! The key lies in it, so that a proof is verified before the store is asked: a forged one costs no store call. It is sealed
//! once, when the key is bound, and is the same for the life of the session.

use std::fmt;

use zeroize::Zeroizing;

use crate::{
    base64url,
    crypto::{es256::VerifyingKey, key_ring::KeyRing, random::RandomError, root_keys::Purpose, seal::Seal},
    id::SessionId,
};

/// Makes and opens the identifiers of one origin.
#[derive(Debug, Clone)]
pub(crate) struct Identifiers(Seal);

/// A session as its identifier names it.
#[derive(Clone)]
pub(crate) struct BoundSession {
    pub(crate) id: SessionId,
    pub(crate) key: VerifyingKey,
}

impl Identifiers {
    pub(crate) fn new(ring: &KeyRing, origin: &str) -> Self {
        Self(Seal::new(ring, Purpose::DeviceSession, "", origin))
    }

    pub(crate) fn seal(&self, session: &BoundSession) -> Result<String, RandomError> {
        let mut bytes = Zeroizing::new([0; 96]);
        let key = session.key.to_bytes().ok_or(RandomError)?;
        for (byte, value) in bytes.iter_mut().zip(session.id.0.iter().chain(&key)) {
            *byte = *value;
        }
        Ok(base64url::encode(&self.0.seal(bytes.as_slice(), b"")?))
    }

    /// `None` if it is none of ours. One decryption at most.
    pub(crate) fn open(&self, identifier: &[u8]) -> Option<BoundSession> {
        if identifier.len() > MAX_IDENTIFIER {
            return None;
        }
        let mut bytes = Zeroizing::new(base64url::decode(identifier)?);
        self.0.open(&mut bytes, b"").ok()?;
        let (id, key) = bytes.split_first_chunk::<32>()?;
        Some(BoundSession { id: SessionId(*id), key: VerifyingKey::from_bytes(key.try_into().ok()?)? })
    }
}

impl fmt::Debug for BoundSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundSession(..)")
    }
}

/// Characters of 141 bytes, and some.
pub(crate) const MAX_IDENTIFIER: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::es256::SigningKey;

    #[test]
    fn an_identifier_opens_at_its_own_site_alone() {
        let ring = KeyRing::generate().unwrap();
        let here = Identifiers::new(&ring, "https://app.example.com");
        let key = SigningKey::from_okm(&[7; 48]).unwrap().verifying_key();
        let session = BoundSession { id: SessionId([9; 32]), key };
        let text = here.seal(&session).unwrap();
        assert!(text.len() < MAX_IDENTIFIER);
        let opened = here.open(text.as_bytes()).unwrap();
        assert!(opened.id == session.id && opened.key == key);
        assert!(Identifiers::new(&ring, "https://b.example.com").open(text.as_bytes()).is_none());
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(here.open(&changed).is_none() && here.open(&text.as_bytes()[..at]).is_none());
        }
        assert_eq!(format!("{session:?}"), "BoundSession(..)");
    }
}
