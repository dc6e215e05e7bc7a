//! Every key that is derived from the ring's secrets, each under a label of its own.
//!
//! ```text
//! root secret ─HKDF─┬ session cookie (XAES)        index secret ─HKDF─┬ subject index (CMAC)
//!                   ├ secret in the token (XAES)                      ├ SessionRef (AES-256)
//!                   ├ record at rest (XAES)                           ├ names of data fields (CMAC-KDF)
//!                   ├ record's clear fields (CMAC)                    ├ client context (SipHash)
//!                   ├ session data (CMAC-KDF with the session id)     ├ form tokens (CMAC)
//!                   ├ the application's cookies (XAES)                └ check value
//!                   ├ challenges for device keys (XAES)
//!                   ├ what a browser calls a bound session (XAES)
//!                   ├ renewal token's jti (CMAC)
//!                   └ renewal token's signature (P-256)
//! ```

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{
    digest::{Label, derive},
    es256::SigningKey,
    mac::MacKey,
    name::NameKey,
    xaes::XaesKey,
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
    /// A cookie of the application.
    AppCookie,
    /// A challenge for a device key.
    Challenge,
    /// What a browser calls a session that its key is bound to.
    DeviceSession,
}

impl Purpose {
    /// The name that enters the associated data.
    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Self::SessionCookie => b"session-cookie",
            Self::TokenSecret => b"token-secret",
            Self::Record => b"record",
            Self::AppCookie => b"app-cookie",
            Self::Challenge => b"device-challenge",
            Self::DeviceSession => b"device-session",
        }
    }
}

/// The keys of one root secret.
pub(crate) struct RootKeys {
    pub(crate) id: KeyId,
    session_cookie: XaesKey,
    token_secret: XaesKey,
    record: XaesKey,
    app_cookie: XaesKey,
    challenge: XaesKey,
    device_session: XaesKey,
    pub(crate) record_mac: MacKey,
    pub(crate) data: MacKey,
    pub(crate) token_mac: MacKey,
    pub(crate) token_signature: SigningKey,
}

impl RootKeys {
    pub(super) fn derive(id: KeyId, secret: &Secret) -> Option<Self> {
        let xaes = |label| XaesKey::new(&derive(&secret.0, label));
        let mac = |label| MacKey::new(&derive(&secret.0, label));
        Some(Self {
            id,
            session_cookie: xaes(Label(b"session-cookie\0")),
            token_secret: xaes(Label(b"token-secret\0")),
            record: xaes(Label(b"record\0")),
            app_cookie: xaes(Label(b"app-cookie\0")),
            challenge: xaes(Label(b"device-challenge\0")),
            device_session: xaes(Label(b"device-session\0")),
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
            Purpose::AppCookie => &self.app_cookie,
            Purpose::Challenge => &self.challenge,
            Purpose::DeviceSession => &self.device_session,
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
    pub(crate) session_ref: NameKey,
    pub(crate) field_names: MacKey,
    pub(crate) context: Zeroizing<[u8; 16]>,
    pub(crate) form_token: MacKey,
    pub(crate) check: [u8; 16],
}

impl IndexKeys {
    pub(super) fn derive(secret: &Secret) -> Self {
        let mac = |label| MacKey::new(&derive(&secret.0, label));
        Self {
            subject: mac(Label(b"subject-index\0")),
            session_ref: NameKey::new(&derive(&secret.0, Label(b"session-ref\0"))),
            field_names: mac(Label(b"field-names\0")),
            context: derive(&secret.0, Label(b"client-context\0")),
            form_token: mac(Label(b"form-token\0")),
            check: *derive(&secret.0, Label(b"index-check\0")),
        }
    }
}
