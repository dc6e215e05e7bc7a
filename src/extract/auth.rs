//! Login, logout, and what else a user does to their sessions.

use std::{fmt, future::Future, pin::Pin};

use http::Extensions;
use serde::Serialize;
use serde_json::{Map, Value};

use super::rejection::{AuthRejection, attached};
use crate::{
    id::SessionRef,
    middleware::{Attached, AuthError, LoginSpec, SessionInfo},
};

/// Changes who is signed in. Every method is done when it returns: an error means that nothing is known to be saved.
///
/// ```
/// # use portcullis::{Auth, AuthError};
/// async fn sign_in(auth: Auth) -> Result<&'static str, AuthError> {
///     // First the application checks the password; portcullis never sees it.
///     auth.login("alice").claim("role", "editor")?.method("pwd").await?;
///     Ok("welcome")
/// }
/// ```
#[derive(Clone)]
pub struct Auth(Attached);

impl Auth {
    /// What the extractor does, for services that are not axum's.
    ///
    /// # Errors
    /// If no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        attached(extensions).cloned().map(Self)
    }

    /// Signs `subject` in, when awaited. The subject is whatever the application knows a user by, 1 to 255 bytes.
    ///
    /// The session gets a new id, and with it new cookies; whoever was signed in before in this browser is signed out,
    /// and what an anonymous session held is dropped unless [`Login::keep`] names it: nobody can be made to sign in to a session that
    /// somebody else holds (session fixation).
    pub fn login(&self, subject: impl Into<String>) -> Login {
        Login {
            attached: self.0.clone(),
            spec: LoginSpec { subject: subject.into(), ..LoginSpec::default() },
        }
    }

    /// Signs out: the session ends on the server, its cookies are removed. Also ends any other session that the request
    /// shows authentic credentials of. Nobody being signed in is no error.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`] if the store does not answer: then no cookie is removed, and the user is told the truth.
    pub async fn logout(&self) -> Result<(), AuthError> {
        self.0.logout().await
    }

    /// Signs the user out everywhere, here too.
    ///
    /// # Errors
    /// If nobody is signed in or the store does not answer.
    pub async fn logout_everywhere(&self) -> Result<(), AuthError> {
        self.0.logout_everywhere().await
    }

    /// Notes that the user has just proved again who they are. The session gets a new id, all timeouts begin anew.
    ///
    /// The old cookie is let in until it is stale, with its old authentication time, but writes nothing any more: what
    /// another tab writes with it in that time is dropped, with an event.
    ///
    /// A session that is bound to a device keeps its id, by which the browser knows it (with `Session::cycle_id` as well): a copy of
    /// its cookies is dead within minutes under any id. The old cookie stays as it is, and the new one is fresh no longer: an
    /// authentication is no proof of the device.
    ///
    /// # Errors
    /// If nobody is signed in or the store does not answer.
    pub async fn reauthenticated(&self) -> Result<(), AuthError> {
        self.0.reauthenticated(None).await
    }

    /// The same, with the methods that were used this time (RFC 8176: `pwd`, `otp`, `hwk` …).
    ///
    /// # Errors
    /// If nobody is signed in, the store does not answer, or a name is none.
    pub async fn reauthenticated_by<I>(&self, methods: I) -> Result<(), AuthError>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        self.0.reauthenticated(Some(&methods)).await
    }

    /// Replaces all claims of this session, not of the user's other ones. Cookies that carry the old ones must renew from
    /// now on, on every instance.
    ///
    /// # Errors
    /// If nobody is signed in, the store does not answer, or `claims` is no JSON object of at most 1024 bytes.
    pub async fn set_claims(&self, claims: impl Serialize) -> Result<(), AuthError> {
        let Ok(Value::Object(claims)) = serde_json::to_value(claims) else { return Err(AuthError::Claims) };
        self.0.set_claims(&claims).await
    }

    /// The user's sessions, oldest first.
    ///
    /// # Errors
    /// If nobody is signed in or the store does not answer.
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, AuthError> {
        self.0.sessions().await
    }

    /// Ends one of the user's sessions. For the present one it is a logout. `Path<SessionRef>` takes a handle from a route.
    ///
    /// # Errors
    /// [`AuthError::NoSuchSession`] alike for a handle that is unknown and one of somebody else's session.
    pub async fn revoke(&self, handle: SessionRef) -> Result<(), AuthError> {
        self.0.revoke(handle).await
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(..)")
    }
}

/// A login being put together; awaiting it makes it happen, in one store call (one more where [`keep`](Self::keep) must
/// read, and for each other session that the request names).
#[must_use = "a login happens when it is awaited"]
pub struct Login {
    attached: Attached,
    spec: LoginSpec,
}

impl Login {
    /// States a claim: a small fact the application wants at hand in every request, such as a role. It travels sealed in
    /// the session cookie, and is this session's alone: other sessions of the user keep theirs. What must change for a user
    /// at once and everywhere is asked of the application's own database, or ended with `logout_everywhere`.
    ///
    /// # Errors
    /// If the value cannot be written as JSON. That all claims fit into 1024 bytes is checked when the login is awaited.
    pub fn claim(mut self, name: impl Into<String>, value: impl Serialize) -> Result<Self, AuthError> {
        let value = serde_json::to_value(value).map_err(|_| AuthError::Claims)?;
        self.spec.claims.insert(name.into(), value);
        Ok(self)
    }

    /// States all claims of a JSON object.
    pub fn claims(mut self, claims: Map<String, Value>) -> Self {
        self.spec.claims.extend(claims);
        self
    }

    /// States a method by which the user was authenticated (RFC 8176: `pwd`, `otp`, `hwk` …).
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.spec.methods.push(method.into());
        self
    }

    /// Remembers the user: the second pair of timeouts holds. Ask them first.
    ///
    /// Cookies outlive the browser's own session also without it, up to the absolute timeout.
    pub const fn remember(mut self, remember: bool) -> Self {
        self.spec.remember = remember;
        self
    }

    /// Keeps a value of the session before the login, such as a basket. Everything else is dropped.
    pub fn keep(mut self, name: impl Into<String>) -> Self {
        self.spec.keep.push(name.into());
        self
    }
}

impl IntoFuture for Login {
    type Output = Result<(), AuthError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.attached.login(self.spec).await })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}
