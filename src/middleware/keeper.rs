//! The script that keeps a session's key in browsers that do not, and the page that has it renew before somebody goes on.

use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, REFERRER_POLICY},
};

use super::{call::response, fields};

/// The script. Browsers ask whether it is still the same, so that a new version of the library is there at once.
pub(super) fn script(headers: &HeaderMap) -> Response<String> {
    let is_known = fields::only(headers, &IF_NONE_MATCH).is_some_and(|tag| tag == TAG.as_bytes());
    let body = if is_known { String::new() } else { SCRIPT.to_owned() };
    let mut response = response(body, Some("text/javascript; charset=utf-8"));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, HeaderValue::from_static(TAG));
    response
}

/// The page. It is the same for everybody; the script reads from its address where to go on.
pub(super) fn page() -> Response<String> {
    let mut response = response(PAGE.to_owned(), Some("text/html; charset=utf-8"));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(&FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    // The address holds another one, which is nobody else's business.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

const SCRIPT: &str = include_str!("keeper.js");
const PAGE: &str = include_str!("renew.html");
const TAG: &str = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'";
static FRAME_OPTIONS: HeaderName = HeaderName::from_static("x-frame-options");
