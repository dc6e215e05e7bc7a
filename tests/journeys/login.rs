//! Signing in: a new id, nothing of before, and nobody else's session left open beside it.

use portcullis::{Auth, AuthError, Session};
use serde_json::{Map, Value, json};

use crate::{
    browser::CHROME,
    handlers::{details, login, login_remembered, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::{ABSOLUTE, FRESH, GRACE, REMEMBERED_ABSOLUTE, Stage},
};

on_every_store!(
    a_login_sets_both_cookies_until_the_absolute_end,
    what_login_was_told_is_what_identity_says,
    a_login_does_not_change_who_the_request_is_from,
    data_from_before_the_login_is_dropped,
    data_that_is_named_is_kept,
    fixation_by_an_id_from_before_the_login_fails,
    an_id_that_was_made_up_is_never_adopted,
    signing_in_as_another_user_ends_the_first_session_at_once,
    signing_in_again_ends_the_session_before,
    a_login_ends_what_stale_cookies_of_the_request_name,
    a_login_ends_what_a_lone_token_of_the_request_names,
    a_login_ends_what_duplicate_cookies_of_the_request_name,
    a_login_after_a_logout_in_one_request_is_a_new_session,
    a_second_login_in_one_request_ends_the_first,
    what_cannot_be_signed_in_is_refused_and_changes_nothing,
    the_longest_login_still_fits_into_its_lines,
);

async fn a_login_sets_both_cookies_until_the_absolute_end(stage: Stage) {
    let answer = stage.browser().ask(login("alice")).await;
    for name in [SESSION, RENEWAL] {
        assert!(answer.cookies.sets(name).is_some());
        assert_eq!(answer.cookies.max_age(name), Some(ABSOLUTE.as_secs()));
    }
    let answer = stage.browser().ask(login_remembered("alice")).await;
    for name in [SESSION, RENEWAL] {
        assert_eq!(answer.cookies.max_age(name), Some(REMEMBERED_ABSOLUTE.as_secs()));
    }
}

async fn what_login_was_told_is_what_identity_says(stage: Stage) {
    let mut browser = stage.browser();
    let signs_in = |auth: Auth| async move {
        let claims = Map::from_iter([("role".into(), json!("editor")), ("shop".into(), json!([1, 2]))]);
        auth.login("alice").claims(claims).claim("level", 3)?.method("pwd").method("otp").remember(true).await
    };
    browser.visit(signs_in).await.ok();
    let mut said: Value = serde_json::from_str(&browser.visit(details).await.ok()).unwrap();
    assert_eq!(said.as_object_mut().unwrap().remove("session").unwrap().as_str().unwrap().len(), 22);
    let expected = json!({
        "subject": "alice",
        "claims": { "role": "editor", "shop": [1, 2], "level": 3 },
        "methods": ["pwd", "otp"],
        "authenticated_at": stage.second(),
        "strength": "context",
        "remembered": true,
        "context_changed": false,
        "recent": true,
    });
    assert_eq!(said, expected);
}

async fn a_login_does_not_change_who_the_request_is_from(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let signs_in = |identity: portcullis::Identity, auth: Auth| async move {
        auth.login("bob").await.unwrap();
        identity.subject().to_owned()
    };
    assert_eq!(browser.visit(signs_in).await.ok(), "alice");
    assert_eq!(browser.who().await, "bob");
}

async fn data_from_before_the_login_is_dropped(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(write("planted", "by somebody else")).await.ok();
    browser.login("alice").await;
    assert_eq!(browser.visit(read("planted")).await.ok(), "nothing");
    browser.visit(write("mine", "of alice")).await.ok();
    browser.login("bob").await;
    assert_eq!(browser.visit(read("mine")).await.ok(), "nothing");
    let writes_first = |session: Session, auth: Auth| async move {
        session.insert("early", 1).await.unwrap();
        auth.login("carol").await.unwrap();
        assert_eq!(session.get::<u8>("early").await.unwrap(), None);
    };
    browser.visit(writes_first).await.ok();
    assert_eq!(browser.visit(read("early")).await.ok(), "nothing");
}

async fn data_that_is_named_is_kept(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(write("basket", "two apples")).await.ok();
    browser.visit(write("planted", "by somebody else")).await.ok();
    stage.forget();
    let keeps = |auth: Auth| async move { auth.login("alice").keep("basket").keep("not there").await };
    browser.visit(keeps).await.ok();
    assert_eq!(stage.store.calls()[..2], ["load", "create"]);
    assert_eq!(browser.visit(read("basket")).await.ok(), "two apples");
    assert_eq!(browser.visit(read("planted")).await.ok(), "nothing");
}

/// A16: the attacker hands out the cookies of an anonymous session and waits until somebody signs in with them.
async fn fixation_by_an_id_from_before_the_login_fails(stage: Stage) {
    let mut attacker = stage.browser();
    attacker.visit(write("basket", "bait")).await.ok();
    let mut victim = attacker.clone();
    victim.login("alice").await;
    assert_ne!(attacker.jar.value(SESSION), victim.jar.value(SESSION));
    assert_eq!(attacker.who().await, "nobody");
    assert_eq!(attacker.visit(read("basket")).await.ok(), "nothing");
    stage.pass(FRESH + GRACE);
    assert_eq!(attacker.who().await, "nobody");
    assert_eq!(victim.who().await, "alice");
}

/// A17: cookies of the right form and length that this server never sealed.
async fn an_id_that_was_made_up_is_never_adopted(stage: Stage) {
    let real = stage.signed_in("mallory").await;
    let mut browser = stage.browser();
    for name in [SESSION, RENEWAL] {
        let value = real.jar.value(name).unwrap();
        let (before, after) = value.split_at(value.len() / 2);
        let other = if after.starts_with('A') { 'B' } else { 'A' };
        browser.jar.put(name, format!("{before}{other}{}", &after[1..]));
    }
    let before = browser.jar.clone();
    let answer = browser.visit(login("alice")).await;
    assert_eq!(stage.store.calls(), ["create"]);
    assert!(stage.store.replaced().is_none());
    for name in [SESSION, RENEWAL] {
        assert_ne!(answer.cookies.sets(name), before.value(name));
    }
    assert_eq!(browser.with_jar(before).ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "alice");
}

async fn signing_in_as_another_user_ends_the_first_session_at_once(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let mut copy = browser.clone();
    browser.login("bob").await;
    stage.forget();
    assert_eq!(copy.who().await, "nobody");
    assert_eq!(stage.store.calls(), [""; 0], "it is known without asking");
    copy.jar = copy.jar.without(SESSION);
    assert_eq!(copy.who().await, "nobody");
    assert_eq!(browser.who().await, "bob");
}

async fn signing_in_again_ends_the_session_before(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    browser.login("alice").await;
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "alice");
}

async fn a_login_ends_what_stale_cookies_of_the_request_name(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    // The session cookie alone cannot renew, so the request is anonymous; the session is alive all the same.
    let mut browser = alice.with_jar(alice.jar.without(RENEWAL));
    browser.login("bob").await;
    let events = stage.events.names();
    assert!(events.contains(&"session_revoked"), "{events:?}");
    assert_eq!(alice.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "bob");
}

async fn a_login_ends_what_a_lone_token_of_the_request_names(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    // From a browser of another family the token renews nothing, so the request is anonymous.
    let mut browser = alice.with_jar(alice.jar.without(SESSION));
    browser.user_agent = Some(CHROME);
    browser.login("bob").await;
    assert_eq!(alice.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "bob");
}

async fn a_login_ends_what_duplicate_cookies_of_the_request_name(stage: Stage) {
    let (alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    let second = format!("{SESSION}={}", mallory.jar.value(SESSION).unwrap());
    let mut browser = alice.with_field("cookie", second);
    browser.login("bob").await;
    for ended in [alice, mallory] {
        assert_eq!(ended.ask(who).await.ok(), "nobody");
    }
}

async fn a_login_after_a_logout_in_one_request_is_a_new_session(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let switches = |auth: Auth| async move {
        auth.logout().await?;
        auth.login("bob").await
    };
    browser.visit(switches).await.ok();
    assert_eq!(browser.who().await, "bob");
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

async fn a_second_login_in_one_request_ends_the_first(stage: Stage) {
    let mut browser = stage.browser();
    let signs_in_twice = |auth: Auth| async move {
        auth.login("alice").await?;
        auth.login("bob").await
    };
    browser.visit(signs_in_twice).await.ok();
    assert_eq!(browser.who().await, "bob");
    let lists = |auth: Auth| async move { auth.sessions().await.unwrap().len().to_string() };
    assert_eq!(browser.visit(lists).await.ok(), "1");
    let mut other = stage.signed_in("alice").await;
    assert_eq!(other.visit(lists).await.ok(), "1", "alice's first session is gone");
}

async fn what_cannot_be_signed_in_is_refused_and_changes_nothing(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let refusals = |auth: Auth| async move {
        let long = "x".repeat(256);
        assert_eq!(auth.login("").await, Err(AuthError::Subject));
        assert_eq!(auth.login(&long).await, Err(AuthError::Subject));
        let claims = auth.login("bob").claim("note", "x".repeat(1024)).unwrap();
        assert_eq!(claims.await, Err(AuthError::Claims));
        assert!(auth.login("bob").claim("map", std::collections::HashMap::from([([1, 2], 3)])).is_err());
        for method in ["", "two words", long.as_str()] {
            assert_eq!(auth.login("bob").method(method).await, Err(AuthError::Methods));
        }
    };
    let answer = browser.ask(refusals).await;
    answer.ok();
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(browser.ask(who).await.ok(), "alice");
}

/// The jar refuses lines of 4096 bytes and more.
async fn the_longest_login_still_fits_into_its_lines(stage: Stage) {
    let mut browser = stage.browser();
    let signs_in = |auth: Auth| async move {
        let frame = json!({ "note": "" }).to_string().len();
        auth.login("s".repeat(255)).claim("note", "x".repeat(1024 - frame))?.method("m".repeat(255)).await
    };
    let answer = browser.visit(signs_in).await;
    answer.ok();
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(browser.who().await, "s".repeat(255));
}
