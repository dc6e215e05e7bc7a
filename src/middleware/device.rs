//! Whether sessions are bound to devices, and what that needs of a site.

use std::time::Duration;

use http::HeaderName;

use crate::{
    cookie::Origin,
    crypto::KeyRing,
    dbsc::{Challenges, Identifiers},
};

/// Whether sessions are bound to a key that the browser keeps and cannot give away (Device Bound Session Credentials), so that
/// a copied cookie is dead within `fresh`.
///
/// Browsers that can bind do so by themselves, after a login; the others go on as before. Mount the endpoints that they speak
/// to, see [`SessionLayer::device_endpoints`](super::SessionLayer::device_endpoints). It needs HTTPS without a certificate
/// error, and a `fresh` of more than 2 minutes: browsers refresh 2 minutes ahead.
///
/// The session cookie is then called `__Host-session`: browsers refuse to bind a `__Host-Http-` one (Chromium 156). Switching it on
/// signs nobody out: the next request renews. Switching it off, losing the endpoints, or taking a key out of the ring under which
/// a session was bound ends that session when its cookie is stale: what the browser calls it is sealed once and for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeviceBinding {
    /// No session is bound. The default: the endpoints must be mounted first.
    #[default]
    Off,
    /// Each login is offered to be bound.
    Offer,
    /// The same, and a session that is still bound to none so long after its authentication is not renewed any more. For
    /// sites whose users all have such a browser: the others must sign in again every time.
    Require(Duration),
}

impl DeviceBinding {
    /// After how long a session that is not bound renews no more.
    pub(super) const fn required_after(self) -> Option<Duration> {
        match self {
            Self::Off | Self::Offer => None,
            Self::Require(after) => Some(after),
        }
    }
}

/// What a site that binds sessions to devices has for it.
#[derive(Debug)]
pub(super) struct Devices {
    pub(super) challenges: Challenges,
    pub(super) identifiers: Identifiers,
    /// Hosts whose pages may make a browser refresh before it follows a link.
    pub(super) initiators: Vec<String>,
    /// The origin of the sessions' scope, and whether every host of the site is in it.
    pub(super) scope_origin: String,
    pub(super) includes_site: bool,
    /// Whether a script may keep the key of a session that its browser does not bind.
    pub(super) software_keys: bool,
    /// The endpoints' addresses as a browser knows them.
    pub(super) register_url: String,
    pub(super) refresh_url: String,
    pub(super) key_url: String,
}

impl Devices {
    pub(super) fn new(
        keys: &KeyRing,
        origin: &Origin,
        whole_site: Option<&str>,
        initiators: Vec<String>,
        software_keys: bool,
    ) -> Self {
        let url = |path| format!("{}{path}", origin.as_str());
        Self {
            challenges: Challenges::new(keys, origin.as_str()),
            identifiers: Identifiers::new(keys, origin.as_str()),
            initiators,
            scope_origin: whole_site
                .map_or_else(|| origin.as_str().to_owned(), |domain| origin.with_host(domain)),
            includes_site: whole_site.is_some(),
            software_keys,
            key_url: url(KEY_PATH),
            register_url: url(REGISTER_PATH),
            refresh_url: url(REFRESH_PATH),
        }
    }
}

/// Whether `pattern` is a host that browsers take for an initiator: `idp.example`, `*.partner.example`; no scheme, no port.
pub(super) fn is_initiator(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    host.len() <= 253 && host.contains('.') && host.split('.').all(label)
}

/// What is mounted at `/portcullis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A browser binds its key.
    Register,
    /// A browser refreshes its session.
    Refresh,
    /// A script does either.
    Key,
    /// The script.
    Script,
    /// The page that renews before somebody goes on.
    Page,
}

impl Endpoint {
    /// The endpoint of this path, whole or without `/portcullis`, as it is where a router has taken that off.
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path.strip_prefix(MOUNTED_AT).unwrap_or(path) {
            "/device/register" => Self::Register,
            "/device/refresh" => Self::Refresh,
            "/key" => Self::Key,
            "/keeper.js" => Self::Script,
            "/renew" => Self::Page,
            _ => return None,
        })
    }

    /// Whether the site has it.
    pub(super) fn is_of(self, devices: &Devices) -> bool {
        devices.software_keys || matches!(self, Self::Register | Self::Refresh)
    }
}

/// Whether `path`, whole, is one of the endpoints of a site with these.
pub(super) fn is_device_endpoint(devices: &Devices, path: &str) -> bool {
    path.starts_with(MOUNTED_AT) && Endpoint::of(path).is_some_and(|endpoint| endpoint.is_of(devices))
}

const MOUNTED_AT: &str = "/portcullis";

/// Endpoints' paths.
pub(super) const REGISTER_PATH: &str = "/portcullis/device/register";
pub(super) const REFRESH_PATH: &str = "/portcullis/device/refresh";
pub(super) const KEY_PATH: &str = "/portcullis/key";
pub(super) const PAGE_PATH: &str = "/portcullis/renew";

/// How long a login can be bound: long enough for a slow key store, too short for whoever finds the header later.
pub(super) const REGISTRATION_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// What remains of a session cookie when browsers begin to refresh it. With less they refresh before every request.
pub(super) const REFRESHES_AHEAD: Duration = Duration::from_secs(120);

pub(super) static SECURE_SESSION_REGISTRATION: HeaderName =
    HeaderName::from_static("secure-session-registration");
pub(super) static SECURE_SESSION_CHALLENGE: HeaderName = HeaderName::from_static("secure-session-challenge");
pub(super) static SECURE_SESSION_RESPONSE: HeaderName = HeaderName::from_static("secure-session-response");
pub(super) static SECURE_SESSION_SKIPPED: HeaderName = HeaderName::from_static("secure-session-skipped");
/// Asks for the state of a script's key; in an answer of the application's, `stale`: renew by it first.
pub(super) static PORTCULLIS_KEY: HeaderName = HeaderName::from_static("portcullis-key");
pub(super) static SEC_SECURE_SESSION_ID: HeaderName = HeaderName::from_static("sec-secure-session-id");
