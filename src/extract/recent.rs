//! Routes that want a recent authentication.

use std::ops::Deref;

use axum_core::extract::FromRequestParts;
use http::request::Parts;

use super::{
    identity::Identity,
    rejection::{AuthRejection, attached},
};

/// An [`Identity`] whose authentication is recent: for changing a password, an address, a payment (ASVS 7.5.1).
///
/// How recent is set by [`recent`](crate::middleware::SessionLayerBuilder::recent), 5 minutes by default. 401 where nobody is
/// signed in, 403 where the authentication is older, or where a remembered session was silent for long: ask for the
/// password again and call [`Auth::reauthenticated`](super::Auth::reauthenticated).
#[derive(Debug, Clone)]
pub struct RequireRecentAuth(Identity);

impl Deref for RequireRecentAuth {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for RequireRecentAuth {
    type Rejection = AuthRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AuthRejection> {
        let identity = Identity::of(attached(&parts.extensions)?).ok_or(AuthRejection::NotSignedIn)?;
        if identity.is_recent() { Ok(Self(identity)) } else { Err(AuthRejection::NotRecent) }
    }
}
