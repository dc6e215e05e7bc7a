//! What a client shows, and whether it is still the same client.

use std::net::IpAddr;

use super::{
    binding::{BindingPolicy, ContextSignal, Reaction},
    context_digest::ContextDigest,
    user_agent,
};
use crate::crypto::sip;

/// A signal as one request has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen<T> {
    /// Nobody looks at it here.
    #[default]
    NotLooked,
    /// It should be there and is not.
    Missing,
    /// This.
    Shown(T),
}

impl<T> Seen<T> {
    pub(crate) const fn as_ref(&self) -> Seen<&T> {
        match self {
            Self::NotLooked => Seen::NotLooked,
            Self::Missing => Seen::Missing,
            Self::Shown(value) => Seen::Shown(value),
        }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::NotLooked => Seen::NotLooked,
            Self::Missing => Seen::Missing,
            Self::Shown(value) => Seen::Shown(change(value)),
        }
    }

    /// What is shown.
    pub(crate) fn shown(&self) -> Option<&T> {
        match self {
            Self::Shown(value) => Some(value),
            Self::NotLooked | Self::Missing => None,
        }
    }
}

/// The name of the network that an address is in.
pub(crate) type NetworkOf = dyn Fn(IpAddr) -> Option<String> + Send + Sync;

/// What the client of one request shows.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClientContext<'a> {
    /// The User-Agent field, if there is exactly one.
    pub(crate) user_agent: Option<&'a [u8]>,
    pub(crate) address: Seen<IpAddr>,
    pub(crate) network_of: Option<&'a NetworkOf>,
    /// The known part of the client hints.
    pub(crate) hints: Seen<&'a str>,
    pub(crate) header: Seen<&'a [u8]>,
}

/// How the client of a request relates to the one a session is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ContextRelation {
    /// Nothing that counts is different.
    #[default]
    Same,
    /// Different in a way a client changes by itself: browser updated, first address of the other family.
    Drift,
    /// Different, and only told of.
    Noted(ContextSignal),
    /// Different: told of, and marked on the session until the next authentication.
    Changed(ContextSignal),
    /// Not the client the session belongs to.
    Rejected(ContextSignal),
}

impl ContextRelation {
    /// Whether the session may go on with this client's context as its own.
    pub(crate) const fn moves(self) -> bool {
        matches!(self, Self::Drift)
    }

    /// Whether nothing speaks against this being the same client.
    pub(crate) const fn is_tolerated(self) -> bool {
        matches!(self, Self::Same | Self::Drift | Self::Noted(_))
    }

    /// How much weight it has: of two the heavier counts, and of two equal ones the first.
    const fn weight(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::Drift => 1,
            Self::Noted(_) => 2,
            Self::Changed(_) => 3,
            Self::Rejected(_) => 4,
        }
    }

    const fn and(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }
}

impl ClientContext<'_> {
    /// The digests of everything this client shows.
    pub(crate) fn digest(&self, key: &[u8; 16]) -> ContextDigest {
        let (family, platform) = self.family_and_platform(key);
        let (prefix_v4, prefix_v6) = self.prefixes(key);
        ContextDigest {
            user_agent: self.user_agent.map(|bytes| sip::digest(key, USER_AGENT, bytes)),
            family,
            platform,
            prefix_v4,
            prefix_v6,
            network: self.network(key),
            hints: self.hints.shown().map(|hints| sip::digest(key, HINTS, hints.as_bytes())),
            header: self.header.shown().map(|header| sip::digest(key, HEADER, header)),
        }
    }

    /// Holds this client against `bound`. Where nothing changed it costs one SipHash of the User-Agent, and one of the
    /// address where there is one.
    pub(crate) fn relation_to(
        &self,
        bound: &ContextDigest,
        key: &[u8; 16],
        policy: &BindingPolicy,
    ) -> ContextRelation {
        let mut relation = ContextRelation::Same;
        let changed =
            |signal| match policy.reaction(signal, self.network_of.is_some() && bound.network.is_some()) {
                Reaction::Ignore => ContextRelation::Drift,
                Reaction::Note => ContextRelation::Noted(signal),
                Reaction::StepUp => ContextRelation::Changed(signal),
                Reaction::Reject => ContextRelation::Rejected(signal),
            };
        let user_agent = || self.user_agent.map(|bytes| sip::digest(key, USER_AGENT, bytes));
        if policy.looks_at_user_agent() && user_agent() != bound.user_agent {
            let (family, platform) = self.family_and_platform(key);
            relation = relation.and(ContextRelation::Drift);
            if family != bound.family {
                relation = relation.and(changed(ContextSignal::Family));
            }
            if platform != bound.platform {
                relation = relation.and(changed(ContextSignal::Platform));
            }
        }
        match self.address {
            Seen::NotLooked => {}
            Seen::Missing if bound.prefix_v4.or(bound.prefix_v6).is_none() => {}
            Seen::Missing => relation = relation.and(changed(ContextSignal::Address)),
            Seen::Shown(_) => {
                let (v4, v6) = self.prefixes(key);
                let (shown, bound_to) =
                    if v4.is_some() { (v4, bound.prefix_v4) } else { (v6, bound.prefix_v6) };
                if shown != bound_to {
                    // Of a family of addresses that was not seen before, only the network tells.
                    let knows_one = bound.prefix_v4.or(bound.prefix_v6).is_some();
                    let address = match (bound_to, changed(ContextSignal::Address)) {
                        // Where another address is refused, one of a family that was not seen before must not get around it.
                        (None, ContextRelation::Rejected(signal)) if knows_one => {
                            ContextRelation::Changed(signal)
                        }
                        (None, _) => ContextRelation::Drift,
                        (Some(_), relation) => relation,
                    };
                    relation = relation.and(address);
                    if bound.network.is_some()
                        && self.network_of.is_some()
                        && self.network(key) != bound.network
                    {
                        relation = relation.and(changed(ContextSignal::Network));
                    }
                }
            }
        }
        let hints = of_one(self.hints, bound.hints, |hints| sip::digest(key, HINTS, hints.as_bytes()));
        let header = of_one(self.header, bound.header, |header| sip::digest(key, HEADER, header));
        for (found, signal) in [(hints, ContextSignal::Hints), (header, ContextSignal::Header)] {
            relation = match found {
                Compared::Same => relation,
                Compared::First => relation.and(ContextRelation::Drift),
                Compared::Different => relation.and(changed(signal)),
            };
        }
        relation
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

    fn family_and_platform(&self, key: &[u8; 16]) -> (Option<u64>, Option<u64>) {
        let Some(text) = self.user_agent.map(String::from_utf8_lossy) else { return (None, None) };
        let of = |kind, text: &str| Some(sip::digest(key, kind, text.as_bytes()));
        (of(FAMILY, user_agent::family(&text)), of(PLATFORM, user_agent::platform(&text)))
    }

    fn prefixes(&self, key: &[u8; 16]) -> (Option<u64>, Option<u64>) {
        // An IPv4 address inside IPv6 is the same client as the IPv4 address outside.
        match self.address.shown().map(IpAddr::to_canonical) {
            Some(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                (Some(sip::digest(key, PREFIX_V4, &[a, b, c])), None)
            }
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, e, f, ..] = address.octets();
                (None, Some(sip::digest(key, PREFIX_V6, &[a, b, c, d, e, f])))
            }
            None => (None, None),
        }
    }

    fn network(&self, key: &[u8; 16]) -> Option<u64> {
        let name = self.network_of?(self.address.shown()?.to_canonical())?;
        Some(sip::digest(key, NETWORK, name.as_bytes()))
    }
}

enum Compared {
    Same,
    /// It was not there when the session was bound.
    First,
    Different,
}

fn of_one<T: Copy>(seen: Seen<T>, bound: Option<u64>, digest: impl Fn(T) -> u64) -> Compared {
    match (seen, bound) {
        (Seen::NotLooked, _) | (Seen::Missing, None) => Compared::Same,
        (Seen::Shown(_), None) => Compared::First,
        (Seen::Missing, Some(_)) => Compared::Different,
        (Seen::Shown(value), Some(bound)) if digest(value) == bound => Compared::Same,
        (Seen::Shown(_), Some(_)) => Compared::Different,
    }
}

const USER_AGENT: u8 = 0;
const FAMILY: u8 = 1;
const PLATFORM: u8 = 2;
const PREFIX_V4: u8 = 3;
const PREFIX_V6: u8 = 4;
const NETWORK: u8 = 5;
const HINTS: u8 = 6;
const HEADER: u8 = 7;

#[cfg(test)]
#[path = "../../tests/unit/context.rs"]
mod tests;
