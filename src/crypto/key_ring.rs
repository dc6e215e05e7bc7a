//! The key ring: root secrets and the states they go through.

use std::{fmt, sync::Arc};

use super::{
    random,
    random::RandomError,
    root_keys::{IndexKeys, KeyId, RootKeys, Secret},
};
use crate::clock::{Clock as _, SystemClock, Timestamp};

/// The state of a root secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// Opens, but does not seal yet: it is still being spread to all instances.
    Pending,
    /// Opens and seals. Exactly one key of a ring is active.
    Active,
    /// Opens only. Cookies and records are sealed anew at their next renewal; it can be removed one `absolute` timeout
    /// after it stopped sealing.
    Retired,
    /// Opens nothing: whatever hangs on it is signed out.
    Revoked,
}

/// The secrets of a site, and the keys derived from them.
///
/// Cloning shares them. `Debug` shows ids and states only; secrets are wiped when the last clone is dropped.
///
/// Deriving all keys of a ring costs about 150 µs a root secret, once.
///
/// # Rotating
///
/// The text form is edited by hand, one step at a time, each on every instance before the next:
///
/// 1. Take the key line of a newly generated ring and append it as `pending`: now every instance opens what it seals.
/// 2. Make it `active`, and the old one `retired`: cookies and records are sealed anew at their next renewal.
/// 3. Remove the old line one `absolute` timeout later (the remembered one, where users may be remembered).
///
/// `revoked` instead of `retired` signs out everybody whose cookies hang on that key: for a key that leaked. The `index`
/// line never changes: with another one no stored session is found, which is a start-up error.
#[derive(Clone)]
pub struct KeyRing(Arc<Inner>);

struct Inner {
    entries: Vec<Entry>,
    index_secret: Secret,
    active: Arc<RootKeys>,
    opening: Vec<Arc<RootKeys>>,
    index: IndexKeys,
}

/// One root secret as the text form states it.
pub(crate) struct Entry {
    pub(crate) id: KeyId,
    pub(crate) state: KeyState,
    pub(crate) created: Timestamp,
    pub(crate) secret: Secret,
}

impl KeyRing {
    /// A new ring with one active root secret, from the operating system's random bytes.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn generate() -> Result<Self, KeyRingError> {
        // The date is for the operator's eyes; nothing is judged by it.
        let created = SystemClock.now();
        let id = KeyId(random::bytes().map_err(|RandomError| KeyRingError::random())?);
        let secret = Secret(random::bytes().map_err(|RandomError| KeyRingError::random())?);
        let index = Secret(random::bytes().map_err(|RandomError| KeyRingError::random())?);
        Self::assemble(vec![Entry { id, state: KeyState::Active, created, secret }], index)
    }

    /// The ids and states of the root secrets, in the ring's order.
    pub fn keys(&self) -> impl Iterator<Item = (KeyId, KeyState)> {
        self.0.entries.iter().map(|entry| (entry.id, entry.state))
    }

    /// Checks what only the whole ring can show, and derives the keys.
    pub(crate) fn assemble(entries: Vec<Entry>, index_secret: Secret) -> Result<Self, KeyRingError> {
        check(&entries, &index_secret)?;
        let mut active = None;
        let mut opening = Vec::with_capacity(entries.len());
        for entry in entries.iter().filter(|entry| entry.state != KeyState::Revoked) {
            let keys = RootKeys::derive(entry.id, &entry.secret).ok_or_else(KeyRingError::underivable)?;
            let keys = Arc::new(keys);
            if entry.state == KeyState::Active {
                active = Some(Arc::clone(&keys));
            }
            opening.push(keys);
        }
        let active = active.ok_or_else(KeyRingError::no_active_key)?;
        let index = IndexKeys::derive(&index_secret);
        Ok(Self(Arc::new(Inner { entries, index_secret, active, opening, index })))
    }

    /// What the text form states.
    pub(super) fn parts(&self) -> (&[Entry], &Secret) {
        (&self.0.entries, &self.0.index_secret)
    }

    /// The key that seals.
    pub(crate) fn active(&self) -> &Arc<RootKeys> {
        &self.0.active
    }

    /// The key with this id, if it opens.
    pub(crate) fn opening(&self, id: KeyId) -> Option<&Arc<RootKeys>> {
        self.0.opening.iter().find(|keys| keys.id == id)
    }

    /// Every key that opens.
    pub(crate) fn all_opening(&self) -> &[Arc<RootKeys>] {
        &self.0.opening
    }

    /// The keys of the index secret.
    pub(crate) fn index(&self) -> &IndexKeys {
        &self.0.index
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.keys()).finish()
    }
}

/// Why there is no key ring, and what to do about it. Never shows a secret.
///
/// `Debug` says the same as `Display`, because `main` shows an error with `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRingError {
    fault: String,
    remedy: &'static str,
}

impl KeyRingError {
    /// The same, with the place where the ring was looked for.
    pub(super) fn at(self, place: &str) -> Self {
        Self { fault: format!("{place}: {}", self.fault), ..self }
    }

    pub(super) fn new(fault: impl Into<String>, remedy: &'static str) -> Self {
        Self { fault: fault.into(), remedy }
    }

    fn random() -> Self {
        Self::new(
            "the operating system gave no random bytes",
            "check that getrandom(2) works in this environment",
        )
    }

    fn no_active_key() -> Self {
        Self::new(
            "the key ring has no active key",
            "give exactly one key the state `active`: it seals new cookies",
        )
    }

    fn underivable() -> Self {
        Self::new("a root secret gives no signing key", "replace it by a new one")
    }
}

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. Remedy: {}.", self.fault, self.remedy)
    }
}

impl fmt::Debug for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for KeyRingError {}

/// Checks what only the whole ring can show.
fn check(entries: &[Entry], index: &Secret) -> Result<(), KeyRingError> {
    let active = entries.iter().filter(|entry| entry.state == KeyState::Active).count();
    if active > 1 {
        return Err(KeyRingError::new(
            format!("the key ring has {active} active keys"),
            "leave one active and make the others `pending` or `retired`",
        ));
    }
    for (i, entry) in entries.iter().enumerate() {
        if entries.iter().skip(i + 1).any(|other| other.id == entry.id) {
            return Err(KeyRingError::new(
                format!("the key id {} stands twice", entry.id),
                "give each key its own id",
            ));
        }
        if entry.secret == *index || entries.iter().skip(i + 1).any(|other| other.secret == entry.secret) {
            return Err(KeyRingError::new(
                format!("the secret of key {} stands twice", entry.id),
                "generate a new key: a copied secret cannot be rotated away",
            ));
        }
    }
    let mut secrets = entries.iter().map(|entry| &entry.secret).chain([index]);
    if secrets.any(|secret| secret.0.iter().all(|byte| secret.0.first() == Some(byte))) {
        return Err(KeyRingError::new(
            "a secret is one byte repeated",
            "generate keys with KeyRing::generate; never write them by hand",
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../../tests/unit/key_ring.rs"]
mod tests;
