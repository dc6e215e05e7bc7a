//! The Set-Cookie builder against the corpus: each row is said to the builder as far as its types can say it.

use super::*;
use crate::{
    cookie::{CookieDomain, NameError, Origin},
    corpus::{self, Tally},
};

/// Where the builder is stricter than the corpus, and why.
const STRICTER: [(&str, &str); 2] = [
    ("emit-91", "name and value may reach 4096 bytes, but here the whole line must stay below them"),
    ("emit-104", "a lifetime is stated by Max-Age only: Expires is judged by the browser's clock"),
];

/// The same line from the builder; `None` where its types or checks refuse.
fn rebuild(line: &str, scheme: &str, host: &str) -> Option<String> {
    let origin = Origin::parse(&format!("{scheme}://{host}")).ok()?;
    let (pair, attributes) = line.split_once("; ")?;
    let (name, value) = pair.split_once('=')?;
    let (mut secure, mut http_only, mut partitioned) = (false, false, false);
    let (mut path, mut domain, mut same_site, mut max_age) = (None, None, None, None);
    for attribute in attributes.split("; ") {
        let (key, value) =
            attribute.split_once('=').map_or((attribute, None), |(key, value)| (key, Some(value)));
        let twice = match (key, value) {
            ("Secure", None) => std::mem::replace(&mut secure, true),
            ("HttpOnly", None) => std::mem::replace(&mut http_only, true),
            ("Partitioned", None) => std::mem::replace(&mut partitioned, true),
            ("Path", Some(value)) => path.replace(value).is_some(),
            ("Domain", Some(value)) => domain.replace(value).is_some(),
            ("SameSite", Some(value)) => same_site.replace(value).is_some(),
            ("Max-Age", Some(value)) => max_age.replace(value.parse().ok()?).is_some(),
            _ => return None,
        };
        if twice {
            return None;
        }
    }
    // What the types do not let one leave out.
    let (path, same_site) = (path?, same_site?);
    if !secure || !http_only {
        return None;
    }
    let embedded = same_site == "None" && partitioned;
    let (scope, base) = if let Some(base) = name.strip_prefix("__Host-Http-") {
        (Scope::HostHttp, base)
    } else if let Some(base) = name.strip_prefix("__Host-") {
        (if embedded { Scope::Embedded } else { Scope::Host }, base)
    } else {
        let base = name.strip_prefix("__Secure-")?;
        let domain = match domain {
            Some(domain) => Some(CookieDomain::new(domain, &origin).ok()?),
            None => None,
        };
        (Scope::Secure { domain, path: path.into() }, base)
    };
    let same_site = match same_site {
        "Strict" => SameSite::Strict,
        "Lax" => SameSite::Lax,
        _ if scope == Scope::Embedded => SameSite::Lax,
        _ => return None,
    };
    let cookie = SetCookie::new(base, scope, same_site, value).ok()?;
    let cookie = match max_age {
        Some(seconds) => cookie.max_age(Duration::from_secs(seconds)).ok()?,
        None => cookie,
    };
    Some(cookie.to_string())
}

/// The attributes of a line, in no order.
fn sorted(line: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = line.split("; ").collect();
    parts.sort_unstable();
    parts
}

#[test]
fn server_emit() {
    let Some(file) = corpus::read("server_emit.json") else { return };
    let mut tally = Tally::new("server_emit");
    for case in file["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let line = case["set_cookie"].as_str().unwrap();
        let request = |member: &str| case["request"][member].as_str().unwrap();
        let rebuilt = rebuild(line, request("scheme"), request("host"));
        let emitted = match &rebuilt {
            // A row whose attributes the types cannot say, such as `__Host-` with a path, comes out different.
            Some(rebuilt) => sorted(rebuilt) == sorted(line),
            None => false,
        };
        let expected =
            case["strict_server"] == "emit" && !STRICTER.iter().any(|(stricter, _)| *stricter == id);
        tally.case(id, emitted == expected);
    }
    tally.finish(84);
}

#[test]
fn a_removal_repeats_every_attribute() {
    let origin = Origin::parse("https://app.example.com").unwrap();
    let domain = CookieDomain::new("example.com", &origin).unwrap();
    for (scope, expected) in [
        (Scope::HostHttp, "__Host-Http-s=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"),
        (Scope::Embedded, "__Host-s=; Path=/; Secure; HttpOnly; SameSite=None; Partitioned; Max-Age=0"),
        (Scope::Localhost, "s=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"),
        (
            Scope::Secure { domain: Some(domain), path: "/a".into() },
            "__Secure-s=; Path=/a; Domain=example.com; Secure; HttpOnly; SameSite=Lax; Max-Age=0",
        ),
    ] {
        let cookie = SetCookie::new("s", scope, SameSite::Lax, "value").unwrap();
        assert_eq!(cookie.removal().to_string(), expected);
        assert!(!format!("{cookie:?}").contains("value"));
    }
}

/// A cookie under a path that no URL has is stored and never sent (found by fuzzing: `/?a`).
#[test]
fn a_path_is_one_that_a_url_can_have() {
    let cookie = |path: &str| {
        SetCookie::new("s", Scope::Secure { domain: None, path: path.into() }, SameSite::Lax, "v")
    };
    for path in ["/", "/a", "/a/", "/a/b.c/..d/~e", "/a%20b", "/:@!$&'()*+,=-._|[]"] {
        assert!(cookie(path).is_ok(), "{path}");
    }
    let longest = format!("/{}", "a".repeat(1023));
    let long = format!("{longest}a");
    for path in [
        "",
        "a",
        "/?a",
        "/a?",
        "/#",
        "/a b",
        "/a;b",
        "/\"",
        "/<",
        "/>",
        "/\\",
        "/^",
        "/`",
        "/{",
        "/}",
        "/\t",
        "/\u{e9}",
        "/.",
        "/..",
        "/a/../b",
        "/a/%2E%2e",
        "/%2e/",
        &long,
    ] {
        assert_eq!(cookie(path), Err(SetCookieError::Path), "{path}");
    }
    assert!(cookie(&longest).is_ok());
}

/// The bounds of what can be stated, to the second and the byte.
#[test]
fn names_values_and_lifetimes_have_bounds() {
    let cookie = |base: &str, value: &str| SetCookie::new(base, Scope::Host, SameSite::Strict, value);
    for (base, error) in [
        ("", NameError::NotAToken),
        ("a b", NameError::NotAToken),
        ("a=b", NameError::NotAToken),
        ("a;b", NameError::NotAToken),
        ("\u{e9}", NameError::NotAToken),
        ("$a", NameError::Dollar),
        ("a%62", NameError::Percent),
        ("__Host-a", NameError::Prefix),
    ] {
        assert_eq!(cookie(base, "v"), Err(SetCookieError::Name(error)), "{base}");
        assert!(error.to_string().contains("it "), "{error:?} says what is wrong");
        assert!(SetCookieError::Name(error).to_string().contains(&error.to_string()));
    }
    for value in ["a b", "a,b", "a;b", "a\"b", "a\\b", "\n", "\u{e9}", "\u{7f}"] {
        assert_eq!(cookie("a", value), Err(SetCookieError::Value), "{value}");
    }
    let cookie = cookie("a", "!#+-:<[]~").unwrap();
    assert_eq!(cookie.name(), "__Host-a");
    let (longest, longer) = (Duration::from_secs(34_560_000), Duration::from_secs(34_560_001));
    assert!(cookie.clone().max_age(longest).unwrap().to_string().ends_with("; Max-Age=34560000"));
    assert_eq!(cookie.clone().max_age(longer), Err(SetCookieError::Lifetime));
    assert!(format!("{cookie:?}").starts_with("SetCookie(\"__Host-a=..; Path=/"), "{cookie:?}");
    let said = [SetCookieError::Value, SetCookieError::Path, SetCookieError::Lifetime, SetCookieError::Size];
    let said: std::collections::BTreeSet<String> = said.iter().map(ToString::to_string).collect();
    assert!(said.len() == 4 && said.iter().all(|text| text.len() > 20), "each says something else");
}

#[test]
fn the_line_stays_below_4096_bytes() {
    let fixed = "__Host-Http-s=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=60".len();
    let cookie = |length| {
        SetCookie::new("s", Scope::HostHttp, SameSite::Lax, &"a".repeat(length))
            .and_then(|cookie| cookie.max_age(Duration::from_secs(60)))
    };
    assert_eq!(cookie(4095 - fixed).map(|cookie| cookie.to_string().len()), Ok(4095));
    assert_eq!(cookie(4096 - fixed), Err(SetCookieError::Size));
}
