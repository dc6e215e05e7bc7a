//! The Domain attribute: which host may share its cookies with which domain (RFC 6265bis §5.7).
//!
//! The public suffix list is compiled in (crate `psl`, ICANN and private sections); nothing is fetched at run time.

use std::fmt;

use super::origin::{Origin, is_address, is_name};

/// A domain that may stand in a Domain attribute of a given origin's cookies.
///
/// Every host below it sees those cookies and can overwrite them; without a domain a cookie belongs to its host alone,
/// which is the better choice wherever it will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieDomain(String);

/// Why a domain may not stand in a Domain attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DomainError {
    /// Not a lower-case host name of A-labels: a dot at an end, a wildcard, a port, capitals, non-ASCII.
    NotAName,
    /// The origin's host is an IP address, which has no domain above it.
    HostIsAddress,
    /// A public suffix (`com`, `co.uk`, `github.io`) or a single label: strangers live below it.
    PublicSuffix,
    /// The origin's host is neither the domain nor below it; browsers would drop the cookie.
    DoesNotCoverHost,
}

impl CookieDomain {
    /// Checks `domain` for cookies of `origin`.
    ///
    /// # Errors
    /// If browsers would drop the cookie, ignore the attribute, or share the cookie with strangers.
    pub fn new(domain: &str, origin: &Origin) -> Result<Self, DomainError> {
        if is_address(origin.host()) {
            return Err(DomainError::HostIsAddress);
        }
        if !is_name(domain) {
            return Err(DomainError::NotAName);
        }
        if registrable(domain).is_none() {
            return Err(DomainError::PublicSuffix);
        }
        let covers =
            origin.host().strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if covers { Ok(Self(domain.into())) } else { Err(DomainError::DoesNotCoverHost) }
    }

    /// Whether it is a whole site: a public suffix and one label more, and nothing below it.
    pub(crate) fn is_registrable(&self) -> bool {
        registrable(&self.0) == Some(self.0.as_str())
    }

    /// The domain as it stands in the attribute.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAName => "it is not a lower-case host name (A-labels, no dot at its ends, no port)",
            Self::HostIsAddress => "the origin is an IP address",
            Self::PublicSuffix => "it is a public suffix: strangers live below it",
            Self::DoesNotCoverHost => "it does not cover the origin's host",
        })
    }
}

impl std::error::Error for DomainError {}

/// The registrable domain of `host`: its public suffix and one label more. `None` for a public suffix itself, for a
/// single label, and for what is no name in lower case.
fn registrable(host: &str) -> Option<&str> {
    // The list takes capitals, a leading dot and IP addresses for names, so those are sorted out before it is asked.
    if !is_name(host) || !host.contains('.') {
        return None;
    }
    psl::domain_str(host)
}

#[cfg(test)]
#[path = "../../tests/vectors/psl.rs"]
mod vectors;
