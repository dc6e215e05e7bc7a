//! What a user does to their sessions: sign in, prove themselves again, sign out, look at the list.

use std::sync::Arc;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::{attached::Attached, auth_error::AuthError};
use crate::{
    cookie::all_of,
    events::SessionEvent,
    id::{SessionRef, StoredId},
    session::{Private, Snapshot, Standing, Strength},
    store::{Intent, RegistryError, Row, SessionData, date, strength_of},
};

/// A login as it is being put together.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginSpec {
    pub(crate) subject: String,
    pub(crate) claims: Map<String, Value>,
    pub(crate) methods: Vec<String>,
    pub(crate) remember: bool,
    pub(crate) keep: Vec<String>,
}

/// One of a user's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name: may be shown and put into a URL; opens nothing.
    pub handle: SessionRef,
    /// Whether it is the one that asks.
    pub current: bool,
    /// When the user signed in.
    pub created: OffsetDateTime,
    /// When it was last renewed, which happens every few minutes of use.
    pub renewed: OffsetDateTime,
    /// The client, as a person would name it: `Firefox on Linux`.
    pub client: String,
    /// How strongly it is tied to its client.
    pub strength: Strength,
    /// The key it is bound to, if it is; `strength` says who keeps it. With a [`DeviceBinding`](super::DeviceBinding), one without
    /// is of a browser that cannot bind, or of one whose offer was lost on the way.
    pub device: Option<DeviceInfo>,
}

/// The key that a session is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// When it proved itself last.
    pub proven: OffsetDateTime,
    /// Whether it has renewed the session at least once. One that has not for some minutes of use may have lost its key.
    pub confirmed: bool,
}

impl Attached {
    /// Signs `spec.subject` in: a new session with a new id; the old one ends; data is dropped but for what is kept.
    pub(crate) async fn login(&self, spec: LoginSpec) -> Result<(), AuthError> {
        self.may_change()?;
        let claims = check_claims(&spec.claims)?;
        let methods = check_methods(&spec.methods)?;
        if spec.subject.is_empty() || spec.subject.len() > MAX_TEXT {
            return Err(AuthError::Subject);
        }
        let mut kept = Vec::with_capacity(spec.keep.len());
        for name in &spec.keep {
            let value = self.session.get_value(name).await.map_err(|_| AuthError::Unavailable)?;
            kept.extend(value.map(|value| (name, value)));
        }
        let mut named = self.named_and_newer().await?;
        // The session that was let in ends with the step that creates the new one.
        let current = self.data.current();
        named.retain(|id| current.as_ref().is_none_or(|current| current.stored_id() != id));
        // Whoever holds the cookies of another session that the request names must not find it open beside the new one.
        // Before the login, so that one which is reported as failed has not happened.
        for id in named {
            self.end(&id, SessionEvent::Revoked).await?;
        }
        let private = Private { subject: Some(spec.subject), methods, claims, ..self.data.anonymous() };
        let unfinished = Unfinished(&self.data);
        self.data.intend(Intent::Login { private, remembered: spec.remember });
        let saved = async {
            if self.session.id().is_some() {
                self.session.flush().await?;
            } else {
                self.session.clear().await;
            }
            for (name, value) in kept {
                self.session.insert_value(name, value).await?;
            }
            self.session.save().await
        };
        saved.await.map_err(|_| AuthError::Unavailable)?;
        unfinished.finish();
        Ok(())
    }

    /// Notes a new authentication of the user who is signed in: a new id, and a new beginning of all timeouts.
    pub(crate) async fn reauthenticated(&self, methods: Option<&[String]>) -> Result<(), AuthError> {
        self.may_change()?;
        self.signed_in()?;
        let methods = methods.map(check_methods).transpose()?;
        let unfinished = Unfinished(&self.data);
        self.data.intend(Intent::Reauthentication { methods });
        let saved = async {
            self.session.cycle_id().await?;
            self.session.save().await
        };
        if saved.await.is_err() {
            let failed = self.data.store_failed();
            return Err(if failed { AuthError::Unavailable } else { AuthError::NotSignedIn });
        }
        unfinished.finish();
        Ok(())
    }

    /// Signs out: ends every session the request names, and removes the cookies.
    pub(crate) async fn logout(&self) -> Result<(), AuthError> {
        self.may_change()?;
        let current = self.data.current();
        for id in self.named_and_newer().await? {
            let is_current = current.as_ref().is_some_and(|current| *current.stored_id() == id);
            self.end(&id, if is_current { SessionEvent::LoggedOut } else { SessionEvent::Revoked }).await?;
        }
        self.forget().await
    }

    /// Signs the user out everywhere, this session included.
    pub(crate) async fn logout_everywhere(&self) -> Result<(), AuthError> {
        self.may_change()?;
        let current = self.signed_in()?;
        let subject = current.subject().unwrap_or_default();
        let ended = self.registry().end_all(subject, Some(current.fixed().epoch)).await;
        ended.map_err(|_| AuthError::Unavailable)?;
        for id in self.named_sessions() {
            self.registry().end(&id).await.map_err(|_| AuthError::Unavailable)?;
        }
        self.forget().await
    }

    /// Replaces the claims.
    pub(crate) async fn set_claims(&self, claims: &Map<String, Value>) -> Result<(), AuthError> {
        let current = self.signed_in()?;
        let claims = check_claims(claims)?;
        let issued = self.registry().set_claims(&current, &claims).await.map_err(|error| match error {
            RegistryError::Gone => AuthError::NotSignedIn,
            RegistryError::Changed | RegistryError::Store | RegistryError::Random => AuthError::Unavailable,
        })?;
        self.data.reissued(issued);
        Ok(())
    }

    /// The user's sessions, oldest first.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionInfo>, AuthError> {
        let current = self.signed_in()?;
        let subject = current.subject().unwrap_or_default();
        let listed = self.registry().list(subject).await.map_err(|_| AuthError::Unavailable)?;
        let info = |(id, row, private): (StoredId, Row, Private)| SessionInfo {
            handle: self.registry().session_ref(&id),
            current: id == *current.stored_id(),
            created: date(row.created_at),
            renewed: date(row.renewed_at),
            strength: strength_of(&row, &private),
            device: row
                .device
                .as_deref()
                .map(|device| DeviceInfo { proven: date(device.proven_at), confirmed: device.confirmed }),
            client: private.client,
        };
        Ok(listed.into_iter().map(info).collect())
    }

    /// Ends one of the user's sessions.
    pub(crate) async fn revoke(&self, handle: SessionRef) -> Result<(), AuthError> {
        self.may_change()?;
        let current = self.signed_in()?;
        if self.registry().session_ref(current.stored_id()) == handle {
            return self.logout().await;
        }
        let subject = current.subject().unwrap_or_default();
        let listed = self.registry().list(subject).await.map_err(|_| AuthError::Unavailable)?;
        let found = listed.into_iter().find(|(id, ..)| self.registry().session_ref(id) == handle);
        let (id, ..) = found.ok_or(AuthError::NoSuchSession)?;
        self.end(&id, SessionEvent::Revoked).await
    }

    /// A browser that asks on its own account changes nothing (attack A14), nor does what did not come to this site (A25).
    fn may_change(&self) -> Result<(), AuthError> {
        let asking = &self.data.asking;
        if let Some(misplaced) = asking.misplaced {
            if self.site.told.is_new(misplaced, asking.now) || !asking.out_of_place {
                self.registry().event(SessionEvent::Misplaced(misplaced));
            }
            return Err(AuthError::Misplaced);
        }
        if asking.speculative { Err(AuthError::Speculative) } else { Ok(()) }
    }

    fn signed_in(&self) -> Result<Arc<Snapshot>, AuthError> {
        self.data.mark_read();
        self.data.current().filter(|current| current.subject().is_some()).ok_or(AuthError::NotSignedIn)
    }

    async fn end(
        &self,
        id: &StoredId,
        event: impl FnOnce(SessionRef) -> SessionEvent,
    ) -> Result<(), AuthError> {
        if self.registry().end(id).await.map_err(|_| AuthError::Unavailable)? {
            self.registry().event(event(self.registry().session_ref(id)));
        }
        Ok(())
    }

    /// Empties this request's session, in memory only: in the store it has ended.
    async fn forget(&self) -> Result<(), AuthError> {
        self.data.leave();
        if self.session.id().is_some() {
            self.session.flush().await.map_err(|_| AuthError::Unavailable)?;
        } else {
            self.session.clear().await;
        }
        Ok(())
    }

    /// The sessions that the request names, and the newer ids that they have got a moment ago.
    async fn named_and_newer(&self) -> Result<Vec<StoredId>, AuthError> {
        let mut named = self.named_sessions();
        for id in named.clone() {
            named.extend(self.registry().newer_ids(&id).await.map_err(|_| AuthError::Unavailable)?);
        }
        Ok(named)
    }

    /// Every session that the request shows authentic credentials of, fresh or not, and the present one. Left out is what is
    /// known to be over: ending it again would cost a write each time that somebody sends an old cookie.
    fn named_sessions(&self) -> Vec<StoredId> {
        let site = &self.site;
        let now = self.data.asking.now;
        if self.data.asking.out_of_place {
            // Somebody else may have made the browser send them.
            return Vec::new();
        }
        let [session, renewal] = site.cookies.names();
        // Bounded after the seal and the MAC: junk under our names must not crowd out what it stands beside.
        let sealed = all_of(self.data.asking.cookies(), session)
            .filter_map(|value| Snapshot::parse(site.registry.cookie.open(value).ok()?))
            .take(MOST_NAMED)
            .filter(|snapshot| now < snapshot.fixed().ends_at)
            .map(|snapshot| *snapshot.stored_id());
        let tokens = all_of(self.data.asking.cookies(), renewal)
            .filter_map(|value| site.registry.tokens.authenticate(value, now).ok())
            .take(MOST_NAMED)
            .map(|token| (site.registry.vault.stored_id(token.digest()), token))
            .filter(|(id, _)| site.registry.revocations.standing(id, u64::MAX) != Standing::Revoked)
            .filter(|(_, token)| site.registry.tokens.verify(token).is_ok())
            .map(|(id, _)| id);
        let is_open = |id: &StoredId| site.registry.revocations.standing(id, u64::MAX) != Standing::Revoked;
        let current = self.data.current().map(|snapshot| *snapshot.stored_id());
        let mut named: Vec<StoredId> = sealed.chain(tokens).filter(is_open).chain(current).collect();
        named.sort_unstable();
        named.dedup();
        named
    }
}

/// A login or a new authentication under way. Dropped before it is finished, because it failed or because nobody waits for
/// it any more, it leaves nothing half-done behind.
struct Unfinished<'a>(&'a SessionData);

impl Unfinished<'_> {
    fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn check_claims(claims: &Map<String, Value>) -> Result<String, AuthError> {
    if claims.is_empty() {
        return Ok(String::new());
    }
    let json = serde_json::to_string(claims).map_err(|_| AuthError::Claims)?;
    if json.len() > MAX_CLAIMS { Err(AuthError::Claims) } else { Ok(json) }
}

fn check_methods(methods: &[String]) -> Result<String, AuthError> {
    let joined = methods.join(" ");
    let clean = methods.iter().all(|method| !method.is_empty() && !method.contains(' '));
    if clean && joined.len() <= MAX_TEXT { Ok(joined) } else { Err(AuthError::Methods) }
}

/// With all three at their longest the whole Set-Cookie line stays below 4096 bytes.
const MAX_CLAIMS: usize = 1024;
const MAX_TEXT: usize = 255;

/// Sessions that a request may name in each of its two cookies: one, and what a sibling domain tosses beside it.
const MOST_NAMED: usize = 4;
