//! Reading, changing and ending sessions that exist.

use std::sync::Arc;

use super::{
    Registry,
    begin::{Issued, RegistryError},
};
use crate::{
    clock::Timestamp,
    events::{SessionEvent, StoreVerb},
    id::StoredId,
    session::{Private, Snapshot},
    store::{
        backlog::Owed,
        contract::{CommitRequest, StoreError},
        revocation::Revocation,
        row::{FieldTag, Row, RowKeeper as _},
        vault::RowEdit,
    },
};

impl Registry {
    /// The row and data of a session; `None` if it is over or not what was written. One store call.
    pub(crate) async fn load(
        &self,
        stored_id: &StoredId,
    ) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        let loaded = self
            .store
            .load(stored_id)
            .await
            .inspect_err(|error| self.store_failed(StoreVerb::Load, error))?;
        if let Some((row, _)) = &loaded
            && !self.vault.keeper(RowEdit::None).verify(stored_id, row)
        {
            self.event(SessionEvent::RecordTampered(self.session_ref(stored_id)));
            return Ok(None);
        }
        Ok(loaded)
    }

    /// Writes what changed of a session. `None` if it is over. One store call.
    pub(crate) async fn commit(
        &self,
        snapshot: &Snapshot,
        fields: Vec<(FieldTag, Option<Vec<u8>>)>,
        deadline: Option<Timestamp>,
    ) -> Result<Option<Row>, StoreError> {
        self.write(*snapshot.stored_id(), fields, deadline, None).await
    }

    /// Replaces the claims of a session; cookies with older ones must renew from now on, everywhere. One store call.
    pub(crate) async fn set_claims(
        &self,
        snapshot: &Snapshot,
        claims: &str,
    ) -> Result<Issued, RegistryError> {
        let stored_id = *snapshot.stored_id();
        let committed = self.write(stored_id, Vec::new(), None, Some(claims)).await;
        let row = committed.map_err(|_| RegistryError::Store)?.ok_or(RegistryError::Gone)?;
        self.event(SessionEvent::ClaimsChanged(self.session_ref(&stored_id)));
        self.reissue(snapshot, &row)
    }

    /// One commit of one session. Where it outdates cookies that are fresh, this instance knows at once.
    async fn write(
        &self,
        id: StoredId,
        fields: Vec<(FieldTag, Option<Vec<u8>>)>,
        deadline: Option<Timestamp>,
        claims: Option<&str>,
    ) -> Result<Option<Row>, StoreError> {
        let keeper = self.vault.keeper(claims.map_or(RowEdit::None, RowEdit::Claims));
        // A sooner end must be known to cookies that are fresh beyond it, so they must renew, as after new claims.
        let edit = claims.is_some() || deadline.is_some();
        let request = CommitRequest { id, fields, deadline, edit, keeper: &keeper };
        let committed = self.store.commit(request).await;
        let row = committed.inspect_err(|error| self.store_failed(StoreVerb::Commit, error))?;
        if let (true, Some(row)) = (edit, &row) {
            self.revoked_here(Revocation::Claims(id, row.claims_version));
            // Cookies of the id before this one say the old thing too; those of older ones the feed names.
            if let Some(predecessor) = row.predecessor {
                self.revoked_here(Revocation::Claims(predecessor, u64::MAX));
            }
        }
        Ok(row)
    }

    /// A session cookie for a session whose row has changed; fresh no longer than the one it had.
    pub(crate) fn reissue(&self, snapshot: &Snapshot, row: &Row) -> Result<Issued, RegistryError> {
        let now = self.now();
        let mut private = self.vault.open_private(snapshot.stored_id(), row).ok_or(RegistryError::Gone)?;
        let fixed = snapshot.fixed();
        let left = fixed.fresh_until.since(now);
        // Whoever shows an older cookie does not get what the user has proven since, nor what a device has.
        let mut row = row.clone();
        if row.authenticated_at > fixed.authenticated_at {
            row.authenticated_at = fixed.authenticated_at;
            private.methods = snapshot.methods().collect::<Vec<_>>().join(" ");
        }
        private.context_changed |= fixed.context_changed;
        let shown = Some(fixed);
        Ok(self.issue(&snapshot.id(), *snapshot.stored_id(), &row, &private, now, left, shown, None)?)
    }

    /// Ends a session. Whether there was one. One store call.
    ///
    /// # Errors
    /// If the store does not answer. The session is ended on this instance all the same, and in the store when it is back.
    pub(crate) async fn end(&self, stored_id: &StoredId) -> Result<bool, StoreError> {
        let ended = self.store.revoke(stored_id).await;
        self.revoked_here(Revocation::Session(*stored_id));
        match &ended {
            Ok(_) => self.heard.note(Revocation::Session(*stored_id), self.now()),
            Err(error) => {
                self.store_failed(StoreVerb::Revoke, error);
                self.owe(Owed::Session(*stored_id));
            }
        }
        ended
    }

    /// Notes what the store has not taken.
    fn owe(&self, owed: Owed) {
        if let Err(error) = self.backlog.add(owed) {
            tracing::error!(target: "portcullis", %error, "a revocation cannot be written to the journal; it is kept in memory");
        }
        self.event(SessionEvent::RevocationPostponed);
    }

    /// The newer ids of a session that got one a moment ago. A logout that was under way with the old id means the session,
    /// whatever it is called by now. No store call unless it has one.
    pub(crate) async fn newer_ids(&self, stored_id: &StoredId) -> Result<Vec<StoredId>, StoreError> {
        let mut newer = Vec::new();
        let mut next = Some(*stored_id);
        while let Some(id) = next.filter(|id| self.revocations.is_superseded(id) && newer.len() < MOST_NEWER)
        {
            let row = self.load(&id).await?.map(|(row, _)| row);
            let lately =
                |row: &Row| row.superseded_at.is_some_and(|at| self.now() < at + self.timeouts.grace);
            next = row.filter(lately).and_then(|row| row.successor);
            newer.extend(next);
        }
        Ok(newer)
    }

    /// Ends every session of a user who need not be there. Then the feed tells this instance the new epoch: three store calls.
    pub(crate) async fn end_all_of(self: &Arc<Self>, subject: &str) -> Result<u64, StoreError> {
        let ended = self.end_all(subject, None).await?;
        self.ready().await?;
        Ok(ended)
    }

    /// Ends every session of a user, whose present epoch is `epoch` if that is known. One store call.
    pub(crate) async fn end_all(&self, subject: &str, epoch: Option<u64>) -> Result<u64, StoreError> {
        let key = self.vault.subject_key(subject);
        let ended = self.store.revoke_subject(&key).await.inspect_err(|error| {
            self.store_failed(StoreVerb::RevokeSubject, error);
            let below = epoch.map(|epoch| epoch.saturating_add(1));
            self.revocations.owe_subject(&key, below, self.now() + self.window());
            self.owe(Owed::Subject(key, below));
        })?;
        // The epoch rose at least by one; the feed brings the exact number.
        self.revoked_here(Revocation::Subject(key, epoch.unwrap_or(0).saturating_add(1)));
        self.event(SessionEvent::LoggedOutEverywhere(ended));
        Ok(ended)
    }

    /// Ends every session whose user was authenticated before `moment`; one that is still to come counts as now, or nobody
    /// could sign in until then. One store call.
    pub(crate) async fn end_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        let moment = moment.min(self.now());
        let ended = self.store.revoke_before(moment).await;
        self.revoked_here(Revocation::Before(moment));
        match &ended {
            Ok(()) => {
                self.heard.note(Revocation::Before(moment), self.now());
                self.event(SessionEvent::EverybodyLoggedOut);
            }
            Err(error) => {
                self.store_failed(StoreVerb::RevokeBefore, error);
                self.owe(Owed::Before(moment));
            }
        }
        ended
    }

    /// The sessions of a user that are not over, oldest first, each with its private part. One store call.
    pub(crate) async fn list(&self, subject: &str) -> Result<Vec<(StoredId, Row, Private)>, StoreError> {
        let rows = self
            .store
            .list_subject(&self.vault.subject_key(subject))
            .await
            .inspect_err(|error| self.store_failed(StoreVerb::ListSubject, error))?;
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

/// More new authentications than this within one grace are nobody's way of signing in.
const MOST_NEWER: usize = 8;
