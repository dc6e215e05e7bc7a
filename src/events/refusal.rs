//! Why a request is not let through, or not taken for one of the site, with the likely cause.

/// Why a request is not one to this site, with what is probably the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misplaced {
    /// Its Host is another one.
    Host,
    /// A proxy says that it came over plain HTTP.
    Scheme,
}

impl Misplaced {
    /// The likely cause and what to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Host => {
                "the Host is not the origin's: the origin is configured wrong, the site is opened under another name, or the \
                 proxy in front replaces Host (nginx: proxy_set_header Host $host)"
            }
            Self::Scheme => {
                "the nearest proxy says http: redirect to https there, or let it state the scheme its client used (nginx: \
                 proxy_set_header X-Forwarded-Proto $scheme)"
            }
        }
    }
}

/// Who did not say which client a request is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownAddress {
    /// The server: it put no address into the request's extensions.
    Peer,
    /// A trusted proxy: its header is missing or cannot be read.
    Proxy,
}

impl UnknownAddress {
    /// The likely cause and what to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Peer => {
                "the server gives no peer address: serve with into_make_service_with_connect_info::<SocketAddr>(), or leave \
                 peer_address() out; behind a Unix socket give the proxy's own address there"
            }
            Self::Proxy => {
                "the proxy's header is missing or cannot be read: let it append to the header that client_ip_header() names"
            }
        }
    }
}

/// Why a request was taken for another site's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CrossSiteReason {
    /// Its Origin is another one, or it has several.
    ForeignOrigin,
    /// Its Origin is `null`, and nothing says that it comes from the site itself.
    NullOrigin,
    /// It has no Origin, and its Sec-Fetch-Site is not `same-origin`.
    FetchMetadata,
    /// It carries the session's cookies and says nothing of where it comes from.
    NothingSaid,
}

impl CrossSiteReason {
    /// The likely cause, if the request was an honest one, and what to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::ForeignOrigin => {
                "its Origin is another one. If it is yours: trust_origin() for a site of yours, bypass() for a route that other \
                 servers post to, or open the site under its own origin"
            }
            Self::NullOrigin => {
                "its Origin is `null` and its Sec-Fetch-Site not same-origin: a sandboxed frame, or a redirect from elsewhere"
            }
            Self::FetchMetadata => "it has no Origin, and its Sec-Fetch-Site is not same-origin",
            Self::NothingSaid => {
                "it has the session's cookies but neither Origin nor Sec-Fetch-Site: a program should send the site's Origin, \
                 and a proxy must not strip it"
            }
        }
    }
}
