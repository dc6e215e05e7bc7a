//! The extractors' traits, for axum. Refusals have no body.

use axum_core::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};

use super::{auth::Auth, identity::Identity, recent::RequireRecentAuth, rejection::AuthRejection};
use crate::middleware::{AuthError, RETRY_AFTER};

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = AuthRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AuthRejection> {
        Self::from_extensions(&parts.extensions)?.ok_or(AuthRejection::NotSignedIn)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Identity {
    type Rejection = AuthRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, AuthRejection> {
        Self::from_extensions(&parts.extensions)
    }
}

impl<S: Sync> FromRequestParts<S> for RequireRecentAuth {
    type Rejection = AuthRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AuthRejection> {
        Self::from_extensions(&parts.extensions)
    }
}

impl<S: Sync> FromRequestParts<S> for Auth {
    type Rejection = AuthRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AuthRejection> {
        Self::from_extensions(&parts.extensions)
    }
}

impl IntoResponse for AuthRejection {
    fn into_response(self) -> Response {
        self.status().into_response()
    }
}

/// Its status, and `Retry-After` with a 503.
impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        let status = self.status();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(target: "portcullis", error = %self, "the application gave a value that cannot be used");
        }
        let mut response = status.into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER.as_secs()));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }
}
