//! The 1260 rows of the matrix: what is said here, what Go 1.25 and Rails 8.2 say, and why it differs where it does.

use serde_json::Value;

use super::*;
use crate::corpus;

/// Why a row is judged as it is, in the words of the rule that decided.
fn why(row: &Value) -> &'static str {
    let text = |member: &str| row[member].as_str();
    match (text("method"), text("origin_kind"), text("sec_fetch_site")) {
        (Some("GET" | "HEAD" | "OPTIONS"), ..) => "it changes nothing",
        (_, Some("same"), _) => "the site's own Origin outweighs Fetch Metadata: honest noopener windows",
        (_, Some("trusted"), _) => "so does a trusted one",
        (_, Some("absent" | "null"), Some("same-origin")) => {
            "an Origin that is withheld falls back to Fetch Metadata"
        }
        (_, Some("absent" | "null"), Some("none")) => {
            "`none` is no proof of a person: speculation says it too"
        }
        (_, Some("absent" | "null"), Some("same-site")) => "a sibling subdomain is not the site",
        (_, Some("absent" | "null"), Some(_)) => "in exactly the letters of the standard",
        (_, Some("null"), None) => "an opaque origin alone proves nothing",
        (_, Some("absent"), None) => "it carries cookies and says nothing: no browser of this decade",
        _ => "a foreign Origin, or one in another spelling or scheme, always refuses",
    }
}

/// The verdict on a row whose request carries our cookies to an https site.
fn allows(row: &Value) -> bool {
    let own = Origin::parse(&format!("https://{}", row["host"].as_str().unwrap())).unwrap();
    let mut policy = CrossSite::enforce();
    for trusted in row["trusted_origins"].as_array().unwrap() {
        policy = policy.trust_origin(trusted.as_str().unwrap());
    }
    assert!(policy.check(false).is_empty());
    let mut headers = HeaderMap::new();
    for (member, name) in [("origin", "origin"), ("sec_fetch_site", SEC_FETCH_SITE.as_str())] {
        if let Some(value) = row[member].as_str() {
            headers.insert(name, value.parse().unwrap());
        }
    }
    let method = row["method"].as_str().unwrap().parse().unwrap();
    !policy.concerns(&method, "/", false) || policy.judge(&own, &headers, || true).is_ok()
}

#[test]
#[allow(clippy::print_stdout, reason = "`tests/run test` shows how many cases passed")]
fn csrf_decisions() {
    let Some(file) = corpus::read("csrf_decisions.json") else { return };
    let rows = file["cases"].as_array().unwrap();
    let allowed_by_rule = |row: &Value| {
        ["it changes nothing", "the site's own", "so does", "an Origin that is withheld"]
            .iter()
            .any(|start| why(row).starts_with(start))
    };
    let mut differs = [0; 3];
    for row in rows {
        let ours = allows(row);
        assert_eq!(ours, allowed_by_rule(row), "{row}");
        for (count, column) in
            differs.iter_mut().zip(["go_1_25", "rails_8_2_header_only", "rails_8_2_header_only_origin_check"])
        {
            *count += usize::from(ours != (row[column] == "allow"));
        }
    }
    println!(
        "CORPUS csrf_decisions: {} rows; other than Go in {}, than Rails in {} and {}; the rule that decided says why",
        rows.len(),
        differs[0],
        differs[1],
        differs[2]
    );
    assert_eq!((rows.len(), differs), (1260, [252, 496, 414]));
}

#[test]
fn what_go_learned_holds_here() {
    let Some(file) = corpus::read("csrf_decisions.json") else { return };
    for case in file["upstream_go_trusted_origin_syntax"].as_array().unwrap() {
        let text = case["origin"].as_str().unwrap();
        let accepted = CrossSite::enforce().trust_origin(text).check(false).is_empty();
        // Ours is narrower: https, or the local machine.
        assert!(!accepted || case["ok"] == true, "{text}");
        if case["ok"] == true && text.starts_with("https://") {
            assert!(accepted, "{text}");
        }
    }
    // CVE-2025-47910: only the very path is exempt, never one that would be redirected to it.
    let policy = CrossSite::enforce().bypass(Method::POST, "/bypass/");
    for path in ["/bypass", "/bypass//", "/foo/../bypass/", "/bypass/x", "/BYPASS/", "/%62ypass/"] {
        assert!(policy.concerns(&Method::POST, path, false), "{path}");
    }
    assert!(!policy.concerns(&Method::POST, "/bypass/", false));
    assert!(policy.concerns(&Method::PUT, "/bypass/", false));
    for path in ["bypass", "/a/*", "/{id}", "/a?b", ""] {
        assert_eq!(CrossSite::enforce().bypass(Method::POST, path).check(false).len(), 1, "{path}");
    }
}

#[test]
fn one_word_is_asked_for() {
    let own = Origin::parse("https://app.example.com").unwrap();
    let verdict = |fields: &[(&'static str, &'static str)], carries: bool| {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        CrossSite::enforce().judge(&own, &headers, || carries)
    };
    let (origin, site) = ("origin", "sec-fetch-site");
    for (fields, carries, expected) in [
        (&[][..], false, Ok(())),
        (&[], true, Err(CrossSiteReason::NothingSaid)),
        (&[(origin, "null")], false, Err(CrossSiteReason::NullOrigin)),
        (&[(origin, "null"), (site, "cross-site")], true, Err(CrossSiteReason::NullOrigin)),
        (&[(origin, "")], false, Err(CrossSiteReason::ForeignOrigin)),
        (
            &[(origin, "https://app.example.com"), (origin, "https://evil.example")],
            true,
            Err(CrossSiteReason::ForeignOrigin),
        ),
        (&[(site, "same-origin"), (site, "cross-site")], true, Err(CrossSiteReason::FetchMetadata)),
        (&[(site, "")], false, Err(CrossSiteReason::FetchMetadata)),
        (&[(origin, "https://app.example.com"), (site, "cross-site")], true, Ok(())),
        (&[(origin, "https://app.example.com:443")], true, Err(CrossSiteReason::ForeignOrigin)),
        (&[(origin, "http://app.example.com")], true, Err(CrossSiteReason::ForeignOrigin)),
    ] {
        assert_eq!(verdict(fields, carries), expected, "{fields:?}");
    }
}
