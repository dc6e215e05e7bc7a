//! Challenges: what a device is to sign.
//!
//! ```text
//! base64url(seal(number(8)))      bound to use ‖ stored id
//! ```
//!
//! Nothing is stored when one is given out, so whoever knows an identifier may ask for as many as they like. The number is the
//! instant it was made, in milliseconds; a session remembers the number of the last one that was answered, and takes none at
//! or below it. So each is good once, and also a proof that was held back is void when a later one was used.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::{
    base64url,
    clock::Timestamp,
    crypto::{key_ring::KeyRing, random::RandomError, root_keys::Purpose, seal::Seal},
    id::StoredId,
};

/// What a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// To bind a key to a session.
    Registration,
    /// To refresh a session.
    Refresh,
    /// To bind a script's key to a session.
    KeyRegistration,
    /// To renew a session that is bound to a script's key.
    KeyRenewal,
}

/// Makes and opens the challenges of one origin.
#[derive(Debug, Clone)]
pub(crate) struct Challenges(Seal);

impl Challenges {
    pub(crate) fn new(ring: &KeyRing, origin: &str) -> Self {
        Self(Seal::new(ring, Purpose::Challenge, "", origin))
    }

    /// A challenge for a session, made at `now`; newer than the one numbered `last`, also where the clock has not gone on since.
    pub(crate) fn mint(
        &self,
        session: &StoredId,
        used_for: Use,
        now: Timestamp,
        last: u64,
    ) -> Result<String, RandomError> {
        let number = now.as_millis().max(last.saturating_add(1));
        Ok(base64url::encode(&self.0.seal(&number.to_be_bytes(), &bound_to(session, used_for))?))
    }

    /// The number of a challenge that is of this session and use and no older than `lifetime`.
    pub(crate) fn open(
        &self,
        challenge: &[u8],
        session: &StoredId,
        used_for: Use,
        now: Timestamp,
        lifetime: Duration,
    ) -> Option<u64> {
        if challenge.len() > MAX_CHALLENGE {
            return None;
        }
        let mut bytes = Zeroizing::new(base64url::decode(challenge)?);
        self.0.open(&mut bytes, &bound_to(session, used_for)).ok()?;
        let number = u64::from_be_bytes(bytes.as_slice().try_into().ok()?);
        let made_at = Timestamp::from_millis(number);
        (made_at <= now + LEEWAY && now < made_at + lifetime).then_some(number)
    }
}

fn bound_to(session: &StoredId, used_for: Use) -> [u8; 33] {
    let mut bound = [0; 33];
    let used_for = match used_for {
        Use::Registration => b"k",
        Use::Refresh => b"r",
        Use::KeyRegistration => b"s",
        Use::KeyRenewal => b"n",
    };
    for (byte, value) in bound.iter_mut().zip(used_for.iter().chain(session.as_bytes())) {
        *byte = *value;
    }
    bound
}

/// Characters of 53 bytes, and some.
const MAX_CHALLENGE: usize = 128;

/// How far one instance's clock may be ahead of another's.
const LEEWAY: Duration = Duration::from_secs(5);

#[cfg(test)]
#[path = "../../tests/unit/dbsc_challenge.rs"]
mod tests;
