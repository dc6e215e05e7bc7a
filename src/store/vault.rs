//! Sealing at rest, field by field. Under every name a store sees lies a hash or a MAC, under every value a seal.
//!
//! ```text
//! subject key = MAC(index: len ‖ origin ‖ subject)        SessionRef = AES(index: stored id)
//! row:    sealed part bound to "row" ‖ stored id; MAC over origin ‖ stored id ‖ every column ‖ sealed part
//! field:  tag = MAC(index: session id ‖ name)
//!         version(1) ‖ key id(4) ‖ nonce(24) ‖ XAES(KDF(ring, session id): len ‖ name ‖ JSON) ‖ tag(16)
//!         bound to version ‖ key id ‖ stored id ‖ tag ‖ origin
//! ```
//!
//! Data fields need the session id, which is in the browser's credentials and nowhere else.

use std::{fmt, time::Duration};

use zeroize::Zeroizing;

use super::row::{FieldTag, Row, RowKeeper};
use crate::{
    clock::Timestamp,
    crypto::{
        digest,
        key_ring::KeyRing,
        random,
        random::RandomError,
        root_keys::{KeyId, Purpose},
        seal::Seal,
        xaes::{NONCE, TAG, XaesKey},
    },
    id::{SessionDigest, SessionId, SessionRef, StoredId, SubjectKey},
    session::{ContextDigest, FormTag, Private, Rotation},
};

/// The keys of one origin's records.
pub(crate) struct Vault {
    origin: String,
    ring: KeyRing,
    private: Seal,
}

/// The keys of one session's data. Deriving them costs about 1,500 instructions, so a request does it once.
pub(crate) struct DataKeys {
    id: SessionId,
    stored_id: StoredId,
    active: XaesKey,
}

/// What an edit of a row is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowEdit<'a> {
    /// Nothing: the row is only verified or signed.
    None,
    /// A renewal: the context moves on, or is marked as changed; a long silence is marked too.
    Renewal {
        /// The context to go on with.
        moved_to: Option<ContextDigest>,
        /// Whether another network or platform was seen.
        changed: bool,
        /// How long an ordinary session may be silent.
        idle: Duration,
    },
    /// New claims.
    Claims(&'a str),
    /// A new authentication of the same session: by these methods, if they are named, from this client.
    Authentication {
        /// How, separated by spaces.
        methods: Option<&'a str>,
        /// The client to go on with.
        context: ContextDigest,
        /// As a person would name it.
        client: &'a str,
    },
}

/// A vault with an edit in mind, as a store wants it.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    vault: &'a Vault,
    edit: RowEdit<'a>,
}

impl Vault {
    pub(crate) fn new(ring: &KeyRing, origin: &str) -> Self {
        Self {
            origin: origin.into(),
            ring: ring.clone(),
            private: Seal::new(ring, Purpose::Record, "", origin),
        }
    }

    pub(crate) fn stored_id(&self, digest: &SessionDigest) -> StoredId {
        digest::stored_id(&self.origin, digest)
    }

    /// The same from the session id itself.
    pub(crate) fn stored_id_of(&self, id: &SessionId) -> StoredId {
        self.stored_id(&digest::session_digest(id))
    }

    pub(crate) fn subject_key(&self, subject: &str) -> SubjectKey {
        let length = length(self.origin.len());
        let parts = [length.as_slice(), self.origin.as_bytes(), subject.as_bytes()];
        SubjectKey::from_bytes(self.ring.index().subject.tag(&parts))
    }

    pub(crate) fn session_ref(&self, id: &StoredId) -> SessionRef {
        SessionRef(self.ring.index().session_ref.of(id.as_bytes()))
    }

    /// What the form tokens of a session, or of nobody, have in common.
    pub(crate) fn form_tag(&self, id: Option<&StoredId>) -> FormTag {
        let length = length(self.origin.len());
        let id = id.map(|id| id.as_bytes().as_slice()).unwrap_or_default();
        self.ring.index().form_token.tag(&[length.as_slice(), self.origin.as_bytes(), id])
    }

    pub(crate) fn context_key(&self) -> &[u8; 16] {
        &self.ring.index().context
    }

    pub(crate) fn index_check(&self) -> [u8; 16] {
        self.ring.index().check
    }

    /// Seals the private part of a row under the active key; gives that key's id with it.
    pub(crate) fn seal_private(
        &self,
        id: &StoredId,
        private: &Private,
    ) -> Result<([u8; 4], Vec<u8>), RandomError> {
        let sealed = self.private.seal(&private.encode(), &private_extra(id))?;
        Ok((self.ring.active().id.0, sealed))
    }

    /// Opens the private part of a row.
    pub(crate) fn open_private(&self, id: &StoredId, row: &Row) -> Option<Private> {
        let mut bytes = Zeroizing::new(row.sealed.clone());
        self.private.open(&mut bytes, &private_extra(id)).ok()?;
        Private::parse(&bytes)
    }

    pub(crate) const fn keeper<'a>(&'a self, edit: RowEdit<'a>) -> Keeper<'a> {
        Keeper { vault: self, edit }
    }

    pub(crate) fn data_keys(&self, id: SessionId, stored_id: StoredId) -> DataKeys {
        let active = XaesKey::new(&self.ring.active().data.derive(b"fields", &id.0));
        DataKeys { id, stored_id, active }
    }

    /// The name under which a store keeps the field called `name`.
    pub(crate) fn tag(&self, keys: &DataKeys, name: &str) -> FieldTag {
        FieldTag::from_bytes(self.ring.index().field_names.tag(&[&keys.id.0, name.as_bytes()]))
    }

    /// Seals the field called `name`, of which `tag` must be the tag.
    pub(crate) fn seal_field(
        &self,
        keys: &DataKeys,
        name: &str,
        tag: &FieldTag,
        json: &[u8],
    ) -> Result<Vec<u8>, RandomError> {
        let nonce: [u8; NONCE] = random::bytes()?;
        let header = header(self.ring.active().id);
        let mut sealed = Vec::with_capacity(header.len() + NONCE + 4 + name.len() + json.len() + TAG);
        sealed.extend_from_slice(&header);
        sealed.extend_from_slice(&nonce);
        let start = sealed.len();
        sealed.extend_from_slice(&length(name.len()));
        sealed.extend_from_slice(name.as_bytes());
        sealed.extend_from_slice(json);
        let message = sealed.get_mut(start..).unwrap_or_default();
        let mac = keys.active.seal(&nonce, &self.bound(keys, &header, tag), message).ok_or(RandomError)?;
        sealed.extend_from_slice(&mac);
        Ok(sealed)
    }

    /// Opens a field: its name and its JSON. `None` if it is not what was sealed for this session under this tag.
    pub(crate) fn open_field(
        &self,
        keys: &DataKeys,
        tag: &FieldTag,
        sealed: Vec<u8>,
    ) -> Option<(String, Zeroizing<Vec<u8>>)> {
        let mut sealed = Zeroizing::new(sealed);
        let (head, rest) = sealed.split_first_chunk_mut::<5>()?;
        let (nonce, rest) = rest.split_first_chunk_mut::<NONCE>()?;
        let (message, mac) = rest.split_last_chunk_mut::<TAG>()?;
        let [version, id @ ..] = *head;
        let id = KeyId(id);
        if version != FIELD_VERSION {
            return None;
        }
        let bound = self.bound(keys, head, tag);
        if id == self.ring.active().id {
            keys.active.open(nonce, &bound, message, mac)?;
        } else {
            let older = self.ring.opening(id)?;
            XaesKey::new(&older.data.derive(b"fields", &keys.id.0)).open(nonce, &bound, message, mac)?;
        }
        let (name_length, rest) = message.split_first_chunk::<4>()?;
        let (name, json) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*name_length)).ok()?)?;
        Some((String::from_utf8(name.to_vec()).ok()?, Zeroizing::new(json.to_vec())))
    }

    fn bound(&self, keys: &DataKeys, header: &[u8; 5], tag: &FieldTag) -> Vec<u8> {
        [header.as_slice(), keys.stored_id.as_bytes(), tag.as_bytes(), self.origin.as_bytes()].concat()
    }

    /// The MAC of a row under the key it names.
    fn row_mac(&self, id: &StoredId, row: &Row) -> Option<[u8; 16]> {
        // Taken apart whole, so that a column which is added later cannot be forgotten here.
        let Row {
            rotation: Rotation { previous, floor, issued, rotated_at },
            created_at,
            renewed_at,
            authenticated_at,
            deadline,
            ends_at,
            superseded_at,
            predecessor,
            successor,
            subject,
            epoch,
            claims_version,
            upgrades,
            remembered,
            device,
            key,
            sealed,
            mac: _,
        } = row;
        let keys = self.ring.opening(KeyId(*key))?;
        let mut clear = Vec::with_capacity(400 + self.origin.len());
        clear.push(ROW_VERSION);
        clear.push(u8::from(*remembered) | u8::from(device.is_some()) << 1);
        for flag in [superseded_at.is_some(), predecessor.is_some(), successor.is_some(), subject.is_some()] {
            clear.push(u8::from(flag));
        }
        let numbers = [
            *previous,
            *floor,
            *issued,
            *epoch,
            *claims_version,
            u64::from(*upgrades),
            rotated_at.as_millis(),
            created_at.as_millis(),
            renewed_at.as_millis(),
            authenticated_at.as_millis(),
            deadline.as_millis(),
            ends_at.as_millis(),
            superseded_at.unwrap_or_default().as_millis(),
        ];
        clear.extend_from_slice(numbers.map(u64::to_be_bytes).as_flattened());
        for id in [predecessor, successor] {
            clear.extend_from_slice(id.as_ref().map_or(&[0; 32], StoredId::as_bytes).as_slice());
        }
        clear.extend_from_slice(subject.as_ref().map_or(&[0; 16], SubjectKey::as_bytes).as_slice());
        if let Some(device) = device {
            clear.extend_from_slice(&device.to_bytes());
        }
        clear.extend_from_slice(key);
        clear.extend_from_slice(id.as_bytes());
        clear.extend_from_slice(&length(self.origin.len()));
        clear.extend_from_slice(self.origin.as_bytes());
        // All before this is of fixed or stated length, so the sealed part can end the message.
        Some(keys.record_mac.tag(&[&clear, sealed]))
    }
}

impl RowKeeper for Keeper<'_> {
    fn verify(&self, id: &StoredId, row: &Row) -> bool {
        use subtle::ConstantTimeEq as _;
        self.vault.row_mac(id, row).is_some_and(|mac| mac.ct_eq(&row.mac).into())
    }

    fn sign(&self, id: &StoredId, row: &mut Row) {
        // A row under a key that opens nothing gets no MAC that verifies, and counts as gone.
        row.mac = self.vault.row_mac(id, row).unwrap_or_default();
    }

    fn edit(&self, id: &StoredId, row: &mut Row, now: Timestamp) -> Result<bool, RandomError> {
        let Some(mut private) = self.vault.open_private(id, row) else { return Ok(false) };
        match self.edit {
            RowEdit::None => {}
            RowEdit::Renewal { moved_to, changed, idle } => {
                if let Some(context) = moved_to {
                    private.context = private.context.moved_to(context);
                }
                private.context_changed |= changed;
                private.dormant |= row.remembered && now >= row.renewed_at + idle;
            }
            RowEdit::Claims(claims) => private.claims = claims.into(),
            RowEdit::Authentication { methods, context, client } => {
                if let Some(methods) = methods {
                    private.methods = methods.into();
                }
                (private.context, private.client) = (context, client.into());
                (private.context_changed, private.dormant) = (false, false);
            }
        }
        (row.key, row.sealed) = self.vault.seal_private(id, &private)?;
        Ok(true)
    }
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKeys(..)")
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn private_extra(id: &StoredId) -> [u8; 35] {
    let mut extra = [0; 35];
    for (byte, value) in extra.iter_mut().zip(b"row".iter().chain(id.as_bytes())) {
        *byte = *value;
    }
    extra
}

fn header(id: KeyId) -> [u8; 5] {
    let [a, b, c, d] = id.0;
    [FIELD_VERSION, a, b, c, d]
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

const ROW_VERSION: u8 = 1;
const FIELD_VERSION: u8 = 1;

#[cfg(test)]
#[path = "../../tests/unit/vault.rs"]
mod tests;
