//! What the session cookie says: everything a request needs, so that a fresh one costs no store call.
//!
//! ```text
//! version(1) ‖ flags(1) ‖ strength(1) ‖ session id(32) ‖ stored id(32) ‖ epoch(8) ‖ claims version(8) ‖
//! authenticated at(8) ‖ minted at(8) ‖ fresh until(8) ‖ ends at(8) ‖ context(1 to 65) ‖
//! len ‖ subject ‖ len ‖ methods ‖ len ‖ claims
//! ```

use std::{fmt, sync::Arc};

use zeroize::Zeroizing;

use super::{
    context_digest::ContextDigest,
    strength::Strength,
    wire::{Reader, Writer},
};
use crate::{
    clock::Timestamp,
    cookie::Unsealed,
    dbsc::KeyKind,
    id::{SessionId, StoredId},
};

/// The fields of a snapshot, to write one.
#[derive(Debug)]
pub(crate) struct SnapshotParts<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) stored_id: StoredId,
    pub(crate) fixed: Fixed,
    pub(crate) subject: Option<&'a str>,
    pub(crate) methods: &'a str,
    pub(crate) claims: &'a str,
}

/// The fields of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) strength: Strength,
    pub(crate) remembered: bool,
    pub(crate) context_changed: bool,
    /// It was issued to a page that asks by itself: the user's next request is still owed to the idle timeout.
    pub(crate) polled: bool,
    /// A script's key alone renews it, however strong it is.
    pub(crate) keyed: bool,
    pub(crate) epoch: u64,
    pub(crate) claims_version: u64,
    pub(crate) authenticated_at: Timestamp,
    pub(crate) minted_at: Timestamp,
    pub(crate) fresh_until: Timestamp,
    pub(crate) ends_at: Timestamp,
    pub(crate) context: ContextDigest,
}

impl Fixed {
    /// Who keeps the key that alone renews the session, if there is one, by the cookie's own word.
    pub(crate) const fn bound_to(&self) -> Option<KeyKind> {
        match self.strength {
            Strength::Device => Some(KeyKind::Device),
            _ if self.keyed => Some(KeyKind::Software),
            _ => None,
        }
    }
}

/// An opened session cookie. Keeps the plaintext, which is wiped on drop, and points into it.
#[derive(Clone)]
pub(crate) struct Snapshot {
    bytes: Zeroizing<Vec<u8>>,
    stored_id: StoredId,
    fixed: Fixed,
    has_subject: bool,
}

impl SnapshotParts<'_> {
    /// The bytes to be sealed.
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let fixed = &self.fixed;
        let text = self.subject.map_or(0, str::len) + self.methods.len() + self.claims.len();
        let mut out = Writer::with_capacity(FIXED + fixed.context.length() + 6 + text);
        out.byte(VERSION);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.byte(
            flag(self.subject.is_some(), HAS_SUBJECT)
                | flag(fixed.remembered, REMEMBERED)
                | flag(fixed.context_changed, CONTEXT_CHANGED)
                | flag(fixed.polled, POLLED)
                | flag(fixed.keyed, KEYED),
        );
        out.byte(fixed.strength.to_byte());
        out.raw(&self.id.0);
        out.raw(self.stored_id.as_bytes());
        out.number(fixed.epoch);
        out.number(fixed.claims_version);
        for instant in [fixed.authenticated_at, fixed.minted_at, fixed.fresh_until, fixed.ends_at] {
            out.number(instant.as_millis());
        }
        fixed.context.write(&mut out);
        out.text(self.subject.unwrap_or_default());
        out.text(self.methods);
        out.text(self.claims);
        Zeroizing::new(out.finish())
    }
}

impl Snapshot {
    /// Reads what was sealed; `None` for a version that is not known.
    pub(crate) fn parse(unsealed: Unsealed) -> Option<Arc<Self>> {
        let bytes = unsealed.into_bytes();
        let mut reader = Reader::new(&bytes);
        let [version, flags, strength] = reader.array()?;
        if version != VERSION {
            return None;
        }
        let _id: [u8; 32] = reader.array()?;
        let stored_id = StoredId::from_bytes(reader.array()?);
        let fixed = Fixed {
            strength: Strength::from_byte(strength)?,
            remembered: flags & REMEMBERED != 0,
            context_changed: flags & CONTEXT_CHANGED != 0,
            polled: flags & POLLED != 0,
            keyed: flags & KEYED != 0,
            epoch: reader.number()?,
            claims_version: reader.number()?,
            authenticated_at: Timestamp::from_millis(reader.number()?),
            minted_at: Timestamp::from_millis(reader.number()?),
            fresh_until: Timestamp::from_millis(reader.number()?),
            ends_at: Timestamp::from_millis(reader.number()?),
            context: ContextDigest::read(&mut reader)?,
        };
        let has_subject = flags & HAS_SUBJECT != 0;
        let complete = reader.bytes().is_some() && reader.bytes().is_some() && reader.bytes().is_some();
        if !complete || !reader.is_done() {
            return None;
        }
        Some(Arc::new(Self { bytes, stored_id, fixed, has_subject }))
    }

    pub(crate) fn id(&self) -> SessionId {
        let bytes = self.bytes.get(3..).and_then(|rest| rest.first_chunk()).copied();
        SessionId(bytes.unwrap_or_default())
    }

    pub(crate) const fn stored_id(&self) -> &StoredId {
        &self.stored_id
    }

    pub(crate) const fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// Who is signed in; `None` for an anonymous session.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.has_subject.then(|| self.text(0))
    }

    /// Whether anybody is signed in.
    pub(crate) const fn has_subject(&self) -> bool {
        self.has_subject
    }

    /// How the user was authenticated (RFC 8176 names), in the order given.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &str> {
        self.text(1).split(' ').filter(|method| !method.is_empty())
    }

    /// The claims, a JSON object, or nothing.
    pub(crate) fn claims(&self) -> &str {
        self.text(2)
    }

    /// The first, second or third text. What was sealed was text; it is checked again when it is read.
    fn text(&self, number: usize) -> &str {
        let mut reader =
            Reader::new(self.bytes.get(FIXED + self.fixed.context.length()..).unwrap_or_default());
        let text = std::iter::from_fn(|| reader.bytes()).nth(number);
        text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("fixed", &self.fixed).finish_non_exhaustive()
    }
}

const VERSION: u8 = 1;
const FIXED: usize = 3 + 32 + 32 + 6 * 8;
const HAS_SUBJECT: u8 = 1;
const REMEMBERED: u8 = 2;
const CONTEXT_CHANGED: u8 = 4;
const POLLED: u8 = 8;
const KEYED: u8 = 16;

#[cfg(test)]
#[path = "../../tests/unit/snapshot.rs"]
mod tests;
