//! What a request carries on its way to the handler. Extractors read it; `account` acts on it.

use std::{future::Future, sync::Arc, time::Duration};

use tower_sessions_core::Session;

use super::site::Site;
use crate::{
    session::{Admitted, Snapshot, Strength},
    store::{Asking, CookieChange, Registry, SessionData},
};

/// A request's session, whoever is asking. Cheap to clone.
///
/// Only the layer makes one, and makes it somebody's only with an [`Admitted`]; extractors read nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(super) site: Arc<Site>,
    pub(super) data: Arc<SessionData>,
    pub(super) session: Session,
    /// The cookie was stale and only a socket upgrade let it in: nothing that needs a recent authentication.
    pub(super) upgrade: bool,
    /// The cookie was stale and is let in because the store is silent: nothing that needs a recent authentication.
    pub(super) without_store: bool,
}

impl Attached {
    /// Attaches a session to a request. Only an [`Admitted`] makes it somebody's.
    pub(super) fn new(
        site: &Arc<Site>,
        asking: Asking,
        admitted: Option<Admitted>,
        change: CookieChange,
    ) -> Self {
        let (data, session) = SessionData::begin_with(&site.registry, asking, admitted, change);
        Self { site: Arc::clone(site), data, session, upgrade: false, without_store: false }
    }

    /// The session that was let in, and a note that the response depends on it.
    pub(crate) fn admitted(&self) -> Option<&Snapshot> {
        self.data.mark_read();
        self.data.initial().map(Admitted::snapshot)
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.site.registry
    }

    /// Whether the user of `snapshot` was authenticated recently enough, and in this very session.
    pub(crate) fn is_recent(&self, snapshot: &Snapshot) -> bool {
        let fixed = snapshot.fixed();
        !self.upgrade
            && !self.without_store
            && !self.context_changed(snapshot)
            && fixed.strength > Strength::Remembered
            && self.data.asking.now.since(fixed.authenticated_at) < self.site.recent
    }

    /// Whether the client is, or was since the last authentication, on another network or platform.
    pub(crate) fn context_changed(&self, snapshot: &Snapshot) -> bool {
        snapshot.fixed().context_changed || self.data.asking.context_changed
    }

    /// Resolves when the session ends: by revocation at once, by timeout within a second.
    pub(crate) fn ended(&self, snapshot: &Snapshot) -> impl Future<Output = ()> + Send + 'static + use<> {
        let registry = Arc::clone(&self.site.registry);
        let stored_id = *snapshot.stored_id();
        let fixed = snapshot.fixed();
        // Its row is looked at as often as its cookie would have to renew: it may have been given another end or another id.
        let fresh = registry.timeouts.fresh;
        let mut look_at = fixed.minted_at + fresh;
        let epoch = fixed.epoch;
        let subject = snapshot.subject().map(|subject| (registry.vault.subject_key(subject), epoch));
        let mut ended = registry.revocations.watch(&stored_id, fixed.authenticated_at, subject);
        async move {
            loop {
                if *ended.borrow_and_update() {
                    return;
                }
                let told = tokio::time::timeout(LOOK, ended.changed()).await;
                if matches!(told, Ok(Err(_))) {
                    return;
                }
                if registry.now() < look_at {
                    continue;
                }
                // Other requests may have renewed it meanwhile; a store that does not answer ends nothing.
                match registry.load(&stored_id).await {
                    Ok(Some((row, _))) if row.superseded_at.is_none() => {
                        look_at = (registry.now() + fresh).min(row.deadline);
                    }
                    Ok(_) => return,
                    Err(_) => {}
                }
            }
        }
    }
}

/// How often a socket's deadline is looked at; by the layer's own clock, so that a test can move it.
const LOOK: Duration = Duration::from_secs(1);
