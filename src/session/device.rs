//! The key that a session is bound to, as its record keeps it.
//!
//! ```text
//! version(1) ‖ flags(1) ‖ x(32) ‖ y(32) ‖ challenge(8) ‖ proven at(8)
//! ```

use std::fmt;

use super::wire::{Reader, Writer};
use crate::{clock::Timestamp, dbsc::KeyKind};

/// The key that a session is bound to, and what it has proven.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the contract suite and stores of others build it")]
pub struct Device {
    /// Who keeps the key.
    pub kind: KeyKind,
    /// The public key on P-256, `x ‖ y`.
    pub key: [u8; 64],
    /// The number of the last challenge that it answered; none at or below it is good again.
    pub challenge: u64,
    /// When it answered that.
    pub proven_at: Timestamp,
    /// Whether it has renewed the session at least once. Before that nobody knows that the browser has kept it.
    pub confirmed: bool,
}

impl Device {
    /// Whether this is the key that a script keeps for the session.
    #[must_use]
    pub fn is_script_s(&self, key: &[u8; 64]) -> bool {
        self.kind == KeyKind::Software && self.key == *key
    }

    /// As bytes, for a store that keeps it in one value.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(LENGTH);
        out.byte(VERSION);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.byte(flag(self.confirmed, CONFIRMED) | flag(self.kind == KeyKind::Software, SOFTWARE));
        out.raw(&self.key);
        out.number(self.challenge);
        out.number(self.proven_at.as_millis());
        out.finish()
    }

    /// `None` if it is none of this version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let [version, flags] = reader.array()?;
        if version != VERSION || flags > CONFIRMED | SOFTWARE {
            return None;
        }
        let device = Self {
            kind: if flags & SOFTWARE == 0 { KeyKind::Device } else { KeyKind::Software },
            key: reader.array()?,
            challenge: reader.number()?,
            proven_at: Timestamp::from_millis(reader.number()?),
            confirmed: flags & CONFIRMED != 0,
        };
        reader.is_done().then_some(device)
    }
}

/// Without the key, by which logs of two sites could be matched.
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("kind", &self.kind)
            .field("challenge", &self.challenge)
            .field("proven_at", &self.proven_at)
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}

const VERSION: u8 = 1;
const CONFIRMED: u8 = 1;
const SOFTWARE: u8 = 2;

/// Bytes of the form.
pub(crate) const LENGTH: usize = 82;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_it_was() {
        for (kind, confirmed) in [
            (KeyKind::Device, false),
            (KeyKind::Device, true),
            (KeyKind::Software, false),
            (KeyKind::Software, true),
        ] {
            let device =
                Device { kind, key: [7; 64], challenge: 8, proven_at: Timestamp::from_millis(9), confirmed };
            let bytes = device.to_bytes();
            assert_eq!(bytes.len(), LENGTH);
            assert_eq!(Device::from_bytes(&bytes), Some(device));
            for length in 0..LENGTH {
                assert_eq!(Device::from_bytes(&bytes[..length]), None);
            }
            assert_eq!(Device::from_bytes(&[bytes.as_slice(), &[0]].concat()), None);
            assert!(!format!("{device:?}").contains("7, 7"));
        }
    }
}
