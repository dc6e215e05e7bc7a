//! ES256: ECDSA on P-256 with SHA-256, in the 64-byte `r ‖ s` form of JOSE (RFC 7518 §3.4).
//!
//! Signing is deterministic (RFC 6979), so no bad random number can give the key away. Every valid signature has a
//! twin `(r, n − s)` that verifies too, and JOSE asks for no low `s`: nothing may ever be keyed on signature bytes.

use std::fmt;

use p256::{
    NistP256, Sec1Point,
    ecdsa::{
        Signature, SigningKey as P256SigningKey, VerifyingKey as P256VerifyingKey,
        signature::{Signer as _, Verifier as _},
    },
    elliptic_curve::{
        Curve as _,
        bigint::{NonZero, U256, U384},
    },
};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{base64url, crypto::digest};

/// Bytes of a signature.
pub(crate) const SIGNATURE: usize = 64;

/// Bytes of a public key: `x ‖ y`.
pub(crate) const KEY: usize = 64;

/// A signing key; wiped on drop, mute in `Debug`.
#[derive(Clone)]
pub(crate) struct SigningKey(P256SigningKey);

impl SigningKey {
    /// The key that 48 uniform bytes determine, with extra random bits (FIPS 186-5 A.2.1): `d = (c mod (n − 1)) + 1`.
    ///
    /// 128 bits more than the order make the bias of the remainder smaller than 2⁻¹²⁸. `None` never happens: `d` lies
    /// in `[1, n − 1]`, which is what a key must.
    pub(crate) fn from_okm(okm: &[u8; 48]) -> Option<Self> {
        let order_less_one = NistP256::ORDER.get().wrapping_sub(&U256::ONE);
        let modulus = NonZero::new(order_less_one).into_option()?;
        let mut wide = U384::from_be_slice(okm);
        let mut d = wide.rem(&modulus).wrapping_add(&U256::ONE);
        wide.zeroize();
        let bytes = Zeroizing::new(<[u8; 32]>::from(d.to_be_bytes()));
        d.zeroize();
        Self::from_scalar(&bytes)
    }

    /// The key with the private scalar `d`, big-endian; `None` unless it lies in `[1, n − 1]`.
    fn from_scalar(d: &[u8; 32]) -> Option<Self> {
        P256SigningKey::from_slice(d).ok().map(Self)
    }

    /// Signs `message`. About 110 µs.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let signature: Signature = self.0.sign(message);
        signature.to_bytes().into()
    }

    /// The public half.
    pub(crate) fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(*self.0.verifying_key())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// A public key: a point on P-256 other than infinity, checked when it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerifyingKey(P256VerifyingKey);

impl VerifyingKey {
    /// Whether `signature` is a valid one of `message`. About 400 µs, so it comes after everything cheaper.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE]) -> bool {
        // `from_slice` refuses r or s that is zero or not below n: the "psychic signatures" (attack A46).
        Signature::from_slice(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }

    /// The coordinates `x` and `y` as a JWK states them: base64url of 32 bytes each.
    pub(crate) fn coordinates(&self) -> Option<(String, String)> {
        let point = self.0.to_sec1_point(false);
        Some((base64url::encode(point.x()?), base64url::encode(point.y()?)))
    }

    /// The key with those coordinates; `None` if they are not canonical or not on the curve.
    pub(crate) fn from_coordinates(x: &str, y: &str) -> Option<Self> {
        let x: [u8; 32] = base64url::decode_array(x.as_bytes())?;
        let y: [u8; 32] = base64url::decode_array(y.as_bytes())?;
        Self::from_point(&x, &y)
    }

    /// `x ‖ y`, as a record keeps it.
    pub(crate) fn to_bytes(self) -> Option<[u8; KEY]> {
        let point = self.0.to_sec1_point(false);
        [point.x()?.as_slice(), point.y()?.as_slice()].concat().try_into().ok()
    }

    /// The key that `x ‖ y` is; `None` if it is not on the curve.
    pub(crate) fn from_bytes(bytes: &[u8; KEY]) -> Option<Self> {
        let (x, y) = bytes.split_first_chunk::<32>()?;
        Self::from_point(x, y.try_into().ok()?)
    }

    fn from_point(x: &[u8; 32], y: &[u8; 32]) -> Option<Self> {
        let point = Sec1Point::from_affine_coordinates(&(*x).into(), &(*y).into(), false);
        P256VerifyingKey::from_sec1_point(&point).ok().map(Self)
    }

    /// The RFC 7638 thumbprint, base64url: SHA-256 of the required members in lexicographic order.
    pub(crate) fn thumbprint(&self) -> Option<String> {
        let (x, y) = self.coordinates()?;
        let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        Some(base64url::encode(&digest::sha256(members.as_bytes())))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyingKey(..)")
    }
}

#[cfg(test)]
#[path = "../../tests/vectors/es256.rs"]
mod vectors;
