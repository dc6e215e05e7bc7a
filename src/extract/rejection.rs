//! Why an extractor refused, as a response without a body.

use std::fmt;

use axum_core::response::{IntoResponse, Response};
use http::{Extensions, HeaderValue, StatusCode, header};

use crate::middleware::{Attached, AuthError, RETRY_AFTER};

/// Why an extractor refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthRejection {
    /// Nobody is signed in: 401.
    NotSignedIn,
    /// Somebody is, but not lately enough: 403.
    NotRecent,
    /// The layer does not run in front of this route: 500.
    NoLayer,
}

impl AuthRejection {
    const fn status(self) -> StatusCode {
        match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NotRecent => StatusCode::FORBIDDEN,
            Self::NoLayer => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl fmt::Display for AuthRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSignedIn => "nobody is signed in",
            Self::NotRecent => "the last authentication is too long ago",
            Self::NoLayer => "no SessionLayer runs in front of this route",
        })
    }
}

impl std::error::Error for AuthRejection {}

impl IntoResponse for AuthRejection {
    fn into_response(self) -> Response {
        self.status().into_response()
    }
}

/// 401, 404, 500 for a value the application should not have given, and 503 with `Retry-After`; never a body.
impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NoSuchSession => StatusCode::NOT_FOUND,
            Self::Subject | Self::Claims | Self::Methods => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut response = status.into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER.as_secs()));
        }
        response
    }
}

/// What the layer has left for this request.
pub(super) fn attached(extensions: &Extensions) -> Result<&Attached, AuthRejection> {
    extensions.get().ok_or_else(|| {
        tracing::error!(target: "portcullis", "no SessionLayer runs in front of this route: add it to the router");
        AuthRejection::NoLayer
    })
}
