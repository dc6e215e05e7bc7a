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

#[test]
fn each_refusal_of_a_domain_says_why() {
    let origin = |text: &str| Origin::parse(text).unwrap();
    let refused = |domain: &str, origin: &Origin| CookieDomain::new(domain, origin).unwrap_err();
    let app = origin("https://app.example.com");
    let mut said = std::collections::BTreeSet::new();
    for (error, expected) in [
        (refused("EXAMPLE.com", &app), DomainError::NotAName),
        (refused("com", &app), DomainError::PublicSuffix),
        (refused("other.com", &app), DomainError::DoesNotCoverHost),
        (refused("example.com", &origin("https://192.0.2.1")), DomainError::HostIsAddress),
    ] {
        assert_eq!(error, expected);
        said.insert(error.to_string());
    }
    assert!(said.len() == 4 && said.iter().all(|text| text.len() > 20), "{said:?}");
}
