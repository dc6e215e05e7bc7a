//! Form tokens for every request that could change something.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use axum_core::{
    body::Body,
    extract::{FromRequest as _, Request},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderName, Method, header};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    form_token::FORM_TOKEN,
    rejection::{AuthRejection, attached},
};
use crate::middleware::is_safe;

/// A layer that wants a [`FormToken`](super::FormToken) with every POST, PUT, PATCH, DELETE and other unsafe request of
/// somebody who has a session; 403 without.
///
/// The token is taken from the header `X-Form-Token`, or from the field `form_token` of a form (`x-www-form-urlencoded`, as
/// large as axum's `DefaultBodyLimit` allows: the body is read before the handler runs). An upload
/// (`multipart/form-data`) sends the header, or goes to a route outside this layer that calls
/// [`FormToken::verify`](super::FormToken::verify). Routes that [`CrossSite::bypass`](crate::middleware::CrossSite::bypass)
/// names are left out here too. Raise the limit with `DefaultBodyLimit` outside of this layer.
///
/// It stands inside the session layer:
///
/// ```
/// # use axum::{Router, routing::post};
/// # use portcullis::{SessionLayer, extract::RequireFormToken};
/// # fn app(sessions: SessionLayer) -> Router {
/// Router::new().route("/pay", post(|| async {})).layer(RequireFormToken::new()).layer(sessions)
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct RequireFormToken;

impl RequireFormToken {
    /// The layer.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for RequireFormToken {
    type Service = FormTokenService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FormTokenService(inner)
    }
}

/// The service that [`RequireFormToken`] makes.
#[derive(Debug, Clone)]
pub struct FormTokenService<S>(S);

impl<S> Service<Request> for FormTokenService<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that was polled ready is the one that is called.
        let clone = self.0.clone();
        let mut inner = std::mem::replace(&mut self.0, clone);
        Box::pin(async move {
            match checked(request).await {
                Ok(request) => inner.call(request).await,
                Err(refusal) => Ok(refusal),
            }
        })
    }
}

/// The request, whose token is right or not wanted; else the answer.
async fn checked(request: Request) -> Result<Request, Response> {
    // A socket over HTTP/2 cannot state a token; its Origin has been judged.
    if is_safe(request.method()) || *request.method() == Method::CONNECT {
        return Ok(request);
    }
    let attached = attached(request.extensions()).map_err(|refusal| refusal.into_response())?.clone();
    if attached.admitted().is_none() || attached.is_bypassed(request.method()) {
        return Ok(request);
    }
    let refused = || AuthRejection::FormToken.into_response();
    let mut stated = request.headers().get_all(&X_FORM_TOKEN).iter();
    if let Some(token) = stated.next() {
        let token = if stated.next().is_none() { token.as_bytes() } else { b"" };
        return if attached.accepts_form_token(token) { Ok(request) } else { Err(refused()) };
    }
    if !is_form(request.headers()) {
        attached.refuse_form();
        return Err(refused());
    }
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let form = String::from_request(whole, &()).await.map_err(|error| error.into_response())?;
    let mut tokens = form_urlencoded::parse(form.as_bytes()).filter(|(name, _)| name == FORM_TOKEN);
    let token = tokens.next().filter(|_| tokens.next().is_none()).map(|(_, token)| token);
    if !attached.accepts_form_token(token.as_deref().unwrap_or_default().as_bytes()) {
        return Err(refused());
    }
    Ok(Request::from_parts(parts, Body::from(form)))
}

fn is_form(headers: &HeaderMap) -> bool {
    let form = b"application/x-www-form-urlencoded";
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(form)
    })
}

static X_FORM_TOKEN: HeaderName = HeaderName::from_static("x-form-token");
