//! What a renewal token buys.

use std::time::Duration;

use super::{Registry, begin::Issued};
use crate::{
    clock::Timestamp,
    crypto::random::RandomError,
    dbsc::{KeyKind, VerifiedProof},
    events::{SessionEvent, StoreVerb},
    id::{SessionId, StoredId},
    session::{Admitted, ContextDigest, ContextRelation, Reason, RotationOutcome, Standing, VerifiedRenewal},
    store::{
        contract::{Presented, RotateAnswer, RotateRequest},
        revocation::Revocation,
        row::Row,
        vault::RowEdit,
    },
};

/// What a renewal led to.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// Let in, with new cookies.
    Issued(Issued),
    /// Let in for a socket, with none.
    Upgraded(Admitted),
    /// Not let in; the event says why.
    Refused {
        /// Whether the next request may be let in with what its jar holds then, so that nothing may write over it.
        for_now: bool,
    },
    /// Not let in: only the session's key renews it, which is kept so.
    Bound(KeyKind),
    /// The challenge that the key has answered was answered before.
    ProofUsed {
        /// The number of the last one that it answered.
        last: u64,
    },
    /// Not known: the store does not answer.
    Unavailable,
}

/// What a token is presented for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewalKind {
    /// A request of the user.
    Activity,
    /// A request that a page makes by itself, at a route that the site has named.
    Polling,
    /// A socket's handshake.
    Upgrade,
}

impl Registry {
    /// Presents a verified token to the store, and what the session's key has signed if it has, and makes of its answer what is
    /// to be sent. One store call.
    pub(crate) async fn renew(
        &self,
        token: &VerifiedRenewal,
        relation: ContextRelation,
        moved_to: Option<ContextDigest>,
        kind: RenewalKind,
        proof: Option<&VerifiedProof>,
    ) -> Renewal {
        let generation = token.generation();
        let presented = match proof.map(|proof| (proof.key().to_bytes(), proof.challenge())) {
            None => Presented::Token(generation),
            Some((Some(key), challenge)) => Presented::SignedToken { generation, key, challenge },
            Some((None, _)) => return Renewal::Unavailable,
        };
        let stored_id = self.vault.stored_id_of(token.id());
        let session = self.session_ref(&stored_id);
        let edit = RowEdit::Renewal {
            moved_to,
            changed: matches!(relation, ContextRelation::Changed(_)),
            idle: self.timeouts.idle,
        };
        let keeper = self.vault.keeper(edit);
        let request = RotateRequest {
            id: stored_id,
            presented,
            same_client: relation.is_tolerated(),
            upgrade: kind == RenewalKind::Upgrade,
            active: kind != RenewalKind::Polling,
            timeouts: self.timeouts,
            keeper: &keeper,
        };
        match self.store.rotate(request).await {
            Err(error) => {
                self.store_failed(StoreVerb::Rotate, &error);
                Renewal::Unavailable
            }
            Ok(RotateAnswer::Gone) => {
                // So that whoever sends it again and again costs no signature and no store call for a while.
                self.revoked_here(Revocation::Session(stored_id));
                self.refused(SessionEvent::Refused(session, Reason::Expired))
            }
            Ok(RotateAnswer::Tampered) => self.refused(SessionEvent::RecordTampered(session)),
            Ok(RotateAnswer::Superseded { late: true }) => {
                self.refused(SessionEvent::SupersededTokenUsed(session))
            }
            Ok(RotateAnswer::Superseded { late: false }) => {
                self.refused_for_now(SessionEvent::Refused(session, Reason::Superseded))
            }
            Ok(RotateAnswer::Bound(kind)) => Renewal::Bound(kind),
            Ok(RotateAnswer::ProofUsed { last }) => Renewal::ProofUsed { last },
            // A token is no authentication.
            Ok(RotateAnswer::Taken { .. }) => Renewal::Unavailable,
            Ok(RotateAnswer::Upgrade(None)) => self.refused_for_now(SessionEvent::UpgradeRefused(session)),
            Ok(RotateAnswer::Upgrade(Some(row))) => {
                let now = self.now();
                if self.lacks_device(&row, now) {
                    return self.refused(SessionEvent::Refused(session, Reason::Unbound));
                }
                // Fresh for no time at all: only this socket gets in with it.
                match self.open_and_issue(token.id(), stored_id, &row, now, Duration::ZERO, None) {
                    Renewal::Issued(issued) => Renewal::Upgraded(issued.admitted),
                    other => other,
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
        if outcome != RotationOutcome::Reuse && self.lacks_device(row, now) {
            return self.refused(SessionEvent::Refused(session, Reason::Unbound));
        }
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
                return self.refused_for_now(SessionEvent::RenewalFromOtherClient(session));
            }
            RotationOutcome::Reuse => {
                self.revoked_here(Revocation::Session(stored_id));
                return self.refused(SessionEvent::TokenReuse(session));
            }
        };
        if let Some(event) = event {
            self.event(event);
        }
        self.open_and_issue(token.id(), stored_id, row, now, span, generation)
    }

    /// Whether a session that is bound to no device should be by now. That is asked where a token is presented: where a device's
    /// key renews, none is.
    fn lacks_device(&self, row: &Row, now: Timestamp) -> bool {
        row.subject.is_some() && self.device_after.is_some_and(|after| now >= row.authenticated_at + after)
    }

    fn open_and_issue(
        &self,
        id: &SessionId,
        stored_id: StoredId,
        row: &Row,
        now: Timestamp,
        span: Duration,
        generation: Option<u64>,
    ) -> Renewal {
        let Some(private) = self.vault.open_private(&stored_id, row) else {
            return self.refused(SessionEvent::RecordTampered(self.session_ref(&stored_id)));
        };
        match self.issue(id, stored_id, row, &private, now, span, None, generation) {
            // A token names no user, so a sign-out everywhere that the store has not taken yet is seen only here.
            Ok(issued) if self.standing(issued.admitted.snapshot()) == Standing::Revoked => {
                self.refused(SessionEvent::Refused(self.session_ref(&stored_id), Reason::Revoked))
            }
            Ok(issued) => Renewal::Issued(issued),
            Err(RandomError) => {
                self.event(SessionEvent::NoRandomness);
                Renewal::Unavailable
            }
        }
    }

    fn refused(&self, event: SessionEvent) -> Renewal {
        self.event(event);
        Renewal::Refused { for_now: false }
    }

    fn refused_for_now(&self, event: SessionEvent) -> Renewal {
        self.event(event);
        Renewal::Refused { for_now: true }
    }
}
