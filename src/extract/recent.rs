//! Routes that want a recent authentication.

use std::ops::Deref;

use http::Extensions;

use super::{identity::Identity, rejection::AuthRejection};

/// An [`Identity`] whose authentication is recent: for changing a password, an address, a payment (ASVS 7.5.1).
///
/// How recent is set by [`recent`](crate::middleware::SessionLayerBuilder::recent), 5 minutes by default. 401 where nobody is
/// signed in, 403 where the authentication is older, where a remembered session was silent for long, or where the session
/// showed up on another network or platform since (a copied cookie, or a traveller): ask for the
/// password again and call [`Auth::reauthenticated`](super::Auth::reauthenticated).
#[derive(Debug, Clone)]
pub struct RequireRecentAuth(Identity);

impl RequireRecentAuth {
    /// What the extractor does, for services that are not axum's.
    ///
    /// # Errors
    /// If nobody is signed in, the authentication is too old, or no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        let identity = Identity::from_extensions(extensions)?.ok_or(AuthRejection::NotSignedIn)?;
        if identity.is_recent() { Ok(Self(identity)) } else { Err(AuthRejection::NotRecent) }
    }
}

impl Deref for RequireRecentAuth {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0
    }
}
