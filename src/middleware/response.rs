//! Our cookies, the policy for all others, and the cache rules, on the way out.

use std::fmt::Write as _;

use http::{
    HeaderValue, Response, StatusCode,
    header::{self, Entry, HeaderName},
    uri::PathAndQuery,
};

use super::{
    attached::Attached,
    device::{PAGE_PATH, PORTCULLIS_KEY, REGISTER_PATH, SECURE_SESSION_REGISTRATION},
    outgoing::police,
    site::Site,
};
use crate::{
    crypto::RandomError,
    dbsc::{Use, registration_field},
    events::SessionEvent,
    session::{Admitted, Snapshot},
    store::CookieChange,
};

/// Writes what the request led to into its response.
pub(super) fn dress<B>(attached: &Attached, response: &mut Response<B>) {
    let site = &attached.site;
    if response.headers().contains_key(header::SET_COOKIE) || attached.arrived.is_some() {
        police(attached, response.headers_mut());
        if response.headers().contains_key(header::SET_COOKIE) {
            // A stored copy would set one user's cookie for another; the application's own word stands.
            private(response);
        }
    }
    if attached.data.wants_proof() && response.status() == StatusCode::TEMPORARY_REDIRECT {
        return prove_again(attached, response);
    }
    let change = match attached.data.take_cookies() {
        CookieChange::None => CookieChange::None,
        // It came under another name or unencrypted: a cookie would go where it does not belong.
        _ if attached.data.asking.misplaced.is_some() => CookieChange::None,
        // Nor does a sign-out that somebody else may have made the browser send.
        CookieChange::Remove if attached.data.asking.out_of_place => CookieChange::None,
        change => change,
    };
    if site.manners.no_store && is_somebodys(attached) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        attached.data.mark_read();
    }
    match change {
        CookieChange::None => {
            if attached.data.was_read() {
                vary(response, "Cookie");
                // The application's own word on caching stands.
                private(response);
            }
            return;
        }
        CookieChange::Set(set) => {
            for line in site.set_lines(&set) {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
            offer(attached, response);
        }
        CookieChange::Remove => {
            for line in site.cookies.removals() {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
            if let Some(clear) = &site.manners.clear
                && attached.data.asking.is_own
                && response.status() == StatusCode::OK
            {
                response.headers_mut().insert(&CLEAR_SITE_DATA, clear.clone());
            }
        }
    }
    if let Some(line) = site.cookies.removal_of_other(attached.data.asking.cookies()) {
        response.headers_mut().append(header::SET_COOKIE, line);
    }
    // A stored copy of this response would hand one user's credentials to another (attack A57).
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    vary(response, "Cookie");
}

/// Offers a browser to bind the session that it has just signed in to. Once: the challenge is of this login.
fn offer<B>(attached: &Attached, response: &mut Response<B>) {
    let Some(devices) = &attached.site.devices else { return };
    let Some(session) = attached.data.authenticated() else { return };
    let registry = attached.registry();
    match devices.challenges.mint(&session, Use::Registration, registry.now(), 0) {
        Ok(challenge) => {
            if let Ok(mut field) = HeaderValue::from_str(&registration_field(REGISTER_PATH, &challenge)) {
                field.set_sensitive(true);
                response.headers_mut().insert(&SECURE_SESSION_REGISTRATION, field);
            }
        }
        Err(RandomError) => registry.event(SessionEvent::NoRandomness),
    }
}

/// Makes a browser refresh its session, and send the request again as it was: it has lost the cookie by then. Where it cannot
/// refresh, the request comes back without, so nothing goes round.
fn prove_again<B>(attached: &Attached, response: &mut Response<B>) {
    let site = &attached.site;
    let path = attached.data.asking.path.as_ref().map_or("/", PathAndQuery::as_str);
    // Whole: a path may begin with two slashes.
    let Ok(location) = HeaderValue::from_str(&format!("{}{path}", site.origin.as_str())) else { return };
    response.headers_mut().insert(header::LOCATION, location);
    if let Some(line) = site.cookies.session_removal() {
        response.headers_mut().append(header::SET_COOKIE, line);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    vary(response, "Cookie");
}

/// A page that does nothing but load itself again. A browser that follows a link from another site does not refresh its
/// session first; the same address asked for by a page of this site makes it. A redirect does not help: it is
/// still the other site's navigation.
pub(super) fn interstitial<B: Default>(site: &Site, loses_cookie: bool) -> Response<B> {
    let mut response = without_body(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(&REFRESH, HeaderValue::from_static("0"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if loses_cookie && let Some(line) = site.cookies.session_removal() {
        headers.append(header::SET_COOKIE, line);
    }
    vary(&mut response, "Cookie");
    vary(&mut response, "Sec-Fetch-Site");
    response
}

/// Sends a navigation by the page whose script renews the session and goes on to `address`.
pub(super) fn by_page<B: Default>(address: &str) -> Response<B> {
    let mut response = without_body(StatusCode::SEE_OTHER);
    let mut to = format!("{PAGE_PATH}?to=");
    for byte in address.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                to.push(char::from(byte))
            }
            other => {
                let _ = write!(to, "%{other:02X}");
            }
        }
    }
    if let Ok(to) = HeaderValue::from_str(&to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    vary(&mut response, "Cookie");
    response
}

/// The answer to a script whose session is to be renewed by its key first: come again, and the header says why.
pub(super) fn unsigned<B: Default>() -> Response<B> {
    let mut response = unavailable();
    response.headers_mut().insert(&PORTCULLIS_KEY, HeaderValue::from_static("stale"));
    vary(&mut response, "Cookie");
    response
}

/// Whether somebody is signed in, or was when the request came.
fn is_somebodys(attached: &Attached) -> bool {
    attached.data.initial().map(Admitted::snapshot).is_some_and(Snapshot::has_subject)
        || attached.data.current().is_some_and(|current| current.has_subject())
}

/// The answer where nothing can be said because the store is silent: no cookie, no body, when to come back.
pub(crate) fn unavailable<B: Default>() -> Response<B> {
    let mut response = without_body(StatusCode::SERVICE_UNAVAILABLE);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
    response
}

/// The answer to a request that another site made a browser send.
pub(super) fn refused<B: Default>() -> Response<B> {
    let mut response = without_body(StatusCode::FORBIDDEN);
    vary(&mut response, "Origin");
    vary(&mut response, "Sec-Fetch-Site");
    response
}

fn without_body<B: Default>(status: StatusCode) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Keeps a response out of caches if it says nothing of them itself.
fn private<B>(response: &mut Response<B>) {
    let stated = response.headers_mut().entry(header::CACHE_CONTROL);
    stated.or_insert(HeaderValue::from_static("private, no-store"));
}

fn vary<B>(response: &mut Response<B>, on: &'static str) {
    match response.headers_mut().entry(header::VARY) {
        Entry::Vacant(none) => {
            none.insert(HeaderValue::from_static(on));
        }
        Entry::Occupied(mut stated) => {
            let varies = stated.iter().any(|value| {
                let names = value.to_str().unwrap_or_default();
                names.split(',').any(|name| name.trim() == "*" || name.trim().eq_ignore_ascii_case(on))
            });
            if !varies {
                stated.append(HeaderValue::from_static(on));
            }
        }
    }
}

static REFRESH: HeaderName = HeaderName::from_static("refresh");
static CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Seconds to wait before trying again after a store that did not answer.
const RETRY_AFTER: u64 = 1;
