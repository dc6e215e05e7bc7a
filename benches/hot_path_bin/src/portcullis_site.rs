//! A site behind portcullis, with one user signed in.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, handler::Handler, routing::get};
use portcullis::{
    KeyRing, MemoryStore, SessionLayer, SessionLayerBuilder, Timeouts,
    clock::{Clock as _, ManualClock, SystemClock},
    events::{CookieFault, EventSink, SessionEvent},
};

use crate::{
    handlers,
    request::{Template, set_cookies},
};

/// The layer, and the cookies of the user.
pub(crate) struct Site {
    layer: SessionLayer,
    pub(crate) events: Arc<Tally>,
    pub(crate) session: String,
    pub(crate) token: String,
}

impl Site {
    /// On the system's clock, with the default lifetimes.
    pub(crate) async fn with(configure: impl FnOnce(SessionLayerBuilder) -> SessionLayerBuilder) -> Self {
        Self::build(MemoryStore::new(), configure).await
    }

    /// On a clock that is moved by hand. The session lasts as long as one may, so that it can be renewed often.
    pub(crate) async fn on_manual_clock() -> (Self, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(SystemClock::default().now()));
        let timeouts = Timeouts::default().fresh(FRESH).absolute(Duration::from_secs(400 * 24 * 60 * 60));
        let store = MemoryStore::with_clock(clock.clone());
        let site = Self::build(store, |builder| builder.timeouts(timeouts).clock(clock.clone())).await;
        (site, clock)
    }

    async fn build(
        store: MemoryStore,
        configure: impl FnOnce(SessionLayerBuilder) -> SessionLayerBuilder,
    ) -> Self {
        let keys = KeyRing::generate().unwrap();
        let events = Arc::new(Tally::default());
        let builder = SessionLayer::builder("https://app.example.com", keys, store);
        let layer = configure(builder).events(Sink(Arc::clone(&events))).build().unwrap();
        // Before the feed was read, a fresh cookie costs a store call.
        layer.ready().await.unwrap();
        let mut site = Self { layer, events, session: String::new(), token: String::new() };
        let answer = Template::new(&[]).send(&mut site.app(handlers::sign_in)).await;
        [site.session, site.token] = set_cookies(&answer).try_into().unwrap();
        site.events.take();
        site
    }

    /// `handler` behind the layer.
    pub(crate) fn app<H, T>(&self, handler: H) -> Router
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        Router::new().route("/", get(handler)).layer(self.layer.clone())
    }
}

/// How often the events happened that a case may lead to. Everything else is dropped unread: no log is measured.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    forged_cookie: AtomicU64,
    forged_token: AtomicU64,
    renewed: AtomicU64,
    other: AtomicU64,
}

/// The counts of a [`Tally`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) forged_cookie: u64,
    pub(crate) forged_token: u64,
    pub(crate) renewed: u64,
    pub(crate) other: u64,
}

impl Tally {
    /// The counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Counts {
            forged_cookie: take(&self.forged_cookie),
            forged_token: take(&self.forged_token),
            renewed: take(&self.renewed),
            other: take(&self.other),
        }
    }
}

#[derive(Debug)]
struct Sink(Arc<Tally>);

impl EventSink for Sink {
    fn record(&self, event: &SessionEvent) {
        let count = match event {
            SessionEvent::SessionCookieRefused(CookieFault::Forged) => &self.0.forged_cookie,
            SessionEvent::RenewalTokenRefused(CookieFault::Forged) => &self.0.forged_token,
            SessionEvent::Renewed(_) => &self.0.renewed,
            _ => &self.0.other,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Twice the default grace, which is the least it may be.
pub(crate) const FRESH: Duration = Duration::from_secs(60);
