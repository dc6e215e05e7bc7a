//! Who keeps the key that a session is bound to.

/// Who keeps the key that a session is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a store must treat every kind")]
pub enum KeyKind {
    /// The browser, by its own doing (Device Bound Session Credentials): where the machine has a key store, nothing on it can
    /// read the key.
    Device,
    /// A script of the site, in the browser's storage. No script can read it, and no copied cookie or log holds it; whoever
    /// copies the browser's profile from the disk has it.
    Software,
}

impl KeyKind {
    /// The type of the proofs that such a key signs, so that none is taken for one of the other kind.
    pub(crate) const fn proof_type(self) -> &'static str {
        match self {
            Self::Device => "dbsc+jwt",
            Self::Software => "portcullis-key+jwt",
        }
    }
}
