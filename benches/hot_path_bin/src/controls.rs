//! Layers that do as good as nothing: what is left for a real one to save.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use axum::http::Request;
use tower_service::Service;

/// Hands everything on.
#[derive(Clone)]
pub(crate) struct Passing<S>(pub(crate) S);

impl<S: Service<R>, R> Service<R> for Passing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

/// Gives each request two values that share one allocation, as a session and the one who holds it do.
#[derive(Clone)]
pub(crate) struct Handing<S>(pub(crate) S);

#[derive(Clone)]
struct One(#[allow(dead_code, reason = "it is only carried")] Arc<u64>);

#[derive(Clone)]
struct Other(#[allow(dead_code, reason = "it is only carried")] Arc<u64>);

impl<S: Service<Request<B>>, B> Service<Request<B>> for Handing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let value = Arc::new(0);
        request.extensions_mut().insert(One(Arc::clone(&value)));
        request.extensions_mut().insert(Other(value));
        self.0.call(request)
    }
}
