//! A site on a stage: the clock, the spied store, the events and the layer of one test.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use portcullis::{
    KeyRing, MemoryStore, SessionLayer, SessionLayerBuilder,
    clock::{Clock, ManualClock, Timestamp},
    events::{EventSink, SessionEvent},
    store::Store,
};

use crate::{browser::Browser, scratch::Scratch, spy::Spy};

/// The origin of the site.
pub(crate) const ORIGIN: &str = "https://app.example.com";

/// The default timeouts, which the tests speak of.
pub(crate) const FRESH: Duration = Duration::from_secs(300);
pub(crate) const GRACE: Duration = Duration::from_secs(30);
pub(crate) const IDLE: Duration = Duration::from_secs(30 * 60);
pub(crate) const ABSOLUTE: Duration = Duration::from_secs(12 * 3600);
pub(crate) const REMEMBERED_IDLE: Duration = Duration::from_secs(14 * 24 * 3600);
pub(crate) const REMEMBERED_ABSOLUTE: Duration = Duration::from_secs(30 * 24 * 3600);
pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A site. Clones share everything.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Spy,
    pub(crate) events: Events,
    pub(crate) keys: KeyRing,
    pub(crate) layer: SessionLayer,
    /// What a browser says that its pages are from.
    pub(crate) origin: String,
    _scratch: Option<Arc<Scratch>>,
}

impl Stage {
    /// A site whose sessions are in memory.
    pub(crate) async fn memory() -> Self {
        let clock = clock();
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
        Self::over(clock, store, None).await
    }

    /// A site whose sessions are in a file.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn sqlite() -> Self {
        let clock = clock();
        let scratch = Scratch::new();
        let file = scratch.file("sessions.db");
        let opened = portcullis::SqliteStore::open_with_clock(file, Arc::clone(&clock) as _).await;
        Self::over(clock, Arc::new(opened.unwrap()), Some(Arc::new(scratch))).await
    }

    async fn over(clock: Arc<ManualClock>, store: Arc<dyn Store>, scratch: Option<Arc<Scratch>>) -> Self {
        let (store, events) = (Spy::on(store), Events::default());
        let keys = KeyRing::generate().unwrap();
        let layer = layer(ORIGIN, &keys, &store, &events, &clock).build().unwrap();
        let origin = ORIGIN.into();
        let stage = Self { clock, store, events, keys, layer, origin, _scratch: scratch };
        // Until the feed was read once, every request asks the store; the tests count calls from after that.
        stage.layer.ready().await.unwrap();
        stage
    }

    /// The same site with another key ring, as after a restart. The feed is not read yet.
    pub(crate) fn restarted_with(&self, keys: KeyRing) -> Self {
        self.beside(ORIGIN, keys)
    }

    /// Another site over the same store, clock and events. The feed is not read yet.
    pub(crate) fn beside(&self, origin: &str, keys: KeyRing) -> Self {
        let layer = layer(origin, &keys, &self.store, &self.events, &self.clock).build().unwrap();
        Self { layer, keys, origin: origin.into(), ..self.clone() }
    }

    /// The same site over another store, as after a restart with sessions in memory. The feed is not read yet.
    pub(crate) fn over_store(&self, store: impl Store) -> Self {
        Self { store: Spy::on(Arc::new(store)), ..self.clone() }.beside(ORIGIN, self.keys.clone())
    }

    /// A builder as this stage uses it, to be changed before it is built.
    pub(crate) fn rebuilt(&self, change: impl FnOnce(SessionLayerBuilder) -> SessionLayerBuilder) -> Self {
        let builder = layer(ORIGIN, &self.keys, &self.store, &self.events, &self.clock);
        Self { layer: change(builder).build().unwrap(), ..self.clone() }
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// The second it is.
    pub(crate) fn second(&self) -> u64 {
        self.clock.now().as_seconds()
    }

    /// A browser that was never here.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.clone())
    }

    /// A browser in which `user` has just signed in. Calls and events up to here are forgotten.
    pub(crate) async fn signed_in(&self, user: &'static str) -> Browser {
        let mut browser = self.browser();
        browser.login(user).await;
        self.forget();
        browser
    }

    /// Forgets calls and events up to here.
    pub(crate) fn forget(&self) {
        self.store.calls();
        self.events.take();
    }
}

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<SessionEvent>>>);

impl Events {
    /// The events since the last question.
    pub(crate) fn take(&self) -> Vec<SessionEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.take().iter().map(SessionEvent::name).collect()
    }
}

impl EventSink for Events {
    fn record(&self, event: &SessionEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// Waits until `holds` answers yes: for what the revocation feed brings, which is quick but not at once.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    for _ in 0..200 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come about within two seconds");
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn layer(
    origin: &str,
    keys: &KeyRing,
    store: &Spy,
    events: &Events,
    clock: &Arc<ManualClock>,
) -> SessionLayerBuilder {
    SessionLayer::builder(origin, keys.clone(), store.clone())
        .events(events.clone())
        .clock(Arc::clone(clock) as _)
        .peer_address(|extensions| extensions.get::<IpAddr>().copied())
}
