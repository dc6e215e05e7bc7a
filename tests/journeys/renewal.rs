//! A stale cookie: renewed in the same request, until a timeout ends the session.

use http::StatusCode;
use serde_json::Value;

use crate::{
    browser::Browser,
    handlers::{details, login_remembered, page, read, reauthenticate, recent, who, write},
    jar::{RENEWAL, SESSION},
    stage::{ABSOLUTE, FRESH, IDLE, MS, REMEMBERED_ABSOLUTE, REMEMBERED_IDLE, SECOND, Stage},
};

on_every_store!(
    a_cookie_is_fresh_until_exactly_its_time,
    a_renewal_comes_before_the_handler_and_sets_both_cookies,
    a_handler_that_looks_at_nothing_renews_as_well,
    data_survives_renewals,
    silence_ends_a_session_exactly_at_its_idle_timeout,
    activity_moves_the_idle_timeout,
    a_cookie_near_the_end_is_fresh_no_longer_than_the_session,
    activity_does_not_move_the_absolute_timeout,
    cookies_end_with_the_session_whenever_they_are_renewed,
    a_remembered_session_has_the_second_pair_of_timeouts,
    a_remembered_session_ends_at_its_own_absolute_timeout,
    a_remembered_session_that_was_silent_is_remembered_only,
    a_remembered_session_that_is_used_stays_as_strong,
    authentication_is_recent_until_exactly_its_time,
    without_a_session_cookie_the_token_renews,
    without_a_token_a_session_lives_until_it_is_stale,
    a_session_that_is_over_is_told_apart_only_by_its_event,
);

async fn told(browser: &mut Browser) -> Value {
    serde_json::from_str(&browser.visit(details).await.ok()).unwrap()
}

async fn a_cookie_is_fresh_until_exactly_its_time(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH - MS);
    let answer = browser.ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
    stage.pass(MS);
    let answer = browser.ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.sets(SESSION).is_some());
    assert_eq!(stage.store.calls(), ["rotate"]);
}

async fn a_renewal_comes_before_the_handler_and_sets_both_cookies(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let before = browser.jar.clone();
    stage.pass(FRESH);
    let answer = browser.visit(who).await;
    assert_eq!(answer.ok(), "alice");
    for name in [SESSION, RENEWAL] {
        let set = answer.cookies.sets(name);
        assert!(set.is_some() && set != before.value(name), "{name}");
    }
    stage.forget();
    assert!(browser.visit(who).await.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn a_handler_that_looks_at_nothing_renews_as_well(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let answer = browser.visit(page).await;
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
}

async fn data_survives_renewals(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    for _ in 0..3 {
        stage.pass(FRESH);
        assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    }
}

async fn silence_ends_a_session_exactly_at_its_idle_timeout(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.pass(IDLE - MS);
    let mut in_time = alice.clone();
    assert_eq!(in_time.who().await, "alice");
    let mut late = stage.signed_in("bob").await;
    stage.pass(IDLE);
    let answer = late.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty(), "cookies of a session that is over are left alone");
    assert_eq!(stage.events.names(), ["session_use_after_expire"]);
}

async fn activity_moves_the_idle_timeout(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    for _ in 0..3 {
        stage.pass(IDLE - MS);
        assert_eq!(browser.who().await, "alice");
    }
    stage.pass(IDLE);
    assert_eq!(browser.who().await, "nobody");
}

async fn a_cookie_near_the_end_is_fresh_no_longer_than_the_session(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let step = SECOND * 1200;
    for _ in 0..35 {
        stage.pass(step);
        assert_eq!(browser.who().await, "alice");
    }
    stage.pass(ABSOLUTE - step * 35 - SECOND * 60);
    assert_eq!(browser.who().await, "alice");
    stage.pass(SECOND * 60 - MS);
    stage.forget();
    let mut pasted = browser.clone();
    assert_eq!(pasted.who().await, "alice");
    stage.pass(MS);
    // A browser forgets them now; somebody who kept them is nobody all the same.
    for name in [SESSION, RENEWAL] {
        pasted.jar.put(name, browser.jar.value(name).unwrap());
    }
    assert_eq!(pasted.who().await, "nobody");
}

async fn activity_does_not_move_the_absolute_timeout(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let step = IDLE - SECOND * 60;
    let steps = u32::try_from(ABSOLUTE.as_secs() / step.as_secs()).unwrap();
    for _ in 0..steps {
        stage.pass(step);
        assert_eq!(browser.who().await, "alice");
    }
    let kept = browser.jar.clone();
    stage.pass(ABSOLUTE - step * steps);
    assert_eq!(browser.who().await, "nobody");
    for name in [SESSION, RENEWAL] {
        browser.jar.put(name, kept.value(name).unwrap());
    }
    assert_eq!(browser.who().await, "nobody");
}

async fn cookies_end_with_the_session_whenever_they_are_renewed(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let answer = browser.visit(who).await;
    for name in [SESSION, RENEWAL] {
        assert_eq!(answer.cookies.max_age(name), Some((ABSOLUTE - FRESH).as_secs()));
    }
}

async fn a_remembered_session_has_the_second_pair_of_timeouts(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(login_remembered("alice")).await.ok();
    stage.pass(REMEMBERED_IDLE - MS);
    assert_eq!(browser.who().await, "alice");
    stage.pass(REMEMBERED_IDLE);
    assert_eq!(browser.who().await, "nobody");
}

async fn a_remembered_session_ends_at_its_own_absolute_timeout(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(login_remembered("alice")).await.ok();
    let step = REMEMBERED_ABSOLUTE / 3;
    for _ in 0..2 {
        stage.pass(step);
        assert_eq!(browser.who().await, "alice");
    }
    stage.pass(step - FRESH);
    assert_eq!(browser.who().await, "alice");
    let kept = browser.jar.clone();
    stage.pass(FRESH);
    for name in [SESSION, RENEWAL] {
        browser.jar.put(name, kept.value(name).unwrap());
    }
    assert_eq!(browser.who().await, "nobody");
}

async fn a_remembered_session_that_was_silent_is_remembered_only(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.recent(REMEMBERED_IDLE));
    stage.layer.ready().await.unwrap();
    let mut browser = stage.browser();
    browser.visit(login_remembered("alice")).await.ok();
    stage.pass(IDLE);
    let said = told(&mut browser).await;
    assert_eq!((&said["strength"], &said["recent"]), (&"remembered".into(), &false.into()));
    // Recent by the clock, but whoever picked up the laptop meanwhile did not authenticate.
    assert_eq!(browser.visit(recent).await.status, StatusCode::FORBIDDEN);
    stage.pass(FRESH);
    assert_eq!(told(&mut browser).await["strength"], "remembered", "renewing does not lift it");
    browser.visit(reauthenticate).await.ok();
    let said = told(&mut browser).await;
    assert_eq!((&said["strength"], &said["remembered"]), (&"context".into(), &true.into()));
    assert_eq!(browser.visit(recent).await.ok(), "recent");
}

async fn a_remembered_session_that_is_used_stays_as_strong(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(login_remembered("alice")).await.ok();
    for _ in 0..3 {
        stage.pass(IDLE - MS);
        assert_eq!(told(&mut browser).await["strength"], "context");
    }
}

async fn authentication_is_recent_until_exactly_its_time(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    assert_eq!(stage.browser().ask(recent).await.status, StatusCode::UNAUTHORIZED);
    stage.pass(FRESH - MS);
    assert_eq!(browser.visit(recent).await.ok(), "recent");
    stage.pass(MS);
    let answer = browser.visit(recent).await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::FORBIDDEN, ""));
    assert_eq!(browser.who().await, "alice");
}

async fn without_a_session_cookie_the_token_renews(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    browser.jar = browser.jar.without(SESSION);
    let answer = browser.visit(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
}

/// A24: a full jar may push one cookie out; that is no attack, and no reason to take the other one away.
async fn without_a_token_a_session_lives_until_it_is_stale(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.jar = browser.jar.without(RENEWAL);
    stage.pass(FRESH - MS);
    assert_eq!(browser.who().await, "alice");
    stage.pass(MS);
    let answer = browser.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), ["session_use_after_expire"]);
}

/// A49: whoever asks learns nothing of why he is nobody.
async fn a_session_that_is_over_is_told_apart_only_by_its_event(stage: Stage) {
    let stranger = stage.browser().ask(who).await;
    let expired = stage.signed_in("alice").await;
    let mut revoked = stage.signed_in("bob").await;
    let kept = revoked.clone();
    revoked.visit(crate::handlers::logout).await.ok();
    let revoked = kept.ask(who).await;
    stage.pass(IDLE);
    let expired = expired.ask(who).await;
    for answer in [revoked, expired] {
        assert_eq!(answer.body, stranger.body);
        assert_eq!(answer.status, stranger.status);
        assert_eq!(answer.headers, stranger.headers);
    }
}
