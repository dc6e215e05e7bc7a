//! A store that does not answer: nobody is signed out, and nobody gets in (design §8).

use http::StatusCode;
use portcullis::{Auth, AuthError, Session, events::StoreVerb};

use crate::{
    handlers::{login, page, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    strangers_and_fresh_cookies_do_not_notice_an_outage,
    a_stale_cookie_is_told_to_come_again_and_does_once_the_store_is_back,
    a_lone_token_is_told_to_come_again,
    a_handler_that_reads_data_is_told_of_the_outage,
    a_commit_that_the_store_does_not_hear_turns_the_answer_into_a_503,
    a_commit_that_fails_after_a_renewal_still_sends_the_new_token,
    an_anonymous_write_that_the_store_does_not_hear_is_a_503,
    a_login_that_the_store_does_not_hear_changes_nothing,
    a_login_that_is_reported_as_failed_sets_no_cookies,
    a_login_that_reads_what_it_keeps_from_a_silent_store_changes_nothing,
    a_flush_that_the_store_does_not_hear_holds_here_and_is_written_later,
);

/// A61.
async fn strangers_and_fresh_cookies_do_not_notice_an_outage(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.store.goes_down();
    assert_eq!(stage.browser().ask(who).await.ok(), "nobody");
    assert_eq!(alice.ask(who).await.ok(), "alice");
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn a_stale_cookie_is_told_to_come_again_and_does_once_the_store_is_back(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    stage.store.goes_down();
    for _ in 0..3 {
        let answer = alice.visit(page).await;
        answer.assert_unavailable();
        assert_eq!((answer.body.as_str(), answer.field("cache-control").as_str()), ("", "no-store"));
    }
    assert_eq!(stage.events.names(), ["store_unavailable"; 3]);
    stage.store.comes_back();
    let answer = alice.visit(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.sets(RENEWAL).is_some());
}

async fn a_lone_token_is_told_to_come_again(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    stage.store.fails_only(StoreVerb::Rotate);
    let token = alice.with_jar(alice.jar.without(SESSION));
    token.ask(who).await.assert_unavailable();
    stage.store.comes_back();
    assert_eq!(token.ask(who).await.ok(), "alice");
}

async fn a_handler_that_reads_data_is_told_of_the_outage(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.store.goes_down();
    let reads = |session: Session| async move {
        session
            .get::<String>("colour")
            .await
            .map_or_else(|error| format!("no: {error}"), |value| format!("yes: {value:?}"))
    };
    let answer = alice.ask(reads).await;
    assert!(answer.ok().starts_with("no: "), "{}", answer.body);
    assert!(!answer.body.contains("told to fail"), "what the backend said stays inside: {}", answer.body);
    assert!(answer.cookies.is_empty());
}

async fn a_commit_that_the_store_does_not_hear_turns_the_answer_into_a_503(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.store.fails_only(StoreVerb::Commit);
    let answer = alice.visit(write("colour", "green")).await;
    answer.assert_unavailable();
    assert_eq!(answer.body, "", "and says nothing of what the handler believed");
    stage.store.comes_back();
    assert_eq!(alice.visit(read("colour")).await.ok(), "nothing");
    alice.visit(write("colour", "green")).await.ok();
    assert_eq!(alice.visit(read("colour")).await.ok(), "green");
}

async fn a_commit_that_fails_after_a_renewal_still_sends_the_new_token(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    stage.store.fails_only(StoreVerb::Commit);
    let answer = alice.visit(write("colour", "green")).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    stage.store.comes_back();
    stage.pass(FRESH);
    stage.forget();
    assert_eq!(alice.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

async fn an_anonymous_write_that_the_store_does_not_hear_is_a_503(stage: Stage) {
    let mut browser = stage.browser();
    stage.store.goes_down();
    browser.visit(write("basket", "apples")).await.assert_unavailable();
    stage.store.comes_back();
    browser.visit(write("basket", "apples")).await.ok();
    assert_eq!(browser.visit(read("basket")).await.ok(), "apples");
}

/// A62.
async fn a_login_that_the_store_does_not_hear_changes_nothing(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    alice.visit(write("colour", "green")).await.ok();
    stage.store.goes_down();
    alice.visit(login("bob")).await.assert_unavailable();
    let goes_on = |auth: Auth, session: Session| async move {
        assert_eq!(auth.login("bob").await, Err(AuthError::Unavailable));
        // A handler that does not mind must not make a session of it either.
        let _ = session.insert("colour", "red").await;
    };
    assert!(alice.visit(goes_on).await.cookies.is_empty());
    let mut stranger = stage.browser();
    stranger.visit(login("bob")).await.assert_unavailable();
    stage.store.comes_back();
    assert_eq!(stranger.who().await, "nobody");
    assert_eq!(alice.who().await, "alice");
    assert_eq!(alice.visit(read("colour")).await.ok(), "green");
    stage.pass(FRESH);
    assert_eq!(alice.who().await, "alice");
}

/// `AuthError::Unavailable` says: "nothing is known to have been saved, and no cookie was changed". A handler answers with
/// it that nobody was signed in. Here the new session is saved, and ending the one that a stale cookie names fails.
async fn a_login_that_is_reported_as_failed_sets_no_cookies(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    alice.jar = alice.jar.without(RENEWAL);
    stage.store.fails_only(StoreVerb::Revoke);
    let answer = alice.visit(login("bob")).await;
    if answer.status == StatusCode::OK {
        assert_eq!(alice.who().await, "bob");
    } else {
        answer.assert_unavailable();
    }
}

async fn a_login_that_reads_what_it_keeps_from_a_silent_store_changes_nothing(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.store.fails_only(StoreVerb::Load);
    let keeps = |auth: Auth| async move { auth.login("bob").keep("basket").await };
    alice.visit(keeps).await.assert_unavailable();
    stage.store.comes_back();
    assert_eq!(alice.who().await, "alice");
}

async fn a_flush_that_the_store_does_not_hear_holds_here_and_is_written_later(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.store.fails_only(StoreVerb::Revoke);
    let flushes = |session: Session| async move { session.flush().await.unwrap() };
    alice.visit(flushes).await.assert_unavailable();
    assert_eq!(alice.who().await, "nobody");
    stage.store.comes_back();
    stage.layer.ready().await.unwrap();
    assert_eq!(stage.events.names().last(), Some(&"revocations_delivered"));
}
