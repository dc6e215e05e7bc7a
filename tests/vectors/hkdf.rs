//! HKDF-SHA256 against Wycheproof.

use super::*;

use crate::corpus::{self, Tally, hex};

#[test]
fn wycheproof_hkdf_sha256() {
    let Some(file) = corpus::read("wycheproof/hkdf_sha256_test.json") else { return };
    let mut tally = Tally::new("wycheproof/hkdf_sha256");
    for test in corpus::wycheproof(&file) {
        let size = usize::try_from(test["size"].as_u64().unwrap()).unwrap();
        let mut okm = vec![0; size];
        let long = size > 255 * 32;
        if !long {
            expand(Some(&hex(&test["salt"])), &hex(&test["ikm"]), &hex(&test["info"]), &mut okm);
        }
        let valid = !long && okm == hex(&test["okm"]);
        tally.case(&test["tcId"].to_string(), valid == (test["result"] == "valid"));
    }
    tally.finish(86);
}
