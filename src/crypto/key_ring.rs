//! The key ring: root secrets, the states they go through, and every key that is derived from them.
//!
//! ```text
//! root secret ─HKDF─┬ session cookie (XAES)        index secret ─HKDF─┬ subject index (CMAC)
//!                   ├ secret in the token (XAES)                      ├ SessionRef (CMAC)
//!                   ├ record at rest (XAES)                           ├ client context (SipHash)
//!                   ├ record's clear fields (CMAC)                    └ check value
//!                   ├ session data (CMAC-KDF with the session id)    (also: names of data fields, CMAC-KDF)
//!                   ├ renewal token's jti (CMAC)
//!                   └ renewal token's signature (P-256)
//! ```

use std::{fmt, path::Path, sync::Arc};

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{
    clock::{Clock as _, SystemClock, Timestamp},
    crypto::{
        digest::{Label, derive},
        es256::SigningKey,
        mac::MacKey,
        random,
        random::RandomError,
        text,
        text::KeyRingError,
        xaes::XaesKey,
    },
};

/// The name of a root secret: 4 bytes, shown as 8 hexadecimal digits. It is no secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub(crate) [u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

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
#[derive(Clone)]
pub struct KeyRing(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) entries: Vec<Entry>,
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

/// 32 secret bytes; wiped on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

/// What a sealed value is for; each has a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The session cookie.
    SessionCookie,
    /// The session id inside a renewal token.
    TokenSecret,
    /// Subject, claims, methods and context of a record.
    Record,
}

impl Purpose {
    /// The name that enters the associated data.
    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Self::SessionCookie => b"session-cookie",
            Self::TokenSecret => b"token-secret",
            Self::Record => b"record",
        }
    }
}

/// The keys of one root secret.
pub(crate) struct RootKeys {
    pub(crate) id: KeyId,
    session_cookie: XaesKey,
    token_secret: XaesKey,
    record: XaesKey,
    pub(crate) record_mac: MacKey,
    pub(crate) data: MacKey,
    pub(crate) token_mac: MacKey,
    pub(crate) token_signature: SigningKey,
}

impl RootKeys {
    fn derive(id: KeyId, secret: &Secret) -> Option<Self> {
        let xaes = |label| XaesKey::new(&derive(&secret.0, label));
        let mac = |label| MacKey::new(&derive(&secret.0, label));
        Some(Self {
            id,
            session_cookie: xaes(Label(b"session-cookie\0")),
            token_secret: xaes(Label(b"token-secret\0")),
            record: xaes(Label(b"record\0")),
            record_mac: mac(Label(b"record-mac\0")),
            data: mac(Label(b"session-data\0")),
            token_mac: mac(Label(b"renewal-token-jti\0")),
            token_signature: SigningKey::from_okm(&derive(&secret.0, Label(b"renewal-token-es256\0")))?,
        })
    }

    /// The key for sealed values of `purpose`.
    pub(crate) const fn sealing(&self, purpose: Purpose) -> &XaesKey {
        match purpose {
            Purpose::SessionCookie => &self.session_cookie,
            Purpose::TokenSecret => &self.token_secret,
            Purpose::Record => &self.record,
        }
    }
}

impl fmt::Debug for RootKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootKeys({})", self.id)
    }
}

/// The keys of the index secret, which is never rotated.
pub(crate) struct IndexKeys {
    pub(crate) subject: MacKey,
    pub(crate) session_ref: MacKey,
    pub(crate) field_names: MacKey,
    pub(crate) context: Zeroizing<[u8; 16]>,
    pub(crate) check: [u8; 16],
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

    /// Reads the text form from the environment variable `name` (lines joined by `;`).
    ///
    /// # Errors
    /// If the variable is not set or its text is no key ring; the error says what is wrong and what to do.
    pub fn from_env(name: &str) -> Result<Self, KeyRingError> {
        let text = std::env::var(name).map_err(|_| KeyRingError::variable(name))?;
        text::parse(&Zeroizing::new(text))
    }

    /// Reads the text form from a file.
    ///
    /// # Errors
    /// If the file cannot be read, if anybody but its owner and group can get at it, or if its text is no key ring.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeyRingError> {
        text::read_file(path.as_ref())
    }

    /// Reads the text form from a file, and makes the file with a new ring (mode 0600) if there is none.
    ///
    /// Two processes that start together end up with the same ring. Meant for one machine; where several share a site,
    /// give all of them one ring.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file), and if the file cannot be made.
    pub fn from_file_or_generate(path: impl AsRef<Path>) -> Result<Self, KeyRingError> {
        text::read_or_make_file(path.as_ref())
    }

    /// Reads the text form: `id state created base64url` a line, `index base64url` once, `#` comments; a `;` ends a
    /// line as a line break does.
    ///
    /// # Errors
    /// If it is no key ring; the error names the line.
    pub fn from_text(text: &str) -> Result<Self, KeyRingError> {
        text::parse(text)
    }

    /// The text form, secrets included: keep it as you keep a password. Wiped when dropped.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        text::write(&self.0.entries, &self.0.index_secret)
    }

    /// The ids and states of the root secrets, in the ring's order.
    pub fn keys(&self) -> impl Iterator<Item = (KeyId, KeyState)> {
        self.0.entries.iter().map(|entry| (entry.id, entry.state))
    }

    /// Checks what only the whole ring can show, and derives the keys.
    pub(crate) fn assemble(entries: Vec<Entry>, index_secret: Secret) -> Result<Self, KeyRingError> {
        text::check(&entries, &index_secret)?;
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
        let secret = &index_secret.0;
        let index = IndexKeys {
            subject: MacKey::new(&derive(secret, Label(b"subject-index\0"))),
            session_ref: MacKey::new(&derive(secret, Label(b"session-ref\0"))),
            field_names: MacKey::new(&derive(secret, Label(b"field-names\0"))),
            context: derive(secret, Label(b"client-context\0")),
            check: *derive(secret, Label(b"index-check\0")),
        };
        Ok(Self(Arc::new(Inner { entries, index_secret, active, opening, index })))
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

#[cfg(test)]
#[path = "../../tests/unit/key_ring.rs"]
mod tests;
