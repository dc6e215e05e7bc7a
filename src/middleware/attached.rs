//! What a request carries on its way to the handler. Extractors read it; `account` acts on it.

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use http::HeaderMap;
use tower_sessions_core::Session;

use super::{
    sealed_cookies::{Arrived, Holder},
    site::Site,
};
use crate::{
    crypto::{random, random::RandomError},
    events::SessionEvent,
    session::{Admitted, ContextRelation, Snapshot, Strength, is_form_token_for, masked_form_token},
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
    /// The application's sealed cookies as they came.
    pub(super) arrived: Option<Arc<[Arrived]>>,
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
        Self { site: Arc::clone(site), data, session, upgrade: false, without_store: false, arrived: None }
    }

    /// Opens the application's sealed cookies, so that the handler sees what it had set.
    pub(super) fn open_sealed(&mut self, headers: &mut HeaderMap) {
        let registry = self.registry();
        let signed_in = self.data.initial().map(Admitted::snapshot).filter(|snapshot| snapshot.has_subject());
        let session = signed_in.map(|snapshot| registry.session_ref(snapshot.stored_id()));
        let holder = Holder { session, now: self.data.asking.now };
        // A request that did not come to this site sees none of them.
        let is_here = self.data.asking.misplaced.is_none();
        let arrived = self.site.sealed.open(headers, holder, is_here, |event| registry.event(event));
        self.arrived = (!arrived.is_empty()).then(|| arrived.into());
    }

    /// The session that was let in, and a note that the response depends on it.
    pub(crate) fn admitted(&self) -> Option<&Snapshot> {
        self.data.mark_read();
        self.data.initial().map(Admitted::snapshot)
    }

    /// The client's address.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.data.asking.address.shown().copied()
    }

    /// How the client relates to the one its session is bound to.
    pub(crate) fn relation(&self) -> ContextRelation {
        self.data.mark_read();
        self.data.asking.relation
    }

    /// A token for a form of the session as it is now, masked anew.
    pub(crate) fn form_token(&self) -> Result<String, RandomError> {
        self.data.mark_read();
        let current = self.data.current();
        let tag = self.registry().vault.form_tag(current.as_ref().map(|current| current.stored_id()));
        let mask = random::bytes().inspect_err(|_| self.registry().event(SessionEvent::NoRandomness))?;
        Ok(masked_form_token(&tag, &mask))
    }

    /// Whether `token` is one of the session that the request came with.
    pub(crate) fn accepts_form_token(&self, token: &[u8]) -> bool {
        let registry = self.registry();
        let tag =
            registry.vault.form_tag(self.data.initial().map(|admitted| admitted.snapshot().stored_id()));
        let is_right = is_form_token_for(token, &tag);
        if !is_right {
            self.refuse_form();
        }
        is_right
    }

    /// Tells of a form whose token is missing or wrong.
    pub(crate) fn refuse_form(&self) {
        self.registry().event(SessionEvent::FormTokenRefused);
    }

    /// Whether the site does not ask where a request by `method` to this route comes from.
    #[cfg(feature = "axum")]
    pub(crate) fn is_bypassed(&self, method: &http::Method) -> bool {
        let path = self.data.asking.path.as_ref().map_or("/", |path| path.path());
        self.site.cross_site.bypasses(method, path)
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

    /// Whether the device of `snapshot`'s session has proven itself recently enough. If not, and it could, the response is to make
    /// it.
    pub(crate) fn has_recent_proof(&self, snapshot: &Snapshot) -> bool {
        let is_recent = self.data.asking.now.since(snapshot.fixed().minted_at) < self.site.recent_proof;
        if !is_recent {
            self.data.want_proof();
        }
        is_recent
    }

    /// Whether the client is, or was since the last authentication, on another network or platform.
    pub(crate) fn context_changed(&self, snapshot: &Snapshot) -> bool {
        snapshot.fixed().context_changed || matches!(self.data.asking.relation, ContextRelation::Changed(_))
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
