//! What must stay the same about a client for a session to go on, and what happens where it does not.

/// A signal of the client's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContextSignal {
    /// The prefix of the address: /24 of IPv4, /48 of IPv6.
    Address,
    /// The network that the application looks an address up in, such as its autonomous system or country.
    Network,
    /// The browser family, such as Firefox.
    Family,
    /// The platform, such as Windows.
    Platform,
    /// The client hints that Chromium always sends: brand, platform, whether it is a phone.
    Hints,
    /// A header that a trusted proxy sets: a TLS fingerprint or a client certificate.
    Header,
}

/// What a signal that changed leads to, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reaction {
    /// It is not compared.
    Ignore,
    /// An event, nothing else.
    Note,
    /// An event, and the session is marked: [`RequireRecentAuth`](crate::extract::RequireRecentAuth) refuses it until the
    /// user authenticates again.
    StepUp,
    /// The request is anonymous. The session is not ended: whoever it belongs to goes on.
    Reject,
}

/// How much of a client must stay the same for its session to go on.
///
/// Exact equality signs people out for nothing: browsers update themselves, phones change between Wi-Fi and mobile network,
/// companies spread one office over many addresses. So a change is graded. What a client changes by itself (a newer version
/// of the same browser, another address of the same network, an address family not seen before) is *drift*: tolerated, and
/// followed. Anything else gets the reaction of its signal, and what is stored stays until the next authentication.
///
/// | signal | `off` | default | `strict` |
/// |---|---|---|---|
/// | address: /24 of IPv4, /48 of IPv6 | ignore | step up; with a lookup: ignore | reject |
/// | network: what [`network_lookup`](crate::middleware::SessionLayerBuilder::network_lookup) finds | ignore | step up | reject |
/// | browser family | ignore | reject | reject |
/// | platform | ignore | step up | reject |
/// | client hints: brand, platform, mobile | ignore | ignore | step up |
/// | a header of the proxy (TLS fingerprint, certificate) | ignore | step up | reject |
///
/// A signal that was there at login and is missing now is not a match. Costs one SipHash of the User-Agent a request and one
/// of the address; a User-Agent is parsed only when it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingPolicy {
    /// `None` is what the default says, which depends on whether networks are looked up.
    address: Option<Reaction>,
    network: Reaction,
    family: Reaction,
    platform: Reaction,
    hints: Reaction,
    header: Reaction,
    /// Whether somebody has said by hand that networks, or a header, count.
    says_network: bool,
    says_header: bool,
}

impl BindingPolicy {
    /// Nothing is compared.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            address: Some(Reaction::Ignore),
            network: Reaction::Ignore,
            family: Reaction::Ignore,
            platform: Reaction::Ignore,
            hints: Reaction::Ignore,
            header: Reaction::Ignore,
            says_network: false,
            says_header: false,
        }
    }

    /// For people who sit still: another network, browser or platform is refused. Wants to know addresses, see
    /// [`peer_address`](crate::middleware::SessionLayerBuilder::peer_address). The first address of the other family (IPv6
    /// after IPv4) is asked to step up and never becomes the session's own, unless networks are looked up: one line has both.
    #[must_use]
    pub const fn strict() -> Self {
        Self {
            address: Some(Reaction::Reject),
            network: Reaction::Reject,
            family: Reaction::Reject,
            platform: Reaction::Reject,
            hints: Reaction::StepUp,
            header: Reaction::Reject,
            says_network: false,
            says_header: false,
        }
    }

    /// Another reaction to `signal`.
    #[must_use]
    pub const fn on(mut self, signal: ContextSignal, reaction: Reaction) -> Self {
        match signal {
            ContextSignal::Address => self.address = Some(reaction),
            ContextSignal::Network => {
                self.network = reaction;
                self.says_network = !matches!(reaction, Reaction::Ignore);
            }
            ContextSignal::Family => self.family = reaction,
            ContextSignal::Platform => self.platform = reaction,
            ContextSignal::Hints => self.hints = reaction,
            ContextSignal::Header => {
                self.header = reaction;
                self.says_header = !matches!(reaction, Reaction::Ignore);
            }
        }
        self
    }

    /// The reaction to `signal`.
    pub(crate) fn reaction(&self, signal: ContextSignal, networks_are_known: bool) -> Reaction {
        match signal {
            ContextSignal::Address => self.address.unwrap_or(match networks_are_known {
                true => Reaction::Ignore,
                false => Reaction::StepUp,
            }),
            ContextSignal::Network => self.network,
            ContextSignal::Family => self.family,
            ContextSignal::Platform => self.platform,
            ContextSignal::Hints => self.hints,
            ContextSignal::Header => self.header,
        }
    }

    /// Whether somebody has asked for addresses to count, so that a layer that cannot know them does not do what it says.
    pub(crate) fn wants_addresses(&self) -> bool {
        self.address.is_some_and(|reaction| reaction > Reaction::Ignore)
    }

    pub(crate) const fn wants_networks(&self) -> bool {
        self.says_network
    }

    pub(crate) const fn wants_a_header(&self) -> bool {
        self.says_header
    }

    pub(crate) fn looks_at_user_agent(&self) -> bool {
        self.family.max(self.platform) > Reaction::Ignore
    }

    pub(crate) fn looks_at_hints(&self) -> bool {
        self.hints > Reaction::Ignore
    }
}

/// The middle way: see the table.
impl Default for BindingPolicy {
    fn default() -> Self {
        Self {
            address: None,
            network: Reaction::StepUp,
            family: Reaction::Reject,
            platform: Reaction::StepUp,
            hints: Reaction::Ignore,
            header: Reaction::StepUp,
            says_network: false,
            says_header: false,
        }
    }
}
