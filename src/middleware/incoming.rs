//! A request as it comes: what it shows, and whether its cookies may count at all.

use std::{cell::Cell, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};

use super::{
    cross_site::{SEC_FETCH_DEST, SEC_FETCH_MODE, SEC_FETCH_SITE, is_safe, is_subresource},
    device::SECURE_SESSION_SKIPPED,
    fields,
    place::misplaced,
    site::Site,
};
use crate::{
    cookie::{Found, find},
    dbsc::{SkipReason, skipped},
    events::{CrossSiteReason, SessionEvent, UnknownAddress},
    id::StoredId,
    session::{Admitted, ContextDigest, ContextRelation, Opened, Seen},
    store::{Asking, Fields},
};

/// A request as it comes, being judged.
pub(super) struct Incoming<'a> {
    pub(super) site: &'a Arc<Site>,
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) asking: Asking,
    pub(super) is_upgrade: bool,
    pub(super) path: &'a str,
    /// Notes for those who come after, taken while judging.
    pub(super) relation: Cell<ContextRelation>,
    pub(super) keeps_cookies: Cell<bool>,
    pub(super) out_of_place: Cell<bool>,
    /// A session cookie that is stale, while a token is asked for a new one.
    pub(super) stale: Cell<Option<Opened>>,
    /// A session cookie that is fresh, while a token is asked to tell of the user.
    pub(super) owed: Cell<Option<Admitted>>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new<B>(site: &'a Arc<Site>, request: &'a Request<B>) -> Self {
        let (method, headers) = (request.method(), request.headers());
        let named = Fields::of(headers);
        let is_upgrade = *method == Method::CONNECT
            || (named.has_upgrade
                && *method == Method::GET
                && fields::says(headers, &header::UPGRADE, b"websocket"));
        let (address, is_trusted) = site.network.client(headers, request.extensions());
        let now = site.registry.now();
        if address == Seen::Missing && site.told.is_new(("address", is_trusted), now) {
            let by = if is_trusted { UnknownAddress::Proxy } else { UnknownAddress::Peer };
            site.registry.event(SessionEvent::ClientAddressUnknown(by));
        }
        let extras = site.extras(headers, is_upgrade, is_trusted);
        let misplaced = misplaced(&site.origin, request.uri(), headers, &named, is_trusted);
        let speculative = named.has_sec_purpose && fields::says(headers, &SEC_PURPOSE, b"prefetch");
        let has_site = named.has_sec_fetch_site;
        let mut asking = Asking::new(named, address, extras, now);
        asking.misplaced = misplaced;
        asking.path = request.uri().path_and_query().cloned();
        asking.speculative = speculative;
        asking.is_own = !has_site;
        if has_site {
            match headers.get(&SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
                Some(b"same-origin" | b"none") => asking.is_own = true,
                Some(b"cross-site") => {
                    let is_bypassed = site.cross_site.bypasses(method, request.uri().path());
                    asking.cross_site_part = is_subresource(headers) && !is_bypassed;
                }
                _ => {}
            }
        }
        Self {
            site,
            method,
            headers,
            asking,
            is_upgrade,
            path: request.uri().path(),
            relation: Cell::default(),
            keeps_cookies: Cell::new(false),
            out_of_place: Cell::new(false),
            stale: Cell::new(None),
            owed: Cell::new(None),
        }
    }

    pub(super) fn noted(mut self) -> (&'a Arc<Site>, Asking) {
        self.asking.relation = self.relation.get();
        self.asking.out_of_place = self.out_of_place.get();
        self.asking.keeps_cookies = self.keeps_cookies.get() || self.asking.misplaced.is_some();
        (self.site, self.asking)
    }

    /// Whether another site made the browser send it, where that could change something.
    pub(super) fn cross_site(&self) -> Result<(), CrossSiteReason> {
        let (site, policy) = (self.site, &self.site.cross_site);
        if !policy.concerns(self.method, self.path, self.is_upgrade) {
            return Ok(());
        }
        let carries =
            || find(self.asking.cookies(), site.cookies.names()).iter().any(|found| *found != Found::Nothing);
        policy.judge(&site.origin, self.headers, carries)
    }

    /// Whether our cookies, which came with it, must not count: it is no request to this site, or the browser should have
    /// withheld them.
    pub(super) fn is_out_of_place(&self) -> bool {
        let policy = &self.site.cross_site;
        // A route that is bypassed for GET is one that other sites may embed, or send the browser through.
        let withheld = || {
            policy.withheld(&self.site.origin, self.method, self.headers)
                && !(is_safe(self.method) && policy.bypasses(self.method, self.path))
        };
        let event = match self.asking.misplaced {
            Some(misplaced) => SessionEvent::Misplaced(misplaced),
            None if !self.asking.is_own && withheld() => SessionEvent::CookiesNotWithheld,
            None => return false,
        };
        self.site.registry.event(event);
        self.keeps_cookies.set(true);
        self.out_of_place.set(true);
        true
    }

    pub(super) fn relation_to(&self, bound: &ContextDigest) -> ContextRelation {
        let registry = &self.site.registry;
        self.asking.context().relation_to(bound, registry.vault.context_key(), &self.site.binding)
    }

    /// Notes how the client relates to its session's, and tells of it once.
    pub(super) fn note(&self, relation: ContextRelation, session: &StoredId, is_marked: bool) {
        self.relation.set(relation);
        // Another client yet is another event, though the first was told of a moment ago.
        let client = || (self.asking.address.shown(), self.asking.context().user_agent);
        if let ContextRelation::Changed(signal) | ContextRelation::Noted(signal) = relation
            && !is_marked
            && self.site.told.is_new((session, signal, client()), self.asking.now)
        {
            let registry = &self.site.registry;
            registry.event(SessionEvent::ContextChanged(registry.session_ref(session), signal));
        }
    }

    /// Whether somebody follows a link, or opens a page in another way. Browsers that do not say so (Safari before 16.4) want HTML.
    pub(super) fn is_navigation(&self) -> bool {
        let navigates = match fields::only(self.headers, &SEC_FETCH_MODE) {
            Some(mode) => mode == b"navigate",
            None => {
                !self.headers.contains_key(&SEC_FETCH_MODE)
                    && fields::only(self.headers, &header::ACCEPT)
                        .is_some_and(|types| types.starts_with(b"text/html"))
            }
        };
        *self.method == Method::GET && navigates
    }

    /// Whether a script of this site's own asks, and not a tag of a page.
    pub(super) fn is_script_s(&self) -> bool {
        self.asking.is_own && fields::has_one(self.headers, &SEC_FETCH_DEST, b"empty")
    }

    /// Why the browser could not refresh a bound session, by its own word.
    pub(super) fn skipped(&self, session: &StoredId) -> Option<SkipReason> {
        let (devices, vault) = (self.site.devices.as_ref()?, &self.site.registry.vault);
        let is_this = |identifier| {
            let bound = devices.identifiers.open(identifier);
            bound.is_some_and(|bound| vault.stored_id_of(&bound.id) == *session)
        };
        let fields = self.headers.get_all(&SECURE_SESSION_SKIPPED).iter().take(MOST_SKIPPED);
        let mut skipped = fields.flat_map(|field| skipped(field.as_bytes()).take(MOST_SKIPPED));
        skipped.find(|(_, identifier)| is_this(identifier)).map(|(reason, _)| reason)
    }

    /// Whether the route is one that pages ask by themselves.
    pub(super) fn is_polling(&self) -> bool {
        self.site.polling.iter().any(|route| route == self.path)
    }
}

/// A browser keeps few sessions for a site; each costs a decryption here.
const MOST_SKIPPED: usize = 4;

static SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
