//! Why an extractor refused.

use std::fmt;

use http::{Extensions, StatusCode};

use crate::middleware::Attached;

/// Why an extractor refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthRejection {
    /// Nobody is signed in: 401.
    NotSignedIn,
    /// Somebody is, but not lately enough: 403.
    NotRecent,
    /// Somebody is, by a session that is bound to no device: 403.
    NoDevice,
    /// Somebody is, by a session whose device has not proven itself lately enough: 307, and the layer makes it.
    Unproven,
    /// A form came without its token, or with that of another session: 403.
    FormToken,
    /// The operating system gave no random bytes: 503.
    NoRandomness,
    /// The layer does not run in front of this route: 500.
    NoLayer,
}

impl AuthRejection {
    /// The status of the response that refuses.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NotRecent | Self::NoDevice | Self::FormToken => StatusCode::FORBIDDEN,
            Self::Unproven => StatusCode::TEMPORARY_REDIRECT,
            Self::NoRandomness => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoLayer => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl fmt::Display for AuthRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSignedIn => "nobody is signed in",
            Self::NotRecent => "the last authentication is too long ago",
            Self::NoDevice => "the session is bound to no device",
            Self::Unproven => "the last proof of the session's device is too long ago",
            Self::FormToken => "the form's token is missing or not one of this session",
            Self::NoRandomness => "the operating system gave no random bytes",
            Self::NoLayer => "no SessionLayer runs in front of this route",
        })
    }
}

impl std::error::Error for AuthRejection {}

/// What the layer has left for this request.
pub(super) fn attached(extensions: &Extensions) -> Result<&Attached, AuthRejection> {
    extensions.get().ok_or_else(|| {
        tracing::error!(target: "portcullis", "no SessionLayer runs in front of this route: add it to the router");
        AuthRejection::NoLayer
    })
}
