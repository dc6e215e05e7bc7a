//! ES256 against RFC 6979, Wycheproof and RFC 7638, and the derivation of keys.

use p256::elliptic_curve::bigint::U256 as Number;

use super::*;

use crate::corpus::{self, Tally, hex};

#[test]
fn rfc6979() {
    let Some(file) = corpus::read("rfc6979_p256.json") else { return };
    let mut tally = Tally::new("rfc6979_p256");
    for case in file["cases"].as_array().unwrap() {
        let key = SigningKey::from_scalar(&hex(&case["private_key"]).try_into().unwrap()).unwrap();
        let message = case["message_ascii"].as_str().unwrap().as_bytes();
        let signature = key.sign(message);
        let expected = [hex(&case["r"]), hex(&case["s"])].concat();
        let verifies = key.verifying_key().verify(message, &signature);
        tally.case(case["id"].as_str().unwrap(), signature[..] == expected && verifies);
    }
    tally.finish(3);
}

#[test]
fn wycheproof_p1363() {
    let Some(file) = corpus::read("wycheproof/ecdsa_secp256r1_sha256_p1363_test.json") else { return };
    let mut tally = Tally::new("wycheproof/ecdsa_secp256r1_sha256_p1363");
    for test in corpus::wycheproof(&file) {
        let point = hex(&test["publicKey"]["uncompressed"]);
        let (x, y) = (base64url::encode(&point[1..33]), base64url::encode(&point[33..]));
        let valid = VerifyingKey::from_coordinates(&x, &y).is_some_and(|key| {
            let signature: Option<[u8; SIGNATURE]> = hex(&test["sig"]).try_into().ok();
            signature.is_some_and(|signature| key.verify(&hex(&test["msg"]), &signature))
        });
        tally.case(&test["tcId"].to_string(), valid == (test["result"] == "valid"));
    }
    tally.finish(262);
}

#[test]
fn rfc7638_thumbprints() {
    let Some(file) = corpus::read("jose_es256.json") else { return };
    let mut tally = Tally::new("jose_es256 (thumbprints)");
    for case in file["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "rfc7638_thumbprint") {
        let jwk = &case["jwk"];
        let key =
            VerifyingKey::from_coordinates(jwk["x"].as_str().unwrap(), jwk["y"].as_str().unwrap()).unwrap();
        tally.case(case["id"].as_str().unwrap(), key.thumbprint().as_deref() == case["expect"].as_str());
    }
    tally.finish(2);
}

/// The remainder is mod n − 1, plus one: zero and n − 1 give 1, n − 2 gives n − 1, all ones stays in range.
#[test]
fn keys_are_derived_as_fips_186_5_a_2_1_says() {
    let scalar = |okm: [u8; 48]| SigningKey::from_okm(&okm).unwrap().0.to_bytes();
    let okm = |number: Number| {
        let mut okm = [0; 48];
        okm[16..].copy_from_slice(number.to_be_bytes().as_ref());
        okm
    };
    let order = NistP256::ORDER.get();
    let bytes = |number: Number| <[u8; 32]>::from(number.to_be_bytes());
    assert_eq!(scalar([0; 48])[..], bytes(Number::ONE));
    assert_eq!(scalar(okm(order.wrapping_sub(&Number::ONE)))[..], bytes(Number::ONE));
    assert_eq!(
        scalar(okm(order.wrapping_sub(&Number::from(2_u8))))[..],
        bytes(order.wrapping_sub(&Number::ONE))
    );
    assert_eq!(scalar(okm(order))[..], bytes(Number::from(2_u8)));
    let key = SigningKey::from_okm(&[0xff; 48]).unwrap();
    assert!(key.verifying_key().verify(b"m", &key.sign(b"m")));
}

#[test]
fn a_point_off_the_curve_is_no_key() {
    let (x, y) = SigningKey::from_okm(&[3; 48]).unwrap().verifying_key().coordinates().unwrap();
    assert!(VerifyingKey::from_coordinates(&x, &y).is_some());
    assert!(VerifyingKey::from_coordinates(&x, &x).is_none());
    let zero = base64url::encode(&[0; 32]);
    assert!(VerifyingKey::from_coordinates(&zero, &zero).is_none());
    assert!(VerifyingKey::from_coordinates(&format!("{x}="), &y).is_none());
}
