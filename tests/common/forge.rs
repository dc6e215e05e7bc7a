//! The formats once more, from their description alone: what somebody who holds the key ring can make.
//!
//! Tests make with it what the library never would: tokens with other claims, from the future, under other headers;
//! cookies under another name, purpose or origin. That what it makes honestly is accepted shows that it is no straw man.
#![allow(dead_code, reason = "each test uses some of it")]

use aes_gcm::{
    AeadInOut as _, Aes256Gcm, KeyInit as _,
    aes::{Aes256Enc, cipher::BlockCipherEncrypt as _},
};
use base64_simd::URL_SAFE_NO_PAD as BASE64;
use cmac::{Cmac, Mac as _};
use hkdf::Hkdf;
use p256::{
    NistP256,
    ecdsa::{Signature, SigningKey, signature::Signer as _},
    elliptic_curve::{
        Curve as _,
        bigint::{NonZero, U256, U384},
    },
};
use sha2::Sha256;

/// The keys of the active root secret of a ring, for one origin.
#[derive(Debug, Clone)]
pub(crate) struct Forger {
    origin: String,
    id: String,
    secret: Vec<u8>,
}

impl Forger {
    /// From the text form of a ring.
    pub(crate) fn new(ring: &str, origin: &str) -> Self {
        let lines = ring.split(['\n', ';']).map(|line| line.split(' ').collect::<Vec<_>>());
        let active = lines.into_iter().find(|words| words.get(1) == Some(&"active")).expect("an active key");
        let secret = BASE64.decode_to_vec(active[3]).expect("base64url");
        Self { origin: origin.into(), id: active[0].into(), secret }
    }

    /// The key id, 8 hexadecimal digits.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The JSON of the header that the library accepts.
    pub(crate) fn header(&self) -> String {
        format!(r#"{{"alg":"ES256","kid":"{}","typ":"renewal+jwt"}}"#, self.id)
    }

    /// A token whose payload is `claims` with its `jti` set at the end. `claims` is an object without `jti`.
    pub(crate) fn token(&self, claims: &str) -> String {
        self.token_under(&self.header(), claims)
    }

    /// The same under another header.
    pub(crate) fn token_under(&self, header: &str, claims: &str) -> String {
        let open = format!("{},\"jti\":\"", claims.strip_suffix('}').expect("an object"));
        let header = BASE64.encode_to_string(header);
        let payload = format!("{open}{}\"}}", self.jti(&header, open.as_bytes()));
        self.signed(&format!("{header}.{}", BASE64.encode_to_string(payload)))
    }

    /// A token of any bytes that a right `jti` and the end of the object follow, with `signature` as its third part.
    pub(crate) fn authentic(&self, open: &[u8], signature: &str) -> String {
        let header = BASE64.encode_to_string(self.header());
        let payload = [open, self.jti(&header, open).as_bytes(), b"\"}"].concat();
        format!("{header}.{}.{signature}", BASE64.encode_to_string(payload))
    }

    /// `signing_input.signature`
    pub(crate) fn signed(&self, signing_input: &str) -> String {
        let signature: Signature = self.signing_key().sign(signing_input.as_bytes());
        format!("{signing_input}.{}", BASE64.encode_to_string(signature.to_bytes()))
    }

    /// The payload of a token, without its `jti`: an object again.
    pub(crate) fn claims_of(token: &str) -> String {
        let payload = token.split('.').nth(1).expect("a payload");
        let json = String::from_utf8(BASE64.decode_to_vec(payload).expect("base64url")).expect("JSON");
        let (before, _) = json.rsplit_once(",\"jti\"").expect("jti stands last");
        format!("{before}}}")
    }

    /// The public key as an attacker could use it for a secret: as a point, its coordinates, and the JSON of a JWK.
    pub(crate) fn public_keys(&self) -> Vec<Vec<u8>> {
        let point = self.signing_key().verifying_key().to_sec1_point(false);
        let (x, y) = (point.x().expect("a point"), point.y().expect("a point"));
        let [x64, y64] = [x, y].map(|part| BASE64.encode_to_string(part));
        let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x64}","y":"{y64}"}}"#);
        vec![point.as_bytes().to_vec(), [x.as_slice(), y].concat(), jwk.into_bytes()]
    }

    fn jti(&self, header: &str, open: &[u8]) -> String {
        let key: [u8; 32] = self.derived("renewal-token-jti");
        let mut mac = Cmac::<Aes256Enc>::new(&key.into());
        mac.update(header.as_bytes());
        mac.update(b".");
        mac.update(open);
        BASE64.encode_to_string(mac.finalize().into_bytes())
    }

    fn signing_key(&self) -> SigningKey {
        let wide = U384::from_be_slice(&self.derived::<48>("renewal-token-es256"));
        let less_one = NonZero::new(NistP256::ORDER.get().wrapping_sub(&U256::ONE)).expect("not zero");
        let d = wide.rem(&less_one).wrapping_add(&U256::ONE);
        SigningKey::from_slice(&<[u8; 32]>::from(d.to_be_bytes())).expect("a scalar in range")
    }

    /// A value sealed for `purpose` under `name` at `origin`; `key` names the derived key.
    pub(crate) fn sealed(
        &self,
        plaintext: &[u8],
        key: &str,
        purpose: &str,
        name: &str,
        origin: &str,
    ) -> String {
        let id: Vec<u8> =
            (0..4).map(|n| u8::from_str_radix(&self.id[2 * n..2 * n + 2], 16).expect("hex")).collect();
        let header = [&[1], id.as_slice()].concat();
        let mut aad = header.clone();
        for part in [purpose, name, origin] {
            aad.extend_from_slice(&(part.len() as u64).to_be_bytes());
            aad.extend_from_slice(part.as_bytes());
        }
        // The nonce need not be random here: nothing is kept secret.
        let nonce: [u8; 24] = std::array::from_fn(|n| (n * 7 + plaintext.len()) as u8);
        let (cipher, rest) = xaes(&self.derived(key), nonce);
        let mut message = plaintext.to_vec();
        let tag = cipher.encrypt_inout_detached(&rest.into(), &aad, message.as_mut_slice().into());
        let tag = tag.expect("short enough");
        BASE64.encode_to_string([header.as_slice(), &nonce, &message, &tag].concat())
    }

    /// A session cookie with this plaintext.
    pub(crate) fn session_cookie(&self, plaintext: &[u8]) -> String {
        self.sealed(plaintext, "session-cookie", "session-cookie", "__Host-Http-session", &self.origin)
    }

    /// The plaintext of an honest session cookie.
    pub(crate) fn opened(&self, value: &str) -> Vec<u8> {
        let bytes = BASE64.decode_to_vec(value).expect("base64url");
        let (header, rest) = bytes.split_first_chunk::<5>().expect("a header");
        let (nonce, rest) = rest.split_first_chunk::<24>().expect("a nonce");
        let (message, tag) = rest.split_last_chunk::<16>().expect("a tag");
        let mut aad = header.to_vec();
        for part in ["session-cookie", "__Host-Http-session", &self.origin] {
            aad.extend_from_slice(&(part.len() as u64).to_be_bytes());
            aad.extend_from_slice(part.as_bytes());
        }
        let (cipher, rest) = xaes(&self.derived("session-cookie"), *nonce);
        let mut plain = message.to_vec();
        let opened =
            cipher.decrypt_inout_detached(&rest.into(), &aad, plain.as_mut_slice().into(), tag.into());
        opened.expect("an honest cookie opens");
        plain
    }

    fn derived<const N: usize>(&self, label: &str) -> [u8; N] {
        let mut key = [0; N];
        let hkdf = Hkdf::<Sha256>::new(Some(b"portcullis/1"), &self.secret);
        hkdf.expand(format!("{label}\0").as_bytes(), &mut key).expect("a short key");
        key
    }
}

/// The cipher of one message, and the nonce that is left for it (C2SP XAES-256-GCM).
fn xaes(key: &[u8; 32], nonce: [u8; 24]) -> (Aes256Gcm, [u8; 12]) {
    let aes = Aes256Enc::new(key.into());
    let mut l = [0; 16].into();
    aes.encrypt_block(&mut l);
    let l = u128::from_be_bytes(l.into());
    let k1 = if l >> 127 == 1 { (l << 1) ^ 0x87 } else { l << 1 };
    let mut derived = [0; 32];
    for (half, counter) in derived.chunks_exact_mut(16).zip(1..) {
        let mut block = [0; 16];
        block[..4].copy_from_slice(&[0, counter, b'X', 0]);
        block[4..].copy_from_slice(&nonce[..12]);
        let mut block = (u128::from_be_bytes(block) ^ k1).to_be_bytes().into();
        aes.encrypt_block(&mut block);
        half.copy_from_slice(&block);
    }
    (Aes256Gcm::new(&derived.into()), std::array::from_fn(|n| nonce[12 + n]))
}
