//! XAES-256-GCM against the C2SP vectors, and the AES-256-GCM below it against Wycheproof.

use super::*;

use crate::corpus::{self, Tally, hex};

#[test]
fn c2sp() {
    let Some(file) = corpus::read("xaes_256_gcm.json") else { return };
    let mut tally = Tally::new("xaes_256_gcm");
    for case in file["cases"].as_array().unwrap() {
        let valid = case["result"] == "valid";
        let opened = open_any(case);
        let expected = valid.then(|| hex(&case["plaintext"]));
        let sealed_alike = !valid || seal(case) == hex(&case["ciphertext_and_tag"]);
        tally.case(case["id"].as_str().unwrap(), opened == expected && sealed_alike);
    }
    tally.finish(75);
}

fn open_any(case: &serde_json::Value) -> Option<Vec<u8>> {
    let key = XaesKey::new(&hex(&case["key"]).try_into().ok()?);
    let nonce: [u8; NONCE] = hex(&case["nonce"]).try_into().ok()?;
    let mut sealed = hex(&case["ciphertext_and_tag"]);
    let (message, tag) = sealed.split_last_chunk_mut::<TAG>()?;
    key.open(&nonce, &hex(&case["aad"]), message, tag)?;
    Some(message.to_vec())
}

fn seal(case: &serde_json::Value) -> Vec<u8> {
    let key = XaesKey::new(&hex(&case["key"]).try_into().unwrap());
    let mut message = hex(&case["plaintext"]);
    let tag = key.seal(&hex(&case["nonce"]).try_into().unwrap(), &hex(&case["aad"]), &mut message).unwrap();
    message.extend_from_slice(&tag);
    message
}

/// The sizes this crate uses: 256-bit keys, 96-bit nonces, 128-bit tags.
#[test]
fn wycheproof_aes_256_gcm() {
    let Some(file) = corpus::read("wycheproof/aes_gcm_test.json") else { return };
    let mut tally = Tally::new("wycheproof/aes_gcm (256/96/128)");
    let ours =
        |test: &&serde_json::Value| test["keySize"] == 256 && test["ivSize"] == 96 && test["tagSize"] == 128;
    for test in corpus::wycheproof(&file).iter().filter(ours) {
        let key: [u8; 32] = hex(&test["key"]).try_into().unwrap();
        let nonce: [u8; 12] = hex(&test["iv"]).try_into().unwrap();
        let tag: [u8; TAG] = hex(&test["tag"]).try_into().unwrap();
        let cipher = Aes256Gcm::new(&key.into());
        let mut message = hex(&test["ct"]);
        let aad = hex(&test["aad"]);
        let opened = cipher
            .decrypt_inout_detached(&nonce.into(), &aad, message.as_mut_slice().into(), &tag.into())
            .is_ok();
        let valid = test["result"] == "valid";
        let mut right = opened == valid;
        if valid {
            right &= message == hex(&test["msg"]);
            let made =
                cipher.encrypt_inout_detached(&nonce.into(), &aad, message.as_mut_slice().into()).unwrap();
            right &= message == hex(&test["ct"]) && made[..] == tag;
        }
        tally.case(&test["tcId"].to_string(), right);
    }
    tally.finish(66);
}
