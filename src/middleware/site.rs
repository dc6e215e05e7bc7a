//! What all requests of one layer share.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    cross_site::CrossSite, device::Devices, fields, manners::Manners, place::Network,
    sealed_cookies::SealedCookies, told::Told,
};
use crate::{
    clock::Timestamp,
    cookie::{CookiePolicy, Found, Origin, SameSite, Scope, SetCookie, SetCookieError, find},
    crypto::KeyRing,
    session::{BindingPolicy, Seen, hints, proxy_header},
    store::{Extras, Registry, SetCookies},
};

/// One site: its sessions, and the cookies that carry them.
pub(super) struct Site {
    pub(super) registry: Arc<Registry>,
    pub(super) origin: Origin,
    pub(super) cookies: SiteCookies,
    pub(super) policy: CookiePolicy,
    pub(super) sealed: SealedCookies,
    pub(super) cross_site: CrossSite,
    pub(super) network: Network,
    pub(super) binding: BindingPolicy,
    pub(super) manners: Manners,
    /// What device-bound sessions need, where sessions are bound.
    pub(super) devices: Option<Devices>,
    pub(super) told: Told,
    /// Routes whose requests are no activity of the user.
    pub(super) polling: Vec<String>,
    /// Whether a link of another site, which no Strict cookie comes with, is to load again.
    pub(super) first_party_links: bool,
    pub(super) recent: Duration,
    pub(super) recent_proof: Duration,
    pub(super) keys: KeyRing,
}

/// The two cookies of a site.
#[derive(Debug, Clone)]
pub(super) struct SiteCookies {
    session: SetCookie,
    renewal: SetCookie,
    /// The session cookie as it is called where sessions are bound, or are not: whichever this site does not do.
    other_session: Option<SetCookie>,
}

impl SiteCookies {
    /// Where sessions are `bound` to devices, the session cookie is one that browsers can refresh: Chromium 156 takes no name
    /// that begins with `__Host-Http-` for that, and gives no reason.
    pub(super) fn new(scope: Scope, same_site: SameSite, bound: bool) -> Result<Self, SetCookieError> {
        let session_scope = match &scope {
            Scope::HostHttp if bound => Scope::Host,
            other => other.clone(),
        };
        let other_scope = match &scope {
            Scope::HostHttp => Some(if bound { Scope::HostHttp } else { Scope::Host }),
            _ => None,
        };
        let other_session =
            other_scope.map(|scope| SetCookie::new(SESSION, scope, same_site, "")).transpose()?;
        let session = SetCookie::new(SESSION, session_scope, same_site, "")?;
        let renewal = SetCookie::new(RENEWAL, scope, same_site, "")?;
        Ok(Self { session, renewal, other_session })
    }

    /// The session cookie, but for its value and lifetime.
    pub(super) const fn session(&self) -> &SetCookie {
        &self.session
    }

    /// The names of the session cookie and the renewal token.
    pub(super) fn names(&self) -> [&str; 2] {
        [self.session.name(), self.renewal.name()]
    }

    /// The lines that remove both.
    pub(super) fn removals(&self) -> impl Iterator<Item = HeaderValue> {
        [&self.session, &self.renewal].into_iter().filter_map(|cookie| line(&cookie.removal()))
    }

    /// The line that removes a session cookie from before sessions were bound, or since they are not any more, if such a one is
    /// among `cookies`: it would stay beside ours for as long as a session lasts.
    pub(super) fn removal_of_other<'a>(
        &self,
        cookies: impl Iterator<Item = &'a [u8]>,
    ) -> Option<HeaderValue> {
        let other = self.other_session.as_ref()?;
        let [found] = find(cookies, [other.name()]);
        if found == Found::Nothing { None } else { line(&other.removal()) }
    }

    /// The line that removes the session cookie alone.
    pub(super) fn session_removal(&self) -> Option<HeaderValue> {
        line(&self.session.removal())
    }
}

/// The line that sets `cookie` to a value.
fn set(cookie: &SetCookie, value: &str, max_age: Duration) -> Option<HeaderValue> {
    line(&cookie.with_value(value).ok()?.max_age(max_age).ok()?)
}

/// A line is a credential, so it is marked sensitive: HTTP/2 keeps it out of its compression tables and `Debug` mute.
fn line(cookie: &SetCookie) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&cookie.to_string()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Site {
    /// What this site looks at of a client beside its name and address.
    pub(super) fn extras(
        &self,
        headers: &HeaderMap,
        is_upgrade: bool,
        is_trusted: bool,
    ) -> Option<Box<Extras>> {
        let looks_at_hints = self.binding.looks_at_hints();
        if self.network.network_of.is_none() && self.network.context_header.is_none() && !looks_at_hints {
            return None;
        }
        let hint = |name| fields::only(headers, name).unwrap_or_default();
        let hints = match headers.contains_key(&SEC_CH_UA_PLATFORM) {
            // Chromium sends none with a socket's handshake.
            _ if !looks_at_hints || is_upgrade => Seen::NotLooked,
            false => Seen::Missing,
            true => Seen::Shown(hints(hint(&SEC_CH_UA), hint(&SEC_CH_UA_PLATFORM), hint(&SEC_CH_UA_MOBILE))),
        };
        let header = match &self.network.context_header {
            None => Seen::NotLooked,
            Some(name) => {
                let value = if is_trusted { fields::only(headers, name) } else { None };
                value.map_or(Seen::Missing, |value| Seen::Shown(proxy_header(value).into_owned()))
            }
        };
        Some(Box::new(Extras { network_of: self.network.network_of.clone(), hints, header }))
    }

    /// The lines that set what was issued.
    pub(super) fn set_lines(&self, cookies: &SetCookies) -> impl Iterator<Item = HeaderValue> {
        let session = set(&self.cookies.session, &cookies.cookie, self.max_age(cookies.cookie_until));
        let token = cookies.token.as_deref();
        let renewal =
            token.and_then(|token| set(&self.cookies.renewal, token, self.max_age(cookies.token_until)));
        session.into_iter().chain(renewal)
    }

    /// How long a browser is to keep a cookie that is good until then.
    fn max_age(&self, until: Timestamp) -> Duration {
        let left = until.since(self.registry.now());
        // Rounded up: a cookie that goes a second before its session would be one more way to be signed out.
        let whole = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        // Zero would remove it.
        Duration::from_secs(whole.max(1)).min(MAX_AGE)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("cookies", &self.cookies.names()).finish_non_exhaustive()
    }
}

static SEC_CH_UA: HeaderName = HeaderName::from_static("sec-ch-ua");
static SEC_CH_UA_MOBILE: HeaderName = HeaderName::from_static("sec-ch-ua-mobile");
static SEC_CH_UA_PLATFORM: HeaderName = HeaderName::from_static("sec-ch-ua-platform");

/// Browsers keep no cookie longer; a clock that stepped back must not make it longer.
const MAX_AGE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The base names: generic, so that they tell nothing of what runs here (OWASP Session Management: session id name).
pub(super) const SESSION: &str = "session";
pub(super) const RENEWAL: &str = "renewal";

/// The scope of the cookies of `origin`.
pub(super) fn default_scope(origin: &Origin) -> Scope {
    if origin.is_secure() { Scope::HostHttp } else { Scope::Localhost }
}
