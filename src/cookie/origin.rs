//! The one origin a layer serves: `https://host` or `https://host:port`, and `http://localhost` for development.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// An origin in its one canonical spelling (RFC 6454 §6.2): scheme, lower-case host, port if it is not the scheme's own.
///
/// `http` is possible for the local machine only, and only the development mode takes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    text: String,
    host: String,
    secure: bool,
}

/// Why a text is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginError {
    /// It does not begin with `https://` (or `http://` for the local machine).
    Scheme,
    /// It has a path, a query, a fragment or a user name.
    MoreThanOrigin,
    /// The host is empty, not lower-case ASCII, or no host name or IP address.
    Host,
    /// The port is no number from 1 to 65535, or the scheme's own written out.
    Port,
    /// `http` for a host that is not the local machine.
    InsecureHost,
}

impl Origin {
    /// Reads an origin; nothing is normalised, so that what is configured is what is compared.
    ///
    /// # Errors
    /// If it is not in canonical spelling.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let (secure, authority) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(OriginError::Scheme),
        };
        if authority.contains(['/', '?', '#', '@', '\\']) {
            return Err(OriginError::MoreThanOrigin);
        }
        let (host, port) = split_port(authority)?;
        if let Some(port) = port {
            let plain = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
            let number: u16 = port.parse().ok().filter(|_| plain).ok_or(OriginError::Port)?;
            if number == if secure { 443 } else { 80 } {
                return Err(OriginError::Port);
            }
        }
        if !is_host(host) {
            return Err(OriginError::Host);
        }
        if !secure && !is_local(host) {
            return Err(OriginError::InsecureHost);
        }
        Ok(Self { text: text.into(), host: host.into(), secure })
    }

    /// The origin as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, without the port; an IPv6 address keeps its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Host and port, as a Host field states them.
    pub(crate) fn authority(&self) -> &str {
        let scheme = if self.secure { "https://" } else { "http://" };
        self.text.get(scheme.len()..).unwrap_or_default()
    }

    /// Whether it states a port.
    pub(crate) fn has_port(&self) -> bool {
        self.authority().len() > self.host.len()
    }

    /// The origin of another host with the same scheme and port.
    pub(crate) fn with_host(&self, host: &str) -> String {
        let port = self.authority().get(self.host.len()..).unwrap_or_default();
        format!("{}://{host}{port}", if self.secure { "https" } else { "http" })
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "it does not begin with https://",
            Self::MoreThanOrigin => "it is more than scheme, host and port",
            Self::Host => "its host is not a lower-case host name (A-labels) or an IP address",
            Self::Port => {
                "its port is not a number from 1 to 65535, or is the scheme's own and must be left out"
            }
            Self::InsecureHost => "http is for localhost only",
        })
    }
}

impl std::error::Error for OriginError {}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), OriginError> {
    if authority.starts_with('[') {
        let (address, rest) = authority.split_once(']').ok_or(OriginError::Host)?;
        let host = authority.get(..address.len() + 1).ok_or(OriginError::Host)?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(OriginError::Host),
        };
    }
    Ok(authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))))
}

/// Whether `host` is an address in canonical spelling.
pub(super) fn is_address(host: &str) -> bool {
    let v6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    v6.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok_and(|ip| ip.to_string() == text))
        || host.parse::<Ipv4Addr>().is_ok()
}

/// Whether `host` is a name: labels of letters, digits and inner hyphens (RFC 1123 §2.1), lower case, no dot at an end,
/// and not something that a URL parser reads as a number.
pub(super) fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last_is_number = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x"));
    host.len() <= 253 && host.split('.').all(label) && !last_is_number
}

fn is_host(host: &str) -> bool {
    is_name(host) || is_address(host)
}

/// The local machine, as browsers see it: `localhost`, names below it, 127.0.0.0/8 and [::1].
fn is_local(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_spellings_and_no_others() {
        for good in [
            "https://app.example.com",
            "https://app.example.com:8443",
            "https://192.0.2.1",
            "https://[2001:db8::1]",
            "https://[::1]:3000",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "http://[::1]",
            "http://a.localhost",
            "https://xn--exmple-cua.com",
            "https://localhost",
        ] {
            let origin = Origin::parse(good).unwrap();
            assert_eq!((origin.as_str(), origin.to_string().as_str()), (good, good));
            assert_eq!(origin.is_secure(), good.starts_with("https"));
            assert!(
                !origin.host().is_empty() && good.contains(origin.host()) && !origin.host().ends_with("000")
            );
        }
        for (bad, error) in [
            ("app.example.com", OriginError::Scheme),
            ("HTTPS://app.example.com", OriginError::Scheme),
            ("ftp://app.example.com", OriginError::Scheme),
            ("null", OriginError::Scheme),
            ("https://app.example.com/", OriginError::MoreThanOrigin),
            ("https://evil@app.example.com", OriginError::MoreThanOrigin),
            ("https://app.example.com?x", OriginError::MoreThanOrigin),
            ("https://App.example.com", OriginError::Host),
            ("https://", OriginError::Host),
            ("https://example..com", OriginError::Host),
            ("https://example.com.", OriginError::Host),
            ("https://exämple.com", OriginError::Host),
            ("https://1.2.3", OriginError::Host),
            ("https://[::1", OriginError::Host),
            ("https://[0:0::1]", OriginError::Host),
            ("https://[::1]a", OriginError::Host),
            ("https://a b.com", OriginError::Host),
            ("https://-a.com", OriginError::Host),
            ("https://example.com:443", OriginError::Port),
            ("http://localhost:80", OriginError::Port),
            ("https://example.com:", OriginError::Port),
            ("https://example.com:99999", OriginError::Port),
            ("https://example.com:080", OriginError::Port),
            ("https://example.com:0", OriginError::Port),
            ("https://example.com:+1", OriginError::Port),
            ("http://app.example.com", OriginError::InsecureHost),
            ("http://192.168.1.10", OriginError::InsecureHost),
            ("http://localhost.evil.com", OriginError::InsecureHost),
        ] {
            assert_eq!(Origin::parse(bad), Err(error), "{bad}");
            assert!(error.to_string().len() > 20, "{error:?} says why");
        }
    }
}
