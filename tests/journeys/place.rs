//! Requests that do not come to the site: another Host, plain HTTP (A25); and the client behind proxies (A54).

use std::net::IpAddr;

use axum::{Router, body::Body, routing::any};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portcullis::{
    AuthError, ClientContext, SessionEvent,
    events::{Misplaced, UnknownAddress},
};
use tower::ServiceExt as _;

use crate::{
    browser::Browser,
    handlers::{login, logout, who, write},
    jar::SESSION,
    stage::{FRESH, Stage},
};

on_every_store!(
    a_request_to_another_host_is_nobody_s_and_gets_no_cookie,
    the_host_may_state_the_default_port_and_be_in_capitals,
    a_request_without_a_host_names_no_other_site,
    a_request_over_plain_http_is_nobody_s_and_gets_no_cookie,
    nobody_is_signed_in_where_a_cookie_would_go_astray,
    an_http2_request_is_told_by_its_authority,
    a_trusted_proxy_states_the_host_its_client_asked_for,
    the_client_is_found_from_the_right_past_trusted_proxies,
    a_proxy_that_does_not_say_is_told_of,
);

fn at(browser: &Browser, host: &str) -> Browser {
    browser.with_field("host", host)
}

async fn a_request_to_another_host_is_nobody_s_and_gets_no_cookie(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    for host in [
        "evil.example",
        "app.example.com.evil.example",
        "app.example.com:8443",
        "example.com",
        "app.example.com.",
        "",
        "192.0.2.1",
    ] {
        let answer = at(&alice, host).ask(who).await;
        assert_eq!(answer.ok(), "nobody", "{host}");
        assert!(answer.cookies.is_empty());
        assert_eq!(stage.events.take(), [SessionEvent::Misplaced(Misplaced::Host)], "{host}");
        assert!(at(&alice, host).ask(write("a", "b")).await.cookies.is_empty());
        assert!(at(&stage.browser(), host).ask(write("a", "b")).await.cookies.is_empty());
        stage.events.take();
    }
    assert_eq!(stage.store.calls(), [""; 0], "no session was made, none renewed");
    assert_eq!(at(&stage.browser(), "evil.example").ask(who).await.ok(), "nobody");
    assert_eq!(stage.events.names(), [""; 0], "a probe without our cookies is nothing to tell");
    assert_eq!(alice.who().await, "alice");
}

async fn the_host_may_state_the_default_port_and_be_in_capitals(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for host in ["app.example.com", "app.example.com:443", "APP.Example.com", "App.example.COM:443"] {
        assert_eq!(at(&alice, host).ask(who).await.ok(), "alice", "{host}");
    }
    assert_eq!(at(&alice, "app.example.com:80").ask(who).await.ok(), "nobody");
}

async fn a_request_without_a_host_names_no_other_site(stage: Stage) {
    assert_eq!(stage.signed_in("alice").await.ask(who).await.ok(), "alice");
}

async fn a_request_over_plain_http_is_nobody_s_and_gets_no_cookie(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    for scheme in ["http", "HTTP", "https, http", "https,http"] {
        let plain = alice.with_field("x-forwarded-proto", scheme);
        let answer = plain.ask(who).await;
        assert_eq!(answer.ok(), "nobody", "{scheme}");
        assert!(answer.cookies.is_empty());
        assert_eq!(stage.events.take(), [SessionEvent::Misplaced(Misplaced::Scheme)]);
        let removed = plain.ask(logout).await;
        assert_eq!(removed.status, StatusCode::MISDIRECTED_REQUEST);
        assert!(removed.cookies.is_empty(), "not even a removal: a browser ignores it there");
        stage.events.take();
        alice = stage.signed_in("alice").await;
        stage.pass(FRESH);
    }
    for scheme in ["https", "wss", "http, https"] {
        assert_eq!(alice.with_field("x-forwarded-proto", scheme).visit(who).await.ok(), "alice", "{scheme}");
        alice = stage.signed_in("alice").await;
    }
}

async fn nobody_is_signed_in_where_a_cookie_would_go_astray(stage: Stage) {
    for browser in
        [at(&stage.browser(), "evil.example"), stage.browser().with_field("x-forwarded-proto", "http")]
    {
        let answer = browser.ask(login("alice")).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST);
        assert!(answer.cookies.is_empty());
        assert_eq!(stage.store.calls(), [""; 0]);
        assert_eq!(stage.events.take().len(), 1);
    }
    assert_eq!(AuthError::Misplaced.status(), StatusCode::MISDIRECTED_REQUEST);
    for place in [Misplaced::Host, Misplaced::Scheme] {
        assert!(place.remedy().contains("proxy_set_header"), "{place:?} says what to set");
    }
}

/// HTTP/2 has no Host but an authority in the URI.
async fn an_http2_request_is_told_by_its_authority(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let app = Router::new().route("/", any(who)).layer(stage.layer.clone());
    for (uri, host, expected) in [
        ("https://app.example.com/", None, "alice"),
        ("http://app.example.com:443/", None, "alice"),
        ("https://evil.example/", None, "nobody"),
        ("https://evil.example/", Some("app.example.com"), "nobody"),
    ] {
        let mut request = Request::builder().uri(uri).header(header::USER_AGENT, alice.user_agent.unwrap());
        request = request.header(header::COOKIE, format!("{SESSION}={}", alice.jar.value(SESSION).unwrap()));
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        let request = request.extension(alice.address).body(Body::empty()).unwrap();
        let body =
            app.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, expected, "{uri} {host:?}");
    }
}

const PROXY: [u8; 4] = [10, 0, 0, 1];

fn behind_proxies(stage: &Stage) -> Stage {
    stage.rebuilt(|builder| builder.trusted_proxies(["10.0.0.0/8", "fd00::/8"]))
}

async fn a_trusted_proxy_states_the_host_its_client_asked_for(stage: Stage) {
    let stage = behind_proxies(&stage);
    stage.layer.ready().await.unwrap();
    let mut alice = stage.browser().with_field("x-forwarded-for", "192.0.2.1");
    alice.address = IpAddr::from(PROXY);
    alice.login("alice").await;
    let behind = at(&alice, "127.0.0.1:3000");
    assert_eq!(behind.ask(who).await.ok(), "nobody");
    assert_eq!(behind.with_field("x-forwarded-host", "app.example.com").ask(who).await.ok(), "alice");
    assert_eq!(
        behind.with_field("x-forwarded-host", "app.example.com, evil.example").ask(who).await.ok(),
        "nobody"
    );
    assert_eq!(alice.with_field("x-forwarded-host", "evil.example").ask(who).await.ok(), "nobody");
    let mut outside = behind.with_field("x-forwarded-host", "app.example.com");
    outside.address = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(outside.ask(who).await.ok(), "nobody", "from anybody else it says nothing");
}

async fn address(client: ClientContext) -> String {
    client.address().map_or_else(|| "unknown".into(), |address| address.to_string())
}

async fn the_client_is_found_from_the_right_past_trusted_proxies(stage: Stage) {
    let stage = behind_proxies(&stage);
    for (peer, field, expected) in [
        ("198.51.100.1", "203.0.113.5", "198.51.100.1"),
        ("198.51.100.1", "10.0.0.9", "198.51.100.1"),
        ("10.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.5, 10.9.9.9", "203.0.113.5"),
        ("::ffff:10.0.0.1", "203.0.113.5, fd00::7", "203.0.113.5"),
        ("10.0.0.1", "::ffff:203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "2001:db8::1%eth0", "2001:db8::1"),
        ("10.0.0.1", "203.0.113.5, nonsense", "unknown"),
        ("10.0.0.1", "203.0.113.5, 0.0.0.0", "unknown"),
        ("10.0.0.1", "203.0.113.5,", "unknown"),
        ("10.0.0.1", "10.0.0.2", "unknown"),
    ] {
        let mut browser = stage.browser().with_field("x-forwarded-for", field);
        browser.address = peer.parse().unwrap();
        assert_eq!(browser.ask(address).await.ok(), expected, "{peer} {field}");
        let split = field
            .split(", ")
            .fold(stage.browser(), |browser, one| browser.with_field("x-forwarded-for", one));
        let split = Browser { address: peer.parse().unwrap(), ..split };
        assert_eq!(split.ask(address).await.ok(), expected, "in fields of their own: {peer} {field}");
    }
    let forwarded =
        stage.rebuilt(|builder| builder.trusted_proxies(["10.0.0.0/8"]).client_ip_header("forwarded"));
    for (field, expected) in [
        ("for=203.0.113.5;proto=https", "203.0.113.5"),
        ("for=1.2.3.4, For=\"[2001:db8::1]:443\"", "2001:db8::1"),
        ("for=\"open, for=203.0.113.5", "203.0.113.5"),
        (";for=203.0.113.5", "203.0.113.5"),
        ("for=192.0.2.9;host=\"a,for=6.6.6.6;x=\";proto=https", "unknown"),
        ("for=203.0.113.5, for=unknown", "unknown"),
        ("for=203.0.113.5, for=_hidden", "unknown"),
        ("proto=https", "unknown"),
    ] {
        let mut browser =
            forwarded.browser().with_field("forwarded", field).with_field("x-forwarded-for", "6.6.6.6");
        browser.address = IpAddr::from(PROXY);
        assert_eq!(browser.ask(address).await.ok(), expected, "{field}");
    }
}

async fn a_proxy_that_does_not_say_is_told_of(stage: Stage) {
    let stage = behind_proxies(&stage);
    stage.layer.ready().await.unwrap();
    let mut alice = stage.browser().with_field("x-forwarded-for", "192.0.2.1");
    alice.address = IpAddr::from(PROXY);
    alice.login("alice").await;
    stage.forget();
    let mut silent = alice.clone();
    silent.fields.clear();
    for _ in 0..3 {
        assert_eq!(silent.ask(who).await.ok(), "alice");
    }
    assert_eq!(stage.events.names(), ["client_address_unknown", "session_context_changed"], "told once");
    let unserved = stage.rebuilt(|builder| builder.peer_address(|_| None));
    assert_eq!(unserved.browser().ask(who).await.ok(), "nobody");
    assert_eq!(stage.events.take(), [SessionEvent::ClientAddressUnknown(UnknownAddress::Peer)]);
    assert!(UnknownAddress::Peer.remedy().contains("into_make_service_with_connect_info"));
}
