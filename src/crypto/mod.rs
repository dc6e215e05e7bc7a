//! Bytes in, bytes out: the key ring, the seal, signatures and message authentication.
//!
//! The only floor that knows ciphers. It reads no clock and no store, and only `random` draws random bytes.
//!
//! ```text
//! key_ring   root secrets with id and state; root_keys what is derived from them
//! text       the ring's text form; key_file the file it may be kept in
//! seal       version ‖ key id ‖ nonce ‖ ciphertext ‖ tag, bound to purpose, name and origin
//! xaes       XAES-256-GCM: a key of its own for each sealed value
//! jws        the compact form of a signed token; es256 the signature below it
//! aes        single blocks of AES-256, for mac, xaes and name
//! mac        AES-256-CMAC, and the keys of a session's data derived with it
//! name       the public name of a session: one block of AES-256
//! digest     SHA-256 and HKDF-SHA256
//! sip        keyed SipHash for the client context
//! ```

mod aes;
pub(crate) mod digest;
pub(crate) mod es256;
pub(crate) mod jws;
mod key_file;
pub(crate) mod key_ring;
pub(crate) mod mac;
mod name;
pub(crate) mod random;
pub(crate) mod root_keys;
pub(crate) mod seal;
pub(crate) mod sip;
mod text;
pub(crate) mod xaes;

pub use key_ring::{KeyRing, KeyRingError, KeyState};
pub use random::RandomError;
pub use root_keys::KeyId;
pub(crate) use seal::OpenError;
