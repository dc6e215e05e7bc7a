//! What another site makes a victim's browser send, and what comes on another way than over the site's own.

use std::net::TcpStream;

use http::{Request, StatusCode};
use tokio_tungstenite::tungstenite::{Error, HandshakeError, client, client::IntoClientRequest as _};

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Answer, Browser, FRESH, Flags, Lab},
    on_every_store,
    tools::{assert_nobody, user_of},
};

on_every_store!(
    a25_from_https_down_to_http,
    a25_under_another_host,
    a31_a_login_from_another_site,
    a32_a_change_from_another_site,
    a32_cookies_that_a_browser_should_have_withheld,
    a35_a_socket_from_another_site,
    a37_headers_of_a_proxy_that_is_none,
    a80_another_network_never_becomes_the_baseline,
);

/// No cookie is set, and the log tells of it once, by its cause.
fn assert_no_cookies(answer: &Answer) {
    assert!(answer.cookies.is_empty() && !answer.headers.contains_key("set-cookie"), "{answer:?}");
}

/// A network attacker turns a request into a plain one; the proxy in front says so, trusted or not.
async fn a25_from_https_down_to_http(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    let plain = alice.with_field("x-forwarded-proto", "http");
    assert_no_cookies(&assert_nobody(&plain, "a fresh cookie over plain HTTP").await);
    assert!(lab.told("request_plain_http") > 0);
    lab.pass(FRESH).await;
    assert_no_cookies(&assert_nobody(&plain, "a stale cookie and its token over plain HTTP").await);
    let login = lab.browser().with_field("x-forwarded-proto", "http").ask("POST", "/login", "user=bob").await;
    assert_eq!(login.status, StatusCode::MISDIRECTED_REQUEST);
    assert_no_cookies(&login);
    let write = lab.browser().with_field("x-forwarded-proto", "http").ask("POST", "/data/a", "b").await;
    assert_no_cookies(&write);
    assert_eq!(alice.who().await.as_deref(), Some("alice"), "and the token was not used up");
}

async fn a25_under_another_host(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    for host in ["evil.test", "app.site.test.evil.test", "app.site.test:8443", "127.0.0.1"] {
        let elsewhere = alice.with_field("host", host);
        assert_no_cookies(&assert_nobody(&elsewhere, host).await);
        let login = lab.browser().with_field("host", host).ask("POST", "/login", "user=bob").await;
        assert_eq!(login.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        assert_no_cookies(&login);
    }
    assert!(lab.told("request_wrong_host") > 0);
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
}

/// Where a request can come from that is not the site: by Origin, by Fetch Metadata, by both.
fn foreign(browser: &Browser) -> Vec<Browser> {
    let mut all = Vec::new();
    for origin in [
        "https://evil.test",
        "https://evil.app.site.test",
        "http://app.site.test",
        "https://app.site.test:8443",
        "null",
    ] {
        let from = browser.with_field("origin", origin);
        all.push(from.clone());
        for site in ["cross-site", "same-site", "none"] {
            all.push(from.with_field("sec-fetch-site", site));
        }
    }
    // A worker that sends requests again calls them the site's own, but keeps their Origin.
    all.push(browser.with_field("origin", "https://evil.test").with_field("sec-fetch-site", "same-origin"));
    let silent = Browser { states_origin: false, ..browser.clone() };
    for site in ["cross-site", "same-site", "none", "Same-Origin", ""] {
        all.push(silent.with_field("sec-fetch-site", site));
    }
    all
}

fn assert_refused(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(answer.body.is_empty());
    assert_no_cookies(answer);
}

/// Otherwise the victim would write into the attacker's account.
async fn a31_a_login_from_another_site(lab: Lab) {
    let victim = lab.browser();
    for browser in foreign(&victim) {
        assert_refused(&browser.ask("POST", "/login", "user=mallory").await);
    }
    let alice = lab.signed_in("alice").await;
    for browser in foreign(&alice) {
        assert_refused(&browser.ask("POST", "/login", "user=mallory").await);
        assert_eq!(user_of(&alice).await.as_deref(), Some("alice"));
    }
    assert!(lab.told("cross_site_refused") > 0);
}

async fn a32_a_change_from_another_site(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    alice.visit("POST", "/data/colour", "green").await;
    let token_alone = alice.with_token_alone();
    for owner in [&alice, &token_alone] {
        for browser in foreign(owner) {
            assert_refused(&browser.ask("POST", "/data/colour", "red").await);
            assert_refused(&browser.ask("POST", "/logout", "").await);
            assert_refused(&browser.ask("DELETE", "/sessions/x", "").await);
        }
        let silent = Browser { states_origin: false, ..owner.clone() };
        assert_refused(&silent.ask("POST", "/data/colour", "red").await);
    }
    assert_eq!(alice.visit("GET", "/data/colour", "").await.body, "green");
    // The honest forms that browsers label oddly.
    for (origin, site) in [("null", "same-origin"), ("https://app.site.test", "cross-site")] {
        let odd = alice.with_field("origin", origin).with_field("sec-fetch-site", site);
        assert_eq!(
            odd.ask("POST", "/data/colour", "green").await.status,
            StatusCode::NO_CONTENT,
            "{origin} {site}"
        );
    }
}

/// One browser carries Strict cookies from a sandboxed frame, another sends all cookies from http to https.
async fn a32_cookies_that_a_browser_should_have_withheld(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    let foreign = alice.with_field("sec-fetch-site", "cross-site");
    for (mode, dest) in
        [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("navigate", "object")]
    {
        let part = foreign.with_field("sec-fetch-mode", mode).with_field("sec-fetch-dest", dest);
        assert_nobody(&part, dest).await;
        assert_no_cookies(&part.ask("GET", "/data/colour", "").await);
    }
    assert!(lab.told("cookies_not_withheld") > 0);
    let link = foreign.with_field("sec-fetch-mode", "navigate").with_field("sec-fetch-dest", "document");
    assert_eq!(user_of(&link).await.as_deref(), Some("alice"), "a link arrives signed in");
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
}

/// The status with which a socket is refused; 101 if it is opened.
fn socket(browser: &Browser, origin: Option<&str>) -> u16 {
    let mut request = format!("ws://{}/ws", browser.lab.address()).into_client_request().unwrap();
    let mut head = browser.head(Request::builder());
    if let Some(origin) = origin {
        head = head.header("origin", origin);
    }
    for (name, value) in head.body(()).unwrap().headers() {
        request.headers_mut().insert(name, value.clone());
    }
    match client(request, TcpStream::connect(browser.lab.address()).unwrap()) {
        Ok((_, response)) => response.status().as_u16(),
        Err(HandshakeError::Failure(Error::Http(response))) => response.status().as_u16(),
        Err(error) => panic!("{error}"),
    }
}

async fn a35_a_socket_from_another_site(lab: Lab) {
    let alice = lab.signed_in("alice").await;
    assert_eq!(socket(&alice, Some("https://app.site.test")), 101);
    for origin in [Some("https://evil.test"), Some("https://evil.app.site.test"), Some("null"), None] {
        assert_eq!(socket(&alice, origin), 403, "{origin:?}");
        assert_eq!(socket(&alice.with_field("sec-fetch-site", "cross-site"), origin), 403, "{origin:?}");
    }
    lab.pass(FRESH).await;
    assert_eq!(socket(&alice, Some("https://evil.test")), 403, "also with a stale cookie");
}

/// Names that other layers take for the word of a proxy. There is no gate that speaks for other applications here; what
/// the layer itself reads of a proxy counts from no one who is not trusted.
async fn a37_headers_of_a_proxy_that_is_none(lab: Lab) {
    let alice = lab.signed_in("alice").await;
    for (name, value) in [
        ("x-auth-user", "alice"),
        ("x-forwarded-user", "alice"),
        ("x_forwarded_user", "alice"),
        ("remote-user", "alice"),
        ("x-remote-user", "alice"),
        ("authorization", "Bearer alice"),
        ("x-forwarded-uri", "/logout"),
        ("x-original-url", "/logout"),
    ] {
        assert_nobody(&lab.browser().with_field(name, value), name).await;
        let twice = lab.browser().with_field(name, value).with_field(name, "mallory");
        assert_nobody(&twice, name).await;
        assert_eq!(user_of(&alice.with_field(name, "mallory")).await.as_deref(), Some("alice"), "{name}");
    }
    let elsewhere = alice.with_field("host", "evil.test");
    assert_nobody(&elsewhere.with_field("x-forwarded-host", "app.site.test"), "x-forwarded-host").await;
    let plain = alice.with_field("x-forwarded-proto", "http");
    assert_nobody(&plain.with_field("forwarded", "proto=https;host=app.site.test"), "forwarded").await;
}

/// A thief renews from another platform again and again, and then wants a page that asks for more.
async fn a80_another_network_never_becomes_the_baseline(lab: Lab) {
    let owner = lab.signed_in("alice").await;
    let mut thief = owner.clone();
    thief.user_agent =
        Some("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0");
    assert_eq!(owner.ask("GET", "/recent", "").await.status, StatusCode::OK);
    for _ in 0..3 {
        lab.pass(FRESH / 4).await;
        assert_eq!(thief.visit("GET", "/recent", "").await.status, StatusCode::FORBIDDEN);
        assert_eq!(thief.visit("GET", "/client", "").await.json()["context"], "changed");
    }
    lab.pass(FRESH).await;
    assert_eq!(thief.who().await.as_deref(), Some("alice"));
    assert_eq!(thief.visit("GET", "/client", "").await.json()["context"], "changed", "after a renewal too");
    let mut home = thief.clone();
    home.user_agent = owner.user_agent;
    assert_eq!(home.visit("GET", "/recent", "").await.status, StatusCode::FORBIDDEN, "also back at home");
    home.visit("POST", "/reauthenticate", "").await;
    assert_eq!(home.visit("GET", "/recent", "").await.status, StatusCode::OK);
}

fn lab_with(arguments: &[&str]) -> Lab {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Lab::start(&Flags { arguments, ..Flags::memory() })
}

/// What a client writes itself stands on the left, or comes from a peer that is no proxy.
#[tokio::test]
async fn a54_addresses_that_a_client_makes_up() {
    let address = async |lab: &Lab, fields: &[(&'static str, &str)]| {
        let browser =
            fields.iter().fold(lab.browser(), |browser, (name, value)| browser.with_field(name, value));
        browser.ask("GET", "/client", "").await.json()["address"].as_str().map(str::to_owned)
    };
    let (xff, forwarded) = ("x-forwarded-for", "forwarded");
    let untrusting = lab_with(&[]);
    for field in [(xff, "203.0.113.9"), (forwarded, "for=203.0.113.9"), ("x-real-ip", "203.0.113.9")] {
        assert_eq!(address(&untrusting, &[field]).await.as_deref(), Some("127.0.0.1"), "{field:?}");
    }
    let elsewhere = lab_with(&["--trusted-proxy", "10.0.0.0/8"]);
    assert_eq!(address(&elsewhere, &[(xff, "203.0.113.9, 10.0.0.1")]).await.as_deref(), Some("127.0.0.1"));
    let trusting = lab_with(&["--trusted-proxy", "127.0.0.0/8", "--trusted-proxy", "10.0.0.0/8"]);
    for (fields, expected) in [
        (&[(xff, "203.0.113.9")][..], Some("203.0.113.9")),
        (&[(xff, "6.6.6.6, 203.0.113.9")], Some("203.0.113.9")),
        (&[(xff, "6.6.6.6, 7.7.7.7, 8.8.8.8, 203.0.113.9, 10.0.0.1")], Some("203.0.113.9")),
        (&[(xff, "6.6.6.6"), (xff, "203.0.113.9")], Some("203.0.113.9")),
        (&[(xff, "127.0.0.1, 203.0.113.9, ::ffff:10.0.0.1")], Some("203.0.113.9")),
        (&[(xff, "6.6.6.6, [2001:db8::1%eth0]:443")], Some("2001:db8::1")),
        (&[(xff, "203.0.113.9"), (forwarded, "for=6.6.6.6"), ("x-real-ip", "6.6.6.6")], Some("203.0.113.9")),
        (&[(forwarded, "for=6.6.6.6")], None),
        (&[(xff, "6.6.6.6, nonsense")], None),
        (&[(xff, "6.6.6.6, ")], None),
    ] {
        assert_eq!(address(&trusting, fields).await.as_deref(), expected, "{fields:?}");
    }
    let by_forwarded = lab_with(&["--trusted-proxy", "127.0.0.0/8", "--client-ip-header", "forwarded"]);
    for (value, expected) in [
        ("for=6.6.6.6, for=203.0.113.9", Some("203.0.113.9")),
        ("for=\"6.6.6.6, for=203.0.113.9;proto=https", Some("203.0.113.9")),
        ("for=\"[2001:db8::1]:443\"", Some("2001:db8::1")),
        ("for=203.0.113.9, for=_obfuscated", None),
    ] {
        assert_eq!(
            address(&by_forwarded, &[(forwarded, value), (xff, "6.6.6.6")]).await.as_deref(),
            expected,
            "{value}"
        );
    }
    assert!(by_forwarded.told("client_address_unknown") > 0);
}

/// A forged address neither opens a session bound to another network nor hides that it moved.
#[tokio::test]
async fn a54_a_thief_with_the_owner_s_address() {
    let lab = lab_with(&["--trusted-proxy", "127.0.0.0/8", "--binding", "strict"]);
    let mut owner = lab.browser().with_field("x-forwarded-for", "192.0.2.1");
    owner.visit("POST", "/login", "user=alice").await;
    let at =
        |fields: &str| Browser { fields: Vec::new(), ..owner.clone() }.with_field("x-forwarded-for", fields);
    assert_eq!(user_of(&at("192.0.2.77")).await.as_deref(), Some("alice"));
    for thief in
        ["198.51.100.7", "192.0.2.1, 198.51.100.7", "192.0.2.1, 198.51.100.7, 127.0.0.2", "192.0.2.1, x"]
    {
        assert_nobody(&at(thief), thief).await;
    }
    assert_eq!(
        user_of(&at("203.0.113.1, 192.0.2.5")).await.as_deref(),
        Some("alice"),
        "what stands left is nothing"
    );
}

/// A site whose worker sends POSTs again: no header tells a foreign form from an own one, its token does.
#[tokio::test]
async fn a32_a_form_that_a_service_worker_launders() {
    let lab = lab_with(&["--form-tokens", "on"]);
    let mut alice = lab.browser();
    assert_eq!(alice.visit("POST", "/login", "user=alice").await.status, StatusCode::NO_CONTENT);
    let form = |browser: &Browser| {
        let browser = browser.clone();
        async move {
            let page = browser.ask("GET", "/form", "").await.body;
            page.split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        }
    };
    let (token, again) = (form(&alice).await, form(&alice).await);
    assert_ne!(token, again, "masked anew: a compressed answer tells nothing");
    let mallory = {
        let mut mallory = lab.browser();
        mallory.visit("POST", "/login", "user=mallory").await;
        form(&mallory).await
    };
    let launders = alice.with_field("sec-fetch-site", "same-origin");
    for forged in [String::new(), "x".into(), "A".repeat(43), mallory, token[1..].to_owned()] {
        let answer = launders.ask("POST", "/claims", &format!("role=admin&form_token={forged}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert_eq!(
            launders.with_field("x-form-token", &forged).ask("POST", "/data/a", "b").await.status,
            403
        );
    }
    assert!(lab.told("form_token_refused") > 0);
    for token in [&token, &again] {
        let answer = alice.ask("POST", "/data/colour", &format!("form_token={token}")).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
    }
    let mut anew = alice.clone();
    let answer = anew.with_field("x-form-token", &token).visit("POST", "/reauthenticate", "").await;
    anew.take(&answer);
    let old = anew.ask("POST", "/data/colour", &format!("form_token={token}")).await;
    assert_eq!(old.status, StatusCode::FORBIDDEN, "new at each authentication");
}

/// Values that a browser holds of the application's own cookies, pasted elsewhere.
#[tokio::test]
async fn a39_sealed_cookies_of_the_application_pasted_elsewhere() {
    let lab = lab_with(&["--seal-cookie", "prefs", "--seal-cookie", "__Host-cart"]);
    let (alice, bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    let set = |browser: &Browser, name: &'static str| {
        let browser = browser.clone();
        async move {
            let answer = browser.ask("POST", "/emit", &format!("{name}=s3cret; Path=/; Max-Age=600")).await;
            let line = answer.headers.get("set-cookie").unwrap().to_str().unwrap().to_owned();
            line.split(';').next().unwrap().split_once('=').unwrap().1.to_owned()
        }
    };
    let shows = |browser: &Browser, pair: String| {
        let browser = browser.with_field("cookie", pair);
        async move { browser.ask("GET", "/cookies", "").await.body }
    };
    let (prefs, cart) = (set(&alice, "prefs").await, set(&alice, "__Host-cart").await);
    assert!(!prefs.contains("s3cret"));
    assert_eq!(
        shows(&alice, format!("prefs={prefs}; __Host-cart={cart}")).await,
        "prefs=s3cret; __Host-cart=s3cret"
    );
    for (browser, pair) in [
        (&alice, format!("prefs={cart}")),
        (&alice, format!("__Host-cart={prefs}")),
        (&bob, format!("prefs={prefs}")),
        (&lab.browser(), format!("prefs={prefs}")),
        (&alice, "prefs=s3cret".into()),
        (&alice, format!("prefs={}", alice.value(SESSION))),
        (&alice, format!("prefs={prefs}; prefs={prefs}")),
        (&alice, format!("prefs={}", &prefs[..prefs.len() - 1])),
    ] {
        assert_eq!(shows(browser, pair.clone()).await, "", "{pair}");
    }
    assert!(lab.told("sealed_cookie_refused") > 0);
    // Nor is one of ours: each has a purpose of its own.
    assert_nobody(&lab.browser().holding(Some(&prefs), None), "a sealed cookie as a session").await;
    assert_nobody(&lab.browser().holding(None, Some(&prefs)), "and as a token").await;
    lab.pass(600).await;
    assert_eq!(shows(&alice, format!("prefs={prefs}")).await, "", "though a browser may still send it");
    assert!(!alice.jar.value(RENEWAL).unwrap().is_empty());
}
