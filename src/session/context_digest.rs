//! What a session is bound to: digests, no readable value.
//!
//! ```text
//! presence(1) ‖ for each signal that is there, in order: digest(8)
//! bits: user agent, family, platform, IPv4 /24, IPv6 /48, network, hints, header
//! ```
//!
//! Each signal is a keyed SipHash of its own, so what is stored tells nobody a browser or a network, and each can be
//! compared alone. The key comes from the index secret, which is never rotated: a rotated key ring changes nobody.

use super::wire::{Reader, Writer};

/// The digests of what a client shows, or of what a session is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ContextDigest {
    pub(crate) user_agent: Option<u64>,
    pub(crate) family: Option<u64>,
    pub(crate) platform: Option<u64>,
    pub(crate) prefix_v4: Option<u64>,
    pub(crate) prefix_v6: Option<u64>,
    pub(crate) network: Option<u64>,
    pub(crate) hints: Option<u64>,
    pub(crate) header: Option<u64>,
}

impl ContextDigest {
    /// This context moved on to what the client shows now; what it happens not to show is kept.
    pub(crate) fn moved_to(self, shown: Self) -> Self {
        Self {
            prefix_v4: shown.prefix_v4.or(self.prefix_v4),
            prefix_v6: shown.prefix_v6.or(self.prefix_v6),
            network: shown.network.or(self.network),
            hints: shown.hints.or(self.hints),
            header: shown.header.or(self.header),
            ..shown
        }
    }

    /// Bytes of the wire form.
    pub(super) fn length(&self) -> usize {
        1 + 8 * self.signals().iter().flatten().count()
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let signals = self.signals();
        let bit = |(bit, signal): (usize, &Option<u64>)| u8::from(signal.is_some()) << bit;
        out.byte(signals.iter().enumerate().map(bit).sum());
        signals.into_iter().flatten().for_each(|signal| out.number(signal));
    }

    pub(super) fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let mut presence = bytes.byte()?;
        let mut signal = || {
            let is_present = presence & 1 == 1;
            presence >>= 1;
            Some(if is_present { Some(bytes.number()?) } else { None })
        };
        Some(Self {
            user_agent: signal()?,
            family: signal()?,
            platform: signal()?,
            prefix_v4: signal()?,
            prefix_v6: signal()?,
            network: signal()?,
            hints: signal()?,
            header: signal()?,
        })
    }

    pub(super) const fn signals(&self) -> [Option<u64>; 8] {
        [
            self.user_agent,
            self.family,
            self.platform,
            self.prefix_v4,
            self.prefix_v6,
            self.network,
            self.hints,
            self.header,
        ]
    }
}
