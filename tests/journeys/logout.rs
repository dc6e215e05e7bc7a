//! Signing out: here, and everywhere.

use std::time::Duration;

use http::StatusCode;
use portcullis::{Auth, AuthError, Session, events::StoreVerb};

use crate::{
    handlers::{login, logout, logout_everywhere, read, who, write},
    jar::{Jar, RENEWAL, SESSION},
    stage::{FRESH, GRACE, Stage},
};

on_every_store!(
    a_logout_removes_both_cookies_with_every_attribute,
    after_a_logout_cookies_and_data_are_dead_at_once,
    a_logout_ends_a_stale_session_too,
    a_logout_of_nobody_is_no_error,
    what_is_written_after_a_logout_is_a_session_of_nobody,
    a_logout_that_the_store_does_not_hear_holds_here_and_is_written_later,
    a_logout_stays_done_when_the_handler_fails_afterwards,
    logout_everywhere_ends_all_browsers_at_once,
    logout_everywhere_ends_their_tokens,
    after_logout_everywhere_a_new_login_lives,
    logout_everywhere_leaves_other_users_alone,
    logout_everywhere_of_nobody_is_refused,
    logout_everywhere_that_the_store_does_not_hear_holds_here_and_is_written_later,
    an_operator_signs_a_user_out_everywhere,
    an_operator_signs_everybody_out,
);

/// A30: a browser keeps a cookie whose removal names other attributes.
async fn a_logout_removes_both_cookies_with_every_attribute(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let answer = browser.visit(logout).await;
    for name in [SESSION, RENEWAL] {
        let line = format!("{name}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");
        assert_eq!(answer.cookies.text(name), Some(line.as_str()));
        assert_eq!(browser.jar.value(name), None);
    }
    assert_eq!(stage.store.calls(), ["revoke"]);
    assert_eq!(stage.events.names(), ["authn_logout"]);
}

async fn after_a_logout_cookies_and_data_are_dead_at_once(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let copy = browser.clone();
    browser.visit(logout).await.ok();
    stage.forget();
    let fresh = copy.ask(who).await;
    assert_eq!(fresh.ok(), "nobody");
    assert!(fresh.cookies.is_empty());
    let token = copy.with_jar(copy.jar.without(SESSION));
    assert_eq!(token.ask(who).await.ok(), "nobody");
    assert_eq!(stage.store.calls(), [""; 0], "it is known without asking");
    assert_eq!(copy.ask(read("colour")).await.ok(), "nothing");
    stage.pass(FRESH + GRACE);
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    stage.pass(FRESH * 10);
    assert_eq!(token.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "nobody");
}

async fn a_logout_ends_a_stale_session_too(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let mut browser = alice.with_jar(alice.jar.without(RENEWAL));
    let answer = browser.visit(logout).await;
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    assert_eq!(alice.ask(who).await.ok(), "nobody");
}

async fn a_logout_of_nobody_is_no_error(stage: Stage) {
    stage.browser().ask(logout).await.ok();
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), [""; 0]);
    let mut garbage = stage.browser();
    garbage.jar.put(SESSION, "nonsense");
    garbage.ask(logout).await.ok();
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn what_is_written_after_a_logout_is_a_session_of_nobody(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    browser.visit(write("secret", "of alice")).await.ok();
    let says_goodbye = |auth: Auth, session: Session| async move {
        auth.logout().await.unwrap();
        session.insert("goodbye", "alice").await.unwrap();
    };
    let answer = browser.visit(says_goodbye).await;
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(browser.visit(read("goodbye")).await.ok(), "alice");
    assert_eq!(browser.visit(read("secret")).await.ok(), "nothing");
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

/// A62.
async fn a_logout_that_the_store_does_not_hear_holds_here_and_is_written_later(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.store.goes_down();
    let tries = |auth: Auth| async move {
        assert_eq!(auth.logout().await, Err(AuthError::Unavailable));
    };
    let answer = browser.ask(tries).await;
    assert!(answer.cookies.is_empty());
    assert_eq!(browser.who().await, "nobody", "on this instance it holds at once");
    browser.ask(logout).await.ok();
    stage.store.comes_back();
    stage.layer.ready().await.unwrap();
    assert!(stage.events.names().contains(&"revocations_delivered"));
    // Another instance knows of nothing but the store.
    let other = stage.restarted_with(stage.keys.clone());
    assert_eq!(browser.at(&other).ask(who).await.ok(), "nobody");
    assert_eq!(stage.signed_in("alice").await.who().await, "alice");
}

async fn a_logout_stays_done_when_the_handler_fails_afterwards(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let fails = |auth: Auth| async move {
        auth.logout().await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let answer = browser.visit(fails).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

async fn logout_everywhere_ends_all_browsers_at_once(stage: Stage) {
    let mut here = stage.signed_in("alice").await;
    let (phone, tablet) = (stage.signed_in("alice").await, stage.signed_in("alice").await);
    let copy = here.clone();
    let answer = here.visit(logout_everywhere).await;
    answer.ok();
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    let events = stage.events.take();
    assert_eq!(events[0].name(), "authn_logout_everywhere");
    assert_eq!(events[0].detail(), "3 sessions");
    stage.forget();
    for browser in [&copy, &phone, &tablet] {
        let answer = browser.ask(who).await;
        assert_eq!(answer.ok(), "nobody");
        assert!(answer.cookies.is_empty());
    }
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn logout_everywhere_ends_their_tokens(stage: Stage) {
    let mut here = stage.signed_in("alice").await;
    let phone = stage.signed_in("alice").await;
    here.visit(logout_everywhere).await.ok();
    let token = phone.with_jar(phone.jar.without(SESSION));
    for span in [GRACE, FRESH, FRESH * 100] {
        let answer = token.ask(who).await;
        assert_eq!(answer.ok(), "nobody");
        assert!(answer.cookies.is_empty());
        stage.pass(span);
    }
}

async fn after_logout_everywhere_a_new_login_lives(stage: Stage) {
    let mut here = stage.signed_in("alice").await;
    for _ in 0..3 {
        here.visit(logout_everywhere).await.ok();
        assert_eq!(here.who().await, "nobody");
        here.visit(login("alice")).await.ok();
        assert_eq!(here.who().await, "alice");
        stage.pass(FRESH);
        assert_eq!(here.who().await, "alice");
    }
}

async fn logout_everywhere_leaves_other_users_alone(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    let mut others = Vec::new();
    for user in ["bob", "Alice", "alice ", "alic"] {
        others.push((stage.signed_in(user).await, user));
    }
    alice.visit(logout_everywhere).await.ok();
    for (browser, user) in &mut others {
        assert_eq!(browser.who().await, *user);
        stage.pass(FRESH);
        assert_eq!(browser.who().await, *user);
    }
}

async fn logout_everywhere_of_nobody_is_refused(stage: Stage) {
    let browser = stage.browser();
    assert_eq!(browser.ask(logout_everywhere).await.status, StatusCode::UNAUTHORIZED);
    let alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let stale = alice.with_jar(alice.jar.without(RENEWAL));
    assert_eq!(stale.ask(logout_everywhere).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(browser.with_jar(Jar::default()).ask(who).await.ok(), "nobody");
}

async fn logout_everywhere_that_the_store_does_not_hear_holds_here_and_is_written_later(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.store.fails_only(StoreVerb::RevokeSubject);
    let other = stage.signed_in("alice").await;
    browser.ask(logout_everywhere).await.assert_unavailable();
    for browser in [&mut browser, &mut other.clone()] {
        assert_eq!(browser.who().await, "nobody", "on this instance it holds at once");
        // A token names no user, and the store would renew it.
        let alone = browser.with_jar(browser.jar.without(SESSION)).ask(who).await;
        assert_eq!(alone.ok(), "nobody", "nor does a token help");
        assert!(alone.cookies.is_empty());
    }
    stage.store.comes_back();
    // Who signs in before it is written, stays in after.
    let mut again = stage.signed_in("alice").await;
    stage.layer.ready().await.unwrap();
    assert_eq!(again.who().await, "alice");
    for browser in [&mut browser, &mut other.clone()] {
        assert_eq!(browser.who().await, "nobody");
    }
}

async fn an_operator_signs_a_user_out_everywhere(stage: Stage) {
    let (one, two, bob) =
        (stage.signed_in("alice").await, stage.signed_in("alice").await, stage.signed_in("bob").await);
    assert_eq!(stage.layer.logout_everywhere("alice").await.unwrap(), 2);
    for browser in [one, two] {
        assert_eq!(browser.ask(who).await.ok(), "nobody");
    }
    assert_eq!(bob.ask(who).await.ok(), "bob");
    let mut again = stage.signed_in("alice").await;
    assert_eq!(again.who().await, "alice");
    stage.store.goes_down();
    assert!(stage.layer.logout_everywhere("alice").await.is_err());
}

async fn an_operator_signs_everybody_out(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    assert_eq!(alice.who().await, "alice", "renewed, but authenticated before");
    let bob = stage.signed_in("bob").await;
    stage.pass(Duration::from_secs(1));
    let moment = stage.layer.now();
    let mut carol = stage.signed_in("carol").await;
    stage.layer.logout_before(moment).await.unwrap();
    assert_eq!(stage.events.names().last(), Some(&"authn_logout_everybody"));
    for browser in [&alice, &bob] {
        assert_eq!(browser.ask(who).await.ok(), "nobody");
        assert_eq!(browser.with_jar(browser.jar.without(SESSION)).ask(who).await.ok(), "nobody");
    }
    assert_eq!(carol.who().await, "carol");
    let other = stage.restarted_with(stage.keys.clone());
    assert_eq!(bob.at(&other).ask(who).await.ok(), "nobody", "the store has it");
    stage.pass(FRESH);
    assert_eq!(carol.who().await, "carol");
    stage.store.goes_down();
    assert!(stage.layer.logout_before(stage.layer.now()).await.is_err());
    stage.store.comes_back();
    stage.layer.ready().await.unwrap();
    other.layer.ready().await.unwrap();
    assert_eq!(carol.at(&other).ask(who).await.ok(), "nobody", "written when the store was back");
    // A moment that is still to come is now: nobody is kept from signing in.
    stage.layer.logout_before(portcullis::clock::Timestamp::MAX).await.unwrap();
    stage.pass(Duration::from_secs(1));
    assert_eq!(stage.signed_in("dave").await.who().await, "dave");
}

/// What an operator does on an instance that nobody has asked anything yet: from then on it follows the feed.
#[tokio::test]
async fn an_instance_hears_of_every_end_after_an_operator_signed_somebody_out_there() {
    let stage = Stage::memory().await;
    let alice = stage.signed_in("alice").await;
    let other = stage.restarted_with(stage.keys.clone());
    assert_eq!(other.layer.logout_everywhere("bob").await.unwrap(), 0);
    alice.clone().visit(logout).await.ok();
    // Time for the task to hear of it, and no request that would start one.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(alice.at(&other).ask(who).await.ok(), "nobody");
}
