//! The pages that tests make: those of the application, of its sibling, and of another site. The proxy sends them here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use tokio::{net::TcpListener, runtime::Runtime};

/// By host and path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages(Arc<Mutex<BTreeMap<String, Page>>>);

#[derive(Debug)]
struct Page {
    html: String,
    set_cookie: Vec<Vec<u8>>,
}

impl Pages {
    /// Serves what the test puts here, for as long as `runtime` is there.
    pub(crate) fn start(runtime: &Runtime) -> Self {
        let pages = Self::default();
        let router = Router::new().fallback(answer).with_state(pages.clone());
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", PORT)));
        let listener = listener.unwrap_or_else(|error| panic!("port {PORT}: {error}"));
        runtime.spawn(async { axum::serve(listener, router).await });
        pages
    }

    /// A file at an address, as it is.
    pub(crate) fn put_file(&self, url: &str, text: &str) {
        let (_, place) = url.split_once("://").expect("a whole address");
        let page = Page { html: text.to_owned(), set_cookie: Vec::new() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place.to_owned(), page);
    }

    /// A page at an address, whatever its scheme, and the lines it sets cookies with, byte for byte.
    pub(crate) fn put(&self, url: &str, html: &str, set_cookie: &[&[u8]]) {
        let (_, place) = url.split_once("://").expect("a whole address");
        let set_cookie = set_cookie.iter().map(|line| line.to_vec()).collect();
        let page = Page { html: format!("<!doctype html><meta charset=utf-8>{html}"), set_cookie };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place.to_owned(), page);
    }
}

async fn answer(State(pages): State<Pages>, request: Request<Body>) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let pages = pages.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut response = Response::new(Body::empty());
    let Some(page) = pages.get(&format!("{host}{}", request.uri().path())) else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    *response.body_mut() = page.html.clone().into();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    for line in &page.set_cookie {
        let line = HeaderValue::from_bytes(line).expect("a field value");
        response.headers_mut().append(header::SET_COOKIE, line);
    }
    response
}

/// Where `tests/browsers` has the proxy look for pages.
const PORT: u16 = 3001;
