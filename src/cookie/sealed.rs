//! A sealed cookie: bytes that only their own name and origin open.

use zeroize::Zeroizing;

use crate::{
    base64url,
    crypto::{
        key_ring::KeyRing,
        random::RandomError,
        root_keys::Purpose,
        seal::{OpenError, Seal},
    },
};

/// Seals bytes into a cookie's value and opens them again.
#[derive(Debug, Clone)]
pub(crate) struct SealedCookie(Seal);

impl SealedCookie {
    /// For the session cookie called `name` at `origin`.
    pub(crate) fn session(ring: &KeyRing, name: &str, origin: &str) -> Self {
        Self(Seal::new(ring, Purpose::SessionCookie, name, origin))
    }

    /// For the application's own cookie called `name` at `origin`.
    pub(crate) fn application(ring: &KeyRing, name: &str, origin: &str) -> Self {
        Self(Seal::new(ring, Purpose::AppCookie, name, origin))
    }

    /// The value that `plaintext` becomes, and what opening it would give.
    pub(crate) fn seal(&self, plaintext: Zeroizing<Vec<u8>>) -> Result<(String, Unsealed), RandomError> {
        Ok((base64url::encode(&self.0.seal(&plaintext, b"")?), Unsealed(plaintext)))
    }

    /// What `value` was sealed from. Costs one decryption at most.
    pub(crate) fn open(&self, value: &[u8]) -> Result<Unsealed, OpenError> {
        if value.len() > MAX_VALUE {
            return Err(OpenError::Malformed);
        }
        let mut bytes = Zeroizing::new(base64url::decode(value).ok_or(OpenError::Malformed)?);
        self.0.open(&mut bytes, b"")?;
        Ok(Unsealed(bytes))
    }
}

/// Bytes that a seal holds or held. Only this file makes one, so whoever has one need not ask where it comes from.
pub(crate) struct Unsealed(Zeroizing<Vec<u8>>);

impl Unsealed {
    /// The bytes; wiped when dropped.
    pub(crate) fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}

/// A browser keeps no larger cookie, so a larger one is not ours; it is refused before it costs a decryption.
const MAX_VALUE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_up_to_what_a_browser_keeps() {
        let cookie = SealedCookie::session(&KeyRing::generate().unwrap(), "name", "https://app.example.com");
        for length in [0, 1, 200, 3027] {
            let plaintext = Zeroizing::new(vec![7; length]);
            let (value, unsealed) = cookie.seal(plaintext.clone()).unwrap();
            assert_eq!(unsealed.into_bytes(), plaintext);
            assert_eq!(cookie.open(value.as_bytes()).unwrap().into_bytes(), plaintext, "{length}");
            assert_eq!(value.len() == MAX_VALUE, length == 3027);
        }
        let (longer, _) = cookie.seal(Zeroizing::new(vec![7; 3028])).unwrap();
        assert_eq!(cookie.open(longer.as_bytes()).err(), Some(OpenError::Malformed));
    }
}
