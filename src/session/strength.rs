//! How strongly a session is tied to its user and client.

/// How strongly a session is tied to its user and client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Strength {
    /// A remembered session that was silent for longer than an ordinary one may be: it may not do what needs a recent
    /// authentication.
    Remembered,
    /// Bound to the client's context.
    Context,
    /// Bound to a key that a script of the site keeps in the browser's storage: a copied cookie is worth nothing, a copied
    /// profile is (see [`software_keys`](crate::middleware::SessionLayerBuilder::software_keys)).
    SoftwareKey,
    /// Bound to a key that the browser keeps and cannot give away (Device Bound Session Credentials).
    Device,
}

impl Strength {
    /// The name in lower case: `remembered`, `context`, `software_key`, `device`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remembered => "remembered",
            Self::Context => "context",
            Self::SoftwareKey => "software_key",
            Self::Device => "device",
        }
    }

    pub(super) const fn to_byte(self) -> u8 {
        match self {
            Self::Remembered => 1,
            Self::Context => 2,
            Self::SoftwareKey => 3,
            Self::Device => 4,
        }
    }

    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Remembered),
            2 => Some(Self::Context),
            3 => Some(Self::SoftwareKey),
            4 => Some(Self::Device),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strength_has_a_byte_and_a_name() {
        for (strength, byte, name) in [
            (Strength::Remembered, 1, "remembered"),
            (Strength::Context, 2, "context"),
            (Strength::SoftwareKey, 3, "software_key"),
            (Strength::Device, 4, "device"),
        ] {
            assert_eq!((strength.to_byte(), strength.name()), (byte, name));
            assert_eq!(Strength::from_byte(byte), Some(strength));
        }
        assert_eq!((Strength::from_byte(0), Strength::from_byte(5)), (None, None));
        assert!(Strength::Context < Strength::SoftwareKey && Strength::SoftwareKey < Strength::Device);
    }
}
