//! Our cookies and the cache rules, on the way out.

use http::{
    HeaderValue, Response, StatusCode,
    header::{self, Entry},
};

use super::attached::Attached;
use crate::store::CookieChange;

/// Writes what the request led to into its response.
pub(super) fn dress<B>(attached: &Attached, response: &mut Response<B>) {
    let cookies = &attached.site.cookies;
    match attached.data.take_cookies() {
        CookieChange::None => {
            if attached.data.was_read() {
                vary_on_cookie(response);
                // The application's own word on caching stands.
                response
                    .headers_mut()
                    .entry(header::CACHE_CONTROL)
                    .or_insert(HeaderValue::from_static("private, no-store"));
            }
            return;
        }
        CookieChange::Set { cookie, token, ends_at } => {
            let max_age = attached.site.max_age(ends_at);
            let renewal = token.and_then(|token| cookies.set_renewal(&token, max_age));
            for line in cookies.set_session(&cookie, max_age).into_iter().chain(renewal) {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
        }
        CookieChange::Remove => {
            for line in cookies.removals() {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
        }
    }
    // A stored copy of this response would hand one user's credentials to another (attack A57).
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    vary_on_cookie(response);
}

/// The answer where nothing can be said because the store is silent: no cookie, no body, when to come back.
pub(crate) fn unavailable<B: Default>() -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn vary_on_cookie<B>(response: &mut Response<B>) {
    match response.headers_mut().entry(header::VARY) {
        Entry::Vacant(none) => {
            none.insert(HeaderValue::from_static("Cookie"));
        }
        Entry::Occupied(mut stated) => {
            let varies = stated.iter().any(|value| {
                let names = value.to_str().unwrap_or_default();
                names.split(',').any(|name| name.trim() == "*" || name.trim().eq_ignore_ascii_case("cookie"))
            });
            if !varies {
                stated.append(HeaderValue::from_static("Cookie"));
            }
        }
    }
}

/// Seconds to wait before trying again after a store that did not answer.
const RETRY_AFTER: u64 = 1;
