//! What is configured. Required things are arguments, optional things are methods, contradictions are errors, and all
//! errors are reported at once, each with its remedy.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use http::Extensions;

use super::{
    config_error::{ConfigError, Problem},
    layer::SessionLayer,
    site::{ClientAddress, Site, SiteCookies, default_scope},
};
use crate::{
    clock::{Clock, SystemClock},
    cookie::{CookieDomain, DomainError, Origin, SameSite, Scope, SealedCookie},
    crypto::KeyRing,
    events::{EventSink, TracingSink},
    session::{RenewalTokens, Timeouts},
    store::{Outage, Registry, RegistryParts, Store, Vault},
};

/// Builds a [`SessionLayer`]. See [`SessionLayer::builder`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct SessionLayerBuilder {
    origin: String,
    keys: KeyRing,
    store: Arc<dyn Store>,
    timeouts: Timeouts,
    same_site: SameSite,
    cookie_domain: Option<String>,
    localhost: bool,
    recent: Duration,
    outage: Outage,
    sink: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    client_address: Option<ClientAddress>,
}

impl SessionLayer {
    /// Begins a layer for `origin` (as browsers show it, `https://app.example.com`), under `keys`, over `store`.
    ///
    /// ```
    /// use portcullis::{KeyRing, MemoryStore, SessionLayer};
    ///
    /// let keys = KeyRing::generate()?;
    /// let sessions = SessionLayer::builder("https://app.example.com", keys, MemoryStore::new()).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(origin: &str, keys: KeyRing, store: impl Store) -> SessionLayerBuilder {
        SessionLayerBuilder::new(origin, keys, Arc::new(store))
    }
}

impl SessionLayerBuilder {
    fn new(origin: &str, keys: KeyRing, store: Arc<dyn Store>) -> Self {
        Self {
            origin: origin.into(),
            keys,
            store,
            timeouts: Timeouts::default(),
            same_site: SameSite::Lax,
            cookie_domain: None,
            localhost: false,
            recent: DEFAULT_RECENT,
            outage: Outage::default(),
            sink: Arc::new(TracingSink::default()),
            clock: Arc::new(SystemClock::default()),
            client_address: None,
        }
    }

    /// The lifetimes. See [`Timeouts`] for the defaults and their reasons.
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The SameSite attribute of both cookies. The default is `Lax`: with `Strict`, whoever follows a link from another
    /// site arrives signed out.
    pub const fn same_site(mut self, same_site: SameSite) -> Self {
        self.same_site = same_site;
        self
    }

    /// Shares the cookies with all hosts of `domain`, under `__Secure-` names.
    ///
    /// Every host below it then sees them and can overwrite them. Without it they belong to the origin's host alone.
    pub fn cookie_domain(mut self, domain: impl Into<String>) -> Self {
        self.cookie_domain = Some(domain.into());
        self
    }

    /// How long an authentication counts as recent for `RequireRecentAuth`. The default is 5 minutes.
    pub const fn recent(mut self, recent: Duration) -> Self {
        self.recent = recent;
        self
    }

    /// What happens while the store is silent. See [`Outage`] for the defaults and their reasons.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outage = outage;
        self
    }

    /// Where events go. The default is [`TracingSink`].
    pub fn events(mut self, sink: impl EventSink) -> Self {
        self.sink = Arc::new(sink);
        self
    }

    /// The clock, for tests. Give the store the same one.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Finds the client's address in the request's extensions, so that a session notices when it moves to another
    /// network. Without it addresses are not looked at.
    ///
    /// Under `axum::serve` with `into_make_service_with_connect_info::<SocketAddr>()`:
    ///
    /// ```
    /// # use std::net::SocketAddr;
    /// # fn with(builder: portcullis::SessionLayerBuilder) -> portcullis::SessionLayerBuilder {
    /// use axum::extract::ConnectInfo;
    ///
    /// builder.client_address(|extensions| {
    ///     extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
    /// })
    /// # }
    /// ```
    ///
    /// Behind a proxy that is the proxy's own address: then leave it out, or have a middleware outside this layer put the
    /// address that a trusted proxy states into the extensions, and read it here.
    pub fn client_address(
        mut self,
        find: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.client_address = Some(Arc::new(find));
        self
    }

    /// Development on `http://localhost`: cookies without `Secure` and without a prefix, because some browsers refuse
    /// both over plain HTTP. The origin must be one of the local machine; a warning is logged.
    pub const fn danger_localhost_development(mut self) -> Self {
        self.localhost = true;
        self
    }

    /// Checks everything and builds the layer.
    ///
    /// # Errors
    /// With every problem at once, each with its remedy. Nothing half-built exists then.
    pub fn build(self) -> Result<SessionLayer, ConfigError> {
        let mut problems = Vec::new();
        let origin = self.check_origin(&mut problems);
        if let Err(errors) = self.timeouts.check() {
            problems.extend(errors.into_iter().map(|error| Problem::new("timeouts", &error, error.remedy())));
        }
        if self.recent.is_zero() {
            problems.push(Problem::new("recent", &"it is zero", "set it to some minutes; the default is 5"));
        }
        let outage = self.outage.check().into_iter();
        problems.extend(outage.map(|error| Problem::new("outage", &error, error.remedy())));
        let scope = match &origin {
            Some(origin) => self.check_scope(origin, &mut problems),
            None => {
                self.check_domain_alone(&mut problems);
                None
            }
        };
        let cookies = scope.and_then(|scope| match SiteCookies::new(scope, self.same_site) {
            Ok(cookies) => Some(cookies),
            Err(error) => {
                problems.push(Problem::new("cookies", &error, "choose a shorter domain"));
                None
            }
        });
        let (Some(origin), Some(cookies), []) = (origin, cookies, problems.as_slice()) else {
            return Err(ConfigError::of(problems));
        };
        let vault = Vault::new(&self.keys, origin.as_str());
        // Last, because it ties a new store to the ring: nothing else may be wrong by then.
        if let Err(error) = self.store.claim_index(vault.index_check()) {
            let remedy = "use the key ring this store was made with (its `index` line never changes), or an empty store";
            return Err(ConfigError::of(vec![Problem::new("store", &error, remedy)]));
        }
        if self.localhost {
            tracing::warn!(
                target: "portcullis",
                "localhost development mode: cookies without Secure and without a prefix; never use it for a real site"
            );
        }
        let [session_name, _] = cookies.names();
        let registry = Registry::new(RegistryParts {
            store: self.store,
            outage: self.outage,
            vault,
            tokens: RenewalTokens::new(&self.keys, origin.as_str()),
            cookie: SealedCookie::session(&self.keys, session_name, origin.as_str()),
            timeouts: self.timeouts,
            sink: self.sink,
            clock: self.clock,
        });
        let registry = registry.map_err(|error| {
            let fault = format!("the journal of revocations cannot be read and written: {error}");
            let remedy = "name a file in a folder that this process may write to";
            ConfigError::of(vec![Problem::new("outage", &fault, remedy)])
        })?;
        Ok(SessionLayer::new(Site {
            registry: Arc::new(registry),
            cookies,
            client_address: self.client_address,
            recent: self.recent,
            keys: self.keys,
        }))
    }

    fn check_origin(&self, problems: &mut Vec<Problem>) -> Option<Origin> {
        let origin = match Origin::parse(&self.origin) {
            Ok(origin) => origin,
            Err(error) => {
                let fault = format!("`{}`: {error}", self.origin.escape_debug());
                problems.push(Problem::new(
                    "origin",
                    &fault,
                    "write it as browsers show it: https://app.example.com",
                ));
                return None;
            }
        };
        match (origin.is_secure(), self.localhost) {
            (true, false) | (false, true) => return Some(origin),
            (false, false) => problems.push(Problem::new(
                "origin",
                &format!("`{origin}` is plain HTTP"),
                "use https, or call danger_localhost_development() while you develop",
            )),
            (true, true) => problems.push(Problem::new(
                "danger_localhost_development",
                &format!("`{origin}` is not an http origin of the local machine"),
                "leave the call out: over https cookies are Secure everywhere",
            )),
        }
        None
    }

    /// What can be said of a domain while the origin is none.
    fn check_domain_alone(&self, problems: &mut Vec<Problem>) {
        let Some(domain) = &self.cookie_domain else { return };
        let its_own = Origin::parse(&format!("https://{domain}")).map_err(|_| DomainError::NotAName);
        if let Err(error) = its_own.and_then(|origin| CookieDomain::new(domain, &origin)) {
            problems.push(Self::wrong_domain(domain, error));
        }
    }

    fn wrong_domain(domain: &str, error: DomainError) -> Problem {
        let remedy = "name a registrable domain that the origin's host is in, or leave it out";
        Problem::new("cookie_domain", &format!("`{}`: {error}", domain.escape_debug()), remedy)
    }

    fn check_scope(&self, origin: &Origin, problems: &mut Vec<Problem>) -> Option<Scope> {
        let Some(domain) = &self.cookie_domain else { return Some(default_scope(origin)) };
        if !origin.is_secure() {
            let remedy = "leave it out: cookies of the local machine are not shared";
            problems.push(Problem::new("cookie_domain", &"localhost has no domain", remedy));
            return None;
        }
        match CookieDomain::new(domain, origin) {
            Ok(domain) => Some(Scope::Secure { domain: Some(domain), path: "/".into() }),
            Err(error) => {
                problems.push(Self::wrong_domain(domain, error));
                None
            }
        }
    }
}

impl fmt::Debug for SessionLayerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLayerBuilder")
            .field("origin", &self.origin)
            .field("keys", &self.keys)
            .field("store", &self.store)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

const DEFAULT_RECENT: Duration = Duration::from_secs(5 * 60);
