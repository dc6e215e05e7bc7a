//! The endpoints of sessions that are bound to keys, as one service.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode};
use tower_service::Service;

use super::{
    call::{Call, status},
    cross_site::SEC_FETCH_MODE,
    device::{Endpoint, PORTCULLIS_KEY},
    fields,
    incoming::Incoming,
    keeper,
    layer::SessionLayer,
    response::unavailable,
    site::Site,
};
use crate::{crypto::RandomError, events::SessionEvent};

/// A tower service with the endpoints of sessions that are bound to keys. Made by [`SessionLayer::device_endpoints`].
#[derive(Debug, Clone)]
pub struct DeviceEndpoints(Arc<Site>);

impl SessionLayer {
    /// The endpoints of [`device_binding`](super::SessionLayerBuilder::device_binding), that browsers bind a session at and
    /// refresh it, and those of [`software_keys`](super::SessionLayerBuilder::software_keys). Mount them at `/portcullis`, inside
    /// the layer or outside of it:
    ///
    /// ```
    /// # use axum::Router;
    /// # use portcullis::SessionLayer;
    /// # fn app(app: Router, sessions: SessionLayer) -> Router {
    /// app.nest_service("/portcullis", sessions.device_endpoints()).layer(sessions)
    /// # }
    /// ```
    ///
    /// | path below `/portcullis` | asked by |
    /// |---|---|
    /// | `POST device/register`, `POST device/refresh` | browsers, by themselves |
    /// | `GET keeper.js`, `POST key`, `GET renew` | pages of the site, with `software_keys` |
    ///
    /// A proxy must pass them on as they are: never with a redirect, a login page or a rate limit of its own (429 ends the
    /// session in the browser).
    #[must_use]
    pub fn device_endpoints(&self) -> DeviceEndpoints {
        DeviceEndpoints(Arc::clone(self.site()))
    }
}

impl<B> Service<Request<B>> for DeviceEndpoints {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let site = Arc::clone(&self.0);
        site.registry.start_watching();
        let (method, headers) = (request.method(), request.headers());
        let is_of =
            |endpoint: &Endpoint| site.devices.as_ref().is_some_and(|devices| endpoint.is_of(devices));
        let endpoint = Endpoint::of(request.uri().path()).filter(is_of);
        let Some(endpoint) = endpoint else { return at_once(status(StatusCode::NOT_FOUND)) };
        let is_asset = matches!(endpoint, Endpoint::Script | Endpoint::Page);
        if is_asset && *method != Method::GET || !is_asset && *method != Method::POST {
            return at_once(status(StatusCode::METHOD_NOT_ALLOWED));
        }
        let incoming = Incoming::new(&site, &request);
        match endpoint {
            Endpoint::Script => return at_once(keeper::script(headers)),
            Endpoint::Page => return at_once(keeper::page()),
            // The browser itself asks in no other mode; a script of a page, which could read what a login was offered, does.
            Endpoint::Register | Endpoint::Refresh
                if fields::only(headers, &SEC_FETCH_MODE).is_some_and(|mode| mode != b"no-cors") =>
            {
                return at_once(status(StatusCode::FORBIDDEN));
            }
            Endpoint::Register | Endpoint::Refresh => {}
            Endpoint::Key => {
                if let Err(reason) = incoming.cross_site() {
                    site.registry.event(SessionEvent::CrossSite(reason));
                    return at_once(status(StatusCode::FORBIDDEN));
                }
                // No page of another site can send it without asking first.
                if !headers.contains_key(&PORTCULLIS_KEY) {
                    return at_once(status(StatusCode::BAD_REQUEST));
                }
            }
        }
        let asking = incoming.noted().1;
        let asking = if endpoint == Endpoint::Key { asking } else { asking.without_hints() };
        let headers = headers.clone();
        Box::pin(async move {
            let Some(devices) = &site.devices else { return Ok(status(StatusCode::NOT_FOUND)) };
            if asking.misplaced.is_some() {
                // It is the way here that is wrong, not the session.
                return Ok(unavailable());
            }
            let call = Call { site: &site, devices, asking: &asking, headers: &headers };
            let answer = match endpoint {
                Endpoint::Register => call.register().await,
                Endpoint::Refresh => call.refresh().await,
                Endpoint::Key | Endpoint::Script | Endpoint::Page => call.key().await,
            };
            Ok(answer.unwrap_or_else(|RandomError| {
                site.registry.event(SessionEvent::NoRandomness);
                unavailable()
            }))
        })
    }
}

fn at_once(response: Response<String>) -> <DeviceEndpoints as Service<Request<()>>>::Future {
    Box::pin(async { Ok(response) })
}
