//! A browser's half of Device Bound Session Credentials, from the specification: makes a key, answers challenges, knows what its
//! session is called. For tests that want to hold more than a real browser gives away.
#![allow(dead_code, reason = "each test uses some of it")]

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use p256::ecdsa::{Signature, SigningKey, signature::Signer as _};
use serde_json::Value;

/// A key, and the session that it is bound to.
#[derive(Clone)]
pub(crate) struct Device {
    key: SigningKey,
    /// What the browser calls the session.
    pub(crate) identifier: String,
    /// What it signs the next time.
    pub(crate) challenge: String,
    /// Where it refreshes.
    pub(crate) refresh_url: String,
}

/// An offer to bind a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) path: String,
    pub(crate) challenge: String,
}

impl Offer {
    /// Reads `Secure-Session-Registration`; none if there is none.
    pub(crate) fn read(field: &str) -> Option<Self> {
        let rest = field.strip_prefix("(ES256);")?;
        let value = |name: &str| {
            let start = rest.find(&format!("{name}=\""))? + name.len() + 2;
            rest.get(start..)?.split('"').next().map(str::to_owned)
        };
        Some(Self { path: value("path")?, challenge: value("challenge")? })
    }
}

impl Device {
    /// A device with a key of its own.
    pub(crate) fn new(seed: u8) -> Self {
        let key = SigningKey::from_slice(&[seed; 32]).expect("a key");
        Self { key, identifier: String::new(), challenge: String::new(), refresh_url: String::new() }
    }

    /// The proof with which it asks to be bound.
    pub(crate) fn registration(&self, challenge: &str) -> String {
        self.sign(&self.header("dbsc+jwt"), challenge)
    }

    /// The header of a proof of this type that brings its key.
    pub(crate) fn header(&self, kind: &str) -> String {
        let point = self.key.verifying_key().to_sec1_point(false);
        let coordinate = |bytes: &[u8]| BASE64.encode_to_string(bytes);
        let (x, y) = (coordinate(point.x().expect("x")), coordinate(point.y().expect("y")));
        let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        format!(r#"{{"alg":"ES256","jwk":{jwk},"typ":"{kind}"}}"#)
    }

    /// The proof with which it refreshes.
    pub(crate) fn proof(&self, challenge: &str) -> String {
        self.sign(r#"{"alg":"ES256","typ":"dbsc+jwt"}"#, challenge)
    }

    /// The proof of a script's key, to bind it as to renew by it.
    pub(crate) fn by_script(&self, challenge: &str) -> String {
        self.sign(&self.header("portcullis-key+jwt"), challenge)
    }

    /// Signs `challenge` under any header.
    pub(crate) fn sign(&self, header: &str, challenge: &str) -> String {
        self.sign_payload(header, &format!(r#"{{"jti":"{challenge}"}}"#))
    }

    /// Signs any payload under any header.
    pub(crate) fn sign_payload(&self, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", BASE64.encode_to_string(header), BASE64.encode_to_string(payload));
        let signature: Signature = self.key.sign(signed.as_bytes());
        format!("{signed}.{}", BASE64.encode_to_string(signature.to_bytes()))
    }

    /// Takes the instructions of an answer, as a browser does: strictly.
    pub(crate) fn take(&mut self, body: &str, challenge: &str) {
        let json: Value = serde_json::from_str(body).expect("instructions");
        assert_ne!(json["continue"], false, "the session goes on");
        let identifier = json["session_identifier"].as_str().expect("an identifier");
        assert!(self.identifier.is_empty() || self.identifier == identifier, "it never changes");
        assert_eq!(json["scope"]["include_site"], false);
        assert_eq!(json["credentials"].as_array().map(Vec::len), Some(1));
        self.identifier = identifier.into();
        self.refresh_url = json["refresh_url"].as_str().expect("a refresh URL").into();
        self.challenge = challenge_of(challenge, identifier).expect("a challenge of this session");
    }
}

/// What `Secure-Session-Challenge` asks the session `identifier` to sign.
pub(crate) fn challenge_of(field: &str, identifier: &str) -> Option<String> {
    let (challenge, id) = field.split_once(";id=")?;
    (id.trim_matches('"') == identifier).then(|| challenge.trim_matches('"').to_owned())
}
