//! The endpoints that a browser binds its key at, and refreshes its session.
//!
//! What a status means to a browser decides which one is given: 400 and 401 end its session, 403 with a challenge makes it
//! sign, 503 makes it come again later and leaves the session alone (measured on Chromium 156).

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header::SET_COOKIE};

use super::{
    call::{Answer, Call, json, status},
    device::{REFRESH_PATH, REGISTRATION_LIFETIME, SEC_SECURE_SESSION_ID, SECURE_SESSION_CHALLENGE},
    fields,
    request::opened,
    response::unavailable,
};
use crate::{
    cookie::{Found, find},
    dbsc::{
        BoundSession, Instructions, KeyKind, MAX_IDENTIFIER, ProofError, Use, challenge_field, ended, token,
    },
    events::SessionEvent,
    id::StoredId,
    session::{Admission, Snapshot, Standing},
    store::{Issued, Proven},
};

impl Call<'_> {
    /// Binds a key to the session whose cookie came with it. Once: whoever comes second is refused, and it is an alarm.
    pub(super) async fn register(&self) -> Answer {
        let registry = &self.site.registry;
        let Some(snapshot) = self.signed_in() else { return Ok(status(StatusCode::UNAUTHORIZED)) };
        let session = *snapshot.stored_id();
        let proof = match self.proof(KeyKind::Device, &self.devices.register_url) {
            Ok(Some(proof)) => proof,
            Ok(None) => return Ok(self.refused(&session, ProofError::Malformed)),
            Err(error) => return Ok(self.refused(&session, error)),
        };
        let (now, lifetime) = (self.asking.now, REGISTRATION_LIFETIME);
        let challenges = &self.devices.challenges;
        let Some(number) = challenges.open(proof.challenge(), &session, Use::Registration, now, lifetime)
        else {
            return Ok(self.refused(&session, ProofError::Challenge));
        };
        let verified = match proof.introduces(number) {
            Ok(verified) => verified,
            Err(error) => return Ok(self.refused(&session, error)),
        };
        match registry.bind(&snapshot, &verified, KeyKind::Device).await {
            Proven::Issued(issued) => {
                let bound = BoundSession { id: snapshot.id(), key: *verified.key() };
                self.goes_on(&self.devices.identifiers.seal(&bound)?, &session, &issued, number)
            }
            Proven::Bound(_) => {
                registry.event(SessionEvent::DeviceAlreadyBound(registry.session_ref(&session)));
                Ok(status(StatusCode::FORBIDDEN))
            }
            Proven::Used { .. } | Proven::Ended => Ok(status(StatusCode::UNAUTHORIZED)),
            Proven::Unavailable => Ok(unavailable()),
        }
    }

    /// Prolongs a session, which is known by its identifier alone: some browsers send no cookie with it.
    pub(super) async fn refresh(&self) -> Answer {
        let registry = &self.site.registry;
        let named = fields::only(self.headers, &SEC_SECURE_SESSION_ID).and_then(token);
        let Some(identifier) =
            named.filter(|text| text.len() <= MAX_IDENTIFIER).and_then(|text| std::str::from_utf8(text).ok())
        else {
            return Ok(status(StatusCode::BAD_REQUEST));
        };
        let Some(BoundSession { id, key }) = self.devices.identifiers.open(identifier.as_bytes()) else {
            return Ok(json(StatusCode::OK, ended(identifier)));
        };
        let session = registry.vault.stored_id_of(&id);
        if registry.revocations.standing(&session, u64::MAX) == Standing::Revoked {
            return Ok(json(StatusCode::OK, ended(identifier)));
        }
        let proof = match self.proof(KeyKind::Device, &self.devices.refresh_url) {
            Ok(Some(proof)) => proof,
            Ok(None) => return self.challenge(identifier, &session, 0),
            Err(error) => return Ok(self.refused(&session, error)),
        };
        let (now, lifetime) = (self.asking.now, registry.timeouts.fresh_of(true) * 2);
        let opened = self.devices.challenges.open(proof.challenge(), &session, Use::Refresh, now, lifetime);
        let Some(number) = opened else { return self.challenge(identifier, &session, 0) };
        let verified = match proof.verify(&key, number) {
            Ok(verified) => verified,
            Err(error) => return Ok(self.refused(&session, error)),
        };
        let shown = self.asking.context().digest(registry.vault.context_key());
        match registry.refresh(&id, &verified, shown).await {
            Proven::Issued(_) if self.shows_another(&session) => {
                // Somebody else has signed in in this browser since, and would be turned into the user of before (attack A79).
                // Only now: a proof that was used before must end nothing.
                if let Ok(was_live) = registry.end(&session).await
                    && was_live
                {
                    registry.event(SessionEvent::Revoked(registry.session_ref(&session)));
                }
                Ok(json(StatusCode::OK, ended(identifier)))
            }
            Proven::Issued(issued) => self.goes_on(identifier, &session, &issued, number),
            Proven::Used { last } => self.challenge(identifier, &session, last),
            Proven::Ended | Proven::Bound(_) => Ok(json(StatusCode::OK, ended(identifier))),
            Proven::Unavailable => Ok(unavailable()),
        }
    }

    /// The session of the cookie, if it is fresh and counts.
    fn signed_in(&self) -> Option<Arc<Snapshot>> {
        let registry = &self.site.registry;
        let [session, _] = find(self.asking.cookies(), self.site.cookies.names());
        let Found::One(value) = session else { return None };
        let opened = opened(registry, value).ok()?;
        let snapshot = opened.snapshot();
        let (key, bound) = (registry.vault.context_key(), &snapshot.fixed().context);
        let relation = self.asking.context().relation_to(bound, key, &self.site.binding);
        match registry.admission(opened, self.asking.now, relation) {
            Admission::Admitted(admitted) => {
                Some(admitted.shared()).filter(|snapshot| snapshot.has_subject())
            }
            Admission::Outdated(_) | Admission::Stale(_) | Admission::Rejected(..) => None,
        }
    }

    /// Whether credentials of another session, of somebody who is signed in, came with it, as far as that is known here.
    fn shows_another(&self, session: &StoredId) -> bool {
        let (registry, now) = (&self.site.registry, self.asking.now);
        let [cookie, renewal] = find(self.asking.cookies(), self.site.cookies.names());
        let of_cookie = match cookie {
            Found::One(value) => opened(registry, value).ok().and_then(|opened| {
                let snapshot = opened.snapshot();
                (snapshot.has_subject() && now < snapshot.fixed().ends_at).then(|| *snapshot.stored_id())
            }),
            Found::Nothing | Found::Several => None,
        };
        let of_token = match renewal {
            Found::One(value) => {
                let token = registry.tokens.authenticate(value, now).ok();
                token.map(|token| registry.vault.stored_id(token.digest()))
            }
            Found::Nothing | Found::Several => None,
        };
        let is_live = |named: &StoredId| {
            registry.revocations.standing(named, u64::MAX) != Standing::Revoked
                && !registry.revocations.is_superseded(named)
        };
        [of_cookie, of_token].into_iter().flatten().any(|named| named != *session && is_live(&named))
    }

    /// The session goes on: its cookie, what the browser is to do, and what it is to sign the next time.
    fn goes_on(&self, identifier: &str, session: &StoredId, issued: &Issued, last: u64) -> Answer {
        let (site, devices) = (self.site, self.devices);
        let instructions = Instructions {
            identifier,
            refresh_path: REFRESH_PATH,
            scope_origin: &devices.scope_origin,
            include_site: devices.includes_site,
            cookie: site.cookies.session(),
            initiators: &devices.initiators,
        };
        let mut response = json(StatusCode::OK, instructions.to_json());
        for line in site.set_lines(&issued.cookies) {
            response.headers_mut().append(SET_COOKIE, line);
        }
        self.with_challenge(response, identifier, session, last)
    }

    /// Asks for a proof. Costs one seal and no state, whoever asks.
    fn challenge(&self, identifier: &str, session: &StoredId, last: u64) -> Answer {
        self.with_challenge(status(StatusCode::FORBIDDEN), identifier, session, last)
    }

    /// Adds what is to be signed the next time: a challenge newer than `last`.
    fn with_challenge(
        &self,
        mut response: Response<String>,
        identifier: &str,
        session: &StoredId,
        last: u64,
    ) -> Answer {
        let challenge =
            self.devices.challenges.mint(session, Use::Refresh, self.site.registry.now(), last)?;
        if let Ok(mut field) = HeaderValue::from_str(&challenge_field(&challenge, identifier)) {
            field.set_sensitive(true);
            response.headers_mut().insert(&SECURE_SESSION_CHALLENGE, field);
        }
        Ok(response)
    }

    /// The session stays as it is: who knows an identifier alone must not be able to end it.
    fn refused(&self, session: &StoredId, error: ProofError) -> Response<String> {
        self.tell_refused(session, error);
        status(match error {
            // A registration only: at a refresh it makes the browser sign another one.
            ProofError::Challenge => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        })
    }
}
