//! The registrable domain against the public suffix list's own tests, and the Domain attribute's rules.

use super::*;
use crate::corpus::{self, Tally};

#[test]
fn public_suffix_list() {
    let Some(file) = corpus::read("psl/test_psl.json") else { return };
    let mut tally = Tally::new("psl/test_psl");
    for case in file["cases"].as_array().unwrap() {
        // The list's tests take any case; here a name is lower case before it is asked about, and null is no name.
        let input = case["input_ascii"].as_str().unwrap_or_default().to_ascii_lowercase();
        tally.case(case["id"].as_str().unwrap(), registrable(&input) == case["registrable_ascii"].as_str());
    }
    tally.finish(78);
}

#[test]
fn a_domain_covers_its_host_and_is_no_public_suffix() {
    for (origin, domain, expected) in [
        ("https://app.example.com", "example.com", Ok(())),
        ("https://app.example.com", "app.example.com", Ok(())),
        ("https://app.example.com", "xample.com", Err(DomainError::DoesNotCoverHost)),
        ("https://app.example.com", "www.app.example.com", Err(DomainError::DoesNotCoverHost)),
        ("https://app.example.com", "com", Err(DomainError::PublicSuffix)),
        ("https://alice.github.io", "github.io", Err(DomainError::PublicSuffix)),
        ("https://app.example.com", "Example.com", Err(DomainError::NotAName)),
        ("https://app.example.com", ".example.com", Err(DomainError::NotAName)),
        ("https://192.0.2.10", "192.0.2.10", Err(DomainError::HostIsAddress)),
        ("https://localhost", "localhost", Err(DomainError::PublicSuffix)),
    ] {
        let origin = Origin::parse(origin).unwrap();
        assert_eq!(CookieDomain::new(domain, &origin).map(drop), expected, "{domain} for {origin}");
    }
}
