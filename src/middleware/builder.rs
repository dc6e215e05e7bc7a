//! What is configured. Required things are arguments, optional things are methods, contradictions are errors, and all
//! errors are reported at once, each with its remedy.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use http::Extensions;

use super::{
    cross_site::CrossSite, device::DeviceBinding, layer::SessionLayer, manners::ClearSiteData,
    place::PeerAddress,
};
use crate::{
    clock::{Clock, SystemClock},
    cookie::{CookiePolicy, SameSite},
    crypto::KeyRing,
    events::{EventSink, TracingSink},
    session::{BindingPolicy, NetworkOf, Timeouts},
    store::{Outage, Store},
};

/// Builds a [`SessionLayer`]. See [`SessionLayer::builder`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct SessionLayerBuilder {
    pub(super) origin: String,
    pub(super) keys: KeyRing,
    pub(super) store: Arc<dyn Store>,
    pub(super) timeouts: Timeouts,
    pub(super) same_site: SameSite,
    pub(super) first_party_links: bool,
    pub(super) cookie_domain: Option<String>,
    pub(super) localhost: bool,
    pub(super) recent: Duration,
    pub(super) recent_proof: Duration,
    pub(super) outage: Outage,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) policy: CookiePolicy,
    pub(super) sealed: Vec<String>,
    pub(super) cross_site: CrossSite,
    pub(super) binding: BindingPolicy,
    pub(super) peer_address: Option<PeerAddress>,
    pub(super) proxies: Vec<String>,
    pub(super) client_ip_header: Option<String>,
    pub(super) network_of: Option<Arc<NetworkOf>>,
    pub(super) context_header: Option<String>,
    pub(super) clear: Vec<ClearSiteData>,
    pub(super) no_store: bool,
    pub(super) polling: Vec<String>,
    pub(super) device_binding: DeviceBinding,
    pub(super) initiators: Vec<String>,
    pub(super) software_keys: bool,
    pub(super) include_site: bool,
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
            first_party_links: false,
            cookie_domain: None,
            localhost: false,
            recent: DEFAULT_RECENT,
            recent_proof: DEFAULT_RECENT_PROOF,
            outage: Outage::default(),
            sink: Arc::new(TracingSink::default()),
            clock: Arc::new(SystemClock::default()),
            policy: CookiePolicy::default(),
            sealed: Vec::new(),
            cross_site: CrossSite::default(),
            binding: BindingPolicy::default(),
            peer_address: None,
            proxies: Vec::new(),
            client_ip_header: None,
            network_of: None,
            context_header: None,
            clear: Vec::new(),
            no_store: false,
            polling: Vec::new(),
            device_binding: DeviceBinding::default(),
            initiators: Vec::new(),
            software_keys: false,
            include_site: false,
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

    /// With [`SameSite::Strict`](crate::cookie::SameSite) a link from another site arrives as nobody's, though its user is signed in. With this it
    /// arrives by a page more, which loads the same address again, and by then as the site's own. The default is off, because it
    /// makes of Strict what Lax is for GET: whoever gets a user to follow a link has it opened signed in. Keep it for sites whose GET
    /// changes nothing.
    pub const fn first_party_links(mut self) -> Self {
        self.first_party_links = true;
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

    /// The policy for every cookie that leaves the application. The default is [`CookiePolicy::enforce`].
    pub fn cookie_policy(mut self, policy: CookiePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Seals the application's cookie called `name` on the way out and opens it on the way in, without the application
    /// knowing: whatever jar its handlers use, the browser holds a value that nobody can read, change or move to another
    /// name or site.
    ///
    /// Its lifetime is kept inside the seal as well (for a cookie without one: `absolute`). One that was set while somebody
    /// was signed in belongs to that session: in another one, and after the logout, it is absent; one that was set while
    /// nobody was is absent once somebody is. So it is for what belongs to a visit, such as a checkout, and not for what should
    /// outlive it. It follows the session to a new id. One that does not open is absent, with an event. Sealing makes a value a third longer and adds about 150
    /// characters, so that one of about 2,800 bytes fits.
    pub fn seal_cookie(mut self, name: impl Into<String>) -> Self {
        self.sealed.push(name.into());
        self
    }

    /// What is done with requests that another site made the browser send. The default is [`CrossSite::enforce`].
    pub fn cross_site(mut self, cross_site: CrossSite) -> Self {
        self.cross_site = cross_site;
        self
    }

    /// What must stay the same about a client for its session to go on. See [`BindingPolicy`] for the default and its
    /// reasons.
    pub const fn binding(mut self, binding: BindingPolicy) -> Self {
        self.binding = binding;
        self
    }

    /// Finds the address of the socket's other end in the request's extensions, so that a session notices when it moves to
    /// another network. Without it addresses are not looked at.
    ///
    /// Under `axum::serve` with `into_make_service_with_connect_info::<SocketAddr>()`:
    ///
    /// ```
    /// # use std::net::SocketAddr;
    /// # fn with(builder: portcullis::SessionLayerBuilder) -> portcullis::SessionLayerBuilder {
    /// use axum::extract::ConnectInfo;
    ///
    /// builder.peer_address(|extensions| {
    ///     extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
    /// })
    /// # }
    /// ```
    ///
    /// Behind a proxy that is the proxy's own address: name it with [`trusted_proxies`](Self::trusted_proxies).
    pub fn peer_address(
        mut self,
        find: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.peer_address = Some(Arc::new(find));
        self
    }

    /// The addresses and networks of the proxies in front, such as `10.0.0.0/8`. What they say of the client counts: its
    /// address (the header [`client_ip_header`](Self::client_ip_header)), the Host it asked for (`X-Forwarded-Host`, where they
    /// send one). What anybody else says does not; but `X-Forwarded-Proto: http` counts against a request whoever says it.
    ///
    /// The header is read from the right: addresses of trusted proxies are passed over, the first other one is the client's,
    /// and one that cannot be read makes the address unknown. What a client writes itself stands on the left and is never
    /// reached (attack A54). The proxy must append to the header or replace it, and must replace `X-Forwarded-Proto`, and
    /// `X-Forwarded-Host` if it passes it on at all. Name the proxies and not the network that clients are in as well: a client
    /// inside it is passed over. Calls add up.
    pub fn trusted_proxies<N: Into<String>>(mut self, networks: impl IntoIterator<Item = N>) -> Self {
        self.proxies.extend(networks.into_iter().map(Into::into));
        self
    }

    /// The one header in which trusted proxies state the client's address. The default is `x-forwarded-for`; of `forwarded`
    /// (RFC 7239) `for=` is read, and neither `host=` nor `proto=`.
    pub fn client_ip_header(mut self, name: impl Into<String>) -> Self {
        self.client_ip_header = Some(name.into());
        self
    }

    /// Looks up the network that an address is in, such as its autonomous system or country, by a database of the
    /// application's own. Then another address of the same network is no change, and another network is
    /// ([`ContextSignal::Network`](crate::session::ContextSignal::Network)).
    ///
    /// It is called at login, where an address's prefix changed, and when a session follows its client (a browser that was
    /// updated, another address of the same network). It must not block.
    pub fn network_lookup(
        mut self,
        look_up: impl Fn(IpAddr) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.network_of = Some(Arc::new(look_up));
        self
    }

    /// A header of a trusted proxy that is part of the client's context: a TLS fingerprint (JA4) or the digest of a client
    /// certificate. From anybody else it counts as missing.
    pub fn context_header(mut self, name: impl Into<String>) -> Self {
        self.context_header = Some(name.into());
        self
    }

    /// What browsers clear at logout beside our cookies. The default is nothing.
    pub fn clear_site_data(mut self, what: impl IntoIterator<Item = ClearSiteData>) -> Self {
        self.clear.extend(what);
        self
    }

    /// Every response to somebody who is signed in has `Cache-Control: no-store`, whatever it says itself, so that the back
    /// button shows nothing after the logout. Without it responses whose handler looked at who it is, or that set a cookie, are
    /// kept out of caches, if they say nothing else.
    pub const fn no_store_when_signed_in(mut self) -> Self {
        self.no_store = true;
        self
    }

    /// Requests for exactly `path`, as the layer sees it, are no activity of the user, though they are signed in and renew: for a page that asks
    /// for news every few seconds, and would otherwise keep a session alive in an empty office. `idle` runs on; `absolute`
    /// holds for every route.
    pub fn polling_route(mut self, path: impl Into<String>) -> Self {
        self.polling.push(path.into());
        self
    }

    /// Development on `http://localhost`: cookies without `Secure` and without a prefix, because some browsers refuse
    /// both over plain HTTP. The origin must be one of the local machine; a warning is logged.
    pub const fn danger_localhost_development(mut self) -> Self {
        self.localhost = true;
        self
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
const DEFAULT_RECENT_PROOF: Duration = Duration::from_secs(2 * 60);
