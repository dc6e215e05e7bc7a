//! Device-bound sessions: what a browser with a key and a thief without it live through (A01, A72, A79).

use std::time::Duration;

use axum::{Router, routing::any};
use http::{Method, StatusCode};
use portcullis::{
    Auth, BindingPolicy, DeviceBinding, RequireDevice, SessionEvent, SessionLayerBuilder,
    dbsc::ProofError,
    session::{ContextSignal, Reaction, Reason},
};

use crate::{
    browser::{Answer, Browser, CHROME, answer},
    device::{Device, Offer, challenge_of},
    handlers::{details, login, logout, logout_everywhere, read, reauthenticate, recent, who, write},
    stage::{FRESH, GRACE, IDLE, MS, REMEMBERED_ABSOLUTE, REMEMBERED_IDLE, SECOND, Stage},
};

on_every_store!(
    a_login_is_offered_once_and_bound_by_the_browser_s_key,
    a_bound_session_goes_on_by_its_device_alone,
    a_copied_cookie_is_dead_within_minutes,
    a_lost_answer_is_asked_for_again,
    the_cookie_before_counts_until_its_end_and_the_grace,
    a_thief_binds_no_key_of_his,
    a_second_key_for_one_login_is_refused_and_alarms,
    a_bad_proof_costs_the_session_nothing,
    an_unknown_session_is_ended_in_the_browser,
    a_revoked_session_is_ended_in_the_browser,
    a_silent_store_ends_nothing,
    a_link_from_another_site_loads_again_once,
    a_browser_that_could_not_refresh_comes_again,
    a_new_network_is_followed_by_a_proof,
    another_browser_with_the_cookie_must_prove_itself,
    a_new_authentication_keeps_the_device,
    a_cycled_id_keeps_the_device,
    a_write_while_the_key_is_bound_is_not_lost,
    somebody_else_in_the_same_browser_is_not_turned_back,
    new_claims_reach_a_request_that_carries_the_old_ones,
    a_cookie_from_before_the_binding_unbinds_nothing,
    an_older_cookie_does_not_get_what_was_proven_since,
    a_proof_that_was_used_ends_nothing_beside_another_cookie,
    a_browser_that_has_lost_its_key_signs_in_again,
    a_login_under_another_id_is_offered_too,
    a_script_of_a_page_binds_nothing,
    no_socket_outlives_that_a_device_is_required,
    the_outage_grace_is_not_for_bound_sessions,
    what_a_request_tells_of_a_bound_session,
    the_endpoints_answer_their_own_browser_alone,
    a_bound_session_lasts_longer,
    a_site_that_requires_a_device_renews_no_other_session,
    who_has_no_device_is_refused_where_one_is_required,
    the_list_shows_what_is_bound,
    nothing_is_offered_where_binding_is_off,
    switching_it_on_or_off_leaves_no_cookie_behind,
    an_answer_from_before_the_binding_may_come_last,
    hints_are_not_asked_of_what_a_browser_sends_by_itself,
    what_a_store_has_lost_is_bound_again_and_told,
    a_whole_site_may_be_in_the_scope,
);

pub(crate) fn offers(builder: SessionLayerBuilder) -> SessionLayerBuilder {
    builder.device_binding(DeviceBinding::Offer)
}

pub(crate) async fn offering(stage: &Stage) -> Stage {
    let stage = stage.rebuilt(offers);
    stage.layer.ready().await.unwrap();
    stage
}

/// A browser in which alice has signed in, and what it was offered.
pub(crate) async fn offered(stage: &Stage) -> (Browser, Offer) {
    let mut browser = stage.browser();
    let answer = browser.visit(login("alice")).await;
    answer.ok();
    stage.forget();
    let offer = Offer::read(&answer.field("secure-session-registration")).expect("an offer");
    (browser, offer)
}

/// A browser in which alice has signed in with a device.
pub(crate) async fn bound(stage: &Stage) -> (Browser, Device) {
    let (mut browser, offer) = offered(stage).await;
    let device = bind(&mut browser, &offer).await;
    assert_eq!(stage.events.names(), ["device_bound"]);
    stage.forget();
    (browser, device)
}

/// Takes an offer, as a browser does by itself.
pub(crate) async fn bind(browser: &mut Browser, offer: &Offer) -> Device {
    let mut device = Device::new(7);
    let answer = register(browser, &device.registration(&offer.challenge)).await;
    browser.take(&answer);
    device.take(&answer.ok(), &answer.field("secure-session-challenge"));
    device
}

pub(crate) async fn ask(browser: &Browser, path: &'static str, fields: &[(&'static str, &str)]) -> Answer {
    let endpoints = browser.stage.layer.device_endpoints();
    let app = Router::new()
        .route("/", any(who))
        .nest_service("/portcullis", endpoints)
        .layer(browser.stage.layer.clone());
    let mut request = browser.request(Method::POST);
    *request.uri_mut() = http::Uri::from_static(path);
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let answer = answer(app, request).await;
    assert_eq!(answer.field("cache-control"), "no-store");
    answer
}

pub(crate) async fn register(browser: &Browser, proof: &str) -> Answer {
    ask(browser, "/portcullis/device/register", &[("secure-session-response", proof)]).await
}

async fn present(browser: &Browser, identifier: &str, proof: Option<&str>) -> Answer {
    let mut fields = vec![("sec-secure-session-id", identifier)];
    fields.extend(proof.map(|proof| ("secure-session-response", proof)));
    ask(browser, "/portcullis/device/refresh", &fields).await
}

/// What a browser does when its cookie is gone or soon will be.
pub(crate) async fn refresh(browser: &mut Browser, device: &mut Device) {
    let answer = present(browser, &device.identifier, Some(&device.proof(&device.challenge))).await;
    browser.take(&answer);
    device.take(&answer.ok(), &answer.field("secure-session-challenge"));
}

/// Asserts that an answer asks for a proof, and gives the challenge.
fn challenged(answer: &Answer, device: &Device) -> String {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(answer.cookies.is_empty());
    challenge_of(&answer.field("secure-session-challenge"), &device.identifier).expect("a challenge")
}

/// Asserts that an answer ends the session in the browser.
fn ended(answer: &Answer, identifier: &str) {
    let wanted = format!(r#"{{"session_identifier":"{identifier}","continue":false}}"#);
    assert_eq!(answer.ok(), wanted);
    assert!(answer.cookies.is_empty());
}

async fn a_login_is_offered_once_and_bound_by_the_browser_s_key(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, offer) = offered(&stage).await;
    assert_eq!(offer.path, "/portcullis/device/register");
    let page = alice.visit(details).await;
    assert_eq!(page.field("secure-session-registration"), "", "only the answer that signed in offers");
    assert!(page.ok().contains("\"strength\":\"context\""));
    let mut device = Device::new(7);
    let answer = register(&alice, &device.registration(&offer.challenge)).await;
    let name = "__Host-session";
    let line = answer.cookies.text(name).unwrap().to_owned();
    assert_eq!(answer.cookies.max_age(name), Some(FRESH.as_secs()), "the browser refreshes by it");
    assert_eq!(answer.cookies.max_age("__Host-Http-renewal"), Some(REMEMBERED_ABSOLUTE.as_secs()));
    let json: serde_json::Value = serde_json::from_str(&answer.ok()).unwrap();
    let attributes = json["credentials"][0]["attributes"].as_str().unwrap();
    assert_eq!(json["credentials"][0]["name"], name);
    assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Lax");
    assert!(line.contains(&format!("; {attributes}; Max-Age=300")), "{line}");
    assert_eq!(json["scope"]["origin"], "https://app.example.com");
    assert_eq!(answer.field("cross-origin-resource-policy"), "same-origin");
    alice.take(&answer);
    device.take(&answer.ok(), &answer.field("secure-session-challenge"));
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"device\""));
    assert!(matches!(stage.events.take()[..], [SessionEvent::DeviceBound(_)]));
}

async fn a_bound_session_goes_on_by_its_device_alone(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    for _ in 0..5 {
        stage.pass(FRESH);
        refresh(&mut alice, &mut device).await;
        assert_eq!(alice.who().await, "alice");
    }
    // By the identifier alone: some browsers send no cookie with it.
    stage.pass(FRESH);
    let bare = Browser { jar: crate::jar::Jar::default(), states_origin: false, ..alice.clone() };
    let answer = present(&bare, &device.identifier, Some(&device.proof(&device.challenge))).await;
    alice.take(&answer);
    assert_eq!(alice.who().await, "alice");
    stage.events.take();
    // The browser drops its cookie, and its token renews nothing.
    stage.pass(FRESH + SECOND);
    stage.store.calls();
    assert_eq!(alice.who().await, "nobody");
    assert!(stage.store.calls().is_empty(), "a token that says it is bound costs no store call");
    assert!(matches!(stage.events.take()[..], [SessionEvent::Refused(_, Reason::Unproven)]));
}

async fn a_copied_cookie_is_dead_within_minutes(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let thief = alice.clone();
    assert_eq!(thief.ask(who).await.ok(), "alice", "a fresh cookie is good");
    stage.pass(FRESH + GRACE);
    refresh(&mut alice, &mut device).await;
    let mut jar = thief.jar.clone();
    jar.put("__Host-session", thief.jar.value("__Host-session").unwrap());
    assert_eq!(thief.with_jar(jar).ask(who).await.ok(), "nobody");
    // Neither the token of the login nor the one of the binding helps, nor does a proof that was seen or a key of his.
    let asked = present(&thief, &device.identifier, None).await;
    let challenge = challenged(&asked, &device);
    let forged = present(&thief, &device.identifier, Some(&Device::new(9).proof(&challenge))).await;
    assert_eq!(forged.status, StatusCode::BAD_REQUEST);
    let own_key = present(&thief, &device.identifier, Some(&Device::new(9).registration(&challenge))).await;
    assert_eq!(own_key.status, StatusCode::BAD_REQUEST, "a key in a refresh is not looked at");
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_lost_answer_is_asked_for_again(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    stage.pass(FRESH);
    let proof = device.proof(&device.challenge);
    present(&alice, &device.identifier, Some(&proof)).await.ok();
    // The browser has not seen the answer, and sends the same bytes again.
    let again = present(&alice, &device.identifier, Some(&proof)).await;
    device.challenge = challenged(&again, &device);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
    let replayed = present(&alice, &device.identifier, Some(&proof)).await;
    challenged(&replayed, &device);
}

async fn the_cookie_before_counts_until_its_end_and_the_grace(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let under_way = alice.clone();
    let cookie = |browser: &Browser| {
        let mut jar = browser.jar.clone();
        jar.put("__Host-session", under_way.jar.value("__Host-session").unwrap());
        browser.with_jar(jar)
    };
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    stage.pass(GRACE - MS);
    assert_eq!(cookie(&under_way).ask(who).await.ok(), "alice");
    stage.pass(MS);
    assert_eq!(cookie(&under_way).ask(who).await.ok(), "nobody");
}

async fn a_thief_binds_no_key_of_his(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, offer) = offered(&stage).await;
    let thief = Device::new(9);
    let other = offered(&stage).await.1;
    for (browser, challenge, status, why) in [
        (alice.clone(), "AAAA", 403, "a stolen cookie, and no challenge of the login"),
        (alice.clone(), other.challenge.as_str(), 403, "the challenge of another login"),
        (alice.with_jar(crate::jar::Jar::default()), offer.challenge.as_str(), 401, "no cookie"),
    ] {
        let answer = register(&browser, &thief.registration(challenge)).await;
        assert_eq!(answer.status, status, "{why}");
        assert!(answer.cookies.is_empty());
    }
    let without = register(&alice, &thief.proof(&offer.challenge)).await;
    assert_eq!(without.status, StatusCode::BAD_REQUEST, "no key");
    stage.pass(Duration::from_secs(299));
    assert!(alice.ask(details).await.ok().contains("\"strength\":\"context\""));
    stage.pass(SECOND);
    let mut alice = alice;
    assert_eq!(alice.who().await, "alice");
    let late = register(&alice, &Device::new(7).registration(&offer.challenge)).await;
    assert_eq!(late.status, StatusCode::FORBIDDEN, "an offer is good for five minutes");
}

async fn a_second_key_for_one_login_is_refused_and_alarms(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, offer) = offered(&stage).await;
    let (mut device, thief) = (Device::new(7), Device::new(9));
    let answer = register(&alice, &device.registration(&offer.challenge)).await;
    device.take(&answer.ok(), &answer.field("secure-session-challenge"));
    stage.events.take();
    let second = register(&alice, &thief.registration(&offer.challenge)).await;
    assert_eq!(second.status, StatusCode::FORBIDDEN);
    assert!(matches!(stage.events.take()[..], [SessionEvent::DeviceAlreadyBound(_)]));
    alice.take(&answer);
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_bad_proof_costs_the_session_nothing(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let (_, other) = bound(&stage).await;
    let fresh = || async { challenged(&present(&alice, &device.identifier, None).await, &device) };
    let refresh_header = r#"{"alg":"ES256","typ":"dbsc+jwt"}"#;
    let challenge = fresh().await;
    stage.forget();
    let payload = format!(r#"{{"jti":"{challenge}","aud":"https://app.example.com/elsewhere"}}"#);
    for (proof, error) in [
        (Device::new(9).proof(&challenge), ProofError::Signature),
        (device.sign(r#"{"alg":"RS256","typ":"dbsc+jwt"}"#, &challenge), ProofError::Algorithm),
        (device.sign(r#"{"alg":"none","typ":"dbsc+jwt"}"#, &challenge), ProofError::Algorithm),
        (device.sign(r#"{"alg":"ES256","typ":"jwt"}"#, &challenge), ProofError::Type),
        (device.sign_payload(refresh_header, r#"{"jti":"a","jti":"b"}"#), ProofError::Malformed),
        (device.sign_payload(refresh_header, &payload), ProofError::Audience),
        ("x".repeat(5000), ProofError::Malformed),
        ("a.b".into(), ProofError::Malformed),
        ("\u{e4}".into(), ProofError::Malformed),
    ] {
        let answer = present(&alice, &device.identifier, Some(&proof)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{error}");
        assert!(answer.cookies.is_empty());
        let told = stage.events.take();
        assert!(
            matches!(told[..], [SessionEvent::DeviceProofRefused(_, found)] if found == error),
            "{error}: {told:?}"
        );
    }
    // Rightly signed, and another challenge than one of this session: sign again.
    for stale in ["AAAA", &other.challenge, &"A".repeat(2000)] {
        challenged(&present(&alice, &device.identifier, Some(&device.proof(stale))).await, &device);
    }
    assert!(stage.store.calls().is_empty(), "none of it costs a store call");
    let twice = [("sec-secure-session-id", device.identifier.as_str()); 2];
    assert_eq!(ask(&alice, "/portcullis/device/refresh", &twice).await.status, StatusCode::BAD_REQUEST);
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn an_unknown_session_is_ended_in_the_browser(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, device) = bound(&stage).await;
    let changed = format!("{}A", &device.identifier[..device.identifier.len() - 1]);
    let unknown = if changed == device.identifier { "AAAA" } else { &changed };
    stage.forget();
    ended(&present(&alice, unknown, Some(&device.proof(&device.challenge))).await, unknown);
    for bad in ["", "a b", "\"", "a\\b", &"A".repeat(257)] {
        assert_eq!(present(&alice, bad, None).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    assert!(stage.store.calls().is_empty());
}

async fn a_revoked_session_is_ended_in_the_browser(stage: Stage) {
    let stage = offering(&stage).await;
    for everywhere in [false, true] {
        let (mut alice, device) = bound(&stage).await;
        let answer =
            if everywhere { alice.visit(logout_everywhere).await } else { alice.visit(logout).await };
        answer.ok();
        ended(
            &present(&alice, &device.identifier, Some(&device.proof(&device.challenge))).await,
            &device.identifier,
        );
        assert_eq!(alice.who().await, "nobody");
    }
    // Also by time, and on an instance that has heard of nothing.
    let (alice, device) = bound(&stage).await;
    stage.pass(REMEMBERED_IDLE);
    let challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
    ended(&present(&alice, &device.identifier, Some(&device.proof(&challenge))).await, &device.identifier);
}

async fn a_silent_store_ends_nothing(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    stage.pass(FRESH);
    stage.store.goes_down();
    let proof = device.proof(&device.challenge);
    present(&alice, &device.identifier, Some(&proof)).await.assert_unavailable();
    stage.store.comes_back();
    stage.pass(SECOND * 5);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
    let (fresh, offer) = offered(&stage).await;
    stage.store.goes_down();
    register(&fresh, &Device::new(8).registration(&offer.challenge)).await.assert_unavailable();
    stage.store.comes_back();
}

pub(crate) fn navigation(browser: &Browser, from: &str) -> Browser {
    browser.with_field("sec-fetch-mode", "navigate").with_field("sec-fetch-site", from)
}

async fn a_link_from_another_site_loads_again_once(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, _) = bound(&stage).await;
    stage.pass(FRESH + SECOND);
    for from in ["cross-site", "same-site"] {
        let page = navigation(&alice, from).ask(who).await;
        assert_eq!(page.ok(), "", "{from}");
        assert_eq!(page.field("refresh"), "0");
        assert_eq!(page.field("content-type"), "text/html; charset=utf-8");
        assert_eq!(page.field("cache-control"), "no-store");
        assert!(page.cookies.is_empty());
    }
    // The page loads itself again, and by then the browser has had its chance.
    for from in ["same-origin", "none"] {
        let page = navigation(&alice, from).ask(who).await;
        assert_eq!((page.ok().as_str(), page.field("refresh").as_str()), ("nobody", ""), "{from}");
        assert!(page.cookies.is_empty(), "nobody is signed out by it");
    }
    let fetched = alice.with_field("sec-fetch-mode", "cors").with_field("sec-fetch-site", "same-site");
    assert_eq!(fetched.ask(who).await.ok(), "nobody");
    let stranger = navigation(&stage.browser(), "cross-site").ask(who).await;
    assert_eq!(stranger.ok(), "nobody", "strangers see no page more");
}

async fn a_browser_that_could_not_refresh_comes_again(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, device) = bound(&stage).await;
    let (_, other) = bound(&stage).await;
    stage.pass(FRESH + SECOND);
    stage.forget();
    let says = |reason: &str, identifier: &str| {
        alice.with_field("secure-session-skipped", format!("{reason};session_identifier=\"{identifier}\""))
    };
    for reason in ["unreachable", "server_error", "quota_exceeded"] {
        says(reason, &device.identifier).ask(who).await.assert_unavailable();
        assert_eq!(stage.events.names(), ["device_refresh_skipped"]);
    }
    // It says nothing that lets anybody in, and nothing of other sessions.
    assert_eq!(says("unreachable", &other.identifier).ask(who).await.ok(), "nobody");
    assert_eq!(says("unreachable", "AAAA").ask(who).await.ok(), "nobody");
}

async fn a_new_network_is_followed_by_a_proof(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    alice.address = std::net::IpAddr::from([198, 51, 100, 7]);
    assert_eq!(alice.ask(recent).await.status, StatusCode::FORBIDDEN, "a copied cookie would look the same");
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.ask(recent).await.ok(), "recent", "the device has moved, and says so");
}

async fn another_browser_with_the_cookie_must_prove_itself(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let name = "__Host-session";
    let mut other = alice.clone();
    other.user_agent = Some(CHROME);
    assert_eq!(other.ask(who).await.ok(), "nobody");
    let page = navigation(&other, "none").ask(who).await;
    assert_eq!(
        page.ok(),
        "nobody",
        "a cookie that was proven a moment ago is not proven again: no page loads itself for ever"
    );
    stage.pass(SECOND * 10);
    let page = navigation(&other, "none").ask(who).await;
    assert_eq!((page.ok().as_str(), page.field("refresh").as_str()), ("", "0"));
    assert!(page.cookies.removes(name), "a browser with the key refreshes when its cookie is gone");
    other.take(&page);
    assert_eq!(navigation(&other, "same-origin").ask(who).await.ok(), "nobody", "a copy has no key");
    // The user's own browser, which calls itself something else now.
    alice.user_agent = Some(CHROME);
    alice.take(&navigation(&alice, "none").ask(who).await);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_new_authentication_keeps_the_device(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    alice.visit(write("cart", "apples")).await.ok();
    for _ in 0..3 {
        stage.pass(FRESH);
        refresh(&mut alice, &mut device).await;
    }
    assert_eq!(alice.ask(recent).await.status, StatusCode::FORBIDDEN);
    let copied = alice.clone();
    stage.events.take();
    let answer = alice.visit(reauthenticate).await;
    answer.ok();
    assert_eq!(stage.events.names(), ["authn_reauthenticated"]);
    assert_eq!(answer.field("secure-session-registration"), "", "its key is known");
    assert_eq!(alice.ask(recent).await.ok(), "recent");
    assert_eq!(copied.ask(recent).await.status, StatusCode::FORBIDDEN, "not by the cookie before");
    assert_eq!(alice.visit(read("cart")).await.ok(), "apples");
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"device\""));
}

async fn a_cycled_id_keeps_the_device(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let answer = alice.visit(cycle).await;
    answer.ok();
    assert_eq!(answer.field("secure-session-registration"), "", "no other key may come in by it");
    assert_eq!(alice.visit(read("cart")).await.ok(), "pears");
    assert_eq!(alice.visit(read("after")).await.ok(), "plums");
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.visit(read("cart")).await.ok(), "pears");
}

async fn a_write_while_the_key_is_bound_is_not_lost(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, offer) = offered(&stage).await;
    let before = alice.clone();
    let device = Device::new(7);
    let answer = register(&alice, &device.registration(&offer.challenge)).await;
    // A request that had left before the answer came.
    before.ask(write("cart", "apples")).await.ok();
    alice.take(&answer);
    assert_eq!(alice.visit(read("cart")).await.ok(), "apples");
}

async fn somebody_else_in_the_same_browser_is_not_turned_back(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, device) = bound(&stage).await;
    // The cookies are deleted; the browser's own session is not. Bob signs in.
    let mut bob = alice.with_jar(crate::jar::Jar::default());
    bob.login("bob").await;
    stage.events.take();
    let proof = device.proof(&device.challenge);
    ended(&present(&bob, &device.identifier, Some(&proof)).await, &device.identifier);
    assert_eq!(stage.events.names(), ["session_renewed", "session_revoked"], "alice's session is over");
    assert_eq!(bob.who().await, "bob");
    assert_eq!(alice.ask(who).await.ok(), "nobody");
    // Who only knows what a session is called ends nothing by showing a session of their own.
    let (carol, device) = bound(&stage).await;
    challenged(&present(&bob, &device.identifier, None).await, &device);
    let forged = Device::new(9).proof(&challenged(&present(&bob, &device.identifier, None).await, &device));
    assert_eq!(present(&bob, &device.identifier, Some(&forged)).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(carol.ask(who).await.ok(), "alice");
}

async fn cycle(session: portcullis::Session) -> &'static str {
    session.insert("cart", "pears").await.unwrap();
    session.cycle_id().await.unwrap();
    session.insert("after", "plums").await.unwrap();
    "cycled"
}

pub(crate) async fn promote(auth: Auth) {
    auth.set_claims(serde_json::json!({ "role": "editor" })).await.unwrap();
}

async fn a_cookie_from_before_the_binding_unbinds_nothing(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, offer) = offered(&stage).await;
    let mut thief = alice.clone();
    let mut device = bind(&mut alice, &offer).await;
    for _ in 0..2 {
        let cycled = thief.visit(cycle).await;
        assert!(cycled.cookies.is_empty(), "no new session, no token");
        let again = thief.visit(reauthenticate).await;
        assert!(again.cookies.is_empty() && again.field("secure-session-registration").is_empty());
    }
    stage.pass(FRESH + GRACE);
    assert_eq!(thief.who().await, "nobody");
    device.challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.visit(read("cart")).await.ok(), "pears", "what was written is there");
}

async fn an_older_cookie_does_not_get_what_was_proven_since(stage: Stage) {
    async fn pay(_: RequireDevice) -> &'static str {
        "paid"
    }
    let stage = offering(&stage).await;
    let (mut alice, offer) = offered(&stage).await;
    let mut unbound = alice.clone();
    let mut device = bind(&mut alice, &offer).await;
    unbound.visit(promote).await.ok();
    assert_eq!(unbound.ask(pay).await.status, StatusCode::FORBIDDEN, "it is no device by new claims");
    for _ in 0..3 {
        stage.pass(FRESH);
        device.challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
        refresh(&mut alice, &mut device).await;
    }
    let mut copied = alice.clone();
    alice.visit(reauthenticate).await.ok();
    copied.visit(promote).await.ok();
    assert_eq!(copied.ask(recent).await.status, StatusCode::FORBIDDEN, "nor has it been authenticated again");
    assert_eq!(alice.ask(recent).await.ok(), "recent");
    // An authentication is no proof of the device: the cookie lives no longer by it.
    stage.pass(FRESH - SECOND);
    alice.visit(reauthenticate).await.ok();
    stage.pass(GRACE + SECOND);
    assert_eq!(alice.who().await, "nobody");
}

async fn a_proof_that_was_used_ends_nothing_beside_another_cookie(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let proof = device.proof(&device.challenge);
    refresh(&mut alice, &mut device).await;
    let mut mallory = stage.browser();
    mallory.login("mallory").await;
    challenged(&present(&mallory, &device.identifier, Some(&proof)).await, &device);
    assert_eq!(alice.who().await, "alice");
    refresh(&mut alice, &mut device).await;
}

async fn a_browser_that_has_lost_its_key_signs_in_again(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, _) = bound(&stage).await;
    stage.pass(FRESH + SECOND);
    // As a sign-in by another site does: first it writes down what must come back.
    alice.visit(write("state", "xyz")).await.ok();
    assert_eq!(alice.visit(read("state")).await.ok(), "xyz");
    alice.login("alice").await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_login_under_another_id_is_offered_too(stage: Stage) {
    async fn sign_in(auth: Auth, session: portcullis::Session) {
        auth.login("alice").await.unwrap();
        session.cycle_id().await.unwrap();
        session.save().await.unwrap();
    }
    let stage = offering(&stage).await;
    let mut alice = stage.browser();
    let answer = alice.visit(sign_in).await;
    let offer = Offer::read(&answer.field("secure-session-registration")).expect("an offer");
    register(&alice, &Device::new(7).registration(&offer.challenge)).await.ok();
}

async fn a_script_of_a_page_binds_nothing(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, offer) = offered(&stage).await;
    let proof = Device::new(9).registration(&offer.challenge);
    for mode in ["cors", "same-origin", "navigate"] {
        let page = alice.with_field("sec-fetch-mode", mode);
        assert_eq!(register(&page, &proof).await.status, StatusCode::FORBIDDEN, "{mode}");
    }
    register(&alice.with_field("sec-fetch-mode", "no-cors"), &proof).await.ok();
}

async fn no_socket_outlives_that_a_device_is_required(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.device_binding(DeviceBinding::Require(FRESH)));
    stage.layer.ready().await.unwrap();
    let (alice, _) = offered(&stage).await;
    let socket = alice.with_field("upgrade", "websocket").with_field("connection", "Upgrade");
    stage.pass(FRESH);
    assert_eq!(socket.ask(who).await.ok(), "nobody");
    assert!(matches!(stage.events.take()[..], [SessionEvent::Refused(_, Reason::Unbound)]));
}

/// With the cookie of the binding and the token of the login, which does not say that the session is bound.
async fn the_outage_grace_is_not_for_bound_sessions(stage: Stage) {
    let outage = portcullis::Outage::default().grace(FRESH);
    let stage = stage.rebuilt(|builder| offers(builder).outage(outage));
    stage.layer.ready().await.unwrap();
    let (mut alice, offer) = offered(&stage).await;
    let mut thief = alice.clone();
    let unbound = alice.clone();
    bind(&mut alice, &offer).await;
    thief.jar.put("__Host-session", alice.jar.value("__Host-session").unwrap());
    stage.pass(FRESH + GRACE);
    stage.store.goes_down();
    assert_eq!(unbound.ask(who).await.ok(), "alice", "nobody could tell that this one is bound");
    thief.ask(who).await.assert_unavailable();
}

async fn what_a_request_tells_of_a_bound_session(stage: Stage) {
    use portcullis::middleware::CookieCause::{Fine, Unproven};
    let stage = offering(&stage).await;
    let (alice, _) = bound(&stage).await;
    let held = {
        let mut jar = alice.jar.clone();
        jar.put("__Host-session", alice.jar.value("__Host-session").unwrap());
        alice.with_jar(jar)
    };
    let cause = |browser: &Browser| stage.layer.diagnose(&browser.request(Method::GET));
    stage.pass(FRESH + GRACE - MS);
    assert_eq!(cause(&held), Fine, "as the layer itself sees it");
    assert_eq!(cause(&alice), Unproven, "the cookie is gone, and the token renews nothing");
    stage.pass(MS);
    assert_eq!(cause(&held), Unproven);
}

async fn the_endpoints_answer_their_own_browser_alone(stage: Stage) {
    let stage =
        stage.rebuilt(|builder| offers(builder).refresh_initiators(["idp.example", "*.partner.example"]));
    stage.layer.ready().await.unwrap();
    let (alice, device) = bound(&stage).await;
    let proof = device.proof(&device.challenge);
    let elsewhere = alice.with_field("host", "evil.example");
    present(&elsewhere, &device.identifier, Some(&proof)).await.assert_unavailable();
    let answer = present(&alice, &device.identifier, Some(&proof)).await;
    assert!(answer.ok().contains(r#""allowed_refresh_initiators":["idp.example","*.partner.example"]"#));
    let mut get = alice.request(Method::GET);
    *get.uri_mut() = http::Uri::from_static("/portcullis/device/refresh");
    let app = Router::new().nest_service("/portcullis", stage.layer.device_endpoints());
    assert_eq!(crate::browser::answer(app, get).await.status, StatusCode::METHOD_NOT_ALLOWED);
}

async fn new_claims_reach_a_request_that_carries_the_old_ones(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let mut under_way = alice.clone();
    alice.visit(promote).await.ok();
    for browser in [&mut under_way, &mut alice] {
        assert!(browser.visit(details).await.ok().contains("\"role\":\"editor\""));
    }
    // It has got a cookie with the new claims, and no longer a life.
    stage.pass(FRESH + GRACE - MS);
    assert_eq!(under_way.ask(who).await.ok(), "nobody", "the browser has dropped it");
    refresh(&mut alice, &mut device).await;
    assert!(alice.visit(details).await.ok().contains("\"role\":\"editor\""));
}

async fn a_bound_session_lasts_longer(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    stage.pass(IDLE * 10);
    device.challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice", "silent for five hours");
    for _ in 0..2 {
        stage.pass(REMEMBERED_IDLE - SECOND);
        device.challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
        refresh(&mut alice, &mut device).await;
        assert_eq!(alice.who().await, "alice");
    }
    stage.pass(REMEMBERED_IDLE);
    let challenge = challenged(&present(&alice, &device.identifier, None).await, &device);
    ended(&present(&alice, &device.identifier, Some(&device.proof(&challenge))).await, &device.identifier);
}

async fn a_site_that_requires_a_device_renews_no_other_session(stage: Stage) {
    let after = IDLE;
    let stage = stage.rebuilt(|builder| builder.device_binding(DeviceBinding::Require(after)));
    stage.layer.ready().await.unwrap();
    let (mut with, mut device) = bound(&stage).await;
    let (mut without, _) = offered(&stage).await;
    let mut stranger = stage.browser();
    stranger.visit(write("cart", "apples")).await.ok();
    for _ in 0..5 {
        stage.pass(FRESH);
        refresh(&mut with, &mut device).await;
        for (browser, user) in [(&mut with, "alice"), (&mut without, "alice"), (&mut stranger, "nobody")] {
            assert_eq!(browser.who().await, user);
        }
    }
    stage.pass(FRESH);
    refresh(&mut with, &mut device).await;
    stage.events.take();
    assert_eq!(without.who().await, "nobody");
    assert!(matches!(stage.events.take()[..], [SessionEvent::Refused(_, Reason::Unbound)]));
    assert_eq!(with.who().await, "alice");
    assert_eq!(stranger.visit(read("cart")).await.ok(), "apples", "nobody is signed in there");
}

async fn who_has_no_device_is_refused_where_one_is_required(stage: Stage) {
    async fn pay(_: RequireDevice) -> &'static str {
        "paid"
    }
    let stage = offering(&stage).await;
    let (with, _) = bound(&stage).await;
    let (without, _) = offered(&stage).await;
    assert_eq!(with.ask(pay).await.ok(), "paid");
    assert_eq!(without.ask(pay).await.status, StatusCode::FORBIDDEN);
    assert_eq!(stage.browser().ask(pay).await.status, StatusCode::UNAUTHORIZED);
}

async fn the_list_shows_what_is_bound(stage: Stage) {
    async fn list(auth: Auth) -> String {
        let sessions = auth.sessions().await.unwrap();
        let line = |session: &portcullis::SessionInfo| {
            let device = session.device.map(|device| (device.proven.unix_timestamp(), device.confirmed));
            format!("{} {device:?}", session.strength.name())
        };
        sessions.iter().map(line).collect::<Vec<_>>().join("; ")
    }
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    let at = stage.second();
    assert_eq!(alice.visit(list).await.ok(), format!("device Some(({at}, false))"));
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    offered(&stage).await;
    let at = stage.second();
    assert_eq!(alice.visit(list).await.ok(), format!("device Some(({at}, true)); context None"));
}

async fn nothing_is_offered_where_binding_is_off(stage: Stage) {
    let mut alice = stage.browser();
    let answer = alice.visit(login("alice")).await;
    assert_eq!(answer.field("secure-session-registration"), "");
    assert_eq!(register(&alice, "a.b.c").await.status, StatusCode::NOT_FOUND);
}

async fn switching_it_on_or_off_leaves_no_cookie_behind(stage: Stage) {
    let on = offering(&stage).await;
    let mut alice = stage.signed_in("alice").await;
    let (with, without) = ("__Host-session", "__Host-Http-session");
    for (stage, name, other) in [(&on, with, without), (&stage, without, with), (&on, with, without)] {
        alice = alice.at(stage);
        let answer = alice.visit(who).await;
        assert_eq!(answer.ok(), "alice");
        assert!(
            answer.cookies.sets(name).is_some() && answer.cookies.max_age(other) == Some(0),
            "{answer:?}"
        );
        assert!(alice.visit(who).await.cookies.is_empty());
        stage.pass(FRESH);
        assert!(alice.visit(who).await.cookies.text(other).is_none(), "what is gone is not removed again");
    }
    stage.pass(FRESH);
    alice.jar.put(without, "left");
    let answer = alice.visit(logout).await;
    assert_eq!((answer.cookies.max_age(with), answer.cookies.max_age(without)), (Some(0), Some(0)));
}

/// A request was under way when the key was bound; its answer comes after that, and puts its cookies over the bound ones.
async fn an_answer_from_before_the_binding_may_come_last(stage: Stage) {
    let stage = offering(&stage).await;
    let (before, offer) = offered(&stage).await;
    let mut alice = before.clone();
    let mut device = bind(&mut alice, &offer).await;
    alice.jar = before.jar.clone();
    stage.pass(FRESH);
    for from in ["same-origin", "none", "cross-site"] {
        let page = navigation(&alice, from).ask(who).await;
        assert_eq!((page.ok().as_str(), page.field("refresh").as_str()), ("", "0"), "{from}");
        assert_eq!(page.cookies.max_age("__Host-session"), Some(0), "so that the browser refreshes");
    }
    assert_eq!(alice.ask(who).await.ok(), "nobody", "what is no page goes on without");
    let page = navigation(&alice, "none").ask(who).await;
    alice.take(&page);
    let once = navigation(&alice, "same-origin").ask(who).await;
    assert_eq!((once.ok().as_str(), once.field("refresh").as_str()), ("nobody", ""), "it does not go round");
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn hints_are_not_asked_of_what_a_browser_sends_by_itself(stage: Stage) {
    let policy = BindingPolicy::default().on(ContextSignal::Hints, Reaction::Reject);
    let stage = stage.rebuilt(|builder| offers(builder).binding(policy));
    stage.layer.ready().await.unwrap();
    let bare = stage.browser();
    let mut alice = bare.with_field("sec-ch-ua-platform", "\"Linux\"");
    let offer = Offer::read(&alice.visit(login("alice")).await.field("secure-session-registration")).unwrap();
    let mut device = bind(&mut alice.clone().without_fields(), &offer).await;
    let mut asks = alice.clone().without_fields();
    stage.pass(FRESH);
    refresh(&mut asks, &mut device).await;
    alice.jar = asks.jar.clone();
    assert_eq!(alice.who().await, "alice");
    assert_eq!(asks.ask(who).await.ok(), "nobody", "of pages they are");
}

/// A backup from before the binding: the seal of the identifier says that it was.
async fn what_a_store_has_lost_is_bound_again_and_told(stage: Stage) {
    let scratch = crate::scratch::Scratch::new();
    let (file, backup) = (scratch.file("sessions.db"), scratch.file("backup.db"));
    let open = async |file: &std::path::Path| {
        let store = portcullis::SqliteStore::open_with_clock(file, std::sync::Arc::clone(&stage.clock) as _);
        offering(&stage.over_store(store.await.unwrap())).await
    };
    let now = open(&file).await;
    let (mut alice, offer) = offered(&now).await;
    for part in ["", "-wal"] {
        let part = |file: &std::path::Path| format!("{}{part}", file.display());
        std::fs::copy(part(&file), part(&backup)).unwrap();
    }
    let mut device = bind(&mut alice, &offer).await;
    let restored = open(&backup).await;
    alice = alice.at(&restored);
    stage.events.take();
    refresh(&mut alice, &mut device).await;
    assert_eq!(stage.events.names(), ["store_rolled_back", "session_renewed"]);
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

async fn a_whole_site_may_be_in_the_scope(stage: Stage) {
    let stage = stage.rebuilt(|builder| offers(builder).cookie_domain("example.com").include_site());
    stage.layer.ready().await.unwrap();
    let (alice, offer) = offered(&stage).await;
    let answer = register(&alice, &Device::new(7).registration(&offer.challenge)).await;
    let json: serde_json::Value = serde_json::from_str(&answer.ok()).unwrap();
    assert_eq!(json["scope"], serde_json::json!({ "origin": "https://example.com", "include_site": true }));
    assert_eq!(json["credentials"][0]["name"], "__Secure-session");
    let attributes = json["credentials"][0]["attributes"].as_str().unwrap();
    assert_eq!(attributes, "Path=/; Domain=example.com; Secure; HttpOnly; SameSite=Lax");
    let other = portcullis::cookie::Origin::parse("https://www.example.com:8443").unwrap();
    let app = Router::new().fallback_service(stage.layer.device_well_known([other]));
    let file = crate::browser::answer(app, alice.request(Method::GET)).await;
    let wanted = r#"{"registering_origins":["https://app.example.com","https://www.example.com:8443"]}"#;
    assert_eq!(file.ok(), wanted);
    assert_eq!(file.field("content-type"), "application/json");
}
