//! The names of the rules for cookies that leave the application, and what to do about each.

use std::fmt;

/// A rule for cookies that leave the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CookieRule {
    /// `Secure` is stated, or the cookie goes out over plain HTTP too.
    Secure,
    /// `HttpOnly` is stated, or every script of the page reads the cookie (ASVS 3.3.4).
    HttpOnly,
    /// `SameSite` is stated and is `Strict` or `Lax`. Unstated, some browsers send the cookie on cross-site POSTs for two
    /// minutes and others always (attack A33). An exception permits `None`, for a cookie of an embedded page.
    SameSite,
    /// `Path` is stated and is one that a URL can have.
    Path,
    /// `Domain` covers the site's host, is no public suffix, and is written in lower case without a dot in front.
    Domain,
    /// What the name's prefix promises holds: `__Secure-`, `__Host-`, `__Http-`, `__Host-Http-`.
    Prefix,
    /// The name is a token (RFC 9110 §5.6.2), does not begin with `$`, and is no prefix in other letters.
    Name,
    /// The value holds no space, quote, comma, semicolon, backslash, control character or non-ASCII byte.
    Value,
    /// No control character stands anywhere: browsers ignore the whole line.
    Control,
    /// The lifetime is a number of seconds or a date in the one form of RFC 9110, and at most 400 days.
    Lifetime,
    /// Name and value have at most 4096 bytes, the whole line fewer than 4096, an attribute at most 1024.
    Size,
    /// No attribute stands twice.
    Attribute,
    /// `Partitioned` belongs to `SameSite=None` and to one host.
    Partitioned,
    /// One response sets a name once.
    Repeated,
    /// The response is not one whose cookies browsers drop: to a request that another site's page made for a part of itself.
    CrossSite,
    /// The name is not one of the session's own cookies.
    Reserved,
}

impl CookieRule {
    /// What to do about it, in one sentence.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Secure => "state Secure",
            Self::HttpOnly => {
                "state HttpOnly, or .except(name, CookieRule::HttpOnly, why) for a cookie that scripts read"
            }
            Self::SameSite => {
                "state SameSite=Lax or Strict, or .except(name, CookieRule::SameSite, why) for one of an embedded page"
            }
            Self::Path => "state Path, beginning with / and escaped as in a URL",
            Self::Domain => "leave Domain out, or name a registrable domain that the host is in",
            Self::Prefix => {
                "give the cookie what its prefix promises (Secure, Path=/ and no Domain for __Host-), or another name"
            }
            Self::Name => "use letters, digits, - and _, and no prefix in other letters",
            Self::Value => "encode the value, for example as base64url",
            Self::Control => "leave control characters out",
            Self::Lifetime => "state Max-Age in seconds, at most 34560000",
            Self::Size => "keep the data on the server, for example in the session",
            Self::Attribute => "state each attribute once",
            Self::Partitioned => "state SameSite=None and no Domain with Partitioned",
            Self::Repeated => "set each name once in a response",
            Self::CrossSite => "set the cookie when the site's own page is visited",
            Self::Reserved => "leave the session's cookies to Auth and Session, and use another name",
        }
    }
}

impl CookieRule {
    /// Whether a site may except one of its cookies: what is left would be refused by browsers, or pass for another cookie.
    pub(super) const fn may_be_excepted(self) -> bool {
        !matches!(
            self,
            Self::Name | Self::Control | Self::Prefix | Self::Reserved | Self::Domain | Self::Size
        )
    }
}

impl fmt::Display for CookieRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secure => "Secure",
            Self::HttpOnly => "HttpOnly",
            Self::SameSite => "SameSite",
            Self::Path => "Path",
            Self::Domain => "Domain",
            Self::Prefix => "name prefix",
            Self::Name => "name",
            Self::Value => "value",
            Self::Control => "control character",
            Self::Lifetime => "lifetime",
            Self::Size => "size",
            Self::Attribute => "repeated attribute",
            Self::Partitioned => "Partitioned",
            Self::Repeated => "repeated name",
            Self::CrossSite => "cross-site response",
            Self::Reserved => "reserved name",
        })
    }
}
