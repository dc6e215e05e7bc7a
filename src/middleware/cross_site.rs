//! Requests that another site made the browser send: refused where they could change something. [`CrossSite`] has the table.
//!
//! Origin comes first because Fetch Metadata is wrong about honest windows in one browser and laundered by service workers in
//! another; `null` is what honest pages send that keep their address to themselves.

use http::{HeaderMap, HeaderName, Method, header};

use super::fields::{has_one, only};
use crate::{
    cookie::{Origin, OriginError},
    events::CrossSiteReason,
};

/// What is done with requests that another site made a browser send.
///
/// It is asked of every method but GET, HEAD and OPTIONS, and of WebSocket handshakes, with and without a session: a login is
/// forged as well as a payment (attacks A31, A32, A35; OWASP CSRF Prevention).
///
/// | Origin | Sec-Fetch-Site | |
/// |---|---|---|
/// | the site's own, or a trusted one | anything | allowed |
/// | another, or several | anything | refused |
/// | `null` or none | `same-origin` | allowed |
/// | `null` or none | anything else, or several | refused |
/// | `null` | none | refused |
/// | none | none | refused if it carries the session's cookies over https, else allowed |
///
/// Browsers send Origin with all of these; a program that uses a session's cookies sends the site's own.
///
/// ```
/// use http::Method;
/// use portcullis::middleware::CrossSite;
///
/// let cross_site = CrossSite::enforce()
///     .trust_origin("https://accounts.example.com") // its pages post to this site
///     .bypass(Method::POST, "/webhooks/payments"); // signed by the sender, and asks nobody's session
/// ```
#[derive(Debug, Clone)]
pub struct CrossSite {
    mode: Mode,
    trusted: Vec<String>,
    bypass: Vec<(Method, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Enforce,
    Report,
}

/// Why a configuration of [`CrossSite`] cannot stand.
pub(super) enum CrossSiteError {
    Origin(String, OriginError),
    Route(String),
}

impl CrossSite {
    /// Answers 403, without running the application. The default.
    #[must_use]
    pub const fn enforce() -> Self {
        Self { mode: Mode::Enforce, trusted: Vec::new(), bypass: Vec::new() }
    }

    /// Lets them through and tells of them in an event, to see what would be refused. Cookies that arrive although browsers
    /// should have withheld them still authenticate nobody.
    #[must_use]
    pub const fn report() -> Self {
        Self { mode: Mode::Report, trusted: Vec::new(), bypass: Vec::new() }
    }

    /// Trusts pages of `origin` as the site's own, in exact spelling (`https://accounts.example.com`).
    ///
    /// Its cookies still follow SameSite: the session arrives from a sibling of the same registrable domain, and not from
    /// another site.
    #[must_use]
    pub fn trust_origin(mut self, origin: impl Into<String>) -> Self {
        self.trusted.push(origin.into());
        self
    }

    /// Does not ask at one route: `method` with exactly the path `path`, as the layer sees it (inside `Router::nest` without
    /// what is nested under). For what other servers send, and for the answers of an identity provider that come as a form
    /// post. [`RequireFormToken`](crate::extract::RequireFormToken) leaves the route out too.
    #[must_use]
    pub fn bypass(mut self, method: Method, path: impl Into<String>) -> Self {
        self.bypass.push((method, path.into()));
        self
    }

    /// What is wrong with it. The local machine is trusted by a site in development only.
    pub(super) fn check(&self, in_development: bool) -> Vec<CrossSiteError> {
        let origin = |text: &String| {
            let error = match Origin::parse(text) {
                Ok(origin) if origin.is_secure() || in_development => return None,
                Ok(_) => OriginError::Scheme,
                Err(error) => error,
            };
            Some(CrossSiteError::Origin(text.clone(), error))
        };
        let route = |(_, path): &(Method, String)| {
            (!is_exact_path(path)).then(|| CrossSiteError::Route(path.clone()))
        };
        self.trusted.iter().filter_map(origin).chain(self.bypass.iter().filter_map(route)).collect()
    }

    /// Whether only an event is wanted.
    pub(super) fn reports(&self) -> bool {
        self.mode == Mode::Report
    }

    /// Whether a request is one that is asked at all.
    pub(super) fn concerns(&self, method: &Method, path: &str, is_upgrade: bool) -> bool {
        (!is_safe(method) || is_upgrade) && !self.bypasses(method, path)
    }

    pub(super) fn bypasses(&self, method: &Method, path: &str) -> bool {
        self.bypass.iter().any(|(exempt, exact)| exempt == method && exact == path)
    }

    /// Where a request that is asked comes from. `carries` says whether the session's cookies came with it.
    pub(super) fn judge(
        &self,
        own: &Origin,
        headers: &HeaderMap,
        carries: impl FnOnce() -> bool,
    ) -> Result<(), CrossSiteReason> {
        let mut origins = headers.get_all(header::ORIGIN).iter().map(|origin| origin.as_bytes());
        let is_null = match (origins.next(), origins.next()) {
            (None, _) => false,
            (Some(b"null"), None) => true,
            (Some(origin), None) if self.trusts(own, origin) => return Ok(()),
            _ => return Err(CrossSiteReason::ForeignOrigin),
        };
        if !headers.contains_key(&SEC_FETCH_SITE) {
            return match (is_null, own.is_secure() && carries()) {
                (true, _) => Err(CrossSiteReason::NullOrigin),
                (false, true) => Err(CrossSiteReason::NothingSaid),
                (false, false) => Ok(()),
            };
        }
        match (only(headers, &SEC_FETCH_SITE), is_null) {
            (Some(b"same-origin"), _) => Ok(()),
            (_, true) => Err(CrossSiteReason::NullOrigin),
            (_, false) => Err(CrossSiteReason::FetchMetadata),
        }
    }

    fn trusts(&self, own: &Origin, origin: &[u8]) -> bool {
        own.as_str().as_bytes() == origin || self.trusted.iter().any(|trusted| trusted.as_bytes() == origin)
    }

    /// Whether the browser should have withheld our cookies from this request, by SameSite and by its own word: another
    /// site's page sends a form, or asks for a part of itself. Top-level GETs are never judged: one browser calls honest
    /// windows cross-site.
    pub(super) fn withheld(&self, own: &Origin, method: &Method, headers: &HeaderMap) -> bool {
        if !has_one(headers, &SEC_FETCH_SITE, b"cross-site") {
            return false;
        }
        if !is_safe(method) {
            // The site's own Origin outweighs the word of the one browser that is wrong about noopener windows.
            return only(headers, &header::ORIGIN) != Some(own.as_str().as_bytes());
        }
        is_subresource(headers)
    }
}

/// Whether a method changes nothing. TRACE is not among them: it answers with the request.
pub(crate) const fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether `path` names one route as a URL has it.
pub(super) fn is_exact_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['*', '{', '}', '?', '#', ' '])
}

/// Whether a browser asks for a part of a page: neither a navigation, nor one of the top-level window.
pub(super) fn is_subresource(headers: &HeaderMap) -> bool {
    !has_one(headers, &SEC_FETCH_MODE, b"navigate")
        || [&b"iframe"[..], b"frame", b"embed", b"object"]
            .iter()
            .any(|dest| has_one(headers, &SEC_FETCH_DEST, dest))
}

/// Enforced.
impl Default for CrossSite {
    fn default() -> Self {
        Self::enforce()
    }
}

pub(super) static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
pub(super) static SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
pub(super) static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

#[cfg(test)]
#[path = "../../tests/vectors/csrf_decisions.rs"]
mod vectors;
