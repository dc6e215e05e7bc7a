//! Whether a request came to the site at all: under its host, over https; and from which client.

use std::{fmt, net::IpAddr, sync::Arc};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Uri};

use super::{client_address::TrustedProxies, fields};
use crate::{
    cookie::Origin,
    events::Misplaced,
    session::{NetworkOf, Seen},
    store::Fields,
};

/// Finds the address of the socket's other end in what the server put into a request's extensions.
pub(super) type PeerAddress = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;

/// How requests reach the site.
#[derive(Clone, Default)]
pub(super) struct Network {
    pub(super) peer_address: Option<PeerAddress>,
    pub(super) proxies: Option<TrustedProxies>,
    pub(super) network_of: Option<Arc<NetworkOf>>,
    /// A header of a trusted proxy that is part of the client's context.
    pub(super) context_header: Option<HeaderName>,
}

impl Network {
    /// The client's address, and whether the peer is a proxy whose word counts.
    pub(super) fn client(&self, headers: &HeaderMap, extensions: &Extensions) -> (Seen<IpAddr>, bool) {
        let Some(find) = &self.peer_address else { return (Seen::NotLooked, false) };
        let Some(peer) = find(extensions) else { return (Seen::Missing, false) };
        match &self.proxies {
            Some(proxies) if proxies.trust(peer) => {
                (proxies.client(headers).map_or(Seen::Missing, Seen::Shown), true)
            }
            _ => (Seen::Shown(peer), false),
        }
    }
}

/// Whether a request is one to the site at `origin`. What a proxy that is not trusted says counts only against it.
pub(super) fn misplaced(
    origin: &Origin,
    uri: &Uri,
    headers: &HeaderMap,
    named: &Fields<'_>,
    is_trusted: bool,
) -> Option<Misplaced> {
    if named.has_forwarded_proto
        && origin.is_secure()
        && fields::last(headers, &X_FORWARDED_PROTO)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http"))
    {
        return Some(Misplaced::Scheme);
    }
    let forwarded = if is_trusted { fields::last(headers, &X_FORWARDED_HOST) } else { None };
    let stated = forwarded.or_else(|| match uri.authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => named.host.map(HeaderValue::as_bytes),
    });
    // A request without a Host names no other site; browsers always send one.
    (!stated.is_none_or(|host| is_host_of(origin, host))).then_some(Misplaced::Host)
}

/// Whether `host`, as it stands in a request, is the host and port of `origin`.
fn is_host_of(origin: &Origin, host: &[u8]) -> bool {
    let own = origin.authority().as_bytes();
    if host.eq_ignore_ascii_case(own) {
        return true;
    }
    let default: &[u8] = if origin.is_secure() { b":443" } else { b":80" };
    !origin.has_port() && host.strip_suffix(default).is_some_and(|host| host.eq_ignore_ascii_case(own))
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("proxies", &self.proxies).finish_non_exhaustive()
    }
}

static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
