//! The walk through a proxy's header, against the cases of realclientip.
//!
//! Of its strategies ours is the trusted range. The rest are played as far as it can say them: no proxy, one proxy whose
//! header holds one address, and private networks as the trusted ones. Counting hops is not offered.

use super::*;
use crate::corpus::{self, Tally};

const PRIVATE: [&str; 9] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
    "::ffff:192.168.0.0/112",
];

/// Cases that are told otherwise here, and why.
const DIFFERENT: [(&str, &str); 4] = [
    (
        "ip-rightmost_non_private-12",
        "an element without an address fails: what stands left of it is not trusted more",
    ),
    ("ip-single_ip_header-16", "any one header may be named, X-Forwarded-For too"),
    ("ip-rightmost_trusted_range-12", "a peer that is no address is not trusted"),
    ("ip-rightmost_trusted_range-10", "a peer without an address is not trusted"),
];

fn client_of(case: &serde_json::Value) -> Option<String> {
    let strategy = case["strategy"].as_str().unwrap();
    let texts = |member: &str| -> Vec<String> {
        let list = case[member].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let peer = case["remote_addr"].as_str().map(|peer| address(peer.as_bytes()));
    if strategy == "remote_addr" {
        return peer.flatten().map(|peer| peer.to_string());
    }
    let networks = match strategy {
        "rightmost_trusted_range" => texts("trusted_ranges"),
        "rightmost_non_private" => PRIVATE.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    let proxies = TrustedProxies::new(&networks, case["header"].as_str().unwrap()).ok()?;
    match peer {
        // The case is about the header alone.
        None => {}
        Some(peer) if peer.is_some_and(|peer| !peer.is_unspecified() && !proxies.trust(peer)) => {
            return peer.map(|peer| peer.to_string());
        }
        Some(Some(_)) => {}
        Some(None) => return None,
    }
    let mut headers = HeaderMap::new();
    for (name, values) in case["headers"].as_object().unwrap() {
        for value in values.as_array().unwrap() {
            headers.append(HeaderName::from_str(name).unwrap(), value.as_str().unwrap().parse().unwrap());
        }
    }
    proxies.client(&headers).map(|client| client.to_string())
}

#[test]
fn client_ip() {
    let Some(file) = corpus::read("client_ip.json") else { return };
    let mut tally = Tally::new("client_ip");
    for case in file["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        if case["strategy"] == "rightmost_trusted_count" {
            continue;
        }
        let want = case["want"].as_str().unwrap();
        // Where an address has a zone, it is left out here: it says nothing outside its own machine.
        let want = want.split('%').next().unwrap();
        let is_different = DIFFERENT.iter().any(|(different, _)| *different == id);
        let found = client_of(case).unwrap_or_default();
        tally.case(id, (found == want) != is_different);
    }
    tally.finish(45);
}
