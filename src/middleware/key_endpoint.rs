//! The endpoint of the script that keeps a session's key where the browser keeps none.
//!
//! ```text
//! POST /portcullis/key    Portcullis-Key: ask | lost    [Secure-Session-Response: proof]
//!
//! {"state":"none"}                              nobody, or nothing to be kept
//! {"state":"device"}                            the browser has bound the session by itself
//! {"state":"unbound","challenge":c,"wait":ms}   sign c to bind a key, after a while in which the browser may do so by itself
//! {"state":"stale","challenge":c}               sign c to renew
//! {"state":"bound","challenge":c,"lasts":ms}    renewed, or fresh for so long; sign c the next time
//! ```
//!
//! It renews by the token *and* the key, by the rotation table: a copied cookie lacks the key, and a copied profile, which holds
//! both, is found out as a copied token is.

use std::{sync::Arc, time::Duration};

use http::{Response, StatusCode, header::SET_COOKIE};
use serde_json::{Value, json as object};

use super::{
    call::{Answer, Call, json},
    device::{PORTCULLIS_KEY, REGISTRATION_LIFETIME},
    fields,
    request::opened,
    response::unavailable,
};
use crate::{
    cookie::{Found, find},
    crypto::RandomError,
    dbsc::{KeyKind, Proof, ProofError, Use, VerifiedProof},
    events::SessionEvent,
    id::StoredId,
    session::{Admission, AuthenticToken, ContextDigest, ContextRelation, Fixed, Reason, Snapshot, Standing},
    store::{Issued, Proven, Renewal, RenewalKind},
};

impl Call<'_> {
    /// Tells a script what its key is to sign, and takes what it has signed.
    pub(super) async fn key(&self) -> Answer {
        let registry = &self.site.registry;
        let [session, renewal] = find(self.asking.cookies(), self.site.cookies.names());
        if session == Found::Several || renewal == Found::Several {
            return Ok(none());
        }
        let token = match renewal {
            Found::One(value) => registry.tokens.authenticate(value, self.asking.now).ok(),
            Found::Nothing | Found::Several => None,
        };
        let opened = match session {
            Found::One(value) => opened(registry, value).ok(),
            Found::Nothing | Found::Several => None,
        };
        let held = opened.as_ref().map(|opened| {
            let snapshot = opened.snapshot();
            (*snapshot.stored_id(), snapshot.fixed().bound_to())
        });
        if let Some((session, Some(KeyKind::Software))) = held
            && fields::only(self.headers, &PORTCULLIS_KEY) == Some(b"lost")
        {
            return Ok(self.end(&session, SessionEvent::LoggedOut(registry.session_ref(&session))).await);
        }
        if let Some(opened) = opened {
            let relation = self.relation_to(&opened.snapshot().fixed().context);
            match registry.admission(opened, self.asking.now, relation) {
                Admission::Admitted(admitted) | Admission::Outdated(admitted) => {
                    return self.fresh(&admitted.shared(), token.as_ref()).await;
                }
                Admission::Rejected(session, reason) => return Ok(self.rejected(&session, reason)),
                Admission::Stale(_) => {}
            }
        }
        let Some(token) = token else { return Ok(none()) };
        let session = registry.vault.stored_id(token.digest());
        let kind = held.and_then(|(_, kind)| kind);
        let is_other = held.is_some_and(|(of_cookie, _)| of_cookie != session);
        if is_other || registry.revocations.standing(&session, u64::MAX) == Standing::Revoked {
            return Ok(none());
        }
        match self.script_s_proof(&session) {
            Some(proof) => self.renew(&session, &proof, &token).await,
            None if kind == Some(KeyKind::Software) || token.bound_to().is_some() => self.stale(&session, 0),
            None => Ok(none()),
        }
    }

    /// The session cookie is fresh.
    async fn fresh(&self, snapshot: &Arc<Snapshot>, token: Option<&AuthenticToken<'_>>) -> Answer {
        let (registry, fixed, session) = (&self.site.registry, snapshot.fixed(), snapshot.stored_id());
        if !snapshot.has_subject() {
            return Ok(none());
        }
        let proof = match fixed.bound_to() {
            Some(KeyKind::Device) => return Ok(state(&object!({ "state": "device" }))),
            Some(KeyKind::Software) | None => self.script_s_proof(session),
        };
        if let Some(proof) = &proof
            && let Some(token) = token
            && registry.vault.stored_id(token.digest()) == *session
            && self.number(proof, session, Use::KeyRenewal).is_some()
        {
            return self.renew(session, proof, token).await;
        }
        if fixed.bound_to().is_some() {
            return self.bound(session, fixed, 0);
        }
        // What lies in a log or a stolen jar must not be worth a key of one's own later (attack A72).
        if self.asking.now >= fixed.authenticated_at + REGISTRATION_LIFETIME {
            return Ok(none());
        }
        match proof.and_then(|proof| Some((self.number(&proof, session, Use::KeyRegistration)?, proof))) {
            Some((number, proof)) => match proof.introduces(number) {
                Ok(verified) => self.bind(snapshot, &verified).await,
                Err(error) => {
                    self.tell_refused(session, error);
                    self.unbound(session, fixed)
                }
            },
            None => self.unbound(session, fixed),
        }
    }

    async fn bind(&self, snapshot: &Snapshot, verified: &VerifiedProof) -> Answer {
        let (registry, session) = (&self.site.registry, snapshot.stored_id());
        match registry.bind(snapshot, verified, KeyKind::Software).await {
            Proven::Issued(issued) => self.renewed(session, &issued, verified.challenge()),
            // The answer that has bound it was lost.
            Proven::Used { last } => self.stale(session, last),
            Proven::Bound(KeyKind::Device) => Ok(state(&object!({ "state": "device" }))),
            Proven::Bound(KeyKind::Software) => {
                // Two have the cookies of one login, and one of them is not its user. Whoever it is signs in again.
                registry.event(SessionEvent::DeviceAlreadyBound(registry.session_ref(session)));
                Ok(self.end(session, SessionEvent::Revoked(registry.session_ref(session))).await)
            }
            Proven::Ended => Ok(none()),
            Proven::Unavailable => Ok(unavailable()),
        }
    }

    async fn renew(&self, session: &StoredId, proof: &Proof<'_>, token: &AuthenticToken<'_>) -> Answer {
        let registry = &self.site.registry;
        let Some(number) = self.number(proof, session, Use::KeyRenewal) else {
            return self.stale(session, 0);
        };
        // Before its signature: a key that the token does not name costs nothing.
        let thumbprint = proof.key().and_then(|key| key.thumbprint());
        if token.bound_to().is_some_and(|bound_to| thumbprint.as_deref() != Some(bound_to)) {
            self.tell_refused(session, ProofError::Signature);
            return self.stale(session, 0);
        }
        let verified = match proof.introduces(number) {
            Ok(verified) => verified,
            Err(error) => {
                self.tell_refused(session, error);
                return self.stale(session, 0);
            }
        };
        let Ok(token) = registry.tokens.verify(token) else { return Ok(none()) };
        let relation = self.relation_to(token.context());
        if let ContextRelation::Rejected(signal) = relation {
            return Ok(self.rejected(session, Reason::Context(signal)));
        }
        let client = self.asking.context();
        let moved_to = relation.moves().then(|| client.digest(registry.vault.context_key()));
        let kind = RenewalKind::Activity;
        match registry.renew(&token, relation, moved_to, kind, Some(&verified)).await {
            Renewal::Issued(issued) => self.renewed(session, &issued, number),
            Renewal::ProofUsed { last } => self.stale(session, last),
            Renewal::Bound(KeyKind::Device) => {
                let mut response = state(&object!({ "state": "device" }));
                let line = self.site.cookies.session_removal();
                response.headers_mut().extend(line.map(|line| (SET_COOKIE, line)));
                Ok(response)
            }
            Renewal::Bound(KeyKind::Software) => {
                self.tell_refused(session, ProofError::Signature);
                self.stale(session, 0)
            }
            Renewal::Refused { .. } | Renewal::Upgraded(_) => Ok(none()),
            Renewal::Unavailable => Ok(unavailable()),
        }
    }

    fn relation_to(&self, bound: &ContextDigest) -> ContextRelation {
        let key = self.site.registry.vault.context_key();
        self.asking.context().relation_to(bound, key, &self.site.binding)
    }

    /// The proof that came, taken apart. One that is none is told of, and counts as none.
    fn script_s_proof(&self, session: &StoredId) -> Option<Proof<'_>> {
        let proof = self.proof(KeyKind::Software, &self.devices.key_url);
        proof.map_err(|error| self.tell_refused(session, error)).ok().flatten()
    }

    /// The number of the challenge that it answers, if that is a good one.
    fn number(&self, proof: &Proof<'_>, session: &StoredId, used_for: Use) -> Option<u64> {
        let lifetime = match used_for {
            Use::KeyRegistration => REGISTRATION_LIFETIME,
            _ => self.site.registry.timeouts.fresh_of(true) * 2,
        };
        let now = self.asking.now;
        self.devices.challenges.open(proof.challenge(), session, used_for, now, lifetime)
    }

    fn rejected(&self, session: &StoredId, reason: Reason) -> Response<String> {
        let registry = &self.site.registry;
        registry.event(SessionEvent::Refused(registry.session_ref(session), reason));
        none()
    }

    /// Ends a session, here and in the browser.
    async fn end(&self, session: &StoredId, event: SessionEvent) -> Response<String> {
        match self.site.registry.end(session).await {
            Ok(was_live) => {
                if was_live {
                    self.site.registry.event(event);
                }
                let mut response = none();
                let lines = self.site.cookies.removals().map(|line| (SET_COOKIE, line));
                lines.for_each(|(name, line)| {
                    response.headers_mut().append(name, line);
                });
                response
            }
            Err(_) => unavailable(),
        }
    }

    fn renewed(&self, session: &StoredId, issued: &Issued, last: u64) -> Answer {
        let fixed = issued.admitted.snapshot().fixed();
        let mut response = match fixed.bound_to() {
            Some(_) => self.bound(session, fixed, last)?,
            // The store has lost that it was bound.
            None => none(),
        };
        for line in self.site.set_lines(&issued.cookies) {
            response.headers_mut().append(SET_COOKIE, line);
        }
        Ok(response)
    }

    fn bound(&self, session: &StoredId, fixed: &Fixed, last: u64) -> Answer {
        let challenge = self.challenge_for(session, Use::KeyRenewal, last)?;
        let fresh_until = fixed.fresh_until.min(fixed.minted_at + self.site.registry.timeouts.fresh);
        let lasts = millis(fresh_until.since(self.site.registry.now()));
        Ok(state(&object!({ "state": "bound", "challenge": challenge, "lasts": lasts })))
    }

    fn stale(&self, session: &StoredId, last: u64) -> Answer {
        let challenge = self.challenge_for(session, Use::KeyRenewal, last)?;
        Ok(state(&object!({ "state": "stale", "challenge": challenge })))
    }

    fn unbound(&self, session: &StoredId, fixed: &Fixed) -> Answer {
        let challenge = self.challenge_for(session, Use::KeyRegistration, 0)?;
        let wait = millis((fixed.authenticated_at + BROWSERS_TURN).since(self.asking.now));
        Ok(state(&object!({ "state": "unbound", "challenge": challenge, "wait": wait })))
    }

    fn challenge_for(&self, session: &StoredId, used_for: Use, last: u64) -> Result<String, RandomError> {
        self.devices.challenges.mint(session, used_for, self.site.registry.now(), last)
    }
}

fn none() -> Response<String> {
    state(&object!({ "state": "none" }))
}

fn state(state: &Value) -> Response<String> {
    json(StatusCode::OK, state.to_string())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long a browser that binds sessions by itself is given for it after the login.
const BROWSERS_TURN: Duration = Duration::from_secs(3);
