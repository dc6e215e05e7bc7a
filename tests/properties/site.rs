//! A site in this process with one user signed in, whose clock stands still: whatever is sent to it changes nothing, so
//! each input is judged alone.

use std::{
    cell::RefCell,
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use portcullis::{
    Auth, Identity, KeyRing, MemoryStore, SessionLayer,
    clock::{ManualClock, Timestamp},
    events::{EventSink, SessionEvent},
};
use tower::{Layer as _, Service as _, service_fn};

use super::forge::Forger;

pub const ORIGIN: &str = "https://app.example.com";
pub const SESSION: &str = "__Host-Http-session";
pub const RENEWAL: &str = "__Host-Http-renewal";

/// The site, and what its user's browser holds.
pub struct Site {
    runtime: tokio::runtime::Runtime,
    layer: SessionLayer,
    pub forger: Forger,
    pub session: String,
    pub token: String,
}

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub user: Option<String>,
    pub sets_cookies: bool,
}

thread_local! {
    static SITE: RefCell<Site> = RefCell::new(Site::new());
}

/// Runs `check` with the site of this thread.
pub fn with<T>(check: impl FnOnce(&Site) -> T) -> T {
    SITE.with_borrow(check)
}

/// Events are not what is looked at here.
#[derive(Debug)]
struct Deaf;

impl EventSink for Deaf {
    fn record(&self, _: &SessionEvent) {}
}

impl Site {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let keys = KeyRing::generate().unwrap();
        let forger = Forger::new(&keys.to_text(), ORIGIN);
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = MemoryStore::with_clock(Arc::clone(&clock) as _);
        let layer = SessionLayer::builder(ORIGIN, keys, store)
            .clock(clock as _)
            .events(Deaf)
            .peer_address(|_| Some(PROXY))
            .trusted_proxies(["10.0.0.0/8"])
            .seal_cookie("prefs")
            .build()
            .unwrap();
        let mut site = Self { runtime, layer, forger, session: String::new(), token: String::new() };
        site.runtime.block_on(site.layer.ready()).unwrap();
        let sign_in = service_fn(|request: Request<()>| async move {
            let auth = Auth::from_extensions(request.extensions()).unwrap();
            auth.login("alice").claim("role", "editor").unwrap().await.unwrap();
            Ok::<_, Infallible>(Response::new(String::new()))
        });
        let request = Request::builder().header(header::USER_AGENT, USER_AGENT).body(()).unwrap();
        let response = site.runtime.block_on(site.layer.layer(sign_in).call(request)).unwrap();
        let value = |name: &str| {
            let lines = response.headers().get_all(header::SET_COOKIE).iter();
            let mut pairs = lines.filter_map(|line| line.to_str().unwrap().split(';').next());
            pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap().to_owned()
        };
        (site.session, site.token) = (value(SESSION), value(RENEWAL));
        site
    }

    /// Sends a request with these Cookie fields. The answer must be the application's own, whatever they hold.
    pub fn ask<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> Option<Outcome> {
        let mut request = Request::builder().header(header::USER_AGENT, USER_AGENT).body(()).unwrap();
        for field in fields {
            // What cannot stand in a field never reaches a layer.
            request.headers_mut().append(header::COOKIE, HeaderValue::from_bytes(field).ok()?);
        }
        let who = service_fn(|request: Request<()>| async move {
            let identity = Identity::from_extensions(request.extensions()).unwrap();
            if let Some(identity) = &identity {
                // All that a handler can ask, so that nothing of it panics whatever was sealed.
                let asked = (identity.claims(), identity.methods().count(), identity.authenticated_at());
                std::hint::black_box((asked, identity.is_recent(), identity.strength(), identity.session()));
            }
            let user = identity.as_ref().map(Identity::subject).unwrap_or_default().to_owned();
            Ok::<_, Infallible>(Response::new(user))
        });
        let response = self.runtime.block_on(self.layer.layer(who).call(request)).unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let sets_cookies = response.headers().contains_key(header::SET_COOKIE);
        let user = Some(response.into_body()).filter(|user| !user.is_empty());
        Some(Outcome { user, sets_cookies })
    }

    /// Sends a request with these fields. The status, whether the application ran, and who it was told this is.
    pub fn send(&self, method: Method, headers: HeaderMap) -> (StatusCode, bool, Option<String>) {
        let mut request = Request::builder().method(method).body(()).unwrap();
        *request.headers_mut() = headers;
        let who = service_fn(|request: Request<()>| async move {
            let identity = Identity::from_extensions(request.extensions()).unwrap();
            let user = identity.as_ref().map(Identity::subject).unwrap_or_default().to_owned();
            Ok::<_, Infallible>(Response::new(Some(user)))
        });
        let response = self.runtime.block_on(self.layer.layer(who).call(request)).unwrap();
        let (status, user) = (response.status(), response.into_body());
        (status, user.is_some(), user.filter(|user| !user.is_empty()))
    }

    /// What leaves of the lines that an application sets, in answer to a request of its user.
    pub fn emit(&self, lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let cookie = format!("{SESSION}={}", self.session);
        let request =
            Request::builder().header(header::USER_AGENT, USER_AGENT).header(header::COOKIE, cookie);
        let lines = lines.to_vec();
        let emits = service_fn(move |_: Request<()>| {
            let mut response = Response::new(String::new());
            for line in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let response =
            self.runtime.block_on(self.layer.layer(emits).call(request.body(()).unwrap())).unwrap();
        response.headers().get_all(header::SET_COOKIE).iter().map(|line| line.as_bytes().to_vec()).collect()
    }

    /// Sends one value under one name.
    pub fn ask_with(&self, name: &str, value: &[u8]) -> Option<Outcome> {
        self.ask([[name.as_bytes(), b"=", value].concat().as_slice()])
    }
}

impl Outcome {
    pub fn is_nobody(&self) -> bool {
        self.user.is_none() && !self.sets_cookies
    }

    pub fn is_alice(&self) -> bool {
        self.user.as_deref() == Some("alice")
    }
}

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

pub const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
