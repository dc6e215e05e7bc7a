//! A site behind tower-sessions, with one session.

use axum::{Router, handler::Handler, routing::get};
use tower_sessions::{MemoryStore, SessionManagerLayer, cookie::Key};

use crate::{
    handlers,
    request::{Template, set_cookies},
};

/// The store, and the cookie of the session.
pub(crate) struct Site {
    store: MemoryStore,
    /// The key of a private cookie; none is a cookie with the plain id.
    key: Option<Key>,
    pub(crate) session: String,
}

impl Site {
    /// With a private cookie: encrypted and authenticated, as ours is.
    pub(crate) async fn private() -> Self {
        Self::build(Some(Key::from(&[0x5a; 64]))).await
    }

    /// With the plain id in the cookie.
    pub(crate) async fn plain() -> Self {
        Self::build(None).await
    }

    async fn build(key: Option<Key>) -> Self {
        let mut site = Self { store: MemoryStore::default(), key, session: String::new() };
        let answer = Template::new(&[]).send(&mut site.app(handlers::begin)).await;
        [site.session] = set_cookies(&answer).try_into().unwrap();
        site
    }

    /// `handler` behind the layer.
    pub(crate) fn app<H, T>(&self, handler: H) -> Router
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let router = Router::new().route("/", get(handler));
        let layer = SessionManagerLayer::new(self.store.clone());
        match &self.key {
            Some(key) => router.layer(layer.with_private(key.clone())),
            None => router.layer(layer),
        }
    }
}
