//! One request to an endpoint, and the form of its answers.

use std::sync::Arc;

use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{self, CACHE_CONTROL, CONTENT_TYPE},
};

use super::{
    device::{Devices, SECURE_SESSION_RESPONSE},
    site::Site,
};
use crate::{
    crypto::RandomError,
    dbsc::{KeyKind, Proof, ProofError, token},
    events::SessionEvent,
    id::StoredId,
    store::Asking,
};

/// One request to an endpoint.
pub(super) struct Call<'a> {
    pub(super) site: &'a Arc<Site>,
    pub(super) devices: &'a Devices,
    pub(super) asking: &'a Asking,
    pub(super) headers: &'a HeaderMap,
}

pub(super) type Answer = Result<Response<String>, RandomError>;

impl Call<'_> {
    /// The proof by a key of this kind that came to `url`, taken apart; none if there is none.
    pub(super) fn proof(&self, kind: KeyKind, url: &str) -> Result<Option<Proof<'_>>, ProofError> {
        let mut sent = self.headers.get_all(&SECURE_SESSION_RESPONSE).iter();
        match (sent.next(), sent.next()) {
            (None, _) => Ok(None),
            (Some(field), None) => {
                let proof = Proof::read(token(field.as_bytes()).ok_or(ProofError::Malformed)?, kind)?;
                proof.is_for(url)?;
                Ok(Some(proof))
            }
            (Some(_), Some(_)) => Err(ProofError::Malformed),
        }
    }

    pub(super) fn tell_refused(&self, session: &StoredId, error: ProofError) {
        let registry = &self.site.registry;
        registry.event(SessionEvent::DeviceProofRefused(registry.session_ref(session), error));
    }
}

pub(super) fn status(status: StatusCode) -> Response<String> {
    json(status, String::new())
}

pub(super) fn json(status: StatusCode, body: String) -> Response<String> {
    let kind = (!body.is_empty()).then_some("application/json");
    let mut response = response(body, kind);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Cookie"));
    response
}

/// A response that no other site's page can look into.
pub(super) fn response(body: String, kind: Option<&'static str>) -> Response<String> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    // Whether somebody is signed in must not be told by the time that another site's page measures.
    headers.insert(&RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

static RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
