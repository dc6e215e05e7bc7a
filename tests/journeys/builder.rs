//! The builder says everything that is wrong, and what to do about it. Wording is part of the promise: a change of it is
//! seen here.

use std::time::Duration;

use http::Method;
use portcullis::{
    BindingPolicy, CookiePolicy, CrossSite, DeviceBinding, KeyRing, MemoryStore, SessionLayer,
    SessionLayerBuilder, Timeouts,
    cookie::{CookieRule, SameSite},
    session::{ContextSignal, Reaction},
};

fn builder(origin: &str) -> SessionLayerBuilder {
    SessionLayer::builder(origin, KeyRing::generate().unwrap(), MemoryStore::new())
}

fn refusal(builder: SessionLayerBuilder) -> String {
    let error = builder.build().unwrap_err();
    for problem in error.problems() {
        assert!(!problem.setting().is_empty() && !problem.remedy().is_empty());
        assert!(problem.to_string().contains(problem.remedy()));
    }
    assert_eq!(format!("{error:?}"), error.to_string(), "`main` shows an error with Debug");
    error.to_string()
}

fn bad_timeouts() -> Timeouts {
    let seconds = Duration::from_secs;
    Timeouts::default().fresh(seconds(100)).grace(seconds(100)).idle(seconds(90)).absolute(seconds(80))
}

#[test]
fn every_problem_is_told_at_once() {
    let all = builder("https://app.example.com").timeouts(bad_timeouts()).recent(Duration::ZERO);
    assert_eq!(
        refusal(all.cookie_domain("co.uk")),
        "the session layer cannot be built:\n\
         - timeouts: `grace` (100s) is more than half of `fresh` (100s). Remedy: set `grace` (30 s by default) to half \
         of `fresh` or less, so that a thief's stay in it is bounded.\n\
         - timeouts: `fresh` (100s) is not shorter than the `idle` (90s). Remedy: set `fresh` well below `idle`: a \
         session is only known to be in use when it renews.\n\
         - timeouts: the `idle` (90s) is longer than the `absolute` (80s). Remedy: set `idle` to `absolute` or less.\n\
         - recent: it is zero. Remedy: set it to some minutes; the default is 5.\n\
         - cookie_domain: `co.uk`: it is a public suffix: strangers live below it. Remedy: name a registrable domain that \
         the origin's host is in, or leave it out."
    );
}

#[test]
fn a_bad_origin_does_not_hide_the_other_problems() {
    let all = builder("App.example.com/").timeouts(bad_timeouts()).recent(Duration::ZERO);
    assert_eq!(
        refusal(all),
        "the session layer cannot be built:\n\
         - origin: `App.example.com/`: it does not begin with https://. Remedy: write it as browsers show it: \
         https://app.example.com.\n\
         - timeouts: `grace` (100s) is more than half of `fresh` (100s). Remedy: set `grace` (30 s by default) to half \
         of `fresh` or less, so that a thief's stay in it is bounded.\n\
         - timeouts: `fresh` (100s) is not shorter than the `idle` (90s). Remedy: set `fresh` well below `idle`: a \
         session is only known to be in use when it renews.\n\
         - timeouts: the `idle` (90s) is longer than the `absolute` (80s). Remedy: set `idle` to `absolute` or less.\n\
         - recent: it is zero. Remedy: set it to some minutes; the default is 5."
    );
}

/// "`build()` returns every problem at once": that a domain is no domain does not depend on the origin.
#[test]
fn a_bad_origin_does_not_hide_a_domain_that_is_none() {
    for origin in ["app.example.com", "http://app.example.com"] {
        let error = builder(origin).cookie_domain("not a domain").build().unwrap_err();
        let settings: Vec<&str> = error.problems().iter().map(|problem| problem.setting()).collect();
        assert_eq!(settings, ["origin", "cookie_domain"]);
    }
}

#[test]
fn plain_http_is_for_the_development_mode_only() {
    assert_eq!(
        refusal(builder("http://localhost:3000")),
        "the session layer cannot be built:\n\
         - origin: `http://localhost:3000` is plain HTTP. Remedy: use https, or call danger_localhost_development() \
         while you develop."
    );
    assert_eq!(
        refusal(builder("http://app.example.com").danger_localhost_development()),
        "the session layer cannot be built:\n\
         - origin: `http://app.example.com`: http is for localhost only. Remedy: write it as browsers show it: \
         https://app.example.com."
    );
    assert_eq!(
        refusal(builder("https://app.example.com").danger_localhost_development()),
        "the session layer cannot be built:\n\
         - danger_localhost_development: `https://app.example.com` is not an http origin of the local machine. Remedy: \
         leave the call out: over https cookies are Secure everywhere."
    );
    assert!(builder("http://localhost:3000").danger_localhost_development().build().is_ok());
}

#[test]
fn a_domain_must_hold_the_origin_and_be_registrable() {
    assert_eq!(
        refusal(builder("https://app.example.com").cookie_domain("other.com")),
        "the session layer cannot be built:\n\
         - cookie_domain: `other.com`: it does not cover the origin's host. Remedy: name a registrable domain that the \
         origin's host is in, or leave it out."
    );
    let suffix = refusal(builder("https://app.example.co.uk").cookie_domain("co.uk"));
    assert!(suffix.contains("- cookie_domain: `co.uk`: "), "{suffix}");
    assert_eq!(
        refusal(builder("http://localhost:3000").danger_localhost_development().cookie_domain("localhost")),
        "the session layer cannot be built:\n\
         - cookie_domain: localhost has no domain. Remedy: leave it out: cookies of the local machine are not shared."
    );
    assert!(builder("https://app.example.com").cookie_domain("example.com").build().is_ok());
}

#[test]
fn a_store_belongs_to_the_ring_it_was_made_with() {
    let store = MemoryStore::new();
    let with = |keys| SessionLayer::builder("https://app.example.com", keys, store.clone());
    let keys = KeyRing::generate().unwrap();
    assert!(with(keys.clone()).build().is_ok());
    assert!(with(keys).build().is_ok());
    assert_eq!(
        refusal(with(KeyRing::generate().unwrap())),
        "the session layer cannot be built:\n\
         - store: the store was made with another index secret. Remedy: use the key ring this store was made with (its \
         `index` line never changes), or an empty store."
    );
}

#[test]
fn a_layer_that_is_not_built_ties_the_store_to_no_ring() {
    let store = MemoryStore::new();
    let with = |keys| SessionLayer::builder("https://app.example.com", keys, store.clone());
    assert!(with(KeyRing::generate().unwrap()).recent(Duration::ZERO).build().is_err());
    assert!(with(KeyRing::generate().unwrap()).build().is_ok());
}

#[test]
fn rules_that_contradict_each_other_are_told_with_the_rest() {
    let all = builder("https://app.example.com")
        .cookie_policy(
            CookiePolicy::enforce()
                .except("__Host-a", CookieRule::Prefix, "because")
                .except("theme", CookieRule::HttpOnly, " ")
                .except("", CookieRule::Path, "because"),
        )
        .cross_site(
            CrossSite::enforce()
                .trust_origin("https://other.example.com/")
                .trust_origin("http://localhost:3000")
                .bypass(Method::POST, "/hooks/*"),
        )
        .polling_route("news")
        .seal_cookie("a b")
        .seal_cookie("prefs")
        .seal_cookie("prefs")
        .seal_cookie("__Host-Http-session");
    assert_eq!(
        refusal(all),
        "the session layer cannot be built:\n\
         - cookie_policy: no cookie can be excepted from the rule `name prefix`, and `__Host-a` is. Remedy: leave the \
         exception out and give the cookie another name.\n\
         - cookie_policy: the exception for `theme` states no reason. Remedy: say why, for those who read the \
         configuration after you.\n\
         - cookie_policy: `` is no cookie name. Remedy: write the cookie's name as it stands in its line, prefix \
         included.\n\
         - cross_site: the trusted origin `https://other.example.com/`: it is more than scheme, host and port. Remedy: \
         write it as browsers show it: https://accounts.example.com.\n\
         - cross_site: the trusted origin `http://localhost:3000`: it does not begin with https://. Remedy: write it as \
         browsers show it: https://accounts.example.com.\n\
         - cross_site: the route `/hooks/*` is not one exact path. Remedy: write the path as it stands in the URL, \
         beginning with /; patterns are not taken.\n\
         - polling_route: `news` is not one exact path. Remedy: write the path as it stands in the URL, beginning with /; \
         patterns are not taken.\n\
         - seal_cookie: `a b`: it is empty or holds a character that no cookie name may hold. Remedy: name a cookie of \
         the application, once.\n\
         - seal_cookie: `prefs`: it stands twice. Remedy: name a cookie of the application, once.\n\
         - seal_cookie: `__Host-Http-session`: it is the session's own. Remedy: name a cookie of the application, once."
    );
}

#[test]
fn addresses_that_nobody_can_know_are_a_problem() {
    let site = || builder("https://app.example.com");
    assert_eq!(
        refusal(site().binding(BindingPolicy::strict())),
        "the session layer cannot be built:\n\
         - binding: addresses count, and nobody says what they are. Remedy: call peer_address(), and behind a proxy \
         trusted_proxies(); or use BindingPolicy::default()."
    );
    assert_eq!(
        refusal(
            site()
                .trusted_proxies(["0.0.0.0/0", "::/0", "::ffff:0:0/96", "10.0.0.0/33", "proxy"])
                .client_ip_header("not a name")
                .context_header("x ja4")
        ),
        "the session layer cannot be built:\n\
         - trusted_proxies: the peer's address is not known. Remedy: call peer_address(): without it nobody knows whether \
         a request comes from them.\n\
         - trusted_proxies: `0.0.0.0/0` is the whole internet. Remedy: name the networks your proxies are in: whoever is \
         trusted may state any address.\n\
         - trusted_proxies: `::/0` is the whole internet. Remedy: name the networks your proxies are in: whoever is \
         trusted may state any address.\n\
         - trusted_proxies: `::ffff:0:0/96` is the whole internet. Remedy: name the networks your proxies are in: whoever is \
         trusted may state any address.\n\
         - trusted_proxies: `10.0.0.0/33` is no address and no network. Remedy: write an address or a network, such as \
         10.0.0.0/8 or fd00::/8.\n\
         - trusted_proxies: `proxy` is no address and no network. Remedy: write an address or a network, such as \
         10.0.0.0/8 or fd00::/8.\n\
         - client_ip_header: `not a name` is no header name. Remedy: name the one header that your proxy writes, such as \
         x-forwarded-for or forwarded.\n\
         - context_header: invalid HTTP header name. Remedy: name the header that the proxy writes."
    );
    assert_eq!(
        refusal(site().client_ip_header("forwarded").context_header("x-ja4")),
        "the session layer cannot be built:\n\
         - client_ip_header: no proxy is trusted. Remedy: name the proxies with trusted_proxies(): from anybody else the \
         header says nothing.\n\
         - context_header: no proxy is trusted. Remedy: name the proxy with trusted_proxies(): any client could write the \
         header itself."
    );
    let says = BindingPolicy::default()
        .on(ContextSignal::Network, Reaction::Reject)
        .on(ContextSignal::Header, Reaction::Note);
    assert_eq!(
        refusal(site().binding(says)),
        "the session layer cannot be built:\n\
         - binding: networks count, and nobody looks them up. Remedy: call network_lookup(), or leave the reaction to \
         Network out.\n\
         - binding: a header counts, and none is named. Remedy: call context_header(), or leave the reaction to Header out."
    );
    let peer = |extensions: &http::Extensions| extensions.get::<std::net::IpAddr>().copied();
    let good = site().peer_address(peer).trusted_proxies(["10.0.0.0/8", "::1"]).context_header("x-ja4");
    assert!(good.binding(BindingPolicy::strict()).build().is_ok());
}

#[tokio::test]
async fn what_device_binding_needs_is_checked() {
    let site = || builder("https://app.example.com");
    let short = Timeouts::default().fresh(Duration::from_secs(120));
    let soon = DeviceBinding::Require(Duration::from_secs(29));
    assert_eq!(
        refusal(
            site()
                .timeouts(short)
                .device_binding(soon)
                .refresh_initiators(["https://idp.example", "idp.example"])
        ),
        "the session layer cannot be built:\n\
         - refresh_initiators: `https://idp.example` is no host. Remedy: write idp.example or *.partner.example, no scheme \
         and no port.\n\
         - device_binding: `fresh` (120s) is too short for it. Remedy: set `fresh` to more than 2 minutes: browsers refresh \
         that much ahead, with less before every request.\n\
         - device_binding: a device is required before a browser can have bound one. Remedy: require it after a minute or \
         later."
    );
    assert_eq!(
        refusal(site().refresh_initiators(["idp.example"])),
        "the session layer cannot be built:\n\
         - refresh_initiators: no session is bound to a device. Remedy: choose a device_binding(), or name no initiators."
    );
    assert_eq!(
        refusal(site().software_keys().first_party_links().recent_proof(Duration::ZERO)),
        "the session layer cannot be built:\n\
         - first_party_links: cookies arrive with links as it is. Remedy: leave it out, or set same_site() to Strict.\n\
         - recent_proof: it is zero. Remedy: set it to some minutes; the default is 2.\n\
         - software_keys: no session is bound to a device. Remedy: choose a device_binding(): the script's key is for browsers \
         that do without."
    );
    assert!(site().same_site(SameSite::Strict).first_party_links().build().is_ok());
    assert_eq!(
        refusal(site().include_site()),
        "the session layer cannot be built:\n\
         - include_site: no session is bound to a device. Remedy: choose a device_binding(), or leave it out."
    );
    for domain in [None, Some("app.example.com")] {
        let site = builder("https://app.example.com").device_binding(DeviceBinding::Offer).include_site();
        let site = match domain {
            Some(domain) => site.cookie_domain(domain),
            None => site,
        };
        assert_eq!(
            refusal(site),
            "the session layer cannot be built:\n\
             - include_site: the session cookie is not one of the whole site. Remedy: set cookie_domain() to the registrable \
             domain, such as example.com, or leave it out."
        );
    }
    for bad in [
        "",
        "*",
        "*.",
        "idp",
        "idp.example:443",
        "IDP.example",
        "a..b",
        ".a.b",
        "a.b.",
        "*.*.a",
        "i\"p.example",
    ] {
        assert!(
            refusal(site().device_binding(DeviceBinding::Offer).refresh_initiators([bad]))
                .contains("is no host"),
            "{bad}"
        );
    }
    let good = site().device_binding(DeviceBinding::Require(Duration::from_secs(30)));
    assert!(good.refresh_initiators(["idp.example", "*.partner.example"]).build().is_ok());
}
