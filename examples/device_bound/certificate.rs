//! A certificate for this machine.

use rcgen::{CertifiedKey, PublicKeyData as _};
use sha2::{Digest as _, Sha256};

/// A certificate that signs itself, and its key.
pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    pub(crate) key: Vec<u8>,
    /// The SHA-256 of its public key: a browser that is told this name takes it as good, which is more than to have its
    /// warning clicked away.
    pub(crate) name: String,
}

impl Certificate {
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let name =
            base64_simd::STANDARD.encode_to_string(Sha256::digest(signing_key.subject_public_key_info()));
        Ok(Self { der: cert.der().to_vec(), key: signing_key.serialize_der(), name })
    }
}
