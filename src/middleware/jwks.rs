//! The public keys of the renewal tokens, as a JWK set (RFC 7517).

use std::{
    convert::Infallible,
    fmt::Write as _,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header};
use tower_service::Service;

use crate::crypto::KeyRing;

/// A tower service that answers every request with the JWK set. Opt in by routing `/.well-known/jwks.json` to it.
///
/// Made by [`SessionLayer::jwks`](super::SessionLayer::jwks).
#[derive(Debug, Clone)]
pub struct Jwks(Arc<str>);

impl Jwks {
    pub(super) fn new(ring: &KeyRing) -> Self {
        let mut keys = String::new();
        for key in ring.all_opening() {
            let Some((x, y)) = key.token_signature.verifying_key().coordinates() else { continue };
            let comma = if keys.is_empty() { "" } else { "," };
            let written = write!(
                keys,
                r#"{comma}{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","kid":"{}","alg":"ES256","use":"sig"}}"#,
                key.id
            );
            debug_assert!(written.is_ok(), "a String takes what is written");
        }
        Self(format!(r#"{{"keys":[{keys}]}}"#).into())
    }
}

impl<B> Service<Request<B>> for Jwks {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let mut response = Response::new(self.0.as_ref().to_owned());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        ready(Ok(response))
    }
}
