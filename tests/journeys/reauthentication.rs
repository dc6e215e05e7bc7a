//! Proving again who one is: a new id, new times, and nothing to be had from the old ones.

use http::StatusCode;
use portcullis::{Auth, AuthError, Session, events::StoreVerb};
use serde_json::{Value, json};

use crate::{
    browser::Browser,
    handlers::{details, logout, logout_everywhere, read, reauthenticate, recent, who, write},
    jar::{RENEWAL, SESSION},
    stage::{ABSOLUTE, FRESH, GRACE, IDLE, MS, Stage, eventually},
};

on_every_store!(
    it_gives_new_cookies_for_a_new_id_and_begins_all_timeouts_anew,
    it_keeps_user_claims_methods_and_data,
    it_can_name_the_methods_of_this_time,
    the_old_cookie_lives_out_with_its_old_authentication_time,
    the_old_token_renews_nothing,
    a_write_through_the_old_cookie_is_dropped,
    logging_out_of_the_new_session_ends_the_old_id_too,
    logging_out_everywhere_ends_the_old_id_too,
    it_is_refused_to_nobody,
    it_that_the_store_does_not_hear_changes_nothing,
    after_a_failure_the_handler_still_sees_its_session,
);

async fn told(browser: &mut Browser) -> Value {
    serde_json::from_str(&browser.visit(details).await.ok()).unwrap()
}

async fn it_gives_new_cookies_for_a_new_id_and_begins_all_timeouts_anew(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let before = told(&mut browser).await;
    let old = browser.jar.clone();
    stage.pass(FRESH + IDLE / 2);
    browser.who().await;
    stage.forget();
    let answer = browser.visit(reauthenticate).await;
    answer.ok();
    for name in [SESSION, RENEWAL] {
        assert_eq!(answer.cookies.max_age(name), Some(ABSOLUTE.as_secs()));
        assert_ne!(answer.cookies.sets(name), old.value(name));
    }
    assert_eq!(stage.events.names(), ["authn_reauthenticated"]);
    let after = told(&mut browser).await;
    assert_ne!(after["session"], before["session"]);
    assert_eq!(after["authenticated_at"], stage.second());
    assert_eq!(browser.visit(recent).await.ok(), "recent");
    stage.pass(IDLE - MS);
    assert_eq!(browser.who().await, "alice");
}

async fn it_keeps_user_claims_methods_and_data(stage: Stage) {
    let mut browser = stage.browser();
    let signs_in = |auth: Auth| async move {
        auth.login("alice").claim("role", "editor")?.method("pwd").remember(true).await
    };
    browser.visit(signs_in).await.ok();
    browser.visit(write("colour", "green")).await.ok();
    browser.visit(reauthenticate).await.ok();
    let told = told(&mut browser).await;
    assert_eq!(told["subject"], "alice");
    assert_eq!(told["claims"], json!({ "role": "editor" }));
    assert_eq!(told["methods"], json!(["pwd"]));
    assert_eq!(told["remembered"], true);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    stage.pass(FRESH);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
}

async fn it_can_name_the_methods_of_this_time(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let with_key = |auth: Auth| async move { auth.reauthenticated_by(["pwd", "hwk"]).await };
    browser.visit(with_key).await.ok();
    assert_eq!(told(&mut browser).await["methods"], json!(["pwd", "hwk"]));
    let with_nonsense = |auth: Auth| async move {
        assert_eq!(auth.reauthenticated_by(["two words"]).await, Err(AuthError::Methods));
    };
    assert!(browser.visit(with_nonsense).await.cookies.is_empty());
}

async fn the_old_cookie_lives_out_with_its_old_authentication_time(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let then = stage.second();
    let mut old = browser.clone();
    stage.pass(FRESH / 2);
    browser.visit(reauthenticate).await.ok();
    stage.pass(FRESH / 2 - MS);
    assert_eq!(told(&mut old).await["authenticated_at"], then);
    let answer = old.visit(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.is_empty());
    stage.pass(MS);
    assert_eq!(old.visit(who).await.ok(), "nobody");
}

/// A77.
async fn the_old_token_renews_nothing(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let old = browser.with_jar(browser.jar.without(SESSION));
    browser.visit(reauthenticate).await.ok();
    for span in [GRACE - MS, MS, FRESH, IDLE] {
        let answer = old.ask(who).await;
        assert_eq!(answer.ok(), "nobody");
        assert!(answer.cookies.is_empty());
        stage.pass(span);
    }
}

async fn a_write_through_the_old_cookie_is_dropped(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let mut old = browser.clone();
    browser.visit(reauthenticate).await.ok();
    stage.forget();
    let answer = old.visit(write("colour", "green")).await;
    answer.ok();
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["write_to_ended_session"]);
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
}

async fn logging_out_of_the_new_session_ends_the_old_id_too(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let old = browser.clone();
    browser.visit(reauthenticate).await.ok();
    browser.visit(logout).await.ok();
    // The store alone knows what the session was called before; the feed brings it.
    eventually(|| async { old.ask(who).await.ok() == "nobody" }).await;
}

async fn logging_out_everywhere_ends_the_old_id_too(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let old = browser.clone();
    browser.visit(reauthenticate).await.ok();
    browser.visit(logout_everywhere).await.ok();
    assert_eq!(old.ask(who).await.ok(), "nobody");
}

async fn it_is_refused_to_nobody(stage: Stage) {
    let mut anonymous = stage.browser();
    assert_eq!(anonymous.ask(reauthenticate).await.status, StatusCode::UNAUTHORIZED);
    anonymous.visit(write("basket", "apples")).await.ok();
    let answer = anonymous.ask(reauthenticate).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.cookies.is_empty());
}

async fn it_that_the_store_does_not_hear_changes_nothing(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    for verb in [StoreVerb::Load, StoreVerb::Create] {
        stage.store.fails_only(verb);
        browser.ask(reauthenticate).await.assert_unavailable();
    }
    stage.store.comes_back();
    assert_eq!(browser.who().await, "alice");
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
}

async fn after_a_failure_the_handler_still_sees_its_session(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("basket", "apples")).await.ok();
    for verb in [StoreVerb::Load, StoreVerb::Create] {
        let store = stage.store.clone();
        let tries = move |auth: Auth, session: Session| async move {
            read("basket")(session.clone()).await;
            store.fails_only(verb);
            assert_eq!(auth.reauthenticated().await, Err(AuthError::Unavailable));
            (StatusCode::BAD_GATEWAY, read("basket")(session).await)
        };
        let answer = browser.ask(tries).await;
        stage.store.comes_back();
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::BAD_GATEWAY, "apples"), "{verb:?}");
    }
}
