//! The lower tier: what a copied jar, a copied profile and a thief with a fresh cookie get out of a session whose key a script
//! keeps.

use http::StatusCode;
use serde_json::Value;

use crate::{
    device::{Device, Offer},
    lab::{Answer, Browser, FRESH, Lab},
};

crate::every_store::on_every_store!(with ["--device-binding", "offer", "--software-keys", "on"]:
    a01_a_copied_jar_of_a_session_with_a_script_s_key,
    a01_a_copied_profile,
    a72_a_script_s_challenge_answered_again,
    a72_a_thief_with_a_key_of_his_own,
    a72_a_script_s_key_passed_off_as_a_device,
);

async fn call(browser: &Browser, proof: Option<&str>) -> Answer {
    let browser = browser.with_field("portcullis-key", "ask");
    let browser = match proof {
        Some(proof) => browser.with_field("secure-session-response", proof),
        None => browser,
    };
    browser.ask("POST", "/portcullis/key", "").await
}

/// Asserts the state that an answer tells, and gives the challenge in it.
fn told(answer: &Answer, wanted: &str) -> String {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let told: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(told["state"], wanted, "{answer:?}");
    told["challenge"].as_str().unwrap_or_default().to_owned()
}

async fn login(lab: &Lab) -> (Browser, Answer) {
    let mut alice = lab.browser();
    let answer = alice.visit("POST", "/login", "user=alice").await;
    lab.pass(3).await;
    (alice, answer)
}

async fn bound(lab: &Lab) -> (Browser, Device) {
    let (mut alice, _) = login(lab).await;
    let (mut key, challenge) = (Device::new(7), told(&call(&alice, None).await, "unbound"));
    renew(&mut alice, &mut key, &challenge).await;
    (alice, key)
}

async fn renew(browser: &mut Browser, key: &mut Device, challenge: &str) {
    let answer = call(browser, Some(&key.by_script(challenge))).await;
    key.challenge = told(&answer, "bound");
    browser.take(&answer);
}

/// What the script does: it signs what it was told to the last time, and what it is told to now.
async fn goes_on(browser: &mut Browser, key: &mut Device) -> Value {
    let mut challenge = key.challenge.clone();
    for _ in 0..2 {
        let answer = call(browser, Some(&key.by_script(&challenge))).await;
        let told: Value = serde_json::from_str(&answer.body).expect("JSON");
        browser.take(&answer);
        challenge = told["challenge"].as_str().unwrap_or_default().to_owned();
        if told["state"] != "stale" {
            key.challenge = challenge;
            return told["state"].clone();
        }
    }
    Value::Null
}

async fn a01_a_copied_jar_of_a_session_with_a_script_s_key(lab: Lab) {
    let (before, _) = login(&lab).await;
    let mut alice = before.clone();
    let (mut key, challenge) = (Device::new(7), told(&call(&alice, None).await, "unbound"));
    renew(&mut alice, &mut key, &challenge).await;
    let thieves = [before, alice.clone()];
    for _ in 0..3 {
        lab.pass(FRESH).await;
        for thief in &thieves {
            let mut thief = thief.clone();
            assert_eq!(thief.who().await, None);
            assert_ne!(goes_on(&mut thief, &mut Device::new(9)).await, "bound");
            assert_eq!(thief.who().await, None);
        }
        assert_eq!(goes_on(&mut alice, &mut key).await, "bound");
        assert_eq!(alice.who().await.as_deref(), Some("alice"));
    }
}

/// An infostealer has it all: the jar, and the key that lies on the disk. Then the token, which each use uses up, tells.
async fn a01_a_copied_profile(lab: Lab) {
    let (mut alice, mut key) = bound(&lab).await;
    lab.pass(FRESH).await;
    let (mut thief, mut copy) = (alice.clone(), key.clone());
    for _ in 0..4 {
        goes_on(&mut thief, &mut copy).await;
        goes_on(&mut alice, &mut key).await;
        lab.pass(FRESH).await;
    }
    assert!(lab.told("authn_token_reuse") > 0);
    lab.settle().await;
    for browser in [&mut thief, &mut alice] {
        assert_eq!(browser.who().await, None);
    }
}

/// Behind the proxy each comes to another instance.
async fn a72_a_script_s_challenge_answered_again(lab: Lab) {
    let (mut alice, mut key) = bound(&lab).await;
    lab.pass(FRESH).await;
    let proof = key.by_script(&key.challenge);
    let answer = call(&alice, Some(&proof)).await;
    let before = alice.clone();
    key.challenge = told(&answer, "bound");
    alice.take(&answer);
    lab.pass(FRESH).await;
    for browser in [&alice, &before] {
        for _ in 0..6 {
            let answer = call(browser, Some(&proof)).await;
            told(&answer, "stale");
            assert!(answer.cookies.is_empty());
        }
    }
    assert_eq!(goes_on(&mut alice, &mut key).await, "bound");
}

/// With a fresh cookie of a login: late he gets nothing, early it comes to light.
async fn a72_a_thief_with_a_key_of_his_own(lab: Lab) {
    let (alice, _) = login(&lab).await;
    let (key, own) = (Device::new(7), Device::new(9));
    let challenge = told(&call(&alice, None).await, "unbound");
    let mut thief = alice.clone();
    renew(&mut thief, &mut own.clone(), &challenge).await;
    told(&call(&alice, Some(&key.by_script(&challenge))).await, "none");
    assert!(lab.told("device_already_bound") > 0);
    lab.settle().await;
    assert_eq!(thief.who().await, None, "he is out with her");
    let (mut alice, _) = login(&lab).await;
    let challenge = told(&call(&alice, None).await, "unbound");
    lab.pass(FRESH).await;
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
    told(&call(&alice, Some(&own.by_script(&challenge))).await, "none");
    told(&call(&alice, None).await, "none");
}

async fn a72_a_script_s_key_passed_off_as_a_device(lab: Lab) {
    let (alice, answer) = login(&lab).await;
    let field = answer.headers.get("secure-session-registration").expect("an offer");
    let offer = Offer::read(field.to_str().expect("ASCII")).expect("an offer");
    let key = Device::new(7);
    let challenge = told(&call(&alice, None).await, "unbound");
    for proof in [key.registration(&challenge), key.by_script(&challenge), key.by_script(&offer.challenge)] {
        let browser = alice.with_field("secure-session-response", &proof);
        let answer = browser.ask("POST", "/portcullis/device/register", "").await;
        assert!(answer.status.is_client_error() && answer.cookies.is_empty(), "{answer:?}");
    }
    let (alice, _) = bound(&lab).await;
    assert_eq!(alice.ask("GET", "/device", "").await.status, StatusCode::FORBIDDEN);
}
