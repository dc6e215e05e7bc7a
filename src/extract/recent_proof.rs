//! Routes that want a device that has proven itself a moment ago.

use std::ops::Deref;

use http::Extensions;

use super::{
    identity::Identity,
    rejection::{AuthRejection, attached},
};
use crate::session::Strength;

/// An [`Identity`] whose session's device has proven itself a moment ago: for a payment that not even a cookie stolen within this
/// minute may make.
///
/// How recent is set by [`recent_proof`](crate::middleware::SessionLayerBuilder::recent_proof), 2 minutes by default. Where the
/// proof is older, the refusal is a 307 to the same address that takes the session cookie away: the browser signs, gets another
/// one, and sends the request again, method and body as they were; its user notices nothing. Who holds a copied cookie only loses
/// it. A request whose body is a stream cannot be sent again, and a socket follows no redirect.
///
/// 401 where nobody is signed in, 403 where the session is bound to no device. A browser that may not sign now, because it has
/// done so too often, is told to come again (503): put it on few routes.
#[derive(Debug, Clone)]
pub struct RequireRecentProof(Identity);

impl RequireRecentProof {
    /// What the extractor does, for services that are not axum's. They answer [`AuthRejection::Unproven`] with its status, and
    /// the layer adds what makes the browser prove itself.
    ///
    /// # Errors
    /// If nobody is signed in, the session is bound to no device, its last proof is too old, or no layer runs in front of the
    /// service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        let identity = Identity::from_extensions(extensions)?.ok_or(AuthRejection::NotSignedIn)?;
        let attached = attached(extensions)?;
        match attached.admitted() {
            Some(snapshot) if snapshot.fixed().strength >= Strength::Device => {
                if attached.has_recent_proof(snapshot) {
                    Ok(Self(identity))
                } else {
                    Err(AuthRejection::Unproven)
                }
            }
            _ => Err(AuthRejection::NoDevice),
        }
    }
}

impl Deref for RequireRecentProof {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0
    }
}
