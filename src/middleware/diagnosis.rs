//! Why a cookie did not arrive, or did not count: what a request tells of it, for whoever puts the layer in front of a site.

use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, StatusCode, header};
use tower_service::Service;

use super::{cross_site::SEC_FETCH_SITE, fields, layer::SessionLayer, place::misplaced, request::opened};
use crate::{
    cookie::{Found, NearMiss, find, near_miss},
    events::{CookieFault, Misplaced},
    session::{Admission, ContextSignal, Reason},
    store::{Asking, Fields},
};

/// One likely cause.
///
/// | cause | what a request shows | the usual reason |
/// |---|---|---|
/// | [`Misplaced`](Self::Misplaced) | another Host, or `X-Forwarded-Proto: http` | origin configured wrong, proxy replaces Host or does not state the scheme |
/// | [`Nothing`](Self::Nothing) | no Cookie field | not signed in; Secure cookies on plain HTTP; a `fetch` without credentials; another host or port name |
/// | [`Others`](Self::Others) | cookies, none of ours | signed out; another host of the domain; evicted by a sibling's cookies |
/// | [`Withheld`](Self::Withheld) | `Sec-Fetch-Site: cross-site`, none of ours | SameSite: another site's page asks |
/// | [`NearMiss`](Self::NearMiss) | a name that looks like ours | somebody tries to pass a cookie off, or a proxy rewrites names |
/// | [`Twice`](Self::Twice) | two of one name | a sibling subdomain tosses one, or an older version set it with a domain |
/// | [`Refused`](Self::Refused) | ours, and it does not open | another key ring on this instance, or another origin or name |
/// | [`Stale`](Self::Stale) | ours, past `fresh`, without a token | the renewal token was dropped: its own path, size, or a proxy's limit |
/// | [`Unproven`](Self::Unproven) | ours, of a session that is bound to a device, past `fresh` | the browser has lost its key, the endpoints are not mounted, or a proxy answers for them |
/// | [`Ended`](Self::Ended) | ours, of a session that is over | signed out, revoked, timed out |
/// | [`OtherClient`](Self::OtherClient) | ours, from another client | copied, or a signal that the [`BindingPolicy`](crate::session::BindingPolicy) should not reject here |
/// | [`Fine`](Self::Fine) | ours, and it counts | |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookieCause {
    /// The request did not come to this site.
    Misplaced(Misplaced),
    /// It has no cookies at all.
    Nothing,
    /// It has cookies, and none of ours.
    Others,
    /// Another site's page made it, so that the browser withheld ours.
    Withheld,
    /// It has a cookie whose name looks like ours to a laxer parser.
    NearMiss(NearMiss),
    /// It has two of one name, so neither counts.
    Twice,
    /// Ours came and does not open.
    Refused(CookieFault),
    /// Ours came, is no longer fresh, and no renewal token came with it.
    Stale,
    /// Ours came, and only the device that its session is bound to renews it.
    Unproven,
    /// Ours came, and its session is over.
    Ended(Reason),
    /// Ours came from a client that the session does not belong to.
    OtherClient(ContextSignal),
    /// Ours came and counts, or its token will renew it.
    Fine,
}

impl SessionLayer {
    /// What a request tells of why its session did or did not arrive. No store call, no event; what only the store knows (a
    /// token that was used up, a session that is gone) it does not tell.
    ///
    /// ```
    /// # use portcullis::SessionLayer;
    /// # fn log<B>(sessions: &SessionLayer, request: &http::Request<B>) {
    /// println!("{}", sessions.diagnose(request));
    /// # }
    /// ```
    ///
    /// For development and for an operator's own tools. Never answer a stranger with it: it tells apart what every other
    /// answer keeps alike.
    #[must_use]
    pub fn diagnose<B>(&self, request: &Request<B>) -> CookieCause {
        let (site, headers) = (self.site(), request.headers());
        let registry = &site.registry;
        let (address, is_trusted) = site.network.client(headers, request.extensions());
        let extras = site.extras(headers, false, is_trusted);
        let named = Fields::of(headers);
        let misplaced = misplaced(&site.origin, request.uri(), headers, &named, is_trusted);
        let asking = Asking::new(named, address, extras, registry.now());
        if let Some(misplaced) = misplaced {
            return CookieCause::Misplaced(misplaced);
        }
        let names @ [session_name, _] = site.cookies.names();
        let found @ [session, token] = find(asking.cookies(), names);
        let carries = found.iter().any(|found| *found != Found::Nothing);
        let is_foreign = fields::has_one(headers, &SEC_FETCH_SITE, b"cross-site");
        if is_foreign && (!carries || site.cross_site.withheld(&site.origin, request.method(), headers)) {
            return CookieCause::Withheld;
        }
        let token = match token {
            Found::One(token) => Some(registry.tokens.authenticate(token, asking.now)),
            Found::Nothing | Found::Several => None,
        };
        let is_bound = matches!(&token, Some(Ok(token)) if token.bound_to().is_some());
        let token = token.map(|token| token.is_ok());
        match (session, token) {
            _ if found.contains(&Found::Several) => CookieCause::Twice,
            (Found::One(value), token) => match opened(registry, value) {
                Err(fault) => CookieCause::Refused(fault),
                Ok(opened) => {
                    let snapshot = opened.snapshot();
                    let (key, bound) = (registry.vault.context_key(), &snapshot.fixed().context);
                    let relation = asking.context().relation_to(bound, key, &site.binding);
                    match registry.admission(opened, asking.now, relation) {
                        Admission::Rejected(_, Reason::Context(signal)) => CookieCause::OtherClient(signal),
                        Admission::Rejected(_, reason) => CookieCause::Ended(reason),
                        Admission::Stale(opened)
                            if is_bound || opened.snapshot().fixed().bound_to().is_some() =>
                        {
                            CookieCause::Unproven
                        }
                        Admission::Stale(_) if token != Some(true) => CookieCause::Stale,
                        Admission::Admitted(_) | Admission::Outdated(_) | Admission::Stale(_) => {
                            CookieCause::Fine
                        }
                    }
                }
            },
            (_, Some(true)) if is_bound => CookieCause::Unproven,
            (_, Some(true)) => CookieCause::Fine,
            (_, Some(false)) => CookieCause::Refused(CookieFault::Forged),
            (_, None) if asking.cookies().next().is_none() => CookieCause::Nothing,
            (_, None) => {
                near_miss(asking.cookies(), session_name).map_or(CookieCause::Others, CookieCause::NearMiss)
            }
        }
    }

    /// A page for development that says what [`diagnose`](Self::diagnose) finds in the request for it, in plain text. Outside
    /// the localhost development mode it answers 404.
    ///
    /// ```
    /// # use axum::Router;
    /// # use portcullis::SessionLayer;
    /// # fn app(app: Router, sessions: SessionLayer) -> Router {
    /// app.layer(sessions.clone()).route_service("/session-diagnosis", sessions.diagnosis_page())
    /// # }
    /// ```
    #[must_use]
    pub fn diagnosis_page(&self) -> DiagnosisPage {
        DiagnosisPage(self.clone())
    }
}

/// A tower service that tells why a session did not arrive. Made by [`SessionLayer::diagnosis_page`].
#[derive(Debug, Clone)]
pub struct DiagnosisPage(SessionLayer);

impl<B> Service<Request<B>> for DiagnosisPage {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut response = Response::new(String::new());
        if self.0.site().origin.is_secure() {
            *response.status_mut() = StatusCode::NOT_FOUND;
            return ready(Ok(response));
        }
        *response.body_mut() = format!(
            "Why the session did or did not arrive with this request: {}.\n",
            self.0.diagnose(&request)
        );
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        ready(Ok(response))
    }
}

impl fmt::Display for CookieCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misplaced(place) => return f.write_str(place.remedy()),
            Self::NearMiss(kind) => return write!(f, "a cookie whose name looks like ours came ({kind:?}): another part of the domain sets it, or a proxy rewrites names"),
            Self::Refused(CookieFault::UnknownKey) => "the session cookie is sealed under a key that this instance does not have: give all instances the same key ring",
            Self::Refused(_) => "the session cookie does not open: it is of another origin or name, or was changed on its way",
            Self::OtherClient(signal) => return write!(f, "the session cookie came from another client ({signal:?}): it was copied, or the binding policy should not reject this signal here"),
            Self::Ended(reason) => return write!(f, "the session is over ({reason:?}): sign in again"),
            Self::Nothing => "no cookie came at all: nobody has signed in in this browser, the page is open under another host, or a fetch leaves out credentials",
            Self::Others => "cookies came, and none of ours: signed out, or signed in under another host of the domain",
            Self::Withheld => "another site's page made this request, so the browser withheld our cookies (SameSite): open the site itself",
            Self::Twice => "two cookies of one name came, so neither counts: remove the one that another host of the domain, or an older version with a Domain, has set",
            Self::Stale => "the session cookie is no longer fresh and its renewal token did not come: look for a proxy that drops large or long cookies",
            Self::Unproven => "the session is bound to a key of the browser, and no fresh proof of it came: the browser has lost it, the endpoints are not mounted, or a proxy answers for them",
            Self::Fine => "the session cookie came and counts",
        }
        .fmt(f)
    }
}
