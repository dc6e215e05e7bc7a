//! A request's way, in order: judge it, attach its session, run the application, commit, dress the response.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    attached::Attached,
    device::is_device_endpoint,
    incoming::Incoming,
    question::{Instead, Question, ask},
    request::Judged,
    response::{by_page, dress, interstitial, refused, unavailable, unsigned},
    site::Site,
};
use crate::{events::SessionEvent, store::Asking};

/// The service that a [`SessionLayer`](super::SessionLayer) makes.
#[derive(Debug, Clone)]
pub struct SessionService<S> {
    inner: S,
    site: Arc<Site>,
}

impl<S> SessionService<S> {
    pub(super) const fn new(inner: S, site: Arc<Site>) -> Self {
        Self { inner, site }
    }
}

impl<S, A, B> Service<Request<A>> for SessionService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    A: Send + 'static,
    B: Default + Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, B, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        self.site.registry.start_watching();
        if let Some(devices) = &self.site.devices
            && is_device_endpoint(devices, request.uri().path())
        {
            // The endpoints look after themselves, wherever they are mounted.
            return ResponseFuture {
                state: State::Running { inner: self.inner.call(request), attached: None },
            };
        }
        if request.extensions().get::<Attached>().is_some_and(|outer| Arc::ptr_eq(&outer.site, &self.site)) {
            // The same layer outside of this one has done all of it.
            return ResponseFuture {
                state: State::Running { inner: self.inner.call(request), attached: None },
            };
        }
        let state = match Incoming::new(&self.site, &request).judge() {
            Judged::Attach(mut attached) => {
                attach(&mut request, &mut attached);
                State::Running { inner: self.inner.call(request), attached: Some(attached) }
            }
            Judged::Ask(asked) => {
                // The service that was polled ready is the one that is called.
                let clone = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, clone);
                let site = Arc::clone(&self.site);
                State::Waiting { whole: Box::pin(ask_and_run(site, asked, inner, request)) }
            }
            Judged::ComeAgain => State::Waiting { whole: Box::pin(async { Ok(unavailable()) }) },
            Judged::Again(loses_cookie) => {
                let site = Arc::clone(&self.site);
                State::Waiting { whole: Box::pin(async move { Ok(interstitial(&site, loses_cookie)) }) }
            }
            Judged::ByPage(address) => {
                State::Waiting { whole: Box::pin(async move { Ok(by_page(&address)) }) }
            }
            Judged::Unsigned => State::Waiting { whole: Box::pin(async { Ok(unsigned()) }) },
            Judged::Refused => State::Waiting { whole: Box::pin(async { Ok(refused()) }) },
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// The future of a response.
    pub struct ResponseFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

type Whole<B, E> = Pin<Box<dyn Future<Output = Result<Response<B>, E>> + Send>>;

pin_project! {
    #[project = StateProjection]
    enum State<F, B, E> {
        // The application runs, its session known: the way of almost every request, without a box.
        Running { #[pin] inner: F, attached: Option<Attached> },
        // Something waits for the store, before the application or after it.
        Waiting { whole: Whole<B, E> },
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Default + Send + 'static,
    E: Send + 'static,
{
    type Output = Result<Response<B>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            let whole: Whole<B, E> = match this.state.as_mut().project() {
                StateProjection::Waiting { whole } => return whole.as_mut().poll(context),
                StateProjection::Running { inner, attached } => {
                    let mut response = ready!(inner.poll(context))?;
                    let Some(attached) = attached.take() else { return Poll::Ready(Ok(response)) };
                    if !needs_commit(&attached) {
                        dress(&attached, &mut response);
                        return Poll::Ready(Ok(response));
                    }
                    Box::pin(async move { Ok(commit(&attached, response).await) })
                }
            };
            this.state.set(State::Waiting { whole });
        }
    }
}

impl<F, B, E> fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture(..)")
    }
}

fn attach<A>(request: &mut Request<A>, attached: &mut Attached) {
    if !attached.site.sealed.is_empty() {
        attached.open_sealed(request.headers_mut());
    }
    request.extensions_mut().insert(attached.session.clone());
    request.extensions_mut().insert(attached.clone());
}

/// The way of a request that needs the store before the application.
///
/// If its client hangs up, a renewal that has happened is not lost: the old token is good once more after the grace.
async fn ask_and_run<S, A, B>(
    site: Arc<Site>,
    asked: Box<(Asking, Question)>,
    mut inner: S,
    mut request: Request<A>,
) -> Result<Response<B>, S::Error>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Default,
{
    let (asking, question) = *asked;
    let mut attached = match ask(&site, asking, question).await {
        Ok(attached) => attached,
        Err(Instead::LoadAgain) => return Ok(interstitial(&site, true)),
        Err(Instead::ComeAgain) => return Ok(unavailable()),
    };
    attach(&mut request, &mut attached);
    let is_connect = request.method() == Method::CONNECT;
    let response = inner.call(request).await?;
    if attached.upgrade && !is_upgraded(response.status(), is_connect) {
        // Only a socket may be opened on a stale cookie; what else it asked for, it gets after renewing.
        return Ok(unavailable());
    }
    Ok(commit(&attached, response).await)
}

fn is_upgraded(status: StatusCode, is_connect: bool) -> bool {
    status == StatusCode::SWITCHING_PROTOCOLS || (is_connect && status.is_success())
}

fn needs_commit(attached: &Attached) -> bool {
    attached.session.is_modified() || attached.data.left().is_some()
}

/// Writes what the application changed, unless it failed, and dresses the response.
async fn commit<B: Default>(attached: &Attached, mut response: Response<B>) -> Response<B> {
    if !response.status().is_server_error() && needs_commit(attached) && !write(attached).await {
        response = unavailable();
    }
    // Also on a failure: after a rotation the response carries the only copy of the new token.
    dress(attached, &mut response);
    response
}

/// Whether the store took it. What a session that ended meanwhile refuses counts as taken: it is dropped.
async fn write(attached: &Attached) -> bool {
    if attached.session.is_modified()
        && attached.session.save().await.is_err()
        && attached.data.store_failed()
    {
        return false;
    }
    let Some(id) = attached.data.left() else { return true };
    let registry = attached.registry();
    match registry.end(&id).await {
        Ok(was_live) => {
            if was_live {
                registry.event(SessionEvent::LoggedOut(registry.session_ref(&id)));
            }
            attached.data.leave();
            true
        }
        Err(_) => false,
    }
}
