//! Proofs: those that a real Chromium made (`shared/dbsc/fixtures.json`), and what is none.

use serde_json::Value;

use super::*;
use crate::{corpus, crypto::es256::SigningKey};

fn fixtures() -> Vec<Value> {
    let read = corpus::read("../dbsc/fixtures.json").unwrap_or_default();
    read.as_array().cloned().unwrap_or_default()
}

fn sent<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let fields = request["request_headers"].as_array().unwrap();
    let field = fields.iter().find(|field| field[0].as_str().unwrap().eq_ignore_ascii_case(name))?;
    field[1].as_str()
}

fn key_of(jwk: &Value) -> VerifyingKey {
    VerifyingKey::from_coordinates(jwk["x"].as_str().unwrap(), jwk["y"].as_str().unwrap()).unwrap()
}

#[test]
fn every_request_of_a_real_browser_is_judged_right() {
    let (mut good, mut other, mut without) = (0, 0, 0);
    for request in fixtures() {
        let Some(token) = sent(&request, "Secure-Session-Response") else {
            without += 1;
            continue;
        };
        let token = crate::dbsc::token(token.as_bytes()).expect("a token");
        if request["jwt_header"]["alg"] != "ES256" {
            assert_eq!(Proof::read(token, KeyKind::Device).err(), Some(ProofError::Algorithm), "{request}");
            other += 1;
            continue;
        }
        let proof = Proof::read(token, KeyKind::Device).expect("a proof");
        assert_eq!(proof.challenge(), request["jwt_payload"]["jti"].as_str().unwrap().as_bytes());
        if let Some(audience) = request["jwt_payload"]["aud"].as_str() {
            assert_eq!(proof.is_for(audience), Ok(()));
            assert_eq!(proof.is_for("https://app.site.test/elsewhere"), Err(ProofError::Audience));
        } else {
            assert_eq!(proof.is_for("https://app.site.test/elsewhere"), Ok(()));
        }
        let verified = if request["kind"] == "registration" {
            let verified = proof.introduces(1).expect("its own key");
            assert_eq!(*verified.key(), key_of(&request["jwt_header"]["jwk"]));
            let named = request["jwk_thumbprint_rfc7638"].as_str();
            assert!(named.is_none_or(|name| verified.key().thumbprint().as_deref() == Some(name)));
            verified
        } else {
            assert_eq!(proof.introduces(1).err(), Some(ProofError::Key), "a refresh brings no key");
            proof.verify(&key_of(&request["registered_jwk"]), 1).expect("the key of the registration")
        };
        assert_eq!(verified.challenge(), 1);
        let stranger = SigningKey::from_okm(&[1; 48]).unwrap().verifying_key();
        assert_eq!(proof.verify(&stranger, 1).err(), Some(ProofError::Signature));
        good += 1;
    }
    assert!(fixtures().is_empty() || (good, other, without) == (43, 4, 14), "{good} {other} {without}");
}

#[test]
fn identifiers_and_reasons_of_a_real_browser_are_read() {
    let (mut identifiers, mut skips) = (0, 0);
    for request in fixtures() {
        if let Some(identifier) = sent(&request, "Sec-Secure-Session-Id") {
            assert_eq!(crate::dbsc::token(identifier.as_bytes()), Some(identifier.as_bytes()));
            identifiers += 1;
        }
        if let Some(field) = sent(&request, "Secure-Session-Skipped") {
            assert_eq!(crate::dbsc::skipped(field.as_bytes()).count(), 1, "{field}");
            skips += 1;
        }
    }
    assert!(fixtures().is_empty() || (identifiers, skips) == (26, 6), "{identifiers} {skips}");
}

fn proof(header: &str, payload: &str) -> String {
    let key = SigningKey::from_okm(&[7; 48]).unwrap();
    crate::crypto::jws::sign(&base64url::encode(header.as_bytes()), payload.as_bytes(), &key)
}

#[test]
fn what_is_no_proof_is_refused_before_any_signature_is_checked() {
    let (x, y) = SigningKey::from_okm(&[7; 48]).unwrap().verifying_key().coordinates().unwrap();
    let jwk = format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"}}"#);
    let header = format!(r#"{{"alg":"ES256","jwk":{jwk},"typ":"dbsc+jwt"}}"#);
    let good = proof(&header, r#"{"jti":"c"}"#);
    assert!(Proof::read(good.as_bytes(), KeyKind::Device).unwrap().introduces(1).is_ok());
    let older = proof(&header, r#"{"aud":"x","iat":1,"jti":"c","key":{},"sub":"s"}"#);
    assert!(
        Proof::read(older.as_bytes(), KeyKind::Device).unwrap().introduces(1).is_ok(),
        "of an older draft"
    );
    for (header, payload, error) in [
        (r#"{"alg":"ES256","typ":"jwt"}"#, r#"{"jti":"c"}"#, ProofError::Type),
        (r#"{"alg":"none","typ":"dbsc+jwt"}"#, r#"{"jti":"c"}"#, ProofError::Algorithm),
        (r#"{"alg":"HS256","typ":"dbsc+jwt"}"#, r#"{"jti":"c"}"#, ProofError::Algorithm),
        (r#"{"alg":"ES256","typ":"dbsc+jwt","crit":["x"]}"#, r#"{"jti":"c"}"#, ProofError::Malformed),
        (r#"{"alg":"ES256","alg":"ES256","typ":"dbsc+jwt"}"#, r#"{"jti":"c"}"#, ProofError::Malformed),
        (r#"{"alg":"ES256","typ":"dbsc+jwt"}"#, r#"{"jti":"c","jti":"c"}"#, ProofError::Malformed),
        (r#"{"alg":"ES256","typ":"dbsc+jwt"}"#, r#"{}"#, ProofError::Malformed),
        (r#"{"alg":"ES256","typ":"dbsc+jwt"}"#, r#"{"jti":7}"#, ProofError::Malformed),
        (r#"{"alg":"ES256","typ":"dbsc+jwt"}"#, "", ProofError::Malformed),
        (r#"{"typ":"dbsc+jwt"}"#, r#"{"jti":"c"}"#, ProofError::Malformed),
    ] {
        let read = Proof::read(proof(header, payload).as_bytes(), KeyKind::Device).map(|_| ());
        assert_eq!(read, Err(error), "{header} {payload}");
    }
    let by_script = proof(r#"{"alg":"ES256","typ":"portcullis-key+jwt"}"#, r#"{"jti":"c"}"#);
    assert!(Proof::read(by_script.as_bytes(), KeyKind::Software).is_ok());
    for (token, kind) in [(&by_script, KeyKind::Device), (&good, KeyKind::Software)] {
        assert_eq!(Proof::read(token.as_bytes(), kind).err(), Some(ProofError::Type), "one for the other");
    }
    for (jwk, why) in [
        (jwk.replace("P-256", "P-384"), "another curve"),
        (jwk.replace("\"EC\"", "\"RSA\""), "another kind"),
        (jwk.replace(&y, &x), "not on the curve"),
        (jwk.replace(&x, x.split_at(1).1), "too short"),
        (r#"{"kty":"EC","crv":"P-256"}"#.into(), "no point"),
    ] {
        let header = format!(r#"{{"alg":"ES256","jwk":{jwk},"typ":"dbsc+jwt"}}"#);
        let token = proof(&header, r#"{"jti":"c"}"#);
        assert_eq!(
            Proof::read(token.as_bytes(), KeyKind::Device).unwrap().introduces(1).err(),
            Some(ProofError::Key),
            "{why}"
        );
    }
    for bad in
        ["", "a", "a.b", "a.b.c", "....", &format!("{good}."), &"a.b.c".repeat(1000), &format!("={good}")]
    {
        assert_eq!(Proof::read(bad.as_bytes(), KeyKind::Device).err(), Some(ProofError::Malformed), "{bad}");
    }
    let short = good.split_at(good.len() - 1).0;
    let signature = Proof::read(short.as_bytes(), KeyKind::Device).unwrap().introduces(1).err();
    assert_eq!(signature, Some(ProofError::Signature), "a signature cut short");
    assert!(ProofError::Audience.to_string().contains("another address"));
}
