//! What is done to the sessions of one origin: create, renew, end, list. Knows the store and the keys, no HTTP.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use super::{
    contract::{
        CommitRequest, CreateError, NewSession, Replacement, RotateAnswer, RotateRequest, Store, StoreError,
    },
    revocations::{Revocation, RevocationSet},
    row::{FieldTag, Row},
    vault::{RowEdit, Vault},
};
use crate::{
    clock::{Clock, Timestamp},
    cookie::SealedCookie,
    crypto::{digest, random, random::RandomError},
    events::{EventSink, SessionEvent, StoreVerb},
    id::{SessionId, SessionRef, StoredId},
    session::{
        Admitted, ContextDigest, ContextRelation, Fixed, Private, Reason, RenewalTokens, Rotation,
        RotationOutcome, Snapshot, SnapshotParts, Standing, Strength, Timeouts, TokenParts, VerifiedRenewal,
    },
};

/// The sessions of one origin.
pub(crate) struct Registry {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Vault,
    pub(crate) tokens: RenewalTokens,
    pub(crate) cookie: SealedCookie,
    pub(crate) timeouts: Timeouts,
    pub(crate) revocations: RevocationSet,
    sink: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    /// Milliseconds by which the store's clock is ahead of this instance's.
    offset: AtomicI64,
    pub(super) watched: AtomicBool,
}

/// What a registry is made of.
pub(crate) struct RegistryParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Vault,
    pub(crate) tokens: RenewalTokens,
    pub(crate) cookie: SealedCookie,
    pub(crate) timeouts: Timeouts,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Who a new session is for, and what it begins with.
pub(crate) struct Beginning {
    pub(crate) private: Private,
    pub(crate) remembered: bool,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) replaces: Option<Replacement>,
    /// The times of the session it goes on from; none begins anew, now.
    pub(crate) continues: Option<Continued>,
}

/// The times that a session keeps under a new id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Continued {
    pub(crate) created_at: Timestamp,
    pub(crate) authenticated_at: Option<Timestamp>,
    pub(crate) ends_at: Option<Timestamp>,
}

/// Credentials to be sent: the session they stand for, the cookie's value, and a token where there is a new one.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) admitted: Admitted,
    pub(crate) cookie: String,
    pub(crate) token: Option<String>,
}

/// What a renewal led to.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// Let in, with new cookies.
    Issued(Issued),
    /// Let in for a socket, with none.
    Upgraded(Admitted),
    /// Not let in.
    Refused(Reason),
    /// Not known: the store does not answer.
    Unavailable,
}

/// Why a session was not created or changed.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// The session to go on from is over.
    Gone,
    /// The store does not answer.
    Store(StoreError),
    /// The operating system gave no random bytes.
    Random,
}

impl From<RandomError> for RegistryError {
    fn from(RandomError: RandomError) -> Self {
        Self::Random
    }
}

impl Registry {
    pub(crate) fn new(parts: RegistryParts) -> Self {
        let RegistryParts { store, vault, tokens, cookie, timeouts, sink, clock } = parts;
        Self {
            store,
            vault,
            tokens,
            cookie,
            timeouts,
            sink,
            clock,
            revocations: RevocationSet::new(),
            offset: AtomicI64::new(0),
            watched: AtomicBool::new(false),
        }
    }

    /// The instant of the store's clock, as far as this instance knows it.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().offset_by(self.offset.load(Ordering::Relaxed))
    }

    /// Measures how far the store's clock is ahead. Within the time the question took, the two count as the same.
    pub(super) async fn measure_offset(&self) -> Result<(), StoreError> {
        let before = self.clock.now();
        let theirs = self.store.ping().await?;
        let after = self.clock.now();
        let signed = |at: Timestamp| i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let offset = if theirs < before {
            signed(theirs) - signed(before)
        } else {
            (signed(theirs) - signed(after)).max(0)
        };
        self.offset.store(offset, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn event(&self, event: SessionEvent) {
        self.sink.record(&event);
    }

    pub(crate) fn session_ref(&self, id: &StoredId) -> SessionRef {
        self.vault.session_ref(id)
    }

    /// How long an entry of the revocation feed can matter: to the freshest cookie, with grace, leeway and a margin.
    pub(crate) fn window(&self) -> Duration {
        self.timeouts.fresh + self.timeouts.grace + MARGIN
    }

    /// Whether a session whose cookie opened is revoked, or its claims are outdated. No store call, no shared lock.
    pub(crate) fn standing(&self, snapshot: &Snapshot) -> Standing {
        let fixed = snapshot.fixed();
        let standing = self.revocations.standing(snapshot.stored_id(), fixed.claims_version);
        if standing != Standing::Revoked
            && self.revocations.knows_subjects()
            && let Some(subject) = snapshot.subject()
            && self.revocations.is_subject_revoked(&self.vault.subject_key(subject), fixed.epoch)
        {
            return Standing::Revoked;
        }
        standing
    }

    /// Takes a revocation into this instance's own set at once; the others hear of it through the feed.
    fn revoked_here(&self, revocation: Revocation) {
        self.revocations.insert(revocation, self.now() + self.window());
    }

    /// Creates a session. One store call.
    pub(crate) async fn begin(&self, beginning: Beginning) -> Result<Issued, RegistryError> {
        let now = self.now();
        let id = SessionId(random::bytes().inspect_err(|_| self.event(SessionEvent::NoRandomness))?);
        let stored_id = self.vault.stored_id(&digest::session_digest(&id));
        let (key, sealed) = self.vault.seal_private(&stored_id, &beginning.private)?;
        let keys = self.vault.data_keys(&id, stored_id);
        let sealed_field = |(name, json): &(String, Vec<u8>)| keys.seal(name, json);
        let fields = beginning.fields.iter().map(sealed_field).collect::<Result<Vec<_>, _>>()?;
        let remembered = beginning.remembered;
        let continues = beginning.continues;
        let authenticated_at = continues.and_then(|times| times.authenticated_at).unwrap_or(now);
        let absolute = authenticated_at + self.timeouts.absolute_of(remembered);
        let ends_at = continues.and_then(|times| times.ends_at).unwrap_or(absolute).min(absolute);
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
            subject: beginning.private.subject.as_deref().map(|subject| self.vault.subject_key(subject)),
            epoch: 0,
            claims_version: 0,
            upgrades: 0,
            remembered,
            key,
            sealed,
            mac: [0; 16],
        };
        let replaces = beginning.replaces;
        let created =
            self.store.create(NewSession { id: stored_id, row, fields, replaces, keeper: &keeper }).await;
        let row = created.map_err(|error| match error {
            CreateError::ReplacedGone => RegistryError::Gone,
            // 256 random bits are not taken: the store gave an answer that cannot be.
            CreateError::Taken => RegistryError::Store(StoreError::new("a new session id was taken")),
            CreateError::Store(error) => {
                self.event(SessionEvent::StoreUnavailable(StoreVerb::Create));
                RegistryError::Store(error)
            }
        })?;
        if let Some(Replacement::End(old) | Replacement::Move(old)) = replaces {
            self.revoked_here(Revocation::Session(old));
        }
        let token = Some(row.rotation.issued);
        Ok(self.issue(&id, stored_id, &row, &beginning.private, now, self.timeouts.fresh, token)?)
    }

    /// Presents a verified token to the store and makes of its answer what is to be sent. One store call.
    pub(crate) async fn renew(
        &self,
        token: &VerifiedRenewal,
        relation: ContextRelation,
        shown: ContextDigest,
        upgrade: bool,
    ) -> Renewal {
        let stored_id = self.vault.stored_id(&digest::session_digest(token.id()));
        let session = self.session_ref(&stored_id);
        let edit = RowEdit::Renewal {
            moved_to: relation.moves().then_some(shown),
            changed: matches!(relation, ContextRelation::Changed(_)),
            idle: self.timeouts.idle,
        };
        let keeper = self.vault.keeper(edit);
        let request = RotateRequest {
            id: stored_id,
            generation: token.generation(),
            same_client: relation.is_tolerated(),
            upgrade,
            grace: self.timeouts.grace,
            idle: (self.timeouts.idle, self.timeouts.remembered_idle),
            keeper: &keeper,
        };
        match self.store.rotate(request).await {
            Err(_) => {
                self.event(SessionEvent::StoreUnavailable(StoreVerb::Rotate));
                Renewal::Unavailable
            }
            Ok(RotateAnswer::Gone) => self.refused(session, Reason::Expired),
            Ok(RotateAnswer::Tampered) => {
                self.event(SessionEvent::RecordTampered(session));
                Renewal::Refused(Reason::Expired)
            }
            Ok(RotateAnswer::Superseded { late }) => {
                if late {
                    self.event(SessionEvent::SupersededTokenUsed(session));
                    return Renewal::Refused(Reason::Superseded);
                }
                self.refused(session, Reason::Superseded)
            }
            Ok(RotateAnswer::Upgrade(None)) => {
                self.event(SessionEvent::UpgradeRefused(session));
                Renewal::Refused(Reason::Expired)
            }
            Ok(RotateAnswer::Upgrade(Some(row))) => {
                let now = self.now();
                match self.open_and_issue(token.id(), stored_id, &row, now, self.timeouts.fresh, None) {
                    Ok(issued) => Renewal::Upgraded(issued.admitted),
                    Err(renewal) => renewal,
                }
            }
            Ok(RotateAnswer::Judged { outcome, row, now }) => {
                self.judged(token, stored_id, outcome, &row, now)
            }
        }
    }

    fn judged(
        &self,
        token: &VerifiedRenewal,
        stored_id: StoredId,
        outcome: RotationOutcome,
        row: &Row,
        now: Timestamp,
    ) -> Renewal {
        let session = self.session_ref(&stored_id);
        let fresh = self.timeouts.fresh;
        // A loser's cookie ends when the winner's does: the grace cannot be stretched (attack A06).
        let left = (row.rotation.rotated_at + fresh).since(now);
        let (span, generation, event) = match outcome {
            RotationOutcome::Won(next) => (fresh, Some(next), Some(SessionEvent::Renewed(session))),
            RotationOutcome::Again(next) => {
                (fresh, Some(next), Some(SessionEvent::RenewalAnswerLost(session)))
            }
            RotationOutcome::RolledBack(next) => {
                (fresh, Some(next), Some(SessionEvent::StoreRolledBack(session)))
            }
            RotationOutcome::Young | RotationOutcome::Echo => (left, None, None),
            RotationOutcome::EchoRefused => {
                self.event(SessionEvent::RenewalFromOtherClient(session));
                return Renewal::Refused(Reason::Echo);
            }
            RotationOutcome::Reuse => {
                self.revoked_here(Revocation::Session(stored_id));
                self.event(SessionEvent::TokenReuse(session));
                return Renewal::Refused(Reason::Reuse);
            }
        };
        if let Some(event) = event {
            self.event(event);
        }
        match self.open_and_issue(token.id(), stored_id, row, now, span, generation) {
            Ok(issued) => Renewal::Issued(issued),
            Err(renewal) => renewal,
        }
    }

    fn open_and_issue(
        &self,
        id: &SessionId,
        stored_id: StoredId,
        row: &Row,
        now: Timestamp,
        span: Duration,
        generation: Option<u64>,
    ) -> Result<Issued, Renewal> {
        let Some(private) = self.vault.open_private(&stored_id, row) else {
            self.event(SessionEvent::RecordTampered(self.session_ref(&stored_id)));
            return Err(Renewal::Refused(Reason::Expired));
        };
        self.issue(id, stored_id, row, &private, now, span, generation).map_err(|RandomError| {
            self.event(SessionEvent::NoRandomness);
            Renewal::Unavailable
        })
    }

    fn refused(&self, session: SessionRef, reason: Reason) -> Renewal {
        self.event(SessionEvent::Refused(session, reason));
        Renewal::Refused(reason)
    }

    /// The cookies for a session as its row says: fresh for `span`, and a token where there is a new generation.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different fact of one session, and two callers have them apart"
    )]
    fn issue(
        &self,
        id: &SessionId,
        stored_id: StoredId,
        row: &Row,
        private: &Private,
        now: Timestamp,
        span: Duration,
        generation: Option<u64>,
    ) -> Result<Issued, RandomError> {
        let fixed = Fixed {
            strength: if private.dormant { Strength::Remembered } else { Strength::Context },
            remembered: row.remembered,
            context_changed: private.context_changed,
            epoch: row.epoch,
            claims_version: row.claims_version,
            authenticated_at: row.authenticated_at,
            minted_at: now,
            fresh_until: (now + span).min(row.deadline),
            ends_at: row.ends_at,
            context: private.context,
        };
        let (subject, methods, claims) =
            (private.subject.as_deref(), private.methods.as_str(), private.claims.as_str());
        let bytes = SnapshotParts { id, stored_id, fixed, subject, methods, claims }.encode();
        let cookie = self.cookie.seal(&bytes)?;
        let token = match generation {
            Some(generation) => Some(self.tokens.mint(&TokenParts {
                id,
                generation,
                issued_at: now,
                expires_at: row.deadline,
                context: &private.context,
            })?),
            None => None,
        };
        // What was encoded here parses here.
        let snapshot = Snapshot::parse(bytes).ok_or(RandomError)?;
        Ok(Issued { admitted: Admitted::issued(snapshot), cookie, token })
    }

    /// The row and data of a session; `None` if it is over or not what was written. One store call.
    pub(crate) async fn load(
        &self,
        stored_id: &StoredId,
    ) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        use super::row::RowKeeper as _;
        let loaded = self.store.load(stored_id).await.inspect_err(|_| {
            self.event(SessionEvent::StoreUnavailable(StoreVerb::Load));
        })?;
        Ok(loaded.filter(|(row, _)| {
            let holds = self.vault.keeper(RowEdit::None).verify(stored_id, row);
            if !holds {
                self.event(SessionEvent::RecordTampered(self.session_ref(stored_id)));
            }
            holds
        }))
    }

    /// Writes what changed of a session. `None` if it is over. One store call.
    pub(crate) async fn commit(
        &self,
        snapshot: &Snapshot,
        fields: Vec<(FieldTag, Option<Vec<u8>>)>,
        deadline: Option<Timestamp>,
    ) -> Result<Option<Row>, StoreError> {
        let keeper = self.vault.keeper(RowEdit::None);
        let request =
            CommitRequest { id: *snapshot.stored_id(), fields, deadline, edit: false, keeper: &keeper };
        let committed = self.store.commit(request).await;
        committed.inspect_err(|_| self.event(SessionEvent::StoreUnavailable(StoreVerb::Commit)))
    }

    /// Replaces the claims of a session; cookies with older ones must renew from now on, everywhere. One store call.
    pub(crate) async fn set_claims(
        &self,
        snapshot: &Snapshot,
        claims: &str,
    ) -> Result<Issued, RegistryError> {
        let stored_id = *snapshot.stored_id();
        let keeper = self.vault.keeper(RowEdit::Claims(claims));
        let request =
            CommitRequest { id: stored_id, fields: Vec::new(), deadline: None, edit: true, keeper: &keeper };
        let committed = self.store.commit(request).await.map_err(|error| {
            self.event(SessionEvent::StoreUnavailable(StoreVerb::Commit));
            RegistryError::Store(error)
        })?;
        let row = committed.ok_or(RegistryError::Gone)?;
        self.revoked_here(Revocation::Claims(stored_id, row.claims_version));
        self.event(SessionEvent::ClaimsChanged(self.session_ref(&stored_id)));
        self.reissue(snapshot, &row)
    }

    /// A session cookie for a session whose row has changed; fresh no longer than the one it had.
    pub(crate) fn reissue(&self, snapshot: &Snapshot, row: &Row) -> Result<Issued, RegistryError> {
        let now = self.now();
        let private = self.vault.open_private(snapshot.stored_id(), row).ok_or(RegistryError::Gone)?;
        let left = snapshot.fixed().fresh_until.since(now);
        Ok(self.issue(&snapshot.id(), *snapshot.stored_id(), row, &private, now, left, None)?)
    }

    /// Ends a session. Whether there was one. One store call.
    pub(crate) async fn end(&self, stored_id: &StoredId) -> Result<bool, StoreError> {
        let ended = self.store.revoke(stored_id).await.inspect_err(|_| {
            self.event(SessionEvent::StoreUnavailable(StoreVerb::Revoke));
        })?;
        self.revoked_here(Revocation::Session(*stored_id));
        Ok(ended)
    }

    /// Ends every session of a user. One store call.
    pub(crate) async fn end_all(&self, subject: &str, epoch: u64) -> Result<u64, StoreError> {
        let key = self.vault.subject_key(subject);
        let ended = self.store.revoke_subject(&key).await.inspect_err(|_| {
            self.event(SessionEvent::StoreUnavailable(StoreVerb::RevokeSubject));
        })?;
        // The epoch rose at least by one; the feed brings the exact number.
        self.revoked_here(Revocation::Subject(key, epoch.saturating_add(1)));
        self.event(SessionEvent::LoggedOutEverywhere(ended));
        Ok(ended)
    }

    /// The sessions of a user that are not over, oldest first, each with its private part. One store call.
    pub(crate) async fn list(&self, subject: &str) -> Result<Vec<(StoredId, Row, Private)>, StoreError> {
        use super::row::RowKeeper as _;
        let rows = self.store.list_subject(&self.vault.subject_key(subject)).await.inspect_err(|_| {
            self.event(SessionEvent::StoreUnavailable(StoreVerb::ListSubject));
        })?;
        let keeper = self.vault.keeper(RowEdit::None);
        let open = |(id, row): (StoredId, Row)| {
            let private = keeper.verify(&id, &row).then(|| self.vault.open_private(&id, &row)).flatten();
            // The index is only a pointer; whose session it is says the sealed part.
            let private = private.filter(|private| private.subject.as_deref() == Some(subject))?;
            Some((id, row, private))
        };
        Ok(rows.into_iter().filter_map(open).collect())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Clocks and deliveries are not exact; an entry outlives its cookies by this much.
const MARGIN: Duration = Duration::from_secs(65);
