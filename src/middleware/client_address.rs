//! The client's address: the socket's, or what trusted proxies say, read from the right.
//!
//! ```text
//! peer not trusted               the peer, whatever it sends
//! else, from right to left       trusted: go on    not readable: unknown    anything else: the client
//! ```
//!
//! One header is read, never several; all its fields count, in order. What a client writes itself stands on the left and is
//! never reached (attack A54).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr as _,
};

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

/// The proxies whose word counts, and the header they write.
#[derive(Debug, Clone)]
pub(super) struct TrustedProxies {
    networks: Vec<IpNet>,
    header: HeaderName,
}

/// Why proxies cannot be trusted as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProxyError {
    /// Not an address, nor a network in CIDR form.
    NotANetwork(String),
    /// Every address of the internet.
    Everybody(String),
    /// The header is no header name.
    Header(String),
}

impl TrustedProxies {
    pub(super) fn new(networks: &[String], header: &str) -> Result<Self, Vec<ProxyError>> {
        let (mut errors, mut parsed) = (Vec::new(), Vec::new());
        for text in networks {
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            match network {
                Ok(network) => match canonical_network(network) {
                    network if network.prefix_len() == 0 => errors.push(ProxyError::Everybody(text.clone())),
                    network => parsed.push(network),
                },
                Err(_) => errors.push(ProxyError::NotANetwork(text.clone())),
            }
        }
        match HeaderName::from_str(header) {
            Ok(header) if errors.is_empty() => return Ok(Self { networks: parsed, header }),
            Ok(_) => {}
            Err(_) => errors.push(ProxyError::Header(header.into())),
        }
        Err(errors)
    }

    /// Whether `peer` is one of them.
    pub(super) fn trust(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.networks.iter().any(|network| network.contains(&peer))
    }

    /// The client behind `peer`, which is trusted. `None` where the header does not tell: it is missing, or its first word
    /// from the right that counts cannot be read.
    pub(super) fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let is_forwarded = self.header == header::FORWARDED;
        for field in headers.get_all(&self.header).iter().rev() {
            for item in field.as_bytes().rsplit(|byte| *byte == b',') {
                let item = item.trim_ascii();
                let address = if is_forwarded { forwarded_for(item) } else { address(item) };
                let address = address.filter(|address| !address.is_unspecified())?;
                if !self.trust(address) {
                    return Some(address);
                }
            }
        }
        None
    }
}

/// The address in a `for=` of one element of a Forwarded field (RFC 7239 §4). Elements are told apart by commas alone, from
/// the right: a quote that the client left open on the left spoils nothing. An element with half a quote is one that a comma
/// inside a quote has cut, so nothing in it counts.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    if element.iter().filter(|byte| **byte == b'"').count() % 2 != 0 {
        return None;
    }
    let mut pairs = element.split(|byte| *byte == b';').filter_map(|pair| {
        let (name, value) = pair.split_at_checked(pair.iter().position(|byte| *byte == b'=')?)?;
        Some((name.trim_ascii(), value.get(1..)?.trim_ascii()))
    });
    let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case(b"for"))?;
    let quoted = value.strip_prefix(b"\"").and_then(|open| open.strip_suffix(b"\""));
    address(quoted.unwrap_or(value))
}

/// An address with or without port, brackets and zone. IPv4 inside IPv6 is IPv4.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = || text.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    let address: IpAddr = plain().or_else(with_port).or_else(|| {
        // In brackets without a port, or with a zone, which says nothing outside its own machine.
        let inner = text.strip_prefix('[').map_or(Some(text), |rest| {
            let (inner, port) = rest.split_once(']')?;
            let is_port = |port: &str| port.parse::<u16>().is_ok();
            (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(inner)
        })?;
        let name = inner.split_once('%').map_or(inner, |(name, _)| name);
        name.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    })?;
    Some(address.to_canonical())
}

/// A network of IPv4 addresses inside IPv6 as the network of IPv4 addresses that it is.
fn canonical_network(network: IpNet) -> IpNet {
    match network {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
            Some(v4) => v4_network(v4, v6.prefix_len() - 96).unwrap_or(network),
            None => network,
        },
        other => other,
    }
}

fn v4_network(address: Ipv4Addr, length: u8) -> Option<IpNet> {
    IpNet::new(address.into(), length).ok()
}

impl ProxyError {
    pub(super) const fn remedy(&self) -> &'static str {
        match self {
            Self::NotANetwork(_) => "write an address or a network, such as 10.0.0.0/8 or fd00::/8",
            Self::Everybody(_) => {
                "name the networks your proxies are in: whoever is trusted may state any address"
            }
            Self::Header(_) => {
                "name the one header that your proxy writes, such as x-forwarded-for or forwarded"
            }
        }
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANetwork(text) => write!(f, "`{}` is no address and no network", text.escape_debug()),
            Self::Everybody(text) => write!(f, "`{text}` is the whole internet"),
            Self::Header(text) => write!(f, "`{}` is no header name", text.escape_debug()),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/vectors/client_ip.rs"]
mod vectors;
