//! The extractors' traits, for axum. Refusals have no body.

use axum_core::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

use super::{
    auth::Auth, client::ClientContext, device::RequireDevice, form_token::FormToken, identity::Identity,
    recent::RequireRecentAuth, recent_proof::RequireRecentProof, rejection::AuthRejection,
};
use crate::middleware::{AuthError, unavailable};

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

macro_rules! from_extensions {
    ($($extractor:ty),+ $(,)?) => {$(
        impl<S: Sync> FromRequestParts<S> for $extractor {
            type Rejection = AuthRejection;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AuthRejection> {
                Self::from_extensions(&parts.extensions)
            }
        }
    )+};
}

from_extensions!(RequireRecentAuth, RequireDevice, RequireRecentProof, Auth, FormToken, ClientContext);

impl IntoResponse for AuthRejection {
    fn into_response(self) -> Response {
        self.status().into_response()
    }
}

/// Its status. A 503 is the layer's own, with `Retry-After`.
impl IntoResponse for AuthError {
    fn into_response(self) -> Response {
        if matches!(self, Self::Unavailable | Self::Speculative) {
            return unavailable();
        }
        let status = self.status();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(target: "portcullis", error = %self, "the application gave a value that cannot be used");
        }
        status.into_response()
    }
}
