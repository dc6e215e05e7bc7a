//! `Session` as users of tower-sessions know it: every verb does what they expect, at the price of one step each.

use portcullis::{Session, store::Replacement};
use serde_json::Value;
use time::OffsetDateTime;
use tower_sessions_core::Expiry;

use crate::{
    browser::Browser,
    handlers::{details, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::{ABSOLUTE, FRESH, IDLE, SECOND, Stage},
};

on_every_store!(
    cycle_id_gives_a_new_id_and_keeps_user_and_data,
    cycle_id_ends_the_old_id_at_once,
    cycle_id_does_not_move_authentication_or_end,
    flush_ends_the_session_and_removes_the_cookies,
    flush_and_insert_is_a_new_session_of_nobody,
    clear_and_insert_is_the_same_session_with_other_data,
    delete_ends_the_session,
    delete_after_a_read_ends_the_session,
    save_in_the_handler_writes_at_once_and_not_again,
    values_of_all_kinds_come_back_as_they_were,
    a_session_of_the_core_tells_no_id,
    set_expiry_shortens,
    set_expiry_counts_for_cookies_from_before_too,
    set_expiry_never_lengthens,
    set_expiry_of_a_session_just_begun_counts,
);

async fn cycle(session: Session) {
    session.cycle_id().await.unwrap();
}

async fn told(browser: &mut Browser) -> Value {
    serde_json::from_str(&browser.visit(details).await.ok()).unwrap()
}

async fn cycle_id_gives_a_new_id_and_keeps_user_and_data(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let before = told(&mut browser).await;
    let old = browser.jar.clone();
    stage.forget();
    let answer = browser.visit(cycle).await;
    for name in [SESSION, RENEWAL] {
        assert!(answer.cookies.sets(name).is_some_and(|value| Some(value) != old.value(name)));
    }
    let creates = stage.store.calls().into_iter().filter(|verb| *verb != "load");
    assert_eq!(creates.collect::<Vec<_>>(), ["create"]);
    assert!(matches!(stage.store.replaced(), Some(Replacement::Move(_))));
    assert_eq!(stage.events.names(), ["session_id_cycled"]);
    let after = told(&mut browser).await;
    assert_ne!(after["session"], before["session"]);
    assert_eq!(after["subject"], "alice");
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
}

async fn cycle_id_ends_the_old_id_at_once(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    browser.visit(cycle).await.ok();
    stage.forget();
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    assert_eq!(copy.with_jar(copy.jar.without(SESSION)).ask(who).await.ok(), "nobody");
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(browser.who().await, "alice");
}

async fn cycle_id_does_not_move_authentication_or_end(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let authenticated = stage.second();
    stage.pass(IDLE / 2);
    let answer = browser.visit(cycle).await;
    assert_eq!(answer.cookies.max_age(SESSION), Some((ABSOLUTE - IDLE / 2).as_secs()));
    assert_eq!(told(&mut browser).await["authenticated_at"], authenticated);
}

async fn flush_ends_the_session_and_removes_the_cookies(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let copy = browser.clone();
    stage.forget();
    let answer = browser.visit(|session: Session| async move { session.flush().await.unwrap() }).await;
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    assert_eq!(stage.store.calls(), ["revoke"]);
    assert_eq!(stage.events.names(), ["authn_logout"]);
    assert_eq!(copy.ask(read("colour")).await.ok(), "nothing");
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

async fn flush_and_insert_is_a_new_session_of_nobody(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let copy = browser.clone();
    stage.forget();
    let starts_over = |session: Session| async move {
        session.flush().await.unwrap();
        session.insert("shape", "round").await.unwrap();
    };
    browser.visit(starts_over).await.ok();
    assert_eq!(stage.store.calls(), ["create"]);
    assert!(matches!(stage.store.replaced(), Some(Replacement::End(_))));
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(browser.visit(read("shape")).await.ok(), "round");
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
}

async fn clear_and_insert_is_the_same_session_with_other_data(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    stage.forget();
    let replaces = |session: Session| async move {
        session.clear().await;
        session.insert("shape", "round").await.unwrap();
    };
    let answer = browser.visit(replaces).await;
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), ["load", "commit"]);
    assert_eq!(browser.who().await, "alice");
    assert_eq!(browser.visit(read("shape")).await.ok(), "round");
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
}

/// What is promised of a deletion, however the handler came to it.
async fn ends_the_session(stage: &Stage, browser: &mut Browser, copy: &Browser) {
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    assert_eq!(browser.who().await, "nobody");
    assert_eq!((browser.jar.value(SESSION), browser.jar.value(RENEWAL)), (None, None));
    let calls = stage.store.calls();
    assert!(calls.contains(&"revoke") && !calls.contains(&"create"), "{calls:?}");
}

async fn delete_ends_the_session(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    browser.visit(|session: Session| async move { session.delete().await.unwrap() }).await.ok();
    ends_the_session(&stage, &mut browser, &copy).await;
}

async fn delete_after_a_read_ends_the_session(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let deletes = |session: Session| async move {
        session.get_value("colour").await.unwrap();
        session.delete().await.unwrap();
    };
    browser.visit(deletes).await.ok();
    ends_the_session(&stage, &mut browser, &copy).await;
}

async fn save_in_the_handler_writes_at_once_and_not_again(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let saves = |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
        session.save().await.unwrap();
        http::StatusCode::INTERNAL_SERVER_ERROR
    };
    browser.visit(saves).await;
    assert_eq!(stage.store.calls(), ["load", "commit"]);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    stage.forget();
    let saves_twice = |session: Session| async move {
        session.insert("colour", "red").await.unwrap();
        session.save().await.unwrap();
        session.save().await.unwrap();
    };
    browser.visit(saves_twice).await.ok();
    assert_eq!(stage.store.calls(), ["load", "commit"]);
    let mut stranger = stage.browser();
    stage.forget();
    stranger.visit(saves_twice).await.ok();
    assert_eq!(stage.store.calls(), ["create"]);
    assert_eq!(stranger.visit(read("colour")).await.ok(), "red");
}

async fn values_of_all_kinds_come_back_as_they_were(stage: Stage) {
    let mut browser = stage.browser();
    let values = || {
        serde_json::json!({
            "": "an empty name",
            "a.b/c\u{e9}\u{1f980}": "an odd name",
            "number": -1.5e10,
            "big": u64::MAX,
            "nothing": null,
            "list": [1, [2, { "three": 3 }]],
            "long": "x".repeat(100_000),
        })
    };
    let writes = move |session: Session| async move {
        for (key, value) in values().as_object().unwrap() {
            session.insert_value(key, value.clone()).await.unwrap();
        }
    };
    let reads = move |session: Session| async move {
        for (key, value) in values().as_object().unwrap() {
            assert_eq!(session.get_value(key).await.unwrap().as_ref(), Some(value), "{key}");
        }
    };
    browser.visit(writes).await.ok();
    browser.visit(reads).await.ok();
    stage.pass(FRESH);
    browser.visit(reads).await.ok();
}

/// The core's own id is public and gets into logs.
async fn a_session_of_the_core_tells_no_id(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let tells = |session: Session, identity: portcullis::Identity| async move {
        assert_eq!(session.id().unwrap().to_string(), identity.session().to_string());
    };
    browser.visit(tells).await.ok();
    assert_eq!(
        stage.browser().ask(|session: Session| async move { format!("{:?}", session.id()) }).await.ok(),
        "None"
    );
}

/// The instant `seconds` from now, as the core writes it.
fn in_seconds(stage: &Stage, seconds: u64) -> Option<Expiry> {
    let at = i64::try_from(stage.second() + seconds).unwrap();
    Some(Expiry::AtDateTime(OffsetDateTime::from_unix_timestamp(at).unwrap()))
}

/// Asserts that the session of `browser` lives for `seconds` from now and not longer, also for whoever kept its cookies.
async fn assert_lives(stage: &Stage, browser: &Browser, seconds: u64) {
    let mut kept = browser.clone();
    for name in [SESSION, RENEWAL] {
        kept.jar.put(name, browser.jar.value(name).unwrap());
    }
    stage.pass(SECOND * u32::try_from(seconds - 1).unwrap());
    assert_eq!(kept.visit(read("colour")).await.ok(), "green");
    stage.pass(SECOND);
    assert_eq!(kept.visit(read("colour")).await.ok(), "nothing");
    assert_eq!(kept.who().await, "nobody");
}

async fn set_expiry_shortens(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let expiry = in_seconds(&stage, 120);
    let shortens = move |session: Session| async move { session.set_expiry(expiry) };
    let answer = browser.visit(shortens).await;
    assert!(answer.cookies.sets(SESSION).is_some());
    assert_lives(&stage, &browser, 120).await;
}

/// A session that is over is over for whoever kept a cookie from before, as after any other end.
async fn set_expiry_counts_for_cookies_from_before_too(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let kept = browser.clone();
    let expiry = in_seconds(&stage, 60);
    browser.visit(move |session: Session| async move { session.set_expiry(expiry) }).await.ok();
    stage.pass(SECOND * 60);
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(kept.ask(who).await.ok(), "nobody");
}

async fn set_expiry_never_lengthens(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    // The other kinds of expiry read the system's clock inside the core, which a test cannot move.
    for seconds in [IDLE.as_secs(), ABSOLUTE.as_secs() + 1, 10 * ABSOLUTE.as_secs()] {
        stage.forget();
        let expiry = in_seconds(&stage, seconds);
        let lengthens = move |session: Session| async move { session.set_expiry(expiry) };
        let answer = browser.visit(lengthens).await;
        answer.ok();
        assert!(answer.cookies.is_empty());
        assert!(!stage.store.calls().contains(&"commit"));
    }
    stage.pass(IDLE - SECOND);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    stage.pass(IDLE);
    assert_eq!(browser.who().await, "nobody");
}

async fn set_expiry_of_a_session_just_begun_counts(stage: Stage) {
    let mut browser = stage.browser();
    let expiry = in_seconds(&stage, 120);
    let begins = move |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
        session.set_expiry(expiry);
    };
    browser.visit(begins).await.ok();
    assert_lives(&stage, &browser, 120).await;
}
