//! A browser's request, and what is read of the answer.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header},
};
use bytes::Bytes;
use tower_service::Service as _;

/// A request that can be built any number of times, each time as an HTTP server does it: a new map of headers, whose
/// values share the bytes that were read.
#[derive(Clone)]
pub(crate) struct Template {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Template {
    /// What Chrome asks for a page, with the cookies `ours` among foreign ones.
    pub(crate) fn new(ours: &[&str]) -> Self {
        let fields = [
            (header::HOST, "app.example.com"),
            (header::USER_AGENT, USER_AGENT),
            (header::ACCEPT, "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"),
            (header::ACCEPT_LANGUAGE, "en-GB,en;q=0.9,de;q=0.8"),
            (header::ACCEPT_ENCODING, "gzip, deflate, br, zstd"),
            (HeaderName::from_static("sec-fetch-site"), "same-origin"),
            (HeaderName::from_static("sec-fetch-mode"), "navigate"),
        ];
        let mut headers: Vec<_> = fields.into_iter().map(|(name, text)| (name, value(text))).collect();
        headers.push((header::COOKIE, cookies(ours)));
        Self { uri: Uri::from_static("/"), headers }
    }

    /// The same from a browser without any cookie.
    pub(crate) fn without_cookies() -> Self {
        let mut template = Self::new(&[]);
        template.headers.pop();
        template
    }

    /// The same request with other cookies of ours.
    pub(crate) fn set_cookies(&mut self, ours: &[&str]) {
        self.headers.pop();
        self.headers.push((header::COOKIE, cookies(ours)));
    }

    /// Builds the request and sends it through `app`; the body of the answer is dropped unread.
    ///
    /// # Panics
    /// If the answer is not the one that all handlers here give when all is as it should be.
    pub(crate) async fn send(&self, app: &mut Router) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        let response: Response<Body> = app.call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "the request did not do what its case says");
        response.into_parts().0.headers
    }
}

/// `name=value` of every cookie that an answer sets.
pub(crate) fn set_cookies(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::SET_COOKIE).iter();
    lines.map(|line| line.to_str().unwrap().split(';').next().unwrap().to_owned()).collect()
}

/// The same cookie with the character in the middle of its value changed to another of the same alphabet.
pub(crate) fn forged(cookie: &str) -> String {
    let (name, value) = cookie.split_once('=').unwrap();
    let (before, after) = value.split_at(value.len() / 2);
    let other = if after.starts_with('A') { 'B' } else { 'A' };
    format!("{name}={before}{other}{}", &after[1..])
}

/// A Cookie header of 512 bytes, of which the first of `ours` is a part. What follows the first is on top: a browser
/// that sends our session cookie sends the renewal token as well, and nobody else's header is longer for it.
fn cookies(ours: &[&str]) -> HeaderValue {
    let mut pairs =
        vec!["_ga=GA1.1.1402918374.1795000000", "_ga_9XK2M4T7QW=GS2.1.s1795000000$o3$g1$t1795000100$j60"];
    pairs.extend(ours);
    pairs.push("theme=dark");
    let extra: usize = ours.iter().skip(1).map(|cookie| cookie.len() + "; ".len()).sum();
    let mut text = pairs.join("; ") + "; prefs=";
    while text.len() < COOKIE_BYTES + extra {
        text.push('x');
    }
    assert_eq!(text.len(), COOKIE_BYTES + extra, "our cookie alone is too long for the header");
    value(&text)
}

/// A value that shares its bytes, as one that was read from a connection does; a static one would clone for less.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text.as_bytes().to_vec())).unwrap()
}

const USER_AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

const COOKIE_BYTES: usize = 512;
