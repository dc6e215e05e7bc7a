//! What a site says of itself, for everybody.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header};
use tower_service::Service;

use super::{jwks::key_set, layer::SessionLayer};
use crate::cookie::Origin;

/// A tower service that answers every request with one document. Route its path below `/.well-known/` to it.
#[derive(Debug, Clone)]
pub struct WellKnown {
    json: Arc<str>,
    kind: &'static str,
}

impl SessionLayer {
    /// For `/.well-known/jwks.json`: the public keys with which anybody can verify that a renewal token comes from here (RFC 7517).
    /// It proves where a token comes from, never who a user is.
    #[must_use]
    pub fn jwks(&self) -> WellKnown {
        WellKnown { json: key_set(&self.site().keys).into(), kind: "application/jwk-set+json" }
    }

    /// For `/.well-known/device-bound-sessions` of the registrable domain, with
    /// [`include_site`](super::SessionLayerBuilder::include_site): it lets this origin, and the `others`, bind sessions of the whole
    /// site. Browsers ask for it without cookies when they bind. Where another program serves that host, it answers what this does:
    ///
    /// ```json
    /// {"registering_origins":["https://app.example.com"]}
    /// ```
    #[must_use]
    pub fn device_well_known(&self, others: impl IntoIterator<Item = Origin>) -> WellKnown {
        let others: Vec<Origin> = others.into_iter().collect();
        // No origin holds what JSON would escape.
        let origins: Vec<String> =
            [&self.site().origin].into_iter().chain(&others).map(|origin| format!("\"{origin}\"")).collect();
        let json = format!(r#"{{"registering_origins":[{}]}}"#, origins.join(","));
        WellKnown { json: json.into(), kind: "application/json" }
    }
}

impl<B> Service<Request<B>> for WellKnown {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let mut response = Response::new(self.json.as_ref().to_owned());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        ready(Ok(response))
    }
}
