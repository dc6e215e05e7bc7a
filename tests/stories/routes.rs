//! Every route of lab answers as it says, so that what is built on lab can rely on it.

use http::{StatusCode, header};
use serde_json::json;

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Answer, Browser, FRESH, Flags, Lab},
};

crate::on_every_store!(
    a_stranger_is_turned_away_without_a_body,
    home_says_who_it_is,
    a_login_wants_a_user_and_fitting_claims,
    data_is_written_and_read,
    a_body_above_four_kib_is_too_large,
    a_slow_write_is_a_write,
    claims_are_replaced,
    an_old_authentication_is_not_recent,
    sessions_are_listed_and_revoked,
    signing_out_is_always_204,
    any_status_can_be_asked_for,
    public_keys_and_the_clock_need_no_session,
);

fn assert_empty(answer: &Answer, status: StatusCode) {
    assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{answer:?}");
}

async fn a_stranger_is_turned_away_without_a_body(lab: Lab) {
    let stranger = lab.browser();
    for (method, path, body) in [
        ("GET", "/recent", ""),
        ("GET", "/sessions", ""),
        ("DELETE", "/sessions/AAAAAAAAAAAAAAAAAAAAAA", ""),
        ("GET", "/ws", ""),
        ("POST", "/reauthenticate", ""),
        ("POST", "/claims", "role=admin"),
    ] {
        let answer = stranger.ask(method, path, body).await;
        assert_empty(&answer, StatusCode::UNAUTHORIZED);
        assert!(answer.cookies.is_empty());
    }
    assert_eq!(stranger.ask("GET", "/nowhere", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(stranger.ask("GET", "/login", "").await.status, StatusCode::METHOD_NOT_ALLOWED);
}

async fn home_says_who_it_is(lab: Lab) {
    let nobody = json!({ "user": null, "claims": null, "strength": null, "session": null });
    assert_eq!(lab.browser().ask("GET", "/", "").await.json(), nobody);
    let mut browser = lab.browser();
    let answer = browser.visit("POST", "/login", "user=alice&role=editor&remember=yes").await;
    assert_empty(&answer, StatusCode::NO_CONTENT);
    assert_eq!(answer.cookies.max_age(SESSION), Some(30 * 24 * 3600));
    let mut home = browser.visit("GET", "/", "").await.json();
    assert_eq!(home["session"].as_str().map(str::len), Some(22));
    home["session"] = json!(null);
    let expected =
        json!({ "user": "alice", "claims": { "role": "editor" }, "strength": "context", "session": null });
    assert_eq!(home, expected);
}

async fn a_login_wants_a_user_and_fitting_claims(lab: Lab) {
    let browser = lab.browser();
    let (long_user, long_role) =
        (format!("user={}", "u".repeat(256)), format!("user=alice&role={}", "r".repeat(1024)));
    for form in ["user=", "role=editor", long_user.as_str(), long_role.as_str()] {
        let answer = browser.ask("POST", "/login", form).await;
        assert_empty(&answer, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.cookies.is_empty());
    }
    let answer = browser.ask("POST", "/login", "user=alice&remember=").await;
    assert_eq!(answer.cookies.max_age(RENEWAL), Some(12 * 3600), "an unchecked box remembers nothing");
}

async fn data_is_written_and_read(lab: Lab) {
    for mut browser in [lab.browser(), lab.signed_in("alice").await] {
        assert_empty(&browser.visit("GET", "/data/colour", "").await, StatusCode::NOT_FOUND);
        assert_empty(&browser.visit("POST", "/data/colour", "gr\u{fc}n").await, StatusCode::NO_CONTENT);
        let answer = browser.visit("GET", "/data/colour", "").await;
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "gr\u{fc}n"));
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_empty(&browser.visit("GET", "/data/shape", "").await, StatusCode::NOT_FOUND);
    }
}

async fn a_body_above_four_kib_is_too_large(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let largest = "x".repeat(4096);
    assert_empty(&browser.visit("POST", "/data/colour", &largest).await, StatusCode::NO_CONTENT);
    for path in ["/data/colour", "/slow/colour"] {
        let answer = browser.visit("POST", path, &"y".repeat(4097)).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(answer.cookies.is_empty());
    }
    assert_eq!(browser.visit("GET", "/data/colour", "").await.body, largest);
}

async fn a_slow_write_is_a_write(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let copy = browser.clone();
    assert_empty(&browser.visit("POST", "/slow/colour?ms=1", "green").await, StatusCode::NO_CONTENT);
    assert_eq!(browser.visit("GET", "/data/colour", "").await.body, "green");
    // A09, over HTTP. That the request is inside is seen in nothing but time, so the story holds either way round.
    let (slow, _) =
        tokio::join!(copy.ask("POST", "/slow/colour?ms=300", "red"), browser.visit("POST", "/logout", ""));
    assert_eq!(slow.status, StatusCode::NO_CONTENT);
    assert_eq!(copy.ask("GET", "/", "").await.user(), None);
}

async fn claims_are_replaced(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    assert_empty(&browser.visit("POST", "/claims", "role=admin").await, StatusCode::NO_CONTENT);
    assert_eq!(browser.visit("GET", "/", "").await.json()["claims"], json!({ "role": "admin" }));
    let answer = browser.visit("POST", "/claims", &format!("role={}", "r".repeat(1024))).await;
    assert_empty(&answer, StatusCode::UNPROCESSABLE_ENTITY);
}

async fn an_old_authentication_is_not_recent(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    assert_empty(&browser.visit("GET", "/recent", "").await, StatusCode::OK);
    lab.pass(FRESH).await;
    assert_empty(&browser.visit("GET", "/recent", "").await, StatusCode::FORBIDDEN);
    assert_empty(&browser.visit("POST", "/reauthenticate", "").await, StatusCode::NO_CONTENT);
    assert_empty(&browser.visit("GET", "/recent", "").await, StatusCode::OK);
}

async fn sessions_are_listed_and_revoked(lab: Lab) {
    let mut phone = lab.signed_in("alice").await;
    lab.pass(1).await;
    let mut browser = lab.signed_in("alice").await;
    let bob = lab.signed_in("bob").await;
    let handle_of = |answer: Answer| answer.json()["session"].as_str().unwrap().to_owned();
    let listed = browser.visit("GET", "/sessions", "").await.json();
    let entries = listed.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for (entry, (owner, current)) in entries.iter().zip([(&phone, false), (&browser, true)]) {
        assert_eq!(entry["handle"], handle_of(owner.ask("GET", "/", "").await));
        assert_eq!((&entry["current"], &entry["client"]), (&json!(current), &json!("Firefox on Linux")));
        assert_eq!(entry["created"], entry["renewed"]);
    }
    let revoke = async |browser: &mut Browser, handle: String| {
        browser.visit("DELETE", &format!("/sessions/{handle}"), "").await
    };
    let foreign = handle_of(bob.ask("GET", "/", "").await);
    for handle in [foreign, "A".repeat(22), "nonsense".into()] {
        assert_empty(&revoke(&mut browser, handle).await, StatusCode::NOT_FOUND);
    }
    let handle = handle_of(phone.ask("GET", "/", "").await);
    assert_empty(&revoke(&mut browser, handle).await, StatusCode::NO_CONTENT);
    assert_eq!(phone.who().await, None);
    let handle = handle_of(browser.ask("GET", "/", "").await);
    let answer = revoke(&mut browser, handle).await;
    assert_empty(&answer, StatusCode::NO_CONTENT);
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    assert_eq!(bob.ask("GET", "/", "").await.user().as_deref(), Some("bob"));
}

async fn signing_out_is_always_204(lab: Lab) {
    for path in ["/logout", "/logout-everywhere"] {
        assert_empty(&lab.browser().ask("POST", path, "").await, StatusCode::NO_CONTENT);
        let mut browser = lab.signed_in("alice").await;
        assert_empty(&browser.visit("POST", path, "").await, StatusCode::NO_CONTENT);
        assert_eq!(browser.who().await, None);
    }
}

async fn any_status_can_be_asked_for(lab: Lab) {
    let browser = lab.signed_in("alice").await;
    for code in [200, 204, 302, 404, 418, 500, 503] {
        let answer = browser.ask("GET", &format!("/status/{code}"), "").await;
        assert_eq!(answer.status.as_u16(), code);
        assert_eq!(answer.headers[header::CACHE_CONTROL], "private, no-store");
    }
}

async fn public_keys_and_the_clock_need_no_session(lab: Lab) {
    let stranger = lab.browser();
    let keys = stranger.ask("GET", "/.well-known/jwks.json", "").await;
    assert_eq!(keys.headers[header::CONTENT_TYPE], "application/jwk-set+json");
    assert!(!keys.headers.contains_key(header::VARY));
    let key = &keys.json()["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["use"]), (&json!("EC"), &json!("P-256"), &json!("sig")));
    assert!(key.get("d").is_none(), "the private part stays here");
    assert_eq!(stranger.ask("POST", "/lab/clock", "0").await.status, StatusCode::NO_CONTENT);
    for nonsense in ["", "soon", "-1", "1.5"] {
        let answer = stranger.ask("POST", "/lab/clock", nonsense).await;
        assert_empty(&answer, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn the_system_s_clock_cannot_be_moved() {
    let lab = Lab::start(&Flags { manual_clock: false, ..Flags::memory() });
    assert_empty(&lab.browser().ask("POST", "/lab/clock", "1").await, StatusCode::NOT_FOUND);
}
