//! What is configured of sessions that are bound to keys.

use std::time::Duration;

use super::{builder::SessionLayerBuilder, device::DeviceBinding};

impl SessionLayerBuilder {
    /// Whether sessions are bound to a key that the browser cannot give away. The default is [`DeviceBinding::Off`]: with any
    /// other, mount [`device_endpoints`](super::SessionLayer::device_endpoints) as well. On `http://localhost` no browser binds.
    pub const fn device_binding(mut self, binding: DeviceBinding) -> Self {
        self.device_binding = binding;
        self
    }

    /// Browsers refresh a bound session before a request to any host of the site, and pages of any host may make them: for a site
    /// whose pages on `www.example.com` call an API on this origin, `app.example.com`. It wants a
    /// [`cookie_domain`](Self::cookie_domain) that is the registrable domain, and that host, `example.com`, must serve
    /// [`device_well_known`](super::SessionLayer::device_well_known), or browsers bind nothing (unless it is this origin itself). The
    /// default is this origin alone; [`refresh_initiators`](Self::refresh_initiators) names single hosts without a domain cookie.
    pub const fn include_site(mut self) -> Self {
        self.include_site = true;
        self
    }

    /// How long a device's proof counts as recent for [`RequireRecentProof`](crate::RequireRecentProof). The default is 2 minutes:
    /// browsers sign six times in nine minutes and no more (Chromium 156), all sites of a domain together.
    pub const fn recent_proof(mut self, recent: Duration) -> Self {
        self.recent_proof = recent;
        self
    }

    /// A lower tier for browsers that bind no sessions: a script of a few kilobytes, without dependencies, keeps a P-256 key in
    /// the browser's storage, from which no script can export it, and renews the session by signing. The default is off. It needs a
    /// [`device_binding`](Self::device_binding), and this in the pages of those who are signed in:
    ///
    /// ```html
    /// <script src="/portcullis/keeper.js" defer></script>
    /// ```
    ///
    /// Such a session has [`Strength::SoftwareKey`](crate::session::Strength::SoftwareKey) and the timeouts of one that is bound to
    /// nothing. Both its token and its key are wanted to renew it, and the token is used up as ever. So a copied cookie, from a log,
    /// a proxy or a database, dies within `fresh`. What it does *not* stop: browsers keep such a key unencrypted on the disk, so
    /// whoever copies the whole profile has it (and is found out when both have renewed); a script injected into a page can have it
    /// sign. [`RequireDevice`](crate::RequireDevice) never takes it for a device.
    ///
    /// A key is bound within 5 minutes of the login or not at all, and a few seconds after it at the earliest, so that a browser that
    /// binds by itself comes first; where one does so later, its key takes the place of the script's. `fetch` and forms wait
    /// while a session is being renewed; for other requests `await portcullis.ready()`. A page that is opened when the cookie
    /// is no longer fresh arrives by `/portcullis/renew`. While nobody touches the page nothing is renewed, so `idle` holds. It asks the
    /// server when a page is loaded, for somebody with a key at most once a minute: no store call. A Content-Security-Policy of the
    /// pages must have `script-src 'self'` and `connect-src 'self'`. Switched off later, it ends such sessions when they are stale.
    pub const fn software_keys(mut self) -> Self {
        self.software_keys = true;
        self
    }

    /// Hosts whose pages may make a browser refresh a bound session before it follows a link to this site: `idp.example`,
    /// `*.partner.example`, without scheme and port. Links from all others arrive by one page more, which nobody sees.
    ///
    /// Such a host can measure whether somebody is signed in here, by the time that a link takes. Calls add up.
    pub fn refresh_initiators<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.initiators.extend(hosts.into_iter().map(Into::into));
        self
    }
}
