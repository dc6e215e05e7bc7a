//! Routes that want a device.

use std::ops::Deref;

use http::Extensions;

use super::{identity::Identity, rejection::AuthRejection};
use crate::session::Strength;

/// An [`Identity`] whose session is bound to a key that the browser cannot give away: for what a copied cookie must never do.
///
/// 401 where nobody is signed in, 403 where the session is bound to no device: the browser cannot, or has not done it yet,
/// which takes it a moment after the login. See [`DeviceBinding`](crate::middleware::DeviceBinding). The last proof of the key
/// is at most `fresh + grace` old.
#[derive(Debug, Clone)]
pub struct RequireDevice(Identity);

impl RequireDevice {
    /// What the extractor does, for services that are not axum's.
    ///
    /// # Errors
    /// If nobody is signed in, the session is bound to no device, or no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        let identity = Identity::from_extensions(extensions)?.ok_or(AuthRejection::NotSignedIn)?;
        if identity.strength() >= Strength::Device {
            Ok(Self(identity))
        } else {
            Err(AuthRejection::NoDevice)
        }
    }
}

impl Deref for RequireDevice {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0
    }
}
