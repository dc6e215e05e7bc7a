//! The store's verbs, for events.

/// A verb of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the store's verb of that name")]
pub enum StoreVerb {
    Create,
    Load,
    Commit,
    Rotate,
    Revoke,
    RevokeSubject,
    RevokeBefore,
    ListSubject,
    Purge,
    Subscribe,
}

impl StoreVerb {
    /// The verb's name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Load => "load",
            Self::Commit => "commit",
            Self::Rotate => "rotate",
            Self::Revoke => "revoke",
            Self::RevokeSubject => "revoke_subject",
            Self::RevokeBefore => "revoke_before",
            Self::ListSubject => "list_subject",
            Self::Purge => "purge",
            Self::Subscribe => "subscribe",
        }
    }
}
