//! The policy against the corpus of lines, and row by row what becomes of a line.

use super::*;
use crate::corpus::{self, Tally};

const NOW: Timestamp = Timestamp::from_seconds(1_796_040_000);

/// Where the policy is stricter or milder than the corpus, and why.
const DIFFERENT: [(&str, &str); 4] = [
    ("emit-91", "name and value may reach 4096 bytes, but here the whole line must stay below them"),
    ("emit-6", "a cookie of an embedded page is one by an exception, which this row has none of"),
    ("emit-68", "in a finished line a semicolon begins an attribute, and an unknown one may be of tomorrow"),
    ("emit-112", "the same"),
];

fn origin() -> Origin {
    Origin::parse("https://app.example.com").unwrap()
}

fn sending(origin: &Origin) -> Sending<'_> {
    Sending { origin, path: "/account/login", cross_site: false, now: NOW }
}

/// What becomes of one line: its text, or the rule for which it is dropped; and the rules that were broken.
fn enforced(line: &str) -> (Result<String, CookieRule>, Vec<CookieRule>) {
    let origin = origin();
    let (kept, findings) =
        CookiePolicy::enforce().apply(&[line.as_bytes()], sending(&origin), &[], |_| false);
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    let [kept] = kept.as_slice() else { panic!("one line in, one out") };
    match kept {
        Some(line) => (Ok(String::from_utf8(line.to_vec()).unwrap()), rules),
        None => (Err(rules[0]), rules),
    }
}

#[test]
fn server_emit() {
    let Some(file) = corpus::read("server_emit.json") else { return };
    let mut tally = Tally::new("server_emit (policy)");
    for case in file["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let request = |member: &str| case["request"][member].as_str().unwrap();
        let origin = Origin::parse(&format!("{}://{}", request("scheme"), request("host")));
        let found = origin.is_ok_and(|origin| {
            let lines = [case["set_cookie"].as_str().unwrap()];
            CookiePolicy::enforce().lint(&origin, request("path"), lines, NOW).is_empty()
        });
        let is_different = DIFFERENT.iter().any(|(other, _)| *other == id);
        let expected = (case["strict_server"] == "emit") != is_different;
        tally.case(id, found == expected);
    }
    tally.finish(84);
}

#[test]
fn what_is_left_out_is_written_out() {
    for (line, mended) in [
        ("a=b", "a=b; Path=/account; Secure; HttpOnly; SameSite=Lax"),
        ("a=b; Path=/; Secure; HttpOnly; SameSite=Strict", "a=b; Path=/; Secure; HttpOnly; SameSite=Strict"),
        ("a=b; path=/x; secure; httponly; samesite=lax", "a=b; path=/x; secure; httponly; samesite=lax"),
        ("a=b; Path=x; SameSite=Foo", "a=b; Path=/account; Secure; HttpOnly; SameSite=Lax"),
        ("a=b; Path=/; SameSite=None; Secure; Partitioned", "a=b; Path=/; Secure; HttpOnly; SameSite=Lax"),
        ("__Host-a=b", "__Host-a=b; Path=/; Secure; HttpOnly; SameSite=Lax"),
        ("__Host-a=; Max-Age=0", "__Host-a=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"),
        (
            "a=b; Domain=.Example.COM; Path=/; Priority=High",
            "a=b; Path=/; Domain=example.com; Secure; HttpOnly; SameSite=Lax; Priority=High",
        ),
        ("a=b; Domain=; Path=/", "a=b; Path=/; Secure; HttpOnly; SameSite=Lax"),
        ("a=b; Path=/; Max-Age=-5", "a=b; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"),
        ("a=b; Path=/; Max-Age=soon", "a=b; Path=/; Secure; HttpOnly; SameSite=Lax"),
        (
            "a=b; Path=/; Max-Age=99999999999999999999999",
            "a=b; Path=/; Max-Age=34560000; Secure; HttpOnly; SameSite=Lax",
        ),
        (
            "a=b; Path=/; Expires=Thu, 01-Jan-1970 00:00:01 GMT",
            "a=b; Path=/; Expires=Thu, 01 Jan 1970 00:00:01 GMT; Secure; HttpOnly; SameSite=Lax",
        ),
        (
            "a=b; Path=/; Expires=Tue, 01 Dec 2099 12:00:00 GMT",
            "a=b; Path=/; Expires=Tue, 04 Jan 2028 12:00:00 GMT; Secure; HttpOnly; SameSite=Lax",
        ),
        ("a=b; Path=/; Path=/x; Secure; Secure", "a=b; Path=/x; Secure; HttpOnly; SameSite=Lax"),
    ] {
        let (kept, rules) = enforced(line);
        assert_eq!(kept.as_deref(), Ok(mended), "{line}");
        assert_eq!(rules.is_empty(), line == mended, "{line}: {rules:?}");
        // What was mended obeys.
        assert_eq!(enforced(mended), (Ok(mended.into()), Vec::new()), "{line}");
    }
    let long = format!("a=b; Path=/; Secure; HttpOnly; SameSite=Lax; Domain={}", "x".repeat(1025));
    assert_eq!(enforced(&long).0.as_deref(), Ok("a=b; Path=/; Secure; HttpOnly; SameSite=Lax"));
    assert_eq!(enforced(&long).1, [CookieRule::Size]);
}

#[test]
fn what_cannot_be_mended_is_dropped() {
    for (line, rule) in [
        ("a=b\r\nSet-Cookie: x=y", CookieRule::Control),
        ("=b; Path=/", CookieRule::Name),
        ("b; Path=/", CookieRule::Name),
        ("__Host-b; Path=/", CookieRule::Name),
        ("$Version=1; Path=/", CookieRule::Name),
        ("%5F%5FHost-sid=b; Path=/", CookieRule::Name),
        ("a b=c; Path=/", CookieRule::Name),
        ("a=b c; Path=/", CookieRule::Value),
        ("a=\"b\"; Path=/", CookieRule::Value),
        ("__host-a=b; Path=/; Secure", CookieRule::Prefix),
        ("__HostHttp-a=b; Path=/; Secure", CookieRule::Prefix),
        ("__Host-a=b; Path=/x; Secure", CookieRule::Prefix),
        ("__Host-a=b; Path=/; Domain=example.com; Secure", CookieRule::Prefix),
        ("a=b; Domain=com; Path=/", CookieRule::Domain),
        ("a=b; Domain=other.example.com; Path=/", CookieRule::Domain),
        ("a=b; Domain=example.com.; Path=/", CookieRule::Domain),
        ("a=b; Path=/a b", CookieRule::Path),
    ] {
        assert_eq!(enforced(line).0, Err(rule), "{line}");
    }
    assert_eq!(enforced(&format!("a={}; Path=/", "x".repeat(4096))).0, Err(CookieRule::Size));
    // Name and value would be kept, but the line is too long once it says everything.
    assert_eq!(enforced(&format!("a={}", "x".repeat(4060))).0, Err(CookieRule::Size));
}

#[test]
fn exceptions_are_by_name_and_rule() {
    let origin = origin();
    let policy = CookiePolicy::enforce().except("theme", CookieRule::HttpOnly, "a script reads it").except(
        "__Host-embed",
        CookieRule::SameSite,
        "a page embedded in partners' sites",
    );
    let kept = |line: &str| {
        let (kept, _) = policy.apply(&[line.as_bytes()], sending(&origin), &[], |_| false);
        kept[0].as_deref().map(|line| String::from_utf8(line.to_vec()).unwrap())
    };
    assert_eq!(kept("theme=x; Path=/").as_deref(), Some("theme=x; Path=/; Secure; SameSite=Lax"));
    assert_eq!(kept("Theme=x; Path=/").as_deref(), Some("Theme=x; Path=/; Secure; HttpOnly; SameSite=Lax"));
    let embedded = "__Host-embed=x; Path=/; Secure; HttpOnly; SameSite=None; Partitioned";
    assert_eq!(kept(embedded).as_deref(), Some(embedded));
    let unstated = kept("__Host-embed=x; Path=/; Secure; HttpOnly");
    assert_eq!(
        unstated.as_deref(),
        Some("__Host-embed=x; Path=/; Secure; HttpOnly; SameSite=Lax"),
        "stated in any case"
    );
    assert_eq!(policy.check(), []);
    let wrong =
        CookiePolicy::enforce().except("a", CookieRule::Prefix, "because").except("b", CookieRule::Path, " ");
    assert_eq!(
        wrong.check(),
        [
            CookiePolicyError::NotExceptable("a".into(), CookieRule::Prefix),
            CookiePolicyError::NoReason("b".into()),
        ]
    );
    for error in wrong.check() {
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    }
}

#[test]
fn of_two_lines_for_one_cookie_the_last_counts() {
    let origin = origin();
    let end = "; Secure; HttpOnly; SameSite=Lax";
    for (lines, left) in [
        (["a=1; Path=/", "a=2; Path=/"], [false, true]),
        (["a=1; Path=/", "a=2; Path=/x"], [false, true]),
        (["a=1; Path=/", "b=2; Path=/"], [true, true]),
        // Cleaning up what an older version set elsewhere.
        (["a=; Path=/old; Max-Age=0", "a=2; Path=/"], [true, true]),
        (["a=; Path=/old; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a=2; Path=/"], [true, true]),
        (["a=; Path=/; Max-Age=0", "a=2; Path=/"], [false, true]),
    ] {
        let lines = lines.map(|line| format!("{line}{end}"));
        let bytes: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let (kept, findings) = CookiePolicy::enforce().apply(&bytes, sending(&origin), &[], |_| false);
        assert_eq!(kept.iter().map(Option::is_some).collect::<Vec<_>>(), left, "{lines:?}");
        assert!(findings.iter().all(|finding| finding.rule == CookieRule::Repeated), "{findings:?}");
    }
}

#[test]
fn report_touches_nothing_but_the_sessions_names() {
    let origin = origin();
    let lines: [&[u8]; 3] = [b"a=b", b"c=b c", b"__HOST-http-session=x; Path=/; Secure"];
    let reserved = ["__Host-Http-session"];
    for (policy, found) in [(CookiePolicy::report(), 6), (CookiePolicy::off(), 1)] {
        let (kept, findings) = policy.apply(&lines, sending(&origin), &reserved, |_| false);
        assert_eq!(kept, [Some(Cow::Borrowed(lines[0])), Some(Cow::Borrowed(lines[1])), None]);
        assert_eq!(findings.len(), found, "{findings:?}");
    }
    let cross_site = Sending { cross_site: true, ..sending(&origin) };
    let line: &[u8] = b"a=b; Path=/; Secure; HttpOnly; SameSite=Lax";
    let (kept, findings) = CookiePolicy::enforce().apply(&[line], cross_site, &[], |_| false);
    assert_eq!((kept, findings[0].rule), (vec![None], CookieRule::CrossSite));
}

#[test]
fn a_finding_names_the_cookie_and_never_its_value() {
    let origin = origin();
    let name = format!("n\u{e9}{}", "x".repeat(100));
    let line = format!("{name}=s3cret; Path=/");
    let (_, findings) = CookiePolicy::enforce().apply(&[line.as_bytes()], sending(&origin), &[], |_| false);
    let shown = findings[0].to_string();
    assert!(shown.contains("n\\xc3\\xa9x") && shown.len() < 200 && !shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("Remedy: "), "{shown}");
}

/// Found by a reviewer: a client chooses the path of its request, and `;` may stand in it.
#[test]
fn the_path_of_a_request_adds_no_attributes() {
    let origin = origin();
    let long = format!("/{}/x", "a".repeat(4100));
    for path in ["/x;Domain=example.com;Path=/;Max-Age=34560000/y", "/a b/c", "/\"/c", long.as_str()] {
        let sending = Sending { path, ..sending(&origin) };
        let (kept, findings) = CookiePolicy::enforce().apply(&[b"a=b"], sending, &[], |_| false);
        assert_eq!(kept[0].as_deref(), Some(&b"a=b; Secure; HttpOnly; SameSite=Lax"[..]), "{path}");
        assert!(findings.iter().all(|finding| finding.rule != CookieRule::Path), "a browser defaults it");
    }
}

/// What removes a cookie still removes it.
#[test]
fn a_removal_stays_a_removal() {
    for (line, mended) in [
        (
            "a=; Path=/; Expires=Mon, 01 Jan 1601 00:00:00 GMT",
            "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly; SameSite=Lax",
        ),
        (
            "a=; Path=/; Expires=Sun, 31 Dec 1899 23:59:59 GMT",
            "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly; SameSite=Lax",
        ),
        (
            "old=; Path=/; Secure; HttpOnly; SameSite=None; Partitioned; Max-Age=0",
            "old=; Path=/; Secure; HttpOnly; SameSite=None; Partitioned; Max-Age=0",
        ),
        (
            "old=; Path=/; Secure; HttpOnly; Partitioned; Max-Age=0",
            "old=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=None; Partitioned",
        ),
    ] {
        assert_eq!(enforced(line).0.as_deref(), Ok(mended), "{line}");
    }
    let origin = origin();
    let policy = CookiePolicy::enforce().except("e", CookieRule::SameSite, "an embedded page");
    let line: &[u8] = b"e=1; Path=/; Secure; HttpOnly; Partitioned";
    let (kept, _) = policy.apply(&[line], sending(&origin), &[], |_| false);
    assert_eq!(kept[0].as_deref(), Some(&b"e=1; Path=/; Secure; HttpOnly; SameSite=None; Partitioned"[..]));
}

/// A later line that is dropped itself takes no other's place.
#[test]
fn of_two_lines_one_is_left() {
    let origin = origin();
    for later in [&b"theme=a b; Path=/"[..], b"theme=x; Path=/; Domain=evil.test"] {
        let lines: [&[u8]; 2] = [b"theme=light; Path=/; Secure; HttpOnly; SameSite=Lax", later];
        let (kept, _) = CookiePolicy::enforce().apply(&lines, sending(&origin), &[], |_| false);
        assert_eq!(kept, [Some(Cow::Borrowed(lines[0])), None]);
    }
}

/// A cookie without a name arrives as what its value says.
#[test]
fn a_nameless_cookie_is_not_ours_whatever_the_policy() {
    let origin = origin();
    for line in [&b"=__Host-Http-session=x"[..], b"__host-http-session", b"=__HOST-Http-session"] {
        for policy in [CookiePolicy::enforce(), CookiePolicy::report(), CookiePolicy::off()] {
            let (kept, findings) =
                policy.apply(&[line], sending(&origin), &["__Host-Http-session"], |_| false);
            assert_eq!((kept, findings[0].rule), (vec![None], CookieRule::Reserved));
        }
    }
}
