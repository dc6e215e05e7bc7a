//! The compact form against Wycheproof's ES256 groups and the JOSE cases, each under the header of its valid token.

use super::*;

use crate::corpus::{self, Tally};

/// What a verifier here does: the header it accepts, byte for byte, then the signature, then the payload.
fn opens(token: &str, header: &str, jwk: &serde_json::Value) -> bool {
    let key = VerifyingKey::from_coordinates(jwk["x"].as_str().unwrap(), jwk["y"].as_str().unwrap()).unwrap();
    Compact::split(token.as_bytes()).is_some_and(|compact| {
        compact.header == header.as_bytes() && compact.verify(&key) && compact.payload_bytes().is_some()
    })
}

#[test]
fn wycheproof_es256() {
    let Some(file) = corpus::read("wycheproof/json_web_signature_test.json") else { return };
    let mut tally = Tally::new("wycheproof/json_web_signature (es256, SpecialCaseEs256)");
    for group in file["testGroups"].as_array().unwrap() {
        let comment = group["comment"].as_str().unwrap();
        if comment != "es256" && comment != "SpecialCaseEs256" {
            continue;
        }
        let tests = group["tests"].as_array().unwrap();
        let valid = tests.iter().find(|test| test["result"] == "valid").unwrap()["jws"].as_str().unwrap();
        let header = valid.split('.').next().unwrap();
        for test in tests {
            let opened = opens(test["jws"].as_str().unwrap(), header, &group["public"]);
            tally.case(&test["tcId"].to_string(), opened == (test["result"] == "valid"));
        }
    }
    tally.finish(39);
}

#[test]
fn jose_cases() {
    let Some(file) = corpus::read("jose_es256.json") else { return };
    let mut tally = Tally::new("jose_es256 (tokens)");
    let cases = file["cases"].as_array().unwrap();
    let valid = cases.iter().find(|case| case["expect"] == "valid").unwrap()["jws"].as_str().unwrap();
    let header = valid.split('.').next().unwrap();
    for case in cases.iter().filter(|case| case["kind"] == "es256_jws") {
        let opened = opens(case["jws"].as_str().unwrap(), header, &case["jwk"]);
        tally.case(
            case["id"].as_str().unwrap(),
            opened == case["expect"].as_str().unwrap().starts_with("valid"),
        );
    }
    tally.finish(14);
}

#[test]
fn what_is_signed_here_opens_here_and_every_flipped_byte_is_seen() {
    let key = SigningKey::from_okm(&[9; 48]).unwrap();
    let header = base64url::encode(br#"{"alg":"ES256"}"#);
    let token = sign(&header, br#"{"a":1}"#, &key);
    let verify =
        |token: &[u8]| Compact::split(token).is_some_and(|compact| compact.verify(&key.verifying_key()));
    assert!(verify(token.as_bytes()));
    for i in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[i] = if bytes[i] == b'A' { b'B' } else { b'A' };
        assert!(!verify(&bytes), "byte {i}");
    }
}
