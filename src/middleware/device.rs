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
    /// The endpoints' addresses as a browser knows them.
    pub(super) register_url: String,
    pub(super) refresh_url: String,
}

impl Devices {
    pub(super) fn new(keys: &KeyRing, origin: &Origin, initiators: Vec<String>) -> Self {
        let url = |path| format!("{}{path}", origin.as_str());
        Self {
            challenges: Challenges::new(keys, origin.as_str()),
            identifiers: Identifiers::new(keys, origin.as_str()),
            initiators,
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

/// Whether `path` is one of the endpoints.
pub(super) fn is_device_endpoint(path: &str) -> bool {
    path == REGISTER_PATH || path == REFRESH_PATH
}

/// The endpoints' paths, below `/portcullis/device`, where they are to be mounted.
pub(super) const REGISTER_PATH: &str = "/portcullis/device/register";
pub(super) const REFRESH_PATH: &str = "/portcullis/device/refresh";

/// How long a login can be bound: long enough for a slow key store, too short for whoever finds the header later.
pub(super) const REGISTRATION_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// What remains of a session cookie when browsers begin to refresh it. With less they refresh before every request.
pub(super) const REFRESHES_AHEAD: Duration = Duration::from_secs(120);

pub(super) static SECURE_SESSION_REGISTRATION: HeaderName =
    HeaderName::from_static("secure-session-registration");
pub(super) static SECURE_SESSION_CHALLENGE: HeaderName = HeaderName::from_static("secure-session-challenge");
pub(super) static SECURE_SESSION_RESPONSE: HeaderName = HeaderName::from_static("secure-session-response");
pub(super) static SECURE_SESSION_SKIPPED: HeaderName = HeaderName::from_static("secure-session-skipped");
pub(super) static SEC_SECURE_SESSION_ID: HeaderName = HeaderName::from_static("sec-secure-session-id");
