//! The list of a user's sessions, and ending one of them.

use http::StatusCode;
use portcullis::{Auth, AuthError, Identity, id::SessionRef};

use crate::{
    browser::{Browser, FIREFOX_ON_WINDOWS},
    handlers::{logout, reauthenticate, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, SECOND, Stage},
};

on_every_store!(
    the_list_has_the_user_s_own_sessions_oldest_first,
    the_list_names_the_client_and_the_times,
    a_session_that_is_over_is_not_listed,
    a_session_with_a_new_id_is_listed_once,
    revoking_another_session_ends_it_at_once,
    revoking_the_present_session_is_a_logout,
    foreign_and_unknown_handles_look_alike,
    handles_are_no_ids,
    the_list_of_nobody_is_refused,
);

async fn list(auth: Auth) -> Result<String, AuthError> {
    let sessions = auth.sessions().await?;
    let mark = |current| if current { "*" } else { "" };
    let entries = sessions.iter().map(|info| format!("{}{}", mark(info.current), info.handle));
    Ok(entries.collect::<Vec<_>>().join(" "))
}

async fn handle(identity: Identity) -> String {
    identity.session().to_string()
}

fn revoke(
    handle: String,
) -> impl Fn(Auth) -> std::pin::Pin<Box<dyn Future<Output = Result<(), AuthError>> + Send>> + Clone + Send + Sync
{
    move |auth| {
        let handle = SessionRef::parse(&handle).unwrap();
        Box::pin(async move { auth.revoke(handle).await })
    }
}

async fn handle_of(browser: &Browser) -> String {
    browser.ask(handle).await.ok()
}

async fn the_list_has_the_user_s_own_sessions_oldest_first(stage: Stage) {
    let mut browsers = Vec::new();
    for user in ["alice", "bob", "alice", "alice"] {
        browsers.push(stage.signed_in(user).await);
        stage.pass(SECOND);
    }
    let mut handles = Vec::new();
    for at in [0, 2, 3] {
        handles.push(handle_of(&browsers[at]).await);
    }
    stage.forget();
    let listed = browsers[2].ask(list).await.ok();
    assert_eq!(listed, format!("{} *{} {}", handles[0], handles[1], handles[2]));
    assert_eq!(stage.store.calls(), ["list_subject"]);
    assert_eq!(browsers[1].ask(list).await.ok(), format!("*{}", handle_of(&browsers[1]).await));
}

async fn the_list_names_the_client_and_the_times(stage: Stage) {
    let mut browser = stage.browser();
    browser.user_agent = Some(FIREFOX_ON_WINDOWS);
    let began = stage.second();
    browser.login("alice").await;
    stage.pass(FRESH);
    browser.who().await;
    let describes = |auth: Auth| async move {
        let info = auth.sessions().await.unwrap().remove(0);
        format!("{} {} {}", info.created.unix_timestamp(), info.renewed.unix_timestamp(), info.client)
    };
    let expected = format!("{began} {} Firefox on Windows", stage.second());
    assert_eq!(browser.visit(describes).await.ok(), expected);
}

async fn a_session_that_is_over_is_not_listed(stage: Stage) {
    let idle = stage.signed_in("alice").await;
    let mut browser = stage.signed_in("alice").await;
    let mut left = stage.signed_in("alice").await;
    left.visit(logout).await.ok();
    for _ in 0..6 {
        stage.pass(FRESH);
        browser.who().await;
    }
    assert_eq!(browser.ask(list).await.ok(), format!("*{}", handle_of(&browser).await));
    assert_eq!(idle.ask(who).await.ok(), "nobody");
}

async fn a_session_with_a_new_id_is_listed_once(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(reauthenticate).await.ok();
    assert_eq!(browser.ask(list).await.ok(), format!("*{}", handle_of(&browser).await));
}

async fn revoking_another_session_ends_it_at_once(stage: Stage) {
    let (here, mut phone) = (stage.signed_in("alice").await, stage.signed_in("alice").await);
    phone.visit(write("colour", "green")).await.ok();
    let answer = here.ask(revoke(handle_of(&phone).await)).await;
    answer.ok();
    assert!(answer.cookies.is_empty());
    let events = stage.events.names();
    assert_eq!(events.last(), Some(&"session_revoked"));
    stage.forget();
    assert_eq!(phone.who().await, "nobody");
    phone.jar = phone.jar.without(SESSION);
    assert_eq!(phone.who().await, "nobody");
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(here.ask(who).await.ok(), "alice");
}

async fn revoking_the_present_session_is_a_logout(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let answer = browser.visit(revoke(handle_of(&copy).await)).await;
    answer.ok();
    assert!(answer.cookies.removes(SESSION) && answer.cookies.removes(RENEWAL));
    assert_eq!(stage.events.names(), ["authn_logout"]);
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

/// A68.
async fn foreign_and_unknown_handles_look_alike(stage: Stage) {
    let (alice, bob) = (stage.signed_in("alice").await, stage.signed_in("bob").await);
    let mut gone = stage.signed_in("alice").await;
    let gone_handle = handle_of(&gone).await;
    gone.visit(logout).await.ok();
    let mut anonymous = stage.browser();
    anonymous.visit(write("basket", "apples")).await.ok();
    stage.forget();
    let handles = [handle_of(&bob).await, gone_handle, "A".repeat(22)];
    let mut answers = Vec::new();
    for handle in handles {
        let answer = alice.ask(revoke(handle)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        answers.push((answer.body, answer.headers, stage.store.calls(), stage.events.names()));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(bob.ask(who).await.ok(), "bob");
}

async fn handles_are_no_ids(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let handle = handle_of(&browser).await;
    assert_eq!(handle.len(), 22);
    let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(&handle).unwrap();
    let contains = |hay: &[u8], needle: &[u8]| hay.windows(needle.len()).any(|window| window == needle);
    for name in [SESSION, RENEWAL] {
        let value = browser.jar.value(name).unwrap();
        assert!(!value.contains(&handle));
        for part in value.split('.') {
            let part = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(part).unwrap();
            assert!(!contains(&part, &bytes) && !contains(&part, handle.as_bytes()));
        }
    }
    browser.ask(crate::handlers::read("x")).await.ok();
    let ids = stage.store.ids();
    assert!(!ids.is_empty());
    assert!(ids.iter().all(|id| !contains(id.as_bytes(), &bytes[..8])));
    // It opens nothing.
    let mut thief = stage.browser();
    thief.jar.put(SESSION, handle.as_str());
    thief.jar.put(RENEWAL, handle.as_str());
    assert_eq!(thief.who().await, "nobody");
}

async fn the_list_of_nobody_is_refused(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(write("basket", "apples")).await.ok();
    stage.forget();
    assert_eq!(browser.ask(list).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(browser.ask(revoke("A".repeat(22))).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(stage.store.calls(), [""; 0]);
}
