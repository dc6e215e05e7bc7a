//! Changing the claims of a session: the old ones are gone at once.

use http::StatusCode;
use portcullis::{Auth, AuthError, Identity, events::StoreVerb};
use serde_json::json;

use crate::{
    browser::Browser,
    handlers::{read, reauthenticate, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, GRACE, Stage, eventually},
};

on_every_store!(
    new_claims_hold_from_the_next_request_on,
    a_cookie_with_the_old_claims_renews_or_is_nobody,
    new_claims_reach_the_cookies_of_the_old_id_too,
    an_instance_that_has_not_read_the_feed_yet_does_not_show_old_claims,
    new_claims_cost_one_commit,
    new_claims_leave_freshness_data_and_token_alone,
    claims_changed_in_a_renewing_request_keep_the_new_token,
    claims_of_nobody_or_that_are_none_are_refused,
    claims_that_the_store_does_not_hear_stay_as_they_are,
);

fn set_role(
    role: &'static str,
) -> impl Fn(Auth) -> std::pin::Pin<Box<dyn Future<Output = Result<(), AuthError>> + Send>> + Clone + Send + Sync
{
    move |auth| Box::pin(async move { auth.set_claims(json!({ "role": role })).await })
}

async fn role(identity: Option<Identity>) -> String {
    identity.map_or_else(|| "nobody".into(), |identity| identity.claim("role").unwrap_or_default())
}

async fn editor(stage: &Stage) -> Browser {
    let mut browser = stage.browser();
    let signs_in = |auth: Auth| async move { auth.login("alice").claim("role", "editor")?.await };
    browser.visit(signs_in).await.ok();
    stage.forget();
    browser
}

async fn new_claims_hold_from_the_next_request_on(stage: Stage) {
    let mut browser = editor(&stage).await;
    assert_eq!(browser.visit(role).await.ok(), "editor");
    browser.visit(set_role("reader")).await.ok();
    assert_eq!(browser.visit(role).await.ok(), "reader");
    for _ in 0..2 {
        stage.pass(FRESH);
        assert_eq!(browser.visit(role).await.ok(), "reader");
    }
    browser.visit(|auth: Auth| async move { auth.set_claims(json!({})).await }).await.ok();
    assert_eq!(browser.visit(role).await.ok(), "");
    assert_eq!(browser.who().await, "alice");
}

/// A11.
async fn a_cookie_with_the_old_claims_renews_or_is_nobody(stage: Stage) {
    let mut browser = editor(&stage).await;
    let old = browser.clone();
    browser.visit(set_role("reader")).await.ok();
    let without_token = old.with_jar(old.jar.without(RENEWAL));
    let answer = without_token.ask(role).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    for span in [GRACE, FRESH] {
        let answer = old.ask(role).await;
        assert_eq!(answer.ok(), "reader");
        assert!(answer.cookies.sets(SESSION).is_some());
        stage.pass(span);
    }
}

/// A11 by way of a new id: whoever keeps a cookie, authenticates again and is demoted must not go on with the kept one.
async fn new_claims_reach_the_cookies_of_the_old_id_too(stage: Stage) {
    let mut browser = editor(&stage).await;
    let old = browser.clone();
    browser.visit(reauthenticate).await.ok();
    browser.visit(set_role("reader")).await.ok();
    assert_eq!(browser.visit(role).await.ok(), "reader");
    eventually(|| async { old.ask(role).await.ok() != "editor" }).await;
}

/// Design §6: until the first read of the feed an instance "checks the store per request".
async fn an_instance_that_has_not_read_the_feed_yet_does_not_show_old_claims(stage: Stage) {
    let mut browser = editor(&stage).await;
    let old = browser.clone();
    browser.visit(set_role("reader")).await.ok();
    let restarted = old.at(&stage.restarted_with(stage.keys.clone()));
    let shown = restarted.ask(role).await.ok();
    assert_ne!(shown, "editor");
}

async fn new_claims_cost_one_commit(stage: Stage) {
    let mut browser = editor(&stage).await;
    browser.visit(set_role("reader")).await.ok();
    assert_eq!(stage.store.calls(), ["commit"]);
    assert_eq!(stage.events.names(), ["session_claims_changed"]);
    browser.visit(role).await.ok();
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn new_claims_leave_freshness_data_and_token_alone(stage: Stage) {
    let mut browser = editor(&stage).await;
    browser.visit(write("colour", "green")).await.ok();
    stage.pass(FRESH / 2);
    let answer = browser.visit(set_role("reader")).await;
    assert!(answer.cookies.sets(SESSION).is_some());
    assert!(answer.cookies.text(RENEWAL).is_none());
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    stage.pass(FRESH / 2);
    let answer = browser.visit(who).await;
    assert!(answer.cookies.sets(RENEWAL).is_some(), "changing claims does not stretch `fresh`");
}

async fn claims_changed_in_a_renewing_request_keep_the_new_token(stage: Stage) {
    let mut browser = editor(&stage).await;
    stage.pass(FRESH);
    let answer = browser.visit(set_role("reader")).await;
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    stage.pass(FRESH);
    assert_eq!(browser.visit(role).await.ok(), "reader");
    assert!(!stage.events.names().contains(&"renewal_answer_lost"));
}

async fn claims_of_nobody_or_that_are_none_are_refused(stage: Stage) {
    assert_eq!(stage.browser().ask(set_role("admin")).await.status, StatusCode::UNAUTHORIZED);
    let mut anonymous = stage.browser();
    anonymous.visit(write("basket", "apples")).await.ok();
    assert_eq!(anonymous.ask(set_role("admin")).await.status, StatusCode::UNAUTHORIZED);
    let mut browser = editor(&stage).await;
    let refusals = |auth: Auth| async move {
        for claims in [json!(null), json!("admin"), json!([1]), json!({ "note": "x".repeat(1024) })] {
            assert_eq!(auth.set_claims(claims).await, Err(AuthError::Claims));
        }
    };
    assert!(browser.visit(refusals).await.cookies.is_empty());
    assert_eq!(browser.visit(role).await.ok(), "editor");
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn claims_that_the_store_does_not_hear_stay_as_they_are(stage: Stage) {
    let mut browser = editor(&stage).await;
    stage.store.fails_only(StoreVerb::Commit);
    browser.ask(set_role("reader")).await.assert_unavailable();
    stage.store.comes_back();
    assert_eq!(browser.visit(role).await.ok(), "editor");
}
