//! What a client shows, and whether it is still the same client.
//!
//! ```text
//! ContextDigest: presence(1) ‖ user agent(8) ‖ family(8) ‖ platform(8) ‖ IPv4 /24 (8) ‖ IPv6 /48 (8)
//! ```
//!
//! Each signal is a keyed SipHash of its own, so what is stored tells nobody a browser or a network, and each can be
//! compared alone. The key comes from the index secret, which is never rotated: a rotated key ring changes nobody.

use std::net::IpAddr;

use super::{
    user_agent,
    wire::{Reader, Writer},
};
use crate::crypto::sip;

/// A signal of the client's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContextSignal {
    /// The browser family, such as Firefox.
    Family,
    /// The platform, such as Windows.
    Platform,
    /// The network: the /24 of an IPv4 address, the /48 of an IPv6 address.
    Network,
}

/// What the client of one request shows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientContext<'a> {
    /// The User-Agent field, if there is exactly one.
    pub(crate) user_agent: Option<&'a [u8]>,
    /// The client's address, where the application knows it.
    pub(crate) address: Option<IpAddr>,
}

/// What a session is bound to: digests, no readable value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ContextDigest {
    pub(crate) user_agent: Option<u64>,
    pub(crate) family: Option<u64>,
    pub(crate) platform: Option<u64>,
    pub(crate) network_v4: Option<u64>,
    pub(crate) network_v6: Option<u64>,
}

/// How the client of a request relates to the one a session is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextRelation {
    /// Nothing that counts is different.
    Same,
    /// Different in a way a client changes by itself: browser updated, first address of the other family.
    Drift,
    /// Another network or platform: noted, and marked on the session until the next authentication.
    Changed(ContextSignal),
    /// Another browser family, or none where one was bound: not the client the session belongs to.
    Rejected,
}

impl ContextRelation {
    /// Whether the session may go on with this client's context as its own.
    pub(crate) const fn moves(self) -> bool {
        matches!(self, Self::Drift)
    }

    /// Whether nothing speaks against this being the same client.
    pub(crate) const fn is_tolerated(self) -> bool {
        matches!(self, Self::Same | Self::Drift)
    }
}

impl ClientContext<'_> {
    /// The digests of everything this client shows.
    pub(crate) fn digest(&self, key: &[u8; 16]) -> ContextDigest {
        let text = self.user_agent.map(String::from_utf8_lossy);
        let of = |kind, text: &str| Some(sip::digest(key, kind, text.as_bytes()));
        let (network_v4, network_v6) = self.networks(key);
        ContextDigest {
            user_agent: self.user_agent.map(|bytes| sip::digest(key, USER_AGENT, bytes)),
            family: text.as_deref().and_then(|text| of(FAMILY, user_agent::family(text))),
            platform: text.as_deref().and_then(|text| of(PLATFORM, user_agent::platform(text))),
            network_v4,
            network_v6,
        }
    }

    /// Holds this client against `bound`. Where nothing changed it costs one SipHash of the User-Agent, and one of the
    /// address where there is one.
    pub(crate) fn relation_to(&self, bound: &ContextDigest, key: &[u8; 16]) -> ContextRelation {
        let mut relation = ContextRelation::Same;
        if self.user_agent.map(|bytes| sip::digest(key, USER_AGENT, bytes)) != bound.user_agent {
            let shown = self.digest(key);
            if shown.family != bound.family {
                return ContextRelation::Rejected;
            }
            relation = if shown.platform == bound.platform {
                ContextRelation::Drift
            } else {
                ContextRelation::Changed(ContextSignal::Platform)
            };
        }
        if self.address.is_none() || matches!(relation, ContextRelation::Changed(_)) {
            return relation;
        }
        let (v4, v6) = self.networks(key);
        let pair = if v4.is_some() { (v4, bound.network_v4) } else { (v6, bound.network_v6) };
        match pair {
            (shown, Some(_)) if shown != pair.1 => ContextRelation::Changed(ContextSignal::Network),
            (Some(_), None) => ContextRelation::Drift,
            _ => relation,
        }
    }

    /// "Firefox on Linux", for the user's own list of sessions; at most 64 bytes.
    pub(crate) fn label(&self) -> String {
        let text = self.user_agent.map(String::from_utf8_lossy).unwrap_or_default();
        let printable = |text: &str| text.chars().filter(|c| !c.is_control()).take(16).collect::<String>();
        match (printable(user_agent::family(&text)).as_str(), user_agent::platform(&text)) {
            ("", "") => "unknown".into(),
            (family, "") => family.into(),
            (family, platform) => format!("{family} on {platform}"),
        }
    }

    fn networks(&self, key: &[u8; 16]) -> (Option<u64>, Option<u64>) {
        // An IPv4 address inside IPv6 is the same client as the IPv4 address outside.
        match self.address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                (Some(sip::digest(key, NETWORK_V4, &[a, b, c])), None)
            }
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, e, f, ..] = address.octets();
                (None, Some(sip::digest(key, NETWORK_V6, &[a, b, c, d, e, f])))
            }
            None => (None, None),
        }
    }
}

impl ContextDigest {
    /// Bytes of the wire form.
    pub(super) const LENGTH: usize = 41;

    /// This context moved on to what the client shows now; a family of addresses it does not show is kept.
    pub(crate) fn moved_to(self, shown: Self) -> Self {
        Self {
            network_v4: shown.network_v4.or(self.network_v4),
            network_v6: shown.network_v6.or(self.network_v6),
            ..shown
        }
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let mut presence = 0;
        for (bit, signal) in self.signals().into_iter().enumerate() {
            presence |= u8::from(signal.is_some()) << bit;
        }
        out.byte(presence);
        for signal in self.signals() {
            out.number(signal.unwrap_or(0));
        }
    }

    pub(super) fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let presence = bytes.byte()?;
        let mut bit = 0;
        let mut signal = || {
            let number = bytes.number()?;
            let present = presence >> bit & 1 == 1;
            bit += 1;
            Some(present.then_some(number))
        };
        Some(Self {
            user_agent: signal()?,
            family: signal()?,
            platform: signal()?,
            network_v4: signal()?,
            network_v6: signal()?,
        })
    }

    const fn signals(&self) -> [Option<u64>; 5] {
        [self.user_agent, self.family, self.platform, self.network_v4, self.network_v6]
    }
}

const USER_AGENT: u8 = 0;
const FAMILY: u8 = 1;
const PLATFORM: u8 = 2;
const NETWORK_V4: u8 = 3;
const NETWORK_V6: u8 = 4;

#[cfg(test)]
#[path = "../../tests/unit/context.rs"]
mod tests;
