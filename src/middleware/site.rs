//! What all requests of one layer share.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use http::{Extensions, HeaderValue};

use crate::{
    clock::Timestamp,
    cookie::{Origin, SameSite, Scope, SetCookie, SetCookieError},
    crypto::KeyRing,
    store::Registry,
};

/// Finds the client's address in what the server put into a request's extensions.
pub(super) type ClientAddress = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;

/// One site: its sessions, and the cookies that carry them.
pub(super) struct Site {
    pub(super) registry: Arc<Registry>,
    pub(super) cookies: SiteCookies,
    pub(super) client_address: Option<ClientAddress>,
    pub(super) recent: Duration,
    pub(super) keys: KeyRing,
}

/// The two cookies of a site.
#[derive(Debug, Clone)]
pub(super) struct SiteCookies {
    session: SetCookie,
    renewal: SetCookie,
    scope: Scope,
    same_site: SameSite,
}

impl SiteCookies {
    pub(super) fn new(scope: Scope, same_site: SameSite) -> Result<Self, SetCookieError> {
        let cookie = |base| SetCookie::new(base, scope.clone(), same_site, "");
        Ok(Self { session: cookie(SESSION)?, renewal: cookie(RENEWAL)?, scope, same_site })
    }

    /// The names of the session cookie and the renewal token.
    pub(super) fn names(&self) -> [&str; 2] {
        [self.session.name(), self.renewal.name()]
    }

    /// The line that sets the session cookie.
    pub(super) fn set_session(&self, value: &str, max_age: Duration) -> Option<HeaderValue> {
        self.set(SESSION, value, max_age)
    }

    /// The line that sets the renewal token.
    pub(super) fn set_renewal(&self, value: &str, max_age: Duration) -> Option<HeaderValue> {
        self.set(RENEWAL, value, max_age)
    }

    /// The lines that remove both.
    pub(super) fn removals(&self) -> impl Iterator<Item = HeaderValue> {
        [&self.session, &self.renewal].into_iter().filter_map(|cookie| line(&cookie.removal()))
    }

    fn set(&self, base: &str, value: &str, max_age: Duration) -> Option<HeaderValue> {
        let cookie = SetCookie::new(base, self.scope.clone(), self.same_site, value).ok()?;
        line(&cookie.max_age(max_age).ok()?)
    }
}

/// A line is a credential, so it is marked sensitive: HTTP/2 keeps it out of its compression tables and `Debug` mute.
fn line(cookie: &SetCookie) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&cookie.to_string()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Site {
    /// How long a browser is to keep the cookies of a session that ends at `ends_at`.
    pub(super) fn max_age(&self, ends_at: Timestamp) -> Duration {
        let left = ends_at.since(self.registry.now());
        // Rounded up: a cookie that goes a second before its session would be one more way to be signed out.
        Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0)).min(MAX_AGE)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("cookies", &self.cookies.names()).finish_non_exhaustive()
    }
}

/// Browsers keep no cookie longer; a clock that stepped back must not make it longer.
const MAX_AGE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The base names: generic, so that they tell nothing of what runs here (OWASP Session Management: session id name).
pub(super) const SESSION: &str = "session";
pub(super) const RENEWAL: &str = "renewal";

/// The scope of the cookies of `origin`.
pub(super) fn default_scope(origin: &Origin) -> Scope {
    if origin.is_secure() { Scope::HostHttp } else { Scope::Localhost }
}
