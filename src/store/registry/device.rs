//! What a key buys: to be bound to a session, and then, of a device, alone to prolong it.

use super::{
    Registry,
    begin::{Issued, RegistryError},
};
use crate::{
    clock::Timestamp,
    dbsc::{KeyKind, VerifiedProof},
    events::{SessionEvent, StoreVerb},
    id::{SessionId, SessionRef, StoredId},
    session::{ContextDigest, Fixed, Reason, Snapshot, Standing},
    store::{
        contract::{Presented, RotateAnswer, RotateRequest, StoreError},
        revocation::Revocation,
        row::Row,
        vault::RowEdit,
    },
};

/// What a proof led to.
#[derive(Debug)]
pub(crate) enum Proven {
    /// It was taken.
    Issued(Issued),
    /// The challenge was answered before: the browser sends a proof again when it has not seen the answer.
    Used {
        /// The number of the last challenge that it answered.
        last: u64,
    },
    /// The session is over, or has a newer id.
    Ended,
    /// The session is bound to another key already, which is kept so.
    Bound(KeyKind),
    /// Not known: the store does not answer.
    Unavailable,
}

impl Registry {
    /// Binds a session to the key that has just proven itself. Its id stays, so that what other requests write to it meanwhile
    /// is not lost; its tokens renew nothing from now on. One store call.
    pub(crate) async fn bind(&self, snapshot: &Snapshot, proof: &VerifiedProof, kind: KeyKind) -> Proven {
        let Some(key) = proof.key().to_bytes() else { return Proven::Unavailable };
        let presented = Presented::Device { kind, key, challenge: proof.challenge() };
        let event = match kind {
            KeyKind::Device => SessionEvent::DeviceBound,
            KeyKind::Software => SessionEvent::SoftwareKeyBound,
        };
        self.prove(&snapshot.id(), presented, RowEdit::None, None, event).await
    }

    /// Prolongs a session by a proof of its key, and follows the client that shows it. One store call.
    pub(crate) async fn refresh(
        &self,
        id: &SessionId,
        proof: &VerifiedProof,
        shown: ContextDigest,
    ) -> Proven {
        let Some(key) = proof.key().to_bytes() else { return Proven::Unavailable };
        let presented = Presented::Proof { key, challenge: proof.challenge() };
        let edit = RowEdit::Renewal { moved_to: Some(shown), changed: false, idle: self.timeouts.idle };
        self.prove(id, presented, edit, None, SessionEvent::Renewed).await
    }

    /// Notes a new authentication of the user of a bound session. Its id and its key stay. One store call.
    pub(crate) async fn authenticate_again(
        &self,
        snapshot: &Snapshot,
        methods: Option<&str>,
        context: ContextDigest,
        client: &str,
    ) -> Result<Issued, RegistryError> {
        let edit = RowEdit::Authentication { methods, context, client };
        let id = snapshot.id();
        let event = SessionEvent::Reauthenticated;
        // The device has proven nothing: the cookie is fresh no longer than the one that was shown.
        match self.prove(&id, Presented::Authentication, edit, Some(snapshot.fixed()), event).await {
            Proven::Issued(issued) => Ok(issued),
            Proven::Ended | Proven::Bound(_) | Proven::Used { .. } => Err(RegistryError::Gone),
            Proven::Unavailable => Err(RegistryError::Store),
        }
    }

    async fn prove(
        &self,
        id: &SessionId,
        presented: Presented,
        edit: RowEdit<'_>,
        shown: Option<&Fixed>,
        event: fn(SessionRef) -> SessionEvent,
    ) -> Proven {
        let stored_id = self.vault.stored_id_of(id);
        let session = self.session_ref(&stored_id);
        let over = |reason| {
            self.event(SessionEvent::Refused(session, reason));
            Proven::Ended
        };
        match self.present(stored_id, presented, edit).await {
            Err(_) => Proven::Unavailable,
            Ok(RotateAnswer::Taken { row, now }) => {
                match self.issue_bound(id, stored_id, &row, now, shown, &presented) {
                    Ok(issued) if self.standing(issued.admitted.snapshot()) == Standing::Revoked => {
                        over(Reason::Revoked)
                    }
                    Ok(issued) => {
                        // The first proof of a key comes at its binding, and not here; the store has lost that one.
                        if matches!(presented, Presented::Proof { .. })
                            && row.device.as_ref().is_some_and(|device| !device.confirmed)
                        {
                            self.event(SessionEvent::StoreRolledBack(session));
                        }
                        self.event(event(session));
                        Proven::Issued(issued)
                    }
                    Err(RegistryError::Random) => {
                        self.event(SessionEvent::NoRandomness);
                        Proven::Unavailable
                    }
                    Err(_) => {
                        self.event(SessionEvent::RecordTampered(session));
                        Proven::Ended
                    }
                }
            }
            Ok(RotateAnswer::ProofUsed { last }) => Proven::Used { last },
            Ok(RotateAnswer::Bound(kind)) => Proven::Bound(kind),
            Ok(RotateAnswer::Superseded { .. }) => over(Reason::Superseded),
            Ok(RotateAnswer::Tampered) => {
                self.event(SessionEvent::RecordTampered(session));
                Proven::Ended
            }
            Ok(RotateAnswer::Gone | RotateAnswer::Judged { .. } | RotateAnswer::Upgrade(_)) => {
                // So that whoever asks again and again costs no signature and no store call for a while.
                self.revoked_here(Revocation::Session(stored_id));
                over(Reason::Expired)
            }
        }
    }

    async fn present(
        &self,
        id: StoredId,
        presented: Presented,
        edit: RowEdit<'_>,
    ) -> Result<RotateAnswer, StoreError> {
        let keeper = self.vault.keeper(edit);
        let request = RotateRequest {
            id,
            presented,
            same_client: true,
            upgrade: false,
            active: true,
            timeouts: self.timeouts,
            keeper: &keeper,
        };
        let answer = self.store.rotate(request).await;
        answer.inspect_err(|error| self.store_failed(StoreVerb::Rotate, error))
    }

    /// The cookies of a bound session. A token, which only says whose device is to be asked, goes out when the key is bound and
    /// when the session's end moves.
    fn issue_bound(
        &self,
        id: &SessionId,
        stored_id: StoredId,
        row: &Row,
        now: Timestamp,
        shown: Option<&Fixed>,
        presented: &Presented,
    ) -> Result<Issued, RegistryError> {
        let private = self.vault.open_private(&stored_id, row).ok_or(RegistryError::Gone)?;
        let token = (!matches!(presented, Presented::Proof { .. })).then_some(row.rotation.issued);
        let is_device = matches!(row.device.as_deref(), Some(device) if device.kind == KeyKind::Device);
        let fresh = self.timeouts.fresh_of(is_device);
        let span = shown.map_or(fresh, |shown| fresh.min(shown.fresh_until.since(now)));
        Ok(self.issue(id, stored_id, row, &private, now, span, shown, token)?)
    }
}
