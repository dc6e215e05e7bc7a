//! A new session, and the credentials that stand for a session.

use std::{fmt, time::Duration};

use super::Registry;
use crate::{
    clock::Timestamp,
    crypto::{es256::VerifyingKey, random, random::RandomError},
    dbsc::KeyKind,
    events::{SessionEvent, StoreVerb},
    id::{SessionId, StoredId},
    session::{Admitted, Device, Fixed, Private, Rotation, Snapshot, SnapshotParts, Strength, TokenParts},
    store::{
        contract::{CreateError, NewSession, Replacement, Seen, StoreError},
        revocation::Revocation,
        row::Row,
        vault::RowEdit,
    },
};

/// Who a new session is for, and what it begins with.
pub(crate) struct Beginning {
    pub(crate) private: Private,
    pub(crate) remembered: bool,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) replaces: Option<Replacement>,
    /// What that one was read to hold.
    pub(crate) seen: Option<Seen>,
    /// The times of the session it goes on from; none begins anew, now.
    pub(crate) continues: Option<Continued>,
    /// The end that the application wants for it, if that comes sooner.
    pub(crate) ends_by: Option<Timestamp>,
}

/// The times that a session keeps under a new id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Continued {
    pub(crate) created_at: Timestamp,
    pub(crate) authenticated_at: Option<Timestamp>,
    pub(crate) ends_at: Option<Timestamp>,
}

/// Credentials to be sent, and the session they stand for.
pub(crate) struct Issued {
    pub(crate) admitted: Admitted,
    pub(crate) cookies: SetCookies,
}

/// Our cookies' values, and a token only where there is a new one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SetCookies {
    pub(crate) cookie: String,
    /// When the browser is to drop the cookie: of a session that it refreshes early enough to refresh it, of any other at its end.
    pub(crate) cookie_until: Timestamp,
    pub(crate) token: Option<String>,
    pub(crate) token_until: Timestamp,
}

/// Mute: it holds credentials.
impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Issued(..)")
    }
}

/// Why a session was not created or changed.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// The session to go on from is over.
    Gone,
    /// The session to go on from was written to since it was read.
    Changed,
    /// The store does not answer.
    Store,
    /// The operating system gave no random bytes.
    Random,
}

impl From<RandomError> for RegistryError {
    fn from(RandomError: RandomError) -> Self {
        Self::Random
    }
}

impl Registry {
    /// Creates a session. One store call.
    pub(crate) async fn begin(&self, beginning: Beginning) -> Result<Issued, RegistryError> {
        if let Some(subject) = &beginning.private.subject
            && self.revocations.knows_subjects()
            && self.revocations.is_owed(&self.vault.subject_key(subject))
        {
            // The sign-out everywhere that the store has not taken comes first, or it would end this session too.
            self.pay().await.map_err(|_| RegistryError::Store)?;
        }
        let now = self.now();
        let id = SessionId(random::bytes().inspect_err(|_| self.event(SessionEvent::NoRandomness))?);
        let stored_id = self.vault.stored_id_of(&id);
        let (key, sealed) = self.vault.seal_private(&stored_id, &beginning.private)?;
        let fields = if beginning.fields.is_empty() {
            Vec::new()
        } else {
            let keys = self.vault.data_keys(id.clone(), stored_id);
            let seal = |(name, json): &(String, Vec<u8>)| {
                let tag = self.vault.tag(&keys, name);
                Ok((tag, self.vault.seal_field(&keys, name, &tag, json)?))
            };
            beginning.fields.iter().map(seal).collect::<Result<Vec<_>, RandomError>>()?
        };
        let remembered = beginning.remembered;
        let continues = beginning.continues;
        let authenticated_at = continues.and_then(|times| times.authenticated_at).unwrap_or(now);
        let absolute = authenticated_at + self.timeouts.absolute_of(remembered);
        let kept_end = continues.and_then(|times| times.ends_at);
        let ends_at = [kept_end, beginning.ends_by].into_iter().flatten().fold(absolute, Timestamp::min);
        let keeper = self.vault.keeper(RowEdit::None);
        let row = Row {
            rotation: Rotation::begin(now),
            created_at: continues.map_or(now, |times| times.created_at),
            renewed_at: now,
            authenticated_at,
            deadline: (now + self.timeouts.idle_of(remembered)).min(ends_at),
            ends_at,
            superseded_at: None,
            predecessor: None,
            successor: None,
            subject: beginning.private.subject.as_deref().map(|subject| self.vault.subject_key(subject)),
            epoch: 0,
            claims_version: 0,
            upgrades: 0,
            remembered,
            device: None,
            key,
            sealed,
            mac: [0; 16],
        };
        let replaces = beginning.replaces;
        let created = self
            .store
            .create(NewSession {
                id: stored_id,
                row,
                fields,
                replaces,
                seen: beginning.seen,
                keeper: &keeper,
            })
            .await;
        let row = created.map_err(|error| match error {
            CreateError::ReplacedGone => RegistryError::Gone,
            CreateError::ReplacedChanged => RegistryError::Changed,
            // 256 random bits are not taken: the store gave an answer that cannot be.
            CreateError::Taken => {
                self.store_failed(StoreVerb::Create, &StoreError::new("a new session id was taken"));
                RegistryError::Store
            }
            CreateError::Store(error) => {
                self.store_failed(StoreVerb::Create, &error);
                RegistryError::Store
            }
        })?;
        match replaces {
            Some(Replacement::End(old) | Replacement::Move(old)) => {
                self.revoked_here(Revocation::Session(old))
            }
            Some(Replacement::Supersede(old)) => {
                self.revoked_here(Revocation::Superseded(old));
                self.revocations.link(&stored_id, old, self.now() + self.window());
            }
            None => {}
        }
        let token = Some(row.rotation.issued);
        let fresh = self.timeouts.fresh;
        Ok(self.issue(&id, stored_id, &row, &beginning.private, now, fresh, None, token)?)
    }

    /// The cookies for a session as its row says: fresh for `span`, no stronger than the cookie that was `shown`, and a token
    /// where there is a new generation.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different fact of one session, and its callers have them apart"
    )]
    pub(super) fn issue(
        &self,
        id: &SessionId,
        stored_id: StoredId,
        row: &Row,
        private: &Private,
        now: Timestamp,
        span: Duration,
        shown: Option<&Fixed>,
        generation: Option<u64>,
    ) -> Result<Issued, RandomError> {
        let strength = strength_of(row, private);
        let kind = row.device.as_deref().map(|device| device.kind);
        let fixed = Fixed {
            strength: shown.map_or(strength, |shown| shown.strength.min(strength)),
            remembered: row.remembered,
            context_changed: private.context_changed,
            polled: row.rotation.rotated_at > row.renewed_at && kind.is_none(),
            keyed: kind == Some(KeyKind::Software) && shown.is_none_or(|shown| shown.keyed),
            epoch: row.epoch,
            claims_version: row.claims_version,
            authenticated_at: row.authenticated_at,
            // Of a device's session it is when the device has proven itself.
            minted_at: match shown {
                Some(shown) if kind == Some(KeyKind::Device) => shown.minted_at.min(now),
                _ => now,
            },
            fresh_until: (now + span).min(row.deadline),
            ends_at: row.ends_at,
            context: private.context,
        };
        let (subject, methods, claims) =
            (private.subject.as_deref(), private.methods.as_str(), private.claims.as_str());
        let bytes = SnapshotParts { id, stored_id, fixed, subject, methods, claims }.encode();
        let (cookie, unsealed) = self.cookie.seal(bytes)?;
        let bound_to = generation.and(row.device.as_deref()).and_then(thumbprint);
        let token = match generation {
            Some(generation) => Some(self.tokens.mint(&TokenParts {
                id,
                generation,
                issued_at: now,
                expires_at: row.deadline,
                context: &private.context,
                bound_to: bound_to.as_deref(),
            })?),
            None => None,
        };
        // What was encoded here parses here.
        let snapshot = Snapshot::parse(unsealed).ok_or(RandomError)?;
        let cookie_until = match kind {
            Some(KeyKind::Device) => fixed.fresh_until.before(self.timeouts.grace),
            Some(KeyKind::Software) | None => fixed.ends_at,
        };
        let cookies = SetCookies { cookie, cookie_until, token, token_until: fixed.ends_at };
        Ok(Issued { admitted: Admitted::issued(snapshot), cookies })
    }
}

/// The name of a device's key (RFC 7638).
fn thumbprint(device: &Device) -> Option<String> {
    VerifyingKey::from_bytes(&device.key)?.thumbprint()
}

/// How strongly a session is tied to its client.
pub(crate) const fn strength_of(row: &Row, private: &Private) -> Strength {
    match &row.device {
        Some(device) if matches!(device.kind, KeyKind::Device) => Strength::Device,
        _ if private.dormant => Strength::Remembered,
        Some(_) => Strength::SoftwareKey,
        None => Strength::Context,
    }
}
