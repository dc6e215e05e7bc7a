//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use super::{service::SessionService, site::Site};
use crate::{clock::Timestamp, store::StoreError};

/// Puts sessions in front of a service.
///
/// Layer the outermost router: inside `Router::nest` paths are shortened, so that routes named in the configuration, and the
/// default for a cookie's path, are not those of the URL. A layer inside a layer of its kind does nothing.
///
/// One layer serves one origin. Clones share everything. Its background task (the revocation feed, and a purge a minute)
/// starts with the first request, or with [`ready`](Self::ready) or [`logout_everywhere`](Self::logout_everywhere) before
/// that, and ends with the last clone.
#[derive(Debug, Clone)]
pub struct SessionLayer(Arc<Site>);

impl SessionLayer {
    pub(super) fn new(site: Site) -> Self {
        Self(Arc::new(site))
    }

    /// What its requests share.
    pub(super) const fn site(&self) -> &Arc<Site> {
        &self.0
    }

    /// Waits until the revocation feed was read once. Before that every request with a fresh cookie asks the store;
    /// use it where an instance reports that it is ready.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.0.registry.ready().await
    }

    /// Signs a user out everywhere, whoever asks: for an account that is closed, a password that was reset, a thief who was
    /// found. How many sessions there were. The other instances hear of it through the feed.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn logout_everywhere(&self, subject: &str) -> Result<u64, StoreError> {
        self.0.registry.end_all_of(subject).await
    }

    /// The instant of the store's clock, as far as this instance knows it. No store call.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.registry.now()
    }

    /// Signs out everybody who was authenticated before `moment`, by the store's clock: after a breach, or a fault in the
    /// login. A moment that is still to come counts as now. Sessions of nobody go by when they were created. It holds on all instances as a logout does; one store call
    /// (with Redis 64).
    ///
    /// # Errors
    /// If the store does not answer. On this instance it holds all the same, and in the store when it is back.
    pub async fn logout_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.0.registry.ready().await.ok();
        self.0.registry.end_before(moment).await
    }
}

impl<S> Layer<S> for SessionLayer {
    type Service = SessionService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SessionService::new(inner, Arc::clone(&self.0))
    }
}
