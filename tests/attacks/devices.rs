//! Device-bound sessions: a copied jar, a replayed proof, another key, a thief who wants to be bound, somebody else in the
//! same browser.

use http::StatusCode;
use serde_json::Value;

use crate::{
    device::{Device, Offer, challenge_of},
    jar::RENEWAL,
    lab::{Answer, Browser, FRESH, GRACE, Lab},
};

crate::every_store::on_every_store!(with ["--device-binding", "offer"]:
    a01_a_copied_jar_of_a_bound_session,
    a72_a_proof_that_was_seen,
    a72_a_challenge_of_another_session,
    a72_another_key,
    a72_an_algorithm_that_was_not_offered,
    a72_a_thief_binds_a_key_of_his,
    a72_a_second_key_for_one_login,
    a72_a_bound_session_without_its_device,
    a79_somebody_else_in_the_same_browser,
);

/// What browsers call a session cookie that they refresh.
const SESSION: &str = "__Host-session";

async fn login(lab: &Lab, user: &str) -> (Browser, Offer) {
    let mut browser = lab.browser();
    let answer = browser.visit("POST", "/login", &format!("user={user}")).await;
    (browser, Offer::read(field(&answer, "secure-session-registration")).expect("an offer"))
}

async fn register(browser: &Browser, proof: &str) -> Answer {
    let browser = browser.with_field("secure-session-response", proof);
    browser.ask("POST", "/portcullis/device/register", "").await
}

async fn refresh(browser: &Browser, identifier: &str, proof: &str) -> Answer {
    let named = browser.with_field("sec-secure-session-id", identifier);
    let browser = if proof.is_empty() { named } else { named.with_field("secure-session-response", proof) };
    browser.ask("POST", "/portcullis/device/refresh", "").await
}

async fn bound(lab: &Lab, user: &str) -> (Browser, Device) {
    let (mut browser, offer) = login(lab, user).await;
    let device = bind(&mut browser, &offer).await;
    (browser, device)
}

/// Takes an offer, as a browser does by itself.
async fn bind(browser: &mut Browser, offer: &Offer) -> Device {
    let mut device = Device::new(7);
    let answer = register(browser, &device.registration(&offer.challenge)).await;
    take(browser, &mut device, &answer);
    device
}

/// The session goes on: the browser takes the answer.
fn take(browser: &mut Browser, device: &mut Device, answer: &Answer) {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    device.take(&answer.body, field(answer, "secure-session-challenge"));
    browser.take(answer);
}

/// The user goes on as if nothing had been, a moment later: a challenge of the same millisecond would be a used one.
async fn goes_on(browser: &mut Browser, device: &mut Device) {
    browser.lab.pass(1).await;
    device.challenge = challenge(&refresh(browser, &device.identifier, "").await, device);
    let answer = refresh(browser, &device.identifier, &device.proof(&device.challenge)).await;
    take(browser, device, &answer);
    assert_eq!(browser.who().await.as_deref(), Some("alice"));
}

fn challenge(answer: &Answer, device: &Device) -> String {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    challenge_of(field(answer, "secure-session-challenge"), &device.identifier).expect("a challenge")
}

fn field<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
}

fn refused(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.cookies.is_empty());
}

/// The infostealer: all cookies, and everything that was ever said.
async fn a01_a_copied_jar_of_a_bound_session(lab: Lab) {
    let (before, offer) = login(&lab, "alice").await;
    let mut alice = before.clone();
    let mut device = bind(&mut alice, &offer).await;
    let thieves = [before, alice.clone()];
    lab.pass(FRESH + GRACE).await;
    goes_on(&mut alice, &mut device).await;
    for mut thief in thieves {
        assert_eq!(thief.who().await, None);
        let without_cookie = thief.with_token_alone();
        assert_eq!(without_cookie.ask("GET", "/", "").await.user(), None);
        let asked = challenge(&refresh(&thief, &device.identifier, "").await, &device);
        refused(&refresh(&thief, &device.identifier, &Device::new(9).proof(&asked)).await, 400);
    }
    goes_on(&mut alice, &mut device).await;
}

async fn a72_a_proof_that_was_seen(lab: Lab) {
    let (mut alice, mut device) = bound(&lab, "alice").await;
    let proof = device.proof(&device.challenge);
    let answer = refresh(&alice, &device.identifier, &proof).await;
    take(&mut alice, &mut device, &answer);
    // Behind the proxy each comes to another instance.
    for _ in 0..6 {
        refused(&refresh(&alice, &device.identifier, &proof).await, 403);
    }
    goes_on(&mut alice, &mut device).await;
}

async fn a72_a_challenge_of_another_session(lab: Lab) {
    let (mut alice, mut device) = bound(&lab, "alice").await;
    let (mallory, other) = bound(&lab, "mallory").await;
    lab.pass(1).await;
    let own = challenge(&refresh(&mallory, &other.identifier, "").await, &other);
    refused(&refresh(&alice, &device.identifier, &device.proof(&own)).await, 403);
    goes_on(&mut alice, &mut device).await;
}

async fn a72_another_key(lab: Lab) {
    let (mut alice, mut device) = bound(&lab, "alice").await;
    let thief = Device::new(9);
    let asked = challenge(&refresh(&alice, &device.identifier, "").await, &device);
    for proof in [thief.proof(&asked), thief.registration(&asked)] {
        refused(&refresh(&alice, &device.identifier, &proof).await, 400);
    }
    goes_on(&mut alice, &mut device).await;
}

async fn a72_an_algorithm_that_was_not_offered(lab: Lab) {
    let (mut alice, mut device) = bound(&lab, "alice").await;
    let asked = challenge(&refresh(&alice, &device.identifier, "").await, &device);
    for header in [
        r#"{"alg":"RS256","typ":"dbsc+jwt"}"#,
        r#"{"alg":"none","typ":"dbsc+jwt"}"#,
        r#"{"alg":"es256","typ":"dbsc+jwt"}"#,
    ] {
        refused(&refresh(&alice, &device.identifier, &device.sign(header, &asked)).await, 400);
    }
    goes_on(&mut alice, &mut device).await;
}

/// He has the cookies of a login, and no challenge of it: that of a login of his own.
async fn a72_a_thief_binds_a_key_of_his(lab: Lab) {
    let (mut alice, offer) = login(&lab, "alice").await;
    let (_, own) = login(&lab, "mallory").await;
    let thief = Device::new(9);
    refused(&register(&alice, &thief.registration(&own.challenge)).await, 403);
    refused(&register(&alice, &thief.registration("AAAA")).await, 403);
    refused(&register(&lab.browser(), &thief.registration(&offer.challenge)).await, 401);
    let mut device = bind(&mut alice, &offer).await;
    goes_on(&mut alice, &mut device).await;
}

async fn a72_a_second_key_for_one_login(lab: Lab) {
    let (mut alice, offer) = login(&lab, "alice").await;
    let mut device = Device::new(7);
    let answer = register(&alice, &device.registration(&offer.challenge)).await;
    let second = register(&alice, &Device::new(9).registration(&offer.challenge)).await;
    take(&mut alice, &mut device, &answer);
    refused(&second, 403);
    assert!(lab.told("device_already_bound") > 0);
    goes_on(&mut alice, &mut device).await;
}

/// Whatever a request leaves out, and whichever token of the session it shows.
async fn a72_a_bound_session_without_its_device(lab: Lab) {
    let (before, offer) = login(&lab, "alice").await;
    let mut alice = before.clone();
    let mut device = bind(&mut alice, &offer).await;
    // While it is fresh a cookie from before the binding is still somebody's; it gets nothing out of it that would outlive it.
    let again = before.ask("POST", "/reauthenticate", "").await;
    assert!(again.status.is_success() && again.cookies.is_empty(), "{again:?}");
    lab.pass(FRESH + GRACE).await;
    for token in [before.value(RENEWAL), alice.value(RENEWAL)] {
        let bare = alice.holding(None, Some(&token));
        for browser in [
            bare.clone(),
            bare.with_field("sec-fetch-site", "same-origin"),
            bare.with_field("secure-session-skipped", "unreachable;session_identifier=\"AAAA\""),
            Browser { states_origin: false, ..bare.clone() },
        ] {
            for path in ["/", "/device", "/ws"] {
                let answer = browser.ask("GET", path, "").await;
                assert!(answer.cookies.sets(SESSION).is_none() && answer.cookies.sets(RENEWAL).is_none());
                let user = serde_json::from_str::<Value>(&answer.body).unwrap_or_default();
                assert!(user["user"].is_null(), "{path}");
            }
        }
    }
    goes_on(&mut alice, &mut device).await;
}

/// Alice's cookies are deleted, her browser's own session is not. Bob signs in, and the browser refreshes hers.
async fn a79_somebody_else_in_the_same_browser(lab: Lab) {
    let (alice, device) = bound(&lab, "alice").await;
    let (mut bob, _) = login(&lab, "bob").await;
    lab.pass(1).await;
    let asked = challenge(&refresh(&bob, &device.identifier, "").await, &device);
    let answer = refresh(&bob, &device.identifier, &device.proof(&asked)).await;
    assert!(answer.body.contains("\"continue\":false"), "{answer:?}");
    assert!(answer.cookies.is_empty());
    assert_eq!(bob.who().await.as_deref(), Some("bob"));
    lab.settle().await;
    assert_eq!(alice.ask("GET", "/", "").await.user(), None, "her session is over");
}
